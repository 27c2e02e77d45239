"""Tables: what is too wide folds, and all lines are of one width."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.cli.tables import Table, cells

TEXT = st.text(st.sampled_from("ab 山é\n"), max_size=60)


def test_a_table_is_a_box_of_columns() -> None:
    table = Table(["n", "label"], [True, False], [["1", "short"], ["10", "two\nlines"]])
    assert [click.unstyle(line) for line in table.lines(80)] == [
        "┏━━━━┳━━━━━━━┓",
        "┃  n ┃ label ┃",
        "┡━━━━╇━━━━━━━┩",
        "│  1 │ short │",
        "│ 10 │ two   │",
        "│    │ lines │",
        "└────┴───────┘",
    ]


def test_a_stream_without_such_characters_gets_a_box_of_others() -> None:
    table = Table(["n"], [True], [["1"]])
    lines = [click.unstyle(line) for line in table.lines(80, ascii_only=True)]
    assert lines == ["+---+", "| n |", "+---+", "| 1 |", "+---+"]


def test_the_widest_columns_fold_between_words_where_they_can() -> None:
    table = Table(["id", "text"], [True, False], [["7", "one two three"], ["8", "abcdefghijkl"]])
    assert [click.unstyle(line) for line in table.lines(16)][3:-1] == [
        "│  7 │ one two │",
        "│    │ three   │",
        "│  8 │ abcdefg │",
        "│    │ hijkl   │",
    ]


@given(st.lists(st.tuples(TEXT, TEXT), max_size=5), st.integers(11, 60))
def test_lines_are_as_wide_as_each_other_and_hold_every_letter(
    rows: list[tuple[str, str]], width: int
) -> None:
    table = Table(["a", "b"], [False, True], [*rows])
    lines = [click.unstyle(line) for line in table.lines(width)]
    assert len({cells(line) for line in lines}) == 1
    assert cells(lines[0]) <= width
    shown = [letter for line in lines for letter in line if letter in "ab山é"]
    assert sorted(shown) == sorted(
        letter for row in [("a", "b"), *rows] for text in row for letter in text if letter not in " \n"
    )


@pytest.mark.parametrize("columns", [1, 40])
def test_a_table_of_more_columns_than_fit_is_shown_all_the_same(columns: int) -> None:
    table = Table(["name"] * columns, [False] * columns, [])
    assert "".join(click.unstyle("".join(table.lines(4))).split("│")).count("n") == columns
