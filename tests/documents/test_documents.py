"""The Python of the README and the guide runs, and what they promise is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from repository import REPOSITORY

DOCUMENTS = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
BESIDE = [REPOSITORY / name for name in ("CONTRIBUTING.md", "SECURITY.md", "tests/README.md")]
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks(document: Path) -> list[tuple[str, str]]:
    """Blocks of Python, each with the text that it prints where the document shows it."""
    return BLOCK.findall(document.read_text(encoding="utf-8"))


@pytest.mark.spark
@pytest.mark.parametrize("document", [each for each in DOCUMENTS if blocks(each)], ids=lambda path: path.name)
def test_the_code_of_a_document_runs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code, shown in blocks(document):
        exec(compile(code, document.name, "exec"), names)
        printed = capsys.readouterr().out
        assert not shown or printed == shown


@pytest.mark.parametrize("document", [*DOCUMENTS, *BESIDE], ids=lambda path: path.name)
def test_the_links_of_a_document_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_the_commands_of_the_readme_are_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)", (REPOSITORY / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_tour_names_what_is_there() -> None:
    tour = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = re.findall(r"`([\w/]+/(?:\w+\.py)?)`(?:\s`([\w.]+)`)?", tour)
    assert len(steps) > 30
    for path, name in steps:
        beside = path.startswith(("benchmarks/", "kernels/"))
        file = REPOSITORY / path if beside else REPOSITORY / "src" / "estero" / path
        assert file.exists(), path
        for part in name.split(".") if name else ():
            assert re.search(rf"(def|class) {part}\b", file.read_text(encoding="utf-8")), f"{path} {part}"


def test_the_changes_are_lines_that_can_be_read_and_say_each_thing_once() -> None:
    lines = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 120] == []
    for section in "\n".join(lines).split("\n\n"):
        subjects = re.findall(r"^- \*\*(.+?)\*\*", section, re.MULTILINE)
        assert [subject for subject in subjects if subjects.count(subject) > 1] == []
