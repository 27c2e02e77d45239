"""Compiled kernels on disk, as Numba keeps them, so that nothing that is there can make a run fail.

Numba raises whatever reading and writing its files raises, runs what a garbled file holds, and two processes
that write at once can leave the code of one signature under the name of another. Here each file ends with a
digest of it, and says what it is of. What is not as it was written is compiled anew, and where it cannot be
written, it stays in memory. Machine code runs whatever it is, so kernels are read only from folders and
files that nobody else can write (`estero.system.private_files`).

`ESTERO_CACHE` names a directory for them that can be made elsewhere and copied: kernels of another version of
Estero, Numba or Python have a directory of their own in it, and those of another processor are told apart by
the index. Without it they are where Numba puts them.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import platform
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numba.core import caching

from estero.system.private_files import exposure, is_usable, make_folder, read, replaced

_log = logging.getLogger("estero")
_digest = hashlib.sha256
_DIGEST_SIZE = 32

DIRECTORY = "ESTERO_CACHE"
"""The variable of the environment that says where kernels are kept."""

_ROOM = Path(__file__).parents[1]


def kernel_cache(function: Callable[..., Any]) -> Any:
    """Where a kernel is kept and found again: what `cache=True` of Numba does."""
    named = os.environ.get(DIRECTORY)
    if named and not is_usable(Path(named).absolute()):
        _Said.already = True
        return _NoCache(function)
    try:
        return _KernelCache(function)
    except RuntimeError:  # Numba finds no directory that it may write to
        return _NoCache(function)


def directory() -> Path | None:
    """Where kernels of this package are kept, whether it is there yet or not; None where that is nowhere."""
    place = kernel_cache(_sound).cache_path
    return None if place is None else Path(place)


class _Said:
    """Whether it was said that kernels are not kept."""

    already = False


def _say_not_kept(why: str) -> None:
    if not _Said.already:
        _Said.already = True
        _log.warning(
            "estero: compiled kernels cannot be kept on disk (%s), so that each run compiles them: "
            f"set {DIRECTORY} to a directory that can be written",
            why,
        )


class _NoCache(caching.NullCache):
    """Keeps nothing on disk, and says so when the first kernel is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function
        self._received: dict[Any, Any] = {}

    def codes(self) -> dict[Any, Any]:
        """Nothing is on disk."""
        return {}

    def receive(self, codes: Mapping[Any, Any]) -> None:
        """Keeps code from elsewhere in memory."""
        self._received.update(codes)

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether there is code for such arguments."""
        return caching.Cache._index_key(self, sig, target_context.codegen()) in self._received  # noqa: SLF001

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Code that was received."""
        target_context.refresh()
        key = caching.Cache._index_key(self, sig, target_context.codegen())  # noqa: SLF001
        code = self._received.get(key)
        return None if code is None else caching.CompileResultCacheImpl.rebuild(self, target_context, code)

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ARG002 - as Numba calls it
        """Keeps nothing."""
        _say_not_kept("there is no directory for them")


class _KernelFile(caching.IndexDataCacheFile):
    """The files of one kernel: an index, and the code for each signature.

    A pickle says itself where it ends, so that the digest behind it is not in the way of Numba's reading.
    Code that was received from elsewhere is in memory, too: here it may not be possible to write.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._received: dict[Any, Any] = {}

    def codes(self) -> dict[Any, Any]:
        """All sound code by its key."""
        found = {key: self.load(key) for key in self._load_index()}
        return {key: code for key, code in found.items() if code is not None}

    def receive(self, codes: Mapping[Any, Any]) -> None:
        """Takes code from elsewhere, and writes what is not on disk yet, if that can be done."""
        lacking = {key: code for key, code in codes.items() if self.load(key) is None}
        self._received.update(lacking)
        try:
            make_folder(Path(self._cache_path))
            for key, code in lacking.items():
                self.save(key, code)
        except OSError as error:
            _log.debug("estero: received kernels stay in memory: %r", error)

    def save(self, key: Any, data: Any) -> None:
        """Saves code, with what it is of."""
        super().save(key, (self._what(key), data))

    def load(self, key: Any) -> Any:
        """The code; None where there is none that is sound."""
        try:
            found = super().load(key)
        except Exception as error:  # noqa: BLE001 - whatever it is, compiling anew mends it
            _log.debug("estero: %s is not read from disk: %r", self._index_path, error)
            found = None
        if found is not None and found[0] == self._what(key):
            return found[1]
        return self._received.get(key)

    def has(self, key: Any) -> bool:
        """Whether there is code, sound or not."""
        return key in self._received or key in self._load_index()

    def _what(self, key: Any) -> Any:
        return self._index_name, self._source_stamp, key

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + _digest(content).digest()

    def _load_index(self) -> Any:
        head = pickle.dumps(self._version, protocol=-1)
        try:
            stamp, overloads = pickle.loads(_sound(self._index_path, head))  # noqa: S301 - nobody else wrote it
        except FileNotFoundError:
            return {}
        except Exception as error:  # noqa: BLE001 - signatures may name tuples that the code has no more
            _log.debug("estero: %s is not read from disk: %r", self._index_path, error)
            return {}
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_sound(self._data_path(name)))  # noqa: S301 - nobody else wrote it

    def _open_for_write(self, filepath: str) -> Any:
        return replaced(Path(filepath))


def _sound(path: str, head: bytes = b"") -> bytes:
    """What is in a file that begins with `head`, between that and the digest of it at the end.

    Raises OSError where there is no such file, and where others could have written it.
    """
    content = read(Path(path))
    body, digest = content[len(head) : -_DIGEST_SIZE], content[-_DIGEST_SIZE:]
    if content[: len(head)] != head or _digest(body).digest() != digest:
        raise OSError(f"{path} is damaged")
    return body


@cache
def kernels_version() -> str:
    """What code depends on beside the processor: all files of this room, and what compiles them."""
    compilers = [f"{name} {version(name)}" for name in ("numba", "llvmlite", "numpy")]
    content = _digest(" ".join([*compilers, platform.python_version(), platform.machine()]).encode())
    for file in sorted(_ROOM.rglob("*.py")):  # none where it runs from a zip
        content.update(file.relative_to(_ROOM).as_posix().encode())
        content.update(file.read_bytes())
    return content.hexdigest()[:16]


class _Directory(caching._CacheLocator):  # noqa: SLF001 - as those that Numba has
    """The directory that `ESTERO_CACHE` names, whether it can be written to or not."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file
        self._line = function.__code__.co_firstlineno
        self._path = Path(os.environ[DIRECTORY], kernels_version())

    def get_cache_path(self) -> str:
        """The directory for this version."""
        return str(self._path)

    def get_source_stamp(self) -> str:
        """The version."""
        return kernels_version()

    def get_disambiguator(self) -> str:
        """The line where a kernel begins."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Directory | None:
        """The place of a kernel; None where no directory is named."""
        return cls(function, file) if os.environ.get(DIRECTORY) else None


def _private(locator: Any) -> Any:
    """A place of Numba, which is passed over where others could change what is there."""

    class Private(locator):
        def ensure_cache_path(self) -> None:
            make_folder(Path(self.get_cache_path()))
            super().ensure_cache_path()

        @classmethod
        def from_function(cls, function: Callable[..., Any], file: str) -> Any:
            found = super().from_function(function, file)
            return None if found is None or exposure(Path(found.get_cache_path())) else found

    return Private


class _Place(caching.CompileResultCacheImpl):
    """Where a kernel is kept."""

    _locator_classes = tuple(
        map(_private, (_Directory, *caching.CompileResultCacheImpl._locator_classes))  # noqa: SLF001
    )


class _KernelCache(caching.FunctionCache):
    """What Numba asks for one kernel."""

    _impl_class = _Place

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp(), kernels_version()
        self._cache_file = _KernelFile(self._cache_path, self._impl.filename_base, stamp)

    def codes(self) -> dict[Any, Any]:
        """All sound code that is on disk, by its key."""
        found: dict[Any, Any] = self._cache_file.codes()
        return found

    def receive(self, codes: Mapping[Any, Any]) -> None:
        """Takes code that comes from elsewhere, by its key."""
        self._cache_file.receive(codes)

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether there is code for such arguments."""
        return bool(self._cache_file.has(self._index_key(sig, target_context.codegen())))

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
            make_folder(Path(self._cache_path))
            super().save_overload(sig, data)
        except OSError as error:
            _say_not_kept(f"{self._cache_path}: {error.strerror or error}")
