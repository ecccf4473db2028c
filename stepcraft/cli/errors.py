"""How the command line ends when something goes wrong: one line on stderr and an exit status."""

from collections.abc import Generator
from contextlib import contextmanager

import typer

from stepcraft.errors import BadInput, StepcraftError, without_secrets


@contextmanager
def reported() -> Generator[None]:
    """Turn exceptions into an exit status: 2 for bad input, 1 for another failure, 130 for Ctrl-C."""
    try:
        yield
    except BadInput as error:
        typer.echo(f"stepcraft: {error}", err=True)
        raise typer.Exit(2) from error
    except StepcraftError as error:
        typer.echo(f"stepcraft: {error}", err=True)
        raise typer.Exit(1) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(130) from error
    except BrokenPipeError as error:
        raise typer.Exit(1) from error
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        what = " ".join(without_secrets(str(error)).split())[:500]
        typer.echo(f"stepcraft: something went wrong: {type(error).__name__}: {what}", err=True)
        raise typer.Exit(1) from error
