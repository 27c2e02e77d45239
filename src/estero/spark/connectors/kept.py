"""What is in the directories of a stream before it starts: its own checkpoint, its own answers, or neither.

Spark notes in a directory of answers which batches it has. It leaves out a batch with a number that is noted
there, also when another stream has written it; and whoever reads the directory through Spark sees nothing but
what is noted.
"""

from __future__ import annotations

import json
from pathlib import Path

from estero.errors import DataError
from estero.spark.connectors.address import Address

_FILES = ("parquet", "json", "csv")
_NOTES = "_spark_metadata"
_OWN = "a stream with a new checkpoint needs a directory of its own"


def check_kept(checkpoint: str, sink: Address) -> None:
    """Raises `DataError` for a checkpoint that is none, and a directory that something else has written to.

    Directories in stores such as ``s3a://`` are not looked at.
    """
    if not checkpoint.strip():
        raise DataError("the checkpoint has no name", hint="name a directory, a new one for a new query")
    kept = _local(checkpoint)
    if kept is not None:
        _check_checkpoint(kept)
    directory = _local(sink.place) if sink.scheme in _FILES else None
    if kept is not None and directory is not None:
        _check_directory(directory, _newest(kept / "offsets"))


def _check_checkpoint(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise DataError("the checkpoint is no directory", file=str(place))
    metadata = place / "metadata"
    if metadata.is_file():
        try:
            json.loads(metadata.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(
                "this is no checkpoint, or it is damaged: its file 'metadata' is not what Spark writes there",
                file=str(place),
                hint="start with a new one, and everything is read from the beginning",
            ) from error


def _check_directory(place: Path, reached: int) -> None:
    """`reached` is the number of the last batch of the checkpoint, -1 for none."""
    if place.exists() and not place.is_dir():
        raise DataError("there is a file in place of the directory to write to", file=str(place))
    noted = _newest(place / _NOTES)
    if noted > reached:
        raise DataError(
            f"another stream has written here, up to batch {noted}: batches up to that one would be left out",
            file=str(place),
            hint=f"{_OWN}, or goes on with the checkpoint of the stream that has written here",
        )
    if reached < 0 and noted < 0 and place.is_dir():
        others = [each.name for each in sorted(place.iterdir()) if not each.name.startswith((".", "_"))]
        if others:
            raise DataError(
                f"there is something already that no stream has written, such as {others[0]}: beside what a "
                "stream writes, Spark would not see it any more",
                file=str(place),
                hint=_OWN,
            )


def _local(path: str) -> Path | None:
    path = path.removeprefix("file://")
    return None if "://" in path else Path(path)


def _newest(log: Path) -> int:
    """The greatest number of a batch in a log of Spark's, -1 for none."""
    names = (each.name.removesuffix(".compact") for each in log.iterdir()) if log.is_dir() else ()
    return max((int(name) for name in names if name.isdigit()), default=-1)
