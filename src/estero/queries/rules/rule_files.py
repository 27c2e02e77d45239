"""Rules in files: a rule is named after its file, and comment lines at the top are its metadata."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from estero.errors import DataError, QueryError
from estero.language.tree.names import listed

if TYPE_CHECKING:
    from estero.queries.query import Query

LANGUAGES: Final = {".ceql": "ceql", ".yml": "sigma", ".yaml": "sigma", ".eql": "eql", ".toml": "eql"}
"""The extensions of files with rules, and their languages."""
_ENDINGS: Final = tuple(LANGUAGES)
EXAMPLES: Final = ".test.yml"
"""The extension of a file with examples for the rules of another one (`estero.testing.check_rules`)."""
_SAID: Final = re.compile(r"--\s*([A-Za-z_][\w-]*)\s*:\s*(.*?)\s*$")
_TECHNIQUE: Final = re.compile(r"\battack\.(t\d+(?:\.\d+)?)", re.IGNORECASE)
_MOST: Final = 1 << 20
"""The largest size of a file with a rule, in bytes."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """The text of a rule, its file, and the metadata of its comment lines: ``-- title: …``."""

    text: str
    file: Path | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def said(self) -> dict[str, str]:
        """All metadata, with the file, and ``techniques``, the ATT&CK techniques among the tags."""
        said = dict(self.metadata)
        if self.file is not None:
            said.setdefault("file", str(self.file))
        techniques = ", ".join(technique.upper() for technique in _TECHNIQUE.findall(said.get("tags", "")))
        if techniques:
            said.setdefault("techniques", techniques)
        return said


@dataclass(frozen=True)
class FilesRead:
    """The rules of files, their metadata, and the errors of those that cannot be run, by name."""

    rules: dict[str, Query] = field(default_factory=dict)
    texts: dict[str, RuleText] = field(default_factory=dict)
    refused: dict[str, QueryError] = field(default_factory=dict)


def files_of_rules(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    """The files with rules among files and directories, in order of their paths, without duplicates.

    A directory stands for all files in it and below whose extensions are in `LANGUAGES`. Raises `DataError`
    for a directory without rules, and for a path that does not exist.
    """
    given = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files = [path for name in given for path in _files(Path(fspath(name)))]
    return sorted(set(files)) if len(given) > 1 else files


def files_below(directory: str) -> Iterator[Path]:
    """The files with rules in a directory and below it, in order of their paths.

    Directories that cannot be read count as empty.
    """
    with suppress(PermissionError), os.scandir(directory) as entries:
        for entry in sorted(entries, key=attrgetter("name")):
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path)
            elif entry.name.endswith(_ENDINGS) and not entry.name.endswith(EXAMPLES) and entry.is_file():
                path = Path(entry.path)
                if path.suffix:  # a name such as ".eql" has no extension
                    yield path


def rules_in_files(files: Iterable[Path]) -> dict[str, RuleText]:
    """The texts of the rules in CEQL of some files, by name, in the order of the files.

    Raises `DataError` for a file that is not UTF-8 or larger than a megabyte, and for files of equal names.
    """
    rules: dict[str, RuleText] = {}
    for file in files:
        if file.stem in rules:
            raise DataError(
                f"two files have the rule {file.stem!r}: {rules[file.stem].file} and {file}",
                hint="rename one of them: the name of a file is that of its rule",
            )
        text = text_of_file(file)
        rules[file.stem] = RuleText(text, file, dict(_metadata(text)))
    return rules


def text_of_file(file: Path) -> str:
    """The text of a file; raises `DataError` if it is not a text, and OSError if it cannot be read."""
    with open(file, "rb", buffering=0) as opened:  # noqa: PTH123 (Path.open takes twice as long)
        size = os.fstat(opened.fileno()).st_size
        if size > _MOST:
            raise DataError(f"{file} is larger than a megabyte, which no rule is")
        content = opened.read(size + 1)
        if len(content) != size:  # it grows, or has no size, as in /proc
            content += opened.readall()
    try:
        return content.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8: {error.reason} at byte {error.start}") from error


def language_of(file: Path) -> str:
    """The language of the rules in a file, by its extension; CEQL for unknown extensions."""
    return LANGUAGES.get(file.suffix, "ceql")


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        files = list(files_below(str(path)))
        if not files:
            raise DataError(f"there are no rules in {path}: their files end in {listed(LANGUAGES)}")
        yield from files
    elif path.is_file():
        yield path
    else:
        raise DataError(f"there is no file or directory {path}")


def _metadata(text: str) -> Iterator[tuple[str, str]]:
    """The metadata in the comment lines at the top of a text."""
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("--"):
            return
        said = _SAID.match(line.strip())
        if said is not None:
            yield said[1], said[2]
