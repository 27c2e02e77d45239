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
