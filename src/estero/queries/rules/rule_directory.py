"""A directory of rules that may change while a stream runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from estero.errors import DataError, EsteroError
from estero.queries.rules.read_rules import read_files
from estero.queries.rules.rule_files import files_below, language_of
from estero.queries.rules.rule_origin import RuleOrigin
from estero.queries.rules.rule_texts import LANGUAGES
from estero.queries.statement import raise_first


class RuleFiles(RuleOrigin):
    """The rules in the files below a directory, with `values` for their parameters.

    `changed` compares names, times and sizes, and reads only new and changed files.
    """

    called = "a directory of rules"

    def __init__(self, directory: Path, values: Mapping[str, object]) -> None:
        super().__init__(values)
        self._directory = directory
        self._seen: dict[Path, tuple[int, int]] = {}
        self._of_files: dict[Path, dict[str, str]] = {}

    def changed(self) -> dict[str, str] | None:
        """The texts of all rules, by name in order; None if they are the same as at the last call.

        Raises `DataError` if the directory does not exist.
        """
        directory_of(self._directory)
        files = list(files_below(str(self._directory)))
        seen = {path: _stamp(path) for path in files}
        if seen == self._seen:
            return None
        new = [path for path in files if self._seen.get(path) != seen[path]]
        self._of_files = {path: self._of_files.get(path) or self._kept(path) for path in files}
        self._seen = seen
        for path in new:
            self._read(path)
        texts = {name: text for own in self._of_files.values() for name, text in own.items()}
        return texts if texts != self.texts else None

    def _read(self, path: Path) -> None:
        """Reads the rules of one file; if it has none now, its previous rules are kept."""
        texts: dict[str, str] = {}
        try:
            read, errors = read_files(path)
            raise_first(errors)
            for name, error in read.refused.items():
                self.refuse(name, error)
            for name in read:
                texts[name] = LANGUAGES[language_of(path)] + read.text_of(name)
                self.know(name, texts[name], read[name])
            self.metadata = {**self.metadata, **read.metadata}
        except (EsteroError, OSError, ValueError) as error:
            self.refuse(path.stem, error)
        if texts:
            self._of_files[path] = texts

    def _kept(self, path: Path) -> dict[str, str]:
        """The rule of a file that was not read before, from the checkpoint."""
        name = path.stem
        return {name: self.texts[name]} if name in self.texts else {}


def directory_of(path: Path) -> Path:
    """The directory; raises `DataError` if the path is not a directory."""
    if not path.is_dir():
        raise DataError("there is no directory with rules", file=str(path))
    return path


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
