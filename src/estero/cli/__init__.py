"""The command line (`estero --help`)."""

from __future__ import annotations

import sys

from estero.cli.ending import heeding_signals, open_standard_streams, stopped


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
