"""Find the images in TIFF and OME-TIFF files, to copy them."""

from __future__ import annotations

import glob
import re
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import truediv
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import zarr
from zarr.types import AnyArray

from n5zarr.arrays.boxes import BoxSlices
from n5zarr.errors import N5FormatError, import_optional
from n5zarr.format.grid import automatic_block_size
from n5zarr.images.source import ArraySource, SourceTree

# tifffile's letters for sequences (I), other axes (Q) and samples (S)
_AXES = {"I": "z", "Q": "z", "S": "c"}


class _Scale(NamedTuple):
    """Unit, size and first position of the pixels along an axis."""

    unit: str = ""
    size: float = 1.0
    first: float = 0.0


def tiff_tree(file: str, path: str = "") -> SourceTree | None:
    """Find all images in a TIFF file, or in the files that match a pattern; None elsewhere.

    One image becomes one array, a pyramid the levels ``s0``, ``s1``, ..., several images a group
    each, with the names of OME where they have names.

    Parameters
    ----------
    file : str
        The local file, or a pattern such as ``stack/*.tif`` for files of one slice each.
    path : str, optional
        A path in the file, of which TIFF has none.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    N5FormatError
        tifffile cannot read the file (``kind="foreign"``).
    N5MissingDependencyError
        tifffile is not installed.
    """
    if path or Path(file).is_dir():
        return None
    if any(letter in file for letter in "*?[") and not Path(file).exists():
        if not any(glob.iglob(file)):  # noqa: PTH207 - the pattern may be absolute
            raise FileNotFoundError(f"{file}: expected files that match the pattern, got none")
        return SourceTree(file, {"": _source(_Values(file), "ZYX", {})}, {})
    arrays: dict[str, ArraySource] = {}
    groups: set[str] = set()
    with _opened_tiff(file) as tiff:
        images = list(tiff.series)
        for number, image in enumerate(images):
            scales = _scales(tiff, number)
            named = re.sub(r"[^\w.-]+", "_", image.name).strip("._") or f"image{number}"
            name = named if len(images) > 1 else ""
            while name and (name in groups or name in arrays):
                name = f"{name}_{number}"
            levels = list(image.levels)
            groups |= {""} if len(images) > 1 else set()
            if len(levels) == 1:
                arrays[name] = _source(_Values(file, number), image.axes, scales)
                continue
            groups.add(name)
            for level in range(len(levels)):
                path = f"{name}/s{level}".lstrip("/")
                arrays[path] = _level(_Values(file, number, level), levels, scales)
    return SourceTree(file, arrays, {path: {} for path in sorted(groups)})


def _tifffile() -> Any:  # noqa: ANN401 - the extra may be missing
    return import_optional("tifffile", "reading TIFF", "tiff")


def _opened_tiff(file: str) -> Any:  # noqa: ANN401 - the extra may be missing
    tifffile = _tifffile()
    try:
        return tifffile.TiffFile(file)
    except tifffile.TiffFileError as err:
        raise N5FormatError(f"{file}: expected a TIFF file, got {err}", kind="foreign") from err


@dataclass(frozen=True)
class _Values:
    """The elements of an image; each process opens the file for itself.

    ``opening`` distinguishes openings of the same file, which may change between them.
    """

    file: str
    number: int | None = None
    level: int = 0
    opening: str = field(default_factory=lambda: uuid4().hex)

    @property
    def shape(self) -> tuple[int, ...]:
        return _array(self).shape

    def __getitem__(self, box: BoxSlices) -> np.ndarray:
        return np.asarray(_array(self)[box])


@lru_cache(maxsize=64)
def _array(values: _Values) -> AnyArray:
    which = {} if values.number is None else {"series": values.number, "level": values.level}
    store = _tifffile().imread(values.file, aszarr=True, **which)
    array = zarr.open_array(store, mode="r")
    weakref.finalize(array, store.close)
    return array


def _level(values: _Values, levels: Any, scales: Mapping[str, _Scale]) -> ArraySource:  # noqa: ANN401 - tifffile's
    """Make the source of a level; assume that a pixel covers pixels of full resolution."""
    full, level = levels[0], levels[values.level]
    factors = dict(zip(full.axes, map(truediv, full.shape, level.shape), strict=True))
    shrunk = {
        axis: _Scale(scale.unit, scale.size * factors[axis], scale.size * (factors[axis] - 1) / 2)
        for axis, scale in scales.items()
    }
    return _source(values, level.axes, shrunk)


def _source(values: _Values, axes: str, scales: Mapping[str, _Scale]) -> ArraySource:
    array = _array(values)
    names = [_AXES.get(letter, letter.lower()) for letter in axes]
    is_known = len(names) == array.ndim and len(set(names)) == len(names)
    is_placed = is_known and bool(scales)
    along = [scales.get(axis, _Scale()) for axis in axes]
    # pages and strips are long and thin: blocks of N5 are not
    return ArraySource(
        name=values.file,
        values=values,
        dtype=array.dtype.newbyteorder("="),
        chunks=_blocks(array.shape, names if is_known else []),
        dimension_names=names if is_known else None,
        units=[scale.unit for scale in along] if is_placed else None,
        resolution=[scale.size for scale in along] if is_placed else None,
        offset=[scale.first for scale in along] if is_placed else None,
    )


def _blocks(shape: tuple[int, ...], names: Sequence[str]) -> tuple[int, ...]:
    """Return the extent of a block: of one time point and one channel.

    Colours (S, which tifffile has last) are read together.
    """
    single = {i for i, name in enumerate(names[:-1]) if name in ("t", "c")}
    sizes = iter(automatic_block_size(tuple(n for i, n in enumerate(shape) if i not in single)))
    return tuple(1 if i in single else next(sizes) for i in range(len(shape)))


def _scales(tiff: Any, number: int) -> dict[str, _Scale]:  # noqa: ANN401 - no types
    """Return unit and size of a pixel along the axes for which the file has them."""
    if tiff.ome_metadata:
        return _of_ome(_tifffile().xml2dict(tiff.ome_metadata), number)
    if tiff.imagej_metadata:
        return _of_imagej(tiff)
    return {}


def _of_ome(document: Any, number: int) -> dict[str, _Scale]:  # noqa: ANN401 - XML
    """Read ``PhysicalSizeX`` and its siblings; the default unit is OME's, micrometres."""
    images = document.get("OME", {}).get("Image", [])
    images = images if isinstance(images, list) else [images]
    if number >= len(images):
        return {}
    pixels = images[number].get("Pixels", {})
    return {
        axis: _Scale(str(pixels.get(f"PhysicalSize{axis}Unit", "µm")), float(size))
        for axis in "XYZ"
        if (size := pixels.get(f"PhysicalSize{axis}")) is not None
    }


def _of_imagej(tiff: Any) -> dict[str, _Scale]:  # noqa: ANN401 - no types
    """Read ImageJ's resolution, in pixels a unit, and its spacing of slices."""
    unit = str(tiff.imagej_metadata.get("unit", ""))
    unit = {"\\u00B5m": "µm", "micron": "µm"}.get(unit, unit)
    scales: dict[str, _Scale] = {}
    for axis in "XY":
        tag = tiff.pages[0].tags.get(f"{axis}Resolution")
        if unit and tag is not None and all(tag.value):
            scales[axis] = _Scale(unit, tag.value[1] / tag.value[0])
    spacing = tiff.imagej_metadata.get("spacing")
    if unit and spacing:
        scales["Z"] = _Scale(unit, float(spacing))
    return scales
