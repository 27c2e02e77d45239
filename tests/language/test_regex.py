"""Regular expressions: what engines share, rewritten so that they find the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.errors import QueryError
from estero.language.regex.dialects import for_python, for_re2
from estero.language.regex.java import for_java
from estero.language.regex.parser import parse_regex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOUND = [
    ("", "", True),
    ("a", "bab", True),
    ("^a$", "a\n", False),
    ("^a$", "a", True),
    ("a.b", "a\nb", False),
    ("a.b", "a\rb", True),
    ("^.$", "\U0001f600", True),
    ("\\d", "٣", False),
    ("\\w", "é", False),
    ("\\s", "\x0b", True),
    ("\\s", "\u00a0", False),
    ("[^\\s]", "\u00a0", True),
    ("\\bfoo\\b", "éfoo", True),
    ("\\bfoo\\b", "_foo", False),
    ("\\Boo", "foo", True),
    ("(?i)straße|k", "STRAßE", True),
    ("(?i)k", "\u212a", False),
    ("(?i)[a-c]", "B", True),
    ("(ab){2,3}?c", "ababc", True),
    ("a{0,1}b", "b", True),
    ("[a-]", "-", True),
    ("[-a]", "-", True),
    ("[a-c-]", "-", True),
    ("[\\]\\[]", "]", True),
    ("[\\D\\d]", "x", True),
    ("[^\\W\\w]", "x", False),
    ("}]", "}]", True),
    ("\\x41\\x{1F600}", "A\U0001f600", True),
    ("\\t\\.", "\t.", True),
    ("(?:a|)b", "b", True),
]


@pytest.mark.parametrize(("regex", "text", "found"), FOUND)
def test_python_and_re2_find_the_same(regex: str, text: str, found: bool) -> None:
    assert (re.search(for_python(regex), text) is not None) == found
    assert _re2(regex, text) == found


def in_java(regex: str) -> str:
    written = for_java(regex)
    assert written is not None
    return written


@pytest.mark.spark
def test_java_finds_the_same(spark: SparkSession) -> None:
    from pyspark.sql.functions import lit

    row = spark.range(1).select(*(lit(text).rlike(in_java(regex)) for regex, text, _ in FOUND)).first()
    assert row is not None
    assert {case: found for case, found in zip(FOUND, row, strict=True) if found != case[2]} == {}


@pytest.mark.spark
def test_java_finds_the_same_in_columns(spark: SparkSession) -> None:
    """Constants are folded before they run; columns take the compiled way."""
    from pyspark.sql.functions import col

    texts = spark.createDataFrame(
        [(number, text) for number, (_, text, _) in enumerate(FOUND)], ["n", "text"]
    )
    found = texts.select("n", *(col("text").rlike(in_java(regex)) for regex, _, _ in FOUND)).collect()
    expected = [
        [re.search(for_python(regex), text) is not None for regex, _, _ in FOUND] for _, text, _ in FOUND
    ]
    assert [list(row[1:]) for row in sorted(found)] == expected


pieces = st.sampled_from(
    [
        *"abK-",
        ".",
        "^",
        "$",
        "\\d",
        "\\w",
        "\\S",
        "\\b",
        "\\B",
        "[a-c]",
        "[^a]",
        "[\\W-]",
        "\\n",
        "é",
        "|",
        " ",
    ]
)
repeated = st.tuples(pieces, st.sampled_from(["", "*", "+?", "?", "{1,2}", "{2,}"])).map(
    lambda pair: pair[0] if pair[0] in ("|", "^", "$", "\\b", "\\B") else "".join(pair)
)
regexes = st.recursive(
    st.lists(repeated, max_size=4).map("".join),
    lambda inner: inner.map("({})+".format) | st.tuples(inner, inner).map("".join),
)


@given(
    st.booleans(), regexes, st.lists(st.text("aAbBcKk-_1 é\n\r\u212a", max_size=6), min_size=1, max_size=5)
)
def test_any_expression_finds_the_same_in_python_and_re2(fold: bool, regex: str, texts: list[str]) -> None:
    whole = f"(?i){regex}" if fold else regex
    for text in texts:
        assert (re.search(for_python(whole), text) is not None) == _re2(whole, text)


def _re2(regex: str, text: str) -> bool:
    row = duckdb.execute("SELECT regexp_matches(?, ?)", [text, for_re2(regex)]).fetchone()
    return row is not None and bool(row[0])


@pytest.mark.parametrize(
    "regex",
    [
        *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?P<n>a)", "(?<n>a)", "(?s)a", "a(?i)b", "(?i:a)"),
        *("\\1", "\\p{L}", "\\Z", "\\G", "\\R", "\\h", "\\v", "\\Qa\\E", "\\u0041", "\\07", "\\"),
        *("[[:alpha:]]", "[a&&b]", "[a[b]]", "[]a]", "[]", "[a", "[z-a]", "[\\d-z]"),
        *(
            "*a",
            "a**",
            "a++",
            "a?+",
            "a{2}{3}",
            "a{,3}",
            "a{2,1}",
            "a{1001}",
            "(a{100}){11}",
            "{",
            "a{x}",
            "^*",
        ),
        *("(", ")", "(a", "\\x{110000}", "\\xd", "\\x{D800}"),
    ],
)
def test_what_engines_do_not_share_is_refused(regex: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_regex(regex)
    assert 0 <= caught.value.span.start <= len(regex)
    assert caught.value.expected


def test_java_gets_what_it_reads_as_the_others_do() -> None:
    assert for_java("^a.\\d$") == r"\Aa[^\x{a}][0-9]\z"
    assert for_java("(?i)k") == "[Kk]"
    assert for_java("\\s") == r"[\x{9}-\x{d}\x{20}]"
    assert for_java("é'") == r"\x{e9}\x{27}"
