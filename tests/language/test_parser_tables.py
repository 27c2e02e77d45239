"""Tables of parsers: texts are read the same with them and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lark import lark

from estero.errors import QueryError
from estero.language.syntax import parser_tables
from estero.language.syntax.parser import parse_conjunctive, parse_query, parser, shapes
from estero.language.syntax.parser_tables import GRAMMARS, tables_file, write_tables

TEXT = "SELECT * WHERE A AS a ; B+ FILTER a[x > 1 AND CASE WHEN y THEN 1 ELSE end END = 1] WITHIN 2 HOURS"
RULE = "Q(x, y) <- T(x), S(x, y)"
WRONG = "SELECT * WHERE A ; ; B"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory for tables."""
    monkeypatch.setattr(parser_tables, "tables_file", lambda grammar: tmp_path / f"{grammar}.json")
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """Has parsers be made anew."""
    parser.cache_clear()
    shapes.cache_clear()


def read() -> tuple[str, str, str]:
    """What two texts mean, and what is said of a third."""
    with pytest.raises(QueryError) as caught:
        parse_query(WRONG)
    return str(parse_query(TEXT)), str(parse_conjunctive(RULE)), str(caught.value)


def refuse_to_work_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has no grammar be worked out."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a grammar is worked out")

    monkeypatch.setattr(lark, "load_grammar", refuse)


def test_what_is_written_is_read_and_means_the_same(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = read()
    assert not list(directory.iterdir()), "nothing is written where users run"
    for grammar in GRAMMARS:
        write_tables(grammar)
    forget()
    refuse_to_work_out(monkeypatch)
    assert read() == said


def test_tables_of_another_version_are_not_read(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = read()
    for grammar in GRAMMARS:
        write_tables(grammar)
    monkeypatch.setattr("lark.__version__", "0.0")
    forget()
    with monkeypatch.context() as patched:
        refuse_to_work_out(patched)
        with pytest.raises(AssertionError, match="worked out"):
            read()
    assert read() == said


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_tables_come_with_the_package(grammar: str) -> None:
    """In a clone `make kernels` writes them."""
    tables = json.loads(tables_file(grammar).read_bytes())
    assert tables["version"] == parser_tables._version(grammar)
