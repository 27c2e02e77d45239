"""The texts of values of Sigma rules: patterns of LIKE, and numbers."""

from __future__ import annotations

from typing import Final

_ESCAPED: Final = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


def number_text(value: float) -> str:
    """The text of a number, without a decimal point for integers."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else str(value)


def escaped(text: str) -> str:
    """The pattern of LIKE that matches exactly a text."""
    return text.translate(_ESCAPED)
