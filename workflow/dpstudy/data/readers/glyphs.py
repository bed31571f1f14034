"""Synthetic digits like handwriting, rendered from the fonts that matplotlib ships: nothing to download.

Each image is made as scikit-learn's digits were: a two-level bitmap of four times the final side, stretched to its
full height, then summed over blocks of 4 x 4 pixels. Fonts are not handwriting, so each glyph is rotated, slanted and
bent by a smooth random field, its pen is made thicker or thinner, and some digits also take a form that hands use and
digit glyphs lack (an open four, a seven with a bar, a one that is a plain stroke). These forms and the ranges below
were chosen with scikit-learn's digits in view, which are public; chosen so for private images, they would not be free.
Image i depends on (seed, i) only, hence not on how many images are made or in which order they are read.
"""

import os
from functools import cache
from pathlib import Path

import numpy as np

from dpstudy.core.errors import StudyError
from dpstudy.data.reader import Declared, Reader
from dpstudy.data.readers.drawn import Synthetic

READER = Declared(keys=("count", "seed", "size"), shape=(8, 8, 1), drawn=True)

FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-BoldOblique", "DejaVuSans-Oblique", "DejaVuSansMono",
    "DejaVuSansMono-Bold", "DejaVuSansMono-BoldOblique", "DejaVuSansMono-Oblique", "DejaVuSerif", "DejaVuSerif-Bold",
    "DejaVuSerif-BoldItalic", "DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralBol", "STIXGeneralBolIta",
    "STIXGeneralItalic", "cmb10", "cmr10", "cmss10", "cmti10", "cmtt10",
)  # fmt: skip
CLASSES = [str(digit) for digit in range(10)]

_OVERSAMPLING = 4  # bitmap pixels per image pixel and axis
_CANVAS, _GLYPH_HEIGHT = 96, 60  # of the master drawings, in pixels
_FIT_GRID = 40  # points per axis of the coarse look at a warped glyph that finds its bounding box
_CHUNK = 500  # images rendered at once
_BAR, _FLAG, _STROKE = "bar", "flag", "stroke"  # forms that are drawn rather than taken from a font
# What to draw for a digit, with weights; a letter stands in for a handwritten form.
_FORMS: dict[int, tuple[tuple[str, float], ...]] = {
    0: (("0", 0.5), ("O", 0.5)),
    1: (("1", 0.4), (_STROKE, 0.3), (_FLAG, 0.3)),
    3: (("3", 0.8), ("\u0417", 0.2)),
    4: (("4", 0.5), ("\u0427", 0.5)),
    6: (("6", 0.7), ("b", 0.3)),
    7: (("7", 0.4), (_BAR, 0.6)),
    9: (("9", 0.6), ("g", 0.2), ("q", 0.2)),
}


class Glyphs(Synthetic):
    """`count` images in one pool, `all`; the labels cycle through the ten digits.

    Options: count (12000), size ([8, 8], height and width in pixels), seed (0).

    Raises:
        StudyError: an option is out of range.
    """

    def __init__(self, options: dict):
        self._seed, size = options.get("seed", 0), options.get("size", [8, 8])
        if len(size) != 2 or min(size) < 4:
            raise StudyError(f"public data set: size is {size}; glyphs need [height, width] of at least 4 pixels each")
        super().__init__("glyphs", list(CLASSES), options.get("count", 12000), (int(size[0]), int(size[1]), 1))

    def images(self, indices: np.ndarray) -> np.ndarray:
        """(n, H, W, 1) uint8, white pen (255) on black (0)."""
        images = np.zeros((len(indices), *self.image_shape), np.uint8)
        for start in range(0, len(indices), _CHUNK):
            part = indices[start : start + _CHUNK]
            images[start : start + _CHUNK, :, :, 0] = _render(self._seed, part, self.image_shape[:2])
        return images


def open(options: dict, data_root: Path) -> Reader:
    """Open the rendered digits; takes no location."""
    return Glyphs(options)


def _render(seed: int, indices: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Images `indices` as (n, H, W) uint8."""
    pens = [_Pen(np.random.default_rng([seed, int(index)]), int(index) % len(CLASSES)) for index in indices]
    masters, places = _masters()
    master = np.array([places[pen.drawing] for pen in pens])
    inverse = np.stack([pen.inverse for pen in pens])
    bends = np.stack([pen.bend for pen in pens])

    def distances(y, x):  # signed distance to the pen's edge at the (n, rows) x (n, columns) points of the output plane
        return _sample(masters, master, *_warp(y, x, inverse, bends))

    coarse = np.broadcast_to(np.linspace(-1.5, 1.5, _FIT_GRID, dtype=np.float32), (len(pens), _FIT_GRID))
    ink = distances(coarse, coarse) > 0
    top, bottom = _extent(ink.any(axis=2), coarse[0])
    left, right = _extent(ink.any(axis=1), coarse[0])

    height, width = size[0] * _OVERSAMPLING, size[1] * _OVERSAMPLING
    fit = np.array([pen.width for pen in pens], np.float32)  # the share of the image's width that the glyph fills
    narrow = (right - left) / (bottom - top) < 0.4  # a plain stroke keeps its shape
    fit = np.where(narrow, np.maximum((right - left) / (bottom - top), 0.1) * fit / 0.7, fit)
    jitter = np.array([pen.shift for pen in pens], np.float32)
    middle, half = (left + right) / 2, (right - left) / 2 / fit
    rows = top[:, None] + (bottom - top)[:, None] * _centres(height)
    columns = (middle - half * (1 + jitter))[:, None] + 2 * half[:, None] * _centres(width)
    field = distances(rows.astype(np.float32), columns.astype(np.float32))

    flat = np.sort(field.reshape(len(pens), -1), axis=1)
    cut = ((1 - np.array([pen.ink for pen in pens])) * flat.shape[1]).astype(int)
    threshold = flat[np.arange(len(pens)), cut]  # the pen's width is set by the share of the bitmap that it covers
    bitmap = field > threshold[:, None, None]
    blocks = bitmap.reshape(len(pens), size[0], _OVERSAMPLING, size[1], _OVERSAMPLING).sum(axis=(2, 4))
    return np.round(blocks * (255 / _OVERSAMPLING**2)).astype(np.uint8)


class _Pen:
    """The random choices behind one image."""

    def __init__(self, random: np.random.Generator, digit: int):
        font = FONTS[random.integers(len(FONTS))]
        forms = _FORMS.get(digit, ((str(digit), 1.0),))
        form = forms[int(np.searchsorted(np.cumsum([weight for _, weight in forms])[:-1], random.random(), "right"))][0]
        self.drawing = (font, form)
        angle, slant = random.normal(0, 0.12), random.normal(0.1, 0.2)
        squeeze = np.exp(random.normal(0, 0.1))
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        forward = rotation @ np.array([[1.0, 0.0], [-slant, squeeze]])  # rows are (y, x)
        self.inverse = np.linalg.inv(forward).astype(np.float32)
        self.bend = random.normal(0, 0.08, size=(2, 4, 4)).astype(np.float32)
        self.width = random.uniform(0.62, 0.82)
        self.shift = random.normal(0, 0.06)
        self.ink = random.normal(0.305, 0.033)


def _centres(points: int) -> np.ndarray:
    return ((np.arange(points) + 0.5) / points).astype(np.float32)[None]


def _extent(used: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and last position, half a grid step outward, at which each row of `used` is true."""
    step = (positions[1] - positions[0]) / 2
    last = used.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    return positions[used.argmax(axis=1)] - step, positions[last] + step


def _warp(y: np.ndarray, x: np.ndarray, inverse: np.ndarray, bends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the points (y_i, x_j) of the output plane lie on the master drawing, both in units of half a glyph."""
    moved = []
    basis_y, basis_x = _bumps(y), _bumps(x)
    for axis in (0, 1):
        bend = np.zeros((len(y), y.shape[1], x.shape[1]), np.float32)
        for row in range(4):
            along = sum(bends[:, axis, row, column, None] * basis_x[column] for column in range(4))
            bend += basis_y[row][:, :, None] * along[:, None, :]
        moved.append(
            inverse[:, axis, 0, None, None] * y[:, :, None] + inverse[:, axis, 1, None, None] * x[:, None, :] + bend
        )
    return moved[0], moved[1]


def _bumps(position: np.ndarray) -> list[np.ndarray]:
    return [np.exp(-(((position - centre) / 0.5) ** 2)) for centre in (-0.9, -0.3, 0.3, 0.9)]


def _sample(masters: np.ndarray, master: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Bilinear look-up of the drawings `master` (n,) at the points y, x (n, h, w)."""
    scale = _GLYPH_HEIGHT / 2
    y = np.clip(y * scale + (_CANVAS - 1) / 2, 0, _CANVAS - 1.001)
    x = np.clip(x * scale + (_CANVAS - 1) / 2, 0, _CANVAS - 1.001)
    row, column = y.astype(np.int32), x.astype(np.int32)
    y, x = y - row, x - column
    corner = (master[:, None, None] * _CANVAS + row) * _CANVAS + column
    flat = masters.reshape(-1)
    upper = flat[corner] * (1 - x) + flat[corner + 1] * x
    lower = flat[corner + _CANVAS] * (1 - x) + flat[corner + _CANVAS + 1] * x
    return upper * (1 - y) + lower * y


@cache
def _masters() -> tuple[np.ndarray, dict[tuple[str, str], int]]:
    """Signed distances to each drawing's edge in pixels, positive inside, (drawings, canvas, canvas) float32."""
    from scipy.ndimage import distance_transform_edt

    drawings: list[np.ndarray] = []
    places: dict[tuple[str, str], int] = {}
    for font in FONTS:
        for digit in range(10):
            for form, _ in _FORMS.get(digit, ((str(digit), 1.0),)):
                places[font, form] = len(drawings)
                ink = _draw(font, form)
                drawings.append(distance_transform_edt(ink) - distance_transform_edt(~ink))
    return np.array(drawings, np.float32), places


def _draw(font: str, form: str) -> np.ndarray:
    """One glyph in the middle of the canvas, `_GLYPH_HEIGHT` tall, as a (canvas, canvas) mask."""
    from PIL import Image, ImageDraw, ImageFont

    canvas = Image.new("L", (_CANVAS, _CANVAS))
    pen = ImageDraw.Draw(canvas)
    low = (_CANVAS - _GLYPH_HEIGHT) // 2
    if form in (_STROKE, _FLAG):
        pen.rectangle((_CANVAS // 2 - 4, low, _CANVAS // 2 + 3, low + _GLYPH_HEIGHT - 1), fill=255)
        if form == _FLAG:
            pen.line((_CANVAS // 2, low + 3, _CANVAS // 2 - 16, low + 18), fill=255, width=8)
        return np.asarray(canvas) > 127
    text = "7" if form == _BAR else form
    path = _font_path(font)
    if _tofu(font, text):
        text = str(next(digit for digit, forms in _FORMS.items() if any(form == name for name, _ in forms)))
    box = ImageFont.truetype(path, 100).getbbox(text)
    glyph_font = ImageFont.truetype(path, max(8, round(100 * _GLYPH_HEIGHT / (box[3] - box[1]))))
    left, top, right, bottom = glyph_font.getbbox(text)
    pen.text(((_CANVAS - left - right) / 2, (_CANVAS - top - bottom) / 2), text, fill=255, font=glyph_font)
    if form == _BAR:
        middle = _CANVAS // 2 + 2
        pen.rectangle((_CANVAS // 2 - 20, middle - 3, _CANVAS // 2 + 16, middle + 3), fill=255)
    return np.asarray(canvas) > 127


def _font_path(font: str) -> str:
    import matplotlib

    return os.path.join(matplotlib.get_data_path(), "fonts", "ttf", f"{font}.ttf")


def _tofu(font: str, text: str) -> bool:
    """Whether `font` lacks `text` and would draw its box for missing glyphs."""
    from PIL import ImageFont

    loaded = ImageFont.truetype(_font_path(font), 40)
    return bytes(loaded.getmask(text)) == bytes(loaded.getmask("\ufffe"))
