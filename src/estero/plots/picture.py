"""A drawn figure, and the style that all pictures share."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estero.answers.output_file import output_file
from estero.arguments import checked
from estero.errors import legible

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from matplotlib.figure import Figure

INK, FAINT, GRID, SHADE, BAR = "#22262e", "#8a919e", "#e4e7ec", "#f5f6f8", "#c3c9d3"
WIDTH = 9.6
"""The default width of a picture in inches."""

_STYLE: Any = {
    "svg.hashsalt": "estero",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.unicode_minus": False,
    "text.parse_math": False,
}
"""One font and one salt, so that the same picture is the same bytes everywhere."""


def styled() -> AbstractContextManager[None]:
    """Makes Matplotlib draw in Estero's style inside the block, whatever style the user has set."""
    from matplotlib import style

    return style.context(["default", _STYLE])


_MOST_DRAWN = 1_000_000
"""The largest number of complex events in a picture."""


@checked
@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure: shows itself in a notebook, and is saved without date or random names."""

    figure: Figure

    def save(self, target: str | PathLike[str] | BinaryIO, *, format: str | None = None) -> None:
        """Writes it to a path, by its suffix (svg, png, pdf), or to an open binary file as `format`.

        Raises ValueError for an unknown format, OSError if the path cannot be written (`output_file`).
        """
        drawn = self._drawn(_format_of(target) if format is None else format)
        if isinstance(target, str | PathLike):
            with output_file(target) as file:
                file.write(drawn)
        else:
            target.write(drawn)

    def svg(self) -> str:
        """The picture as SVG text."""
        return self._drawn("svg").decode()

    def _drawn(self, kind: str) -> bytes:
        known = self.figure.canvas.get_supported_filetypes()
        if kind not in known:
            raise ValueError(f"a picture cannot be drawn as {kind!r}: use one of {', '.join(sorted(known))}")
        from matplotlib.text import Text

        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        file = BytesIO()
        for text in self.figure.findobj(Text):  # XML does not allow control characters
            text.set_text(legible(text.get_text(), lines=True))
        with styled():
            self.figure.savefig(file, format=kind, dpi=160, facecolor="white", metadata=undated.get(kind))
        return file.getvalue()

    def _repr_svg_(self) -> str:
        return self.svg()


def _format_of(target: str | PathLike[str] | BinaryIO) -> str:
    """The format that the suffix of a path names."""
    if not isinstance(target, str | PathLike):
        raise ValueError("an open file does not say its format: give format=")  # noqa: TRY004 (the path would)
    suffix = Path(target).suffix.lower().lstrip(".")
    if not suffix:
        raise ValueError(f"{target} does not say its format: end it in .svg, .png or .pdf, or give format=")
    return suffix


def drawable(limit: int) -> int:
    """The number of complex events to draw; ValueError for fewer than 0 or more than a picture shows."""
    if not 0 <= limit <= _MOST_DRAWN:
        raise ValueError(f"a picture shows 0 to {_MOST_DRAWN:,} complex events, not {limit}")
    return limit
