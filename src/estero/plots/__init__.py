"""Pictures: the timeline of an answer, an attribute along the stream, a funnel.

The same input gives the same bytes of SVG. Matplotlib is imported when the first picture is drawn; automata
(`estero.plots.automaton`) are drawn without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from estero.errors import require

if TYPE_CHECKING:
    from estero.plots.funnel import plot_funnel
    from estero.plots.picture import Picture
    from estero.plots.timeline import plot_answer
    from estero.plots.values import plot_values

__all__ = ["Picture", "plot_answer", "plot_funnel", "plot_values"]

_HOMES = {
    "Picture": "picture",
    "plot_answer": "timeline",
    "plot_funnel": "funnel",
    "plot_values": "values",
}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use; `MissingPackage` without Matplotlib."""
    if name not in _HOMES:
        raise AttributeError(f"module 'estero.plots' has no attribute {name!r}")
    require("plot", "a picture")
    return getattr(import_module(f"estero.plots.{_HOMES[name]}"), name)
