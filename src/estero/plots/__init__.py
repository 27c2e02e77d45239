"""Pictures: the timeline of an answer, a funnel, an automaton. The same input gives the same bytes of SVG.

Matplotlib is imported when the first picture is drawn.
"""

from estero.errors import require
from estero.plots.automaton import plot_automaton
from estero.plots.funnel import plot_funnel
from estero.plots.picture import Picture
from estero.plots.timeline import plot_answer

__all__ = ["Picture", "plot_answer", "plot_automaton", "plot_funnel"]

require("plot", "a picture")
