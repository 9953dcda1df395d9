"""Find the datasets and groups of an HDF5 file, to copy them."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.dtype import VariableLengthUTF8

from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.errors import N5UnsupportedError, N5Warning, option_error
from n5zarr.format.grid import automatic_block_size
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource, SourceTree
from n5zarr.storage.hdf5_file import Hdf5File, hdf5_file, import_h5py
from n5zarr.tools.convert.hdf5_axes import axes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from n5zarr.arrays.boxes import Box, StoredChunks
    from n5zarr.format.lenient_json import JSON

__all__ = ["hdf5_tree"]


def hdf5_tree(file: str, path: str) -> SourceTree:
    """Find all datasets and groups at a place in an HDF5 file.

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

    def __getitem__(self, box: Box) -> np.ndarray:
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
        It has no elements, or they are references or of variable length (``kind="data-type"``).
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
    axes = axes_of(dataset, attributes)
    fill = None if is_text else dataset.fillvalue
    return ArraySource(
        name=join(str(file), path),
        values=_Values(file, path, shape, is_text),
        dtype=dtype,
        chunks=dataset.chunks or automatic_block_size(shape),
        fill_value=fill.item() if isinstance(fill, np.generic) else fill,
        attributes=attributes,
        dimension_names=axes.names,
        units=axes.units,
        resolution=axes.resolution,
        offset=axes.offset,
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
