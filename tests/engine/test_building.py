"""What is built: objects are kept under digests of what they are made from; libraries need nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from estero.engine.library import platform_name
from repository import REPOSITORY
from waiting import FAR_OFF

_A_SINE = """
from pathlib import Path
from kernels import libraries

target = libraries.TARGETS["linux-x86_64"]["x86-64-v2"]
module = libraries.llvm.parse_assembly('''
    declare double @llvm.sin.f64(double)
    define double @wave(double %x) {
      %y = call double @llvm.sin.f64(double %x)
      ret double %y
    }
''')
Path("wave.o").write_bytes(libraries._machine_code(module, target, "wave"))
libraries._link([Path("wave.o")], target, Path("wave.so"))
"""

_DIGESTS = """
from kernels.libraries import all_kernels, digest
from kernels.lowering import Lowering
from estero.engine.kernels import Kernel

def calls_another(kernel):
    called = (kernel.function.__globals__.get(name) for name in kernel.function.__code__.co_names)
    return any(isinstance(each, Kernel) and not hasattr(each.function, "is_inlined") for each in called)

found = all_kernels()
digests = [digest(kernel) for kernel in found]
caller = min(filter(calls_another, found), key=lambda kernel: len(kernel.function.__code__.co_code))
Lowering().lower(caller)
print(caller.name, digests == [digest(kernel) for kernel in found])
"""


def test_a_library_that_needs_something_from_outside_is_not_linked(tmp_path: Path) -> None:
    ran = _ran(_A_SINE, tmp_path)
    assert ran.returncode
    assert "undefined symbol: sin" in ran.stderr
    assert not (tmp_path / "wave.so").exists()


def test_digests_are_the_same_after_a_kernel_is_lowered_that_calls_another_one(tmp_path: Path) -> None:
    ran = _ran(_DIGESTS, tmp_path)
    assert ran.stdout.split()[1:] == ["True"], ran.stdout + ran.stderr


def test_an_isolated_build_finds_the_packages_that_pip_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('found')")  # as pip has it
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec = spec_from_file_location("hatch_build", REPOSITORY / "hatch_build.py")
    assert spec
    assert spec.loader
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    assert hook._build(REPOSITORY, "--name").split() == ["found", platform_name()]


def _ran(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, REPOSITORY / "src")))},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=FAR_OFF,
    )
