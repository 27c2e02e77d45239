"""How values of rules in Sigma are written: as patterns of LIKE, and numbers as texts."""

from __future__ import annotations

from typing import Final

_ESCAPED: Final = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


def number_text(value: float) -> str:
    """The text of a number, whole ones without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else str(value)


def escaped(text: str) -> str:
    """The pattern of LIKE for a text as it is."""
    return text.translate(_ESCAPED)
