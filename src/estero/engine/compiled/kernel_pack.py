"""Compiled kernels that travel: what one process has on disk of some kernels, for processes elsewhere.

A pack begins with what its code depends on: the version of the kernels and of what compiles them, and the
processor. Who has others leaves it alone without reading on. Code has the key that it has on disk, by which
it is found, and never by its name alone.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Iterable
from importlib import import_module

from numba.core.registry import cpu_target
from numba.core.serialize import dumps

from estero.engine.compiled.kernel_files import kernels_version
from estero.engine.jit import Kernel


def pack(kernels: Iterable[Kernel]) -> bytes | None:
    """What is on disk of these kernels, for this processor; None where that is nothing."""
    processor = _processor()
    found = []
    for kernel in kernels:
        codes = {key: code for key, code in kernel.compiled.codes().items() if key[1] == processor}
        if codes:
            found.append((kernel.__module__, kernel.plain.__qualname__, codes))
    return _mark() + zlib.compress(dumps(found), 1) if found else None


def unpack(packed: bytes) -> bool:
    """Gives this process, and its disk, the kernels of a pack; whether they fit its processor and versions.

    A pack is as trusted as a function that is sent to be run.
    """
    mark = _mark()
    if packed[: len(mark)] != mark:
        return False
    for module, name, codes in pickle.loads(zlib.decompress(packed[len(mark) :])):  # noqa: S301 - see above
        getattr(import_module(module), name).compiled.receive(codes)
    return True


def _processor() -> tuple[str, ...]:
    """As it stands in the key of code on disk."""
    found: tuple[str, ...] = cpu_target.target_context.codegen().magic_tuple()
    return found


def _mark() -> bytes:
    return hashlib.sha256(repr((kernels_version(), _processor())).encode()).digest()
