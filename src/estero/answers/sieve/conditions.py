"""A condition on the events of variables → its truth for each instance (reference/filters.py says which).

A condition is worked out once into parts that can be asked of any batch: `check_of` does that, and
`Check.truths` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from estero.answers.sieve.aggregates import aggregate
from estero.answers.sieve.agreement import AgreementCheck
from estero.answers.sieve.asking import Asker, Question
from estero.answers.sieve.calling import PredicateCheck
from estero.answers.sieve.marked import Instances, Integers
from estero.answers.sieve.truth import TRUE, Truths, fold, tuples
from estero.automata.residual import Agreement
from estero.errors import QueryError
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree.expressions import (
    And,
    Attribute,
    Comparison,
    ComparisonOperator,
    EventFilter,
    Node,
    Not,
    Or,
    SetPredicate,
)
from estero.language.tree.schema import Schema

_MONOTONE: Mapping[str, ComparisonOperator] = {"increasing": "<", "decreasing": ">"}


class Check(Protocol):
    """Something that is true, false or unknown of an instance."""

    def truths(self, at: Instances) -> Truths:
        """int8 [instances]."""


def check_of(
    condition: Node | Agreement,
    asker: Asker,
    predicates: Mapping[str, RegisteredPredicate],
    schema: Schema,
    type_column: str | None,
) -> Check:
    """The check of a condition; raises `QueryError` for a predicate that is not in `predicates`."""

    def check(node: Node) -> Check:
        match node:
            case And(parts):
                return _All(tuple(map(check, parts)))
            case Or(parts):
                return _All(tuple(map(check, parts)), negated=True)
            case Not(part):
                return _Opposite(check(part))
            case EventFilter(variable, predicate):
                return _OfTuples(asker, asker.question(predicate, variable))
            case SetPredicate(name, (Attribute(attribute, str() as variable),)) if name in _MONOTONE:
                return _monotone(asker, name, variable, attribute)
            case SetPredicate(name) if name in predicates:
                return PredicateCheck(node, predicates[name], schema)
            case SetPredicate(name):
                raise QueryError(f"there is no predicate {name} over sets of events", span=node.span)
            case _:
                return _OfTuples(asker, asker.question(node))

    if isinstance(condition, Agreement):
        return AgreementCheck(condition, asker, schema, type_column)
    return check(condition)


@dataclass(frozen=True, slots=True)
class _All:
    """AND of its parts; `negated`: the opposite of the AND of their opposites, which is OR."""

    parts: tuple[Check, ...]
    negated: bool = False

    def truths(self, at: Instances) -> Truths:
        join = np.maximum if self.negated else np.minimum
        result: Truths = join.reduce([part.truths(at) for part in self.parts])
        return result


@dataclass(frozen=True, slots=True)
class _Opposite:
    part: Check

    def truths(self, at: Instances) -> Truths:
        return TRUE - self.part.truths(at)


@dataclass(frozen=True, slots=True)
class _OfTuples:
    """A comparison, for all tuples of events of its variables."""

    asker: Asker
    question: Question

    def truths(self, at: Instances) -> Truths:
        result = np.full(len(at), TRUE)
        marked = [at.of(variable) for variable in self.question.variables]
        aggregates = {
            column: aggregate(each, at.of(each.variable), at.events, self.asker)
            for column, each in self.question.aggregates
        }
        for instance, places in tuples([each.sizes for each in marked], len(at)):
            rows = [
                each.rows[each.offsets[instance] + place] for each, place in zip(marked, places, strict=True)
            ]
            if aggregates:
                columns = {name: values.take(instance) for name, values in aggregates.items()}
                truths = self._ask(at, rows, columns, len(instance))
            else:
                truths = self.ask_once(at, rows, len(instance))
            fold(truths, instance, result)
        return result

    def _ask(self, at: Instances, rows: list[Integers], more: Mapping[str, pa.Array], count: int) -> Truths:
        places = {variable: place for place, variable in enumerate(self.question.variables)}
        columns = {
            column: at.events.values(attribute, rows[places[variable]])
            for column, variable, attribute in self.question.attributes
            if attribute in self.asker.columns
        }
        return self.asker.answer(self.question, {**columns, **more}, count)

    def ask_once(self, at: Instances, rows: list[Integers], count: int) -> Truths:
        """The truth of `count` tuples without aggregates; `rows` are the events of each of its variables.

        Each distinct tuple is asked once, where a table of all that could be is not much larger than `count`.
        """
        space = at.events.count ** len(rows)
        if not rows or space > 4 * count + 1024:
            return self._ask(at, rows, {}, count)
        code = rows[0]
        for others in rows[1:]:
            code = code * at.events.count + others
        present = np.zeros(space, np.bool_)
        present[code] = True
        distinct = np.flatnonzero(present)
        known = np.empty(space, np.int8)
        unique: list[Integers] = []
        rest = distinct
        for _ in rows:
            rest, row = np.divmod(rest, at.events.count)
            unique.append(row)
        known[distinct] = self._ask(at, unique[::-1], {}, len(distinct))
        return known[code]


@dataclass(frozen=True, slots=True)
class _Monotone:
    """A comparison of each event of a variable with the next one."""

    pairs: _OfTuples
    variable: str

    def truths(self, at: Instances) -> Truths:
        marked = at.of(self.variable)
        owners = marked.owners
        earlier = np.flatnonzero(owners[1:] == owners[:-1])
        result = np.full(len(at), TRUE)
        truths = self.pairs.ask_once(at, [marked.rows[earlier], marked.rows[earlier + 1]], len(earlier))
        fold(truths, owners[earlier], result)
        return result


def _monotone(asker: Asker, name: str, variable: str, attribute: str) -> _Monotone:
    earlier, later = Attribute(attribute, "earlier"), Attribute(attribute, "later")
    question = asker.question(Comparison(_MONOTONE[name], earlier, later))
    return _Monotone(_OfTuples(asker, question), variable)
