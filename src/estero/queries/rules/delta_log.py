"""The files that a table of Delta has now, by its log, as Delta's protocol lays it out.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md: a version of a table is a file of actions, one for
each line; a checkpoint, in one or several files of Parquet, has all that count up to a version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from estero.errors import DataError

LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
_KNOWN_FEATURES: Final = frozenset({"deletionVectors", "timestampNtz", "vacuumProtocolCheck"})
"""Features of readers that change nothing for files without a vector of deleted rows."""
_ACTIONS: Final = ("protocol", "add")
"""The actions of a checkpoint that say something here: what was removed is not in it."""


class DeltaFile(NamedTuple):
    """A file of a table: its path, its size, and the values of the columns by which the table is divided."""

    path: str
    size: int
    values: Mapping[str, str | None]


def newest_commit(listed: list[pyarrow.fs.FileInfo]) -> pyarrow.fs.FileInfo | None:
    """The file of the newest version among the files of a log; None where there is none."""
    commits = [one for one in listed if one.is_file and _COMMIT.fullmatch(one.base_name)]
    return max(commits, key=lambda one: str(one.base_name), default=None)


def delta_files(system: pyarrow.fs.FileSystem, path: str, place: str) -> list[DeltaFile]:
    """The files of the newest version of the table at a path; `place` is what errors call it.

    Raises `DataError` for a log that is not whole, and a table that is read in other ways.
    """
    try:
        files = _counting(_actions(system, f"{path}/{LOG}", place), place)
    except (ValueError, TypeError, KeyError, AttributeError, pa.ArrowException) as error:
        raise DataError(f"the log of the table of Delta is damaged: {error}", file=place) from error
    return [
        DeltaFile(f"{path}/{unquote(file['path'])}", file["size"], dict(file["partitionValues"] or ()))
        for file in files
    ]


def _counting(actions: Iterator[Mapping[str, Any]], place: str) -> list[Mapping[str, Any]]:
    """What the log says of the files that count behind all actions, by their paths."""
    files: dict[tuple[str, object], Mapping[str, Any]] = {}
    protocol: Mapping[str, Any] = {}
    for action in actions:
        if (added := action.get("add")) is not None:
            files[_key(added)] = added
        elif (removed := action.get("remove")) is not None:
            files.pop(_key(removed), None)
        elif action.get("protocol") is not None:
            protocol = action["protocol"]
    _check_protocol(protocol, place)
    for name, vector in files:
        if vector is not None:
            raise DataError(
                "the table of Delta has rows that are marked as deleted",
                file=place,
                hint="REORG TABLE … APPLY (PURGE), and set delta.enableDeletionVectors to false",
            )
        if urlsplit(name).scheme or name.startswith("/"):
            raise DataError(
                "the table of Delta has files of another one", file=place, hint="make a deep clone"
            )
    return sorted(files.values(), key=lambda file: str(file["path"]))


def _actions(system: pyarrow.fs.FileSystem, log: str, place: str) -> Iterator[Mapping[str, Any]]:
    """The actions that make the newest version, in order: those of a checkpoint, and of what is behind it."""
    names = {one.base_name for one in system.get_file_info(pyarrow.fs.FileSelector(log)) if one.is_file}
    commits = sorted(int(commit[1]) for name in names if (commit := _COMMIT.fullmatch(name)))
    parts: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if checkpoint := _CHECKPOINT.fullmatch(name):
            parts.setdefault((int(checkpoint[1]), int(checkpoint[2] or 1)), []).append(name)
    whole = {key: files for key, files in parts.items() if key[0] <= commits[-1] and len(files) == key[1]}
    last = max(whole, default=None)
    behind = -1 if last is None else last[0]
    if [version for version in commits if version > behind] != list(range(behind + 1, commits[-1] + 1)):
        raise DataError("the log of the table of Delta lacks versions", file=place)
    for name in sorted(whole[last]) if last is not None else ():
        yield from pyarrow.parquet.read_table(
            f"{log}/{name}", filesystem=system, columns=list(_ACTIONS), partitioning=None
        ).to_pylist()
    for version in range(behind + 1, commits[-1] + 1):
        with system.open_input_file(f"{log}/{version:020}.json") as file:
            yield from map(json.loads, file.read().splitlines())


def _key(file: Mapping[str, Any]) -> tuple[str, object]:
    """What tells the actions on files apart: the path, and which rows of it are deleted."""
    vector = file.get("deletionVector")
    return file["path"], vector and (vector["storageType"], vector["pathOrInlineDv"], vector.get("offset"))


def _check_protocol(protocol: Mapping[str, Any], place: str) -> None:
    """Raises `DataError` where a reader has to know more than this one."""
    features = set(protocol.get("readerFeatures") or ()) - _KNOWN_FEATURES
    if protocol.get("minReaderVersion") not in (1, 3) or features:
        said = ", ".join(sorted(features)) or f"version {protocol.get('minReaderVersion')} of its protocol"
        raise DataError(
            f"the table of Delta is read in a way that is not known here: {said}",
            file=place,
            hint="write the rules to a table without that, or as Parquet files",
        )
