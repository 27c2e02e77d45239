"""Rules in the rows of a table, which may change while a stream runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from estero.arguments import checked
from estero.errors import DataError, EsteroError, QueryError
from estero.language.tree.names import some
from estero.queries.query import Query
from estero.queries.rules import delta_table
from estero.queries.rules.rule_directory import RuleFiles, directory_of
from estero.queries.rules.rule_files import RuleText
from estero.queries.rules.rule_origin import RuleOrigin
from estero.queries.rules.rule_set import RuleSet
from estero.queries.rules.rule_texts import LANGUAGES, query_of_text
from estero.queries.statement import raise_first

NAME, QUERY, LANGUAGE = "name", "query", "language"
"""The columns of a table of rules; ``language`` is optional."""
_OF_CATALOG: Final = re.compile(r"\w+(?:\.\w+){0,2}")
_LOGS: Final = {"_spark_metadata": "Spark's file sink", "metadata": "Iceberg"}
"""The subdirectories of tables not all of whose files are valid, which are not supported."""
_MOST: Final = 1 << 26
"""The largest total size of the files of a table of rules, in bytes."""
Stamps = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class RuleTable:
    """A table of rules (`estero.rule_table` makes one): a path, or the name of a table in Spark's catalog."""

    place: str

    @property
    def in_catalog(self) -> bool:
        """Whether it is the name of a table in Spark's catalog."""
        return _OF_CATALOG.fullmatch(self.place) is not None and not self.place.endswith(".parquet")

    def rules(self) -> RuleSet:
        """The current rules of the table, in the order of its rows.

        Raises `QueryError` with all errors of all rules, each with its name, and `DataError` if the table
        cannot be read.
        """
        read: dict[str, Query] = {}
        texts: dict[str, RuleText] = {}
        errors: list[QueryError] = []
        for row in _rows(self, _stamps(self)):
            name = row[NAME] or ""
            if name in texts:
                raise _twice(name, self)
            texts[name] = RuleText(row[QUERY] or "", metadata=_said(row))
            try:
                read[name] = query_of_text(name, _text_of(row, self))
            except QueryError as error:
                errors += [error, *error.others]
                error.others = ()
        raise_first(errors)
        return RuleSet(read, texts)

    def __repr__(self) -> str:
        return f"estero.rule_table({self.place!r})"


@checked
def rule_table(table: str | PathLike[str]) -> RuleTable:
    """A table with one rule per row (columns ``name`` and ``query``), accepted wherever a set of rules is.

    `table` is a Parquet file, a directory of Parquet files, or a Delta table, local or at an address that
    Arrow supports (``s3://…``), or the name of a Parquet or Delta table in Spark's catalog (``rules``,
    ``catalog.db.rules``). A text of words and dots that does not end in ``.parquet`` is a name; a ``Path``
    never is. An optional column ``language`` contains ``ceql`` (the default, also for NULL), ``eql`` or
    ``sigma``; further columns, such as ``title`` or ``level``, become metadata of the rules.

    On a stream (`estero.spark.recognize`, `estero.live`), the rows may change while it runs;
    `RuleTable.rules` returns the current ones.
    """
    place = fspath(table)
    if isinstance(table, PathLike) and _OF_CATALOG.fullmatch(place):
        place = f"./{place}"
    return RuleTable(place)


class RuleRows(RuleOrigin):
    """The rules in a Parquet or Delta table, with `values` for their parameters.

    `changed` compares names, times and sizes of the files, or the version of a Delta table, and reads all of
    them if one has changed.
    """

    called = "a table of rules"

    def __init__(self, table: RuleTable, values: Mapping[str, object]) -> None:
        super().__init__(values)
        self._table = table
        self._seen: Stamps | None = None

    def changed(self) -> dict[str, str] | None:
        """The texts of all rules, by name in order; None if they are the same as at the last call.

        Raises `DataError` if the table cannot be read.
        """
        stamps = _stamps(self._table)
        if stamps == self._seen:
            return None
        rows = list(_rows(self._table, stamps))
        self._seen = stamps
        texts: dict[str, str] = {}
        said: dict[str, Mapping[str, str]] = {}
        for row in rows:
            name = row[NAME] or ""
            try:
                if name in texts:
                    raise _twice(name, self._table)
                text = _text_of(row, self._table)
                self.know(name, text, query_of_text(name, text))
                texts[name] = text
            except (EsteroError, ValueError) as error:
                self.refuse(name, error)
                if name in self.texts:
                    texts[name] = self.texts[name]
            said[name] = _said(row)
        self.metadata = said
        return texts if texts != self.texts else None


def origin_of(place: Path | RuleTable, values: Mapping[str, object] | None = None) -> RuleOrigin:
    """The rules in a directory or a table, which may change, with `values` for their parameters.

    Raises `DataError` if the directory or the table does not exist.
    """
    known = dict(values or {})
    if isinstance(place, RuleTable):
        _stamps(place)
        return RuleRows(place, known)
    return RuleFiles(directory_of(place), known)


def _twice(name: str, table: RuleTable) -> DataError:
    return DataError(f"two rows have the rule {name!r}", file=table.place, hint="leave one of them out")


def _text_of(row: Mapping[str, str | None], table: RuleTable) -> str:
    language, query = row.get(LANGUAGE) or "ceql", row[QUERY]
    if language.lower() not in LANGUAGES:
        raise DataError(
            f"the rule {row[NAME]!r} is in an unknown language, {language!r}",
            file=table.place,
            hint=f"languages of rules are {some(LANGUAGES, word='and')}",
        )
    if query is None:
        raise DataError(
            f"the rule {row[NAME]!r} has no query: it is NULL",
            file=table.place,
            hint="write its text, or delete the row",
        )
    return LANGUAGES[language.lower()] + query


def _said(row: Mapping[str, str | None]) -> Mapping[str, str]:
    """The metadata of a rule: its further columns."""
    return {
        word: value
        for word, value in row.items()
        if word not in {NAME, QUERY, LANGUAGE} and value is not None
    }


def _stamps(table: RuleTable) -> Stamps:
    """The paths, times and sizes of the files of a table; for a Delta table, the version instead of a time.

    Raises `DataError` if there are no files, and for formats whose files are not all valid.
    """
    system, path = _file_system(table)
    info = system.get_file_info(path)
    if info.type is pyarrow.fs.FileType.File:
        listed = [info]
    elif info.type is pyarrow.fs.FileType.Directory:
        if _is_delta(system, path):
            return ((path, delta_table.version_of(_address(table)), 0),)
        listed = _listed(system, path, table)
    else:
        listed = []
    if not listed:
        raise DataError("there is no table of rules: no file of Parquet", file=table.place)
    stamps = tuple(sorted((one.path, one.mtime_ns or 0, one.size) for one in listed))
    _check_size(sum(size for *_, size in stamps), table)
    return stamps


def _is_delta(system: pyarrow.fs.FileSystem, path: str) -> bool:
    return system.get_file_info(f"{path}/{delta_table.LOG}").type is pyarrow.fs.FileType.Directory


def _listed(system: pyarrow.fs.FileSystem, path: str, table: RuleTable) -> list[pyarrow.fs.FileInfo]:
    """The Parquet files of a directory."""
    inside = system.get_file_info(pyarrow.fs.FileSelector(path, recursive=True))
    for one in inside:
        if (kind := _LOGS.get(one.base_name)) is not None and one.type is pyarrow.fs.FileType.Directory:
            raise DataError(
                f"a table of {kind} has files that do not count any more",
                file=table.place,
                hint="write the rules as Parquet files; or take them as they are now: estero.rules({…})",
            )
    return [one for one in inside if one.is_file and not _is_hidden(one.path.removeprefix(path))]


def _check_size(size: int, table: RuleTable) -> None:
    if size > _MOST:
        raise DataError(f"more than {_MOST:,} bytes are not a table of rules", file=table.place)


def _rows(table: RuleTable, stamps: Stamps) -> Iterator[dict[str, str | None]]:
    """The rows as texts: those of Parquet files in order, those of a Delta table by name."""
    system, path = _file_system(table)
    if _is_delta(system, path):
        address = _address(table)
        _check_size(delta_table.size_of(address), table)
        yield from _texts(delta_table.rows_of(address), table.place, by_name=True)
        return
    for file, *_ in stamps:
        try:
            read = pyarrow.parquet.read_table(file, filesystem=system, partitioning=None)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataError(f"this is not a Parquet file: {error}", file=file) from error
        yield from _texts(read, file)


def _texts(read: pa.Table, place: str, *, by_name: bool = False) -> list[dict[str, str | None]]:
    """The rows of a table of rules, with all plain values as texts."""
    for column in (NAME, QUERY):
        if column not in read.column_names:
            raise DataError(
                f"a table of rules has the columns {NAME} and {QUERY}, and this one has no {column}",
                file=place,
                hint=f"its columns are {', '.join(read.column_names)}",
            )
    texts = pa.table(
        {
            name: read.column(name).cast(pa.string())
            for name in read.column_names
            if _is_plain(read.schema.field(name).type)
        }
    )
    rows: list[dict[str, str | None]] = (texts.sort_by(NAME) if by_name else texts).to_pylist()
    return rows


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _file_system(table: RuleTable) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system of a table, and its path there."""
    if table.in_catalog:
        raise DataError(
            f"{table.place} is the name of a table in the catalog of Spark",
            hint=f"say its path, or rule_table(Path({table.place!r})) for a file here",
        )
    if table.place.startswith("file:/"):  # Hadoop writes such addresses with one slash or three
        return pyarrow.fs.LocalFileSystem(), unquote(urlsplit(table.place).path)
    if "://" not in table.place:
        return pyarrow.fs.LocalFileSystem(), str(Path(table.place).absolute())
    system, path = pyarrow.fs.FileSystem.from_uri(table.place)
    return system, path


def _address(table: RuleTable) -> str:
    """The path or the address of a table, for deltalake."""
    system, path = _file_system(table)
    return path if isinstance(system, pyarrow.fs.LocalFileSystem) else table.place


def _is_hidden(path: str) -> bool:
    """Whether Spark ignores a file because a part of its path begins with ``_`` or ``.``."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))
