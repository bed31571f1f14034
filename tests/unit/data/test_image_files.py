"""Image files as their owner sees them: what every viewer shows, or one sentence."""

import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dpstudy.core.errors import StudyError
from dpstudy.data.image_files import UnreadableImageError
from dpstudy.data.images import decode

UPRIGHT = np.arange(5 * 3 * 3, dtype=np.uint8).reshape(5, 3, 3) * 5


def turned(shown, orientation):
    """What a file of this EXIF orientation stores, by the EXIF standard: where row 0 and column 0 of it are seen."""
    flipped = shown[:, ::-1] if orientation in (2, 4, 5, 7) else shown  # 5 and 7: mirrored, then turned
    return np.rot90(flipped, {1: 0, 2: 0, 3: 2, 4: 2, 5: 1, 6: 1, 7: 3, 8: 3}[orientation]).copy()


def chunk(name, content):
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(bits, kind, rows, width, extra=b""):
    """A PNG file of raw rows."""
    head = struct.pack(">IIBBBBB", width, len(rows), bits, kind, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def wide(bits, kind, *values):
    return lambda path: path.write_bytes(png(bits, kind, [struct.pack(f">{len(values)}H", *values)], 1))


SAVED = [
    ("a.png", {}),
    ("a.tif", {}),
    ("b.tif", {"compression": "tiff_lzw"}),
    ("a.webp", {"lossless": True}),
    ("a.jpg", {"quality": 100, "subsampling": 0}),
]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("name", "options"), SAVED)
def test_an_image_is_turned_as_its_exif_tag_says(tmp_path, name, options, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(turned(UPRIGHT, orientation)).save(tmp_path / name, exif=exif, **options)
    found = decode(tmp_path / name, "row 0", None, None)
    assert found.shape == UPRIGHT.shape
    assert np.abs(found.astype(int) - UPRIGHT).max() <= (9 if name == "a.jpg" else 0)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
@pytest.mark.filterwarnings("ignore:Corrupt EXIF")
def test_a_damaged_exif_block_turns_nothing(tmp_path, name):
    for exif in (b"Exif\0\0MM\0*\0\0\0\x08\0\x09\x01\x12", b"Exif\0\0no such thing", b"Exif\0\0"):
        Image.new("RGB", (4, 3), (9, 9, 9)).save(tmp_path / name, exif=exif)
        assert decode(tmp_path / name, "row 0", None, None).shape == (3, 4, 3)


def transparent(kind):
    """A function that saves two pixels, of which the second is transparent: its colour is what nobody sees."""
    pixels = {"RGBA": [(9, 9, 9, 255), (1, 2, 3, 0)], "LA": [(9, 255), (1, 0)]}
    if kind in pixels:
        image = Image.new(kind, (2, 1))
        image.putdata(pixels[kind])
        return lambda path: image.save(path, **({"lossless": True, "exact": True} if path.suffix == ".webp" else {}))
    image = Image.new(kind, (2, 1), 1)
    if kind == "P":
        image.putpalette([1, 2, 3, 9, 9, 9])
    image.putpixel((0, 0), (9, 9, 9) if kind == "RGB" else 1 if kind == "P" else 9)
    image.putpixel((1, 0), (1, 2, 3) if kind == "RGB" else 0 if kind == "P" else 1)
    key = {"RGB": (1, 2, 3), "P": 0, "L": 1}[kind]
    return lambda path: image.save(path, transparency=key)


TRANSPARENT = ["RGBA a.png", "RGBA a.webp", "RGBA a.tif", "LA a.png", "P a.png", "P a.gif", "RGB a.png", "L a.png"]


@pytest.mark.parametrize("case", TRANSPARENT)
def test_what_lies_under_transparent_pixels_is_not_learned(tmp_path, case):
    kind, name = case.split()
    transparent(kind)(tmp_path / name)
    for channels in (None, 1, 3):
        found = decode(tmp_path / name, "row 0", None, channels)
        assert found[0, 0].tolist() == [9] * found.shape[2] and found[0, 1].tolist() == [255] * found.shape[2]
    resized = decode(tmp_path / name, "row 0", (1, 1), 1)  # the colour does not bleed out either
    assert resized[0, 0, 0] == 132


def test_half_transparent_pixels_are_mixed_with_white_and_opaque_ones_kept(tmp_path):
    rgba = np.random.default_rng(0).integers(0, 256, (4, 5, 4)).astype(np.uint8)
    rgba[:2, :, 3] = 255
    Image.fromarray(rgba).save(tmp_path / "a.png")
    share = rgba[..., 3:] / 255
    found = decode(tmp_path / "a.png", "row 0", None, None)
    assert np.abs(found - (rgba[..., :3] * share + 255 * (1 - share))).max() <= 1
    np.testing.assert_array_equal(found[:2], rgba[:2, :, :3])


def test_grey_of_few_bits_knows_its_transparent_level(tmp_path):
    (tmp_path / "a.png").write_bytes(png(4, 0, [b"\x3f"], 2, chunk(b"tRNS", struct.pack(">H", 3))))
    assert decode(tmp_path / "a.png", "row 0", None, None).ravel().tolist() == [255, 255]
    (tmp_path / "a.png").write_bytes(png(4, 0, [b"\x3f"], 2))
    assert decode(tmp_path / "a.png", "row 0", None, None).ravel().tolist() == [51, 255]


@pytest.mark.parametrize("name", ["a.jpg", "a.tif"])
def test_printers_colours_are_those_that_are_seen(tmp_path, name):
    """A JPEG of Adobe's holds them inverted."""
    for cmyk, rgb in (
        ((0, 255, 255, 0), (255, 0, 0)),
        ((0, 0, 0, 0), (255, 255, 255)),
        ((255, 0, 0, 0), (0, 255, 255)),
    ):
        Image.new("CMYK", (8, 8), cmyk).save(tmp_path / name)
        assert np.abs(decode(tmp_path / name, "row 0", None, None)[0, 0].astype(int) - rgb).max() <= 2


DEEP = {
    "grey": ("a.png", wide(16, 0, 4095), 16),
    "grey with alpha": ("a.png", wide(16, 4, 4095, 65535), 16),
    "colour": ("a.png", wide(16, 2, 4095, 4095, 4095), 16),
    "colour with alpha": ("a.png", wide(16, 6, 4095, 4095, 4095, 65535), 16),
    "grey TIFF": ("a.tif", lambda path: Image.fromarray(np.full((2, 2), 4095, np.uint16)).save(path), 16),
    "floating point": ("a.tif", lambda path: Image.fromarray(np.ones((2, 2), np.float32)).save(path), 32),
    "grey JPEG 2000": ("a.jp2", lambda path: Image.fromarray(np.full((2, 2), 4095, np.uint16)).save(path), 16),
    "PGM": ("a.pgm", lambda path: path.write_bytes(b"P5 # of 12 bits: 4095\n1 1\n4095\n\x0f\xff"), 12),
    "PPM": ("a.ppm", lambda path: path.write_bytes(b"P6 1 1 65535\n\x0f\xff\x0f\xff\x0f\xff"), 16),
}


@pytest.mark.parametrize("case", DEEP)
def test_more_than_eight_bits_are_refused_wherever_they_stand(tmp_path, case):
    name, write, bits = DEEP[case]
    write(tmp_path / name)
    with pytest.raises(StudyError, match=f"row 0: .*{name} has {bits} bits a channel, and .* the window in which"):
        decode(tmp_path / name, "row 0", (1, 1), 1)


def colour_of_16_bits(path):
    """A TIFF of three unsigned numbers of 16 bits a pixel, which Pillow reads as RGB."""
    tags = [(256, 3, 1, 1), (257, 3, 1, 1), (258, 3, 3, 134), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 140)]
    tags += [(277, 3, 1, 3), (278, 3, 1, 1), (279, 4, 1, 6)]
    entries = b"".join(struct.pack("<HHIHH", tag, kind, count, value, 0) for tag, kind, count, value in tags)
    head = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)
    path.write_bytes(head.ljust(134, b"\0") + struct.pack("<6H", 16, 16, 16, 4095, 4095, 4095))


def colour_of_12_bits(path):
    """A JPEG 2000 whose header says 12 bits; its pixels are never looked at."""
    Image.new("RGB", (8, 8)).save(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"\xff\x4f\xff\x51") + 42
    content[at : at + 9 : 3] = b"\x0b" * 3
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "write", "bits"), [("a.tif", colour_of_16_bits, 16), ("a.jp2", colour_of_12_bits, 12)]
)
def test_colour_that_pillow_cuts_to_eight_bits_is_refused(tmp_path, name, write, bits):
    write(tmp_path / name)
    with Image.open(tmp_path / name) as image:
        assert image.mode == "RGB"
    with pytest.raises(StudyError, match=f"has {bits} bits a channel"):
        decode(tmp_path / name, "row 0", None, None)


def test_a_jpeg_of_twelve_bits_is_told_from_a_damaged_one(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "a.jpg")
    content = bytearray((tmp_path / "a.jpg").read_bytes())
    content[content.index(b"\xff\xc0") + 4] = 12
    (tmp_path / "a.jpg").write_bytes(content)
    with pytest.raises(StudyError, match="a.jpg has 12 bits a channel"):
        decode(tmp_path / "a.jpg", "row 0", None, None)
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(UnreadableImageError, match="a.jpg is not an image, or is damaged"):
        decode(tmp_path / "a.jpg", "row 0", None, None)


def test_other_colour_spaces_and_signed_numbers_are_refused(tmp_path):
    Image.new("LAB", (2, 2)).save(tmp_path / "a.tif")
    with pytest.raises(StudyError, match="has pixels of mode LAB; save it as grey or RGB of 8 bits"):
        decode(tmp_path / "a.tif", "row 0", None, None)
    Image.new("L", (2, 2)).save(tmp_path / "a.tif", tiffinfo={339: 2})
    with pytest.raises(StudyError, match="has signed or broken numbers; save"):
        decode(tmp_path / "a.tif", "row 0", None, None)


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.tif", "a.webp"])
def test_a_file_of_several_pictures_is_refused_or_one_is_chosen(tmp_path, name):
    levels = (10, 120, 250)
    frames = [Image.new("L", (4, 3), level).convert("RGB") for level in levels]
    more = {"lossless": True} if name == "a.webp" else {}
    frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], **more)
    with pytest.raises(
        StudyError, match=r"holds 3 pictures \(an animation, or pages\); save .* by `frame`, counted from 0"
    ):
        decode(tmp_path / name, "row 0", None, None)
    for frame, level in enumerate(levels):
        assert (decode(tmp_path / name, "row 0", None, 1, frame=frame) == level).all()
    with pytest.raises(StudyError, match="has no picture 3: it holds 3, and `frame` counts from 0"):
        decode(tmp_path / name, "row 0", None, None, frame=3)
    frames[0].save(tmp_path / name, **more)
    assert (decode(tmp_path / name, "row 0", None, 1, frame=0) == levels[0]).all()


def test_of_a_phones_jpeg_the_photograph_is_taken(tmp_path):
    """Beside it stand previews and maps of its brightness, which no viewer shows."""
    photograph, preview = Image.new("L", (16, 8), 200), Image.new("L", (4, 2), 30)
    photograph.save(tmp_path / "a.jpg", "MPO", save_all=True, append_images=[preview])
    found = decode(tmp_path / "a.jpg", "row 0", None, None)
    assert found.shape == (8, 16, 1) and (found == 200).all()


def test_a_large_image_is_refused_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    for shape in ((5, 5), (9, 9)):  # above the limit Pillow warns, above twice the limit it raises
        Image.new("L", shape, 7).save(tmp_path / "a.png")
        with pytest.raises(UnreadableImageError, match="decompression bomb .*; make it smaller, or raise `max_pixels`"):
            decode(tmp_path / "a.png", "row 0", None, None)
        with pytest.raises(UnreadableImageError, match="decompression bomb"):
            decode(tmp_path / "a.png", "row 0", None, None, max_pixels=shape[0] ** 2 - 1)
        assert (decode(tmp_path / "a.png", "row 0", None, None, max_pixels=shape[0] ** 2) == 7).all()
        assert Image.MAX_IMAGE_PIXELS == 20
