"""Arguments of public functions, checked against the annotations before anything is done with them.

``limit("3")`` is a TypeError that names the function, the argument, what it takes and what it was given,
instead of a later error inside. Other mistakes in an argument (a negative limit, a text that is not a query)
are reported by the function itself.

Libraries do this, too, and were measured: beartype takes 0.13 s to be imported, typeguard 0.41 s and pydantic
0.49 s, where ``import estero`` takes 0.03 s; and all of them have to import the classes that are named in
annotations: Arrow, pandas, Polars, Spark. Here a class is recognized by its name among those of the value,
so nothing is imported, and the messages are Estero's own.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from numbers import Integral, Real
from types import FunctionType
from typing import Any, Final, Literal, TypeVar

from estero.errors import legible

Checked = TypeVar("Checked")

LONGEST_SHOWN = 40
"""The number of characters of a value that a message shows."""


def checked(what: Checked) -> Checked:
    """The function, or the class with its public methods, whose arguments are checked at each call.

    Raises TypeError, before the function runs, for an argument that its annotation does not allow. A single
    string may stand for a sequence of strings. The annotations ``object`` and ``Any`` allow everything, and
    so do names that only type checkers know, except for classes that messages have a word for.
    """
    if isinstance(what, type):
        for name, member in list(vars(what).items()):
            if isinstance(member, FunctionType) and (name == "__init__" or not name.startswith("_")):
                setattr(what, name, _function(member))
        return what
    function: Checked = _function(what)
    return function


def _function(function: Any) -> Any:
    if all(text in _ANYTHING for name, text in function.__annotations__.items() if name != "return"):
        return function
    checks: list[_Arguments] = []  # made at the first call

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not checks:
            checks.append(_Arguments.of(function))
        checks[0].check(arguments, named)
        return function(*arguments, **named)

    return call


@dataclass(frozen=True, slots=True)
class _Kind:
    """What an annotation allows: a test of values, its words, its constants, the kind of a list's parts.

    A mapping has a kind of `keys` in place of that. One that is `of_class` asks the class of a value alone.
    """

    allows: Callable[[Any], bool]
    words: tuple[str, ...] = ()
    constants: tuple[Any, ...] = ()
    part: _Kind | None = None
    keys: _Kind | None = None
    of_class: bool = False

    def refused(self, value: object) -> str:
        """The words for a value that is not allowed; for a list or a dict also its first part that is not."""
        text = shown(value)
        part = self.keys if isinstance(value, dict) else self.part
        if part is None or not isinstance(value, list | tuple | dict):
            return text
        for item in value:
            if not part.allows(item):
                return f"{text} with {'the key ' * isinstance(value, dict)}{shown(item)} in it"
        return text


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The kinds of a function's arguments: positional ones, further positional ones, and those by name."""

    name: str
    places: tuple[tuple[str, _Kind], ...]
    rest: tuple[str, _Kind] | None
    named: dict[str, _Kind]
    others: _Kind | None

    @classmethod
    def of(cls, function: Any) -> _Arguments:
        """The kinds given by the annotations of a function."""
        places, rest, named, others = [], None, {}, None
        for name, parameter in signature(function).parameters.items():
            text = parameter.annotation
            kind = _ANY if text is Parameter.empty else _kind(text, function.__globals__)
            if parameter.kind is Parameter.VAR_POSITIONAL:
                rest = name, kind
            elif parameter.kind is Parameter.VAR_KEYWORD:
                others = kind
            else:
                if parameter.kind is not Parameter.KEYWORD_ONLY:
                    places.append((name, kind))
                if parameter.kind is not Parameter.POSITIONAL_ONLY:
                    named[name] = kind
        owner, _, own = function.__qualname__.rpartition(".")
        name = owner.rpartition(".")[2] if own == "__init__" else own
        return cls(f"{name}()", tuple(places), rest, named, others)

    def check(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Raises TypeError for the first argument that is not of an allowed kind.

        Raises ValueError for a value of the right type that is not among the constants allowed.
        """
        for (name, kind), value in zip(self.places, arguments, strict=False):
            if not kind.allows(value):
                raise self._refused(name, kind, value)
        for value in arguments[len(self.places) :]:
            if self.rest is not None and not self.rest[1].allows(value):
                raise self._refused(*self.rest, value)
        for name, value in named.items():
            known = self.named.get(name, self.others)
            if known is not None and not known.allows(value):
                raise self._refused(name, known, value)

    def _refused(self, name: str, kind: _Kind, value: object) -> TypeError | ValueError:
        taken = " or ".join(dict.fromkeys(kind.words))
        error = ValueError if type(value) in map(type, kind.constants) else TypeError
        return error(f"{self.name} takes {taken} as {name}, not {kind.refused(value)}")


def shown(value: object) -> str:
    """A value for a message: constants unchanged, others by their class."""
    if value is None or isinstance(value, str | int | float | bytes):
        try:
            text = legible(repr(value))
        except ValueError:  # an integer with more digits than Python prints
            return "an integer of thousands of digits"
        return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
    return f"{_article(type(value).__name__)} {legible(type(value).__name__)}"


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"


# ── Annotations ──────────────────────────────────────────────────────────────────────────────────

_ANY: Final = _Kind(lambda _: True)
_CALLABLE: Final = _Kind(callable, ("a function",))
_ANYTHING: Final = {"object", "Any"}
_SAID: Final = {
    "PatternBuilder": 'a pattern such as event("A")',
    "AbsenceBuilder": 'absent("A").within("1 hour")',
    "Expression": 'an expression such as var("x").price',
    "Condition": 'a condition such as var("x").price > 5',
    "Variable": 'a variable such as var("x")',
    "Named": "count(…).named(…)",
    "Query": "a query",
    "Scan": "estero.scan(…)",
    "Table": "an Arrow table",
    "datetime": "a datetime",
    "PathLike": "a path",
    "BinaryIO": "a file open for bytes",
    "SparkSession": "a session of Spark",
    "StreamingQuery": "a running query of Spark, as write_stream gives it",
    "StructType": "a StructType",
    "CEA": "an automaton without registers",
    "Node": "a q-tree",
}
"""The names of classes in messages; those left out are for the package itself."""
_INTERNAL: Final = {
    *("Pattern", "QueryTree", "ConjunctiveTree", "Range", "Statement", "QueryBuilder", "Strategy", "Consume"),
}
_OPEN: Final = {
    *(
        "Operand",
        "Value",
        "Length",
        "timedelta",
        "Given",
        "Hashable",
        "AsyncIterable",
        "Run",
        "Tables",
    ),
}
"""Transitions, constants of all kinds, lengths of time: where they are read, it is said which there are; and
protocols, which a value has without being called so."""


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_answer(value: Any) -> bool:
    """Whether a value can be drawn as an answer; strings, lists and frames have a `count`, too."""
    countable = hasattr(value, "__iter__") and hasattr(value, "count")
    return countable and type(value) not in (str, bytes, list, tuple, range) and not hasattr(value, "columns")


_PLAIN: Final = {
    "str": _Kind(lambda value: isinstance(value, str), ("a string",), of_class=True),
    "int": _Kind(is_whole, ("an integer",)),
    "float": _Kind(_is_number, ("a number",)),
    "bool": _Kind(
        lambda value: isinstance(value, bool) or type(value).__name__ == "bool", ("True or False",)
    ),
    "bytes": _Kind(lambda value: isinstance(value, bytes), ("bytes",)),
    "range": _Kind(lambda value: isinstance(value, range), ("a range",)),
    "slice": _Kind(lambda value: isinstance(value, slice), ("a slice",)),
    "None": _Kind(lambda value: value is None, ("None",)),
    "PathLike": _Kind(lambda value: hasattr(value, "__fspath__"), ("a path",)),
    "BinaryIO": _Kind(lambda value: hasattr(value, "write"), ("a file open for bytes",)),
    "ShownAnswer": _Kind(_is_answer, ("an answer",)),
}


_PLURALS: Final = {"a string": "strings", "a path": "paths"}


def _kind(annotation: object, names: Mapping[str, Any]) -> _Kind:
    """The kind that an annotation allows, in a module with these names."""
    if isinstance(annotation, str):
        return _of_node(ast.parse(annotation.strip(), mode="eval").body, names)
    parts = getattr(annotation, "__args__", ())
    if type(annotation).__name__ in ("UnionType", "Union"):
        return _one_of([_kind(part, names) for part in parts])
    if annotation is type(None) or annotation is None:
        return _PLAIN["None"]
    origin = getattr(annotation, "__origin__", None)
    if origin is Literal:
        return _literal(parts)
    if origin is Callable:
        return _CALLABLE
    if origin is not None:
        return _generic(origin.__name__, [_kind(part, names) for part in parts])
    if type(annotation).__name__ == "ForwardRef":
        return _kind(annotation.__forward_arg__, names)  # type: ignore[attr-defined]
    if isinstance(annotation, type):
        return _named(annotation.__name__, {annotation.__name__: annotation})
    return _ANY


def _of_node(node: ast.expr, names: Mapping[str, Any]) -> _Kind:
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return _one_of([_of_node(left, names), _of_node(right, names)])
        case ast.Constant(None):
            return _PLAIN["None"]
        case ast.Constant(str() as text):
            return _kind(text, names)
        case ast.Subscript(ast.Name("Literal"), values):
            allowed = ast.literal_eval(values)
            return _literal(allowed if isinstance(allowed, tuple) else (allowed,))
        case ast.Subscript(ast.Name(name), ast.Tuple(parts)) if name != "Callable":
            return _generic(name, [_of_node(element, names) for element in parts])
        case ast.Subscript(ast.Name(name), part) if name != "Callable":
            return _generic(name, [_of_node(part, names)])
        case ast.Subscript(ast.Name("Callable")):
            return _CALLABLE
        case ast.Name(name):
            return _named(name, names)
        case ast.Attribute(ast.Name(module), name):
            return _named(name, getattr(names.get(module), "__dict__", {}))
        case _:
            return _ANY


def _literal(several: tuple[Any, ...]) -> _Kind:
    return _Kind(
        lambda value: any(type(value) is type(constant) and value == constant for constant in several),
        tuple(map(repr, several)),
        several,
    )


def _named(name: str, names: Mapping[str, Any]) -> _Kind:
    """The kind that a name allows: a class of Python, an alias that the module knows, or another class."""
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _ANYTHING or name in _OPEN:
        return _ANY
    known = names.get(name)
    if isinstance(known, type):
        words = (_SAID.get(name, f"{_article(name)} {name}"),) if name not in _INTERNAL else ()
        # protocols refuse isinstance
        return _Kind(lambda value: known in type(value).__mro__, words, of_class=True)
    if known is not None:
        return _kind(known, names)
    if name not in _SAID and name not in _INTERNAL:
        return _ANY
    words = () if name in _INTERNAL else (_SAID[name],)
    return _Kind(
        lambda value: any(ancestor.__name__ == name for ancestor in type(value).__mro__), words, of_class=True
    )


def _one_of(kinds: Collection[_Kind]) -> _Kind:
    words = tuple(word for kind in kinds for word in kind.words)
    if any(kind is _ANY for kind in kinds):
        return _ANY
    constants = tuple(constant for kind in kinds for constant in kind.constants)
    part = next((kind.part for kind in kinds if kind.part is not None), None)
    keys = next((kind.keys for kind in kinds if kind.keys is not None), None)
    if not all(kind.of_class for kind in kinds):
        return _Kind(lambda value: any(kind.allows(value) for kind in kinds), words, constants, part, keys)
    known: dict[type, bool] = {}  # thousands of queries are made of a few classes

    def allows(value: Any) -> bool:
        if type(value) not in known:
            known[type(value)] = any(kind.allows(value) for kind in kinds)
        return known[type(value)]

    return _Kind(allows, words, constants, part, of_class=True)


def _generic(name: str, parts: list[_Kind]) -> _Kind:
    """The kind of a collection of such values; lengths of tuples are not checked."""
    of = " or ".join(_PLURALS.get(word, word) for word in parts[-1].words)
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "tuple":
        return _Kind(lambda value: isinstance(value, tuple | list), ("a tuple",))
    if name in ("Mapping", "dict"):
        return _Kind(
            lambda value: isinstance(value, Mapping) and all(map(parts[0].allows, value)),
            ("a mapping",),
            keys=parts[0],
        )
    if name in ("Sequence", "SequenceOf", "list", "Iterable"):
        words = (f"a list of {of}" if of else "a list",)
        return _Kind(lambda value: _is_of(parts[0], value), words, part=parts[0])
    return _ANY


def _is_of(part: _Kind, value: Any) -> bool:
    """Whether a value is a collection of such parts; an iterator is not consumed to find out."""
    if isinstance(value, str):
        return part.allows(value)
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable) or hasattr(value, "columns"):
        return False
    return not isinstance(value, Collection) or all(map(part.allows, value))
