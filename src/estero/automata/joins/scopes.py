"""The shapes in one instance of which values are equal, and which classes of values matter where."""

from __future__ import annotations

from estero.automata.joins.parts import Parts
from estero.automata.joins.shapes import NOTHING, Rounds, Shape


class Scopes:
    """Looks up for the classes of `parts` what they have to do with which shape."""

    def __init__(self, parts: Parts) -> None:
        self._classes = parts.classes
        self._above: dict[int, frozenset[int]] = {}
        self._repeating: dict[int, frozenset[int]] = {}
        self._singles = [
            frozenset(single for single, event in enumerate(parts.events) if number in event.values)
            for number in range(len(parts.classes))
        ]
        self.all = frozenset(value_class.scope for value_class in parts.classes)
        """The shapes of which instances count, by their numbers."""
        self._place(parts.shape, NOTHING, NOTHING)

    def _place(self, shape: Shape, around: frozenset[int], repeating: frozenset[int]) -> None:
        self._above[shape.number] = inside = around | {shape.number}
        self._repeating[shape.number] = repeating = inside if isinstance(shape, Rounds) else repeating
        for part in shape.parts:
            self._place(part, inside, repeating)

    def is_around(self, number: int, shape: Shape) -> bool:
        """Whether all of a shape is in one instance of the scope of a class."""
        return self._classes[number].scope in self._above[shape.number]

    def matter_outside(self, shape: Shape, singles: frozenset[int]) -> frozenset[int]:
        """The classes that have values, in one instance, of some of these events of a shape and of others.

        Others are the same ones, too, in another round.
        """
        above, repeating = self._above[shape.number], self._repeating[shape.number]
        return frozenset(
            number
            for number, value_class in enumerate(self._classes)
            if value_class.scope in above
            and (value_class.scope in repeating or not self._singles[number] <= singles)
        )

    def matter_inside(self, shape: Shape, live: frozenset[int]) -> frozenset[int]:
        """The classes that matter to a run that goes on in a shape, while `live` are the shapes inside."""
        inside = live | self._above[shape.number]
        return frozenset(
            number for number, value_class in enumerate(self._classes) if value_class.scope in inside
        )

    def ended(self, begun: frozenset[int]) -> frozenset[int]:
        """The classes of which an instance is over where new ones of these shapes begin."""
        return frozenset(
            number for number, value_class in enumerate(self._classes) if value_class.scope in begun
        )
