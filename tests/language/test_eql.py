"""Texts in EQL: what is read, how it prints, and what is said of mistakes."""

from __future__ import annotations

import ipaddress
import random
import re
from collections.abc import Iterator

import pytest

from estero.errors import QueryError, Span
from estero.language.eql import tree as q
from estero.language.eql.addresses import block_regex
from estero.language.eql.lucene import as_regex
from estero.language.eql.parser import parse_eql

PRINTED = {
    'process where name:"a*"': 'process where name : "a*"',
    "any where (a==1 or (b==2 or c==3))and d": "any where (a == 1 or b == 2 or c == 3) and d",
    "any where not not (a or b)": "any where not not (a or b)",
    "any where a not in(1,2,)": "any where a not in (1, 2)",
    "any where - 5 < -(a) and a - -3 > (1-2)-3*(4%b)": "any where -5 < -a and a - -3 > 1 - 2 - 3 * (4 % b)",
    "any where (a == b) == true": "any where (a == b) == true",
    'any where s regex~ ("a","""b\\d""")': 'any where s regex~ ("a", "b\\\\d")',
    'any where STARTSWITH~(s, "\\u{6d}\\n")': 'any where startsWith~(s, "m\\n")',
    "any where ?`a-b`.c.`in` == null // no": "any where ?`a-b`.c.`in` == null",
    '"two words" where true|head 3|tail 2': '"two words" where true | head 3 | tail 2',
    "sequence with maxspan=120s by k [a where x] until[b where y]": None,
    "sequence by k with maxspan=120s [a where x] by l with runs=3 ![c where y] by m until [b where z] by n": (
        "sequence by k with maxspan=2m [a where x] by l with runs=3 ![c where y] by m until [b where z] by n"
    ),
    "sample by k, ?l [a where true] [b where true]": "sample by k, ?l [a where true] [b where true]",
}


@pytest.mark.parametrize("text", [text for text, printed in PRINTED.items() if printed])
def test_a_query_prints_as_one_that_reads_back(text: str) -> None:
    tree = parse_eql(text)
    assert str(tree) == PRINTED[text]
    assert parse_eql(str(tree)) == tree


MISTAKES = {
    "any where a = 1": ("= is not expected here", "== compares exactly"),
    "any where 'a'": ("strings stand in double quotes", "begins nothing"),
    'any where a == "x': ("this string is not closed", "is written"),
    "any where a AND b": ("AND is not expected here", "lower case: and"),
    "any where 1 < a < 3": ("< is not expected here", "joined by and"),
    "any where a[0] == 1": ("[ is not expected here", "any of its elements"),
    'any where a not like "x"': ("like is not expected here", "before the whole comparison"),
    'any where a == "\\d"': ("\\d is not an escape", '"""three quotes"""'),
    "any where a like 3": ("like takes strings", "=="),
    "any where a == 99999999999999999999": ("this integer does not fit in 64 bits", ""),
    "any where lenght(a) == 1": ("unknown function lenght", "length"),
    "any where length(a, b) == 1": ("length takes 1 argument, not 2", "the number of characters"),
    "any where number~(a) == 1": ("number has no form without case", "leave the ~ out"),
    "a == 1": ("== is not expected here", "category of its events"),
    "where a": ("where is not expected here", "or any"),
    "join by k [a where b] [c where d]": ("by is not expected here", "join is not read"),
    "a where child of [b where c]": ("of is not expected here", "by their ids"),
    "any where true | count": ("there is no pipe count", "DuckDB"),
    "any where true | head": ("head needs a number", ""),
    "any where true | head 9999999999999999999": ("this number is too large", ""),
    "sequence [a where b]": ("a sequence has two items at least", "without sequence"),
    "sequence [a where b] by k [c where d]": (
        "this item has no keys, and the first one has 1 key",
        "sequence by",
    ),
    "sequence [a where b] ![c where d]": ("where an event is missing, the time", ""),
    "sequence with maxspan=1m ![a where b] ![c where d]": ("all events of this sequence are missing", ""),
    "sequence with maxspan=0.5m [a where b] [c where d]": ("maxspan is a whole number and a unit", "30s"),
    "sequence with maxspan=0s [a where b] [c where d]": ("this maxspan is too long or none", ""),
    "sequence with runs=2 [a where b] [c where d]": ("runs is no setting here", "after an item"),
    "sequence by k by l [a where b] [c where d]": ("by stands here a second time", ""),
    "sequence [a where b] with runs=101 [c where d]": ("runs is how often an item comes", ""),
    "sequence [a where b] [c where d] until ![e where f]": ("until takes one event", ""),
    "sample [a where b] [c where d]": ("a sample needs a key", ""),
    "sample by k [a where b]": ("a sample has two items at least", ""),
    "sample by k [a where b] ![c where d]": ("an item of a sample has no !", "in a sequence"),
    "sample by k [a where b] [c where d] until [e where f]": ("a sample has no until", ""),
    "any where \ud800": ("'\\ud800' is half of a surrogate pair", "leave it out"),
    "": ("there is no query here", ""),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_named_with_a_hint(text: str) -> None:
    message, hint = MISTAKES[text]
    with pytest.raises(QueryError, match=re.escape(message)) as raised:
        parse_eql(text)
    assert raised.value.text == text
    assert hint in raised.value.hint


def test_deep_conditions_are_refused_and_long_ones_read() -> None:
    with pytest.raises(QueryError, match="nested more than 50 levels deep"):
        parse_eql("any where " + "not " * 10_000 + "a")
    with pytest.raises(QueryError, match="nested more than 50 levels deep"):
        parse_eql("any where " + "+".join("a" * 60) + " == 1")
    assert isinstance(parse_eql("any where " + "(" * 10_000 + "a" + ")" * 10_000).query, q.EventQuery)
    chain = parse_eql("any where " + " or ".join(f"a == {place}" for place in range(3_000))).query
    assert isinstance(chain, q.EventQuery)
    assert isinstance(chain.condition, q.AnyOf)
    assert len(chain.condition.parts) == 3_000


REGEXES = {
    "a.b$": r"\A(?:a[\s\S]b\$)\z",
    "@\\d\\n": r"\A(?:[\s\S]*\dn)\z",
    '"a.b"[x&^\\]]': r"\A(?:a\.b[x\&\^\]])\z",
}


@pytest.mark.parametrize("lucene", REGEXES)
def test_lucenes_expressions_match_whole_values(lucene: str) -> None:
    assert as_regex(lucene, Span(0, 0), caseless=False) == REGEXES[lucene]
    assert as_regex(lucene, Span(0, 0), caseless=True) == "(?i)" + REGEXES[lucene]


@pytest.mark.parametrize("lucene", ["a&b", "~a", "<1-9>", "#", "(a", "a**?+", "[b-a]"])
def test_what_lucene_alone_knows_is_refused(lucene: str) -> None:
    with pytest.raises(QueryError):
        as_regex(lucene, Span(0, 0), caseless=False)


BLOCKS = [
    *("0.0.0.0/0", "10.1.2.3/8", "172.16.0.0/12", "192.168.7.9/27", "127.0.0.1"),
    *("::/0", "::1", "fe80::/10", "fc00::/7", "2001:db8::/33", "0:0:1::/46", "::ffff:0:0/96"),
]


@pytest.mark.parametrize("block", BLOCKS)
def test_an_address_is_in_a_block_however_it_is_written(block: str) -> None:
    chance = random.Random(block)
    network = ipaddress.ip_network(block, strict=False)
    pattern = re.compile(block_regex(block, Span(0, 0)).replace(r"\z", r"\Z"))
    for _ in range(200):
        bits = network.max_prefixlen
        near = int(network.network_address) ^ (chance.getrandbits(bits) >> chance.randint(0, bits))
        zeros = ((1 << chance.randint(0, bits)) - 1) << chance.randint(0, bits)
        address = type(network.network_address)(
            (near & ~zeros if chance.random() < 0.5 else near) % (1 << bits)
        )
        for text in _texts(address):
            assert bool(pattern.match(text)) == (address in network), f"{text} in {block}"


def _texts(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Iterator[str]:
    yield str(address)
    if isinstance(address, ipaddress.IPv6Address):
        yield address.exploded.upper()
        groups = [int.from_bytes(address.packed[place : place + 2]) for place in range(0, 16, 2)]
        for first in range(8):
            for last in range(first + 1, 9):
                if not any(groups[first:last]):
                    before, behind = groups[:first], groups[last:]
                    shown = (f"{group:x}" for group in before), (f"{group:04x}" for group in behind)
                    yield "::".join(map(":".join, shown))


@pytest.mark.parametrize("block", ["10.0.0.0/33", "10.0.0", "x", "", "::1/129"])
def test_what_is_no_block_is_refused(block: str) -> None:
    with pytest.raises(QueryError, match="not a block of addresses"):
        block_regex(block, Span(0, 0))
