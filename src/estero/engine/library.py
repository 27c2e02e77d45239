"""The library of kernels for this platform, which is built with the wheel and checked before it is loaded."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from ctypes import CDLL, POINTER, Structure, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from estero.errors import EnvironmentProblem

VARIABLE: Final = "ESTERO_KERNELS"
"""The environment variable that is "python" if kernels are to run as Python functions."""

FOLDER: Final = Path(__file__).with_name("libraries")
TABLE: Final = "kernels.json"
"""The file next to the libraries with their digests, that of the sources, and the kernels' signatures."""

_ENDINGS: Final = {"linux": "so", "macos": "dylib", "windows": "dll"}
_SYSTEMS: Final = {"linux": "linux", "darwin": "macos", "win32": "windows"}
_MACHINES: Final = {"amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}

LEVELS: Final[dict[str, tuple[str, ...]]] = {
    "x86_64": ("x86-64-v2", "x86-64-v3"),
    "aarch64": ("armv8",),
    "arm64": ("armv8",),
}
"""The levels of instructions that processors of each kind may support, the lowest first."""
PLATFORMS: Final = ("linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-x86_64")


def platform_name() -> str:
    """The name of this platform in the name of a library."""
    machine = platform.machine().lower()
    return f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(machine, machine)}"


def library_names(name: str) -> dict[str, str]:
    """The file names of a platform's libraries, by level."""
    system, machine = name.split("-", 1)
    return {level: f"kernels-{system}-{machine}-{level}.{_ENDINGS[system]}" for level in LEVELS[machine]}


def digest_of_sources() -> str:
    """The digest of all that a library is built from: the engine and, in a clone, `kernels/`."""
    digest = hashlib.sha256()
    for path in sorted((*Path(__file__).parent.rglob("*.py"), *_BUILD.glob("*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_BUILD: Final = Path(__file__).parents[3] / "kernels"


class Library:
    """The C functions of a library, or none of them if Python runs the kernels."""

    def __init__(self, table: dict[str, Any], loaded: CDLL | None) -> None:
        self._kernels, self._loaded = table.get("kernels", {}), loaded

    @property
    def is_native(self) -> bool:
        """Whether kernels run as machine code."""
        return self._loaded is not None

    def function(self, name: str, kinds: Sequence[Any]) -> Any:
        """The C function of a kernel for `ctypes`; None if Python runs it."""
        if self._loaded is None:
            return None
        function = self._loaded[name]
        function.argtypes = [_argument(kind) for kind in kinds]
        function.restype = c_int64 if self._kernels[name]["returns"] else None
        return function


def _argument(kind: Any) -> Any:
    if kind is None:
        return c_void_p
    if not isinstance(kind, type):
        return kind
    if issubclass(kind, Structure):
        return POINTER(kind)
    return c_void_p if issubclass(kind, tuple) else kind


@cache
def library() -> Library:
    """The library of this process.

    Raises EnvironmentProblem if there is none for this platform, or if it differs from the one that was
    built.
    """
    how = os.environ.get(VARIABLE, "")
    if how == "python":
        return Library({}, None)
    if how:
        raise EnvironmentProblem(f"{VARIABLE} is {how!r}: set it to 'python', or not at all")
    name = platform_name()
    if name not in PLATFORMS:
        raise EnvironmentProblem(
            f"Estero has no machine code for {name}: it has for {', '.join(PLATFORMS)}. "
            f"Set {VARIABLE}=python to run without, some hundred times slower"
        )
    if not Path(__file__).exists():
        raise EnvironmentProblem(
            "Estero's machine code cannot be loaded from a zip: install the package, or unpack it into a "
            "folder that PYTHONPATH names (on Spark: --archives estero.zip#packages, PYTHONPATH=packages)"
        )
    try:
        table = json.loads((FOLDER / TABLE).read_bytes())
    except FileNotFoundError:
        raise EnvironmentProblem(f"Estero's machine code is not built: {_HOW}") from None
    if _BUILD.exists() and table["sources"] != digest_of_sources():
        raise EnvironmentProblem(f"Estero's machine code was built from other sources than these: {_HOW}")
    files = list(library_names(name).values())
    if table["libraries"].get(files[0]) is None:
        raise EnvironmentProblem(f"Estero was installed for another platform than {name}: {_HOW}")
    loaded = _loaded(files[0], table)
    if len(files) > 1 and loaded.estero_level() >= 3:
        loaded = _loaded(files[1], table)
    _keep_freed_memory()
    return Library(table, loaded)


def _keep_freed_memory() -> None:
    """Makes Linux's C library keep freed memory for the next arrays, as it does once a large array was freed.

    Otherwise it returns arrays of 128 KB and more to the system, which clears every page that it hands out
    again: listing and counting 100,000 events took half as long again.
    """
    np.empty(_LARGE, np.uint8)


_LARGE: Final = (32 << 20) - (16 << 10)
"""The largest size that has an effect (mallopt(3), M_MMAP_THRESHOLD), less the overhead of an array."""


_HOW: Final = (
    "run 'make kernels' in a clone, or install the package again ('pip install --force-reinstall estero')"
)


def _loaded(file: str, table: dict[str, Any]) -> CDLL:
    path = FOLDER / file
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise EnvironmentProblem(f"a file of Estero is missing, {path}: {_HOW}") from None
    if digest != table["libraries"][file]:
        raise EnvironmentProblem(f"{path} is not the file that was built with Estero: {_HOW}")
    return CDLL(str(path))
