"""The engines: how each is installed and started, what it is given, and what it says to each query.

Everything that is installed goes below `.peers` (and `.venv-core`), which the project ignores. Jars come by
Maven, as the machine has set it up, from `java/*.xml`; a small program in Java is compiled beside them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import queries
from benchmarks.peers.queries import Said, Unsaid

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
ENVIRONMENTS = REPOSITORY / ".peers"
CORE_PYTHON = REPOSITORY / ".venv-core" / "bin" / "python"
JAVA = HERE / "java"
HEAP = "-Xmx6g"

_OPENED = [
    f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util", "time", "nio", "math")
]


class Missing(Exception):
    """What an engine needs is not on this machine."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One of the engines."""

    name: str
    title: str
    how: str
    """What it is given, and what is timed, for the page."""
    said: dict[str, Said]
    whole: bool = False
    """It looks at a whole table at once, not at a stream."""
    least: float = 0.0
    """Seconds below which its figures mean nothing."""
    module: str = ""
    """Of Python in this environment, where it has none of its own."""
    program: str = ""
    """In Java."""
    jars: str = ""
    """Their folder below `.peers`, and the name of their pom."""

    def command(self, folder: Path, query: str) -> list[str]:
        """What starts it (`benchmarks.peers.session`); `Missing` where it is not installed."""
        text = self.said[query]
        if isinstance(text, Unsaid):
            raise TypeError(f"{self.title} has no text for {query}")
        asked = [str(folder), query, text]
        if self.module:
            return [sys.executable, "-m", "benchmarks.peers.child", self.module, *asked]
        if self.program:
            return [
                *java_command(self.jars),
                self.program,
                *asked[:2],
                "" if self.said is queries.FLINK else text,
            ]
        return [_core_python(), "-m", "benchmarks.peers.core_child", *asked]

    def install(self) -> None:
        """Fetches and compiles what it needs; `Missing` where that takes more than there is."""
        if self.jars:
            _fetch(self.jars)
            _compile(self.jars, self.program)
        elif not self.module:
            _core_python()


ENGINES = (
    Engine(
        "estero",
        "Estero",
        "from the text of the query and an Arrow table with plain strings to the last record batch of "
        "answers, with parsing and planning",
        queries.ESTERO,
        module="estero_engine",
    ),
    Engine(
        "core",
        "CORE",
        "the authors' engine in C++ (`pycer`); events are objects of its own already, 0.7 GB for a million, "
        "made in Python, which is not counted. It waits for a tenth of a second in its shutdown: that is "
        "taken off the wall's time, and less than 0.02 s means nothing",
        queries.CORE,
        least=0.02,
    ),
    Engine(
        "flink",
        "FlinkCEP",
        "the pattern API in event time; a job on a mini-cluster, one task (source and matches are two "
        "threads), object reuse, state on the heap, a watermark for every 16 events; from the first event "
        "made to the last answer, without deployment",
        queries.FLINK,
        program="Flink",
        jars="flink",
    ),
    Engine(
        "match-recognize",
        "Flink SQL",
        "MATCH_RECOGNIZE, on the same mini-cluster; timed like FlinkCEP",
        queries.MATCH_RECOGNIZE,
        program="Flink",
        jars="flink",
    ),
    Engine(
        "esper",
        "Esper",
        "patterns, and its own match_recognize; the time is set before each event; from the first event sent "
        "to the last answer, compiled before",
        queries.ESPER,
        program="Esper",
        jars="esper",
    ),
    Engine(
        "siddhi",
        "Siddhi",
        "patterns, in playback; from the first event sent to the last answer",
        queries.SIDDHI,
        program="Siddhi",
        jars="siddhi",
    ),
    Engine(
        "trino",
        "Trino",
        "MATCH_RECOGNIZE; its planner and its operators in one thread, without a server "
        "(`LocalQueryRunner`); from the text of the query and a table of its memory connector to the last "
        "row; it sorts the table first",
        queries.TRINO,
        whole=True,
        program="Trino",
        jars="trino",
    ),
    Engine(
        "duckdb",
        "DuckDB",
        "SQL by hand: joins, ASOF joins, window functions, recursion; from a table in its memory to an Arrow "
        "table, on both cores",
        queries.DUCKDB,
        whole=True,
        module="duckdb_engine",
    ),
    Engine(
        "pandas",
        "pandas",
        "by hand, with NumPy where pandas has no join over a range (`pandas_engine.py`); from a DataFrame "
        "with categories to DataFrames",
        queries.PANDAS,
        whole=True,
        module="pandas_engine",
    ),
)
NAMES = tuple(engine.name for engine in ENGINES)


def _core_python() -> str:
    if not CORE_PYTHON.exists():
        raise Missing("run: python benchmarks/install_core.py PYTHON3.13")
    return str(CORE_PYTHON)


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise Missing(f"there is no {name} here")
    return path


def java_command(jars: str) -> list[str]:
    """What starts Java with the jars of an engine; `Missing` where they are not installed."""
    if not (ENVIRONMENTS / jars / "classes").exists():
        raise Missing(f"run: python -m benchmarks.peers install --only {jars}")
    return [
        _tool("java"),
        HEAP,
        *_OPENED,
        f"-Dpeer={jars.capitalize()} {_release(jars)}",
        "-cp",
        _class_path(jars),
    ]


def _release(jars: str) -> str:
    """The release that the pom names."""
    pom = (JAVA / f"{jars}.xml").read_text(encoding="utf-8")
    return pom.partition("<peer>")[2].partition("</peer>")[0]


def _class_path(jars: str) -> str:
    folder = ENVIRONMENTS / jars
    return os.pathsep.join([str(folder / "classes"), str(folder / "jars" / "*"), str(JAVA)])


def _fetch(jars: str) -> None:
    target = f"-DoutputDirectory={ENVIRONMENTS / jars / 'jars'}"
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", target]
    _call([_tool("mvn"), "--quiet", "--batch-mode", "--file", str(JAVA / f"{jars}.xml"), *goal])


def _compile(jars: str, program: str) -> None:
    folder = ENVIRONMENTS / jars
    classes, sources = folder / "classes", [JAVA / "Events.java", JAVA / f"{program}.java"]
    if jars == "flink":
        made = folder / "FlinkPatterns.java"
        made.write_text(flink_patterns(), encoding="utf-8")
        sources.append(made)
    _call([_tool("javac"), "-nowarn", "-cp", _class_path(jars), "-d", str(classes), *map(str, sources)])


def flink_patterns() -> str:
    """The patterns of `queries.FLINK` as a class."""
    cases = "".join(
        f'            case "{name}":\n                return {text.strip()};\n'
        for name, text in queries.FLINK.items()
        if isinstance(text, str)
    )
    return f"""import java.time.Duration;
import org.apache.flink.cep.pattern.Pattern;

final class FlinkPatterns extends Flink {{
    static Pattern<Flink.Event, ?> of(String query) {{
        switch (query) {{
{cases}            default:
                throw new IllegalArgumentException(query);
        }}
    }}
}}
"""


def _call(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"{Path(command[0]).name} failed:\n{(done.stdout + done.stderr).strip()[-3000:]}")
