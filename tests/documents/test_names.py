"""The names of the package stay what they are, whatever was imported before."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import estero
from waiting import FAR_OFF


def test_no_public_name_is_that_of_a_module() -> None:
    """Importing a module of a package puts it under its name there, and would replace what has that name."""
    modules = {module.name for module in pkgutil.iter_modules(estero.__path__)}
    assert {"answers", "queries", "testing"} <= modules
    assert not modules & set(estero.__all__)


def test_all_public_names_are_listed_and_there_before_anything_else_is_imported() -> None:
    program = (
        "import estero; assert set(estero.__all__) <= set(dir(estero)); "
        "print(*(type(getattr(estero, name)).__name__ for name in estero.__all__))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=FAR_OFF
    )
    assert len(done.stdout.split()) == len(estero.__all__)
    assert "module" not in done.stdout.split()
