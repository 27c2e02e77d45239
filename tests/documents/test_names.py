"""The names of the package stay what they are, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import estero
from waiting import FAR_OFF


@pytest.mark.parametrize("first", sorted(estero.__all__))
def test_every_public_name_is_there_after_any_other(first: str) -> None:
    program = (
        f"import estero; estero.{first}; import types\n"
        "assert not [n for n in estero.__all__ if isinstance(getattr(estero, n), types.ModuleType)]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=FAR_OFF)


def test_all_public_names_are_listed_before_they_are_used() -> None:
    program = "import estero; print(set(estero.__all__) <= set(dir(estero)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=FAR_OFF
    )
    assert done.stdout == "True\n"
