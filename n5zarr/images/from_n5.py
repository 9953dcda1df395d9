"""Find the arrays and groups of an N5 container."""

from __future__ import annotations

from dataclasses import replace

import zarr

from n5zarr.arrays.group import as_zarr, values_of
from n5zarr.container.node_names import Broken
from n5zarr.container.walk import PathPatterns, Unreadable
from n5zarr.format.path import join
from n5zarr.images.source import ArraySource, N5Blocks, SourceTree
from n5zarr.storage.place import Place
from n5zarr.store.locating import Located, locate
from n5zarr.store.missing_nodes import selected_nodes
from n5zarr.store.n5_store import N5Store
from n5zarr.store.shown_store import ShownStore
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ZarrFormat


def n5_tree(
    place: Place | Located,
    zarr_format: ZarrFormat = 3,
    paths: PathPatterns = PathPatterns(),  # noqa: B008 - frozen
) -> SourceTree:
    """Find the arrays and groups at a location in a container.

    Parameters
    ----------
    place : Place or Located
        A container, or a group or dataset in one, or what is shown as one: OME-Zarr, or the
        container that BigDataViewer's XML names.
    zarr_format : {3, 2}, optional
        The format of the chunks that are passed through.
    paths : PathPatterns, optional
        Nodes to read, with the groups that hold them; all by default.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    """
    located = place if isinstance(place, Located) else locate(place)
    given = isinstance(located.place.location, N5Store) and not (located.place.path or located.path)
    with located.named():
        tree = _tree(located, zarr_format, paths, given=given)
    return replace(tree, document=located.document)


def _tree(
    located: Located, zarr_format: ZarrFormat, paths: PathPatterns, *, given: bool
) -> SourceTree:
    store, path = located.open(writes=False)
    shown = store
    if not given:  # every reader of Zarr decodes these chunks
        shown = N5Store(store.storage, codecs="portable", zarr_format=3, read_only=True)
    arrays: dict[str, ArraySource] = {}
    groups, refused = {}, {}
    for found in selected_nodes(shown, path, paths):
        below = found.path.removeprefix(path).lstrip("/")
        if isinstance(found.node, Broken | Unreadable):
            refused[below] = found.node.error
        elif isinstance(found.node, DatasetView):
            array = _n5_array(shown, found.path, found.node, zarr_format)
            if isinstance(shown.store, ShownStore):
                # blocks that are made of chunks are raw, and copies of them would be
                array = replace(array, encoded=None, blocks=None, compression=None)
            arrays[below] = array
        elif found.node is not None:
            groups[below] = dict(found.node.attributes)
    return SourceTree(
        join(str(store), path),
        arrays,
        groups,
        refused,
        container=shown,
        path=path,
        storage=shown.storage,
    )


def _n5_array(shown: N5Store, path: str, view: DatasetView, zarr_format: ZarrFormat) -> ArraySource:
    """Return a dataset as an array, with its encoded chunks and stored blocks.

    Parameters
    ----------
    shown : N5Store
        The container, with portable codecs.
    path : str
        Path of the dataset.
    view : DatasetView
        The dataset, as read through ``shown``.
    zarr_format : {3, 2}
        The format of the chunks that are passed through.
    """
    store = shown.reopened()  # remembers this dataset only, so that it is small for other processes
    encoded = as_zarr(store, path, view)
    assert isinstance(encoded, zarr.Array)  # noqa: S101 - a dataset
    values = values_of(shown.storage, path, view)
    names = view.dimension_names
    attributes = encoded.attrs.asdict()
    if zarr_format == 2:
        encoded = zarr.open_array(shown.showing(2), path=path, mode="r")
        attributes = encoded.attrs.asdict()
    metadata = encoded.metadata
    return ArraySource(
        name=join(str(shown), path),
        values=values,
        dtype=metadata.data_type if metadata.zarr_format == 3 else metadata.dtype,
        chunks=encoded.chunks,
        encoded=encoded,
        blocks=N5Blocks(store, path, view),
        compression=view.dataset.compression,
        fill_value=encoded.fill_value,
        attributes=attributes,
        dimension_names=names,
    )
