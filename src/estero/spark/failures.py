"""Spark's messages about failed jobs → one error of Estero's that a user can act on."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from estero import errors
from estero.errors import DataError, EnvironmentProblem, EsteroError

NULL_TIME = "estero: the time is NULL"
"""The message of classification in the JVM for a relevant event without a time."""
_IN_WORKER = re.compile(
    r"^estero\.errors\.(\w+): (.*?)(?:\s*SQLSTATE: \w+|^\s+at |\Z)", re.MULTILINE | re.DOTALL
)
_IN_JVM = re.compile(r"\[USER_RAISED_EXCEPTION\] (estero: [^\n]+?)(?= SQLSTATE|$)", re.MULTILINE)
"""The error of the JVM; plans, which Spark's texts quote, contain these messages without the first word."""
_PYTHON = "An exception was thrown from the Python worker"
_CONDITION = re.compile(r"^\[[\w.]+\] ")
_PLAN_OF_STREAM = "=== Streaming Query ==="
"""The text after which the whole query follows, which quotes the messages that it might have raised."""
ILLEGAL_NANOSECONDS = "Illegal Parquet type: INT64 (TIMESTAMP(NANOS"
"""Spark's message for a file with timestamps in nanoseconds."""
NANOS_AS_INTEGERS = "spark.sql.legacy.parquet.nanosAsLong"
NO_PARQUET = "this is not a Parquet file, or it is damaged"
_FILE = r"[^\n]*? file (?P<file>file:.+?|\S+?)\. ?(?=Could|\s)"
_PARQUET_FILE = r"[^\n]*? file (?P<file>(?:file:.+?|\S+?)\.parquet)\. ?(?=Could|\s)"
_OTHER_TYPE = (
    r"\[FAILED_READ_FILE\.PARQUET_COLUMN_DATA_TYPE_MISMATCH\] .* file (?P<file>.+?)\. Data type mismatches "
    r"when reading Parquet column \[(?P<column>.+?)\]\. Expected Spark type (?P<expected>.+?), actual "
    r"Parquet type (?P<actual>\w+)"
)
_KNOWN = (
    (
        r"\[DUPLICATED_METRICS_NAME\] The metric name is not unique: estero",
        "a streaming query can have only one recognize",
        "start a streaming query for each, with a checkpoint of its own",
    ),
    (
        _OTHER_TYPE,
        "holds {actual}, where {expected} is expected",
        "all files need the columns of the first one, or of the schema that you name",
    ),
    (
        re.escape(ILLEGAL_NANOSECONDS),
        "the files hold timestamps in nanoseconds, which Spark reads as integers only",
        f"spark.conf.set({NANOS_AS_INTEGERS!r}, 'true') makes it do so; then say time_unit='ns'",
    ),
    (
        r"(?s:\A(?=.*(is not a Parquet file|CANNOT_READ_FILE_FOOTER)).*?)\[FAILED_READ_FILE\.\w+\] " + _FILE,
        NO_PARQUET,
        "",
    ),
    (
        r"\[CANNOT_LOAD_STATE_STORE\.\w+\]",
        "the state in the checkpoint cannot be read: it is damaged, or of another kind of state store",
        "go on with the state store that it was written with, or start with a new checkpoint",
    ),
    (r"\[FAILED_READ_FILE\.NO_HINT\] " + _PARQUET_FILE, NO_PARQUET, ""),
    (
        r"\[FAILED_READ_FILE\.NO_HINT\] " + _FILE,
        "a row does not fit the columns",
        "the option mode=PERMISSIVE of Spark's reader makes it NULL",
    ),
)
"""Spark's messages, their meanings, and the remedies."""
_OF_STREAM = re.compile(r"(?s).*?\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
_SQL_STATE = re.compile(r" SQLSTATE: \w+.*", re.DOTALL)
_MESSAGES = {
    NULL_TIME: "the time of an event is NULL",
    "estero: 64-bit overflow": "a number does not fit into 64 bits",
}

ended_by_interrupt: Final[threading.Event] = threading.Event()
"""Set if Ctrl-C has ended jobs that a call waits for without raising anything itself (session.py)."""


@contextmanager
def jobs(explained: Callable[[str], EsteroError | None] | None = None) -> Iterator[None]:
    """Turns Spark's errors in the block into Estero's errors, and Ctrl-C into a KeyboardInterrupt.

    `explained` is tried first on the text of an error, then `readable`.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    ended_by_interrupt.clear()
    try:
        yield
        if ended_by_interrupt.is_set():  # the jobs had ended by themselves
            raise KeyboardInterrupt
    except (PySparkException, Py4JError) as error:
        if ended_by_interrupt.is_set():
            raise KeyboardInterrupt from error
        said = explained(str(error)) if explained is not None else None
        if said is None and isinstance(error, PySparkException | Py4JJavaError):
            said = readable(error)
        if said is None:
            raise
        raise said from error


def readable(error: BaseException) -> EsteroError | None:
    """The error that explains a failure of Spark in one paragraph; None if it is a bug.

    An error that Estero raised in a worker is raised unchanged; one that classification raises in the JVM is
    a `DataError`, and so are all other failures of Spark, with its own first sentence.
    """
    text = str(error).partition(_PLAN_OF_STREAM)[0]
    if match := _IN_WORKER.search(text):
        kind = getattr(errors, match[1], DataError)
        return kind(match[2].strip()) if issubclass(kind, EsteroError) else DataError(match[2].strip())
    for pattern, message, hint in _KNOWN:
        if match := re.search(pattern, text):
            named = match.groupdict()
            file, column = named.get("file"), named.get("column")
            return DataError(message.format(**named), file=file, column=column, hint=hint)
    if match := _IN_JVM.search(text):
        return DataError(_MESSAGES.get(match[1], match[1].removeprefix("estero: ")))
    if "No module named 'estero'" in text:
        return EnvironmentProblem(
            "The Python workers of this Spark session do not have Estero: install it on every node, or "
            "start the session with estero.spark.local_session()."
        )
    return None if _PYTHON in text else DataError(f"Spark: {first_sentence(text)}")


def first_sentence(text: str) -> str:
    """The first sentence of Java in the text of an error, without names of classes and calls."""
    text = _OF_STREAM.sub("", text, count=1)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The first line of py4j only names the call that failed; the second line is Java's.
    chosen = (
        lines[1] if len(lines) > 1 and lines[0].startswith("An error occurred while calling") else lines[0]
    )
    return _SQL_STATE.sub("", _CONDITION.sub("", re.sub(r"^: [\w.$]+: ", "", chosen)))
