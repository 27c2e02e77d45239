"""Whether this process looks for modules in its directory, where a file with a module's name would run."""

from __future__ import annotations

import sys
from pathlib import Path


def searches_here() -> bool:
    """Whether this process looks for modules in the current directory."""
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return False
    return any((here / folder).resolve() == here for folder in sys.path)
