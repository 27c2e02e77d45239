"""`python -m kernels`: builds parsers, and the libraries of kernels for this platform or those named."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from estero.engine.library import FOLDER, PLATFORMS, TABLE, digest_of_sources, library_names, platform_name
from estero.language.syntax.parser_tables import GRAMMARS, is_current, write_tables

OBJECTS = Path(__file__).parent.parent / "build" / "kernels"


def main() -> None:
    """Builds what the arguments name, unless it has been built from these sources already."""
    parser = argparse.ArgumentParser(prog="python -m kernels", description=__doc__)
    parser.add_argument(
        "--platform", action="append", choices=(*PLATFORMS, "all"), help="several times, or all"
    )
    parser.add_argument("--into", type=Path, default=FOLDER, help="the folder of the libraries")
    parser.add_argument("--objects", type=Path, default=OBJECTS, help="the folder of object files, kept")
    parser.add_argument("--name", action="store_true", help="print the name of this platform only")
    said = parser.parse_args()
    if said.name:
        print(platform_name())  # noqa: T201 - to whoever asks
        return
    for grammar in GRAMMARS:
        if not is_current(grammar):
            write_tables(grammar)
    named = said.platform or [platform_name()]
    platforms = PLATFORMS if "all" in named else named
    if is_built(said.into, platforms):
        return
    missing = [name for name in ("numba", "ziglang") if find_spec(name) is None]
    if missing:
        sys.exit(
            f"estero: to build kernels takes {' and '.join(missing)}, which this Python lacks: "
            f"{sys.executable} -m pip install {' '.join(missing)} (in a clone, 'make setup' does)"
        )
    from kernels.libraries import build  # Numba

    began = time.process_time()
    sys.stderr.write(f"estero: building kernels for {', '.join(platforms)}\n")
    build(said.into, said.objects, platforms)
    sys.stderr.write(f"estero: kernels are built ({time.process_time() - began:.0f} s of CPU)\n")


def is_built(folder: Path, platforms: Sequence[str]) -> bool:
    """Whether a folder has libraries of these sources for all of these platforms."""
    try:
        table = json.loads((folder / TABLE).read_bytes())
    except FileNotFoundError:
        return False
    wanted = {file for name in platforms for file in library_names(name).values()}
    there = {file for file in table["libraries"] if (folder / file).exists()}
    return bool(table["sources"] == digest_of_sources() and wanted <= there)


if __name__ == "__main__":
    main()
