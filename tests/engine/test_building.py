"""What is built: objects are kept under digests of what they are made from."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import REPOSITORY
from waiting import FAR_OFF

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


def test_digests_are_the_same_after_a_kernel_is_lowered_that_calls_another_one() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _DIGESTS],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
        timeout=FAR_OFF,
    )
    assert ran.stdout.split()[1:] == ["True"], ran.stdout
