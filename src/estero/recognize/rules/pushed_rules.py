"""The answers of a set of rules to one push."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from estero.answers.held_run import HeldRun
from estero.answers.rule_answers import RulesRun
from estero.answers.rule_rows import RuleTable, rows_of, rule_schema
from estero.answers.run import Run
from estero.recognize.recognizers.increment import Turn
from estero.recognize.rules.group_recognition import GroupRecognition
from estero.recognize.rules.rule_reading import GroupSets


@dataclass(frozen=True, slots=True)
class PushedRules(RulesRun):
    """The compact sets of all rules that one push decides; `groups` has the group of each rule."""

    groups: dict[str, GroupRecognition]
    sets: GroupSets
    time: pa.DataType | None
    turn: Turn
    number: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the rules, in order."""
        return tuple(self.groups)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the common table."""
        return rule_schema(self.time)

    def alone(self, name: str) -> Run:
        """The complex events of one rule, which stay in memory."""
        group = self.groups[name]
        rows = [rows_of(table, name) for table in self.turn.steps(self.number, self._of(group))]
        schema = group.recognition.reader.schema
        return HeldRun(pa.Table.from_batches(rows, schema), group.plans[name].text)

    def tables(self) -> Iterator[RuleTable]:
        """The complex events of all rules."""
        return self.turn.steps(self.number, self._of(None))

    def placed_rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the complex events of all rules in the common table."""
        rows = (batch for group, ended in self.sets for batch in group.placed_rows(ended))
        return self.turn.steps(self.number, rows)

    def counts(self) -> dict[str, int]:
        """The exact number of complex events of each rule, by name."""
        total = dict.fromkeys(self.groups, 0)
        self.turn.check(self.number)
        with self.turn.lock:
            for group, ended in self.sets:
                for name, number in zip(*group.counts(ended), strict=True):
                    total[name] += number
        return total

    def _of(self, wanted: GroupRecognition | None) -> Iterator[RuleTable]:
        for group, ended in self.sets:
            if wanted is None or group is wanted:
                yield from group.tables(ended)

    def __reduce__(self) -> NoReturn:
        raise TypeError("the answers of a push cannot be pickled: pickle their table, answers.to_arrow()")
