"""Pictures: the timeline of an answer, an attribute along the stream, a funnel, an automaton.

The same input gives the same bytes of SVG. Matplotlib is imported when the first picture is drawn.
"""

from estero.errors import require
from estero.plots.automaton import plot_automaton
from estero.plots.funnel import plot_funnel
from estero.plots.picture import Picture
from estero.plots.timeline import plot_answer
from estero.plots.values import plot_values

__all__ = ["Picture", "plot_answer", "plot_automaton", "plot_funnel", "plot_values"]

require("plot", "a picture")
