"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from estero.errors import EnvironmentProblem
from estero.spark.sessions import java
from estero.spark.sessions.java import find_java_home, java_version, shim_home


def fake_java(home: Path, version: str, *, release: bool = True) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    binary = home / "bin" / "java"
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    binary.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled_home", lambda: None)


@pytest.mark.parametrize(("text", "feature"), [("17.0.15", 17), ("1.8.0_292", 8), ("21", 21), ("25-ea", 25)])
@pytest.mark.parametrize("release", [True, False])
def test_the_version_is_read_from_the_release_file_or_asked(
    tmp_path: Path, text: str, feature: int, release: bool
) -> None:
    assert java_version(fake_java(tmp_path / "j", text, release=release)) == feature


def test_a_directory_without_java_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path) is None


def test_java_home_goes_before_the_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "a", "17.0.1"), fake_java(tmp_path / "b", "21.0.1")
    assert find_java_home({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == home
    assert find_java_home({"PATH": str(other / "bin")}) == other


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "17.0.1")
    assert find_java_home({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


@pytest.mark.usefixtures("no_bundle")
def test_without_java_the_remedy_is_said() -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        find_java_home({"PATH": ""})
    assert str(caught.value) == (
        "Spark needs Java 17 or newer, and none was found. Install Java 17 or newer (for example "
        "`apt install openjdk-17-jre-headless`), or run `pip install 'estero[java]'`, which brings one; "
        "`--engine duckdb` needs no Java."
    )


@pytest.mark.usefixtures("no_bundle")
def test_a_java_that_is_too_old_is_named(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(EnvironmentProblem, match=r"and only Java 11 in .*old was found"):
        find_java_home({"JAVA_HOME": str(old), "PATH": ""})


def test_the_shim_drops_one_option_and_keeps_the_others_whole(tmp_path: Path) -> None:
    runtime = fake_java(tmp_path / "run time", "21.0.8")
    binary = runtime / "bin" / "java"
    dump = "import json, sys; print(json.dumps(sys.argv[1:]))"
    binary.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{dump}' \"$@\"\n")
    home = shim_home(runtime, tmp_path / "cache")
    given = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "-cp", "x*"]
    said = subprocess.run([str(home / "bin" / "java"), *given], capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == ["-Da=b c", "", "-cp", "x*"]
    assert (home / "lib").resolve() == runtime / "lib"
    assert java_version(home) == 21


def test_no_java_is_run_from_where_others_can_write(tmp_path: Path) -> None:
    runtime, cache = fake_java(tmp_path / "runtime", "21.0.8"), tmp_path / "cache"
    home = shim_home(runtime, cache)
    for folder in (cache, home, home / "bin"):
        folder.chmod(0o777)
        with pytest.raises(EnvironmentProblem) as caught:
            shim_home(runtime, cache)
        assert str(caught.value) == (
            f"No Java is run from {folder}, because others can write to it (mode 777): "
            "XDG_CACHE_HOME names another folder for it."
        )
        folder.chmod(0o755)


def test_the_shim_is_made_once_and_again_when_it_broke(tmp_path: Path) -> None:
    runtime, cache = fake_java(tmp_path / "runtime", "21.0.8"), tmp_path / "cache"
    home = shim_home(runtime, cache)
    before = (home / "bin" / "java").stat().st_ino
    assert shim_home(runtime, cache) == home
    assert (home / "bin" / "java").stat().st_ino == before
    (home / "bin" / "java").unlink()
    assert shim_home(runtime, cache) == home
    assert os.access(home / "bin" / "java", os.X_OK)
    assert [each.name for each in cache.iterdir()] == [home.name]


JOB = """
import sys
from estero.spark import local_session
spark = local_session("local[1]", java_options="-XX:+UseSerialGC -XX:TieredStopAtLevel=1")
def doubled(batches):
    import pyarrow.compute as pc
    for batch in batches:
        yield batch.set_column(0, "id", pc.add(batch["id"], batch["id"]))
rows = spark.range(5).mapInArrow(doubled, "id long").collect()
print(sum(row.id for row in rows), spark.sparkContext._jvm.System.getenv("JAVA_HOME"))
"""


def everything_but_java(directory: Path) -> Path:
    """A directory for PATH that has what `spark-submit` calls (bash, dirname, …), and no Java."""
    directory.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "ps", "uname", "cat", "head", "readlink"):
        found = shutil.which(name)
        if found:
            (directory / name).symlink_to(found)
    return directory


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(java._bundled_home() is None, reason="the extra estero[java] is not installed")
def test_spark_runs_on_the_java_of_the_extra_and_says_nothing(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    package = str(Path(java.__file__).parents[3])
    environment = kept | {
        "PATH": str(everything_but_java(tmp_path / "bin")),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": package,
    }
    done = subprocess.run(
        [sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["20", str(next((tmp_path / "cache" / "estero").iterdir()))]
