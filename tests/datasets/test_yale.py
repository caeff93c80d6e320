import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from polyspan.datasets import build_extended_yale_b, load_extended_yale_b
from polyspan.datasets.yale import YALE_B

LIGHTINGS = ["A+000E+00", "A+000E-20", "A-010E+00"]


@pytest.fixture
def cropped(tmp_path):
    """A small CroppedYale: subjects 12, 13 and 15, three lightings, one image corrupt."""
    rng = np.random.RandomState(0)
    for number in (15, 13, 12):
        folder = tmp_path / f"yaleB{number}"
        folder.mkdir()
        for lighting in LIGHTINGS:
            pixels = rng.randint(0, 256, size=(192, 168)).astype(np.uint8)
            name = f"yaleB{number}_P00{lighting}.pgm"
            Image.fromarray(pixels).save(folder / name)
        Image.fromarray(np.zeros((480, 640), np.uint8)).save(
            folder / f"yaleB{number}_P00_Ambient.pgm"
        )
        (folder / f"yaleB{number}_P00.info").write_text("not an image", encoding="utf-8")
    corrupt = tmp_path / "yaleB13" / "yaleB13_P00A+000E-20.pgm"
    corrupt.rename(corrupt.with_name(corrupt.name + ".bad"))
    return tmp_path


@pytest.fixture
def built(cropped, tmp_path):
    return build_extended_yale_b(cropped, tmp_path / "out" / YALE_B.name).parent


def load(folder, *args, **kwargs):
    return load_extended_yale_b(*args, data_home=folder, verify=False, **kwargs)


def test_what_is_built_can_be_loaded(built, cropped):
    data = load(built, normalize=False)
    assert data.X.shape == (9, 2016)
    assert data.target.tolist() == [12] * 3 + [13] * 3 + [15] * 3
    assert data.lighting.tolist() == LIGHTINGS * 3
    assert data.bad.tolist() == [False] * 4 + [True] + [False] * 4
    assert [path.name for path in built.iterdir()] == [YALE_B.name]
    original = np.array(Image.open(cropped / "yaleB15" / "yaleB15_P00A-010E+00.pgm"))
    blocks = original.reshape(48, 4, 42, 4)
    # Every fourth row and column: which of the four is Pillow's choice.
    choices = [blocks[:, i, :, j] for i in range(4) for j in range(4)]
    assert any(np.array_equal(data.images[-1], choice) for choice in choices)


def test_a_failure_leaves_what_was_there(cropped, tmp_path, monkeypatch):
    def fail(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    out.mkdir()
    (out / YALE_B.name).write_bytes(b"old")
    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="No space"):
        build_extended_yale_b(cropped, out / YALE_B.name)
    assert [path.read_bytes() for path in out.iterdir()] == [b"old"]


def test_bicubic_keeps_a_flat_image_and_a_ramp(cropped, tmp_path):
    ramp = np.broadcast_to(np.arange(192, dtype=np.uint8)[:, None], (192, 168))
    path = cropped / "yaleB12" / "yaleB12_P00A+000E+00.pgm"
    Image.fromarray(np.ascontiguousarray(ramp)).save(path)
    build_extended_yale_b(cropped, tmp_path / YALE_B.name)
    image = load(tmp_path, 0, downsampling="bicubic", normalize=False).images[0]
    # The middle of each block of four rows is 1.5 from its first.
    assert_allclose(
        image[2:-2], np.broadcast_to(4 * np.arange(2, 46)[:, None] + 1.5, (44, 42)), atol=1
    )


def test_subjects_by_row_and_by_directory(built):
    everything = load(built)
    by_row = load(built, (2, 0))
    by_directory = load(built, (15, 12), by="directory")
    assert np.array_equal(by_row.X, by_directory.X)
    assert np.array_equal(by_row.X, np.concatenate([everything.X[6:], everything.X[:3]]))
    assert by_row.target.tolist() == by_directory.target.tolist() == [15] * 3 + [12] * 3
    assert load(built, 1).bad.tolist() == [False, True, False]


def test_norms_and_images(built):
    data, raw = load(built), load(built, normalize=False)
    assert_allclose(np.linalg.norm(data.X, axis=1), 1)
    assert raw.X.max() > 200
    assert np.array_equal(raw.images[4].ravel(), raw.X[4])
    assert np.array_equal(raw.to_images(raw.X[4]), raw.images[4:5])


def test_downsamplings_differ(built):
    nearest, bicubic = (load(built, downsampling=name) for name in ("nearest", "bicubic"))
    assert not np.allclose(nearest.X, bicubic.X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subjects": 3}, r"subjects=3 with by='row' .* one of \[0, 1, 2\]"),
        ({"subjects": (12, 14), "by": "directory"}, r"by='directory' .* one of \[12, 13, 15\]"),
        ({"subjects": ()}, "at least one"),
        ({"subjects": 1.5}, "must be whole numbers"),
        ({"by": "name"}, "by='name' must be"),
        ({"downsampling": "linear"}, "downsampling='linear' must be one of"),
    ],
)
def test_bad_arguments(built, arguments, message):
    with pytest.raises(ValueError, match=message):
        load(built, **arguments)


def test_another_file_is_refused_and_accepted_on_demand(built):
    with pytest.raises(ValueError, match=r"has the SHA-256 .*to be loaded with verify=False"):
        load_extended_yale_b(data_home=built)
    with pytest.raises(FileNotFoundError, match=r"UCSD.*build_extended_yale_b\(folder, out\)"):
        load_extended_yale_b(data_home=built.parent)


def spoil_bytes(path):
    path.write_bytes(b"PK\x03\x04 not an archive")


def spoil_key(path):
    np.savez(path, nearest=np.zeros((1, 1, 48, 42)))


def spoil_shape(path):
    arrays = {"subject_id": np.ones(1), "lighting": np.array(["A"]), "bad": np.zeros((1, 1), bool)}
    np.savez(path, nearest=np.zeros((1, 1, 42, 48)), **arrays)


def spoil_all(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("spoil", [spoil_bytes, spoil_key, spoil_shape, spoil_all])
def test_a_file_with_other_content(tmp_path, spoil):
    spoil(tmp_path / YALE_B.name)
    with pytest.raises(ValueError, match="must be an npz file with `nearest` and `bicubic`"):
        load(tmp_path)


def test_a_corrupt_original_that_cannot_be_read_is_black(cropped, tmp_path):
    path = cropped / "yaleB13" / "yaleB13_P00A+000E-20.pgm.bad"
    path.write_bytes(b"P5 168 192 255 too short")
    build_extended_yale_b(cropped, tmp_path / YALE_B.name)
    data = load(tmp_path)
    assert not data.X[data.bad].any()
    assert np.isfinite(data.X).all()
    path.rename(path.with_suffix(""))
    with pytest.raises(ValueError, match=r"yaleB13_P00A\+000E-20\.pgm is an incomplete image"):
        build_extended_yale_b(cropped, tmp_path / "again.npz")
    assert not (tmp_path / "again.npz").exists()


def test_what_cannot_be_built(cropped, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="give the folder CroppedYale"):
        build_extended_yale_b(tmp_path / "empty", tmp_path / "out.npz")
    path = cropped / "yaleB15" / "yaleB15_P00A+000E+00.pgm"
    Image.fromarray(np.zeros((480, 640), np.uint8)).save(path)
    with pytest.raises(ValueError, match=r"\(480, 640\) pixels, expected \(192, 168\)"):
        build_extended_yale_b(cropped, tmp_path / "out.npz")
    path.unlink()
    with pytest.raises(ValueError, match=r"yaleB15 and .* lightings \['A\+000E\+00'\]"):
        build_extended_yale_b(cropped, tmp_path / "out.npz")


def test_the_real_faces(needs_data):
    needs_data("yale")
    data = load_extended_yale_b()
    assert data.X.shape == (38 * 64, 2016)
    assert data.bad.sum() == 18
    assert_allclose(np.linalg.norm(data.X[~data.bad], axis=1), 1)
    assert len(set(data.lighting.tolist())) == 64
    assert sorted(set(data.target.tolist())) == [n for n in range(1, 40) if n != 14]
    rows, directories = (21, 27, 29), (22, 28, 30)
    first = load_extended_yale_b(rows).target[::64].tolist()
    second = load_extended_yale_b(directories, by="directory").target[::64].tolist()
    assert (first, second) == ([23, 29, 31], [22, 28, 30])
    same = load_extended_yale_b((4, 5, 7)), load_extended_yale_b((5, 6, 8), by="directory")
    assert np.array_equal(same[0].X, same[1].X)
    assert not same[0].bad.any()
