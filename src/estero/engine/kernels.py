"""Kernels: Python functions over integers and arrays, which run as machine code that comes with the wheel.

`kernels/`, next to `src`, compiles every function decorated with `kernel` to a C function, and `library`
loads them. Their arguments:

======================== ======================================================================
kind                     how a C function has it
======================== ======================================================================
`INT`, `FLAG`            int64; a flag is 0 or 1
`column(dtype, ndim)`    address of a block: that of the items, then the lengths
a `pool`                 address of a block: of each field its column, its integer, or the address
                         of its own block if it is a pool
a `Cursor`               address of its places
======================== ======================================================================

Arrays are contiguous (order C). Negative indices do not count from the end: a kernel must not use them, and
machine code checks no index. `ESTERO_KERNELS=python` runs the Python functions themselves, where NumPy checks
indices.

Machine code computes with 64 bits; NumPy, and so a Python function, with those of the column that a number
was read from. So kernels do not compute with numbers of 8 or 16 bits, but only test them, and a sum over a
column of 32 bits begins with ``np.int64(0)``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from ctypes import Structure, addressof, c_bool, c_char, c_int64, c_uint64
from dataclasses import dataclass
from functools import cache, update_wrapper
from itertools import product
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from estero.engine.library import library
from estero.system.cached_property import cached_property

_Item = TypeVar("_Item", bound=np.generic)
Grid = Annotated[NDArray[_Item], 2]
"""A field of a pool with two dimensions."""
Cube = Annotated[NDArray[_Item], 3]
"""A field of a pool with three dimensions."""

_Pool = TypeVar("_Pool", bound=tuple[Any, ...])

_BLOCKS: Final = tuple(c_int64 * (1 + ndim) for ndim in range(4))
"""Blocks for arrays of up to three dimensions."""
_memory: Final[Any] = (c_char * 0).from_buffer
"""The memory of an array, whose address `ctypes` knows and which keeps the array alive."""


# ------------------------------------------------------------------------------------------ arguments


@dataclass(frozen=True)
class Column:
    """An array: the type of its items, and its number of dimensions."""

    dtype: np.dtype[Any]
    ndim: int

    @property
    def words(self) -> int:
        """The number of words that it takes in a block."""
        return 1 + self.ndim

    def check(self, values: NDArray[Any]) -> None:
        """Raises TypeError unless an array has this item type and number of dimensions."""
        if values.dtype != self.dtype or values.ndim != self.ndim or not values.flags.c_contiguous:
            raise TypeError(f"an array {values.dtype}{list(values.shape)} where a kernel reads {self}")

    def block(self, values: NDArray[Any]) -> tuple[int, ...]:
        """The address and the lengths of an array."""
        self.check(values)
        return _address(values), *values.shape

    def from_param(self, values: NDArray[Any]) -> Any:
        """The argument that `ctypes` passes for an array and keeps alive during the call.

        This is `block`, inlined: for a kernel over a few events this takes most of the time.
        """
        flags = values.flags
        if values.dtype != self.dtype or values.ndim != self.ndim or not flags.c_contiguous:
            self.check(values)
        address = addressof(_memory(values)) if flags.writeable else _address(values)
        return _BLOCKS[self.ndim](address, *values.shape)

    def __repr__(self) -> str:
        return f"{self.dtype}[{', '.join('·' * self.ndim)}]"


def _address(values: NDArray[Any]) -> int:
    if values.flags.writeable:
        return addressof(_memory(values))
    address: int = values.__array_interface__["data"][0]
    return address


def _words(numbers: Iterable[int]) -> Any:
    """A block of words, passed by `ctypes` as its address."""
    return _memory(array("q", numbers))


def column(dtype: Any, ndim: int = 1) -> Column:
    """The kind of arrays with this item type."""
    return Column(np.dtype(dtype), ndim)


INT8S, INT32S, INT64S = column(np.int8), column(np.int32), column(np.int64)
UINT32S, UINT64S = column(np.uint32), column(np.uint64)
FLOATS, FLAGS = column(np.float64), column(np.bool_)


INT, UINT, FLAG = c_int64, c_uint64, c_bool


class Maybe(NamedTuple):
    """A pool or None; machine code is compiled for both."""

    kind: Any


class Cursor(Structure):
    """The position of a kernel: int64 places by name, which it reads and writes.

    `at`: the next event of the batch; `last`: the one before which to stop; `first`: the sequence number of
    the batch's first event; the further ones each kernel explains.
    """

    places: tuple[str, ...] = ()


@cache
def cursor_type(*places: str) -> Any:
    """The class of cursors with these places."""
    fields = [(name, c_int64) for name in places]
    return type("Cursor", (Cursor,), {"_fields_": fields, "places": places})


def pool(fields: type[_Pool]) -> type[_Pool]:
    """Makes a class a pool: a named tuple of arrays, integers and other pools that can be passed to kernels.

    Its block is filled once: to replace an array, make another named tuple.
    """

    class Pool(fields):  # type: ignore[misc, valid-type]
        @cached_property
        def _as_parameter_(self) -> Any:
            block: list[int] = []
            for kind, value in zip(_kinds_of(fields).values(), self, strict=True):
                if isinstance(kind, Column):
                    block += kind.block(value)
                else:
                    block.append(int(value) if kind in (INT, FLAG) else addressof(value._as_parameter_))
            return _words(block)

    Pool.__name__, Pool.__qualname__ = fields.__name__, fields.__qualname__
    Pool.__module__, Pool.__doc__ = fields.__module__, fields.__doc__
    return Pool


def kinds_of(kind: Any) -> dict[str, Any]:
    """The kinds of the fields of a pool's class, by name: `Column`, `INT`, `FLAG`, or the class of a pool."""
    return _kinds_of(kind.__base__)


@cache
def _kinds_of(fields: Any) -> dict[str, Any]:
    hints = get_type_hints(fields, include_extras=True)
    return {name: _kind(hints[name]) for name in fields._fields}


def _kind(hint: Any) -> Any:
    if hint in (int, bool):
        return INT if hint is int else FLAG
    ndim = 1
    if get_origin(hint) is Annotated:
        hint, ndim = get_args(hint)
    if get_origin(hint) is np.ndarray:
        return column(get_args(get_args(hint)[1])[0], ndim)
    if get_origin(hint) is NDArray:  # a name of its own from NumPy 2.5 on
        return column(get_args(hint)[0], ndim)
    if not isinstance(hint, type):
        raise TypeError(f"no kernel reads a {hint}: a pool has arrays, integers and pools")
    return hint


# -------------------------------------------------------------------------------------------- kernels


def inlined(function: Any) -> Any:
    """Marks a small, frequent step of a kernel: machine code inlines its calls."""
    function.is_inlined = True
    return function


def step(function: Any) -> Any:
    """Marks a rare step of a kernel, which remains a call."""
    function.is_inlined = False
    return function


def interpreted(function: Any) -> Any:
    """Marks a check of a kernel: machine code leaves it out, and does not evaluate its arguments."""
    function.is_inlined = function.is_left_out = True
    return function


class Variant(NamedTuple):
    """A C function: its name, the kinds of its arguments (None if a pool is), and the Python function."""

    name: str
    kinds: tuple[Any, ...]
    function: Any


class Kernel:
    """A kernel that can be called from Python; `kinds` are those of its arguments."""

    function: Any
    kinds: tuple[Any, ...]

    def __init__(self, function: Any, kinds: tuple[Any, ...]) -> None:
        update_wrapper(self, function)
        self.function, self.kinds = function, kinds
        self.name: str = f"{function.__module__}.{function.__qualname__}".replace(".", "_")

    def __call__(self, *arguments: Any) -> int:
        """Calls the function and returns its result, an integer; machine code releases the GIL."""
        return self._run(*arguments)  # type: ignore[no-any-return]

    @property
    def variants(self) -> Iterator[Variant]:
        """The C functions of the kernel: one for each choice of the pools that may be None."""
        choices = [(kind.kind, None) if isinstance(kind, Maybe) else (kind,) for kind in self.kinds]
        for kinds in product(*choices):
            without = "".join(f"_{place}" for place, kind in enumerate(kinds) if kind is None)
            yield Variant(self.name + without, kinds, self.function)

    @cached_property
    def _run(self) -> Any:
        functions = [library().function(variant.name, variant.kinds) for variant in self.variants]
        if functions[0] is None:
            return self.interpret
        if len(functions) == 1:
            return functions[0]
        places = [place for place, kind in enumerate(self.kinds) if isinstance(kind, Maybe)]
        weights = [1 << power for power in reversed(range(len(places)))]

        def run(*arguments: Any) -> int:
            without = [
                weight for place, weight in zip(places, weights, strict=True) if arguments[place] is None
            ]
            return functions[sum(without)](*arguments)  # type: ignore[no-any-return]

        return run

    def interpret(self, *arguments: Any) -> int:
        """Calls the Python function and returns its result; integers wrap around silently there, too."""
        for kind, argument in zip(self.kinds, arguments, strict=True):
            _check(kind, argument)
        with np.errstate(over="ignore", invalid="ignore"):
            return int(self.function(*arguments) or 0)


def _check(kind: Any, argument: Any) -> None:
    """Raises TypeError unless all arguments are of their kinds, which machine code could not detect."""
    if isinstance(kind, Maybe):
        if argument is not None:
            _check(kind.kind, argument)
    elif isinstance(kind, Column):
        kind.check(argument)
    elif kind not in (INT, UINT, FLAG):
        if not isinstance(argument, kind):
            raise TypeError(f"a {type(argument).__name__} where a kernel reads a {kind.__name__}")
        if not isinstance(argument, Cursor):
            argument._as_parameter_  # noqa: B018 - its arrays are checked as their addresses are taken


def kernel(*kinds: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Marks functions that Python calls; they allocate nothing, and return an integer or nothing."""
    return lambda function: Kernel(function, kinds)
