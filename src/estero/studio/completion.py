"""Completions at a position of a query: words that the grammar accepts there, and existing names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from estero.language.syntax.clauses import clause_at_end, unclosed
from estero.language.syntax.parser import accepted_at_end
from estero.language.syntax.recover import read
from estero.language.syntax.vocabulary import vocabulary
from estero.language.tree.functions import AGGREGATES, SCALAR_FUNCTIONS, SET_PREDICATES
from estero.language.tree.schema import Schema
from estero.language.tree.selection import label_types
from estero.language.tree.words import KEYWORDS, is_keyword, quoted

_WORD: Final = re.compile(r"[^\W\d]\w*$|\$\w*$")
_NAMED: Final = re.compile(r"([^\W\d]\w*)\s*[+*]?\s+AS\s+([^\W\d]\w*)", re.IGNORECASE)
_POLICIES: Final = ("ANY", "NONE", "PARTITION")


@dataclass(frozen=True, slots=True)
class Option:
    """A completion: the text to write, its kind, and a word on it."""

    label: str
    kind: str
    detail: str = ""

    def shown(self) -> dict[str, Any]:
        """As JSON."""
        return {"label": self.label, "type": self.kind, "detail": self.detail}


def completions(
    text: str, place: int, schema: Schema, types: tuple[str, ...], kinds: Mapping[str, str]
) -> tuple[int, list[Option]]:
    """The start of the word at a position, and the texts that can replace it, the likeliest first.

    `types` are the existing types of events, `kinds` the kind of each attribute in words.

    >>> schema = Schema({"Wind": {}}, shared=None)
    >>> start, options = completions("SELECT * WHERE W", 16, schema, ("Wind",), {})
    >>> start, options[0].label
    (15, 'Wind')
    """
    word = _WORD.search(text[:place])
    start = place if word is None else word.start()
    before = text[:start]
    options = dict.fromkeys(_Place(text, before, schema, types, kinds).options())
    return start, list(options)


@dataclass(frozen=True, slots=True)
class _Place:
    text: str
    before: str
    schema: Schema
    types: tuple[str, ...]
    kinds: Mapping[str, str]

    def options(self) -> Iterator[Option]:
        behind = self.before.rstrip()
        if (owner := re.search(r"([^\W\d]\w*)\.$", behind)) is not None:
            yield from self._attributes(owner[1])
            return
        clause = clause_at_end(behind)
        accepted = accepted_at_end(self.before)
        if re.search(r"\d$", behind) and clause in ("WITHIN", "LIMIT", "WHERE", "FILTER"):
            yield from (Option(unit, "unit") for unit in vocabulary()["unit"] if unit.endswith("S"))
        elif clause == "CONSUME" and behind.upper().endswith("BY"):
            yield from (Option(word, "keyword") for word in _POLICIES)
        elif not accepted or "NAME" in accepted:
            yield from self._names(clause, behind)
        yield from self._keywords(clause, accepted)

    def _names(self, clause: str, behind: str) -> Iterator[Option]:
        opened = unclosed(self.before)
        inside = None if opened is None else self.before[opened]
        owner = re.search(r"([^\W\d]\w*)\s*$", self.before[:opened]) if inside == "[" else None
        if clause == "PARTITION":
            yield from self._attributes(None)
        elif inside == "[" and clause in ("FILTER", "SELECT") and owner is not None:
            yield from self._attributes(owner[1])
            if clause == "FILTER":
                yield from self._functions()
        elif clause in ("FILTER", "KEEP"):
            yield from (Option(label, "label", " or ".join(kind)) for label, kind in self._labels().items())
            if clause == "FILTER":
                yield from self._functions()
        elif clause == "SELECT":
            yield from (Option(label, "label", " or ".join(kind)) for label, kind in self._labels().items())
        elif clause == "WHERE" and not re.search(r"(?i)\bAS$", behind):
            yield from (Option(quoted(name), "type", "type of events") for name in self.types)

    def _keywords(self, clause: str, accepted: frozenset[str]) -> Iterator[Option]:
        for word in KEYWORDS:
            if not accepted or word in accepted or f"_{word}" in accepted:
                yield Option(
                    {"PARTITION": "PARTITION BY", "CONSUME": "CONSUME BY"}.get(word, word), "keyword"
                )
        if clause == "SELECT" and self.before.rstrip().upper().endswith("SELECT"):
            yield from (Option(word, "keyword", "strategy") for word in vocabulary()["modifier"])

    def _functions(self) -> Iterator[Option]:
        for name, function in SCALAR_FUNCTIONS.items():
            yield Option(name, "function", function.meaning)
        for aggregate, said in AGGREGATES.items():
            yield Option(aggregate, "function", said.meaning)
        yield from (Option(name, "function", "of each event and the one before") for name in SET_PREDICATES)

    def _attributes(self, label: str | None) -> Iterator[Option]:
        types = self._labels().get(label or "", ())
        known = [self.schema.attributes_of(name) for name in types] or [
            *self.schema.types.values(),
            self.schema.shared,
        ]
        names = dict.fromkeys(name for attributes in known for name in attributes or ())
        yield from (Option(quoted(name), "attribute", self.kinds.get(name, "")) for name in names)

    def _labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of the text with the types they mark, even if it cannot be parsed yet."""
        tree = read(self.text).tree
        if tree is not None and label_types(tree.pattern).keys() != {"_"}:
            return {
                label: tuple(dict.fromkeys(atom.name for atom in atoms))
                for label, atoms in label_types(tree.pattern).items()
            }
        labels = {name: (name,) for name in self.types if re.search(rf"\b{re.escape(name)}\b", self.text)}
        return labels | {name: (kind,) for kind, name in _NAMED.findall(self.text) if not is_keyword(name)}
