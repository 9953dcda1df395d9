"""Find the datasets and groups of an HDF5 file, and the positions of their axes, to copy them."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from zarr.dtype import VariableLengthUTF8

from n5zarr.arrays.boxes import BoxSlices, StoredChunks
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.conventions import ilastik
from n5zarr.conventions.find import find_geometry
from n5zarr.conventions.model import MisfitError, Node, numbers
from n5zarr.errors import N5UnsupportedError, N5Warning, option_error
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple, to_c, to_n5
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.tools.hdf5_file import Hdf5File, hdf5_file, import_h5py


def hdf5_tree(file: str, path: str) -> SourceTree | None:
    """Find all datasets and groups at a place in an HDF5 file; None if there is no such file.

    Parameters
    ----------
    file : str
        The local file.
    path : str
        A dataset or group in it.

    Raises
    ------
    FileNotFoundError
        The node does not exist.
    N5MissingDependencyError
        h5py is not installed.
    """
    if not Path(file).is_file():
        return None
    h5py = import_h5py()
    opened = hdf5_file(file)
    with opened.opened() as store:
        top = store.get(path or "/")
        if top is None:
            raise FileNotFoundError(
                f"{file}: no dataset or group {path!r}; there are {', '.join(store)}"
            )
        name = join(file, path)
        _refuse_project(file, top, path)
        if isinstance(top, h5py.Dataset):
            return SourceTree(name, {"": _source(opened, path, top)}, {})
        arrays: dict[str, ArraySource] = {}
        groups: dict[str, dict[str, JSON]] = {}
        refused: dict[str, Exception] = {}
        for below, node in _nodes(top):
            if isinstance(node, h5py.Group):
                groups[below] = _attributes(node)
                continue
            try:
                arrays[below] = _source(opened, join(path, below), node)
            except N5UnsupportedError as err:
                refused[below] = err
    return SourceTree(name, arrays, groups, refused)


def _refuse_project(file: str, top: Any, path: str) -> None:  # noqa: ANN401 - h5py has no types
    """Raise for BigDataViewer's HDF5: sizes, names and levels are in its XML, in part."""
    if not path and {"t00000", "s00"} <= {*top} and "s00/resolutions" in top:
        raise option_error(
            f"{file}: expected the XML of BigDataViewer that names this file, got the file itself; "
            f"its datasets are {file}/t00000/s00/0/cells, ..."
        )


def _nodes(top: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - h5py has no types
    """Yield all groups and datasets by path, also behind links; warn of broken links."""
    h5py = import_h5py()
    pending: list[tuple[str, Any, tuple[Any, ...]]] = [("", top, ())]
    while pending:
        path, group, above = pending.pop()
        yield path, group
        inside = (*above, group)
        for name in group:
            node, below = group.get(name), join(path, name)
            if node is None:
                _warn(f"{group.file.filename}: {below}: omitted, as it is a link to nothing")
            elif not isinstance(node, h5py.Group):
                if isinstance(node, h5py.Dataset):
                    yield below, node
            elif node in inside:
                _warn(f"{group.file.filename}: {below}: omitted, as it is a link to a group above")
            else:
                pending.append((below, node, inside))


def _warn(message: str) -> None:
    warnings.warn(message, N5Warning, stacklevel=5)


@dataclass(frozen=True)
class _Values:
    """The elements of a dataset."""

    file: Hdf5File
    path: str
    shape: tuple[int, ...]
    is_text: bool

    def __getitem__(self, box: BoxSlices) -> np.ndarray:
        with self.file.opened() as file:
            dataset = file[self.path or "/"]
            if self.is_text:
                return np.asarray(dataset.asstr()[box], object)
            return np.asarray(dataset[box])

    def stored_chunks(self, within: Sequence[slice] | None = None) -> StoredChunks | None:
        if self.is_text:  # what is missing may not be "", which it is in the copy
            return None
        with self.file.opened() as file:
            return stored_chunks(file[self.path or "/"], within)


def _source(file: Hdf5File, path: str, dataset: Any) -> ArraySource:  # noqa: ANN401 - h5py has no types
    """Make the source of a dataset.

    Raises
    ------
    N5UnsupportedError
        The dataset has no elements, references, or elements of variable length
        (``kind="data-type"``).
    """
    h5py = import_h5py()
    is_text = h5py.check_string_dtype(dataset.dtype) is not None
    dtype: Any = VariableLengthUTF8() if is_text else dataset.dtype
    is_odd = dataset.dtype.kind == "O" and not is_text
    if dataset.shape is None or is_odd:
        what = "no elements" if dataset.shape is None else f"elements of {dataset.dtype}"
        raise N5UnsupportedError(
            f"{file}: {path}: expected numbers or text, got {what}", kind="data-type"
        )
    shape = dataset.shape
    attributes = _attributes(dataset)
    fill = None if is_text else dataset.fillvalue
    return ArraySource(
        name=join(str(file), path),
        values=_Values(file, path, shape, is_text),
        dtype=dtype,
        chunks=dataset.chunks or automatic_block_size(shape),
        fill_value=fill.item() if isinstance(fill, np.generic) else fill,
        attributes=attributes,
        **_axes(dataset, attributes),
    )


def _attributes(node: Any) -> dict[str, JSON]:  # noqa: ANN401 - h5py has no types
    """Return the attributes as JSON, without HDF5's own and without references."""
    found: dict[str, JSON] = {}
    for name, value in node.attrs.items():
        if name in ("DIMENSION_LABELS", "DIMENSION_LIST", "REFERENCE_LIST", "CLASS", "NAME"):
            continue
        plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        with suppress(TypeError):  # references and complex numbers
            found[name] = json.loads(json.dumps(plain, default=_text))
    return found


def _text(value: bytes) -> str:
    """Return the text of bytes; raise TypeError for other objects."""
    return bytes.decode(value, errors="replace")


_SPACE = ("z", "y", "x")
_MOST = 1 << 22  # elements of a scale: it is read whole
_NEAR = 1e-6  # relative difference of steps that are equal


class _Along(NamedTuple):
    """Name, step, first position and unit of an axis, as far as the file tells."""

    name: str | None = None
    step: float | None = None
    first: float = 0.0
    unit: str = ""


def _axes(dataset: Any, attributes: Mapping[str, JSON]) -> dict[str, Any]:  # noqa: ANN401 - h5py's
    """Read the axes of a dataset, as members of its :class:`ArraySource`.

    In this order: names and scales of dimensions ("HDF5 Dimension Scales Specification"; unit in
    the attribute ``units``, as netCDF), ilastik's ``axistags``, and ``element_size_um`` of Fiji's
    HDF5 plugin and ilastik: the size of an element along z, y and x in micrometres. Positions are
    left to attributes that describe them for N5, if the dataset has such ones.
    """
    along = [_of_scale(dim, n) for dim, n in zip(dataset.dims, dataset.shape, strict=True)]
    tagged = _of_ilastik(dataset.shape, attributes, along)
    along = [
        (second if first.step is None else first)._replace(name=first.name or second.name)
        for first, second in zip(along, tagged, strict=True)
    ]
    along = _with_element_size(along, attributes)
    names = [each.name for each in along]
    known: dict[str, Any] = {"dimension_names": names if any(names) else None}
    is_placed = any(each.step is not None for each in along)
    if not is_placed or _is_described(dataset.shape, attributes):
        return known
    return known | {
        "units": [each.unit for each in along],
        "resolution": [1.0 if each.step is None else each.step for each in along],
        "offset": [each.first for each in along],
    }


def _is_described(shape: tuple[int, ...], attributes: Mapping[str, JSON]) -> bool:
    """Whether attributes describe positions as a convention of N5 does."""
    others = {
        key: value for key, value in attributes.items() if key not in ilastik.ILASTIK.own_keys
    }
    geometry = find_geometry(
        Node(path=(), dimensions=to_n5(CTuple(shape)), attributes=others)
    ).geometry
    return geometry is not None and not geometry.names_only


def _of_scale(dim: Any, size: int) -> _Along:  # noqa: ANN401 - h5py's
    """Read the first scale of a dimension; positions only if they are evenly spaced."""
    scale = dim[0] if len(dim) else None
    name = dim.label or (scale is not None and (scale.name or "").rpartition("/")[2]) or None
    is_read = scale is not None and scale.shape == (size,) and 1 < size <= _MOST
    if scale is None or not is_read or scale.dtype.kind not in "iuf":
        return _Along(name)
    values = np.asarray(scale[...], float)
    step = float(values[-1] - values[0]) / (size - 1)
    even = values[0] + step * np.arange(size)
    if not math.isfinite(step) or not step or np.abs(values - even).max() > abs(step) * _NEAR:
        return _Along(name)
    unit = scale.attrs.get("units", "")
    unit = unit.decode(errors="replace") if isinstance(unit, bytes) else str(unit)
    return _Along(name, step, float(values[0]), unit)


def _of_ilastik(
    shape: tuple[int, ...], attributes: Mapping[str, JSON], along: Sequence[_Along]
) -> list[_Along]:
    names = [each.name for each in along]
    given = to_n5([str(name) for name in names]) if all(names) and names else None
    node = Node(path=(), dimensions=to_n5(CTuple(shape)), attributes=attributes, given_names=given)
    try:
        found = ilastik.read(node)
    except MisfitError:  # not ilastik's: a name that others use, too
        found = None
    if found is None:
        return [_Along()] * len(along)
    axes = [(axis.name, axis.scale, axis.unit or "") for axis in to_c(found.axes)]
    return [_Along(n, scale if unit or scale != 1 else None, 0.0, unit) for n, scale, unit in axes]


def _with_element_size(along: list[_Along], attributes: Mapping[str, JSON]) -> list[_Along]:
    """Add ``element_size_um`` to the axes of space that have no positions."""
    sizes = numbers(attributes.get("element_size_um"), 3)
    if sizes is None or not all(0 < size < math.inf for size in sizes):
        return along
    if len(along) == 3 and not any(each.name for each in along):
        along = [each._replace(name=name) for each, name in zip(along, _SPACE, strict=True)]
    by_name = dict(zip(_SPACE, sizes, strict=True))
    return [
        each._replace(step=by_name[each.name], unit="µm")
        if each.step is None and each.name in by_name
        else each
        for each in along
    ]
