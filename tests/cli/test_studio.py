"""`estero studio`: what it prints, and what is wrong with how it is called, in a line."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from cli.commands import LAYOUT, command, estero
from estero import errors
from estero.studio import static

pytest.importorskip("starlette", reason="the extra studio is not installed (starlette)")
pytest.importorskip("uvicorn", reason="the extra studio is not installed (uvicorn)")
pytest.importorskip("anywidget", reason="the extra studio is not installed (anywidget)")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the place of the front end."""
    for name in (static.SCRIPT, static.STYLE):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(static, "_FOLDER", tmp_path)


def test_without_its_packages_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == "uvicorn" else object())
    result = estero("studio")
    assert result.exit_code == 1
    assert (
        "estero studio needs uvicorn, which is not installed: pip install 'estero[studio]'" in result.stderr
    )


def test_without_its_front_end_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "_FOLDER", tmp_path)
    result = estero("studio", "--no-browser")
    assert result.exit_code == 1
    assert "the studio's front end is not built (studio.js is missing)" in result.stderr
    assert "make studio builds it" in result.stderr


def test_a_port_that_is_taken_is_named(built: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = estero("studio", "--no-browser", "--port", str(port))
    assert result.exit_code == 2
    assert f"port {port} cannot be used" in result.stderr


def test_files_that_are_not_there_are_named(built: None, tmp_path: Path) -> None:
    result = estero("studio", tmp_path / "none.parquet", "--no-browser")
    assert result.exit_code == 1
    assert "there is no such file" in result.stderr
    result = estero("studio", "--query", tmp_path / "none.ceql")
    assert result.exit_code == 2
    assert "none.ceql" in result.stderr


def test_events_that_only_spark_reads_are_refused(built: None) -> None:
    result = estero("studio", "s3a://bucket/events.parquet")
    assert result.exit_code == 2
    assert "the studio holds events in memory: give files of this machine" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_it_prints_an_address_with_a_token_and_ends_with_a_signal(night: Path) -> None:
    if not static._FOLDER.joinpath(static.SCRIPT).is_file():
        pytest.skip("the studio is not built (make studio)")
    arguments = [str(night / "events.parquet"), *LAYOUT, "--no-browser"]
    here = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with subprocess.Popen(command("studio", *arguments), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            with here.open(address) as page:
                assert page.status == 200
                assert b"Estero studio" in page.read()
            with pytest.raises(urllib.error.HTTPError, match="401") as refused:
                here.open(address.partition("?")[0])
            refused.value.close()
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
