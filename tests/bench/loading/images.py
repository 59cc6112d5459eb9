"""Samples of a data loader: pictures in memory, and the processing of each.

Pillow and NumPy let the interpreter lock go for most of the work, so threads share it.
"""

import io
import zlib
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 384, 288
SIDE = 160  # of what is cut out
TOGETHER = 32  # samples of a batch
PICTURES = 64  # that differ
NUMBERS = 320  # that differ: what is done to a picture depends on its number
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
SPREAD = np.array([0.229, 0.224, 0.225], np.float32)

Array = np.ndarray[Any, Any]


class Sample(NamedTuple):
    number: int
    jpeg: bytes


def samples(n: int) -> list[Sample]:
    """Make pictures of coarse random spots, each as a JPEG file of some 20 KB."""
    draw = np.random.default_rng(0)
    files = []
    for _ in range(min(n, PICTURES)):
        spots = draw.integers(0, 256, (HEIGHT // 12, WIDTH // 12, 3), np.uint8)
        picture = Image.fromarray(spots).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return [Sample(place % NUMBERS, files[place % len(files)]) for place in range(n)]


def load(sample: Sample) -> Array:
    """Decode a picture, cut a part out, scale and normalise it; the number decides at random."""
    draw = sample.number * 2_654_435_761 % 2**32
    with Image.open(io.BytesIO(sample.jpeg)) as file:
        left, top = draw % (WIDTH // 4), draw // 512 % (HEIGHT // 4)
        box = (left, top, left + WIDTH * 3 // 4, top + HEIGHT * 3 // 4)
        picture = file.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR, box)
    if draw & 1:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    values = np.asarray(picture, np.float32) / np.float32(255)
    return ((values - MEAN) / SPREAD).transpose(2, 0, 1)


def collate(loaded: list[Array]) -> Array:
    return np.stack(loaded)


def digest(batch: Array) -> int:
    """Sum up a few of a batch's values, which takes next to no time."""
    return zlib.crc32(np.ascontiguousarray(batch[:, :, 7::16, 5::16]).tobytes())
