"""Choose the values that are shown darkest and brightest."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.errors import N5Error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr.tools.jobs.boxes import Box
    from n5zarr.viewing.images import Image, Level

__all__ = ["contrast_limits"]

_MOST_ELEMENTS = 2**22  # that are looked at, of all levels the coarsest
_MOST_CHUNKS = 64  # that are read for it, of a server as many at a time as _READERS
_READERS = 16
_SHARE = 0.1  # percent of the elements that may be darker, and as many brighter


def contrast_limits(image: Image, channel: int = 0) -> tuple[float, float]:
    """Return the limits of a channel: those that the container says, or else those of the data.

    Of the data, 0.1 % of the elements are darker and 0.1 % brighter; missing and damaged blocks do
    not count, and of large data a sample is read.

    Parameters
    ----------
    image : Image
        The image.
    channel : int, optional
        Index of the channel.

    Returns
    -------
    tuple of float
        Two finite numbers, the first is smaller.
    """
    known = image.channels[channel].limits
    if known is not None:
        return known
    if image.dtype.kind == "b":
        return 0.0, 1.0
    coarsest = image.levels[-1]
    boxes = _sample(coarsest, image.channel_axis, channel)
    with ThreadPoolExecutor(_READERS) as readers:
        parts = [*readers.map(lambda box: _read(coarsest, box), boxes)]
    values = np.concatenate([part for part in parts if part.size] or [np.zeros(0)])
    stored = values[values != 0]
    if stored.size:
        values = stored
    if not values.size:
        return 0.0, 1.0
    low, high = (float(limit) for limit in np.percentile(values, [_SHARE, 100 - _SHARE]))
    return (low, high) if low < high else (min(low, 0.0), max(high, 0.0) or low + 1)


def _read(level: Level, box: Box) -> np.ndarray[Any, Any]:
    """Read the finite elements of a box; none if it is damaged, which showing it will say."""
    try:
        flat = np.asarray(level.values[box]).ravel()
    except N5Error:
        return np.zeros(0, level.dtype)
    return flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat


def _sample(level: Level, channel_axis: int | None, channel: int) -> Iterator[Box]:
    """Yield boxes of a channel, spread evenly, that are read to see what values there are."""
    chosen = [slice(0, n) for n in level.shape]
    if channel_axis is not None:
        chosen[channel_axis] = slice(channel, channel + 1)
    shape = tuple(part.stop - part.start for part in chosen)
    if 0 in shape:
        return
    chunks = tuple(map(min, level.chunks, shape))
    most = min(_MOST_CHUNKS, max(1, _MOST_ELEMENTS // math.prod(chunks)))
    counts = [-(-n // step) for n, step in zip(shape, chunks, strict=True)]
    n_chunks = math.prod(counts)
    for index in range(0, n_chunks, -(-n_chunks // most)):
        position = np.unravel_index(index, counts)
        yield tuple(
            slice(part.start + int(i) * step, min(part.start + (int(i) + 1) * step, part.stop))
            for i, step, part in zip(position, chunks, chosen, strict=True)
        )
