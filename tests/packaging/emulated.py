"""Tries the wheel for Linux on ARM on a machine of another kind, by an emulator (qemu-user of Debian).

Python for ARM comes from Debian and what Estero needs from PyPI, both into a temporary folder: nothing is
installed here. The first example of README runs, and the laws of kernels hold: machine code and functions of
Python have equal states. Where there is no emulator or no apt-get, it says so and ends.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pip

REPOSITORY = Path(__file__).resolve().parents[2]
EMULATOR = "qemu-aarch64"
PLATFORM = "linux-aarch64"
LAWS = "tests/laws/test_kernel_laws.py"

FIRST_EXAMPLE = """
import platform, re
from pathlib import Path
from estero.engine.library import library, platform_name
assert (platform.machine(), platform_name()) == ("aarch64", "linux-aarch64")
exec(re.search(r"```python\\n(.*?)```", Path("README.md").read_text("utf-8"), re.DOTALL)[1])
assert answer.count() == 45 and library().is_native
"""


class Emulated:
    """Python for ARM, with packages of its own, in a folder."""

    def __init__(self, place: Path) -> None:
        self._root, self._pip, self._packages = (place / name for name in ("root", "pip", "packages"))
        for package in _downloaded(place / "apt", "python3", "libstdc++6"):
            subprocess.run(["dpkg-deb", "--extract", package, self._root], check=True)
        shutil.copytree(Path(pip.__file__).parent, self._pip / "pip")
        self._command = [EMULATOR, "-L", str(self._root), str(self._root / "usr" / "bin" / "python3")]

    def install(self, *wanted: str) -> None:
        """Installs packages, with the versions of requirements.lock."""
        locked = (REPOSITORY / "requirements.lock").read_text("utf-8")
        versions = self._pip / "versions.txt"
        versions.write_text("\n".join(re.findall(r"^([^ #].*==[^\\\n]*)", locked, re.MULTILINE)), "utf-8")
        into = ["--quiet", "--only-binary", ":all:", "--target", str(self._packages)]
        self.run("-m", "pip", "install", *into, "--constraint", str(versions), *wanted)

    def run(self, *arguments: str) -> str:
        """What Python prints, run where the repository is, with the installed Estero."""
        paths = os.pathsep.join(map(str, (self._packages, self._pip)))
        settings = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [*self._command, *arguments]
        ran = subprocess.run(
            command, cwd=REPOSITORY, env=settings, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise SystemExit(f"on an emulated ARM this failed: {arguments}\n{ran.stdout}{ran.stderr}")
        return ran.stdout.strip()


def _downloaded(place: Path, *packages: str) -> list[Path]:
    """Packages of Debian for ARM with all that they need, as if none were installed."""
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (place / folder).mkdir(parents=True)
    (place / "state" / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "",
        "Dir::State": place / "state",
        "Dir::State::status": place / "state" / "status",
        "Dir::Cache": place / "cache",
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    subprocess.run([*apt, "update"], check=True)
    wanted = ["--yes", "--no-install-recommends", "--download-only", *packages]
    subprocess.run([*apt, "install", *wanted], check=True, stdout=subprocess.PIPE)
    return sorted((place / "cache" / "archives").glob("*.deb"))


def _wheel(into: Path) -> Path:
    """The wheel for ARM."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    settings = {**os.environ, "ESTERO_PLATFORM": PLATFORM}
    subprocess.run(command, cwd=REPOSITORY, env=settings, stdout=subprocess.PIPE, check=True)
    (wheel,) = into.iterdir()
    return wheel


def main() -> None:
    """Builds, installs and tries; the first failure ends the program."""
    missing = [name for name in (EMULATOR, "apt-get", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        print(f"{PLATFORM}: not run, as this machine has no {' and no '.join(missing)} (Debian: qemu-user)")
        return
    with tempfile.TemporaryDirectory(prefix="estero-emulated-") as directory:
        place = Path(directory)
        emulated = Emulated(place)
        emulated.install(str(_wheel(place / "wheel")), "pytest", "hypothesis")
        emulated.run("-c", FIRST_EXAMPLE)
        print(f"{PLATFORM}, emulated: the first example runs")
        said = emulated.run("-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-profile=quick", LAWS)
        print(f"{PLATFORM}, emulated: laws of kernels: {said.splitlines()[-1].strip('= ')}")


if __name__ == "__main__":
    main()
