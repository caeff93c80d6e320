"""Files on other systems: what is open is not replaced, and capitals may not count."""

import os
from pathlib import Path

import pytest

from polyspan.base import files
from polyspan.base.files import atomic_write, check_target, same_file


def refused(winerror):
    """Return the error of Windows for a file that is read-only (5) or open elsewhere (32)."""
    error = PermissionError(13, "Permission denied")
    error.winerror = winerror
    return error


@pytest.fixture
def no_pauses(monkeypatch):
    monkeypatch.setattr(files, "_PAUSES", (0, 0, 0))


def write(target, text="new", **options):
    with atomic_write(target, **options) as part:
        part.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("winerror", [5, 32])
def test_a_file_that_is_open_elsewhere_is_not_replaced(tmp_path, monkeypatch, no_pauses, winerror):
    target = tmp_path / "out.csv"
    target.write_text("old", encoding="utf-8")
    asked = []

    def refuse(*paths):
        asked.append(paths)
        raise refused(winerror)

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError, match="open in another program: close it there") as caught:
        write(target, overwrite=True)
    assert caught.value.filename == str(target)
    assert len(asked) == 4  # it was asked again
    assert target.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_file_that_a_scanner_opens_for_a_moment_is_replaced(tmp_path, monkeypatch, no_pauses):
    target, replace, unlink = tmp_path / "out.csv", os.replace, Path.unlink
    target.write_text("old", encoding="utf-8")
    left = {"replace": 2, "unlink": 2}

    def busy(name, change):
        def once_more(*paths):
            left[name] -= 1
            if left[name] >= 0:
                raise refused(32)
            return change(*paths)

        return once_more

    monkeypatch.setattr(os, "replace", busy("replace", replace))
    write(target, overwrite=True)
    assert target.read_text(encoding="utf-8") == "new"
    monkeypatch.setattr(Path, "unlink", busy("unlink", unlink))
    write(tmp_path / "other.csv")
    assert sorted(os.listdir(tmp_path)) == ["other.csv", "out.csv"]


def test_other_refusals_are_not_asked_again(tmp_path, monkeypatch):
    asked = []

    def refuse(*paths):
        asked.append(paths)
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError, match="not permitted"):
        write(tmp_path / "out.csv", overwrite=True)
    assert len(asked) == 1
    assert os.listdir(tmp_path) == []


def test_the_first_error_stays_where_nothing_can_be_removed(tmp_path, monkeypatch, no_pauses):
    def refuse(path):
        raise refused(32)

    def fail():
        with atomic_write(tmp_path / "out.csv"):
            raise ValueError("what went wrong")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(ValueError, match="what went wrong"):
        fail()


def test_windows_says_before_the_work_that_a_file_is_in_use(tmp_path, monkeypatch):
    target, opened = tmp_path / "out.csv", Path.open
    target.write_text("old", encoding="utf-8")

    def refuse(path, mode="r", **options):
        if "+" in mode:
            raise refused(32)
        return opened(path, mode, **options)

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(files, "WINDOWS", False)
    assert check_target(target, overwrite=True) == target  # others replace it all the same
    monkeypatch.setattr(files, "WINDOWS", True)
    with pytest.raises(PermissionError, match="open in another program"):
        check_target(target, overwrite=True)
    assert check_target(tmp_path / "new.csv") == tmp_path / "new.csv"


def test_without_links_windows_does_not_rename_to_a_name_that_exists(tmp_path, monkeypatch):
    target = tmp_path / "out.csv"

    def refuse(*_):
        raise PermissionError(1, "no links here")

    def rename(_, to):
        raise FileExistsError(17, "it exists", to)

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(FileExistsError, match=r"out\.csv exists already"):
        write(target)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_may_not_be_written_is_asked_once(tmp_path, monkeypatch):
    """`os.access` of Windows allows every folder, and `tempfile` then tries other names."""
    asked = []

    def refuse(path, *_):
        asked.append(path)
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match="Permission denied"):
        write(tmp_path / "out.csv")
    assert len(asked) == 1


def test_a_name_that_is_taken_is_not_used(tmp_path, monkeypatch):
    names = iter(["taken", "taken", "free"])
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: next(names))
    taken = tmp_path / ".out.taken.part.csv"
    taken.write_text("theirs", encoding="utf-8")
    with atomic_write(tmp_path / "out.csv") as part:
        assert part.name == ".out.free.part.csv"
    assert taken.read_text(encoding="utf-8") == "theirs"


def test_folders_are_never_opened(tmp_path, monkeypatch):
    """Windows does not open folders, not even to flush them."""
    opened = os.open

    def refuse(path, *rest, **options):
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *rest, **options)

    monkeypatch.setattr(os, "open", refuse)
    write(tmp_path / "out.csv")
    write(tmp_path / "out.csv", "newer", overwrite=True)
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "newer"


def test_long_names_leave_room_for_a_temporary_one(tmp_path):
    target = tmp_path / ("é" * 120 + ".csv")  # 244 bytes of at most 255
    write(target)
    assert os.listdir(tmp_path) == [target.name]


@pytest.fixture
def no_capitals(monkeypatch):
    """Let `os.lstat` find files by their names in any letters, as macOS and Windows do."""
    plain = os.lstat

    def lstat(path, **options):
        path = Path(path)
        beside = os.listdir(path.parent) if path.parent.is_dir() else []
        found = [name for name in beside if name.casefold() == path.name.casefold()]
        return plain(path.with_name(found[0]) if found else path, **options)

    monkeypatch.setattr(os, "lstat", lstat)


def test_capitals_where_they_do_not_count(tmp_path, no_capitals):
    folder = tmp_path / "Pictures"
    folder.mkdir()
    assert same_file(folder / "Photo.PNG", folder / "photo.png")
    assert same_file(folder / "caf\u00e9.png", folder / "CAFE\u0301.png")
    assert not same_file(folder / "photo.png", folder / "photos.png")
    assert not same_file(folder / "photo.png", tmp_path / "photo.png")


def test_capitals_where_they_count(tmp_path):
    folder = tmp_path / "Pictures"
    folder.mkdir()
    (folder / "probe").touch()
    counts = not (folder / "PROBE").exists()
    assert same_file(folder / "a.png", folder / "A.png") is not counts
    assert same_file(folder / "12" / "a.png", folder / "12" / "A.png") is not counts
    if counts:  # another folder, whatever it is, and even a link to it
        (tmp_path / "pICTURES").mkdir()
        assert not same_file(folder / "a.png", folder / "A.png")
