"""``n5zarr.Crops``: crops of several arrays around common positions, for training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import zarr
from zarr.types import AnyArray

from n5zarr.arrays.many_boxes import read_boxes
from n5zarr.arrays.opening import ArrayOptions, open_array
from n5zarr.container.options import require
from n5zarr.errors import option_error
from n5zarr.metadata.geometry import geometry
from n5zarr.storage.place import Location

_TOLERANCE = 1e-6  # of an element


class Crops:
    """Crops of several arrays around common positions: images, labels, coarse levels as context.

    A data set for loaders of torch, Grain or your own: sample ``i`` is a dict with one crop of each
    part. A loader that passes many numbers to ``__getitems__``, as torch's, reads them as
    :func:`n5zarr.read_boxes` does. Can be pickled, and read in forked and spawned workers.

    Parameters
    ----------
    parts : mapping
        For each name the location of a dataset, or its array, and the shape of its crops along
        ``axes``, in elements. Positions and sizes of elements are those of :func:`n5zarr.geometry`.
        Other axes, such as channels, are read whole.
    centres : int or array_like of float
        The positions, shape ``(samples, axes)``, in the units of the axes; or how many are chosen
        at random, so that all parts without ``pad`` lie inside of their arrays. Random positions
        are centres of crops of the coarsest part, and of all others whose shape is even and whose
        elements it divides evenly; a crop is at most half an element off.
    axes : sequence of str, optional
        Names of the axes of positions and shapes; each part has them.
    seed : int, optional
        Seed of the random positions. More positions begin with the same.
    pad : mapping, optional
        For parts that may reach beyond their arrays, the value of elements outside, by name.
    transform : callable, optional
        Takes a sample, and returns what is passed on, for instance an augmented one.
    **options : optional
        Those of :func:`n5zarr.open_array`, for locations.

    Attributes
    ----------
    centres : numpy.ndarray
        The positions, float64, shape ``(samples, axes)``.

    Raises
    ------
    FileNotFoundError
        A dataset does not exist.
    N5UnrepresentableError
        A part lacks an axis or has other units than another one, no position has all parts inside
        of their arrays, or a given one does not (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> sample = n5zarr.sample_path()
    >>> parts = {
    ...     "em": (f"{sample}/em/s0", (8, 32, 32)),
    ...     "labels": (f"{sample}/labels/s0", (4, 16, 16)),
    ... }
    >>> data = n5zarr.Crops(parts, 100)
    >>> len(data), data[7]["labels"].shape, data.read([[390, 604, 860]])["em"].shape
    (100, (4, 16, 16), (1, 8, 32, 32))
    """

    def __init__(
        self,
        parts: Mapping[str, tuple[Location | AnyArray, Sequence[int]]],
        centres: int | npt.ArrayLike,
        *,
        axes: Sequence[str] = "zyx",
        seed: int = 0,
        pad: Mapping[str, complex] | None = None,
        transform: Callable[[dict[str, np.ndarray]], Any] | None = None,
        **options: Unpack[ArrayOptions],
    ) -> None:
        require(
            all(isinstance(each, Mapping) for each in (parts, pad or {})),
            f"parts, pad: expected mappings by name, got {parts!r} and {pad!r}",
        )
        pads = dict(pad or {})
        self._parts = [
            _part(name, given, axes, pads.pop(name, None), options) for name, given in parts.items()
        ]
        require(
            self._parts and not pads,
            f"parts, pad: expected some parts, and values for these, got {[*parts]} and {[*pads]}",
        )
        units = {part.units for part in self._parts}
        require(len(units) == 1, f"parts: expected one unit for each axis, got {[*units]}")
        self.transform = transform
        given = np.array(centres, "f8") if np.ndim(centres) else None
        self.centres = _chosen(self._parts, seed, centres) if given is None else given
        for part in self._parts:
            part.starts(self.centres)  # raises now, and not in a worker

    def __len__(self) -> int:
        return len(self.centres)

    def __repr__(self) -> str:
        return f"<Crops of {', '.join(part.name for part in self._parts)}: {len(self)} samples>"

    def __getitem__(self, i: int) -> Any:  # noqa: ANN401 - what `transform` returns
        return self.__getitems__([i])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return several samples; a block that they share is read and decoded once."""
        batch = self.read(self.centres[[*numbers]])
        samples = [{name: crops[k] for name, crops in batch.items()} for k in range(len(numbers))]
        return samples if self.transform is None else [*map(self.transform, samples)]

    def read(self, centres: npt.ArrayLike) -> dict[str, np.ndarray]:
        """Read a batch: the crops around some positions.

        Parameters
        ----------
        centres : array_like of float
            The positions, shape ``(boxes, axes)``, in the units of the axes.

        Returns
        -------
        dict of numpy.ndarray
            Of each part its crops, shape ``(boxes, ...)`` with all axes of its array in their
            order, and of its dtype.

        Raises
        ------
        N5UnrepresentableError
            A part without ``pad`` reaches beyond its array (``kind="option"``).
        """
        found = np.asarray(centres, np.float64)
        return {part.name: part.read(found) for part in self._parts}


class _Part(NamedTuple):
    """An array and its crops; of each value one for each axis of positions, but for `extent`."""

    name: str
    array: AnyArray
    at: list[int]  # the axes of positions, among those of the array
    units: tuple[str | None, ...]
    scale: np.ndarray
    first: np.ndarray  # the centre of the first crop inside of the array
    last: np.ndarray
    extent: np.ndarray  # of a crop, with all axes of the array
    pad: complex | None

    def starts(self, centres: np.ndarray) -> np.ndarray:
        """Return the first element of each crop; raise if it must be inside, and is not."""
        if centres.shape[1:] != (len(self.at),) or not np.isfinite(centres).all():
            raise option_error(
                f"centres: expected finite numbers of the shape (samples, {len(self.at)}), got "
                f"{centres.shape}: {centres}"
            )
        starts = np.zeros((len(centres), self.array.ndim), "i8")
        nearest = np.floor((centres - self.first) / self.scale + 0.5)
        starts[:, self.at] = nearest.clip(-self.extent[self.at], np.take(self.array.shape, self.at))
        outside = (starts < 0) | (starts > np.subtract(self.array.shape, self.extent))
        if self.pad is None and outside.any():
            k = int(outside.any(axis=1).argmax())
            raise option_error(
                f"{self.name}: expected crops inside of the array of the shape {self.array.shape}, "
                f"got one of the shape {self.extent.tolist()} from {starts[k].tolist()}, around "
                f"{centres[k].tolist()}; pad={{{self.name!r}: 0}} adds zeros"
            )
        return starts

    def read(self, centres: np.ndarray) -> np.ndarray:
        """Read the crops around some positions: boxes of one shape inside of the array."""
        starts, within = self.starts(centres), np.minimum(self.extent, self.array.shape)
        first = np.clip(starts, 0, self.array.shape - within)
        found = read_boxes(self.array, first, within.tolist())
        if (first == starts).all() and (within == self.extent).all():
            return found
        crops = np.full_like(found, self.pad, shape=(len(starts), *self.extent))
        for crop, box, shift in zip(crops, found, starts - first, strict=True):
            low = np.maximum(shift, 0)
            high = np.maximum(np.minimum(shift + self.extent, within), low)
            crop[tuple(map(slice, low - shift, high - shift))] = box[tuple(map(slice, low, high))]
        return crops


def _part(
    name: str,
    given: tuple[Location | AnyArray, Sequence[int]],
    axes: Sequence[str],
    pad: complex | None,
    options: ArrayOptions,
) -> _Part:
    """Open an array, and find its axes."""
    try:
        where, shape = given
        wanted = np.array([index(n) for n in shape])
    except (TypeError, ValueError) as err:
        message = f"{name}: expected a dataset and the shape of its crops, got {given!r}"
        raise option_error(message) from err
    require(
        len(wanted) == len(axes) and (wanted > 0).all(),
        f"{name}: expected {len(axes)} sizes above 0, along {[*axes]}, got {shape}",
    )
    array = where if isinstance(where, zarr.Array) else open_array(where, **options)
    place = geometry(array)
    require(
        {*axes} <= {*place.names},
        f"{name}: expected the axes {[*axes]}, got {[*place.names]}; set_geometry names axes",
    )
    require(
        pad is None or np.isclose(np.asarray(pad).astype(array.dtype), pad, equal_nan=True),
        f"pad: expected a value of {array.dtype} for {name!r}, got {pad}",
    )
    at = [place.names.index(axis) for axis in axes]
    scale, extent = np.take(place.scale, at), np.array(array.shape)
    first = np.take(place.translation, at) + scale * (wanted - 1) / 2
    last = first + scale * (extent[at] - wanted)
    extent[at] = wanted
    return _Part(
        name, array, at, tuple(place.units[k] for k in at), scale, first, last, extent, pad
    )


def _chosen(parts: Sequence[_Part], seed: int, n: Any) -> np.ndarray:  # noqa: ANN401 - an integer
    """Choose positions at random: centres of crops of the part that is coarsest along each axis."""
    whole = [part for part in parts if part.pad is None]
    require(whole, "pad: expected a part without it, which is inside of its array, got none")
    coarsest = np.argmax([part.scale for part in parts], axis=0), np.arange(len(parts[0].at))
    step = np.array([part.scale for part in parts])[coarsest]
    first = np.array([part.first for part in parts])[coarsest]
    low = np.ceil((np.max([part.first for part in whole], axis=0) - first) / step - _TOLERANCE)
    high = np.floor((np.min([part.last for part in whole], axis=0) - first) / step + _TOLERANCE)
    require(
        (low <= high).all(),
        f"parts: expected a position that has {', '.join(part.name for part in whole)} inside of "
        "their arrays, got none; take smaller shapes, or pad=",
    )
    require(index(n) >= 0, f"centres: expected a number from 0 on, or positions, got {n}")
    random, size = np.random.default_rng(seed), (index(n), len(low))
    centres: np.ndarray = first + step * random.integers(low, high, size, endpoint=True)
    return centres
