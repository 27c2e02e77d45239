"""The command line (`estero --help`)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from estero.cli.ending import heeding_signals, open_standard_streams, stopped

if TYPE_CHECKING:
    from estero.cli.commands import app

__all__ = ["app", "main"]


def main() -> None:
    """The program `estero`. A signal ends it in a line while it is imported, too, which takes a while."""
    open_standard_streams()
    with heeding_signals():
        try:
            from estero.cli.commands import app, explained

            try:
                app()
            except OSError as error:  # the help, or the version, has nowhere to go
                sys.exit(explained(error))
        except KeyboardInterrupt:  # before or after a command
            sys.exit(stopped())


def __getattr__(name: str) -> Any:
    if name == "app":
        from estero.cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
