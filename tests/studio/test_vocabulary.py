"""The words that editors highlight are those of the grammar: in the page, and in the file for others."""

from __future__ import annotations

import json
import re
import runpy

import pytest

from estero import demo
from estero.language.syntax.parser import parser
from estero.language.syntax.vocabulary import vocabulary
from estero.language.tree.words import KEYWORDS
from estero.studio.examples import EXAMPLES
from repository import REPOSITORY

SCRIPT = REPOSITORY / "studio" / "vscode" / "grammar.py"


def test_the_file_for_editors_is_current() -> None:
    written = SCRIPT.with_name("ceql.tmLanguage.json").read_text(encoding="utf-8")
    assert written == runpy.run_path(str(SCRIPT))["text"](), "make grammar writes it anew"


def test_every_keyword_of_the_grammar_is_highlighted() -> None:
    words = vocabulary()
    named = {terminal.name.lstrip("_") for terminal in parser().terminals}
    assert {word for word in KEYWORDS if word in named} <= {*words["keyword"], *words["constant"]}
    assert not set(words["keyword"]) & set(words["modifier"]) - {"ANY"}


@pytest.mark.parametrize("text", [demo.QUERY, *(example.text for example in EXAMPLES)])
def test_what_the_file_highlights_is_what_the_words_are(text: str) -> None:
    rules = json.loads(SCRIPT.with_name("ceql.tmLanguage.json").read_text(encoding="utf-8"))["patterns"]
    keyword = next(rule["match"] for rule in rules if rule["name"].startswith("keyword.control"))
    found = {word.upper() for word in re.findall(keyword.replace("(?<![.$\\w])", r"\b"), text)}
    assert {"SELECT", "WHERE"} <= found <= {*vocabulary()["keyword"]}
