"""Ids of answers, which stay the same when an answer is given again, so that repetitions are recognized."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from estero.classify.arrays import texts_of
from estero.errors import DataError

ID: Final = "answer_id"
"""The column with the id of an answer."""


class AnswerIds:
    """The ids of answers to one batch of events: digests of its origin and of the answers' columns.

    Answers with equal columns are numbered.
    """

    def __init__(self, *origin: object) -> None:
        self._origin = origin
        self._alike: dict[str, int] = {}

    def of(self, columns: Sequence[pa.Array]) -> pa.Array:
        """An id for each row of some columns."""
        return texts_of(list(self._ids(columns)), pa.string())

    def _ids(self, columns: Sequence[pa.Array]) -> Iterator[str]:
        for parts in zip(*(column.to_pylist() for column in columns), strict=True):
            said = repr((*self._origin, *parts)).encode()
            digest = hashlib.blake2b(said, digest_size=12).hexdigest()
            number = self._alike[digest] = self._alike.get(digest, 0) + 1
            yield digest if number == 1 else f"{digest}-{number}"


def refuse_taken(answers: pa.Schema, names: Sequence[str], who: str) -> None:
    """Raises `DataError` if answers already have a column that `who` adds."""
    for name in names:
        if name in answers.names:
            raise DataError(
                f"answers have a column {name} already, which {who} adds",
                hint="rename the label or the key with AS",
            )
