"""Rules in Sigma are read, and what is wrong with one is said with its place."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estero.errors import QueryError
from estero.language.regex.dialects import for_python
from estero.language.sigma.addresses import regex_of_network
from estero.language.sigma.aggregations import aggregation_of, is_aggregation
from estero.language.sigma.documents import documents_of
from estero.language.sigma.filters import filter_of
from estero.language.sigma.read import detection_of
from estero.language.sigma.reading import Reading
from estero.language.sigma.regexes import with_flags
from estero.language.sigma.tree import Correlation, Detection, Every, Negated, Number, Some, Text

HEAD = "title: A door\nlogsource: {category: doors}\n"


def read(detection: str) -> Detection | Correlation:
    (document,) = documents_of(f"{HEAD}detection:\n{detection}")
    return (aggregation_of if is_aggregation(document) else detection_of)(document, Reading())


def test_a_condition_is_a_tree_of_tests() -> None:
    rule = read(
        """
  hall:
    door: front
    state|startswith: 'op*n'
  lock:
    - code: 7
    - key|cased: Brass
  condition: hall and not 1 of loc*
"""
    )
    hall = Every((Text("door", "front"), Text("state", "op%n%")))
    lock = Some((Number("code", 7), Text("key", "Brass", cased=True)))
    assert isinstance(rule, Detection)
    assert rule.condition == Every((hall, Negated(lock)))


def test_what_a_rule_says_of_itself_is_kept() -> None:
    said_of_it = "name: door\nlevel: high\ntags: [attack.t1059.001, tlp.red]\n"
    text = f"{HEAD}{said_of_it}detection: {{s: {{a: b}}, condition: s}}"
    (document,) = documents_of(text)
    said = detection_of(document, Reading()).about.metadata()
    assert said == {
        "title": "A door",
        "name": "door",
        "level": "high",
        "tags": "attack.t1059.001, tlp.red",
        "techniques": "T1059.001",
    }


WRONG = {
    "an unknown modifier": ("  s:\n    a|sounds: x\n  condition: s\n", 5, "Unknown modifier"),
    "no condition": ("  s:\n    a: x\n", 3, "at least one condition"),
    "a name that is not there": ("  s:\n    a: x\n  condition: s and t\n", 6, "'t' not defined"),
    "no end": ("  s:\n    a: x\n  condition: (s\n", 6, "Unbalanced"),
    "a pattern of no name": ("  s:\n    a: x\n  condition: 1 of t*\n", 6, "1 of t*"),
    "a timeframe alone": ("  s:\n    a: x\n  timeframe: 5m\n  condition: s\n", 6, "the condition has none"),
    "an aggregation of no time": ("  s:\n    a: x\n  condition: s | count() > 5\n", 6, "needs the time"),
    "an aggregation of any time": (
        "  s:\n    a: x\n  timeframe: soon\n  condition: s | count() > 5\n",
        6,
        "Timespan 'soon' is invalid",
    ),
    "an unknown aggregation": (
        "  s:\n    a: x\n  timeframe: 5m\n  condition: s | max(a) > 5\n",
        7,
        "the aggregation max is not supported",
    ),
    "a sum of nothing": (
        "  s:\n    a: x\n  timeframe: 5m\n  condition: s | sum() > 5\n",
        7,
        "sum() has a field",
    ),
    "half an aggregation": (
        "  s:\n    a: x\n  timeframe: 5m\n  condition: s | count() by\n",
        7,
        "not an aggregation: count() by",
    ),
    "near what is not there": (
        "  s:\n    a: x\n  timeframe: 5m\n  condition: s | near t\n",
        7,
        "'t' not defined",
    ),
    "a regular expression": (
        "  s:\n    b: x\n    a|re: '(x'\n  condition: s\n",
        6,
        "the regular expression ends too early",
    ),
    "look-around": ("  s:\n    a|re: '(?=x)y'\n  condition: s\n", 5, "(?=x)y"),
    "a network": ("  s:\n    a|cidr: 10.0.0.0/40\n  condition: s\n", 5, "Invalid CIDR"),
    "a placeholder": ("  s:\n    a|expand: '%who%'\n  condition: s\n", 5, "%who% has no values"),
    "a number that is text": ("  s:\n    a|lt: x\n  condition: s\n", 5, "the modifier lt does not take 'x'"),
    "a mapping in a mapping": ("  s:\n    a:\n      b: c\n  condition: s\n", 5, "compared with a mapping"),
    "a number as a key": ("  s:\n    7: x\n  condition: s\n", 4, "the key 7 is not a text"),
    "a condition that is a number": ("  s:\n    a: x\n  condition: 7\n", 6, "a condition is a text"),
    "too deep": ("  s:\n    a: x\n  condition: " + "not " * 4000 + "s\n", 6, "nested too deeply"),
    "a name twice": ("  s: {a: x}\n  s: {b: x}\n  condition: s\n", 5, "the key s stands here twice"),
    "a field twice": ("  s: {a: x, a: y}\n  condition: s\n", 4, "the key a stands here twice"),
    "an empty condition": ("  s: {a: x}\n  condition: ''\n", 5, "a condition is a text"),
    "a date": ("  s: {a: 2026-01-01}\n  condition: s\n", 4, "a is compared with a date"),
    "bytes": ("  s: {a: !!binary aGk=}\n  condition: s\n", 4, "a value of another kind"),
    "null with a modifier": ("  s: {a|contains: null}\n  condition: s\n", 4, "contains does not take null"),
    "an hour": ("  s: {a|hour: 24}\n  condition: s\n", 4, "no hour is 24"),
    "an infinite number": ("  s: {a: .inf}\n  condition: s\n", 4, "Invalid number"),
    "tabs": ("\ts: {a: x}\n  condition: s\n", 4, "this is not YAML"),
    "nothing but null": ("  s:\n    - null\n  condition: s\n", 3, "applies to a field"),
}


@pytest.mark.parametrize(("detection", "line", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_with_its_line(detection: str, line: int, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)) as raised:
        read(detection)
    assert raised.value.line_and_column[0] == line


FILTER = "title: Not the cat\nlogsource: {category: doors}\nfilter:\n"
WRONG_FILTERS = {
    "of no rules": ("  s: {a: x}\n  condition: s\n", 3, "says to which rules it is added"),
    "of a number": ("  rules: 7\n  s: {a: x}\n  condition: s\n", 4, "says to which rules it is added"),
    "no condition": ("  rules: any\n  s: {a: x}\n", 3, "at least one condition"),
    "a name that is not there": ("  rules: any\n  s: {a: x}\n  condition: t\n", 6, "'t' not defined"),
    "an unknown modifier": ("  rules: any\n  s: {a|sounds: x}\n  condition: s\n", 5, "Unknown modifier"),
    "a list": ("  - rules\n", 3, "a filter is a mapping"),
}


@pytest.mark.parametrize(("section", "line", "said"), WRONG_FILTERS.values(), ids=WRONG_FILTERS)
def test_what_is_wrong_with_a_filter_is_said_with_its_line(section: str, line: int, said: str) -> None:
    (document,) = documents_of(FILTER + section)
    with pytest.raises(QueryError, match=re.escape(said)) as raised:
        filter_of(document, Reading())
    assert raised.value.line_and_column[0] == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no Sigma rule in this text"),
        ("- a\n- b\n", "a Sigma rule is a mapping, not a list"),
        ("title: a\n  b: [", "this is not YAML: mapping values are not allowed in this context"),
        ("title: \0", "this is not YAML"),
        ("title: 2026-13-40", "this is not the YAML of a rule"),
        ("title: !!timestamp noon", "a value is not what its tag says"),
        (
            "a: &a [x, x]\nb: &b [*a, *a]\n"
            + "".join(
                f"c{i}: &c{i} [{', '.join(['*b' if not i else f'*c{i - 1}'] * 9)}]\n" for i in range(8)
            ),
            "too many values",
        ),
        ("x" * (1 << 21), "at most a megabyte"),
        ("---\n".join(["a: 1\n"] * 1001), "at most 1000 rules"),
        ("---\n# nothing\n---\n", "there is no Sigma rule in this text"),
        ("a: &a {a: *a}\n", "too many values, or too many inside of one another"),
        ("a: " + "[" * 5000, "this is not YAML"),
        (f"{HEAD}id: 7\ndetection: {{s: {{a: x}}, condition: s}}", "an id is a text"),
    ],
)
def test_texts_that_are_no_rules_are_refused(text: str, said: str) -> None:
    with pytest.raises(QueryError, match=re.escape(said)):
        list(map(detection_of, documents_of(text), [Reading()] * 9))


def test_flags_inside_are_refused_where_lines_cannot_be_told() -> None:
    assert with_flags("(?s)a.", frozenset()) == r"a[\d\D]"
    assert with_flags("^a|b$", frozenset({"MULTILINE"})) == r"(?:^|\n)a|b(?:$|\n)"
    assert with_flags("[.^]", frozenset({"MULTILINE", "DOTALL"})) == "[.^]"
    with pytest.raises(QueryError, match="inside of a regular expression over lines"):
        with_flags("a(^b)", frozenset({"MULTILINE"}))


@st.composite
def addresses(draw: st.DrawFn) -> tuple[str, str]:
    """A network, and the text of an address in it or next to it."""
    bits = draw(st.sampled_from((32, 128)))
    kind = ipaddress.IPv4Address if bits == 32 else ipaddress.IPv6Address
    groups = st.sampled_from((0, 0, 1, 0xFF, 0xFE80, 0xFFFF))
    number = sum(draw(groups) << shift for shift in range(0, bits, 16))
    prefix = draw(st.integers(0, bits))
    network = ipaddress.ip_network((number, prefix), strict=False)
    near = number ^ (1 << draw(st.integers(0, bits - 1))) if draw(st.booleans()) else number
    address = kind(near)
    text = draw(st.sampled_from((str(address), address.exploded, str(address).upper())))
    return str(network), text


@given(addresses())
def test_the_expression_of_a_network_finds_its_addresses(drawn: tuple[str, str]) -> None:
    network, text = drawn
    found = re.search(for_python(regex_of_network(network)), text) is not None
    assert found == (ipaddress.ip_address(text) in ipaddress.ip_network(network))


@pytest.mark.parametrize("text", ["10.0.0.01", "10.0.0", "::g", "1:2", "10.0.0.256", "x10.0.0.1", ""])
def test_no_address_is_in_no_network(text: str) -> None:
    for network in ("0.0.0.0/0", "::/0"):
        assert re.search(for_python(regex_of_network(network)), text) is None


@pytest.mark.parametrize(
    "text", ["::ffff:10.1.2.3", "::FFFF:a01:203", "0:0:0:0:0:ffff:10.1.2.3", "fe80::1%eth0"]
)
def test_addresses_have_dotted_ends_and_zones(text: str) -> None:
    network = "fe80::/10" if "%" in text else "::ffff:10.0.0.0/104"
    assert re.search(for_python(regex_of_network(network)), text)
