"""Compiled kernels on disk, as Numba keeps them, so that nothing that is there can make a run fail.

Numba raises whatever reading and writing its files raises, runs what a garbled file holds, and two processes
that write at once can leave the code of one signature under the name of another. Here each file ends with a
digest of it, and says what it is of. What is not as it was written is compiled anew, and where it cannot be
written, it stays in memory.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import caching

_log = logging.getLogger("estero")
_digest = hashlib.sha256
_DIGEST_SIZE = 32


def keep_on_disk(dispatcher: Any) -> Any:
    """The same kernel, read from disk where it was compiled before: what `cache=True` of Numba does."""
    if hasattr(dispatcher, "_cache"):  # where the JIT is off, it is a plain function
        dispatcher._cache = _kernel_cache(dispatcher.py_func)  # noqa: SLF001 - as `enable_caching` does
    return dispatcher


def _kernel_cache(function: Callable[..., Any]) -> Any:
    try:
        return _KernelCache(function)
    except RuntimeError:  # Numba finds no directory that it may write to
        return _NoCache()


class _Said:
    """Whether it was said that kernels are not kept."""

    already = False


def _say_not_kept(why: str) -> None:
    if not _Said.already:
        _Said.already = True
        _log.warning(
            "estero: compiled kernels cannot be kept on disk (%s), so that each run compiles them: "
            "set NUMBA_CACHE_DIR to a directory that can be written",
            why,
        )


class _NoCache(caching.NullCache):
    """Keeps nothing, and says so when the first kernel is compiled."""

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ARG002 - as Numba calls it
        """Keeps nothing."""
        _say_not_kept("there is no directory for them")


class _KernelFile(caching.IndexDataCacheFile):
    """The files of one kernel: an index, and the code for each signature.

    A pickle says itself where it ends, so that the digest behind it is not in the way of Numba's reading.
    """

    def save(self, key: Any, data: Any) -> None:
        """Saves code, with what it is of."""
        super().save(key, (self._what(key), data))

    def load(self, key: Any) -> Any:
        """The code; None where there is none that is sound."""
        found = super().load(key)
        return found[1] if found is not None and found[0] == self._what(key) else None

    def _what(self, key: Any) -> Any:
        return self._index_name, self._source_stamp, key

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + _digest(content).digest()

    def _load_index(self) -> Any:
        head = pickle.dumps(self._version, protocol=-1)
        if not _is_sound(Path(self._index_path), head):
            return {}
        try:
            return super()._load_index()
        except Exception as error:  # noqa: BLE001 - signatures may name tuples that the code has no more
            _log.debug("estero: %s is not read from disk: %r", self._index_path, error)
            return {}

    def _load_data(self, name: str) -> Any:
        return super()._load_data(name) if _is_sound(Path(self._data_path(name))) else None


def _is_sound(file: Path, head: bytes = b"") -> bool:
    """Whether a file is there, begins with `head` and ends with the digest of what is between."""
    try:
        content = memoryview(file.read_bytes())
    except OSError:
        return False
    body, digest = content[len(head) : -_DIGEST_SIZE], content[-_DIGEST_SIZE:]
    return content[: len(head)] == head and _digest(body).digest() == digest


@cache
def _engine_stamp() -> tuple[float, int]:
    """When a file of this room was last changed, and how long all are: kernels inline code of other files."""
    files = [file.stat() for file in Path(__file__).parent.rglob("*.py")]  # none where it runs from a zip
    return max((file.st_mtime for file in files), default=0.0), sum(file.st_size for file in files)


class _KernelCache(caching.FunctionCache):
    """What Numba asks for one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), _engine_stamp()
        self._cache_file = _KernelFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Code from disk; None where there is none that is sound."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001 - whatever it is, compiling anew mends it
            _log.debug("estero: %s is not read from disk: %r", self, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Writes code, if that can be done."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_not_kept(f"{self._cache_path}: {error.strerror or error}")
