"""The colours of labels, in pictures and on pages, and which label a marked event is shown under."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from estero.language.tree.query import EveryLabel, QueryTree, SelectItem
from estero.language.tree.selection import labels_together

PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#5c6b73")
"""Okabe and Ito's colours, which readers with any colour vision can distinguish, and two more."""
DARK_PALETTE: Final = ("#4ea3dc", "#f08a3e", "#2fc197", "#e29cc4", "#f2b534", "#86ccf5", "#b08bcc", "#9fb0b9")
"""The same on dark ground."""


def most_specific(labels: Sequence[str], frequency: Mapping[str, int]) -> str:
    """The label that marks the fewest events; of equals the last, which is the outermost name given."""
    return min(reversed(labels), key=lambda label: frequency[label])


@dataclass(frozen=True, slots=True)
class LabelColours:
    """The places in the palette of the labels under which events are shown, as the pictures have them.

    >>> colours = LabelColours.of(["SELL", "a", "BUY", "b"], [["SELL", "a"], ["BUY", "b"], ["BUY"]])
    >>> colours.places, colours.shown_under(["BUY", "b"])
    ({'a': 0, 'BUY': 1, 'b': 2}, 'b')
    """

    places: Mapping[str, int]
    """A label is lacking if each of its events is shown under another one, as most types are."""
    frequency: Mapping[str, int]

    @classmethod
    def of(cls, labels: Iterable[str], marked: Sequence[Sequence[str]]) -> LabelColours:
        """The colours of `labels`, in their order; `marked` are the labels of each event."""
        frequency = Counter(label for group in marked for label in group)
        used = {most_specific(group, frequency) for group in marked if group}
        return cls({label: i for i, label in enumerate(one for one in labels if one in used)}, frequency)

    @classmethod
    def of_query(cls, tree: QueryTree) -> LabelColours:
        """The colours of the labels of a query, each type of its pattern taken for one event."""
        groups = labels_together(tree.pattern)
        labels = dict.fromkeys(label for group in groups for label in group)
        items = (EveryLabel(),) if tree.select is None else tree.select
        if not any(isinstance(item, EveryLabel) for item in items):
            selected = [item.label for item in items if isinstance(item, SelectItem)]
            labels = dict.fromkeys(selected) or labels
            groups = [[label for label in group if label in labels] for group in groups]
        return cls.of(labels, [group for group in groups if group])

    def shown_under(self, labels: Sequence[str]) -> str:
        """The label that an event with these is shown under."""
        return most_specific(labels, self.frequency)

    def style(self, label: str) -> str:
        """The class of a label, which gives it its colour."""
        return colour_class(self.places.get(label))


def colour_class(place: int | None) -> str:
    """The class of a label with this place in the palette; without one it is grey."""
    return "label" if place is None else f"label c{place % len(PALETTE)}"
