"""NULL keys match nothing in this process, by whichever plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

import estero
from classify.null_keys import EVENTS, QUERIES, keys_of, pairs_of
from estero.answers.answer import Answer
from estero.events.sources import open_source
from estero.language.tree.schema import EventLayout
from estero.plan.rules import PLANS, NotServedError, plan_of
from estero.queries.conjunctive_statement import ConjunctiveStatement
from estero.recognize.in_process import InProcessRun
from estero.reference.conjunctive import evaluate_conjunctive
from estero.reference.queries import Event, evaluate_query

STREAM = [Event(row.pop("type"), row, at) for at, row in enumerate(EVENTS.to_pylist())]


def expected_of(query: estero.Query) -> list[tuple[int, ...]]:
    """The marked positions of each complex event, by the reference."""
    if isinstance(query.statement, ConjunctiveStatement):
        found = evaluate_conjunctive(query.statement.conjunctive, STREAM)
    else:
        found = evaluate_query(query.tree, STREAM)
    return sorted(tuple(sorted(each.support)) for at_end in found.values() for each in at_end)


@pytest.mark.parametrize("name", QUERIES)
def test_null_keys_match_nothing_by_any_plan(name: str) -> None:
    text, attribute, _ = QUERIES[name]
    query = estero.query(text)
    expected = expected_of(query)
    assert expected
    answers = [query.run(EVENTS, type="type", time="at")]
    if not isinstance(query.statement, ConjunctiveStatement):
        source = open_source(EVENTS, EventLayout.of(type="type", time="at", only_type="T"))
        for only in PLANS:
            try:
                plan = plan_of(replace(query.tree, select=None), source.layout, only=only)
            except NotServedError:
                continue
            answers.append(Answer(InProcessRun(plan, source)))
    for answer in answers:
        rows = answer.to_arrow().to_pylist()
        assert sorted(pairs_of(rows)) == expected
        assert all(None not in keys_of(row, attribute) for row in rows)
        assert answer.count() == len(expected)
