"""Folders and files that others can write, links, and files that are there already: none of them is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estero.system.private_files import exposure, is_usable, lock_file, make_folder, read, replaced

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")


def test_a_folder_is_made_so_that_nobody_else_can_write_to_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_folder(tmp_path / "one" / "two")
    finally:
        os.umask(before)
    assert exposure(tmp_path / "one") is None
    assert exposure(tmp_path / "one" / "two") is None


def test_a_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o777)
    assert not is_usable(tmp_path)
    assert not is_usable(tmp_path)
    assert [record.getMessage() for record in caplog.records] == [
        (
            f"estero: nothing is kept in {tmp_path}, because others can write to it (mode 777): "
            "it needs a folder that only you can write to (chown, chmod go-w)"
        )
    ]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_not_used_though_a_link_of_ones_own_leads_there(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    (tmp_path / "link").symlink_to("theirs")
    assert exposure(tmp_path / "theirs") == "it belongs to another user (65534)"
    assert exposure(tmp_path / "link") == "it belongs to another user (65534)"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives links away")
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")
    assert exposure(tmp_path / "link") is None
    os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
    assert exposure(tmp_path / "link") == "it belongs to another user (65534)"


def test_files_that_others_can_write_and_links_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"mine")
    assert read(tmp_path / "file") == b"mine"
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError, match="link"):
        read(tmp_path / "link")
    (tmp_path / "file").chmod(0o666)
    with pytest.raises(PermissionError, match="others can write to it"):
        read(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(PermissionError, match="no regular file"):
        read(tmp_path / "pipe")


def test_a_file_takes_its_name_when_it_is_whole_and_a_link_of_that_name_goes(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"before")
    (tmp_path / "file").symlink_to("target")
    with pytest.raises(ZeroDivisionError), replaced(tmp_path / "file") as file:
        raise ZeroDivisionError
    assert (tmp_path / "file").is_symlink()
    with replaced(tmp_path / "file") as file:
        file.write(b"after")
    assert read(tmp_path / "file") == b"after"
    assert read(tmp_path / "target") == b"before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "target"]


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_is_a_link_overwrites_nothing(tmp_path: Path, link: object) -> None:
    (tmp_path / "target").write_bytes(b"before")
    assert callable(link)
    link(tmp_path / "target", tmp_path / "lock")
    with pytest.raises(OSError, match=r"link|other names"):
        lock_file(tmp_path / "lock")
    assert (tmp_path / "target").read_bytes() == b"before"


def test_a_lock_is_made_and_added_to(tmp_path: Path) -> None:
    for word in (b"one", b"two"):
        with lock_file(tmp_path / "lock") as file:
            file.write(word)
    assert read(tmp_path / "lock") == b"onetwo"
