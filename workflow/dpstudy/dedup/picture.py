"""A picture of near matches for inspection by a person; it shows private images and is never published."""

import os

import numpy as np

from dpstudy.dedup.thumbnails import SIDE

_ACROSS, _DOWN, _ENLARGED = 6, 10, 3
_TEXT = 34  # pixels below each pair


def draw_pairs(pairs: list[tuple[str, str, float, bytes]], path: str | os.PathLike) -> None:
    """Write a PNG of pairs (public id, private id, score, picture): public images left, private ones right.

    Args:
        pairs: those least alike first; a page holds the first 60. A picture is (32, 64, 3) uint8.
    """
    from PIL import Image, ImageDraw

    shown = pairs[: _ACROSS * _DOWN]
    wide, high = 2 * SIDE * _ENLARGED + 16, SIDE * _ENLARGED + _TEXT + 8
    page = Image.new("RGB", (_ACROSS * wide, 24 + max(1, -(-len(shown) // _ACROSS)) * high), "white")
    pen = ImageDraw.Draw(page)
    caption = f"{len(pairs)} near matches kept, the least alike first: public left, private right. Not for publication."
    pen.text((8, 6), caption, fill="black")
    for place, (public, private, score, content) in enumerate(shown):
        left, top = place % _ACROSS * wide + 8, 24 + place // _ACROSS * high
        pixels = np.frombuffer(content, np.uint8).reshape(SIDE, 2 * SIDE, 3)
        picture = Image.fromarray(pixels).resize((2 * SIDE * _ENLARGED, SIDE * _ENLARGED), Image.Resampling.NEAREST)
        page.paste(picture, (left, top))
        pen.text((left, top + SIDE * _ENLARGED + 2), f"{score:.4f}  {public[-22:]}\n{private[-28:]}", fill="black")
    page.save(path, "PNG")
