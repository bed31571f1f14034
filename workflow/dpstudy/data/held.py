"""Image files, on disk or inside a table or an archive."""

import io
from pathlib import Path
from typing import BinaryIO, NamedTuple


class Held(NamedTuple):
    """An image file stored inside another file.

    Attributes:
        name: what messages call it.
        content: its bytes.
    """

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


Source = Path | Held


def raw(source: Source) -> BinaryIO:
    """The image file's bytes, as an open binary file.

    Raises:
        OSError: it cannot be opened.
    """
    return io.BytesIO(source.content) if isinstance(source, Held) else open(source, "rb")
