"""The syntax tree of a query in EQL, Elastic's Event Query Language.

Conditions have nodes of their own, because the meaning of a comparison depends on the columns of the events
(a list matches if any element does); `lowering.py` translates them into conditions of CEQL once the schema is
known. Every node prints as canonical EQL that parses back to an equal node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from typing import Literal as OneOf

from estero.language.eql.texts import category_text, field_text, span_text, value_text
from estero.language.tree.nodes import SyntaxNode, walked

EqlValue = bool | int | float | str | None
ComparisonSign = OneOf["==", "!=", "<", "<=", ">", ">="]
ComputationSign = OneOf["+", "-", "*", "/", "%"]
Likeness = OneOf[":", "like", "like~", "regex", "regex~"]

_OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _SIGN, _VALUE = range(8)
"""The binding strength of the operators, loosest first."""


@dataclass(frozen=True, slots=True)
class EqlNode(SyntaxNode, level=_VALUE):
    """The base of conditions and values."""

    def children(self) -> list[EqlNode]:
        """The nodes directly below this one, left to right."""
        return [node for node in self.below() if isinstance(node, EqlNode)]

    def walk(self) -> Iterator[EqlNode]:
        """This node and all nodes below it, parents first, left to right."""
        return walked(self, EqlNode.children)


@dataclass(frozen=True, slots=True)
class Constant(EqlNode):
    """``null``, ``true``, a number or a string."""

    value: EqlValue

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __str__(self) -> str:
        return value_text(self.value)


@dataclass(frozen=True, slots=True)
class Field(EqlNode):
    """``process.name``; an optional ``?process.name`` counts as missing if no event has it."""

    parts: tuple[str, ...]
    optional: bool = False

    @property
    def name(self) -> str:
        """The parts with dots between them."""
        return ".".join(self.parts)

    def __str__(self) -> str:
        return ("?" if self.optional else "") + field_text(self.parts)


@dataclass(frozen=True, slots=True)
class Minus(EqlNode, level=_SIGN):
    """``-e``."""

    operand: EqlNode

    def __str__(self) -> str:
        text = self.operand.at_level(_VALUE)
        return f"-({text})" if isinstance(self.operand, Constant) else f"-{text}"


@dataclass(frozen=True, slots=True)
class Computation(EqlNode, form="{left:=} {operator!s} {right:+}"):
    """``left op right`` with op one of ``+ - * / %``."""

    operator: ComputationSign
    left: EqlNode
    right: EqlNode

    @property
    def level(self) -> int:
        """The binding strength of a sum or a product."""
        return _SUM if self.operator in ("+", "-") else _PRODUCT


@dataclass(frozen=True, slots=True)
class FunctionCall(EqlNode):
    """``length(a)``, with Elastic's spelling of `name`; ``startsWith~(a, "b")`` if `caseless`."""

    name: str
    arguments: tuple[EqlNode, ...]
    caseless: bool = False

    def __str__(self) -> str:
        return f"{self.name}{'~' if self.caseless else ''}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Compared(EqlNode, level=_TEST, form="{left:+} {operator!s} {right:+}"):
    """``left op right`` with op one of ``== != < <= > >=``: case-sensitive and without wildcards."""

    operator: ComparisonSign
    left: EqlNode
    right: EqlNode


@dataclass(frozen=True, slots=True)
class Member(EqlNode, level=_TEST):
    """``operand in (1, 2)``, or ``in~`` if `caseless`; ``not in`` is `Negated` around it."""

    operand: EqlNode
    members: tuple[EqlNode, ...]
    caseless: bool = False

    def __str__(self) -> str:
        return self.filled()

    def filled(self, negation: str = "") -> str:
        """The text, with `negation` after the operand."""
        sign = "in~" if self.caseless else "in"
        members = ", ".join(map(str, self.members))
        return f"{self.operand.at_level(_TEST + 1)} {negation}{sign} ({members})"


@dataclass(frozen=True, slots=True)
class Alike(EqlNode, level=_TEST):
    """``operand : ("a*", "b")``, ``like``, ``regex`` and their case-insensitive forms: any of the patterns.

    Patterns of ``like`` and ``regex`` are strings; those of ``:`` are constants of any kind.
    """

    sign: Likeness
    operand: EqlNode
    patterns: tuple[Constant, ...]

    def __str__(self) -> str:
        patterns = ", ".join(map(str, self.patterns))
        return f"{self.operand.at_level(_TEST + 1)} {self.sign} " + (
            f"({patterns})" if len(self.patterns) > 1 else patterns
        )


@dataclass(frozen=True, slots=True)
class AllOf(EqlNode, level=_AND, form="{parts:+ and }"):
    """The conjunction of two or more parts."""

    parts: tuple[EqlNode, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(EqlNode, level=_OR, form="{parts:+ or }"):
    """The disjunction of two or more parts."""

    parts: tuple[EqlNode, ...]


@dataclass(frozen=True, slots=True)
class Negated(EqlNode):
    """``not part``: true if the part is false or NULL."""

    part: EqlNode

    @property
    def level(self) -> int:
        """The binding strength of ``not in``, or of ``not``."""
        return _TEST if isinstance(self.part, Member) else _NOT

    def __str__(self) -> str:
        if isinstance(self.part, Member):
            return self.part.filled("not ")
        return f"not {self.part.at_level(_NOT)}"


ALWAYS: Final = Constant(True)


@dataclass(frozen=True, slots=True)
class EventQuery(SyntaxNode):
    """``process where condition``: single events; `category` is None for ``any``."""

    category: str | None
    condition: EqlNode

    def __str__(self) -> str:
        return f"{category_text(self.category)} where {self.condition}"


@dataclass(frozen=True, slots=True)
class Item(SyntaxNode):
    """``[process where condition] by keys with runs=n``, or ``![…]``, no such event, if `missing`.

    `category` is None for ``any``. `keys` are the item's own keys, which follow those of the whole query.
    """

    category: str | None
    condition: EqlNode
    keys: tuple[Field, ...] = ()
    missing: bool = False
    runs: int = 1

    def __str__(self) -> str:
        runs = f" with runs={self.runs}" if self.runs > 1 else ""
        return (
            f"{'!' if self.missing else ''}[{category_text(self.category)} where {self.condition}]"
            f"{_by(self.keys)}{runs}"
        )


@dataclass(frozen=True, slots=True)
class Sequence(SyntaxNode):
    """``sequence by keys with maxspan=d [item] [item] … until [item]``; `maxspan_ns` is in nanoseconds.

    All items and `until` have equally many keys. There are at least two items, counting runs, and at least
    one that is not `missing`; a missing one requires a maxspan.
    """

    keys: tuple[Field, ...]
    maxspan_ns: int | None
    items: tuple[Item, ...]
    until: Item | None = None

    def __str__(self) -> str:
        span = "" if self.maxspan_ns is None else f" with maxspan={span_text(self.maxspan_ns)}"
        until = "" if self.until is None else f" until {self.until}"
        return f"sequence{_by(self.keys)}{span} {' '.join(map(str, self.items))}{until}"


@dataclass(frozen=True, slots=True)
class Sample(SyntaxNode):
    """``sample by keys [item] [item] …``; every item has a key, its own or that of the whole query."""

    keys: tuple[Field, ...]
    items: tuple[Item, ...]

    def __str__(self) -> str:
        return f"sample{_by(self.keys)} {' '.join(map(str, self.items))}"


@dataclass(frozen=True, slots=True)
class Pipe(SyntaxNode):
    """``head n`` or ``tail n``."""

    name: OneOf["head", "tail"]
    count: int

    def __str__(self) -> str:
        return f"{self.name} {self.count}"


@dataclass(frozen=True, slots=True)
class EqlTree(SyntaxNode):
    """A whole query, with the `text` to which spans refer."""

    query: EventQuery | Sequence | Sample
    pipes: tuple[Pipe, ...] = ()
    text: str = field(default="", compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return " | ".join(map(str, (self.query, *self.pipes)))


def _by(keys: tuple[Field, ...]) -> str:
    return f" by {', '.join(map(str, keys))}" if keys else ""
