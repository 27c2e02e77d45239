"""The functions of EQL: their names, arguments and meanings.

`lower_functions.py` translates them into expressions of CEQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class EqlFunction:
    """A function: its numbers of arguments, and whether ``name~`` compares case-insensitively."""

    least: int
    most: int | None
    meaning: str
    example: str
    caseless: bool = False

    def accepts(self, arguments: int) -> bool:
        """Whether it accepts this number of arguments."""
        return self.least <= arguments and (self.most is None or arguments <= self.most)

    @property
    def numbered(self) -> str:
        """The number of arguments, in words."""
        if self.most is None:
            return f"{self.least} arguments or more"
        if self.most == self.least:
            return f"{self.least} argument{'s' if self.least > 1 else ''}"
        return f"{self.least} to {self.most} arguments"


FUNCTIONS: Final[Mapping[str, EqlFunction]] = {
    "add": EqlFunction(2, 2, "the sum", "add(x, 1)"),
    "between": EqlFunction(
        3,
        4,
        "the text between two others: up to the first of the second, or, with true, to its last",
        'between(s, "a", "b")',
        caseless=True,
    ),
    "cidrMatch": EqlFunction(
        2, None, "whether an address is in a block of them", 'cidrMatch(ip, "10.0.0.0/8")'
    ),
    "concat": EqlFunction(1, None, "the values as texts, joined end to end", 'concat(a, ":", b)'),
    "divide": EqlFunction(2, 2, "the quotient; of integers, towards zero", "divide(x, 2)"),
    "endsWith": EqlFunction(
        2, None, "whether a text ends with another", 'endsWith(s, ".exe")', caseless=True
    ),
    "indexOf": EqlFunction(
        2,
        3,
        "the place of a text in another, from 0, not before the third argument",
        'indexOf(s, ".")',
        caseless=True,
    ),
    "length": EqlFunction(1, 1, "the number of characters", "length(s)"),
    "modulo": EqlFunction(2, 2, "the remainder, with the sign of the first argument", "modulo(x, 2)"),
    "multiply": EqlFunction(2, 2, "the product", "multiply(x, 2)"),
    "number": EqlFunction(1, 2, "the number that a text is, to a base", 'number("0x1f", 16)'),
    "startsWith": EqlFunction(
        2, None, "whether a text begins with another", 'startsWith(s, "C:")', caseless=True
    ),
    "string": EqlFunction(1, 1, "the value as a text", "string(pid)"),
    "stringContains": EqlFunction(
        2, 2, "whether a text is in another", 'stringContains(s, "tmp")', caseless=True
    ),
    "substring": EqlFunction(
        2,
        3,
        "the characters from a place to another, from 0; negative places count from the end",
        "substring(s, 0, 3)",
    ),
    "subtract": EqlFunction(2, 2, "the difference", "subtract(x, 1)"),
}
"""The functions by name, as Elastic documents them."""
