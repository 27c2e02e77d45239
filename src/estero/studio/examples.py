"""Six queries over the demo's stream, to click."""

from __future__ import annotations

from typing import Any, Final

from estero import demo
from estero.studio.session import Example

DEMO: Final[dict[str, Any]] = {"type": "kind", "time": "time", "order": ("id",)}
"""The layout of the demo's events."""

EXAMPLES: Final = (
    Example("Frost", demo.QUERY),
    Example(
        "A sudden drop",
        """\
SELECT warm[time, value], cold[time, value]
WHERE Temperature AS warm ; Temperature AS cold
FILTER warm.value - cold.value > 1.5
PARTITION BY [station]
WITHIN 30 MINUTES
""",
    ),
    Example(
        "Falling, reading after reading",
        """\
SELECT LONGEST fall[time, value]
WHERE Temperature{5,} AS fall
FILTER decreasing(fall.value)
PARTITION BY [station]
WITHIN 3 HOURS
""",
    ),
    Example(
        "No wind behind the cold",
        """\
SELECT cold[time, value]
WHERE Temperature AS cold ; NOT(Wind AS w FILTER w[value > 1]) FOR 1 HOUR
FILTER cold[value < -1]
PARTITION BY [station]
WITHIN 10 MINUTES
""",
    ),
    Example(
        "Any four: billions",
        """\
SELECT a[value], b[value], c[value], d[value]
WHERE Wind AS a ; Humidity AS b ; Temperature AS c ; Wind AS d
""",
    ),
    Example(
        "Nothing: why?",
        """\
SELECT still[time, value], frost[time, value]
WHERE Wind AS still ; Temperature AS frost
FILTER still[value < 0.2] AND frost[value < -9]
PARTITION BY [station]
WITHIN 20 MINUTES
""",
    ),
)
