"""What a checkpoint is of, noted in it, so that it does not go on as something else."""

from __future__ import annotations

import json
from pathlib import Path

from estero import DataError, Query
from estero.answers.output_file import output_file

_NOTE = "estero.json"


def check_note(checkpoint: Path, note: dict[str, str]) -> None:
    """Raises `DataError` where the checkpoint was made by another query, or from or to somewhere else.

    The same where what is noted in it cannot be read.
    """
    file = checkpoint / _NOTE
    if not file.is_file():
        return
    try:
        noted = dict(json.loads(file.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise DataError(
            "this note of what the checkpoint is of cannot be read",
            file=str(file),
            hint="if query, source and sink are those of before, delete it: it is written anew",
        ) from error
    for what, value in note.items():
        if noted.get(what) != value:
            raise DataError(
                f"this checkpoint has another {what}: {noted.get(what)}",
                file=str(checkpoint),
                hint="a new query starts with a new checkpoint, and reads everything from the beginning",
            )


def write_note(checkpoint: Path, note: dict[str, str]) -> None:
    """Notes what the checkpoint is of."""
    with output_file(checkpoint / _NOTE) as file:
        file.write(json.dumps(note, indent=2, ensure_ascii=False).encode() + b"\n")


def note_of(query: Query, source: str, sink: str) -> dict[str, str]:
    """What has to stay the same; options of readers and writers may change."""
    from estero.spark import sink_address, source_address

    return {"query": str(query), "source": str(source_address(source)), "sink": str(sink_address(sink))}
