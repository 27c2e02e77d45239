"""Answers whose rows are held in memory, as an answer reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from estero.answers.answer import Run
from estero.engine.walk.share import Share


class HeldRows(Run, ABC):
    """Rows that are held, which are neither divided nor asked about further."""

    @property
    @abstractmethod
    def table(self) -> pa.Table:
        """All rows, by end and start."""

    @property
    @abstractmethod
    def whole_answer(self) -> str:
        """Where to ask for what these rows cannot tell."""

    @property
    def counts_quickly(self) -> bool:
        """Always: the rows are held."""
        return True

    def tables(self, *, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, or the first `limit` of them."""
        yield from self.table.slice(0, limit).to_batches()

    def count(self, *, enough: int | None = None) -> int:
        """The number of rows."""
        del enough
        return int(self.table.num_rows)

    def at(self, indexes: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """The rows with these indexes."""
        wanted = [each for each in indexes if each < self.table.num_rows]
        yield from self.table.take(pa.array(wanted, pa.int64())).combine_chunks().to_batches()

    def undecided(self) -> Run:
        """None: what is given is decided."""
        return GivenRows(self.schema.empty_table(), self.query)

    def funnel(self, **asked: object) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: a funnel is of all starts."""
        raise ValueError(f"a funnel is of all starts: ask {self.whole_answer} for it")

    def partials(self, **asked: object) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: these are partial matches, or with them."""
        raise ValueError(f"partial matches are of a whole stream: ask {self.whole_answer} for them")

    def why_not(self, sample: int | None, seconds: float | None) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: why not more is asked of the whole."""
        raise ValueError(f"why not more is asked of a whole stream: ask {self.whole_answer}")

    def shared(self, share: Share) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: they are not shared."""
        raise ValueError(f"these rows are not shared: divide {self.whole_answer} into shares")


@dataclass(frozen=True, slots=True)
class GivenRows(HeldRows):
    """The rows that one push gives, of the query with this text."""

    given: pa.Table
    text: str

    @property
    def table(self) -> pa.Table:
        """All rows, by end and start."""
        return self.given

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        return self.given.schema

    @property
    def query(self) -> str:
        """The canonical text of the query."""
        return self.text

    @property
    def whole_answer(self) -> str:
        """Where to ask for what these rows cannot tell."""
        return "the answer of query.run"

    def values(self, attribute: str, first: int, last: int) -> NoReturn:  # noqa: ARG002
        """Raises ValueError: the events are gone."""
        raise ValueError("the events of a recognizer are not kept: ask the answer of query.run for plot(y=…)")
