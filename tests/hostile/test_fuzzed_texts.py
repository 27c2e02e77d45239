"""Texts that nobody meant: each is a query that prints and parses back, or an error with place and hint."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

import estero
from estero.errors import legible
from language.error_page import cases

SEED = 12
TEXTS = 2_000
"""How many texts each of the parts below tries."""
PARTS = 8

QUERIES = """
SELECT MAX a[x, y], b FROM s, t WHERE s>A AS a ; (B AS b OR C){2,5} : D+ FILTER a[x > 1] AND b.k = a.k LIMIT 3
SELECT * WHERE A AS a ; B AS b PARTITION BY [k, l], m WITHIN 2 HOURS 30 MINUTES CONSUME BY PARTITION
SELECT * WHERE START(A ; NOT(B AS n FILTER n.x = a.x) ; C?) AS a ; D UNLESS (E OR F) KEEP [a, D] WITHIN 5 [t]
SELECT NONE WHERE (A ALL B ALL C :+) [A -> z] AND STRICT(A :{2} ; B{3,}) FILTER increasing(z.v) OR z[v]
SELECT "two words" WHERE A AS "two words" FILTER "two words"[x IN {1, -2..5, 'it''s'}] -- all
SELECT * WHERE A FILTER A[ts BETWEEN TIMESTAMP '2024-01-31' AND TIMESTAMP '2024-02-29 12:00:00.5Z']
SELECT * WHERE A AS a FILTER a[NOT x ~ '^a.b$' AND -y * 2 + abs(z) / 3 % 4 <> 1.5e3 AND u IS NOT NULL]
SELECT * WHERE (A+ AS x ; B AS y PARTITION BY [x.k, y.l]) WITHIN 100 EVENTS CONSUME BY ANY LIMIT 5
SELECT A WHERE A OR B : C
Q(x, y) <- T(x), S(x, y), R(k: x, l: y, m: 5) AS r, U(_, 'a') FROM s, t WITHIN 10 MINUTES LIMIT 2
""".strip().splitlines()
WORDS = r"""
SELECT FROM WHERE FILTER KEEP PARTITION BY WITHIN CONSUME LIMIT AS AND OR NOT ALL UNLESS IN IS NULL TRUE LIKE
BETWEEN START STRICT MAX ANY NONE EVENTS HOURS TIMESTAMP ORDER GROUP count increasing a b A x a.x [k] 's' "q"
( ) [ ] { } ; : , . .. + :+ ? * - / % = == != <> < <= > >= ~ -> <- _ ' " ` -- /* */ 0 1 5 2.5 1e9 $x # \ é 名
99999999999999999999
""".split()  # noqa: SIM905 (a list of a hundred words)
WORDS += ["\t", "\n", "\x00", "\u2028", "\ufeff", " "]
_PIECES = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)


def corpus() -> list[str]:
    """Texts to begin with: queries, what errors are shown for, and what newcomers typed."""
    typed = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").splitlines()
    index = [line.removeprefix("typed: ") for line in typed if line.startswith("typed: ")]
    return [*QUERIES * 50, *(case.text for case in cases()), *index]


def texts(part: int) -> Iterator[str]:
    """The texts of one part, the same in every run."""
    random = Random(f"{SEED} {part}")
    beginnings = corpus()
    for _ in range(TEXTS):
        pieces = _PIECES.findall(random.choice(beginnings))
        for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
            pieces = _mutated(pieces, beginnings, random)
        yield "".join(pieces)


def _mutated(pieces: list[str], others: list[str], random: Random) -> list[str]:
    here, there = sorted(random.randrange(len(pieces) + 1) for _ in range(2))
    match random.randrange(8):
        case 0:
            return pieces[:here] + pieces[here + 1 :]
        case 1:
            return [*pieces[:here], " ", random.choice(WORDS), " ", *pieces[here:]]
        case 2:
            return [*pieces[:here], random.choice(WORDS), *pieces[here + 1 :]]
        case 3:
            return pieces[:here] + pieces[there:]
        case 4:
            return pieces[:there] + pieces[here:]
        case 5:
            return pieces[:here] + _PIECES.findall(random.choice(others))[there:]
        case 6:
            return [*pieces[:here], *random.choices(WORDS, k=3), *pieces[here:]]
        case _:
            return [*pieces[:here], *(piece.swapcase() for piece in pieces[here:])]


def check_one(text: str) -> bool:
    """Whether a text is a query; fails where it is neither one that lasts nor has errors that help."""
    try:
        query = estero.query(text)
    except estero.QueryError as first:
        errors = (first, *first.others)
    else:
        errors = ()
    for error in errors:
        assert error.text == text
        assert 0 <= error.span.start <= error.span.end <= len(text)
        assert error.message
        assert error.expected
        assert error.hint
        assert legible(error.message) in str(errors[0])
    if errors:
        return False
    printed = str(query)
    again = estero.query(printed)
    assert again == query
    assert str(again) == printed
    return True


@pytest.mark.parametrize("part", range(PARTS))
def test_every_text_is_a_query_that_lasts_or_an_error_that_helps(part: int) -> None:
    for text in texts(part):
        try:
            check_one(text)
        except Exception as problem:
            raise AssertionError(f"{text!r}: {type(problem).__name__}: {problem}") from problem


def test_some_of_the_texts_are_queries_and_most_are_not() -> None:
    found = [check_one(text) for text in list(texts(0))[:500]]
    assert 15 < sum(found) < 250
