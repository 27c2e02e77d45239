"""Checkpoints of a stream: a state from time to time, and a journal of what was read since.

A batch is written to the journal before it is recognized: its end in the source, and its events if the source
cannot provide them again. A restarted stream therefore reads the batches after its state as they were, and
returns the same answers with the same numbers; a sink that already has some of them skips these.
"""

from __future__ import annotations

import hashlib
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from estero.errors import DataError
from estero.local.raw import Offsets
from estero.system.private_folders import make_folder

_FORMAT: Final = 1
_STATE: Final = "state"


@dataclass(frozen=True, slots=True)
class State:
    """A stream after the batch `number`: its recognizer, the place in its source, and its rules.

    - `stream`: the identity of the stream, which sinks store.
    - `schema`: its columns, as bytes of Arrow.
    - `delivered`: the last batches that the sinks have completely.
    - `rules`: the texts of rules in files.
    """

    stream: str
    number: int = -1
    offsets: Offsets | None = None
    recognizer: bytes = b""
    schema: bytes = b""
    rules: dict[str, str] | None = None
    delivered: list[int] = field(default_factory=lambda: [-1, -1])
    counters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Noted:
    """A line of the journal: a batch, new `rules`, time that has `passed`, or batches `delivered`.

    If partitions were `shed` after the batch, it has the limit.
    """

    number: int = -1
    after: Offsets | None = None
    texts: tuple[bytes, ...] | None = None
    rules: dict[str, str] | None = None
    delivered: list[int] | None = None
    passed: int | None = None
    shed: int | str | None = None


class Checkpoint:
    """A directory with a state and a journal, for one process at a time.

    Each step leaves it complete: the state is replaced by a rename, and the journal of a new state begins
    empty. The journal survives the end of the process, and the state also a crash of the machine.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with _as_data_errors(directory):
            make_folder(directory.absolute())
            self._lock = _locked(directory)
        self._journal: int | None = None

    def state(self) -> State | None:
        """The last state; None before the first one. Raises `DataError` if it is damaged."""
        file = self._directory / _STATE
        if not file.is_file():
            return None
        try:
            digest, about, recognizer = file.read_bytes().split(b"\n", 2)
            if hashlib.blake2b(about + b"\n" + recognizer).hexdigest().encode() != digest:
                raise ValueError("another checksum")
            said = json.loads(about)
            if said.pop("format") != _FORMAT:
                raise ValueError("another format")
            return State(**said | {"recognizer": recognizer, "schema": b64decode(said["schema"])})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"this state of a stream cannot be read: {error}", file=str(file)) from error

    def write(self, state: State) -> None:
        """Replaces the last state."""
        about = asdict(state) | {"format": _FORMAT, "schema": b64encode(state.schema).decode()}
        del about["recognizer"]
        body = json.dumps(about).encode() + b"\n" + state.recognizer
        new = self._directory / f"{_STATE}.new"
        with _as_data_errors(self._directory), new.open("wb") as file:
            file.write(hashlib.blake2b(body).hexdigest().encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        with _as_data_errors(self._directory):
            new.replace(self._directory / _STATE)
            _sync(self._directory)

    def noted(self, number: int) -> Iterator[Noted]:
        """The journal after the state `number`; an incomplete last line is ignored.

        Raises `DataError` for any other invalid line.
        """
        file = self._path(number)
        if not file.is_file():
            return
        with file.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                try:
                    said = dict(json.loads(line))
                    if said.get("texts") is not None:
                        said["texts"] = tuple(map(b64decode, said["texts"]))
                    noted = Noted(**said)
                except (ValueError, TypeError) as error:
                    raise DataError("this journal of a stream cannot be read", file=str(file)) from error
                yield noted

    def begin(self, number: int) -> None:
        """Opens the journal after the state `number`, without a broken last line, and deletes older ones."""
        self.close_journal()
        path = self._path(number)
        self._journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        whole = path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._journal, whole)
        for other in self._directory.glob("journal-*"):
            if other != path:
                other.unlink()

    def note_batch(self, number: int, after: Offsets, texts: Sequence[bytes] | None) -> None:
        """Writes a batch to the journal, before it is processed."""
        kept = None if texts is None else [b64encode(text).decode() for text in texts]
        self._note({"number": number, "after": after, "texts": kept})

    def note_rules(self, number: int, rules: dict[str, str]) -> None:
        """Writes the rules that apply after the batch `number`."""
        self._note({"number": number, "rules": rules})

    def note_passed(self, number: int, ticks: int) -> None:
        """Writes that no events before a time follow a batch; answers decided by this have its number."""
        self._note({"number": number, "passed": ticks})

    def note_shed(self, number: int, limit: int | str) -> None:
        """Writes that partitions are shed after a batch until the state is within a limit."""
        self._note({"number": number, "shed": limit})

    def note_delivered(self, delivered: list[int]) -> None:
        """Writes the last batches whose answers and dead letters the sinks have completely."""
        self._note({"delivered": delivered})

    def close_journal(self) -> None:
        """Closes the journal."""
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None

    def close(self) -> None:
        """Closes the journal and releases the lock."""
        self.close_journal()
        os.close(self._lock)

    def _note(self, what: dict[str, Any]) -> None:
        if self._journal is None:
            raise ValueError("the journal is not open")
        line = json.dumps(what).encode() + b"\n"
        written = 0
        try:
            while written < len(line):
                written += os.write(self._journal, line[written:])
        except OSError as error:
            raise _unwritten(error, self._directory) from error

    def _path(self, number: int) -> Path:
        return self._directory / f"journal-{number}"


@contextmanager
def _as_data_errors(directory: Path) -> Iterator[None]:
    """A context manager that turns errors of the system into `DataError` with the name of the directory."""
    try:
        yield
    except OSError as error:
        raise _unwritten(error, directory) from error


def _unwritten(error: OSError, directory: Path) -> DataError:
    return DataError(
        f"the checkpoint cannot be written: {error.strerror or error}",
        file=str(directory),
        hint="see to its disk and its permissions, and start the stream again: it goes on from there",
    )


def _locked(directory: Path) -> int:
    """A file of the directory, locked by this process until it ends."""
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        import fcntl
    except ImportError:  # Windows
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise DataError("another process uses this checkpoint", file=str(directory)) from error
    return descriptor


def _sync(directory: Path) -> None:
    """Has the system write the names in a directory to disk, if it can."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
