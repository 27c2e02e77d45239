"""LLVM IR of kernels → one library for each platform and level of its processors.

Kernels do not call one another, so each is optimized as a whole, with all functions that it calls, in its own
object file, and only changed kernels are compiled again. Of a platform, only Zig's linker is needed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np

import estero.engine
from estero.engine import kernels
from estero.engine.library import TABLE, digest_of_sources, library_names, platform_name
from kernels.lowering import Lowering, returns_a_value

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
llvm.initialize_native_asmparser()  # for what asks the processor


@dataclass(frozen=True)
class Target:
    """The target of machine code, in the terms of LLVM and of Zig."""

    triple: str
    processor: str
    zig: str


TARGETS: dict[str, dict[str, Target]] = {
    "linux-x86_64": {
        level: Target("x86_64-unknown-linux-gnu", level, "x86_64-linux-gnu.2.17")
        for level in ("x86-64-v2", "x86-64-v3")
    },
    "linux-aarch64": {
        "armv8": Target("aarch64-unknown-linux-gnu", "generic", "aarch64-linux-gnu.2.17"),
    },
    "macos-arm64": {
        "armv8": Target("arm64-apple-macosx11.0.0", "apple-m1", "aarch64-macos.11.0"),
    },
    "macos-x86_64": {
        level: Target("x86_64-apple-macosx11.0.0", level, "x86_64-macos.11.0")
        for level in ("x86-64-v2", "x86-64-v3")
    },
    "windows-x86_64": {
        level: Target("x86_64-pc-windows-gnu", level, "x86_64-windows-gnu")
        for level in ("x86-64-v2", "x86-64-v3")
    },
}
"""The targets by platform and level."""


def all_kernels() -> list[kernels.Variant]:
    """The C functions of the engine's kernels, by name."""
    variants: set[kernels.Variant] = set()
    for module in walk_packages(estero.engine.__path__, "estero.engine."):
        for value in vars(import_module(module.name)).values():
            if isinstance(value, kernels.Kernel):
                variants.update(value.variants)
    return sorted(variants, key=lambda variant: variant.name)


class Objects:
    """Object files, kept in a folder under the digests of what they are made from."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lowering = Lowering()

    def of_kernel(self, kernel: kernels.Variant, target: Target) -> Path:
        """The object file of a kernel."""
        source = digest(kernel)
        path = self._folder / f"{kernel.name}-{_hash(source, repr(target))}.o"
        if not path.exists():
            module = llvm.parse_bitcode(self._bitcode(kernel, source))
            _write(path, _machine_code(module, target, kernel.name))
        return path

    def of_runtime(self, target: Target) -> Path:
        """The object file of the external functions that kernels need."""
        text = _RUNTIME + (_LEVEL if target.triple.startswith("x86_64") else "")
        path = self._folder / f"runtime-{_hash(text, repr(target))}.o"
        if not path.exists():
            _write(path, _machine_code(llvm.parse_assembly(text), target, "estero_level"))
        return path

    def _bitcode(self, kernel: kernels.Variant, source: str) -> bytes:
        """The bitcode of a kernel, which is the same for all targets, so it is kept, too."""
        path = self._folder / f"{kernel.name}-{source}.bc"
        if not path.exists():
            text, name = self._lowering.lower(kernel)
            module = llvm.parse_assembly(text.replace(name, kernel.name))
            for value in (*module.functions, *module.global_variables):
                if not value.is_declaration and value.name != kernel.name:
                    value.linkage = "internal"
            _optimise(module, llvm.Target.from_default_triple().create_target_machine(), 1)
            _write(path, module.as_bitcode())
        return path.read_bytes()


def _optimise(module: Any, machine: Any, level: int) -> None:
    """Runs LLVM's passes; that no step raises is known to its callers only after a first time."""
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


def _machine_code(module: Any, target: Target, exported: str) -> bytes:
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor, opt=3, reloc="pic", codemodel="default"
    )
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    for function in module.functions:
        if function.name == exported and "windows" in target.triple:
            function.storage_class = "dllexport"
    _optimise(module, machine, 3)
    missing = {function.name for function in module.functions if function.is_declaration}
    missing = {name for name in missing if not name.startswith("llvm.")} - {"memset"}
    if missing:
        raise RuntimeError(f"{exported} needs {', '.join(sorted(missing))}, which no library of kernels has")
    code: bytes = machine.emit_object(module)
    return code


def _write(path: Path, code: bytes) -> None:
    begun = path.with_suffix(f".{os.getpid()}")  # another process may write the same
    begun.write_bytes(code)
    begun.replace(path)


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# --------------------------------------------------------------------------------------------- digests


def digest(kernel: kernels.Variant) -> str:
    """The digest of all that a kernel's machine code depends on: its code, callees, numbers and layouts."""
    parts = [numba.__version__, llvmlite.__version__, *map(_kind, kernel.kinds)]
    parts += [path.read_text("utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    seen: set[Any] = set()
    waiting = [kernel.function]
    while waiting:
        function = waiting.pop()
        if function not in seen:
            seen.add(function)
            code = function.__code__
            marks = [getattr(function, mark, False) for mark in ("is_inlined", "is_left_out")]
            parts += [function.__qualname__, *_code(code), repr(marks)]
            for name in code.co_names:
                value = function.__globals__.get(name)
                value = value.function if isinstance(value, kernels.Kernel) else value
                if callable(value) and hasattr(value, "__code__"):
                    waiting.append(value)
                else:
                    is_number = isinstance(value, int | float | tuple | np.generic)
                    parts.append(f"{name} = {value!r}" if is_number else name)
    return _hash(*parts)


def _code(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_consts, code.co_names, code.co_varnames))


def _kind(kind: Any) -> str:
    """The text of a kind, with all that is in it."""
    if isinstance(kind, type) and issubclass(kind, tuple):
        return f"({', '.join(f'{name} {_kind(part)}' for name, part in kernels.kinds_of(kind).items())})"
    return str(getattr(kind, "places", kind))


# --------------------------------------------------------------------------------------------- linking


def build(into: Path, objects: Path, platforms: Sequence[str] = (platform_name(),)) -> None:
    """Writes the libraries of some platforms into a folder, and the table that describes them."""
    made = Objects(objects)
    variants = all_kernels()
    into.mkdir(parents=True, exist_ok=True)
    digests = {}
    for platform in platforms:
        for level, target in TARGETS[platform].items():
            files = [made.of_runtime(target), *(made.of_kernel(kernel, target) for kernel in variants)]
            path = into / library_names(platform)[level]
            _link(files, target, path)
            digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    table = {
        "sources": digest_of_sources(),
        "libraries": digests,
        "kernels": {
            kernel.name: {
                "kinds": list(map(_kind, kernel.kinds)),
                "returns": returns_a_value(kernel.function),
            }
            for kernel in variants
        },
    }
    _write(into / TABLE, (json.dumps(table, indent=1) + "\n").encode())


def _link(files: Sequence[Path], target: Target, path: Path) -> None:
    """Links object files to a library without an entry point, with no name, place or time of the build."""
    with TemporaryDirectory() as folder:
        begun = Path(folder, path.name)
        command = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig, "-shared", "-nostdlib", "-s"]
        if "linux" in target.zig:
            command += ["-Wl,-z,defs"]  # missing symbols fail here, not on loading
        if "macos" in target.zig:
            command += ["-Wl,-x", "-install_name", f"@rpath/{path.name}"]
        if "windows" in target.zig:
            command += ["-Wl,--no-entry"]
        settings = {"SOURCE_DATE_EPOCH": "0", "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        command += ["-o", str(begun), *map(str, files)]
        subprocess.run(command, env={**os.environ, **settings}, check=True)
        _write(path, begun.read_bytes())


# ------------------------------------------------------------------------------ what is not in a kernel

_RUNTIME = """\
define hidden ptr @memset(ptr %to, i32 %value, i64 %bytes) "no-builtins" {
start:
  %byte = trunc i32 %value to i8
  br label %test
test:
  %place = phi i64 [ 0, %start ], [ %next, %put ]
  %ends = icmp eq i64 %place, %bytes
  br i1 %ends, label %done, label %put
put:
  %address = getelementptr inbounds i8, ptr %to, i64 %place
  store i8 %byte, ptr %address
  %next = add nuw i64 %place, 1
  br label %test
done:
  ret ptr %to
}
"""
"""The functions that LLVM calls in place of loops that fill an array."""

_CPUID = 'call { i32, i32, i32, i32 } asm sideeffect "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}"'

_LEVEL = f"""
define i64 @estero_level() {{
start:
  %zero = {_CPUID}(i32 0, i32 0)
  %leaves = extractvalue {{ i32, i32, i32, i32 }} %zero, 0
  %has_seven = icmp uge i32 %leaves, 7
  %one = {_CPUID}(i32 1, i32 0)
  %features = extractvalue {{ i32, i32, i32, i32 }} %one, 2
  %of_one = and i32 %features, 953159680
  %first = icmp eq i32 %of_one, 953159680
  %known = and i1 %has_seven, %first
  br i1 %known, label %more, label %old
more:
  %saved = call {{ i32, i32 }} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}}"(i32 0)
  %low = extractvalue {{ i32, i32 }} %saved, 0
  %vectors = and i32 %low, 6
  %saves = icmp eq i32 %vectors, 6
  %seven = {_CPUID}(i32 7, i32 0)
  %wide = extractvalue {{ i32, i32, i32, i32 }} %seven, 1
  %of_seven = and i32 %wide, 296
  %second = icmp eq i32 %of_seven, 296
  %far = {_CPUID}(i32 -2147483647, i32 0)
  %extended = extractvalue {{ i32, i32, i32, i32 }} %far, 2
  %lzcnt = and i32 %extended, 32
  %third = icmp ne i32 %lzcnt, 0
  %both = and i1 %second, %third
  %all = and i1 %both, %saves
  %level = select i1 %all, i64 3, i64 2
  ret i64 %level
old:
  ret i64 2
}}
"""
"""The level of an x86-64 processor, as its manual tells (CPUID, XGETBV): 3 with AVX2, BMI, FMA and what goes
with these, where the operating system saves the wide registers; else 2."""
