"""Choose the contrast limits of images: the values that are shown darkest and brightest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import batched, islice
from typing import Any

import numpy as np

from n5zarr.arrays.boxes import BoxSlices
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.errors import N5Error
from n5zarr.images.image import Image, ImageLevel

_MOST_ELEMENTS = 2**22  # that are looked at, of all levels the coarsest
_MOST_CHUNKS, _MOST_SMALL_CHUNKS = 64, 256  # that are looked at where many are missing
_MOST_BYTES = 2**30  # of the elements of these chunks, but for one chunk that is larger
_READERS = 16  # chunks that are asked of a server at a time
_HUGE = 2.0**1022  # limits are nearer to 0, so that their difference is a number
_FEW = 16  # values of bytes that are masks and classes, all of them dark from 0 to 255
_SHARE = 0.1  # percent of the elements that may be darker, and as many brighter


def contrast_limits(
    image: Image, channel: int = 0, drawn: Iterable[np.ndarray[Any, Any]] = ()
) -> tuple[float, float]:
    """Return the limits of a channel: those that the container states, else those of the data.

    Of the data, 0.1 % of the elements are darker and 0.1 % brighter; missing and damaged blocks do
    not count, and of large data a sample is read. The whole range of a data type is no limit that
    anybody chose, except for bytes that use more than a sixteenth of it.

    Parameters
    ----------
    image : Image
        The image.
    channel : int, optional
        Index of the channel.
    drawn : iterable of numpy.ndarray, optional
        Values that are drawn; they are looked at where all blocks of the sample are missing.

    Returns
    -------
    tuple of float
        Two finite numbers, the first is smaller.
    """
    low, high = image.channels[channel].limits or (0.0, 0.0)
    is_usable = -math.inf < low < high < math.inf
    known = (max(low, -_HUGE), min(high, _HUGE)) if is_usable else None
    whole = np.iinfo(image.dtype) if image.dtype.kind in "ui" else None
    is_default = whole is not None and known == (float(whole.min), float(whole.max))
    if known is not None and not is_default:
        return known
    if image.dtype.kind == "b":
        return 0.0, 1.0
    coarsest = image.levels[-1]
    found = (
        _limits_of(_read_each(coarsest, _sample(coarsest, image.channel_axis, channel)))
        or _limits_of(_read_each(coarsest, _first_stored(image, channel)))
        or _limits_of(map(_stored, drawn))
    )
    if found is None:
        return known or (0.0, 1.0)
    is_bytes = image.dtype.kind == "u" and image.dtype.itemsize == 1
    return known if known is not None and is_bytes and found[1] >= _FEW else found


def n_chunks_sampled(image: Image) -> int:
    """Count the chunks of the coarsest level that are read to find limits, at most."""
    coarsest, axis = image.levels[-1], image.channel_axis
    return sum(1 for c in range(len(image.channels)) for _ in _sample(coarsest, axis, c))


def _limits_of(parts: Iterable[np.ndarray[Any, Any]]) -> tuple[float, float] | None:
    """Return the limits of values; None if there are none."""
    values = np.concatenate([np.zeros(0, np.uint8), *parts])
    if not values.size:
        return None
    if values.dtype.kind == "f":  # interpolation between huge numbers would overflow
        values = np.clip(values.astype(np.float64), -_HUGE, _HUGE)
    low, high = (float(limit) for limit in np.percentile(values, [_SHARE, 100 - _SHARE]))
    return (low, high) if low < high else (min(low, 0.0), max(high, 0.0) or low + 1)


def _read_each(level: ImageLevel, sample: Iterable[BoxSlices]) -> Iterator[np.ndarray[Any, Any]]:
    """Read values of a level until there are enough, several chunks at a time."""
    n_elements = 0
    together = max(1, min(_READERS, 4 * _MOST_ELEMENTS // math.prod(level.chunks)))
    with ThreadPoolExecutor(together) as readers:
        for boxes in batched(sample, together):
            for values in readers.map(partial(_read, level), boxes):
                yield values
                n_elements += values.size
            if n_elements >= _MOST_ELEMENTS:
                return


def _read(level: ImageLevel, box: BoxSlices) -> np.ndarray[Any, Any]:
    """Read the values of a box; none if a block is damaged: whoever shows it reports that."""
    try:
        return _stored(read_on_host(level.values, box))
    except N5Error:
        return np.zeros(0, level.dtype)


def _stored(values: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401 - what an array gives
    """Return values without zeros, which missing blocks have, and without non-finite ones."""
    flat = np.asarray(values).ravel()
    return np.asarray(flat[(flat != 0) & np.isfinite(flat)])


def _all_of(level: ImageLevel, channel_axis: int | None, channel: int) -> list[slice]:
    """Return the box of all elements of a channel."""
    chosen = [slice(0, n) for n in level.shape]
    if channel_axis is not None:
        chosen[channel_axis] = slice(channel, channel + 1)
    return chosen


def _most_chunks(level: ImageLevel, chunks: Sequence[int]) -> int:
    """Return how many chunks are read at most."""
    enough = _MOST_ELEMENTS // math.prod(chunks)
    n_bytes = math.prod(chunks) * level.dtype.itemsize
    return min(max(_MOST_CHUNKS, enough), _MOST_SMALL_CHUNKS, max(1, _MOST_BYTES // n_bytes))


def _first_stored(image: Image, channel: int) -> Iterator[BoxSlices]:
    """Yield the boxes of the first stored chunks of the coarsest level, as few may be stored."""
    level = image.levels[-1]
    chosen = _all_of(level, image.channel_axis, channel)
    listing = stored_chunks(level.values, chosen)
    if listing is None:
        return
    yield from islice(listing.parts_of(chosen), _most_chunks(level, listing.unit))


def _sample(level: ImageLevel, channel_axis: int | None, channel: int) -> Iterator[BoxSlices]:
    """Yield boxes of whole chunks of a channel, as a sample of its values.

    All chunks, or the one in the middle and then random ones: those of a regular pattern may all
    be at a border.
    """
    chosen = _all_of(level, channel_axis, channel)
    shape = tuple(part.stop - part.start for part in chosen)
    if 0 in shape:
        return
    chunks = tuple(map(min, level.chunks, shape))
    most = _most_chunks(level, chunks)
    counts = [-(-n // step) for n, step in zip(shape, chunks, strict=True)]
    if math.prod(counts) <= most:
        positions = list(np.ndindex(*counts))
    else:
        others = np.random.default_rng(0).integers(counts, size=(most - 1, len(counts))).tolist()
        positions = [tuple(n // 2 for n in counts), *map(tuple, others)]
    for position in dict.fromkeys(positions):
        yield tuple(
            slice(part.start + i * step, min(part.start + (i + 1) * step, part.stop))
            for i, step, part in zip(position, chunks, chosen, strict=True)
        )
