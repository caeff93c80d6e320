"""Files are written completely or not at all."""

import os

import pytest

from polyspan.base.files import atomic_write, check_target, same_file
from support import link_to


def test_nothing_is_there_until_all_is(tmp_path):
    target = tmp_path / "out.csv"
    with atomic_write(target) as part:
        part.write_text("half", encoding="utf-8")
        assert part.parent == tmp_path
        assert part.suffix == ".csv"
        assert not target.exists()
    assert target.read_text(encoding="utf-8") == "half"
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_what_was_there(tmp_path, error):
    target = tmp_path / "out.csv"
    target.write_text("old", encoding="utf-8")

    def fail():
        with atomic_write(target, overwrite=True) as part:
            part.write_text("new, but", encoding="utf-8")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_file_that_comes_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "out.csv"

    def race():
        with atomic_write(target) as part:
            part.write_text("mine", encoding="utf-8")
            target.write_text("theirs", encoding="utf-8")

    with pytest.raises(FileExistsError, match="exists already"):
        race()
    assert target.read_text(encoding="utf-8") == "theirs"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_without_links_the_file_is_renamed(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    with atomic_write(tmp_path / "out.csv") as part:
        part.write_text("all", encoding="utf-8")
    assert os.listdir(tmp_path) == ["out.csv"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permissions of groups and others")
def test_permissions_are_those_of_any_file(tmp_path):
    (tmp_path / "plain").write_text("", encoding="utf-8")
    with atomic_write(tmp_path / "new") as part:
        part.write_text("", encoding="utf-8")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").chmod(0o640)
    with atomic_write(tmp_path / "new", overwrite=True) as part:
        part.write_text("", encoding="utf-8")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


def test_targets_that_cannot_be(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(FileNotFoundError, match="make it first"):
        check_target(tmp_path / "no" / "out.csv")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="does not let you write"):
        check_target(tmp_path / "out.csv")


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "real.csv").write_text("old", encoding="utf-8")
    link_to(folder / "real.csv", tmp_path / "near.csv")
    link_to("near.csv", tmp_path / "far.csv")
    with pytest.raises(FileExistsError, match="exists already"):
        check_target(tmp_path / "far.csv")

    def fail():
        with atomic_write(tmp_path / "far.csv", overwrite=True) as part:
            assert part.parent == folder
            part.write_text("half", encoding="utf-8")
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011 - ours
        fail()
    assert (folder / "real.csv").read_text(encoding="utf-8") == "old"
    with atomic_write(tmp_path / "far.csv", overwrite=True) as part:
        part.write_text("new", encoding="utf-8")
    assert (folder / "real.csv").read_text(encoding="utf-8") == "new"
    assert os.listdir(folder) == ["real.csv"]
    assert (tmp_path / "far.csv").is_symlink()
    assert (tmp_path / "near.csv").is_symlink()
    assert same_file(tmp_path / "far.csv", folder / "real.csv")


def test_links_to_nothing_and_in_circles(tmp_path):
    link_to("later.csv", tmp_path / "ahead.csv")
    with atomic_write(tmp_path / "ahead.csv") as part:
        part.write_text("new", encoding="utf-8")
    assert (tmp_path / "ahead.csv").is_symlink()
    assert (tmp_path / "later.csv").read_text(encoding="utf-8") == "new"
    link_to("b", tmp_path / "a")
    link_to("a", tmp_path / "b")
    for overwrite in (False, True):
        with pytest.raises(OSError, match="symbolic links"):
            check_target(tmp_path / "a", overwrite=overwrite)
    assert not same_file(tmp_path / "a", tmp_path / "later.csv")
