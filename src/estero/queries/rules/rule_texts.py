"""The texts by which changing rules are stored, and the version of a set of rules."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from estero.queries.query import Query
from estero.queries.rules.rule_set import RuleSet, read_rule
from estero.queries.texts import eql

CEQL, EQL, SIGMA = "", "eql\n", "sigma\n"
"""The prefixes of the texts of rules, by language."""
LANGUAGES: Final = {"ceql": CEQL, "eql": EQL, "sigma": SIGMA}


def query_of_text(name: str, text: str) -> Query:
    """The query of a stored text."""
    if text.startswith(EQL):
        return eql(text.removeprefix(EQL))
    if text.startswith(SIGMA):
        from estero.queries.sigma import sigma_named

        return sigma_named(name, text.removeprefix(SIGMA))
    return read_rule(name, text)


def version_of(texts: Mapping[str, str]) -> str:
    """A short digest of a set of rules: of the names and the texts.

    >>> version_of({"a": "SELECT * WHERE A"}) == version_of({"b": "SELECT * WHERE A"})
    False
    """
    said = repr(sorted(texts.items())).encode()
    return hashlib.blake2b(said, digest_size=4).hexdigest()


def texts_of(rules: RuleSet | Query) -> dict[str, str]:
    """The texts of rules that do not change, for their version."""
    if isinstance(rules, Query):
        return {"": str(rules)}
    return {name: str(rules[name]) for name in rules}
