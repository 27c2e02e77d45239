"""Tables of parsers on disk: whatever is there, texts are read as without them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lark import lark

from estero.errors import QueryError
from estero.language.syntax.kept_tables import tables_file
from estero.language.syntax.parser import parse_conjunctive, parse_query, parser

TEXT = "SELECT * WHERE A AS a ; B+ FILTER a[x > 1 AND CASE WHEN y THEN 1 ELSE end END = 1] WITHIN 2 HOURS"
RULE = "Q(x, y) <- T(x), S(x, y)"
WRONG = "SELECT * WHERE A ; ; B"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory for tables."""
    monkeypatch.setenv("ESTERO_CACHE", str(tmp_path / "kept"))
    forget()
    yield tmp_path / "kept"
    forget()


def forget() -> None:
    """What another process would not know."""
    parser.cache_clear()
    tables_file.cache_clear()


def read() -> tuple[str, str, str]:
    """What two texts mean, and what is said of a third."""
    with pytest.raises(QueryError) as caught:
        parse_query(WRONG)
    return str(parse_query(TEXT)), str(parse_conjunctive(RULE)), str(caught.value)


def without_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has no grammar be worked out."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a grammar is worked out")

    monkeypatch.setattr(lark, "load_grammar", refuse)


def test_another_process_reads_the_tables(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = read()
    assert sorted(each.name.partition("-")[0] for each in directory.iterdir()) == ["ceql", "conjunctive"]
    forget()
    without_grammars(monkeypatch)
    assert read() == said


@pytest.mark.parametrize("left", [0, 1, 70, 5_000, -1])
def test_damaged_tables_are_made_anew(directory: Path, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = read()
    for file in directory.iterdir():
        file.write_bytes(file.read_bytes()[:left])
    forget()
    assert read() == said
    forget()
    without_grammars(monkeypatch)
    assert read() == said


def test_where_nothing_can_be_written_texts_are_read(directory: Path) -> None:
    directory.write_text("a file where the directory should be")
    assert read()[0] == str(parse_query(TEXT))


def test_tables_of_another_version_are_left_alone(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read()
    kept = {file: file.read_bytes() for file in directory.iterdir()}
    forget()
    monkeypatch.setattr("lark.__version__", "0.0")
    read()
    assert len(list(directory.iterdir())) == 2 * len(kept)
    assert {file: file.read_bytes() for file in kept} == kept


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_tables_that_others_can_write_are_not_read(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = read()
    forget()
    directory.chmod(0o777)
    before = {file: file.read_bytes() for file in directory.iterdir()}
    for file in directory.iterdir():
        file.write_bytes(b"anything")
    assert read() == said
    assert {file.read_bytes() for file in before} == {b"anything"}
    directory.chmod(0o755)
    forget()
    for file, content in before.items():
        file.write_bytes(content)
        file.chmod(0o666)
    with monkeypatch.context() as patched:
        without_grammars(patched)
        with pytest.raises(AssertionError, match="worked out"):
            read()


def test_tables_are_text_that_cannot_run(directory: Path) -> None:
    read()
    for file in directory.iterdir():
        json.loads(file.read_bytes()[64:])
