"""The command line: `bench`, also installed as `contrastbench`.

Every command stands in a module of this room.
"""

import inspect
import io
import sys
import warnings
from collections.abc import Callable
from typing import Annotated, NoReturn

import typer

from contrastbench.benchmarks.cli import (
    analyse,
    check,
    data,
    embed,
    perf,
    reproduce,
    run,
    score,
    submit,
    suite,
    sweep,
    tables,
)
from contrastbench.benchmarks.cli.output import say, show
from contrastbench.benchmarks.records.files import FULL
from contrastbench.benchmarks.running import launch
from contrastbench.benchmarks.running.interruption import TERMINATED, end_on_sigterm
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.domains.reading import cause
from contrastbench.errors import UserError, is_out_of_memory, printable, tell

# by its version typer carries a click of its own or uses the installed one; this is the right one's
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    help="Contrastive losses, unchanged, on images, sentences, graphs and tables of numbers.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
INTERRUPTED = 130
STOPPED = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}
KEEPING = (["run"], ["sweep"], ["merge"], ["pack"], ["data"], ["check-device"])  # as they go
COMMANDS: dict[str, Callable[..., None]] = {
    "run": run.run,
    "reproduce": reproduce.reproduce,
    "score": score.score,
    "embed": embed.embed,
    "sweep": sweep.sweep,
    "check": sweep.check,
    "plan": sweep.plan,
    "merge": sweep.merge,
    "pack": sweep.pack,
    "submit": submit.submit,
    "verify": submit.verify,
    "list": data.list_,
    "table": tables.table,
    "audit": tables.audit,
    "compare": tables.compare,
    "report": tables.report,
    "check-loss": check.check_loss,
    "check-domain": check.check_domain,
    "check-device": check.check_device,
    "perf": perf.perf,
    "data": data.data,
    "doctor": data.doctor,
}


def summary(command: Callable[..., None]) -> str:
    """Return the first paragraph of a command's help on one line."""
    return " ".join((inspect.getdoc(command) or "").partition("\n\n")[0].split())


for name, command in COMMANDS.items():  # summaries are given, as typer cuts those it finds
    app.command(name, short_help=summary(command))(command)
for name, group in {"analyse": analyse.app, "suite": suite.app}.items():
    for one in group.registered_commands:
        assert one.callback is not None, "every command is a function"
        one.short_help = summary(one.callback)
    app.add_typer(group, name=name, short_help=group.info.help)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Show the version, or the help where no command is given."""
    if version:
        say(f"contrastbench {provenance().version or 'of an unknown version'}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        show(context.get_help())


def usage(error: Exception) -> str:
    """Return what is wrong with the arguments, and the choices for a missing one."""
    message: str = error.format_message()  # type: ignore[attr-defined]
    choices = getattr(getattr(error, "param", None), "help", None)
    missing = type(error).__name__ == "MissingParameter"
    return f"{message.rstrip('.')}: {choices}" if missing and choices else message


def unusable(error: OSError) -> str:
    """Return which file cannot be used, or that the output cannot be written."""
    if error.filename is None:
        sys.stdout = io.StringIO()  # Python flushes it at its end
        return f"cannot write the output ({error.strerror}): make room"
    return f"cannot use {error.filename} ({error.strerror}): name another"


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    with launch.ended_at_once():
        answer()


def answer() -> NoReturn:
    """Run the command and exit with its code."""
    warnings.formatwarning = lambda message, *_: f"bench: {printable(str(message))}\n"
    end_on_sigterm()
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
        if error.filename is None and error.errno not in FULL:  # of no file that somebody named
            raise
        code = 2
        tell(f"bench: {unusable(error)}")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit as stop:
        if stop.code != TERMINATED:
            raise
        code = TERMINATED
    if code in STOPPED and not launch.started():  # typer makes 130 of Ctrl-C, or does not
        kept = ": what is finished is kept, the same command goes on with the rest"
        tell(STOPPED[code] + kept * (sys.argv[1:2] in KEEPING))
    sys.exit(code)
