"""The answers of a set of rules: all of them in one table, and those of each rule by its name."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estero.answers.answer import Answer
from estero.answers.answer_columns import AnswerColumns
from estero.answers.complex_event import ComplexEvent, complex_events
from estero.answers.frames import Batches
from estero.answers.in_memory import OBJECTS_TO_ARROW, within
from estero.answers.rule_metadata import NOTHING_SAID, RuleColumns
from estero.answers.rule_rows import RuleTable, by_rule, with_json, with_texts, write_lines
from estero.answers.run import Run
from estero.answers.shown_values import held_by_python
from estero.answers.writers import format_in_name, write_answer
from estero.arguments import checked, shown
from estero.classify.arrays import array_of
from estero.errors import legible
from estero.language.tree.names import suggestion


class RulesRun(Protocol):
    """A set of rules on one source of events, ready to be evaluated as often as its answers are read."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table."""

    def alone(self, name: str) -> Run:
        """The run of one rule by itself."""

    def tables(self) -> Iterator[RuleTable]:
        """The complex events of all rules."""

    def placed_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the common table, which has only the positions of events."""

    def counts(self) -> dict[str, int]:
        """The exact number of complex events of each rule, by name."""


@checked
class RuleAnswers(Batches):
    """The complex events of a set of rules, evaluated lazily.

    ``answers["name"]`` is the `Answer` of one rule, the same as of its query alone. The common table of all
    rules has the columns ``rule`` (string), ``start`` and ``end`` (int64 positions), ``start_time`` and
    ``end_time`` where there is a time, ``keys`` (a map from partition columns to their values as text) and
    ``positions`` (a map from labels to positions). Iteration gives complex events with the name as `rule`.

    Each question reads the events once for all rules with the same partition keys. Batches come as events are
    read, ordered by end within each rule; `to_arrow` and frames are ordered by end, then by rule. Polars
    shows maps as lists of structs of key and value. Columns of metadata such as ``rule_title`` follow
    ``rule``: dictionary-encoded strings, NULL for a rule that has no such entry.
    """

    def __init__(self, run: RulesRun, said: RuleColumns = NOTHING_SAID) -> None:
        self._run = run
        self._said = said

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return self._run.names

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table, known without running anything."""
        return self._said.schema(self._run.schema)

    def __getitem__(self, name: str) -> Answer:
        """The answer of one rule; KeyError for a name that the set does not have."""
        if not isinstance(name, str):
            raise TypeError(f"an answer is found by the name of its rule, not {shown(name)}")
        if name not in self.names:
            hint = suggestion(name, list(self.names))
            raise KeyError(f"there is no rule {name!r}" + (f": {hint}" if hint else ""))
        return Answer(self._run.alone(name))

    def __iter__(self) -> Iterator[ComplexEvent]:
        layouts: dict[pa.Schema, AnswerColumns] = {}
        for names, rules, rows in self._run.tables():
            layout = layouts.setdefault(rows.schema, AnswerColumns.of(rows.schema))
            for rule, complex_event in zip(rules.tolist(), complex_events(rows, layout), strict=True):
                complex_event.rule = names[rule]
                yield complex_event

    def __bool__(self) -> bool:
        return next(self._run.tables(), None) is not None

    def count(self) -> int:
        """The exact number of complex events of all rules, enumerated only where they have to be checked."""
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """The number of complex events of each rule, by name, with 0 for rules without any."""
        return self._run.counts()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The common table as record batches of `schema`, made as they are asked for."""
        return map(self._said.added, self._run.placed_rows())

    def tables(self) -> dict[str, pa.Table]:
        """The complex events of each rule as an Arrow table with the columns of its query, by name.

        The events are read once for all rules. A rule without complex events has a table without rows.
        Columns of metadata, if asked for, come first.
        """
        tables: dict[str, list[pa.Table]] = {name: [] for name in self.names}
        for name, table in by_rule(self._run.tables()):
            tables[name].append(table)
        return {
            name: self._said.before(
                name, pa.concat_tables(own) if own else self._run.alone(name).schema.empty_table()
            )
            for name, own in tables.items()
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """The common table in memory: a dict for each complex event, with dicts for maps."""
        with held_by_python("a value of these answers"):
            rows: list[dict[str, Any]] = self._held("to_dicts()", OBJECTS_TO_ARROW).to_pylist(
                maps_as_pydicts="strict"
            )
        return rows

    def write(self, target: str | PathLike[str] | BinaryIO, *, format: str | None = None) -> int:
        """Writes the common table, batch by batch, to a path or an open binary file; returns its rows.

        As `Answer.write`: parquet, csv, jsonl or arrow, and a file appears when it is complete. Maps are
        objects of JSON in lines of JSON, and their texts in CSV.
        """
        chosen = format or (format_in_name(Path(target)) if isinstance(target, str | PathLike) else "")
        if chosen not in {"csv", "jsonl"}:
            return write_answer(target, self.schema, self.batches(), format=format)
        schema = with_texts(self.schema)
        batches = (with_json(batch, schema) for batch in self.batches())
        if chosen == "csv":
            return write_answer(target, schema, batches, format=chosen)
        return write_lines(target, batches)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
        return legible(f"RuleAnswers({len(self.names)} rules: {shown})")

    def _held(self, asked: str, factor: int = 1) -> pa.Table:
        batches = within(self.batches(), self.count, asked=asked, factor=factor)
        table = pa.Table.from_batches(batches, self.schema)
        rules = pc.index_in(table.column("rule"), pa.array(self.names, pa.string())).to_numpy()
        order = np.lexsort((rules, table.column("end").to_numpy()))
        return table.take(array_of(order))
