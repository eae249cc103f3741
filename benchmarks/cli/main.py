"""The command line: `bench`, also installed as `contrastbench`.

Every command stands in a module of this room.
"""

import importlib
import inspect
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from contrastbench.benchmarks.cli import options as opt
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.benchmarks.records.files import DISK_ERRORS
from contrastbench.benchmarks.running import launch
from contrastbench.benchmarks.running.signals import TERMINATED, end_on_sigterm
from contrastbench.domains.reading import cause
from contrastbench.errors import UserError, is_out_of_memory, printable, tell

# by its version typer carries a click of its own or uses the installed one; this is the right one's
UsageError: type[Exception] = typer.BadParameter.__mro__[1]
GROUPS = {  # commands as the help shows them, with their modules
    "Run": {"run": "run", "sweep": "sweep", "plan": "sweep", "reproduce": "reproduce"}
    | {"score": "score", "embed": "embed", "predict": "embed"},
    "Compare": {"table": "tables", "compare": "tables", "report": "tables", "audit": "tables"},
    "Check": {"check-loss": "check", "check-domain": "check", "check-device": "check"}
    | {"perf": "perf", "doctor": "doctor"},
    "Data": {"list": "lists", "data": "data", "merge": "sweep", "pack": "sweep"}
    | {"submit": "submit", "verify": "submit"},
}
MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}


def function_name(command: str) -> str:
    """Return the name of a command's function; `list` is one of Python's own."""
    return "list_" if command == "list" else command.replace("-", "_")


class OnceCommand(TyperCommand):
    """Each option that takes one value is given at most once, and no word is empty."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words after a look at which options are among them."""
        if not ctx.resilient_parsing:
            check_filled(args)
            _, _, given = self.make_parser(ctx).parse_args(args=args[:])
            check_once(given)
        rest: list[str] = super().parse_args(ctx, args)
        return rest


def check_filled(args: list[str]) -> None:
    """Raise for an empty word: an empty path would be the current folder."""
    for before, word in pairwise(["", *args]):
        if not word:
            what = f"the value of {before}" if before.startswith("-") else "an argument"
            raise UserError(f"{what} is empty: give one, or leave it out")


def check_once(given: list[Any]) -> None:
    """Raise for an option of one value that is among the given ones twice."""
    for i, param in enumerate(given):
        single = not (param.multiple or getattr(param, "is_flag", False) or param.nargs < 0)
        if single and param.param_type_name == "option" and param in given[:i]:
            raise UserError(f"{param.opts[0]} takes one value and is given twice: give it once")


class Commands(Mapping[str, Any]):
    """The commands by name; the module of one is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        return make_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


@cache
def make_command(name: str) -> Any:
    """Make a command of its function; typer would cut its summary, and wrap its examples."""
    module = importlib.import_module(f"contrastbench.benchmarks.cli.{MODULES[name]}")
    function = getattr(module, function_name(name))
    text, *lines = re.split(r"^Example: ", inspect.getdoc(function) or "", flags=re.MULTILINE)
    text, _, listed = text.partition("Args:\n")
    epilog = opt.examples([" ".join(line.split()) for line in lines])
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    about: dict[str, Any] = {"help": text, "short_help": summary(name), "epilog": epilog}
    alone.command(name, cls=OnceCommand, **about)(function)
    command: Any = get_command(alone)
    meanings = opt.meanings(opt.__doc__) | opt.meanings(listed)
    for parameter in command.params:
        parameter.help = meanings.get(parameter.name, parameter.help)
    return command


def summary(command: str) -> str:
    """Return the first paragraph of a command's docstring, read without importing its module."""
    source = Path(__file__).with_name(f"{MODULES[command]}.py").read_text("utf-8")
    pattern = rf'^def {function_name(command)}\(.*?"""(.*?)(?:\n\n|""")'
    docstring = re.search(pattern, source, re.MULTILINE | re.DOTALL)
    assert docstring, "each command has a docstring"
    return " ".join(docstring[1].split())


class Grouped(TyperGroup):
    """The help shows commands by their groups."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = Commands()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        return [*self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of commands for each group, all of one width."""
        width = max(map(len, MODULES))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary(name)) for name in names])


app = typer.Typer(
    cls=Grouped,
    help="Contrastive losses, unchanged, on images, sentences, graphs and tables of numbers.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
INTERRUPTED = 130
STOPPED = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}
# as they go
KEEPING_COMMANDS = (["run"], ["sweep"], ["merge"], ["pack"], ["data"])


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Show the version, or the help where no command is given."""
    if version:
        from contrastbench.benchmarks.running.provenance import provenance

        say(f"contrastbench {provenance().version or 'of an unknown version'}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        show(context.get_help())


def usage(error: Exception) -> str:
    """Return what is wrong with the arguments, and the choices for a missing one."""
    message: str = error.format_message()  # type: ignore[attr-defined]
    choices = getattr(getattr(error, "param", None), "help", None)
    if pair := recipe_pair(error):
        return f"{message.partition(' (')[0].rstrip('.')}: did you mean --recipe {pair}?"
    kind = type(error).__name__
    unknown = getattr(error, "option_name", "") if kind == "NoSuchOption" else ""
    if takers := commands_with(unknown):
        return f"{message.rstrip('.')} here; known to bench {takers}"
    missing = kind == "MissingParameter"
    if re.fullmatch(r"No such command '[^']*'\.?", message):
        return f"{message.rstrip('.')}: --help lists all commands"
    return f"{message.rstrip('.')}: {choices}" if missing and choices else message


def commands_with(option: str) -> str:
    words = {n: [word for param in c.params for word in param.opts] for n, c in Commands().items()}
    return ", ".join(name for name, known in words.items() if option in known)


def recipe_pair(error: Exception) -> str:
    """Return KEY=VALUE of a setting of the training that was given as an option; "" for others."""
    option = str(getattr(error, "option_name", ""))
    key = option.lstrip("-").replace("-", "_")
    command = getattr(getattr(error, "ctx", None), "command", None)
    if "recipe" not in [param.name for param in getattr(command, "params", ())]:
        return ""
    from contrastbench.domains.registry import DOMAINS, declaration

    if not any(key in declaration(name).recipe.model_fields for name in DOMAINS):
        return ""
    value = re.search(rf"{re.escape(option)}[= ](\S+)", " ".join(sys.argv))
    return f"{key}={value[1] if value else 'VALUE'}"


def unusable_file(error: OSError) -> str:
    """Return which file cannot be used, or that the output cannot be written."""
    if error.filename is None:
        sys.stdout = io.StringIO()  # Python flushes it at its end
        return f"cannot write the output ({error.strerror}): make room, or use another disk"
    return f"cannot use {error.filename} ({error.strerror}): name another"


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    with launch.ended_at_once():
        run_command_line()


def run_command_line() -> NoReturn:
    # nothing here is for plugins of pydantic, and the search for them takes longer than a list
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    warnings.formatwarning = lambda message, *_: f"bench: {printable(str(message))}\n"
    end_on_sigterm()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a stream of few characters, such as ASCII, shows the others as Python writes them
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except (UserError, UsageError) as error:
        code = 2
        tell(f"bench: {usage(error) if isinstance(error, UsageError) else error}")
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        code = 1
        tell(f"bench: there is too little memory ({cause(error)})")
    except OSError as error:
        # of no file that somebody named
        if error.filename is None and error.errno not in DISK_ERRORS:
            raise
        code = 2
        tell(f"bench: {unusable_file(error)}")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as stop:
        if stop.code != TERMINATED:
            raise
        code = TERMINATED
    if code in STOPPED and not launch.started():  # typer makes 130 of Ctrl-C, or does not
        kept = ": what is finished is kept, the same command goes on with the rest"
        tell(STOPPED[code] + kept * (sys.argv[1:2] in KEEPING_COMMANDS))
    sys.exit(code)
