"""Metadata of rules, as columns after the names of the rules in the common table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from estero.language.tree.names import some, suggestion

_PREFIX: Final = "rule_"
_ENCODED: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True, slots=True)
class RuleColumns:
    """The columns ``rule_…`` for metadata keys: the `values` of all rules by key, in the order of `names`.

    They are dictionary-encoded texts with the same dictionary in all batches, or plain ones unless they are
    `encoded`. A rule without a value for a key has NULL.
    """

    names: pa.Array
    values: Mapping[str, pa.DictionaryArray]
    encoded: bool = True

    @classmethod
    def of(
        cls, words: Iterable[str], metadata: Mapping[str, Mapping[str, str]], *, encoded: bool = True
    ) -> RuleColumns:
        """The columns for some keys of the metadata, which is given by rule and key."""
        said = {
            word: pa.array([own.get(word) for own in metadata.values()], pa.string()).dictionary_encode()
            for word in dict.fromkeys(words)
        }
        return cls(pa.array(metadata, pa.string()), said, encoded)

    def schema(self, common: pa.Schema) -> pa.Schema:
        """The columns of the common table with these after the name of the rule."""
        if not self.values:
            return common
        rule, *others = common
        return pa.schema([rule, *self._fields(), *others], common.metadata)

    def added(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of the common table with these columns."""
        if not self.values:
            return rows
        rule, *others = rows.columns
        places = pc.index_in(rule, value_set=self.names)
        said = [self._taken(values, places) for values in self.values.values()]
        return pa.RecordBatch.from_arrays([rule, *said, *others], schema=self.schema(rows.schema))

    def before(self, name: str, rows: pa.Table) -> pa.Table:
        """Rows of one rule with these columns in front, except those with the name of one of its own."""
        places = pa.array([pc.index(self.names, name).as_py()] * rows.num_rows, pa.int32())
        own = set(rows.column_names)
        for place, (field, values) in enumerate(zip(self._fields(), self.values.values(), strict=True)):
            if field.name not in own:
                rows = rows.add_column(min(place, rows.num_columns), field, self._taken(values, places))
        return rows

    def _fields(self) -> list[pa.Field]:
        kind = _ENCODED if self.encoded else pa.string()
        return [pa.field(f"{_PREFIX}{word}", kind) for word in self.values]

    def _taken(self, values: pa.DictionaryArray, places: pa.Array) -> pa.Array:
        codes = values.indices.take(places)
        if not self.encoded:
            return values.dictionary.take(codes)
        return pa.DictionaryArray.from_arrays(codes, values.dictionary)


NOTHING_SAID: Final = RuleColumns(pa.nulls(0, pa.string()), {})  # an array made of a list loads pandas
"""No columns."""


def words_of(asked: str | Sequence[str], metadata: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """The requested metadata keys; raises ValueError for one that no rule has."""
    words = (asked,) if isinstance(asked, str) else tuple(dict.fromkeys(asked))
    known = sorted({word for own in metadata.values() for word in own})
    for word in words:
        if word not in known:
            existing = (
                f"there is {some(known, most=12, word='and')}" if known else "nothing is said of these rules"
            )
            hint = suggestion(word, known)
            raise ValueError(f"no rule has the metadata {word!r}: {f'{hint} ' if hint else ''}{existing}")
    return words
