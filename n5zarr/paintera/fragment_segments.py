"""Read, write and apply Paintera's assignment of fragments to segments.

Paintera 26e8134 ``N5FragmentSegmentAssignmentPersister``: the dataset
``fragment-segment-assignment`` of a label source has dimensions [N, 2], ``uint64``: a row of N
fragments, and a row of their segments, each in one block. A label without an entry is a segment of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from zarr.errors import ContainsArrayError, ContainsGroupError

from n5zarr.arrays.creating import create_array
from n5zarr.arrays.opening import open_array
from n5zarr.arrays.placing import read_on_host
from n5zarr.container.options import require
from n5zarr.errors import N5FormatError, option_error
from n5zarr.format.order import present, to_c
from n5zarr.format.path import join
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.locating import open_container
from n5zarr.store.missing_nodes import existing_node, not_found
from n5zarr.zarr_view.dataset_view import DatasetView

DATASET = "fragment-segment-assignment"

_TABLE = np.dtype([("fragment", "u8"), ("segment", "u8")])
_MOST = 2**27  # rows: a block of them has 1 GiB


def read_fragment_segments(
    location: Location,
    path: str = "",
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> np.ndarray:
    """Read which fragments, the labels of a label source of Paintera, belong to which segments.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        The label source below ``location``, or its dataset ``fragment-segment-assignment``.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    numpy.ndarray
        A row for each fragment, with the fields ``fragment`` and ``segment``, uint64;
        ``pandas.DataFrame`` takes it. No row if the label source has no assignments.

    Raises
    ------
    FileNotFoundError
        Neither a label source nor such a dataset exists there.
    N5FormatError
        The dataset has no two rows of integers (``kind="member"``).

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr
    >>> where = pathlib.Path(tempfile.mkdtemp(), "new.n5", "neurons")
    >>> n5zarr.write_fragment_segments(where, [3, 5], [5, 5])
    >>> table = n5zarr.read_fragment_segments(where)
    >>> table["fragment"].tolist(), table["segment"].tolist()
    ([3, 5], [5, 5])
    >>> n5zarr.segments_of([[1, 3], [5, 0]], table).tolist()
    [[1, 5], [5, 0]]
    """
    store, node = open_container(place_of(location, storage_options, backend), path, writes=False)
    found = existing_node(store, node, "a label source")
    if not isinstance(found, DatasetView):
        is_source = "painteraData" in found.attributes
        node = join(node, DATASET)
        found = store.node(node) or found
        if not isinstance(found, DatasetView):
            if is_source:
                return np.empty(0, _TABLE)
            raise not_found(store, node, f"the dataset {DATASET} of a label source")
    _check_rows(found, f"{store}: {node or '/'}")
    values = read_on_host(open_array(store, path=node))
    fragments, segments = values if found.axis_order == "C" else values.T
    return _table(fragments, segments)


def write_fragment_segments(  # noqa: PLR0913 - what Paintera has, and access
    location: Location,
    fragments: npt.ArrayLike,
    segments: npt.ArrayLike | None = None,
    path: str = "",
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> None:
    """Write which fragments belong to which segments, as Paintera does.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    fragments, segments : array_like of int
        The fragments, each once, and the segment of each; or only a table of
        :func:`read_fragment_segments`.
    path : str, optional
        The label source below ``location``.
    overwrite : bool, optional
        Whether to replace existing assignments.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    N5UnrepresentableError
        The arrays are no integers or differ in length, a fragment repeats, or there are assignments
        already (``kind="option"``).
    """
    table = _checked(fragments, segments)
    place = place_of(location, storage_options, backend)
    store, node = open_container(place, path, writes=True)
    where = join(node, DATASET)
    n = len(table)
    try:
        array = create_array(
            store,
            path=where,
            shape=present((n, 2), store.axis_order),
            chunks=present((max(n, 1), 1), store.axis_order),
            dtype="uint64",
            overwrite=overwrite,
        )
    except (ContainsArrayError, ContainsGroupError) as err:
        message = "expected no assignments, got some; overwrite=True replaces them"
        raise option_error(message, where=f"{store}: {where}") from err
    if n:
        rows = np.stack([table["fragment"], table["segment"]])
        array[...] = rows if store.axis_order == "C" else rows.T


def segments_of(labels: npt.ArrayLike, table: np.ndarray) -> np.ndarray:
    """Replace fragments by their segments; labels without an entry stay.

    Parameters
    ----------
    labels : array_like of int
        Fragments, in any shape.
    table : numpy.ndarray
        Of :func:`read_fragment_segments`; of a fragment that repeats, the last row counts.

    Returns
    -------
    numpy.ndarray
        The segments, uint64, in the shape of ``labels``.

    Raises
    ------
    N5UnrepresentableError
        The labels are no integers, or the table is another one (``kind="option"``).
    """
    given, names = np.asarray(labels), getattr(getattr(table, "dtype", None), "names", None)
    require(
        given.dtype.kind in "iu" or not given.size, f"labels: expected integers, got {given.dtype}"
    )
    require(
        {"fragment", "segment"} <= {*(names or ())},
        f"table: expected one of read_fragment_segments, got {type(table).__name__}",
    )
    found = given.astype("u8")
    if not len(table):
        return found
    order = np.argsort(table["fragment"], kind="stable")
    known = table[order]
    place = np.searchsorted(known["fragment"], found, side="right") - 1  # the last of equal ones
    is_known = (place >= 0) & (known["fragment"][place] == found)
    return np.where(is_known, known["segment"][place], found)


def _check_rows(found: DatasetView, where: str) -> None:
    rows = to_c(found.dataset.dimensions)
    if len(rows) != 2 or rows[0] != 2 or found.kind.dtype.kind not in "iu":
        raise N5FormatError(
            f"expected integers of the dimensions [N, 2], got {found.kind.dtype} of "
            f"{[*found.dataset.dimensions]}",
            kind="member",
            where=where,
        )


def _table(fragments: np.ndarray, segments: np.ndarray) -> np.ndarray:
    table = np.empty(len(fragments), _TABLE)
    table["fragment"], table["segment"] = fragments.astype("u8"), segments.astype("u8")
    return table


def _checked(fragments: npt.ArrayLike, segments: npt.ArrayLike | None) -> np.ndarray:
    """Return a table that Paintera can hold."""
    first = np.asarray(fragments)
    if segments is None:
        require(
            {"fragment", "segment"} <= {*(first.dtype.names or ())},
            f"segments: expected them, or a table with fragment and segment, got {first.dtype}",
        )
        first, second = first["fragment"], first["segment"]
    else:
        second = np.asarray(segments)
    for name, values in (("fragments", first), ("segments", second)):
        is_integer = values.dtype.kind in "iu" or not values.size
        require(
            is_integer and values.ndim == 1,
            f"{name}: expected a row of integers, got {values.dtype} of the shape {values.shape}",
        )
    require(
        len(first) == len(second) <= _MOST,
        f"segments: expected one for each of {len(first)} fragments, at most {_MOST}, got "
        f"{len(second)}",
    )
    table = _table(first, second)
    unique, n_times = np.unique(table["fragment"], return_counts=True)
    repeated = unique[n_times > 1]
    require(not len(repeated), f"fragments: expected each once, got {repeated[:1]} repeatedly")
    return table
