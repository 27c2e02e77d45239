"""The site has all pages and all public names, its tools are locked, and its grammar is the parser's."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest

import estero
import estero.spark
import estero.testing
from repository import REPOSITORY

DOCS = REPOSITORY / "docs"
SITE = DOCS / "site"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def settings() -> dict[str, str]:
    """The lists of patterns in the configuration, as text."""
    text = (SITE / "conf.py").read_text("utf-8")
    return dict(re.findall(r"^(\w+) = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL))


def pages_of_the_tables_of_contents() -> set[Path]:
    text = (SITE / "index.md").read_text("utf-8")
    entries = [
        line
        for table in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in table.splitlines()
        if line and not line.startswith(":")
    ]
    assert len(entries) == len(set(entries))
    return {(SITE / f"{entry}.md").resolve() for entry in entries}


def test_every_page_has_a_place_in_the_site_and_every_place_a_page() -> None:
    beside = [REPOSITORY / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")]
    trees = ("docs/**/*.md", "examples/**/*.md", "benchmarks/*.md")
    pages = {page.resolve() for tree in trees for page in REPOSITORY.glob(tree)}
    listed = pages_of_the_tables_of_contents()
    assert listed == (pages | set(beside) | {REPOSITORY / "tests" / "README.md"}) - {SITE / "index.md"}
    patterns = re.findall(r'"([^"]+)"', settings()["include_patterns"])
    for page in listed:
        name = page.relative_to(REPOSITORY).as_posix()
        assert any(fnmatch(name, pattern) for pattern in patterns), name


def test_the_tools_of_the_site_are_locked() -> None:
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    assert {"include-group": "docs"} in groups["dev"]
    locked = (REPOSITORY / "requirements.lock").read_text("utf-8")
    for wanted in groups["docs"]:
        name = wanted.partition(">")[0]
        assert re.search(rf"^{name}==", locked, re.MULTILINE), wanted


@pytest.mark.parametrize("module", [estero, estero.spark, estero.testing], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    name = module.__name__
    page = (SITE / "api" / f"{name.rpartition('.')[2]}.md").read_text("utf-8")
    shown = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", page, re.MULTILINE)
    assert sorted(shown) == sorted(module.__all__)


@pytest.mark.parametrize(
    "page",
    [*TUTORIALS, *SITE.rglob("*.md"), *(REPOSITORY / "examples").rglob("*.md")],
    ids=lambda page: page.relative_to(REPOSITORY).as_posix(),
)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text("utf-8")):
        assert (page.parent / target).exists(), target
