"""The command line: `bench`, also installed as `contrastbench`.

Every command stands in a module of this room.
"""

import signal
import sys
import warnings
from collections.abc import Callable

import typer

from contrastbench.benchmarks.cli import analyse, check, data, perf, run, sweep, tables
from contrastbench.losses.errors import UserError

# by its version typer carries a click of its own or uses the installed one; this is the right one's
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    help="Contrastive losses, unchanged, on images, sentences, graphs and tables of numbers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "run": run.run,
    "sweep": sweep.sweep,
    "plan": sweep.plan,
    "merge": sweep.merge,
    "list": data.list_,
    "table": tables.table,
    "audit": tables.audit,
    "compare": tables.compare,
    "report": tables.report,
    "check-loss": check.check_loss,
    "check-domain": check.check_domain,
    "perf": perf.perf,
    "data": data.data,
    "doctor": data.doctor,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(analyse.app, name="analyse")


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error and exit code 2."""
    warnings.formatwarning = lambda message, *_: f"bench: {message}\n"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(app(standalone_mode=False))
    except UserError as error:
        message = str(error)
    except UsageError as error:
        message = error.format_message()  # type: ignore[attr-defined]
    except (KeyboardInterrupt, typer.Abort):
        kept = "finished seeds are kept, the same command goes on with the others"
        typer.echo(f"interrupted: {kept}", err=True)
        sys.exit(130)
    typer.echo(f"bench: {message}", err=True)
    sys.exit(2)
