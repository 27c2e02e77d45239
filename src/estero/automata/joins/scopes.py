"""The scopes of classes: the shapes in whose instances their values are equal, and where classes matter."""

from __future__ import annotations

from estero.automata.joins.parts import Parts
from estero.automata.joins.shapes import NOTHING, Rounds, Shape


class Scopes:
    """The relation of the classes of `parts` to its shapes."""

    def __init__(self, parts: Parts) -> None:
        self._classes = parts.classes
        self._above: dict[int, frozenset[int]] = {}
        self._repeating: dict[int, frozenset[int]] = {}
        self._singles = [
            frozenset(single for single, event in enumerate(parts.events) if number in event.values)
            for number in range(len(parts.classes))
        ]
        self.all: frozenset[int] = frozenset(value_class.scope for value_class in parts.classes)
        """The numbers of the shapes that are the scope of a class."""
        self._place(parts.shape, NOTHING, NOTHING)

    def _place(self, shape: Shape, around: frozenset[int], repeating: frozenset[int]) -> None:
        self._above[shape.number] = inside = around | {shape.number}
        self._repeating[shape.number] = repeating = inside if isinstance(shape, Rounds) else repeating
        for part in shape.parts:
            self._place(part, inside, repeating)

    def is_around(self, number: int, shape: Shape) -> bool:
        """Whether a shape is inside the scope of a class."""
        return self._classes[number].scope in self._above[shape.number]

    def matter_outside(self, shape: Shape, singles: frozenset[int]) -> frozenset[int]:
        """The classes of some of these events of a shape that other events have in the same instance as well.

        The same events in another round count as other events.
        """
        above, repeating = self._above[shape.number], self._repeating[shape.number]
        return frozenset(
            number
            for number, value_class in enumerate(self._classes)
            if value_class.scope in above
            and (value_class.scope in repeating or not self._singles[number] <= singles)
        )

    def matter_inside(self, shape: Shape, live: frozenset[int]) -> frozenset[int]:
        """The classes that matter to a run that goes on inside a shape and the shapes `live` in it."""
        inside = live | self._above[shape.number]
        return frozenset(
            number for number, value_class in enumerate(self._classes) if value_class.scope in inside
        )

    def ended(self, begun: frozenset[int]) -> frozenset[int]:
        """The classes whose instances end when new instances of these shapes begin."""
        return frozenset(
            number for number, value_class in enumerate(self._classes) if value_class.scope in begun
        )
