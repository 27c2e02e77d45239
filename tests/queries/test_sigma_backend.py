"""pySigma's backend for Estero writes queries that are read again and find the same."""

from __future__ import annotations

import pytest
from sigma.collection import SigmaCollection
from sigma.exceptions import SigmaError
from sigma.plugins import InstalledSigmaPlugins
from sigma.processing.pipeline import ProcessingItem, ProcessingPipeline
from sigma.processing.transformations import AddConditionTransformation, FieldMappingTransformation

import estero
from estero.queries.sigma_backend import EsteroBackend

RULES = """
title: Failed
name: failed
logsource: {category: test}
detection: {s: {kind|startswith: fail}, f: {user: null}, condition: s and not f}
---
title: Twice
correlation: {type: event_count, rules: [failed], group-by: [user], timespan: 10s, condition: {gte: 2}}
"""


def pipeline() -> ProcessingPipeline:
    return ProcessingPipeline(
        items=[
            ProcessingItem(FieldMappingTransformation({"user": "who.name"})),
            ProcessingItem(AddConditionTransformation({"kind": ["fail*", "other"]})),
        ]
    )


EVENTS = [
    {"t": t, "kind": kind, "who": {"name": user}}
    for t, kind, user in [(0, "FAILED", "a"), (1, "fail", None), (2, "fail", "a")]
]


def test_the_command_line_of_sigma_finds_the_backend() -> None:
    found = InstalledSigmaPlugins.autodiscover(include_validators=False)
    assert found.backends["estero"].name == EsteroBackend.name


def test_rules_become_queries() -> None:
    first, *others = EsteroBackend(pipeline()).convert(SigmaCollection.from_yaml(RULES.partition("---")[0]))
    assert not others
    assert [found.start for found in estero.query(first).run(EVENTS)] == [0, 2]
    (text,) = EsteroBackend(pipeline()).convert(SigmaCollection.from_yaml(RULES))
    assert [found.end for found in estero.query(text).run(EVENTS, time="t", time_unit="s")] == [2]


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ("gte", "lt"),
        ("user: null", "user|expand: '%x%'"),
        ("[failed], group-by: [user]", "[failed, Other], group-by: [u], aliases: {u: {failed: a, Other: b}}"),
    ],
)
def test_what_has_no_query_is_an_error_of_sigma(part: str, other: str) -> None:
    with pytest.raises(SigmaError):
        EsteroBackend().convert(SigmaCollection.from_yaml(RULES.replace(part, other)))
