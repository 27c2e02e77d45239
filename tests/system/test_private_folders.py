"""Folders that others can change, and links that others made, are told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estero.system.private_folders import exposure, make_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are those of POSIX")


def test_a_folder_is_made_so_that_nobody_else_can_write_to_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_folder(tmp_path / "one" / "two")
    finally:
        os.umask(before)
    assert exposure(tmp_path / "one") is None
    assert exposure(tmp_path / "one" / "two") is None


def test_a_folder_that_others_can_write_to_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert exposure(tmp_path) == "others can write to it (mode 777)"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_told_though_a_link_of_ones_own_leads_there(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    (tmp_path / "link").symlink_to("theirs")
    assert exposure(tmp_path / "theirs") == "it belongs to another user (65534)"
    assert exposure(tmp_path / "link") == "it belongs to another user (65534)"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives links away")
def test_a_link_of_another_user_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")
    assert exposure(tmp_path / "link") is None
    os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
    assert exposure(tmp_path / "link") == "it belongs to another user (65534)"
