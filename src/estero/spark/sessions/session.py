"""The Spark session of this process: local, quiet, and started when it is first needed."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from estero.arguments import checked
from estero.errors import EnvironmentProblem
from estero.spark.failures import ended_by_interrupt, first_sentence
from estero.spark.sessions.java import find_java_home

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

LOCAL_SHUFFLE_PARTITIONS = 8
"""The shuffle partitions: Spark's own 200 would mean 200 Python tasks for a few megabytes on a laptop."""

_STATE = "org.apache.spark.sql.execution.streaming.state"

_SAFE_PATH = "spark.executorEnv.PYTHONSAFEPATH"

_UNCAUGHT = 'Exception in thread "main" '

_SECONDS_TO_CANCEL = 5.0

_LAST_LINES = 5
"""The number of lines of a log that an error shows."""

Interrupt = Callable[[int, FrameType | None], object]


@checked
def local_session(
    master: str = "local[*]",
    *,
    app_name: str = "estero",
    shuffle_partitions: int = LOCAL_SHUFFLE_PARTITIONS,
    java_options: str = "",
    config: Mapping[str, str] | None = None,
    quiet: bool = True,
) -> SparkSession:
    """The running session of this process, else a new one: UTC, no web page, few shuffle partitions.

    A running session is returned as it is. Python workers use the interpreter of this process and see the
    packages that it sees. With `quiet`, the output of Spark and its Java goes to a log file, which is removed
    at exit, instead of the terminal; if Spark does not start, the error shows its last lines. `config` adds
    settings of Spark and overrides those made here.

    Raises `EnvironmentProblem` without Java 17 or newer, and where Spark does not start.
    """
    running = active_session()
    if running is not None:
        return running
    java_home = find_java_home()
    settings = _settings(master, app_name, shuffle_partitions, java_options) | dict(config or {})
    with _environment(JAVA_HOME=str(java_home), PYSPARK_PYTHON=_workers_python(master)):
        return _start(settings, quiet)


def active_session() -> SparkSession | None:
    """The session that runs in this process, if any."""
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _settings(master: str, app_name: str, partitions: int, java_options: str) -> dict[str, str]:
    return {
        "spark.master": master,
        "spark.app.name": app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {java_options}".strip(),
        "spark.executorEnv.PYTHONPATH": _package_path(),
        # Spark would measure the batch at each row that it adds: a fifth of a task's time
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        # state of streams is on disk as well as in memory, and each micro-batch stores only changes
        "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # tables of Spark's catalogue are not used; without this, an empty directory may be left behind
        "spark.sql.catalogImplementation": "in-memory",
    } | _loopback(master)


def _loopback(master: str) -> dict[str, str]:
    """Binds local mode to the loopback: it works without a network and opens no port to others."""
    if not master.startswith("local"):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"} | _safe_path()


def _safe_path() -> dict[str, str]:
    """Makes local workers look for modules in the current directory only if this process does.

    Spark starts them as ``python -m pyspark.daemon`` there, and a file named like a module of Python would
    run in its place.
    """
    return {} if searches_here() else {_SAFE_PATH: "1"}


def _package_path() -> str:
    """The path on which workers find Estero if it is not installed but found through `sys.path`."""
    import estero

    own = str(Path(estero.__file__).resolve().parent.parent)
    inherited = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(part for part in (own, inherited) if part)


def _workers_python(master: str) -> str:
    """The Python of workers: this interpreter; on a cluster, where it may differ, the user's if set."""
    if master.startswith("local"):
        return sys.executable
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


def _start(settings: Mapping[str, str], quiet: bool) -> SparkSession:
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    log = _log_file() if quiet else None
    # A Java process that was started before in this process (a session that was stopped) serves again.
    started = SparkContext._gateway is not None  # noqa: SLF001 (there is no public way to ask)
    gateway = None if started else _launch(conf, log)
    before = signal.getsignal(signal.SIGINT)
    try:
        context = SparkContext(conf=conf, gateway=gateway)
        if threading.current_thread() is threading.main_thread():
            interrupt = before if callable(before) else signal.default_int_handler
            signal.signal(signal.SIGINT, partial(_interrupted, context, interrupt))
        if quiet:
            context.setLogLevel("ERROR")
            _hush_loggers()
        return SparkSession(context)
    except Py4JJavaError as error:  # a missing or silent master, or a refused setting
        reason, master = first_sentence(str(error)), settings["spark.master"]
        question = "" if master.startswith("local") else " Does this master answer?"
        raise EnvironmentProblem(f"Spark did not start on {master}: {reason}{question}") from error


def _interrupted(context: SparkContext, before: Interrupt, number: int, frame: FrameType | None) -> None:
    """Makes Ctrl-C end the jobs; a call that waits for one then ends with Spark's own error.

    `failures.jobs` turns that into a KeyboardInterrupt. PySpark's handler itself raises one in the middle of
    that call, after it has requested the end on the very connection that is waiting: the jobs go on, and the
    next calls fail. Another thread has its own connection. `before`, the previous handler, is called in any
    case.
    """
    ended: list[int] = []

    def end_jobs() -> None:
        ended.extend(context.statusTracker().getActiveJobsIds())
        context.cancelAllJobs()

    ending = threading.Thread(target=end_jobs, daemon=True)
    ending.start()
    ending.join(_SECONDS_TO_CANCEL)
    if ended and _waits_for_java(frame):
        ended_by_interrupt.set()
        with suppress(KeyboardInterrupt):
            before(number, frame)
    else:
        before(number, frame)


def _waits_for_java(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("py4j."):
            return True
        frame = frame.f_back
    return False


def _hush_loggers() -> None:
    """Silences the loggers of PySpark (errors of queries) and py4j (interrupts): both raise them anyway."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.msg != "KeyboardInterrupt while sending command.")


def _launch(conf: SparkConf, log: Path | None) -> Any:
    """Starts the Java process, with its output going to `log`; returns py4j's gateway to it."""
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    launch: Callable[..., Any] = launch_gateway
    try:
        with _interrupts_later():
            if log is None:
                return launch(conf)
            with log.open("wb") as output:
                return launch(conf, {"stdout": output, "stderr": output})
    except PySparkRuntimeError as error:
        last_words = _tail(log) if log is not None else "see above"
        raise EnvironmentProblem(f"Spark did not start: {last_words}") from error


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delays Ctrl-C to the end of the block: a Java process without an owner would run for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def _log_file() -> Path:
    handle, name = tempfile.mkstemp(prefix="estero-spark-", suffix=".log")
    os.close(handle)
    log = Path(name)
    atexit.register(log.unlink, missing_ok=True)
    return log


def _tail(log: Path) -> str:
    """The reason why Java died, from its log: the uncaught exception, else the last lines."""
    said = log.read_text(errors="replace").strip().splitlines()
    for line in said:
        if line.startswith(_UNCAUGHT):
            return line.removeprefix(_UNCAUGHT).partition(": ")[2] or line
    return "\n".join(said[-_LAST_LINES:]) or "its Java process ended without a message"


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Sets environment variables, and restores the previous values."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def searches_here() -> bool:
    """Whether this process looks for modules in the current directory."""
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return False
    return any((here / folder).resolve() == here for folder in sys.path)
