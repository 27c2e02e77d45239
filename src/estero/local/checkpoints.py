"""What a stream has to remember: a state now and then, and since then a journal of what was read.

A batch is noted in the journal before it is recognized: where it ends in the source, and its events if the
source cannot give them again. So a stream that is started anew reads the batches behind its state as they
were, and gives the same answers with the same numbers; a sink that has some of them leaves these out.
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
    """A stream behind the batch `number`: its recognizer, the place in its source, and its rules.

    `stream` is the stream's own name, by which sinks know it; `schema` are its columns as bytes of Arrow;
    `delivered` the last batches that the sinks were given whole; `rules` are the texts of rules in files.
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
    """A batch of the journal, another set of `rules`, the time that has `passed`, or what was `delivered`.

    Behind the batch something was `shed`, to that limit.
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

    Each step leaves it whole: the state is replaced by a rename, and the journal of the new one begins empty.
    What the process has written is there if it is killed; the state also if the machine is.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with _as_data_errors(directory):
            make_folder(directory.absolute())
            self._lock = _locked(directory)
        self._journal: int | None = None

    def state(self) -> State | None:
        """The last state; None before the first one. Raises `DataError` for one that is damaged."""
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
        """Puts a state in the place of the last one."""
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
        """What the journal has behind the state `number`; a last line that is not whole does not count.

        Raises `DataError` for any other line that is none of a journal.
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
        """Opens the journal behind the state `number`, cuts off a broken last line, and drops older ones."""
        self.close_journal()
        path = self._path(number)
        self._journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        whole = path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._journal, whole)
        for other in self._directory.glob("journal-*"):
            if other != path:
                other.unlink()

    def note_batch(self, number: int, after: Offsets, texts: Sequence[bytes] | None) -> None:
        """Notes a batch before anything is done with it."""
        kept = None if texts is None else [b64encode(text).decode() for text in texts]
        self._note({"number": number, "after": after, "texts": kept})

    def note_rules(self, number: int, rules: dict[str, str]) -> None:
        """Notes the rules from the batch behind `number` on."""
        self._note({"number": number, "rules": rules})

    def note_passed(self, number: int, ticks: int) -> None:
        """Notes that no event before a time comes behind a batch; what that decides has this number."""
        self._note({"number": number, "passed": ticks})

    def note_shed(self, number: int, limit: int | str) -> None:
        """Notes that partitions are shed behind a batch, until the state takes no more than that."""
        self._note({"number": number, "shed": limit})

    def note_delivered(self, delivered: list[int]) -> None:
        """Notes up to which batch the sinks have all answers and all dead letters."""
        self._note({"delivered": delivered})

    def close_journal(self) -> None:
        """Closes the journal."""
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None

    def close(self) -> None:
        """Closes the journal, and lets other processes in."""
        self.close_journal()
        os.close(self._lock)

    def _note(self, what: dict[str, Any]) -> None:
        if self._journal is None:
            raise ValueError("the journal is not open")
        line = json.dumps(what).encode() + b"\n"
        written = 0
        with _as_data_errors(self._directory):
            while written < len(line):
                written += os.write(self._journal, line[written:])

    def _path(self, number: int) -> Path:
        return self._directory / f"journal-{number}"


@contextmanager
def _as_data_errors(directory: Path) -> Iterator[None]:
    """What the system says where nothing can be written, as an error that names the directory."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the checkpoint cannot be written: {error.strerror or error}",
            file=str(directory),
            hint="see to its disk and its permissions, and start the stream again: it goes on from there",
        ) from error


def _locked(directory: Path) -> int:
    """A file of the directory that this process alone has locked; the system unlocks it as it ends."""
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
    """Has the disk keep the names in a directory, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
