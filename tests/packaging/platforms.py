"""Builds wheels for all platforms on this machine, and reads what is in them.

A wheel has the libraries of its platform and no others; a library exports the kernels and nothing else, needs
nothing from outside, and has the same bytes whenever and wherever it is built. None of another platform is
run.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import lief

from estero.engine.library import PLATFORMS, TABLE, library_names

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARIES = PurePosixPath("estero/engine/libraries")
DATA = {
    "estero/language/syntax/ceql.json",
    "estero/language/syntax/conjunctive.json",
    "estero/markup/notebook.css",
}

TAGS = {
    "linux-x86_64": {"manylinux_2_17_x86_64", "manylinux2014_x86_64", "musllinux_1_1_x86_64"},
    "linux-aarch64": {"manylinux_2_17_aarch64", "manylinux2014_aarch64", "musllinux_1_1_aarch64"},
    "macos-arm64": {"macosx_11_0_arm64"},
    "macos-x86_64": {"macosx_11_0_x86_64"},
    "windows-x86_64": {"win_amd64"},
}

OF_MACOS = {"dyld_stub_binder", "_bzero", "___bzero", "_memset_pattern16"}
"""What LLVM may ask for there: no program is without libSystem, and every release of it has these."""


def main() -> None:
    """Builds and reads; the first failure ends the program."""
    lief.logging.disable()  # it tells of what a library does not have
    with tempfile.TemporaryDirectory(prefix="estero-platforms-") as directory:
        place = Path(directory)
        for platform in PLATFORMS:
            wheel = _built(platform, place / "wheels" / platform)
            into = place / platform
            _read_wheel(wheel, platform, into)
            table = json.loads((into / TABLE).read_bytes())
            for level, name in library_names(platform).items():
                code = (into / name).read_bytes()
                assert hashlib.sha256(code).hexdigest() == table["libraries"][name], name
                assert not [word for word in (b"/tmp", os.fsencode(REPOSITORY)) if word in code], name
                exported = set(table["kernels"]) | ({"estero_level"} if "x86" in level else set())
                READERS[platform.split("-")[0]](into / name, platform, exported)
            again = place / "again" / platform
            _made("--platform", platform, "--into", str(again))
            _same(again, into)
            print(f"{platform}: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB; linked twice, equal bytes")
        fresh = place / "fresh"
        _made("--platform", "linux-aarch64", "--into", str(fresh), "--objects", str(place / "objects"))
        _same(fresh, place / "linux-aarch64")
        print("linux-aarch64: made from the sources once more, equal bytes")


def _built(platform: str, into: Path) -> Path:
    """The wheel of a platform."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    settings = {**os.environ, "ESTERO_PLATFORM": platform}
    subprocess.run(command, cwd=REPOSITORY, env=settings, stdout=subprocess.PIPE, check=True)
    (wheel,) = into.iterdir()
    return wheel


def _made(*arguments: str) -> None:
    """Builds libraries in a process that orders its sets otherwise."""
    settings = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-m", "kernels", *arguments], cwd=REPOSITORY, env=settings, check=True)


def _same(folder: Path, other: Path) -> None:
    for path in folder.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes(), (
            f"{path.name} differs between two builds"
        )


def _read_wheel(wheel: Path, platform: str, into: Path) -> None:
    """Checks tags and contents of a wheel, and writes its libraries into a folder."""
    python, abi, tags = wheel.stem.split("-")[2:]
    assert (python, abi, set(tags.split("."))) == ("py3", "none", TAGS[platform]), wheel.name
    into.mkdir()
    with zipfile.ZipFile(wheel) as files:
        names = {name for name in files.namelist() if PurePosixPath(name).parent == LIBRARIES}
        assert {PurePosixPath(name).name for name in names} == {TABLE, *library_names(platform).values()}
        assert set(files.namelist()) >= DATA
        assert not [name for name in files.namelist() if not name.startswith("estero")]
        (said,) = (name for name in files.namelist() if name.endswith(".dist-info/WHEEL"))
        lines = set(files.read(said).decode().splitlines())
        assert {f"Tag: py3-none-{tag}" for tag in TAGS[platform]} < lines
        assert "Root-Is-Purelib: false" in lines
        for name in names:
            (into / PurePosixPath(name).name).write_bytes(files.read(name))


# ------------------------------------------------------------------------------------------ libraries


def _read_elf(path: Path, platform: str, exported: set[str]) -> None:
    binary: Any = lief.ELF.parse(path)
    machine = {"x86_64": lief.ELF.ARCH.X86_64, "aarch64": lief.ELF.ARCH.AARCH64}
    assert binary.header.machine_type == machine[platform.split("-", 1)[1]]
    _equal({symbol.name for symbol in binary.exported_symbols}, exported)
    _equal({symbol.name for symbol in binary.imported_symbols}, set())
    _equal(set(binary.libraries), set())
    tags = {entry.tag for entry in binary.dynamic_entries}
    assert not tags & {lief.ELF.DynamicEntry.TAG.TEXTREL, lief.ELF.DynamicEntry.TAG.RUNPATH}
    for segment in binary.segments:  # none is to be written and run, and the stack is not to be run
        assert not (segment.has(lief.ELF.Segment.FLAGS.W) and segment.has(lief.ELF.Segment.FLAGS.X))


def _read_macho(path: Path, platform: str, exported: set[str]) -> None:
    universal = lief.MachO.parse(path)
    assert universal is not None
    assert universal.size == 1
    binary: Any = universal.at(0)
    machine = {"x86_64": lief.MachO.Header.CPU_TYPE.X86_64, "arm64": lief.MachO.Header.CPU_TYPE.ARM64}
    assert binary.header.cpu_type == machine[platform.split("-", 1)[1]]
    found = {each.symbol.name for each in binary.dyld_info.exports}
    _equal(
        found - {"___dso_handle", "__mh_dylib_header"}, {f"_{name}" for name in exported}
    )  # Zig's linker's
    _equal({symbol.name for symbol in binary.imported_symbols} - OF_MACOS, set())
    _equal({each.name for each in binary.libraries}, {f"@rpath/{path.name}", "/usr/lib/libSystem.B.dylib"})
    assert binary.build_version.minos[:2] == [11, 0]
    assert not binary.has_rpath
    assert binary.has_code_signature or platform != "macos-arm64"  # which runs nothing unsigned


def _read_pe(path: Path, platform: str, exported: set[str]) -> None:
    assert platform == "windows-x86_64"
    binary: Any = lief.PE.parse(path)
    assert binary.header.machine == lief.PE.Header.MACHINE_TYPES.AMD64
    _equal({entry.name for entry in binary.get_export().entries}, exported)
    _equal({library.name for library in binary.imports}, set())
    assert binary.header.time_date_stamps == 0
    assert binary.optional_header.addressof_entrypoint == 0  # nothing runs as it is loaded
    assert binary.get_export().name == path.name


READERS = {"linux": _read_elf, "macos": _read_macho, "windows": _read_pe}


def _equal(found: set[str], wanted: set[str]) -> None:
    assert found == wanted, f"too much: {sorted(found - wanted)}; missing: {sorted(wanted - found)}"


if __name__ == "__main__":
    main()
