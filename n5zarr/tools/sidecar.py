"""``n5zarr.sidecar``: write ``zarr.json`` beside N5's documents, so that Zarr reads them, too.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/n5_default. The
chunks of such an array are whole blocks, which the codec ``n5_default`` decodes: zarr-python with
n5zarr or zarr-n5 installed, and zarrs in Rust. As with zarr-n5's ``n5tozarr``, the axes are in N5
order, x first, because chunks have the names of blocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import batched
from typing import TYPE_CHECKING

from n5zarr.container.node_names import Broken
from n5zarr.container.walk import Unreadable
from n5zarr.conventions.axis_names import derived_names
from n5zarr.errors import N5Error, N5FormatError, N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes, GroupAttributes
from n5zarr.format.compression import Blosc, Bzip2, Gzip, Raw, Zstd
from n5zarr.format.foreign import N5_DEFAULT, SIDECAR, SIDECAR_MARK, is_sidecar
from n5zarr.format.order import transposition
from n5zarr.format.path import join
from n5zarr.format.raw_json import nonfinite_note, strict
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.storage.requests import Put, Remove, read_each, request_each
from n5zarr.store.locating import open_container
from n5zarr.tools.jobs.nodes import walk
from n5zarr.zarr_view.compressors import zarr_compressors
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from n5zarr.container.memory import Node
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.zarr_view.dataset_view import DatasetView

_AT_A_TIME = 256  # documents
_DOCUMENT = "zarr.json"
_COMPRESSIONS = "raw, gzip, bzip2, zstd or blosc"


@dataclass(frozen=True)
class Sidecars:
    """The result of :func:`sidecar`.

    Parameters
    ----------
    container : str
        The container.
    n_written : int
        Number of documents that were missing, or did not match the N5 documents.
    n_unchanged : int
        Number of documents that existed already.
    n_removed : int
        Number of documents that were removed: all, or those of datasets that are left out now.
    left_out : mapping of str to str
        The reason for each dataset without document, by path.
    """

    container: str
    n_written: int
    n_unchanged: int
    n_removed: int
    left_out: Mapping[str, str]


def sidecar(
    location: Location,
    path: str = "",
    *,
    remove: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> Sidecars:
    """Write ``zarr.json`` beside each N5 document, or remove these files.

    N5 spec, "File-system specification", items 5 and 9: a block is a file, which becomes the chunk
    of an array with the codec ``n5_default``. Blocks and N5's documents stay unchanged. Only n5zarr
    reads blocks of mode 1. Data that the codec cannot express are left out: text, objects, label
    multisets, types that only the record has, xz, lz4, jpeg and snappy in blosc.

    Parameters
    ----------
    location : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``location``, with all nodes below it.
    remove : bool, optional
        Remove each ``zarr.json`` that n5zarr wrote.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    Sidecars
        Numbers of documents, and the datasets that were left out.

    Raises
    ------
    FileNotFoundError
        The container or node does not exist.
    N5FormatError
        A ``zarr.json`` of another program exists; nothing is changed (``kind="foreign"``).
    N5UnsupportedError
        The container can only be read (``kind="read-only"``).

    Examples
    --------
    >>> import json, pathlib, shutil, tempfile, n5zarr
    >>> copy = pathlib.Path(tempfile.mkdtemp(), "sample.n5")
    >>> _ = shutil.copytree(n5zarr.sample_path(), copy)
    >>> n5zarr.sidecar(copy).n_written
    7
    >>> document = json.loads((copy / "em" / "s0" / "zarr.json").read_bytes())
    >>> document["shape"], document["codecs"][0]["name"]  # x first, as in N5
    ([128, 96, 40], 'n5_default')
    >>> n5zarr.sidecar(copy, remove=True).n_removed
    7
    """
    place = place_of(location, storage_options, backend)
    store, node_path = open_container(place, path, writes=True)
    wanted, left_out = _wanted(store, node_path, remove=remove)
    return Sidecars(str(store), *_write(store, wanted), left_out)


def _wanted(
    store: N5Store, path: str, *, remove: bool
) -> tuple[dict[str, bytes | None], dict[str, str]]:
    """Make the documents of a node and all nodes below it, None for no document, by key.

    Also return the reasons why datasets have none, by path.
    """
    documents: dict[str, JSON] = {}
    left_out: dict[str, str] = {}
    for found in walk(store, path):
        if isinstance(found.node, Unreadable):
            raise found.node.error
        key = join(found.path, _DOCUMENT)
        try:
            documents[key] = None if remove else _document(found.node)
        except N5Error as err:
            left_out[found.path] = str(err)
            documents[key] = None
    store.container.warn(nonfinite_note(documents))
    return {
        key: None if document is None else json.dumps(strict(document), indent=2).encode()
        for key, document in documents.items()
    }, left_out


def _write(store: N5Store, wanted: Mapping[str, bytes | None]) -> tuple[int, int, int]:
    """Write or remove documents that differ; count those written, unchanged and removed."""
    there: dict[str, bytes | None] = {}
    for some in batched(wanted, _AT_A_TIME):
        there |= zip(some, store.run(read_each(some)), strict=True)
    _check_ours(store, there)
    changed = [key for key, value in wanted.items() if value != there[key]]
    for some in batched(changed, _AT_A_TIME):
        new = ((key, wanted[key]) for key in some)
        store.run(request_each(Remove(k) if v is None else Put(k, v) for k, v in new))
    n_removed = sum(wanted[key] is None for key in changed)
    n_written = len(changed) - n_removed
    return n_written, sum(value is not None for value in wanted.values()) - n_written, n_removed


def _check_ours(store: N5Store, there: Mapping[str, bytes | None]) -> None:
    """Raise if a document is not one that :func:`sidecar` has written."""
    foreign = [key for key, value in there.items() if value is not None and not is_sidecar(value)]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise N5FormatError(
            f"expected no zarr.json, or one that n5zarr sidecar has written, got another{more}; "
            "remove it first, if it is not needed",
            kind="foreign",
            where=f"{store}: {foreign[0]}",
        )


def _document(node: Node | Broken | None) -> dict[str, JSON]:
    """Make the ``zarr.json`` of a node.

    Raises
    ------
    N5Error
        The node is broken, or the codec cannot express its data.
    """
    document: dict[str, JSON] = {"zarr_format": 3}
    if isinstance(node, Broken):
        raise node.error
    if isinstance(node, GroupAttributes):
        document |= {"node_type": "group", "attributes": dict(node.attributes)}
    elif node is not None:
        document |= _array(node)
    return {**document, SIDECAR: SIDECAR_MARK}


def _check_expressible(view: DatasetView) -> None:
    """Raise if the codec cannot express the data of a dataset."""
    compression = view.dataset.compression
    is_known = isinstance(compression, Raw | Gzip | Bzip2 | Zstd | Blosc)
    is_snappy = isinstance(compression, Blosc) and compression.cname == "snappy"
    for holds, expected, got in (
        (view.content is Content.NUMBERS, "numbers", view.content.value),
        (view.kind.is_native, "a data type of N5", f"{view.kind.dtype.name} of the record"),
        (view.dataset.ndim, "at least one dimension", "none"),
        (is_known, _COMPRESSIONS, compression.type),
        (not is_snappy, _COMPRESSIONS, "blosc with snappy"),
    ):
        if not holds:
            message = f"expected {expected}, got {got}"
            raise N5UnsupportedError(message, kind="data-type", where=N5_DEFAULT)


def _array(view: DatasetView) -> dict[str, JSON]:
    """Make the members of the document of an array with axes in N5 order."""
    _check_expressible(view)
    dataset = view.dataset
    codecs: list[JSON] = [
        {"name": "transpose", "configuration": {"order": transposition(dataset.ndim)}},
        {"name": "bytes", "configuration": {"endian": "big"}}
        if dataset.data_type.item_size > 1
        else {"name": "bytes"},
        *_compressors(dataset),
    ]
    names = derived_names(dataset.attributes, dataset.ndim)
    named: dict[str, JSON] = (
        {} if names is None else {"dimension_names": [n or None for n in names[1]]}
    )
    return {
        "node_type": "array",
        "shape": dataset.dimensions,
        "data_type": dataset.data_type.value,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": dataset.block_size}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        "fill_value": view.v3_document()["fill_value"],
        "codecs": [{"name": N5_DEFAULT, "configuration": {"codecs": codecs}}],
        "attributes": dict(dataset.attributes),
        **named,
    }


def _compressors(dataset: DatasetAttributes) -> Iterator[dict[str, JSON]]:
    """Yield the compressor of Zarr, if there is one."""
    for compressor in zarr_compressors(dataset.compression):
        if compressor["name"] == "blosc":
            configuration = compressor["configuration"]
            assert isinstance(configuration, dict)  # noqa: S101 - for the type checker
            typesize = dataset.data_type.item_size
            compressor["configuration"] = {"typesize": typesize, **configuration}
        yield compressor
