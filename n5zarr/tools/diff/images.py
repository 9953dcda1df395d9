"""Compare the images of two sides, level by level: values, and positions in any convention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from n5zarr.arrays.boxes import BoxSlices, StoredChunks
from n5zarr.arrays.placing import read_on_host
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.conventions.model import mapping, numbers
from n5zarr.conventions.units import ratio
from n5zarr.format.path import join
from n5zarr.images.image import Image, ImageLevel, Images
from n5zarr.images.source import ArraySource, Values
from n5zarr.tools.diff.model import Difference, Found

_NEAR = 1e-3
"""The part of the distance of elements up to which positions are equal.

Programs round scales to 32 bits, which moves the last of 16000 elements so far, and add up the
shifts of levels in other ways; no registration is as exact.
"""


def compare_images(first: Images, second: Images) -> Found:
    """Compare the documents of images, and find the levels whose values can be compared.

    Images are paired by setup and time point if both sides are projects, else by path, and if each
    side has only one, whatever its path. Levels are paired in their order, or by shape if one side
    lacks some. Axes are paired by name; one of a single element may be missing. Positions are equal
    if no element moves by more than a thousandth of the distance to its neighbour, and units if
    they can be converted. Arrays beside the images are compared, too; other attributes are not.

    Parameters
    ----------
    first, second : Images
        Both sides.
    """
    found = Found(problems=[*first.source.refused.values(), *second.source.refused.values()])
    views = [_views(side.images) for side in (first, second)]
    ours, theirs = (
        {image.path: image for image in side.images} if None in views else own or {}
        for side, own in zip((first, second), views, strict=True)
    )
    if len(ours) == len(theirs) == 1:
        theirs = dict(zip(ours, theirs.values(), strict=True))
    for path in dict.fromkeys((*ours, *theirs)):
        if path in ours and path in theirs:
            found.n_images += 1
            found.differences += _Pair.of(ours[path], theirs[path]).differences(found)
        else:
            found.differences.append(_missing(path, "image", in_first=path in ours))
    for path in sorted({*first.arrays, *second.arrays}):
        if path in first.arrays and path in second.arrays:
            both = (_Elements.of(side.arrays[path]) for side in (first, second))
            found.differences += found.arrays(path, *both)
        else:
            found.differences.append(_missing(path, "array", in_first=path in first.arrays))
    return found


def _missing(path: str, what: str, *, in_first: bool) -> Difference:
    first, second = (what, None) if in_first else (None, what)
    return Difference(path=path, what="missing", first=first, second=second)


def _views(images: Sequence[Image]) -> dict[str, Image] | None:
    """Return the views of a project by setup and time point; None of any other images."""
    found: dict[str, Image] = {}
    for image in images:
        own = mapping(image.attributes.get("bdv"))
        setup, timepoints = own.get("setup"), own.get("timepoints")
        is_stacked = image.axes[0].type == "time"
        if not isinstance(setup, int) or not isinstance(timepoints, list):
            return None
        parts = [len(level.array.parts) if is_stacked else 1 for level in image.levels]
        if {*parts} != {len(timepoints)}:
            return None
        for number, timepoint in enumerate(timepoints):
            view = _view(
                image, f"setup{setup}/timepoint{timepoint}", number if is_stacked else None
            )
            if view.levels:
                found[view.path] = view
    return found


def _view(image: Image, path: str, number: int | None) -> Image:
    """Return an image, or one of the time points along its first axis, as that of a view."""
    begin = 0 if number is None else 1
    levels = []
    for level in image.levels:
        array = level.array if number is None else level.array.parts[number]
        if array is not None:
            place = {"scale": level.scale[begin:], "translation": level.translation[begin:]}
            levels.append(replace(level, path=join(path, _name(level)), array=array, **place))
    return replace(image, path=path, axes=image.axes[begin:], levels=tuple(levels))


def _name(level: ImageLevel) -> str:
    return level.path.rpartition("/")[2]


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two images, and the axes of either that belong together."""

    a: Image
    b: Image
    axes: tuple[list[int], list[int]]

    @classmethod
    def of(cls, a: Image, b: Image) -> _Pair:
        """Pair axes by their names; those with a name of their own in their order."""
        names = [[axis.name for axis in image.axes] for image in (a, b)]
        ours, theirs = _compared(a, names[1]), _compared(b, names[0])
        if len(ours) == len(theirs):
            by_name = {names[1][i]: i for i in theirs}
            others = (i for i in theirs if names[1][i] not in names[0])
            shared = [by_name.get(names[0][i]) for i in ours]
            theirs = [next(others) if i is None else i for i in shared]
        return cls(a, b, (ours, theirs))

    def differences(self, found: Found) -> Iterator[Difference]:
        """Yield the differences of axes, levels and positions; add what can be compared."""
        path, (ours, theirs) = self.a.path, self.axes
        axes = [self.a.axes[i] for i in ours], [self.b.axes[i] for i in theirs]
        names = [[axis.name for axis in each] for each in axes]
        if names[0] != names[1]:
            yield Difference(path=path, what="axes", key="names", first=names[0], second=names[1])
        if len(ours) != len(theirs):
            return
        by = [ratio(b.unit, a.unit) for a, b in zip(*axes, strict=True)]
        if None in by:
            units = [[axis.unit for axis in each] for each in axes]
            yield Difference(path=path, what="axes", key="units", first=units[0], second=units[1])
        yield from self._registration()
        for a, b in self._levels():
            if a is not None and b is not None:
                both = _Elements.of(a.array, ours), _Elements.of(b.array, theirs)
                yield from found.arrays(a.path, *both)
                yield from self._places(a, b, [each or 1.0 for each in by])
            elif one := a or b:
                yield _missing(join(path, _name(one)), "level", in_first=a is not None)

    def _levels(self) -> Iterator[tuple[ImageLevel | None, ImageLevel | None]]:
        """Yield the levels in pairs; None for one that a side lacks."""
        ours, rest = self.a.levels, [*self.b.levels]
        if len(ours) == len(rest):
            yield from zip(ours, rest, strict=True)
            return
        for a in ours:
            shape = [a.shape[i] for i in self.axes[0]]
            alike = (b for b in rest if [b.shape[i] for i in self.axes[1]] == shape)
            b = next(alike, None)
            yield a, b
            rest = [each for each in rest if each is not b]
        yield from ((None, b) for b in rest)

    def _places(self, a: ImageLevel, b: ImageLevel, by: Sequence[float]) -> Iterator[Difference]:
        """Yield the differences of positions, both in the units of the first side."""
        ours, theirs = (list(axes) for axes in self.axes)
        last = np.maximum(1, np.array(a.shape)[ours] - 1)
        near = _NEAR * np.abs(np.array(a.scale)[ours])
        for key, n in (("scale", last), ("translation", 1)):
            one = np.array(getattr(a, key))[ours]
            two = np.array(getattr(b, key))[theirs] * by
            if not (np.abs(one - two) * n <= near).all():
                both = {"first": one.tolist(), "second": two.tolist()}
                yield Difference(path=a.path, what="axes", key=key, **both)

    def _registration(self) -> Iterator[Difference]:
        """Yield the difference of the matrices that turn or shear the images."""
        one, two = (numbers(each.attributes.get("registration"), 12) for each in (self.a, self.b))
        if one == two:
            return
        if one is not None and two is not None:
            finest = self.a.levels[0]
            placed = [(finest.scale[i], finest.translation[i], finest.shape[i])
                      for i in self.a.spatial()]  # fmt: skip
            farthest = max(abs(start) + abs(step) * n for step, start, n in placed)
            by_row = np.abs(np.subtract(one, two)).reshape(3, 4) @ [*[farthest] * 3, 1.0]
            if by_row.max() <= _NEAR * min(abs(step) for step, _, _ in placed):
                return
        both: Any = {"first": one and [*one], "second": two and [*two]}
        yield Difference(path=self.a.path, what="axes", key="registration", **both)


def _compared(image: Image, others: Sequence[str]) -> list[int]:
    """Return the axes of an image without those of one element that the other image lacks.

    An axis of space is left out only if the other image has no more axes: else it was renamed.
    """
    names = [axis.name for axis in image.axes]
    is_missing = {*others} <= {*names}
    return [
        i
        for i, axis in enumerate(image.axes)
        if axis.name in others
        or any(level.shape[i] != 1 for level in image.levels)
        or not (is_missing or axis.type != "space")
    ]


@dataclass(frozen=True, eq=False)
class _Elements:
    """The elements of a level along some of its axes; the others have one element.

    Parameters
    ----------
    values : Values
        All elements.
    dtype : numpy.dtype
        Their type.
    grid : tuple of int
        Shape of the chunks of ``values``.
    axes : tuple of int
        Number of the axis of ``values`` for each axis.
    parts : tuple of ArraySource
        The array of the level.
    """

    values: Values
    dtype: np.dtype[Any]
    grid: tuple[int, ...]
    axes: tuple[int, ...]
    parts: tuple[ArraySource, ...]

    @classmethod
    def of(cls, array: ArraySource, axes: Sequence[int] | None = None) -> _Elements:
        chosen = range(len(array.shape)) if axes is None else axes
        chunks = tuple(array.chunks)
        return cls(array.values, array.native_dtype, chunks, tuple(chosen), (array,))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[i] for i in self.axes)

    @property
    def chunks(self) -> tuple[int, ...]:
        return tuple(self.grid[i] for i in self.axes)

    def __getitem__(self, box: BoxSlices) -> npt.NDArray[Any]:
        read = read_on_host(self.values, self._box(box))
        others = [i for i in range(read.ndim) if i not in self.axes]
        first: Any = (..., *[0] * len(others))
        found: npt.NDArray[Any] = read.transpose([*self.axes, *others])[first]
        return found

    def _box(self, box: Sequence[slice]) -> BoxSlices:
        own = [slice(0, 1)] * len(self.grid)
        for part, axis in zip(box, self.axes, strict=True):
            own[axis] = part
        return tuple(own)

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        found = stored_chunks(self.values, within and self._box(within))
        if found is None:
            return None
        axes = list(self.axes)
        return StoredChunks(
            tuple(found.unit[i] for i in axes), (rows[:, axes] for rows in found.rows)
        )
