"""Where data files are looked for, what is checked, and what the errors say. No network is used."""

import hashlib
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from polyspan.datasets import files
from polyspan.datasets.files import DataFile, find_file

CONTENT = b"some samples"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
# Port 9 (discard) refuses connections wherever nobody has set up that service.
FILE = DataFile("small.bin", SHA256, "It is published here.", "http://127.0.0.1:9/small.bin")
NOWHERE = DataFile("small.bin", SHA256, "Build it with build().")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache folder, no POLYSPAN_DATA, and no proxy between tests and this machine."""
    monkeypatch.delenv(files.DATA_VARIABLE, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    folder = tmp_path / "cache"
    monkeypatch.setattr(files, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def place(tmp_path):
    def write(folder, content=CONTENT):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / FILE.name).write_bytes(content)
        return tmp_path / folder

    return write


@pytest.fixture
def publisher():
    """A server that sends CONTENT at /small.bin, half of it at /cut.bin, and counts requests."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.requests += 1
            found = self.path in ("/small.bin", "/cut.bin")
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(CONTENT) if found else 0))
            self.end_headers()
            if found:
                self.wfile.write(CONTENT if self.path == "/small.bin" else CONTENT[:5])

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests = 0
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def published(server, path="small.bin", sha256=SHA256):
    return DataFile(
        "small.bin", sha256, "By hand.", f"http://127.0.0.1:{server.server_port}/{path}"
    )


def test_the_argument_goes_before_the_variable_and_that_before_the_cache(place, monkeypatch):
    given, variable, cache = (place(name) for name in ("given", "variable", "cache"))
    monkeypatch.setenv(files.DATA_VARIABLE, str(variable))
    assert find_file(FILE, given).parent == given
    assert find_file(FILE, str(given)).parent == given
    assert find_file(FILE).parent == variable
    (variable / FILE.name).unlink()
    assert find_file(FILE).parent == cache
    monkeypatch.setenv(files.DATA_VARIABLE, "")
    assert find_file(FILE).parent == cache


def test_a_folder_may_begin_at_home(place, monkeypatch):
    folder = place("given")
    monkeypatch.setenv("HOME", str(folder.parent))
    assert find_file(FILE, "~/given") == folder / FILE.name


def test_the_cache_is_that_of_pooch(monkeypatch):
    import pooch

    monkeypatch.undo()
    assert files.cache_folder() == pooch.os_cache("polyspan")
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert files.cache_folder() is None


def test_data_home_without_the_file_is_an_error(place, publisher, tmp_path):
    place("cache")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"small\.bin was not found in data_home \(.*empty"):
        find_file(published(publisher), tmp_path / "empty")
    assert publisher.requests == 0


def test_what_is_not_a_folder(place, monkeypatch):
    folder = place("given")
    with pytest.raises(NotADirectoryError, match=r"data_home='.*small\.bin' is a file"):
        find_file(FILE, folder / FILE.name)
    with pytest.raises(NotADirectoryError, match=r"data_home='.*nowhere' does not exist"):
        find_file(FILE, folder / "nowhere")
    monkeypatch.setenv(files.DATA_VARIABLE, str(folder / "nowhere"))
    with pytest.raises(NotADirectoryError, match=r"POLYSPAN_DATA='.*nowhere' does not exist"):
        find_file(FILE)


@pytest.mark.parametrize("where", ["data_home", "POLYSPAN_DATA", "cache"])
def test_a_wrong_checksum(place, monkeypatch, where):
    folder = place("cache" if where == "cache" else "given", b"other")
    if where == "POLYSPAN_DATA":
        monkeypatch.setenv(files.DATA_VARIABLE, str(folder))
    data_home = folder if where == "data_home" else None
    message = rf"small\.bin \(5 bytes\) has the SHA-256 .*, expected {SHA256}.*It is published here"
    with pytest.raises(ValueError, match=message):
        find_file(FILE, data_home)
    assert find_file(FILE, data_home, verify=False).read_bytes() == b"other"


def test_a_file_that_changes_is_noticed(place):
    folder = place("given")
    find_file(FILE, folder)
    changed = b"x" * len(CONTENT)
    (folder / FILE.name).write_bytes(changed)
    os.utime(folder / FILE.name, ns=(1, 1))
    with pytest.raises(ValueError, match="has the SHA-256"):
        find_file(FILE, folder)


def test_the_network_is_forbidden(publisher, cache, tmp_path, monkeypatch):
    monkeypatch.setenv(files.DATA_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        find_file(published(publisher), download=False)
    assert f"POLYSPAN_DATA ({tmp_path}) or the cache folder ({cache})" in str(caught.value)
    assert "By hand. Put small.bin into a folder" in str(caught.value)
    assert publisher.requests == 0


def test_a_file_without_a_publisher():
    with pytest.raises(FileNotFoundError, match=r"not found in the cache.*Build it with build\(\)"):
        find_file(NOWHERE)


def test_a_download_is_kept(publisher, cache):
    path = find_file(published(publisher))
    assert path == cache / FILE.name
    assert path.read_bytes() == CONTENT
    assert os.listdir(cache) == [FILE.name]
    assert find_file(published(publisher)) == path
    assert publisher.requests == 1


@pytest.mark.parametrize("verify", [True, False])
def test_a_wrong_download_leaves_nothing(publisher, cache, verify):
    wrong = published(publisher, sha256="0" * 64)
    with pytest.raises(
        ValueError, match=r"does not have the SHA-256 0{64} of small\.bin; it was not"
    ):
        find_file(wrong, verify=verify)
    assert publisher.requests == 1
    assert os.listdir(cache) == []


@pytest.mark.parametrize(("path", "reason"), [("gone.bin", "404"), ("cut.bin", "5 bytes read")])
def test_a_failed_download_leaves_nothing(publisher, cache, path, reason):
    with pytest.raises(ConnectionError, match=f"could not be downloaded .*{reason}.*try again"):
        find_file(published(publisher, path))
    assert publisher.requests == 1
    assert os.listdir(cache) == []


def test_no_network(cache):
    with pytest.raises(ConnectionError, match=r"could not be downloaded from http.*by hand.*Put"):
        find_file(FILE)
    assert os.listdir(cache) == []


def test_a_cache_that_cannot_be_written(publisher, cache):
    cache.write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(OSError, match=r"could not be kept in the cache folder .*by hand.*Put"):
        find_file(published(publisher))
    assert publisher.requests == 0


def test_without_pooch(place, monkeypatch):
    monkeypatch.undo()
    monkeypatch.delenv(files.DATA_VARIABLE, raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    needed = r'needs pooch: pip install "polyspan\[data\]", or download it by hand'
    with pytest.raises(ImportError, match=needed):
        find_file(FILE)
    with pytest.raises(FileNotFoundError, match="POLYSPAN_DATA is not set"):
        find_file(FILE, download=False)
    assert find_file(FILE, place("given")).read_bytes() == CONTENT
    monkeypatch.setenv(files.DATA_VARIABLE, str(place("variable")))
    assert find_file(FILE).parent.name == "variable"
