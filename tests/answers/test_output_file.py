"""Files that are written whole or not at all, whatever stands at their path."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from estero.answers.output_file import output_file
from unprivileged import no_longer_root


def write(path: Path, content: bytes = b"new") -> None:
    with output_file(path) as file:
        file.write(content)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_the_mode_that_files_have(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "out.csv")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "out.csv") == 0o640
    assert list(tmp_path.iterdir()) == [tmp_path / "out.csv"]


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    out.chmod(0o600)
    write(out)
    assert (out.read_bytes(), mode_of(out)) == (b"new", 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    os.chown(out, 1234, 4321)
    out.chmod(0o2640)
    write(out)
    assert (out.stat().st_uid, out.stat().st_gid, mode_of(out)) == (1234, 4321, 0o2640)


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link.symlink_to("there/target.csv")
    write(link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_to_nothing_makes_its_target(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "target.csv")
    write(link)
    assert link.is_symlink()
    assert (tmp_path / "target.csv").read_bytes() == b"new"


def test_a_file_with_two_names_keeps_both(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_bytes(b"older")
    other.hardlink_to(one)
    write(one)
    assert other.read_bytes() == b"new"


@pytest.mark.parametrize("names", [1, 2])
def test_what_fails_leaves_the_file_as_it_was(tmp_path: Path, names: int) -> None:
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    if names == 2:
        (tmp_path / "other.csv").hardlink_to(out)

    def fail() -> None:
        with output_file(out) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert out.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == names


def test_a_device_is_written_to(tmp_path: Path) -> None:
    write(Path("/dev/null"))
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write(pipe)
    reader.join()
    assert read == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_open_file_of_the_process_is_gone_on_with(tmp_path: Path) -> None:
    with (tmp_path / "log").open("ab", buffering=0) as log:
        log.write(b"before ")
        write(Path(f"/dev/fd/{log.fileno()}"))
        log.write(b" after")
    assert (tmp_path / "log").read_bytes() == b"before new after"


def test_a_name_may_be_as_long_as_names_may_be(tmp_path: Path) -> None:
    out = tmp_path / ("ä" * 125 + ".csv")
    write(out)
    assert list(tmp_path.iterdir()) == [out]


def test_what_cannot_be_written_is_said_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^cannot write .*x.csv: there is no directory .*missing$"):
        write(tmp_path / "missing" / "x.csv")
    with pytest.raises(IsADirectoryError, match="is a directory, not a file to write to"):
        write(tmp_path)
    with pytest.raises(OSError, match=r"^cannot write /dev/fd/987: Bad file descriptor$"):
        write(Path("/dev/fd/987"))
    with pytest.raises(OSError, match=r"^cannot write .*: File name too long$"):
        write(tmp_path / ("x" * 300))


def test_a_file_that_may_not_be_written_is_not_replaced() -> None:
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        out = Path(name) / "out.csv"
        out.write_bytes(b"old")
        out.chmod(0o444)
        refused = pytest.raises(PermissionError, match=r"^cannot write .*out.csv: the file is not writable$")
        with no_longer_root(), refused:
            write(out)
        assert out.read_bytes() == b"old"
        assert list(Path(name).iterdir()) == [out]
