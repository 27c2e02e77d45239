"""Python processes that run nothing from the current directory.

``python -m module`` looks for modules in the current directory first, before those of Python: a file there
called like one of them would run. A process that is started here is isolated, and is told where modules are.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HOME = Path(__file__).resolve().parents[2]
_PROGRAM = (
    "import sys; module, words, *sys.path = sys.argv[1:]; sys.argv = [module, *words.split()]; "
    "from runpy import run_module; run_module(module, run_name='__main__')"
)


def module_command(module: str, *arguments: str) -> list[str]:
    """How to run a module as a program of its own, with arguments that are words."""
    return [sys.executable, "-I", "-P", "-c", _PROGRAM, module, " ".join(arguments), *module_folders()]


def module_folders() -> list[str]:
    """Where this process finds modules, but for the current directory.

    If Estero itself is found nowhere else, where it is comes last, so that no module of Python is
    looked for there.
    """
    here = _here()
    if here is None:
        folders = [each for each in sys.path if Path(each).is_absolute()]
    else:
        folders = [str(here / each) for each in sys.path if (here / each).resolve() != here]
    return folders if str(_HOME) in folders else [*folders, str(_HOME)]


def searches_here() -> bool:
    """Whether this process itself looks for modules in the current directory."""
    here = _here()
    return here is not None and any((here / each).resolve() == here for each in sys.path)


def _here() -> Path | None:
    """The current directory; None where it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None
