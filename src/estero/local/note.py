"""The note in a checkpoint: its query, source and sink."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from estero.answers.output_file import output_file
from estero.errors import DataError

_NOTE: Final = "estero.json"
_UNLESS_NOTED: Final = {"kind of rows": "matches", "engine": "spark"}
"""The values of entries that notes of older versions lack."""


def check_note(checkpoint: Path, note: Mapping[str, str]) -> None:
    """Raises `DataError` if a checkpoint is of another query, source or sink, or its note is unreadable."""
    file = checkpoint / _NOTE
    if not file.is_file():
        return
    try:
        noted = dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise DataError(
            "this note about the checkpoint cannot be read",
            file=str(file),
            hint="if query, source and sink are unchanged, delete it: it will be written again",
        ) from error
    for what, value in note.items():
        before = noted.get(what, _UNLESS_NOTED.get(what))
        if before != value:
            raise DataError(
                f"this checkpoint has another {what}: {before}",
                file=str(checkpoint),
                hint="a new query starts with a new checkpoint, and reads everything from the beginning",
            )


def write_note(checkpoint: Path, note: Mapping[str, str]) -> None:
    """Writes the note of a checkpoint."""
    with output_file(checkpoint / _NOTE) as file:
        file.write(json.dumps(note, indent=2, ensure_ascii=False).encode() + b"\n")
