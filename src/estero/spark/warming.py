"""Kernels of a worker, ready before its first event: compiled by one process of a machine, read by the rest.

An executor starts a Python worker for each of its cores, all at once. On a machine whose kernel cache is
empty each of them would compile the same kernels for seconds. Here one compiles, and the others wait for it
and read the cache. A file in the temporary directory says that this has happened. What the driver has on disk
of these kernels it sends along, and then nobody compiles.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from estero.classify.column_names import is_working
from estero.engine.compiled.kernel_pack import pack, unpack
from estero.engine.jit import watched
from estero.engine.patience import patience
from estero.engine.walk.matches import Matches
from estero.engine.walk.roots import Roots
from estero.plan.plan import Plan
from estero.recognize.recognition import Recognition
from estero.system.private_files import exposure, lock_file, make_folder

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

    Sent = bytes | Broadcast[bytes]

Asked = tuple[Plan, pa.Schema]
"""A plan, and the columns of the events that it reads."""

_NO_ROOTS = Roots(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
_NO_MATCHES = Matches(
    *(np.empty(0, np.int64), np.empty(0, np.int64), np.zeros(1, np.int64)),
    *(np.empty(0, np.int64), np.empty(0, np.int32)),
)
_WARM: set[str] = set()
"""The families of kernels that this process has."""


def warm_up(
    asked: Asked,
    time: pa.DataType | None,
    *,
    snapshots: bool = False,
    sent: Sent | None = None,
) -> None:
    """Has the kernels for a plan compiled, once on this machine whichever process is first.

    `asked` and `time` are as `Recognition` takes them; `snapshots` asks for what writes state down, too;
    `sent` are kernels from the driver, which are not compiled where they can run. Kernels that only count are
    not among these.
    """
    plan, events = asked
    family = plan.kernels + "-deadlines" * bool(plan.deadlines) + "-state" * snapshots
    if family in _WARM:
        return
    patience.compile_first()
    with _alone(family):
        if sent is not None:
            unpack(sent if isinstance(sent, bytes) else sent.value)
        _call_kernels(plan, events, time, snapshots=snapshots)
    _WARM.add(family)


def kernels_to_send(
    session: SparkSession, asked: Sequence[Asked], time: pa.DataType | None, *, snapshots: bool = False
) -> Sent | None:
    """The kernels that `warm_up` would compile for plans, as far as this process, the driver, has them.

    None where it has none. Nothing is compiled here.
    """
    with watched() as kernels:
        for plan, events in asked:
            _call_kernels(plan, events, time, snapshots=snapshots)
    packed = pack(kernels)
    if packed is None or not hasattr(session, "sparkContext"):
        return packed
    return session.sparkContext.broadcast(packed)


def _call_kernels(plan: Plan, events: pa.Schema, time: pa.DataType | None, *, snapshots: bool) -> None:
    """Has each kernel called, on one event that no predicate wants."""
    waits = bool(plan.deadlines)
    if waits:
        waiting = Recognition(plan, events, time=time)
        deque(waiting.recognize(_nothing_special(events)), maxlen=0)
        deque(waiting.ended(), maxlen=0)
        plan = replace(plan, deadlines=(), wait=None)  # nothing waits before the other kernels
    recognition = Recognition(plan, events, time=time)
    deque(recognition.recognize(_nothing_special(events)), maxlen=0)
    deque(recognition.recognizer.matches(_NO_ROOTS), maxlen=0)
    if not waits:  # what SELECT asks of decided_time is there only where something waits
        recognition.reporter.table(_NO_MATCHES, recognition.store)
    if snapshots:
        Recognition(plan, events, time=time, state=recognition.snapshot()).advance(0)


def _nothing_special(events: pa.Schema) -> pa.RecordBatch:
    """One event: zero where there are numbers, else NULL."""
    columns = [
        pa.array([0 if pa.types.is_integer(field.type) else None], field.type)
        if is_working(field.name)
        else pa.nulls(1, field.type)
        for field in events
    ]
    return pa.RecordBatch.from_arrays(columns, schema=events)


def _notes() -> Path:
    """A directory of this user and this version of the kernels, which Numba tells apart by their files."""
    import estero.engine

    state = _state_of(Path(estero.engine.__path__[0]))
    named = [os.environ.get(name, "") for name in ("ESTERO_CACHE", "NUMBA_CACHE_DIR")]
    where = f"{version('numba')} {named} {state}"
    digest = hashlib.sha256(where.encode()).hexdigest()[:12]
    notes = Path(tempfile.gettempdir()) / f"estero-{_user()}" / digest
    make_folder(notes)
    for folder in (notes.parent, notes):
        why = exposure(folder)
        if why is not None:
            raise PermissionError(f"{folder}: {why}")
    return notes


def _state_of(kernels: Path) -> str:
    """The files with kernels, in whatever directory below this one, and when they were written."""
    return "\n".join(f"{each} {each.stat().st_mtime_ns}" for each in sorted(kernels.rglob("*.py")))


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # in a container there may be no name for the number
        return str(os.getuid())


@contextmanager
def _alone(family: str) -> Iterator[None]:
    """Alone on this machine until the block has ended without an error once; together from then on.

    Where nothing can be noted in the temporary directory, nobody waits.
    """
    try:
        note = _notes() / family
        done = note.with_suffix(".compiled")
        file = None if done.exists() else lock_file(note)
    except OSError:
        file = None
    if file is None:
        yield
        return
    with file, _locked(file.fileno()):
        yield
        with suppress(OSError):
            lock_file(done).close()


@contextmanager
def _locked(file: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: each process compiles for itself
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
