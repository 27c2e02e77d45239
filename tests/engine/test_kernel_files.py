"""Compiled kernels on disk: whatever is there, a run answers, and what is sound is not compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from estero.engine.jit import kernel, watched

KERNEL = """
@kernel
def doubled_{0}(number):
    return 2 * number + {0} - {0}
"""
TUPLES = """
from typing import NamedTuple
from estero.engine.jit import kernel

class {0}(NamedTuple):
    number: int

@kernel
def twice(pool):
    return 2 * pool.number

class Doubled:
    compiled = twice.compiled
    def __call__(self, number):
        return twice({0}(number))

doubled = Doubled()
"""
CALLED = """
import logging
import resource
import sys

logging.basicConfig(format="%(message)s", level=logging.WARNING)
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
if "changed" in sys.argv:
    from estero.engine.compiled import kernel_files
    kernel_files.kernels_version = lambda: "another"
import doubling
from estero.engine.compiled.kernel_pack import pack, unpack
if "receives" in sys.argv:
    print("its own" if unpack(open("pack", "rb").read()) else "of another")
for name, kernel in sorted(vars(doubling).items()):
    if name.startswith("doubled"):
        print(kernel(21), "from disk" if sum(kernel.compiled.stats.cache_hits.values()) else "compiled")
if "packs" in sys.argv:
    kernels = [kernel for name, kernel in vars(doubling).items() if name.startswith("doubled")]
    open("pack", "wb").write(pack(kernels))
"""
COMPILED, FROM_DISK = "42 compiled\n", "42 from disk\n"
NOTICE = "estero: compiling kernels, once; they are cached on disk for the next run\n"


class Run:
    """A module with so many kernels, and programs that call them."""

    def __init__(self, home: Path, kernels: int = 1) -> None:
        self.home = home
        self.cache = home / "cache"
        written = "".join(KERNEL.format(number) for number in range(kernels))
        (home / "doubling.py").write_text(f"from estero.engine.jit import kernel\n{written}")

    def __call__(self, *arguments: str, **variables: str) -> tuple[str, str]:
        """What a program prints, and what it says beside that (not a notice of compilation)."""
        inherited = {name: each for name, each in os.environ.items() if not name.startswith("NUMBA_")}
        path = os.pathsep.join([str(self.home), *sys.path])
        environment = {**inherited, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(self.cache)}
        environment.update(variables, ESTERO_COMPILE="first")
        program = [sys.executable, "-c", CALLED, *arguments]
        ran = subprocess.run(
            program, capture_output=True, text=True, check=False, env=environment, cwd=self.home
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout, ran.stderr.replace(NOTICE, "")

    def files(self, suffix: str) -> list[Path]:
        return sorted(self.cache.rglob(f"*.{suffix}"))


def _cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


def _of_another_version(content: bytes) -> bytes:
    return content.replace(b"0.", b"9.", 1)


def _emptied(_: bytes) -> bytes:
    return b""


DAMAGES: list[Callable[[bytes], bytes]] = [_cut, _flipped, _emptied, _of_another_version]


def test_what_is_damaged_is_compiled_again_and_written_again(tmp_path: Path) -> None:
    several = len(DAMAGES)
    run = Run(tmp_path, 2 * several + 1)
    assert run() == (COMPILED * (2 * several + 1), "")
    files = [*run.files("nbi")[:several], *run.files("nbc")[several:-1]]
    for file, damage in zip(files, 2 * DAMAGES, strict=True):
        file.write_bytes(damage(file.read_bytes()))
    assert run() == (COMPILED * 2 * several + FROM_DISK, "")
    assert run() == (FROM_DISK * (2 * several + 1), "")


def test_code_of_another_kernel_is_not_run(tmp_path: Path) -> None:
    run = Run(tmp_path, 2)
    run()
    one, other = run.files("nbc")
    one.write_bytes(other.read_bytes())
    assert run() == (COMPILED + FROM_DISK, "")


def test_code_from_before_a_change_of_another_file_is_compiled_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run() == (COMPILED, "")
    assert run("changed") == (COMPILED, "")
    assert run("changed") == (FROM_DISK, "")


def test_code_for_tuples_that_have_another_name_now_is_compiled_again(tmp_path: Path) -> None:
    run = Run(tmp_path, 0)
    module = tmp_path / "doubling.py"
    for number, name in enumerate(["Pool", "Arena"]):
        module.write_text(TUPLES.format(name))
        os.utime(module, (1_000_000_000 + number,) * 2)
        assert run() == (COMPILED, "")
        assert run() == (FROM_DISK, "")


def test_on_a_full_disk_kernels_stay_in_memory(tmp_path: Path) -> None:
    run = Run(tmp_path)
    answer, said = run("full")
    assert answer == COMPILED
    assert said.startswith(f"estero: compiled kernels cannot be kept on disk ({run.cache}")
    assert said.endswith(
        ": File too large), so that each run compiles them: "
        "set ESTERO_CACHE to a directory that can be written\n"
    )


def test_where_no_directory_can_be_written_kernels_stay_in_memory(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for name in ("cache", "__pycache__", "user"):
        (tmp_path / name).write_text("no directory")
    user = str(tmp_path / "user")
    answer, said = run(HOME=user, XDG_CACHE_HOME=user)
    assert answer == COMPILED
    assert said == (
        "estero: compiled kernels cannot be kept on disk (there is no directory for them), so that each run "
        "compiles them: set ESTERO_CACHE to a directory that can be written\n"
    )


def test_a_kernel_is_called_like_a_function() -> None:
    @kernel
    def thrice(number: int) -> int:
        return 3 * number

    assert thrice(2) == 6


def test_a_directory_of_ones_own_has_one_for_each_version(tmp_path: Path) -> None:
    run = Run(tmp_path)
    named = {"ESTERO_CACHE": str(tmp_path / "own")}
    assert run(**named) == (COMPILED, "")
    written = {file: file.read_bytes() for file in (tmp_path / "own").rglob("*.nb?")}
    assert len({file.parent for file in written}) == 1
    assert run("changed", **named) == (COMPILED, "")
    assert len({file.parent for file in (tmp_path / "own").rglob("*.nb?")}) == 2
    assert {file: file.read_bytes() for file in written} == written
    assert run(**named) == (FROM_DISK, "")
    assert not run.files("nbc")


def test_code_for_another_processor_is_left_alone(tmp_path: Path) -> None:
    run = Run(tmp_path)
    named = {"ESTERO_CACHE": str(tmp_path / "own")}
    assert run(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="", **named) == (COMPILED, "")
    (elsewhere,) = (tmp_path / "own").rglob("*.nbc")
    before = elsewhere.read_bytes()
    assert run(**named) == (COMPILED, "")
    assert run(**named) == (FROM_DISK, "")
    assert elsewhere.read_bytes() == before


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    run = Run(tmp_path)
    (tmp_path / "own").write_text("no directory")
    answer, said = run(ESTERO_CACHE=str(tmp_path / "own"))
    assert answer == COMPILED
    assert said.startswith(f"estero: compiled kernels cannot be kept on disk ({tmp_path / 'own'}")


def test_nothing_is_read_from_a_directory_that_others_can_write(tmp_path: Path) -> None:
    run = Run(tmp_path)
    named = {"ESTERO_CACHE": str(tmp_path / "own")}
    assert run(**named) == (COMPILED, "")
    (tmp_path / "own").chmod(0o777)
    answer, said = run(**named)
    assert answer == COMPILED
    assert said == (
        f"estero: nothing is kept in {tmp_path / 'own'}, because others can write to it (mode 777): "
        "it needs a folder that only you can write to (chown, chmod go-w)\n"
    )
    (tmp_path / "own").chmod(0o755)
    for file in (tmp_path / "own").rglob("*.nbc"):
        file.chmod(0o666)
    assert run(**named) == (COMPILED, "")


def test_a_directory_of_numba_that_others_can_write_is_passed_over(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run() == (COMPILED, "")
    (first,) = run.files("nbc")
    first.parent.chmod(0o777)
    assert run() == (COMPILED, "")
    assert run() == (FROM_DISK, "")
    assert run.files("nbc") == [first]
    assert len(list(tmp_path.rglob("*.nbc"))) == 2


RECEIVED = "its own\n" + FROM_DISK * 2


def test_received_kernels_are_not_compiled_and_are_written(tmp_path: Path) -> None:
    run = Run(tmp_path, 2)
    assert run("packs") == (COMPILED * 2, "")
    other = {"ESTERO_CACHE": str(tmp_path / "other")}
    assert run("receives", **other) == (RECEIVED, "")
    assert run(**other) == (FROM_DISK * 2, "")


def test_received_kernels_stay_in_memory_where_they_cannot_be_written(tmp_path: Path) -> None:
    run = Run(tmp_path, 2)
    run("packs")
    (tmp_path / "own").write_text("no directory")
    assert run("receives", ESTERO_CACHE=str(tmp_path / "own")) == (RECEIVED, "")
    for name in ("none", "__pycache__", "user"):
        (tmp_path / name).write_text("no directory")
    user = str(tmp_path / "user")
    nowhere = {"HOME": user, "XDG_CACHE_HOME": user, "NUMBA_CACHE_DIR": str(tmp_path / "none")}
    assert run("receives", **nowhere) == (RECEIVED, "")


def test_received_kernels_of_another_processor_or_version_are_left_alone(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run("packs")
    left = ("of another\n" + COMPILED, "")
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert run("receives", ESTERO_CACHE=str(tmp_path / "one"), **generic) == left
    assert run("receives", "changed", ESTERO_CACHE=str(tmp_path / "two")) == left


def test_received_kernels_do_not_replace_what_is_on_disk(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run("packs")
    before = {file: file.read_bytes() for file in run.files("nb?")}
    assert run("receives") == ("its own\n" + FROM_DISK, "")
    assert before == {file: file.read_bytes() for file in run.files("nb?")}


def test_kernels_are_watched_and_not_compiled() -> None:
    @kernel
    def thrice(number: int) -> int:
        return 3 * number

    with watched() as called:
        assert thrice(2) == 6
    assert called == [thrice]
    assert not thrice.compiled.overloads
    with watched() as called:
        pass
    thrice(2)
    assert called == []
