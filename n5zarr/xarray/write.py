"""Write a Dataset, DataArray or DataTree as N5: ``to_n5``.

xarray's own ``to_zarr`` does the writing, through an :class:`~n5zarr.N5Store`. This module and
`write_groups` decide how coordinates are written: evenly spaced ones as metadata of a convention if
they read back bit for bit, the others as one-dimensional datasets.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr
from zarr.errors import ContainsGroupError

from n5zarr._zarr import sync
from n5zarr.container.options import check_compression, check_option, require
from n5zarr.conventions.axis_names import check_distinct
from n5zarr.conventions.describe import WRITTEN, ConventionName
from n5zarr.conventions.model import level_of
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import join
from n5zarr.storage.asking_once import asking_once
from n5zarr.storage.ending import ending
from n5zarr.storage.interface import Durability
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.locating import open_container
from n5zarr.xarray.encode_variables import Chunks
from n5zarr.xarray.lazy_arrays import check_not_read
from n5zarr.xarray.positions import Region
from n5zarr.xarray.update import join_delayed, plan_update
from n5zarr.xarray.write_groups import GroupWriter, Target, is_named

if TYPE_CHECKING:
    from dask.delayed import Delayed


@ending()
def to_n5(  # noqa: PLR0913 - the options of to_zarr, and those of N5
    data: xr.Dataset | xr.DataArray | xr.DataTree,
    location: Location,
    *,
    group: str = "",
    convention: ConventionName = "auto",
    compression: Mapping[str, JSON] | None = MappingProxyType({"type": "gzip"}),
    chunks: Chunks = None,
    compute: bool = True,
    mode: Literal["w", "w-", "a", "r+"] | None = None,
    region: Region | None = None,
    append_dim: Hashable | None = None,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
    durability: Durability | None = None,
) -> Delayed | None:
    """Write to N5, so that ``xr.open_dataset(engine="n5")`` returns the same data.

    A DataArray, or a Dataset whose only variable has the last name in ``group``, becomes the
    dataset ``group`` itself if metadata can express all its coordinates. So levels of a pyramid are
    where other tools look for them. The same applies to levels in a DataTree.

    Parameters
    ----------
    data : Dataset, DataArray or DataTree
        Dimensions in C order, ``z, y, x``.
    location : path, URL or zarr store
        A container, which is created if it does not exist, or a location in one.
    group : str, optional
        Path below ``location``.
    convention : ConventionName, optional
        Of evenly spaced coordinates; others become one-dimensional datasets. ``"auto"``: that of
        neighbouring levels, or ``"cosem"``. Beside images of other rank "ngff" is "neuroglancer".
    compression : mapping or None, optional
        As in ``attributes.json``. None means raw.
    chunks : mapping of dimension to int, "auto" or None, optional
        Extent of a block in elements. Missing dimensions and ``"auto"``: about a million elements a
        block. None: the chunks of the file that the data are from, not dask's; else ``"auto"``.
    compute : bool, optional
        Whether to write the data now. If not, write only metadata, and return a dask object.
    mode : {"w", "w-", "a", "r+"}, optional
        As in ``to_zarr``: ``"w"`` removes an existing node, ``"w-"`` (default) fails if one exists,
        ``"a"`` adds and overwrites variables, ``"r+"`` (default with ``region``) only elements.
    region : mapping of dimension to slice or "auto", or "auto", optional
        The part of existing datasets to write. ``"auto"`` finds it from the coordinates.
    append_dim : str, optional
        The dimension along which existing datasets grow.
    storage_options, backend, durability : optional
        Options for a URL, the library that reads it, and how local files are written: as for
        :class:`~n5zarr.N5Store`. Open stores keep theirs.

    Returns
    -------
    dask.delayed.Delayed or None
        With ``compute=False``, an object that writes the data.

    Raises
    ------
    zarr.errors.ContainsGroupError
        A node exists at this path, and the mode is ``"w-"``.
    N5UnrepresentableError
        N5 cannot hold the data, positions do not match, or ``"w"`` would remove unread data.

    Notes
    -----
    The fill value is 0, and every block that is not all zero is written: other tools see the same.
    dask's chunks are merged into blocks; regions of several tasks must consist of whole blocks.

    Examples
    --------
    >>> import pathlib, tempfile, n5zarr, xarray as xr
    >>> level = xr.open_dataset(n5zarr.sample_path(), engine="n5", group="em/s1")
    >>> out = pathlib.Path(tempfile.mkdtemp(), "out.n5")
    >>> n5zarr.to_n5(level.n5.crop(x=(100, 300)), out, group="em/s1")
    >>> xr.open_dataset(out, engine="n5", group="em/s1")["x"].values[:3]
    array([100., 116., 132.])
    """
    place = place_of(location, storage_options, backend)
    check_option("convention", convention, ("auto", *WRITTEN))
    check_option("mode", mode, (None, "w", "w-", "a", "r+"))
    require(region is None or append_dim is None, "append_dim: expected this or region, got both")
    store, path = open_container(place, group, durability=durability, writes=True)
    require(
        store.axis_order == "C" and store.zarr_format != 2 and not store.coords,
        f"location: expected a location of Zarr v3 in C order, got {store!r}",
    )
    store = store.showing(3).with_read_only(read_only=False)  # of this call alone
    parsed = check_compression("raw" if compression is None else compression)
    targets = _targets(data, path)
    _check_dims(chunks, targets)
    if region is not None or append_dim is not None:
        with asking_once():
            plans = [
                plan_update(
                    store,
                    target.path,
                    target.data,
                    region=region,
                    append_dim=append_dim,
                    is_only_writer=mode == "a",
                )
                for target in targets
                if target.data.variables
            ]
        return join_delayed([plan.run(compute=compute) for plan in plans])
    removed = path if mode == "w" else None
    if mode in (None, "w-") and store.node(path) is not None:
        raise ContainsGroupError(
            f"{store}: {path or '/'}: the node already exists; mode='w' removes it, "
            "mode='a' adds to it"
        )
    writer = GroupWriter(
        store=store, convention=convention, compression=parsed, chunks=chunks, compute=compute
    )
    if isinstance(data, xr.DataTree) and len(targets) > 1:
        targets = writer.choose_levels(targets, removed)
    with asking_once():
        for target in targets:  # check everything before anything changes
            writer.plan(target, mode, removed)
    if removed is not None:
        check_not_read(_arrays(targets), store.storage, removed, "mode='w'")
        sync(store.delete_dir(removed))
    # plan again: an earlier target may be in the same group
    return join_delayed([writer.plan(target, mode, None).run(writer) for target in targets])


def _arrays(targets: Iterable[Target]) -> Iterator[tuple[object, object]]:
    return (pair for target in targets for pair in target.data.variables.items())


def _check_dims(chunks: object, targets: Sequence[Target]) -> None:
    for target in targets:
        for name, variable in target.data.variables.items():
            check_distinct(f"{name}: dims", list(map(str, variable.dims)))
    if not isinstance(chunks, Mapping):
        check_option("chunks", chunks, (None, "auto"))
        return
    dims = {dim for target in targets for dim in target.data.dims}
    for dim, size in chunks.items():
        require(
            dim in dims and isinstance(size, int | np.integer) and size > 0,
            "chunks: expected a number of elements above 0 for any of "
            f"{', '.join(map(repr, dims))}, got {dim!r}: {size!r}",
        )


def _targets(data: xr.Dataset | xr.DataArray | xr.DataTree, path: str) -> list[Target]:
    """List the groups and datasets to write, each with its data."""
    last = path.rpartition("/")[2]
    if isinstance(data, xr.DataArray):
        name = last or (data.name if data.name is not None else "data")
        return [Target(path, data.to_dataset(name=name), is_level=bool(last))]
    if isinstance(data, xr.Dataset):
        return [Target(path, data, is_level=is_named(data, last))]
    require(
        isinstance(data, xr.DataTree),
        f"data: expected a Dataset, DataArray or DataTree of xarray, got {type(data).__name__}; "
        "xr.DataArray(values, dims=...) makes one, n5zarr.create_array(data=...) takes values",
    )
    targets = []
    for node in data.subtree:
        node_path, ds = join(path, node.path.strip("/")), node.to_dataset()
        is_level = not node.children and is_named(ds, node_path.rpartition("/")[2])
        targets.append(Target(node_path, ds, is_level=is_level))
    return sorted(targets, key=_level_number)  # `s0` first: the other levels are multiples of it


def _level_number(target: Target) -> int:
    level = level_of(target.path.rpartition("/")[2]) if target.is_level else None
    return -1 if level is None else level
