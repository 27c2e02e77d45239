"""The railroad diagrams of the site show the grammars that the parser reads."""

from __future__ import annotations

import re
import sys

import pytest

from estero.language.syntax.parser_tables import GRAMMARS
from repository import REPOSITORY

sys.path.append(str(REPOSITORY / "docs" / "site"))

import grammar as diagrams


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_production_is_drawn_and_every_name_in_it_has_a_diagram(name: str) -> None:
    productions = diagrams.productions(name)
    names = [production.name for production in productions]
    assert set(GRAMMARS[name]) <= {*names, "pattern", "condition"}
    assert len(names) == len(set(names))
    words = diagrams.words_of(name)
    for production in productions:
        drawn = diagrams.diagram(production, words, "to-")
        assert re.fullmatch(r"<svg.*</svg>\n?", drawn, re.DOTALL)
        assert set(re.findall(r'href="#to-([^"]+)"', drawn)) <= set(names)


def test_a_diagram_shows_what_is_written() -> None:
    step = next(production for production in diagrams.productions("ceql") if production.name == "absent")
    drawn = diagrams.diagram(step, diagrams.words_of("ceql"), "")
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert list(dict.fromkeys(texts)) == ["NOT", "(", "pattern", ")"]  # a name with a link is drawn twice


def test_every_grammar_has_its_place_on_the_page() -> None:
    page = (REPOSITORY / "docs" / "grammar.md").read_text("utf-8")
    assert re.findall(r"^```\{grammar\} (\w+)$", page, re.MULTILINE) == list(GRAMMARS)
