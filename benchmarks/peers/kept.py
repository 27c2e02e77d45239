"""Figures in a file as they come, so that a run that was broken off goes on where it stopped.

Each line is JSON: first the terms of the run, then figures, each with its query, engine and length, and the
answers to each query over a short stream, with which all engines are compared. No figure is measured twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.session import Answers

Line = dict[str, Any]


class OtherTerms(Exception):
    """The file has figures that were measured in another way."""


class Kept:
    """What has been measured; also in a file, if there is one.

    `OtherTerms` if the file was begun under other terms than these.
    """

    def __init__(self, path: Path | None, terms: Line) -> None:
        self._path = path
        lines = _lines(path) if path else []
        self._answers: dict[str, Answers] = {}
        self.figures: list[Line] = []
        if not lines:
            self._write({"terms": terms})
        elif lines[0]["terms"] != terms:
            raise OtherTerms(
                f"{path} was begun with {lines[0]['terms']}, this run has {terms}: choose another file"
            )
        for line in lines[1:]:
            if "set" in line:
                self._answers[line["query"]] = [tuple(members) for members in line["set"]]
            else:
                self.figures.append(line)

    def answers(self, query: str) -> Answers | None:
        """The answers to a query over the short stream, if an engine has given them."""
        return self._answers.get(query)

    def keep_answers(self, query: str, answers: Answers) -> None:
        """Keeps what all engines have to say."""
        self._answers[query] = answers
        self._write({"query": query, "set": answers})

    def keep(self, line: Line) -> None:
        """Keeps a figure."""
        self.figures.append(line)
        self._write(line)

    def of(self, query: str, engine: str) -> list[Line]:
        """The figures of an engine for a query."""
        return [line for line in self.figures if (line["query"], line["engine"]) == (query, engine)]

    def wanted(self, query: str, engine: str, sizes: Sequence[int]) -> list[int]:
        """The lengths still to be measured: none after a problem, or after one that took too long."""
        lines = self.of(query, engine)
        if any("problem" in line or "over" in line for line in lines):
            return []
        done = {line["events"] for line in lines}
        return [size for size in sizes if size not in done]

    def _write(self, line: Line) -> None:
        if self._path:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _lines(path: Path) -> list[Line]:
    """The lines of a file; the last one only if it was written to its end."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]
