"""``n5zarr.sidecar``: ``zarr.json`` beside N5's documents, so that the directory is Zarr, too.

Specification: https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/n5_default. The
chunks of such an array are whole blocks, which the codec ``n5_default`` decodes: zarr-python with
n5zarr or zarr-n5 installed, and zarrs in Rust. As with zarr-n5's ``n5tozarr``, the axes are in N5
order, x first, because chunks have the names of blocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from n5zarr.container.node_names import Broken
from n5zarr.container.walk import Unreadable, Walk
from n5zarr.conventions.axis_names import derived_names
from n5zarr.errors import N5FormatError, N5UnsupportedError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.compression import Blosc, Compression, Jpeg, Lz4, Lzma, Xz
from n5zarr.format.foreign import SIDECAR, SIDECAR_MARK, is_sidecar
from n5zarr.format.order import transposition
from n5zarr.format.path import join
from n5zarr.format.raw_json import as_java
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import Put, Remove, read_each
from n5zarr.store.location import open_container
from n5zarr.store.missing_nodes import not_found
from n5zarr.store.n5_default import NAME
from n5zarr.zarr_view.compressors import zarr_compressors
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from n5zarr.container.memory import Node
    from n5zarr.format.lenient_json import JSON
    from n5zarr.storage.place import Backend, Location
    from n5zarr.storage.requests import Request, Steps
    from n5zarr.store.n5_store import N5Store
    from n5zarr.zarr_view.dataset_view import DatasetView

__all__ = ["Sidecars", "sidecar"]

_AT_A_TIME = 256  # documents
_DOCUMENT = "zarr.json"
_READ_ONLY = "expected a container that can be written, to put zarr.json into it"


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
    store: Location,
    path: str = "",
    *,
    remove: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend = "fsspec",
) -> Sidecars:
    """Write ``zarr.json`` beside each N5 document, or remove these files.

    N5 spec, "File-system specification", items 5 and 9: a block is a file, which becomes the chunk
    of an array with the codec ``n5_default``. Blocks and N5's documents stay unchanged. Only n5zarr
    reads blocks of mode 1. Data that the codec cannot express are left out: text, objects, label
    multisets, types that only the record has, xz, lz4, jpeg and snappy in blosc.

    Parameters
    ----------
    store : path, URL or zarr store
        A container, or a location in one.
    path : str, optional
        Node below ``store``, with all nodes below it.
    remove : bool, optional
        Remove each ``zarr.json`` that this function wrote.
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
    place = place_of(store, storage_options, backend)
    opened, node_path = open_container(place, path)
    if opened.read_only:
        raise N5UnsupportedError(_READ_ONLY, kind="read-only", where=str(opened))
    node = opened.node(node_path)
    if node is None:
        raise not_found(opened, node_path)
    return _bring(opened, _nodes(opened, node_path, node), remove=remove)


def _bring(opened: N5Store, nodes: Iterable[tuple[str, Node | str]], *, remove: bool) -> Sidecars:
    """Write or remove the documents of nodes, where they differ from the intended ones."""
    wanted: dict[str, bytes | None] = {}
    left_out: dict[str, str] = {}
    for found, each in nodes:
        key = join(found, _DOCUMENT)
        reason = _reason(each)
        if reason:
            left_out[found] = reason
        wanted[key] = None if remove or reason else _document(each)
    there = _documents(opened, list(wanted))
    _check_ours(opened, there)
    changed = {key: value for key, value in wanted.items() if value != there[key]}
    requests: list[Request] = [
        Remove(key) if value is None else Put(key, value) for key, value in changed.items()
    ]
    for i in range(0, len(requests), _AT_A_TIME):
        opened.ask(_all(requests[i : i + _AT_A_TIME]))
    n_removed = sum(value is None for value in changed.values())
    return Sidecars(
        container=str(opened),
        n_written=len(changed) - n_removed,
        n_unchanged=sum(value is not None and key not in changed for key, value in wanted.items()),
        n_removed=n_removed,
        left_out={} if remove else left_out,
    )


def _all(requests: Sequence[Request]) -> Steps[None]:
    yield requests


def _nodes(store: N5Store, path: str, node: Node) -> Iterator[tuple[str, Node | str]]:
    """Yield path and node of a node and all nodes below it; a text for one that cannot be read."""
    for found, _ in Walk(store.container.nodes, store.ask).run(path, node):
        if isinstance(found.node, Unreadable):
            raise found.node.error
        if isinstance(found.node, Broken):
            yield found.path, str(found.node.error)
        elif found.node is not None:
            yield found.path, found.node


def _documents(store: N5Store, keys: Sequence[str]) -> dict[str, bytes | None]:
    """Read the documents at some keys; None for each missing one."""
    there: dict[str, bytes | None] = {}
    for i in range(0, len(keys), _AT_A_TIME):
        some = keys[i : i + _AT_A_TIME]
        there |= zip(some, store.ask(read_each(some)), strict=True)
    return there


def _check_ours(store: N5Store, there: Mapping[str, bytes | None]) -> None:
    """Raise if a document is not one that :func:`sidecar` has written."""
    foreign = [key for key, value in there.items() if value is not None and not is_sidecar(value)]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        message = (
            f"expected no zarr.json, or one that n5zarr sidecar has written, got another{more}; "
            "remove it first, if it is not needed"
        )
        raise N5FormatError(message, kind="foreign", where=f"{store}: {foreign[0]}")


def _reason(node: Node | str) -> str:
    """Return the reason why a node has no document; ``""`` if it has one."""
    if isinstance(node, str):
        return node
    if isinstance(node, GroupAttributes):
        return ""
    if node.content is not Content.NUMBERS:
        return f"n5_default: expected numbers, got {node.content.value}"
    if not node.kind.is_native:
        return f"n5_default: expected a data type of N5, got {node.kind.dtype.name} of the record"
    if not node.dataset.ndim:
        return "n5_default: expected at least one dimension"
    return _reason_of_compression(node.dataset.compression)


def _reason_of_compression(compression: Compression) -> str:
    expected = "expected raw, gzip, bzip2, zstd or blosc"
    match compression:
        case Xz() | Lzma() | Lz4() | Jpeg():
            return f"n5_default: {expected}, got {compression.type}"
        case Blosc(cname="snappy"):
            return f"n5_default: {expected}, got blosc with snappy"
        case _:
            return ""


def _document(node: Node | str) -> bytes:
    """Make the ``zarr.json`` of a node."""
    assert not isinstance(node, str)  # noqa: S101 - such a node has a reason
    document: dict[str, JSON] = {"zarr_format": 3}
    if isinstance(node, GroupAttributes):
        document |= {"node_type": "group", "attributes": dict(node.attributes)}
    else:
        document |= _array(node)
    return json.dumps(as_java({**document, SIDECAR: SIDECAR_MARK}), indent=2).encode()


def _array(view: DatasetView) -> dict[str, JSON]:
    """Make the members of an array, its axes in N5 order."""
    dataset = view.dataset
    item_size = dataset.data_type.item_size
    codecs: list[JSON] = [
        {"name": "transpose", "configuration": {"order": transposition(dataset.ndim)}},
        {"name": "bytes", "configuration": {"endian": "big"}}
        if item_size > 1
        else {"name": "bytes"},
    ]
    for compressor in zarr_compressors(dataset.compression):
        if compressor["name"] == "blosc":
            configuration = compressor["configuration"]
            assert isinstance(configuration, dict)  # noqa: S101 - for the type checker
            compressor["configuration"] = {"typesize": item_size, **configuration}
        codecs.append(compressor)
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
        "codecs": [{"name": NAME, "configuration": {"codecs": codecs}}],
        "attributes": dict(dataset.attributes),
        **named,
    }
