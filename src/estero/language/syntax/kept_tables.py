"""Where the tables of parsers are kept on disk: to work them out takes 0.07 s, to read them 0.01 s."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

import lark

_HERE = Path(__file__).parent


@cache
def kept_tables(grammar: str) -> str:
    """The file for the tables of the grammar that is in the file `grammar`, beside compiled kernels.

    It is in the directory that ``ESTERO_CACHE`` names, or in that of compiled Python files. Its name tells
    the version of the grammars, Lark and Python; what Lark finds damaged or outdated is worked out anew, and
    where nothing can be written, each process does so.
    """
    directory = Path(os.environ.get("ESTERO_CACHE") or _HERE / "__pycache__").absolute()
    version = hashlib.sha256(f"{lark.__version__} {platform.python_version()}".encode())
    with suppress(OSError):  # there are no files in a zip, and other directories may be for reading only
        for file in sorted(_HERE.glob("*.lark")):
            version.update(file.read_bytes())
        directory.mkdir(parents=True, exist_ok=True)
    return str(directory / f"{Path(grammar).stem}-{version.hexdigest()[:16]}.tables")
