import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.images import Mosaic
from dpstudy.data.readers import open_reader

OPTIONS = {"reader": "mosaics", "location": ".", "tile": [4, 3], "classes": 10}


def paste(tiles):
    """A mosaic built tile by tile, 10 a row; unfilled places stay black."""
    height, width = tiles.shape[1:3]
    canvas = np.zeros((-(-len(tiles) // 10) * height, 10 * width, *tiles.shape[3:]), np.uint8)
    for place, tile in enumerate(tiles):
        row, column = divmod(place, 10)
        canvas[row * height : (row + 1) * height, column * width : (column + 1) * width] = tile
    return Image.fromarray(canvas)


@pytest.fixture
def source(tmp_path):
    random, arrays = np.random.default_rng(0), {}
    for pool, sizes in (("train", [20] * 11 + [14]), ("test", [10])):
        parts = [random.integers(0, 256, (size, 4, 3, 3)).astype(np.uint8) for size in sizes]
        for place, part in enumerate(parts):
            suffix = "webp" if place % 2 else "png"
            paste(part).save(tmp_path / f"{pool}_{place:d}.{suffix}", lossless=True, exact=True)
        labels = random.integers(0, 10, sum(sizes)).astype(np.uint8)
        np.save(tmp_path / f"{pool}_labels.npy", labels)
        arrays[pool] = np.concatenate(parts), labels
    return tmp_path, arrays


def test_reads_any_rows_in_order_also_past_mosaic_10(source):
    root, arrays = source
    reader = open_reader("mosaics", OPTIONS, root)
    assert reader.pools == ("train", "test") and reader.classes == [str(digit) for digit in range(10)]
    for pool, chosen in (("train", [233, 0, 19, 20, 199, 200, 215]), ("test", range(10))):
        records = reader.read(pool, np.array(chosen))
        np.testing.assert_array_equal(records.images, arrays[pool][0][chosen])
        np.testing.assert_array_equal(records.labels, arrays[pool][1][chosen])
    assert len(reader.rows("train")) == 234


def test_decodes_only_the_mosaics_asked_for(source):
    root, arrays = source
    reader = open_reader("mosaics", OPTIONS, root)
    for place in (0, 2, 3):
        next(root.glob(f"train_{place}.*")).unlink()
    np.testing.assert_array_equal(reader.read("train", np.array([25])).images[0], arrays["train"][0][25])


def test_grey_mosaic_of_one_file(tmp_path):
    tiles = np.random.default_rng(1).integers(0, 256, (20, 6, 6)).astype(np.uint8)
    paste(tiles).save(tmp_path / "images.png")
    mosaic = Mosaic([tmp_path / "images.png"], (6, 6))
    assert mosaic.shape == (6, 6, 1)
    np.testing.assert_array_equal(mosaic.read(np.arange(20))[..., 0], tiles)


def test_bad_mosaics_are_refused(source, refused):
    root, arrays = source
    labels = root / "train_labels.npy"
    whole = labels.read_bytes()
    wrong = arrays["train"][1].copy()
    wrong[33] = 10
    np.save(labels, wrong)
    refused(OPTIONS, root, "train_labels.npy", "row 33 has label 10")
    np.save(labels, arrays["train"][1][:220])
    refused(OPTIONS, root, "train_labels.npy", "220 rows for 240 tiles")
    np.save(labels, arrays["train"][1] + 0.5)
    refused(OPTIONS, root, "train_labels.npy", "float64")
    labels.write_bytes(whole[:-5])
    refused(OPTIONS, root, "train_labels.npy", "damaged or truncated")
    np.save(labels, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    refused(OPTIONS, root, "train_labels.npy", "damaged or truncated")
    labels.unlink()
    refused(OPTIONS, root, "train_labels.npy", "no such file")
    labels.write_bytes(whole)
    refused({**OPTIONS, "tile": [4, 4]}, root, "10 tiles of 4x4")
    refused({**OPTIONS, "tile": [4]}, root, "tile: [4]")
    refused({**OPTIONS, "classes": "ten"}, root, "classes: 'ten'")
    refused({"reader": "mosaics", "location": "."}, root, "name the classes")
    file = root / "train_1.webp"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    refused(OPTIONS, root, "train_1.webp")
    file.write_bytes(b"RIFF")
    refused(OPTIONS, root, "train_1.webp", "not an image")
    file.unlink()
    refused(OPTIONS, root, "train_labels.npy", "234 rows for 220 tiles")
    file.write_bytes(whole)
    paste(arrays["test"][0][..., 0]).save(root / "test_0.png")
    refused(OPTIONS, root, "differ in shape")


def test_a_mosaic_is_decoded_as_other_images_are(tmp_path, monkeypatch):
    tiles = np.random.default_rng(1).integers(0, 256, (20, 6, 6)).astype(np.uint8)
    file, exif = tmp_path / "images.png", Image.Exif()
    paste(tiles[::-1]).rotate(180).save(file)  # its tiles, each turned by 180 degrees
    exif[0x0112] = 3
    Image.open(file).save(file, exif=exif)
    np.testing.assert_array_equal(Mosaic([file], (6, 6)).read(np.arange(20))[..., 0], tiles[::-1])
    exif[0x0112] = 6
    paste(tiles).save(file, exif=exif)
    with pytest.raises(StudyError, match="its EXIF tag turns it, and a mosaic must lie as it is seen"):
        Mosaic([file], (6, 6)).read(np.array([3]))
    paste(tiles).save(file)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 719)
    with pytest.raises(StudyError, match="raise `max_pixels`"):
        Mosaic([file], (6, 6))
    np.testing.assert_array_equal(Mosaic([file], (6, 6), 720).read(np.array([3]))[0, ..., 0], tiles[3])
