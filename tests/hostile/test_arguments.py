"""Wrong things given to every public function: each is taken, or refused with a message of Estero's own."""

from __future__ import annotations

import dis
import inspect
import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import estero
import estero.spark
import estero.testing
from estero import EsteroError, attribute, event, plots, var
from estero.answers.run import WithEvents
from estero.testing import events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = "SELECT * WHERE A AS a ; B AS b WITHIN 9 EVENTS"
STREAM = events("A(k=1, v=1.5) B(k=1, v=2.5) A(k=2, v=0.5)")
HOME = Path(estero.__file__).parent

WRONG: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "0": 0,
    "2**63": 2**63,
    "10**40": 10**40,
    "1.5": 1.5,
    "nan": float("nan"),
    "empty": "",
    "newline": "\n",
    "escape": "\x1b[31m",
    "surrogate": "\ud800",
    "text": "longst",
    "list text": "['A']",
    "bytes": b"A",
    "no list": [],
    "list of None": [None],
    "pairs": [("A", 1)],
    "mapping": {"A": 1},
    "set": {"A"},
    "object": object(),
    "class": int,
    "function": lambda: None,
    "table": STREAM,
    "no table": pa.table({}),
    "scalar": pa.scalar(1),
    "frame": STREAM.to_pandas(),
    "array": np.arange(3),
    "NaT": pd.NaT,
    "time": datetime(2020, 1, 1, tzinfo=UTC),
    "duration": timedelta(days=-1),
    "path": Path("no such file"),
    "attribute": attribute("k"),
    "variable": var("a"),
    "condition": var("a").k > 1,
    "pattern": event("A"),
    "range": range(3),
    "slice": slice(None, None, -1),
}


def _query() -> estero.Query:
    return estero.query(TEXT)


def _answer() -> estero.Answer:
    return _query().run(STREAM, type="type")


def _values_of(answer: estero.Answer) -> Callable[[str, int, int], pa.Table]:
    run = answer._run
    assert isinstance(run, WithEvents)
    return run.values


def _recognizer() -> Any:
    return _query().recognizer(STREAM.schema, type="type")


def _live() -> estero.LiveStream:
    return estero.live(estero.query(TEXT), "json:never", schema=STREAM.schema, type="type")


def _rules() -> estero.RuleSet:
    return estero.rules({"rule": TEXT})


def _rules_recognizer() -> Any:
    return _rules().recognizer(STREAM.schema, type="type")


def _built() -> Any:
    return estero.select(event("A").then(event("B"))).within(events=9)


def _sequence() -> Any:
    return event("A").named("a").then(event("B").named("b"))


STEPS = [("s", "A", {"a"}, "t"), ("t", "B", {"b"}, "f")]
LAYOUT = {"type": "type", "time": None, "order": (), "time_unit": None, "types": ()}
SIGMA = "{title: a, logsource: {category: b}, detection: {s: {c: d}, condition: s}}"
FILE = Path(tempfile.gettempdir()) / "never.csv"

CALLS: dict[str, tuple[Callable[[], Any], tuple[Any, ...], dict[str, Any]]] = {
    "sql": (lambda: estero.sql, ("SELECT 1",), {"connection": None}),
    "from_match_recognize": (
        lambda: estero.from_match_recognize,
        ("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i MEASURES i AS i PATTERN (a) DEFINE a AS i > 1)",),
        {},
    ),
    "absent": (lambda: estero.absent, ("A",), {}),
    "absent.within": (lambda: estero.absent("A").within, ("1 hour",), {"ticks": None, "attribute": None}),
    "absence.then": (lambda: estero.absent("A").within("1 hour").then, (event("B"), event("A")), {}),
    "aggregate": (lambda: estero.aggregate, ("sum", var("a").k), {"distinct": False}),
    "attribute": (lambda: estero.attribute, ("k",), {}),
    "automaton": (
        lambda: estero.automaton,
        (STEPS,),
        {
            "initial": "s",
            "final": "f",
            "anchored": False,
            "types": ["A", "B"],
            "select": "*",
            "partition_by": (),
            "within": None,
            "consume_by": None,
            "limit": None,
        },
    ),
    "automaton event": (lambda: _transition(1), ("A",), {}),
    "automaton labels": (lambda: _transition(2), ("a",), {}),
    "automaton state": (lambda: _transition(3), ("t",), {}),
    "call": (lambda: estero.call, ("length", var("a").k), {}),
    "case": (lambda: estero.case, ((var("a").k > 1, 2),), {"otherwise": 3}),
    "cast": (lambda: estero.cast, (var("a").k, "INTEGER"), {}),
    "check": (lambda: estero.check, (TEXT, STREAM), LAYOUT),
    "closed": (lambda: estero.closed, (1, 2), {}),
    "conjunctive": (lambda: estero.conjunctive, ("Q(x) <- A(x), B(x)",), {}),
    "constant": (lambda: estero.constant, (1,), {}),
    "count": (lambda: estero.count, (var("a"),), {"distinct": False}),
    "decreasing": (lambda: estero.decreasing, (var("a").k,), {}),
    "difference": (lambda: estero.difference, (TEXT, TEXT), {}),
    "eql": (lambda: estero.eql, ("any where k > 1",), {"max_samples_per_key": 1}),
    "equivalent": (lambda: estero.equivalent, (TEXT, TEXT), {}),
    "event": (lambda: estero.event, ("A",), {"stream": None}),
    "holds": (lambda: estero.holds, ("increasing", var("a").k), {}),
    "includes": (lambda: estero.includes, (TEXT, TEXT), {}),
    "increasing": (lambda: estero.increasing, (var("a").k,), {}),
    "live": (
        lambda: estero.live,
        (estero.query(TEXT), "json:never"),
        {
            "sink": "console",
            "checkpoint": None,
            "schema": STREAM.schema,
            "type": "type",
            "time": None,
            "order": (),
            "time_unit": None,
            "lateness": None,
            "dead_letters": None,
            "backfill": None,
            "version": False,
            "checkpoint_every": 10.0,
            "batch": 100,
            "idle_after": None,
            "keep": None,
            "memory_limit": None,
            "memory_policy": "error",
            "params": None,
        },
    ),
    "live.step": (lambda: _live().step, (0.0,), {}),
    "missing": (lambda: estero.missing, (TEXT, TEXT), {}),
    "observe": (lambda: estero.observe, (_rules_recognizer(),), {"attributes": None}),
    "outside": (lambda: estero.outside, (var("a").k > 1,), {}),
    "param": (lambda: estero.param, ("p",), {}),
    "predicate": (lambda: estero.predicate, (), {"name": "near"}),
    "prev": (lambda: estero.prev, (var("a").k,), {}),
    "query": (lambda: estero.query, (TEXT,), {}),
    "Query": (lambda: estero.Query, (TEXT,), {}),
    "restore": (lambda: estero.restore, (TEXT, b"none"), {"key": None, "partials": False, "metadata": ()}),
    "rules": (lambda: estero.rules, ({"a": TEXT},), {"sigma": None}),
    "rules.file_of": (lambda: _rules().file_of, ("rule",), {}),
    "rules.run": (
        lambda: _rules().run,
        (STREAM,),
        {**LAYOUT, "csv_options": None, "threads": 1, "metadata": ()},
    ),
    "rules.columns": (lambda: _rules().columns, ((),), {}),
    "rules.recognizer": (
        lambda: _rules().recognizer,
        (STREAM.schema,),
        {
            **LAYOUT,
            "lateness": None,
            "memory_limit": None,
            "memory_policy": "error",
            "metadata": (),
            "keep": None,
        },
    ),
    "rule_table": (lambda: estero.rule_table, ("never.parquet",), {}),
    "rules.check": (lambda: _rules().check, (STREAM,), LAYOUT),
    "rules.explain": (lambda: _rules().explain, (STREAM,), LAYOUT),
    "rules.bind": (
        lambda: estero.rules({"r": "SELECT * WHERE A AS a FILTER a[k > $p]"}).bind,
        ({"p": 1},),
        {},
    ),
    "rules.add": (lambda: _rules().add, ("other", TEXT), {}),
    "rules.remove": (lambda: _rules().remove, ("rule",), {}),
    "rules.replace": (lambda: _rules().replace, ("rule", TEXT), {}),
    "rules[…]": (lambda: _rules().__getitem__, ("rule",), {}),
    "answers[…]": (lambda: _rules().run(STREAM, type="type").__getitem__, ("rule",), {}),
    "answers.write": (lambda: _rules().run(STREAM, type="type").write, (FILE,), {"format": "csv"}),
    "recognizer.add": (lambda: _rules_recognizer().add, ("other", TEXT), {"replay": False}),
    "recognizer.remove": (lambda: _rules_recognizer().remove, ("rule",), {}),
    "recognizer.replace": (lambda: _rules_recognizer().replace, ("rule", TEXT), {"replay": False}),
    "recognizer.push": (lambda: _rules_recognizer().push, (STREAM,), {}),
    "recognizer.limit_memory": (lambda: _rules_recognizer().limit_memory, ("1 GB",), {"policy": "shed"}),
    "recognizer.shed": (lambda: _rules_recognizer().shed, ("1 GB",), {}),
    "recognizer.on_match": (lambda: _rules_recognizer().on_match, (print,), {}),
    "restore rules": (lambda: estero.restore, (estero.rules({"ab": TEXT}), b"none"), {"key": None}),
    "sigma": (
        lambda: estero.sigma,
        (SIGMA,),
        {"fields": None, "pipeline": None, "placeholders": None, "logsource": False},
    ),
    "scan": (lambda: estero.scan, (STREAM,), LAYOUT),
    "select": (lambda: estero.select, (event("A"),), {}),
    "var": (lambda: estero.var, ("a",), {}),
    "var[…]": (lambda: var("a").__getitem__, ("k",), {}),
    "expression[…]": (lambda: var("a").k.__getitem__, ("k",), {}),
    "events": (lambda: estero.testing.events, ("A",), {"type": "type", "time": "time"}),
    "check_rules": (
        lambda: estero.testing.check_rules,
        ("nowhere",),
        {"engines": ("process",)},
    ),
    "assert_matches": (
        lambda: estero.testing.assert_matches,
        (TEXT, STREAM, 1),
        {"engines": ["duckdb"], "type": "type", "time": "time", "time_unit": None},
    ),
    **{
        f"expression.{name}": (lambda name=name: getattr(var("a").k, name), arguments, {})  # type: ignore[misc]
        for name, arguments in {
            "is_in": (1, 2),
            "between": (1, 2),
            "like": ("x%",),
            "matches": ("x",),
            "named": ("n",),
            "__add__": (1,),
            "__mod__": (2,),
            "__eq__": (1,),
            "__lt__": (1,),
            "__and__": (var("a").k > 1,),
        }.items()
    },
    **{
        f"pattern.{name}": (lambda name=name: getattr(_sequence(), name), arguments, named)  # type: ignore[misc]
        for name, (arguments, named) in {
            "named": (("x",), {}),
            "then": (
                (event("C"),),
                {"without": (), "within": "1 hour", "after": None, "events": 3, "apart": ()},
            ),
            "followed_directly_by": ((event("C"),), {"without": (), "within": None, "apart": ()}),
            "or_": ((event("C"),), {}),
            "and_": ((event("C"),), {}),
            "all_with": ((event("C"),), {}),
            "unless": ((event("C"),), {}),
            "where": ((var("a").k > 1,), {}),
            "repeated": ((1, 2), {"directly": False, "without": (), "within": None, "events": 3}),
            "renamed": (("a", "x"), {}),
            "keep": (("a",), {}),
            "partitioned_by": (("k",), {}),
        }.items()
    },
    **{
        f"built.{name}": (lambda name=name: getattr(_built(), name), arguments, named)  # type: ignore[misc]
        for name, (arguments, named) in {
            "show": (("A",), {"n": estero.count(var("A"))}),
            "strategy": (("next",), {}),
            "longest": ((), {"disjoint": True}),
            "from_streams": (("s",), {}),
            "partition_by": (("k",), {}),
            "within": (("1 hour",), {"events": None, "ticks": None, "attribute": None, "hours": 1}),
            "consume_by": (("any",), {}),
            "limit": ((1,), {"per": "1 hour", "ticks": None, "attribute": None}),
            "bind": (({},), {"p": 1}),
            "run": ((STREAM,), LAYOUT),
        }.items()
    },
    "bind": (
        lambda: estero.query("SELECT * WHERE A AS a FILTER a[k > $p]").bind,
        ({"p": 1},),
        {},
    ),
    "run": (
        lambda: _query().run,
        (STREAM,),
        {**LAYOUT, "csv_options": None},
    ),
    "recognizer": (
        lambda: _query().recognizer,
        (STREAM.schema,),
        {**LAYOUT, "lateness": None, "partials": False},
    ),
    "explore": (lambda: estero.explore, (STREAM,), {**LAYOUT, "query": TEXT, "csv_options": None}),
    "query.explore": (lambda: _query().explore, (STREAM,), {**LAYOUT, "csv_options": None}),
    "query.check": (lambda: _query().check, (STREAM,), LAYOUT),
    "explain": (lambda: _query().explain, (STREAM,), LAYOUT),
    "query.automaton": (lambda: _query().automaton, (STREAM,), LAYOUT),
    "push": (lambda: _recognizer().push, (STREAM,), {}),
    "on_match": (lambda: _recognizer().on_match, (print,), {}),
    "snapshot": (lambda: _recognizer().snapshot, (), {"key": None}),
    "rules.snapshot": (lambda: _rules_recognizer().snapshot, (), {"key": None}),
    "limit": (lambda: _answer().limit, (1,), {}),
    "sample": (lambda: _answer().sample, (1,), {"seed": 1}),
    "participation": (lambda: _answer().participation, (), {"by_partition": True}),
    "answer.aggregate": (lambda: _answer().aggregate, (), {"by_partition": True, "n": "count(*)"}),
    "top": (lambda: _answer().top, (1, "count(A)"), {"ascending": True, "by_partition": True}),
    "ranked": (lambda: _answer().ranked, ("count(A)",), {"ascending": True}),
    "share": (lambda: _answer().share, (0, 2), {}),
    "funnel": (lambda: _answer().funnel, (), {"by_partition": False}),
    "partials": (lambda: _answer().partials, (), {"chosen": False}),
    "why_not": (lambda: _answer().why_not, (1,), {}),
    "answer[…]": (lambda: _answer().__getitem__, (0,), {}),
    "write": (lambda: _answer().write, (FILE,), {"format": "csv", "positions": False}),
    "plot": (lambda: _answer().plot, (), {"y": "v", "limit": 3}),
    "rows.limit": (lambda: _answer().rows().limit, (1,), {}),
    "rows.write": (lambda: _answer().rows().write, (FILE,), {"format": "csv"}),
    "plot_answer": (lambda: plots.plot_answer, (_answer(),), {"limit": 3, "axis": None, "title": None}),
    "plot_values": (
        lambda: lambda answer, y, **named: plots.plot_values(answer, y, _values_of(_answer()), **named),
        (_answer(), "v"),
        {"clock": None, "limit": 3, "title": None},
    ),
    "plot_funnel": (lambda: plots.plot_funnel, (_answer().funnel().to_arrow(),), {}),
    "Picture": (lambda: plots.Picture, (_answer().plot().figure,), {}),
    "save": (lambda: _answer().plot().save, (FILE.with_suffix(".svg"),), {"format": None}),
    "sink_address": (lambda: estero.spark.sink_address, ("json:never",), {}),
    "source_address": (lambda: estero.spark.source_address, ("json:never",), {}),
    "trigger_of": (lambda: estero.spark.trigger_of, ("10s",), {}),
    "follow": (lambda: estero.spark.follow, (), {"query": None, "seconds": 1}),
}
"""Public functions, with arguments that are right."""

ON_SPARK: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...], dict[str, Any]]] = {
    "recognize": (
        lambda frame: partial(estero.spark.recognize, frame),
        (TEXT,),
        {
            **{name: value for name, value in LAYOUT.items() if name != "types"},
            "positions": False,
            "rows": None,
            "partitions": 2,
            "split_keys": True,
            "share": None,
            "lateness": None,
            "late_events": False,
            "until": None,
            "distinct": None,
            "partials": False,
            "state": None,
            "keep": None,
            "answer_ids": False,
        },
    ),
    "recognize rules": (
        lambda frame: partial(estero.spark.recognize, frame),
        (estero.rules({"ab": TEXT}),),
        {"type": "type", "positions": False, "rows": None, "partitions": 2, "share": None, "until": None},
    ),
    "recognize a frame": (lambda _: lambda frame: estero.spark.recognize(frame, TEXT), (), {"frame": None}),
    "check": (lambda frame: partial(estero.spark.check, frame), (), {"query": None}),
    "count": (lambda frame: partial(estero.spark.count, frame), (), {"query": None}),
    "explain": (lambda frame: partial(estero.spark.explain, frame), (TEXT,), {"positions": True}),
    "why_not": (
        lambda frame: partial(estero.spark.why_not, frame),
        (),
        {"query": None, "sample": 0, "seconds": "9"},
    ),
    "explain_sql": (
        lambda frame: lambda text: estero.spark.explain_sql(frame.sparkSession, text, t=frame),
        ("SELECT * FROM t MATCH_RECOGNIZE (ORDER BY k MEASURES k AS l PATTERN (a) DEFINE a AS k > 1)",),
        {},
    ),
    "collect": (lambda _: estero.spark.collect, (), {"matches": None, "events": None, "csv_options": None}),
    "read_events": (lambda _: estero.spark.read_events, (), {"path": None, "csv_options": None}),
    "read_stream": (lambda _: estero.spark.read_stream, (), {"source": None, "schema": 1}),
    "write_stream": (
        lambda frame: partial(estero.spark.write_stream, frame),
        ("json:never",),
        {"checkpoint": "never", "trigger": None},
    ),
    "register": (lambda _: estero.spark.register, (), {"spark": None, "name": "recognize"}),
    "local_session": (
        lambda _: estero.spark.local_session,
        ("local[2]",),
        {"app_name": "a", "shuffle_partitions": 2, "java_options": "", "config": None, "quiet": True},
    ),
    "stream_session": (
        lambda _: estero.spark.stream_session,
        ("json:never",),
        {"sink": "console", "master": "local[2]", "packages": (), "jars": (), "config": None},
    ),
}
"""Public functions of Spark, given a DataFrame, with arguments of which all that are needed are right."""


def _transition(place: int) -> Callable[[Any], Any]:
    def make(given: Any) -> Any:
        first = list(STEPS[0])
        first[place] = given
        return estero.automaton([tuple(first), STEPS[1]], initial="s", final="f")

    return make


def _cases(arguments: tuple[Any, ...], named: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The right arguments with one of them wrong."""
    for name, wrong in WRONG.items():
        for place in range(len(arguments)):
            yield f"{place}={name}", (*arguments[:place], wrong, *arguments[place + 1 :]), named
        for argument in named:
            yield f"{argument}={name}", arguments, {**named, argument: wrong}


def _used(found: object) -> None:
    """What is done with what a function gives, so that what is lazy is not left undone."""
    str(found)
    if isinstance(found, estero.Answer):
        found.count()
        found.limit(3).to_arrow()
    elif isinstance(found, estero.Query):
        found.notes()


def _is_clear(error: BaseException) -> bool:
    """Whether an error is Estero's own: of its kinds, or raised by a statement of its own."""
    if isinstance(error, EsteroError | OSError):
        return True
    if not isinstance(error, TypeError | ValueError | LookupError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not Path(trace.tb_frame.f_code.co_filename).is_relative_to(HOME):
        return False
    raising = {step.offset for step in dis.get_instructions(trace.tb_frame.f_code) if "RAISE" in step.opname}
    return trace.tb_lasti in raising


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_refused_clearly(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _raw(*CALLS[name]) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SPARK)
def test_wrong_arguments_on_spark_are_refused_clearly(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = spark.createDataFrame(STREAM)
    function, arguments, named = ON_SPARK[name]
    assert _raw(lambda: function(frame), arguments, named) == []


def _raw(function: Callable[[], Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
    """The errors that are none of Estero's, each with the argument that was wrong."""
    raw = []
    for said, places, others in _cases(arguments, named):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", estero.EsteroWarning)
                _used(function()(*places, **others))
        except Exception as error:  # noqa: BLE001 - all of them are judged
            if not _is_clear(error):
                raw.append(f"{said}: {type(error).__name__}: {error}"[:200])
    return raw


def test_every_public_function_is_tried() -> None:
    tried = {name.rpartition(".")[2] for name in CALLS}
    untried = {
        "Answer",
        "ComplexEvent",
        "ContinuousRecognizer",
        "LiveStream",
        "RuleAnswers",
        "RuleSet",
        "RuleTable",
        "Scan",
        "SqlResult",
    }  # these are not made by users
    public = {name for name in estero.__all__ if not _is_error(name)}
    assert public - tried == untried
    assert {*plots.__all__, *estero.testing.__all__} <= tried
    assert {*estero.spark.__all__} <= tried | {*ON_SPARK}
    for kind in (estero.Query, estero.Answer, plots.Picture):
        methods = {
            name
            for name, member in vars(kind).items()
            if inspect.isfunction(member) and not name.startswith("_")
        }
        assert {name for name in methods if _takes_arguments(getattr(kind, name))} - tried <= {
            *("plan", "recognizer_of", "partials_recognizer_of", "plan_for", "errors_for", "with_distinct"),
        }


def _is_error(name: str) -> bool:
    found = getattr(estero, name)
    return isinstance(found, type) and issubclass(found, Exception)


def _takes_arguments(method: Callable[..., Any]) -> bool:
    return len(inspect.signature(method).parameters) > 1
