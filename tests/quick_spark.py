"""Settings with which Spark starts, and writes, sooner than with those of users."""

from __future__ import annotations

QUICK_SPARK = {
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming"
    ".checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""Without Hadoop's native library, Spark runs `chmod` and `readlink` for each file of a checkpoint and the
checksum beside it: 400 processes in a stream of five files, and a quarter of its time."""

QUICK_OPTIONS = [word for name, value in QUICK_SPARK.items() for word in ("--conf", f"{name}={value}")]
"""The same as options of `estero`."""
