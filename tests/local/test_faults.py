"""Streams of the local engine that are killed at random moments, a few times; `make faults` does it often."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from repository import REPOSITORY


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a stream is killed in a process that was forked")
def test_a_stream_to_files_that_is_killed_while_its_rules_change_has_each_answer_once() -> None:
    command = [sys.executable, "-m", "local.faults", "--kills", "4", "--seed", "7"]
    paths = os.pathsep.join(filter(None, [str(REPOSITORY / "tests"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("json: 4 kills of ")
