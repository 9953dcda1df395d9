"""Choose the values that are shown darkest and brightest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from n5zarr.tools.jobs.boxes import Box
    from n5zarr.viewing.images import Image, Level

__all__ = ["contrast_limits", "n_chunks_sampled"]

_MOST_ELEMENTS = 2**22  # that are looked at, of all levels the coarsest
_FEW = 16  # values of bytes that are masks and classes, all of them dark from 0 to 255
_SHARE = 0.1  # percent of the elements that may be darker, and as many brighter


def contrast_limits(image: Image, channel: int = 0) -> tuple[float, float]:
    """Return the limits of a channel: those that the container says, or else those of the data.

    Of the data, 0.1 % of the elements are darker and 0.1 % brighter; missing blocks do not count,
    and of large data a sample is read. The whole range of a data type is no limit that anybody
    chose, except for bytes that use more than a sixteenth of it.

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
    is_default = known is not None and known == _whole_range(image.dtype)
    if known is not None and not is_default:
        return known
    found = _limits_of_data(image, channel)
    is_bytes = image.dtype.kind == "u" and image.dtype.itemsize == 1
    return known if known is not None and is_bytes and found[1] >= _FEW else found


def n_chunks_sampled(image: Image) -> int:
    """Count the chunks of the coarsest level that are read to find limits, at most."""
    coarsest, axis = image.levels[-1], image.channel_axis
    return sum(1 for c in range(len(image.channels)) for _ in _sample(coarsest, axis, c))


def _whole_range(dtype: np.dtype[Any]) -> tuple[float, float] | None:
    if dtype.kind not in "ui":
        return None
    info = np.iinfo(dtype)
    return float(info.min), float(info.max)


def _limits_of_data(image: Image, channel: int) -> tuple[float, float]:
    if image.dtype.kind == "b":
        return 0.0, 1.0
    coarsest = image.levels[-1]
    parts = [
        _finite(coarsest.values[box]) for box in _sample(coarsest, image.channel_axis, channel)
    ]
    values = np.concatenate([part for part in parts if part.size] or [np.zeros(0)])
    stored = values[values != 0]
    if stored.size:
        values = stored
    if not values.size:
        return 0.0, 1.0
    low, high = (float(limit) for limit in np.percentile(values, [_SHARE, 100 - _SHARE]))
    return (low, high) if low < high else (min(low, 0.0), max(high, 0.0) or low + 1)


def _finite(values: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401 - what an array gives
    flat = np.asarray(values).ravel()
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
    most = max(1, _MOST_ELEMENTS // math.prod(chunks))
    counts = [-(-n // step) for n, step in zip(shape, chunks, strict=True)]
    n_chunks = math.prod(counts)
    for index in range(0, n_chunks, -(-n_chunks // most)):
        position = np.unravel_index(index, counts)
        yield tuple(
            slice(part.start + int(i) * step, min(part.start + (int(i) + 1) * step, part.stop))
            for i, step, part in zip(position, chunks, chosen, strict=True)
        )
