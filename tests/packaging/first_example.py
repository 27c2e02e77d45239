"""Runs the first example of README with the Estero that is installed, wherever this file is."""

from __future__ import annotations

import re
import sys
import tempfile
from os import chdir
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"


def main() -> None:
    """Asserts what the example says: 45 complex events, by machine code of this platform."""
    example = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    if example is None:
        raise SystemExit(f"{README} has no example")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        chdir(directory)
        exec(compile(example[1], README.name, "exec"), names)
        chdir(README.parent)
    from estero.engine.library import library, platform_name

    if names["answer"].count() != 45 or not library().is_native:
        raise SystemExit("the first example of README gives another answer, or runs without machine code")
    print(f"Python {sys.version.split()[0]}, {platform_name()}: the first example runs")


if __name__ == "__main__":
    main()
