"""The command line (`estero --help`)."""

from __future__ import annotations

import gc
import sys

from estero.cli.ending import heeding_signals, open_standard_streams, stopped

_COLLECTED_AT = 50_000
"""The number of new objects after which Python collects garbage, not 700: most belong to modules, and stay.

Collecting while they are loaded took a tenth of `estero run` over a small file.
"""


def main() -> None:
    """The program `estero`. A signal ends it with a single line even during its imports."""
    gc.set_threshold(_COLLECTED_AT)
    open_standard_streams()
    with heeding_signals():
        try:
            from estero.cli.commands import call

            sys.exit(call())
        except KeyboardInterrupt:  # before or after a command
            sys.exit(stopped())
