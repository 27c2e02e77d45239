"""Estero: complex event recognition for Python, on Spark.

>>> import estero
>>> str(estero.query("select * where A as x ; B as y filter x[n > 3] within 10 events"))
'SELECT * WHERE A AS x ; B AS y FILTER x[n > 3] WITHIN 10 EVENTS'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from estero.errors import (
    DataError,
    EnvironmentProblem,
    EsteroError,
    EsteroWarning,
    LimitExceeded,
    QueryError,
)

if TYPE_CHECKING:
    from estero.answers.answer import Answer
    from estero.answers.complex_event import ComplexEvent
    from estero.answers.rule_answers import RuleAnswers
    from estero.events.scan import Scan, scan
    from estero.language.builder.conditions import attribute, closed, constant, param, var
    from estero.language.builder.functions import (
        aggregate,
        call,
        case,
        cast,
        count,
        decreasing,
        holds,
        increasing,
        outside,
        prev,
    )
    from estero.language.builder.queries import absent, event
    from estero.local.door import live
    from estero.local.stream import LiveStream
    from estero.local.telemetry import observe
    from estero.queries.automaton_query import automaton
    from estero.queries.equivalence import difference, equivalent, includes, missing
    from estero.queries.match_recognize_query import from_match_recognize
    from estero.queries.predicates import predicate
    from estero.queries.query import Query
    from estero.queries.rules.read_rules import rules
    from estero.queries.rules.rule_set import RuleSet
    from estero.queries.rules.rule_table import RuleTable, rule_table
    from estero.queries.selected import select
    from estero.queries.sigma import sigma
    from estero.queries.sql import SqlResult, sql
    from estero.queries.texts import check, conjunctive, eql, query, restore
    from estero.recognize.recognizers.continuous import ContinuousRecognizer
    from estero.studio.widget import explore

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "ComplexEvent",
    "ContinuousRecognizer",
    "DataError",
    "EnvironmentProblem",
    "EsteroError",
    "EsteroWarning",
    "LimitExceeded",
    "LiveStream",
    "Query",
    "QueryError",
    "RuleAnswers",
    "RuleSet",
    "RuleTable",
    "Scan",
    "SqlResult",
    "absent",
    "aggregate",
    "attribute",
    "automaton",
    "call",
    "case",
    "cast",
    "check",
    "closed",
    "conjunctive",
    "constant",
    "count",
    "decreasing",
    "difference",
    "eql",
    "equivalent",
    "event",
    "explore",
    "from_match_recognize",
    "holds",
    "includes",
    "increasing",
    "live",
    "missing",
    "observe",
    "outside",
    "param",
    "predicate",
    "prev",
    "query",
    "restore",
    "rule_table",
    "rules",
    "scan",
    "select",
    "sigma",
    "sql",
    "var",
]

_HOMES = {
    "Answer": "estero.answers.answer",
    "ComplexEvent": "estero.answers.complex_event",
    "ContinuousRecognizer": "estero.recognize.recognizers.continuous",
    "LiveStream": "estero.local.stream",
    "Query": "estero.queries.query",
    "RuleAnswers": "estero.answers.rule_answers",
    "RuleSet": "estero.queries.rules.rule_set",
    "RuleTable": "estero.queries.rules.rule_table",
    "Scan": "estero.events.scan",
    "SqlResult": "estero.queries.sql",
    "absent": "estero.language.builder.queries",
    "aggregate": "estero.language.builder.functions",
    "attribute": "estero.language.builder.conditions",
    "automaton": "estero.queries.automaton_query",
    "call": "estero.language.builder.functions",
    "case": "estero.language.builder.functions",
    "cast": "estero.language.builder.functions",
    "check": "estero.queries.texts",
    "closed": "estero.language.builder.conditions",
    "conjunctive": "estero.queries.texts",
    "constant": "estero.language.builder.conditions",
    "count": "estero.language.builder.functions",
    "decreasing": "estero.language.builder.functions",
    "difference": "estero.queries.equivalence",
    "eql": "estero.queries.texts",
    "equivalent": "estero.queries.equivalence",
    "event": "estero.language.builder.queries",
    "explore": "estero.studio.widget",
    "from_match_recognize": "estero.queries.match_recognize_query",
    "holds": "estero.language.builder.functions",
    "includes": "estero.queries.equivalence",
    "increasing": "estero.language.builder.functions",
    "live": "estero.local.door",
    "missing": "estero.queries.equivalence",
    "observe": "estero.local.telemetry",
    "outside": "estero.language.builder.functions",
    "param": "estero.language.builder.conditions",
    "prev": "estero.language.builder.functions",
    "predicate": "estero.queries.predicates",
    "query": "estero.queries.texts",
    "restore": "estero.queries.texts",
    "rule_table": "estero.queries.rules.rule_table",
    "rules": "estero.queries.rules.read_rules",
    "scan": "estero.events.scan",
    "select": "estero.queries.selected",
    "sigma": "estero.queries.sigma",
    "sql": "estero.queries.sql",
    "var": "estero.language.builder.conditions",
}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use: the parser, Arrow and DuckDB take their time."""
    if name == "testing":
        return import_module("estero.testing")
    if name not in _HOMES:
        raise AttributeError(f"module 'estero' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, imported or not, so that completion shows them."""
    return sorted({*globals(), *__all__})
