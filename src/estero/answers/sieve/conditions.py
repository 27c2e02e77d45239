"""A condition on the events of variables → its truth for each instance (defined in reference/filters.py).

A condition is turned once into a check, which can be applied to any batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa

from estero.answers.answer_schema import untaken
from estero.answers.measures.aggregates import aggregate
from estero.answers.measures.evaluator import FALSE, TRUE, UNKNOWN, Evaluator, Question, Truths, before
from estero.answers.measures.marked import Integers, Marked, fold
from estero.answers.sieve.agreement import agreement
from estero.answers.sieve.apartness import apartness
from estero.answers.sieve.instances import Instances
from estero.automata.residual import Agreement, Apartness, all_attributes
from estero.errors import DataError, LimitExceeded, QueryError
from estero.language.check.set_predicates import RegisteredPredicate
from estero.language.tree import expressions as e
from estero.language.tree.paths import is_path
from estero.language.tree.schema import Schema

Check = Callable[[Instances], Truths]
"""The truth of a condition for each instance."""

BLOCK: Final = 1 << 18
"""The number of tuples evaluated at once: it bounds the memory of a condition on several variables."""

_MOST = 2.0**62

_LONGEST: Final = 60
"""The number of characters that are shown of an argument of a failed call."""


def check_of(
    condition: e.Node | Agreement | Apartness,
    evaluator: Evaluator,
    predicates: Mapping[str, RegisteredPredicate],
    schema: Schema,
    type_column: str | None,
    *,
    placed: bool = True,
) -> Check:
    """The check of a condition; raises `QueryError` for a predicate that is not in `predicates`.

    `placed`: positions are those of the whole stream, so that messages may mention them.
    """
    columns = [name for name in all_attributes(schema) if not is_path(name)]

    def check(node: e.Node) -> Check:
        match node:
            case e.And(parts):
                return partial(_all_of, list(map(check, parts)), np.minimum)
            case e.Or(parts):
                return partial(_all_of, list(map(check, parts)), np.maximum)
            case e.Not(part):
                opposite = check(part)
                return lambda at: TRUE - opposite(at)
            case e.EventFilter(variable, predicate):
                return partial(_of_tuples, evaluator, evaluator.question(predicate, variable))
            case e.SetPredicate(name) if name in predicates:
                return partial(_called, node, predicates[name], columns, placed)
            case e.SetPredicate(name):
                raise QueryError(f"no predicate {name} over sets of events is registered", span=node.span)
            case _:
                return partial(_of_tuples, evaluator, evaluator.question(node))

    if isinstance(condition, Agreement):
        return agreement(condition, evaluator, schema, type_column)
    if isinstance(condition, Apartness):
        return apartness(condition)
    return check(condition)


def _all_of(parts: Sequence[Check], join: np.ufunc, at: Instances) -> Truths:
    result: Truths = join.reduce([part(at) for part in parts])
    return result


# ---------------------------------------------------------------------------------- tuples of events


def _of_tuples(evaluator: Evaluator, question: Question, at: Instances) -> Truths:
    """The truth of a comparison for all tuples of events of its variables.

    For a variable under `prev`, these are all events of an instance but the first, each with the one before.
    """
    result = np.full(len(at), TRUE)
    followed = {variable: at.of(variable).followed() for variable in question.previous}
    marked = [
        followed[variable].later if variable in followed else at.of(variable)
        for variable in question.variables
    ]
    aggregates = {
        column: aggregate(asked, at.of(asked.variable), at.events, evaluator)
        for column, asked in question.aggregates
    }
    for instance, places in tuples([events.sizes for events in marked], len(at)):
        at_rows = [events.offsets[instance] + place for events, place in zip(marked, places, strict=True)]
        rows = [events.rows[row] for events, row in zip(marked, at_rows, strict=True)]
        rows += [
            followed[variable].earlier[at_rows[question.variables.index(variable)]]
            for variable in question.previous
        ]
        if aggregates:
            columns = {name: values.take(instance) for name, values in aggregates.items()}
            truths = _ask(evaluator, question, at, rows, columns, len(instance))
        else:
            truths = _ask_once(evaluator, question, at, rows, len(instance))
        fold(truths, instance, result)
    return result


def _ask(
    evaluator: Evaluator,
    question: Question,
    at: Instances,
    rows: list[Integers],
    more: Mapping[str, pa.Array],
    count: int,
) -> Truths:
    """The truth of `count` tuples; `rows` are the events of each variable, `more` further columns.

    After the events of the variables come those before the events of `question.previous`.
    """
    rows_of = dict(zip((*question.variables, *map(before, question.previous)), rows, strict=True))
    columns = {
        column: at.events.values(attribute, rows_of[variable])
        for column, variable, attribute in question.attributes
        if attribute in evaluator.columns
    }
    return evaluator.answer(question, {**columns, **more}, count)


def _ask_once(
    evaluator: Evaluator, question: Question, at: Instances, rows: list[Integers], count: int
) -> Truths:
    """The truth of `count` tuples without aggregates; `rows` are the events of each variable.

    Each distinct tuple is evaluated once, if a table of all possible ones is not much larger than `count`.
    """
    events = at.events.count
    space = events ** len(rows)
    if not rows or space > 4 * count + 1024:
        return _ask(evaluator, question, at, rows, {}, count)
    code = reduce(lambda code, row: code * events + row, rows)  # ravel_multi_index takes nine times as long
    present = np.zeros(space, np.bool_)
    present[code] = True
    distinct = np.flatnonzero(present)
    known = np.empty(space, np.int8)
    unique = list(np.unravel_index(distinct, (events,) * len(rows)))
    known[distinct] = _ask(evaluator, question, at, unique, {}, len(distinct))
    return known[code]


def tuples(sizes: Sequence[Integers], instances: int) -> Iterator[tuple[Integers, list[Integers]]]:
    """All tuples of one element of each of `sizes`, in blocks of bounded size: (instance, element of each).

    ``sizes[v][i]`` is the number of elements in instance i for component v of the tuple. Instances ascend.
    Without `sizes` each instance has the one empty tuple.
    """
    if all(bool((size == 1).all()) for size in sizes):
        for low in range(0, instances, BLOCK):
            instance = np.arange(low, min(low + BLOCK, instances))
            yield instance, [np.zeros_like(instance) for _ in sizes]
        return
    counts = np.ones(instances, np.int64)
    roughly = np.ones(instances)
    for size in sizes:
        counts, roughly = counts * size, roughly * size
    if roughly.sum() > _MOST:
        raise LimitExceeded(
            f"a filter has about {roughly.sum():.1e} combinations of events to check: "
            "compare fewer variables, or make the window shorter"
        )
    stops = np.cumsum(counts)
    for low in range(0, int(stops[-1]), BLOCK):
        number = np.arange(low, min(low + BLOCK, int(stops[-1])))
        instance = np.searchsorted(stops, number, side="right")
        rest = number - (stops - counts)[instance]
        places: list[Integers] = []
        for size in reversed(sizes):
            rest, place = np.divmod(rest, size[instance])
            places.append(place)
        yield instance, places[::-1]


# -------------------------------------------------------------------------- predicates in Python


def _called(
    node: e.SetPredicate,
    predicate: RegisteredPredicate,
    attributes: Sequence[str],
    placed: bool,
    at: Instances,
) -> Truths:
    """The truth of a predicate that Python evaluates, once for each instance.

    An exception in the predicate is a `DataError`.
    """
    arguments = [_argument(term, at, attributes) for term in node.arguments]
    result = np.empty(len(at), np.int8)
    for instance in range(len(at)):
        given = [argument(instance) for argument in arguments]

        def failure(what: str, instance: int = instance, given: Sequence[object] = given) -> DataError:
            where = _marked(at, instance) if placed else _given(given)
            return DataError(f"the predicate {predicate.name} {what}; {where}")

        try:
            answered = predicate.function(*given)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise failure(f"raised {reason}") from error
        truth = answered.as_py() if isinstance(answered, pa.BooleanScalar) else answered
        if truth is not None and not isinstance(truth, bool | np.bool_):
            raise failure(f"returned {answered!r}, and not True, False or None")
        result[instance] = UNKNOWN if truth is None else TRUE if truth else FALSE
    return result


def _argument(node: object, at: Instances, attributes: Sequence[str]) -> Callable[[int], Any]:
    """A function from an instance to the argument with which a predicate is called."""
    match node:
        case e.VariableReference(variable):
            marked = at.of(variable)
            return partial(_part, _table(at, marked, attributes), marked.offsets.tolist())
        case e.Attribute(name, str() as variable):
            marked = at.of(variable)
            known = name in attributes or is_path(name)
            values = at.events.values(name, marked.rows) if known else pa.nulls(len(marked.rows))
            return partial(_part, values, marked.offsets.tolist())
        case e.Literal(value):
            return lambda _: value
        case _:
            raise TypeError(f"{node!r} is not an argument of a predicate")


def _table(at: Instances, marked: Marked, attributes: Iterable[str]) -> pa.Table:
    columns = {name: at.events.values(name, marked.rows) for name in attributes}
    return pa.table({**columns, untaken("position", set(columns)): at.events.positions(marked.rows)})


def _part(whole: pa.Table | pa.Array, offsets: Sequence[int], instance: int) -> Any:
    return whole.slice(offsets[instance], offsets[instance + 1] - offsets[instance])


def _marked(at: Instances, instance: int) -> str:
    """The events that the complex event around an instance shows."""
    positions = at.positions(instance)
    noun = "position" if len(positions) == 1 else "positions"
    return f"the complex event marks {noun} {', '.join(map(str, positions))}"


def _given(arguments: Sequence[object]) -> str:
    """The arguments of a call, for events whose positions are unknown."""
    texts = [
        repr(argument.to_pylist() if isinstance(argument, pa.Array) else argument) for argument in arguments
    ]
    short = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in texts]
    return f"it was called with {', '.join(short)}"
