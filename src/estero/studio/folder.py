"""The files of queries that a page may open and save: those of one directory, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from estero.answers.output_file import output_file

SUFFIX: Final = ".ceql"
_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Folder:
    """A directory with queries. Names are without directories; links that lead out of it are not followed."""

    path: Path

    def names(self) -> list[str]:
        """The queries there, sorted; the first 200."""
        files = (file for file in self.path.glob(f"*{SUFFIX}") if self._is_inside(file) and file.is_file())
        return sorted(file.name for file in files)[:_MOST]

    def read(self, name: str) -> str:
        """The text of a query. Raises ValueError for another name, OSError if it cannot be read."""
        return self._file(name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Writes a query completely or not at all, replacing one of that name. Raises what `read` does."""
        with output_file(self._file(name)) as file:
            file.write(text.encode())

    def _file(self, name: str) -> Path:
        file = self.path / name
        plain = Path(name).name == name and "\\" not in name and not name.startswith(".")
        if not plain or file.suffix != SUFFIX or not self._is_inside(file):
            raise ValueError(f"a query is a file {SUFFIX} in {self.path}, without a directory in its name")
        return file

    def _is_inside(self, file: Path) -> bool:
        return file.resolve().parent == self.path.resolve()
