"""The front end's files, which come with the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from estero.errors import EnvironmentProblem

SCRIPT: Final = "studio.js"
STYLE: Final = "studio.css"
_FOLDER: Final = Path(__file__).with_name("static")


def static_file(name: str) -> Path:
    """The path of a file of the front end; `EnvironmentProblem` if it is not built."""
    path = _FOLDER / name
    if not path.is_file():
        raise EnvironmentProblem(
            f"the studio's front end is not built ({name} is missing): it comes with the wheels; "
            "in a clone, make studio builds it, which needs npm"
        )
    return path
