"""Peers: every engine has an answer to every query, texts mean the same, and the page says who is fastest."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from estero.language.syntax.parser import parse_query
from estero.reference.queries import Event, evaluate_query

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks.peers import child, duckdb_engine, events, pandas_engine, queries, rule_set_engine, rule_sets
from benchmarks.peers.__main__ import Truth, Wrong
from benchmarks.peers.engines import ENGINES, Engine, flink_patterns
from benchmarks.peers.kept import Kept, OtherTerms
from benchmarks.peers.page import page, picture
from benchmarks.peers.queries import QUERIES, Unsaid
from benchmarks.peers.session import PeerProblem, Run, Session, TooLong


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_engine_has_a_text_or_a_reason_for_every_query(engine: Engine) -> None:
    assert list(engine.said) == [query.name for query in QUERIES]
    assert all(isinstance(each, Unsaid) or each.strip() for each in engine.said.values())


def test_flink_gets_a_pattern_for_each_query_that_it_can_say() -> None:
    text = flink_patterns()
    for name, said in queries.FLINK.items():
        assert (f'case "{name}":' in text) == isinstance(said, str)


def test_columns_come_back_from_the_folder(tmp_path: Path) -> None:
    events.save(tmp_path, 200_000)
    made = list(events.STREAM.blocks(200_000))
    for name, column in events.load(tmp_path).items():
        assert np.array_equal(column, np.concatenate([block[name] for block in made]))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
@pytest.mark.parametrize("seed", range(3))
def test_sql_and_frames_answer_what_the_query_means(query: queries.Query, seed: int, tmp_path: Path) -> None:
    random = np.random.default_rng(seed)
    count = 20 if query.name == "kleene" else 40
    columns = {
        "type": random.integers(0, 4 if query.name == "kleene" else 5, count),
        "key": random.integers(0, 3, count),
        "price": np.sort(random.integers(0, 1_000, (count, 2)), axis=1)[:, seed % 2],
    }
    if query.name == "rising":
        columns["price"][5:8], columns["price"][20:23] = (50, 500, 950), (99, 100, 901)
    if query.name == "kleene":
        columns["type"][2:7] = (0, 1, 4, 1, 3)
    for name, kind in events.FILES.items():
        (tmp_path / name).write_bytes(columns[name].astype(kind).tobytes())
    text = queries.ESTERO[query.name]
    assert isinstance(text, str)
    expected = _by_reference(text, columns)
    assert expected
    for module, said in ((duckdb_engine, queries.DUCKDB), (pandas_engine, queries.PANDAS)):
        words = said[query.name]
        assert isinstance(words, str)
        tables = module.engine(tmp_path, query.name, words).tables(count)
        assert _answers(tables) == expected


def _by_reference(text: str, columns: dict[str, np.ndarray]) -> list[tuple[int, ...]]:
    rows = [dict(zip(columns, map(int, row), strict=True)) for row in zip(*columns.values(), strict=True)]
    stream = []
    for row in rows:
        name = events.TYPES[row["type"]]
        stream.append(Event("S" if " FROM " in text else name, {**row, "type": name}))
    return sorted(
        tuple(sorted(found.support))
        for each in evaluate_query(parse_query(text), stream).values()
        for found in each
    )


def _answers(tables: list[pa.Table]) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(row)) for table in tables for row in child.positions(table))


ENGINE = """
import sys
print('{"version": "one"}', flush=True)
for line in sys.stdin:
    events, path = line.split()
    if events == "13":
        sys.exit("thirteen is too many")
    if events == "14":
        while True:
            pass
    if path != "-":
        open(path, "w").write("4 2\\n1 3\\n")
    print('{"wall": 1.5, "cpu": 2.5, "answers": 2, "sum": %s}' % (10 if events == "12" else 11), flush=True)
"""


@pytest.fixture(params=["wall", "cpu"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    with Session([sys.executable, "-c", ENGINE], tmp_path, request.param) as session:
        yield session


def test_an_engine_is_asked_over_a_pipe(session: Session) -> None:
    assert session.version == "one"
    assert session.answers(12, 60) == [(1, 3), (2, 4)]
    assert session.run(12, 60) == Run(1.5, 2.5, 2, 10)


def test_answers_that_do_not_add_up_are_a_problem(session: Session) -> None:
    with pytest.raises(PeerProblem, match="the sum of their positions"):
        session.answers(11, 60)


def test_the_last_words_of_an_engine_are_the_problem(session: Session) -> None:
    with pytest.raises(PeerProblem, match="thirteen is too many"):
        session.run(13, 60)


def test_an_engine_that_does_not_answer_is_stopped(session: Session) -> None:
    with pytest.raises(TooLong):
        session.run(14, 0.05)


def test_engines_that_differ_stop_everything() -> None:
    truth, (one, other, *_) = Truth(QUERIES[0], Kept(None, {})), ENGINES
    truth.compare(one, [(1, 2), (3, 4)])
    truth.total(one, 100, Run(1, 1, 2, 10))
    truth.total(other, 100, Run(2, 2, 2, None))
    with pytest.raises(Wrong, match=r"only there: \[\(1, 5\)\], not there: \[\(3, 4\)\]"):
        truth.compare(other, [(1, 2), (1, 5)])
    with pytest.raises(Wrong, match="2 answers with the sum 11"):
        truth.total(other, 100, Run(2, 2, 2, 11))


def _kept(path: Path, clock: str = "cpu") -> Kept:
    return Kept(path, {"clock": clock})


def test_a_run_that_was_broken_off_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    sizes = [10, 100, 1_000]
    before = _kept(path)
    assert before.wanted("next", "estero", sizes) == sizes
    before.keep_answers("next", [(1, 2), (3, 4)])
    for engine, length in (("estero", 10), ("estero", 100), ("esper", 10)):
        before.keep({"query": "next", "engine": engine, "events": length, "answers": 2, "sum": 10})
    before.keep({"query": "next", "engine": "esper", "events": 100, "seconds": None, "over": 60.0})
    before.keep({"query": "next", "engine": "flink", "problem": "it said no"})
    with path.open("a") as file:
        file.write('{"query": "next", "engine": "estero", "eve')
    after = _kept(path)
    assert after.wanted("next", "estero", sizes) == [1_000]
    assert after.wanted("next", "esper", sizes) == after.wanted("next", "flink", sizes) == []
    assert after.wanted("keys", "estero", sizes) == sizes
    after.keep({"query": "next", "engine": "estero", "events": 1_000, "answers": 2, "sum": 10})
    assert _kept(path).figures == after.figures
    assert _kept(path).wanted("next", "estero", sizes) == []


def test_engines_are_compared_with_what_was_kept(tmp_path: Path) -> None:
    kept = _kept(tmp_path / "kept")
    kept.keep_answers("sequence", [(1, 2), (3, 4)])
    kept.keep({"query": "sequence", "engine": "core", "events": 10, "answers": 2, "sum": None})
    kept.keep({"query": "sequence", "engine": "estero", "events": 10, "answers": 2, "sum": 10})
    truth = Truth(QUERIES[0], _kept(tmp_path / "kept"))
    truth.compare(ENGINES[1], [(1, 2), (3, 4)])
    truth.total(ENGINES[1], 10, Run(1, 1, 2, 10))
    with pytest.raises(Wrong):
        truth.compare(ENGINES[1], [(1, 2)])
    with pytest.raises(Wrong):
        truth.total(ENGINES[1], 10, Run(1, 1, 2, 11))


def test_figures_of_another_clock_are_not_mixed(tmp_path: Path) -> None:
    _kept(tmp_path / "kept")
    with pytest.raises(OtherTerms, match=r"was begun with {'clock': 'cpu'}"):
        _kept(tmp_path / "kept", "wall")


def _figures() -> dict[str, Any]:
    def run(engine: str, events: int, seconds: float | None) -> dict[str, Any]:
        line: dict[str, Any] = {
            "query": "sequence",
            "engine": engine,
            "events": events,
            "seconds": seconds,
        }
        return line | ({"over": 20.0} if seconds is None else {"answers": 7})

    runs = [
        run("estero", 10_000, 0.5),
        run("estero", 100_000, 0.6),
        run("duckdb", 10_000, 0.25),
        run("duckdb", 100_000, 1.2),
        run("flink", 10_000, 3.0),
        run("flink", 100_000, None),
        {"query": "sequence", "engine": "esper", "problem": "it said no"},
    ]
    return {
        "setting": {"machine": "m"},
        "missing": {"core": "not there"},
        "unmeasured": [{"query": "sequence", "engine": "pandas", "from": 100_000}],
        "runs": runs,
    }


def test_the_page_says_who_is_fastest() -> None:
    said = page(_figures())
    assert "| sequence | 100,000 | Estero | DuckDB ×2.0 | – | 2.0 times as fast as DuckDB |" in said
    assert "| Estero | 0.500 | **0.600** |" in said
    assert "| DuckDB | **0.250** | 1.20 |" in said
    assert "| FlinkCEP | 3.00 | > 20 |" in said
    assert "CORE is missing: not there" in said
    assert "Esper: it said no" in said
    assert "pandas: not measured from 100,000 events on" in said
    assert "Siddhi: a started match continues with the next event that fits" in said


def test_the_page_says_where_a_peer_wins() -> None:
    figures = _figures()
    figures["runs"] = [run for run in figures["runs"] if run.get("events") != 100_000]
    beside = "6.0 times as fast as FlinkCEP | **2.0 times as slow as DuckDB**"
    assert f"| DuckDB | Estero ×2.0, FlinkCEP ×12.0 | {beside} |" in page(figures)


def test_the_picture_has_a_line_for_every_engine() -> None:
    figures = _figures()
    figures["runs"] = [
        {"query": "sequence", "engine": engine.name, "events": 10_000, "seconds": 1.0, "answers": 7}
        for engine in ENGINES
    ]
    assert picture(figures).svg().startswith("<?xml")


def test_rules_of_the_peers_mean_the_same_as_a_loop(tmp_path: Path) -> None:
    rule_sets.save(tmp_path, 2_000, 20)
    columns = events.load(tmp_path)
    expected = sorted(
        tuple(sorted((rule, *positions)))
        for rule, keys in enumerate(rule_sets.keys_of_rules(20))
        for positions in _next_positions(columns, keys)
    )
    tables = rule_set_engine.engine(tmp_path, "rules", f"file:{tmp_path / 'estero.json'}").tables(2_000)
    assert expected
    assert sorted(tuple(sorted(row)) for table in tables for row in child.positions(table)) == expected


def _next_positions(columns: dict[str, np.ndarray], keys: tuple[int, int, int]) -> Iterator[tuple[int, ...]]:
    """An A with the first key, the next B with the second after it, the next C with the third after that."""
    places = [
        np.flatnonzero((columns["type"] == kind) & (columns["key"] == key)) for kind, key in enumerate(keys)
    ]
    for first in places[0].tolist():
        positions = [first]
        for later in places[1:]:
            after = later[later > positions[-1]]
            if not after.size:
                break
            positions.append(int(after[0]))
        if len(positions) == 3 and positions[-1] - first <= rule_sets.WINDOW:
            yield tuple(positions)
