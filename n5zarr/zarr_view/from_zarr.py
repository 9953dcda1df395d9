"""Zarr to N5: what an array's document says in N5's keys, and what is left for the record.

The rule is one: N5's keys are made first, what follows from them is derived as a reader would, and
only what differs from the document is recorded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from n5zarr.codecs.compress import check_writable, within_limits
from n5zarr.errors import N5AttributesError, N5UnrepresentableError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.block import MAX_BLOCK_BYTES, MAX_NDIM
from n5zarr.format.compression import Compression, Raw, compression_to_json, parse_compression
from n5zarr.format.order import present
from n5zarr.zarr_view.compressors import same_codecs
from n5zarr.zarr_view.dataset_view import BLOCK_CODEC, NUMCODECS_BLOCK, DatasetView
from n5zarr.zarr_view.keys import ChunkNames
from n5zarr.zarr_view.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import AxisOrder, N5Tuple
    from n5zarr.zarr_view.element import Element

__all__ = ["Members", "check_v3", "members_of_v2", "members_of_v3", "plain_dataset"]

_V3_KEYS = {
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
}
_SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


@dataclass(frozen=True, kw_only=True)
class Members:
    """What makes a node an array.

    Parameters
    ----------
    dimensions, block_size : tuple of int
        N5 order, with the axis of parts where elements have parts.
    element : Element
        What the elements are.
    compression : Compression
        The nearest that N5 has.
    record : Record
        What cannot be derived.
    """

    dimensions: N5Tuple
    block_size: N5Tuple
    element: Element
    compression: Compression
    record: Record

    def to_json(self) -> dict[str, JSON]:
        """Give N5's keys, in the order in which Java writes them."""
        return {
            "dataType": self.element.stored.value,
            "compression": compression_to_json(self.compression),
            "blockSize": list(self.block_size),
            "dimensions": list(self.dimensions),
        }


def check_v3(document: Mapping[str, JSON]) -> None:
    """Raise if N5 cannot keep the array of a ``zarr.json``.

    Raises
    ------
    N5UnrepresentableError
        The grid is not regular, chunks have unknown names, or there are storage transformers.
    """
    grid = document.get("chunk_grid")
    if not isinstance(grid, Mapping) or grid.get("name") != "regular":
        message = f"chunk_grid: expected a regular grid, got {grid!r:.80}; N5 has no other"
        raise N5UnrepresentableError(message, kind="member")
    ChunkNames.of(document)
    if document.get("storage_transformers"):
        message = f"storage_transformers: expected none, got {document['storage_transformers']!r}"
        raise N5UnrepresentableError(message, kind="member")


def members_of_v3(document: Mapping[str, Any], element: Element, axis_order: AxisOrder) -> Members:
    """Translate the ``zarr.json`` of an array.

    Parameters
    ----------
    document : mapping
        The document, after :func:`check_v3`.
    element : Element
        What ``data_type`` and ``fill_value`` mean.
    axis_order : {"C", "F"}
        How the store shows axes.

    Returns
    -------
    Members
        N5's keys and the rest.

    Raises
    ------
    N5UnrepresentableError
        Rank, block size or dtype are beyond N5.
    """
    codecs = list(document["codecs"])
    chunk_shape = document["chunk_grid"]["configuration"]["chunk_shape"]
    dataset, plain = plain_dataset(
        document["shape"], chunk_shape, element, nearest_v3(codecs), axis_order
    )
    names = [c.get("name") if isinstance(c, Mapping) else c for c in codecs]
    derived = DatasetView(
        dataset=dataset, codecs="zarr", axis_order="C", element=element, record=plain
    ).derived_codecs()
    follows = names == [BLOCK_CODEC] or same_codecs(
        _big_endian(codecs, axis_order), _big_endian(derived, "C")
    )
    record = Record(
        data_type=None if element.is_native else document["data_type"],
        shape=plain.shape,
        fill_value=_recorded_fill(document["fill_value"], element),
        codecs=None if follows else codecs,
        axis_order="C" if follows else axis_order,
        extra={key: value for key, value in document.items() if key not in _V3_KEYS},
    )
    return _members(dataset, element, record)


def members_of_v2(
    document: Mapping[str, Any],
    element: Element,
    v3_type: tuple[JSON, JSON],
    axis_order: AxisOrder,
) -> Members:
    """Translate a ``.zarray``; see :func:`members_of_v3`.

    Parameters
    ----------
    document : mapping
        The document.
    element : Element
        What ``dtype`` and ``fill_value`` mean.
    v3_type : tuple of JSON
        ``data_type`` and ``fill_value`` as v3 has them.
    axis_order : {"C", "F"}
        How the store shows axes.
    """
    shown = {key: document.get(key) for key in ("compressor", "filters", "order")}
    compression = nearest_v2(shown["compressor"], shown["filters"] or ())
    dataset, plain = plain_dataset(
        document["shape"], document["chunks"], element, compression, axis_order
    )
    derived = DatasetView(
        dataset=dataset,
        codecs="zarr",
        axis_order=axis_order,
        element=element,
        record=plain,
        zarr_format=2,
    ).derived_v2()
    own = isinstance(shown["compressor"], Mapping) and (
        shown["compressor"].get("id") == NUMCODECS_BLOCK
    )
    follows = own or {**shown, "filters": shown["filters"] or None} == derived
    recorded = {} if follows else shown
    if document["dtype"] != element.v2_dtype:
        recorded = recorded | {"dtype": document["dtype"]}
    record = Record(
        data_type=None if element.is_native else v3_type[0],
        shape=plain.shape,
        fill_value=_recorded_fill(v3_type[1], element),
        v2=recorded or None,
        axis_order="C" if follows else axis_order,
    )
    return _members(dataset, element, record)


def _members(dataset: DatasetAttributes, element: Element, record: Record) -> Members:
    return Members(
        dimensions=dataset.dimensions,
        block_size=dataset.block_size,
        element=element,
        compression=dataset.compression,
        record=record,
    )


def _recorded_fill(fill_value: JSON, element: Element) -> JSON:
    """Record a fill value where it is not what a reader takes anyway."""
    return None if element.is_native and element.fill_is_zero else fill_value


def plain_dataset(
    shape: Sequence[int],
    chunk_shape: Sequence[int],
    element: Element,
    compression: Compression,
    axis_order: AxisOrder,
) -> tuple[DatasetAttributes, Record]:
    """Make N5's keys of an array; the record says whether it has no dimensions.

    Parameters
    ----------
    shape, chunk_shape : sequence of int
        In elements, in the order that is shown.
    element : Element
        What the elements are.
    compression : Compression
        How blocks are compressed.
    axis_order : {"C", "F"}
        The order that is shown.

    Raises
    ------
    N5UnrepresentableError
        Rank, extent, block size or dtype are beyond N5.
    N5UnsupportedError
        The compression can only be read.
    """
    parts = () if element.n_parts is None else (element.n_parts,)
    dimensions = parts + (present(shape, axis_order) or (1,))
    block_size = parts + (present(chunk_shape, axis_order) or (1,))
    n_bytes = math.prod(block_size) * element.stored.item_size
    if n_bytes > MAX_BLOCK_BYTES:
        message = (
            f"chunks {tuple(chunk_shape)} of {element.dtype}: expected at most {MAX_BLOCK_BYTES} "
            f"bytes in a block, got {n_bytes}; take smaller chunks"
        )
        raise N5UnrepresentableError(message, kind="member")
    if any(d > 2**63 - 1 for d in dimensions) or any(b > 2**31 - 1 for b in block_size):
        message = f"shape {tuple(shape)}, chunks {tuple(chunk_shape)}: too large for N5"
        raise N5UnrepresentableError(message, kind="member")
    check_writable(compression)
    if len(dimensions) > MAX_NDIM:
        message = f"shape: expected at most {MAX_NDIM} dimensions, got {len(dimensions)}"
        raise N5UnrepresentableError(message, kind="member")
    dataset = DatasetAttributes(
        dimensions=dimensions,
        block_size=block_size,
        data_type=element.stored,
        compression=within_limits(compression, element.stored.item_size),
        attributes={},
    )
    return dataset, Record(shape=None if shape else [])


def _big_endian(codecs: Sequence[JSON], axis_order: AxisOrder) -> list[JSON]:
    """Leave out what is not worth keeping: the byte order, and the transposition of F order."""
    kept = list(codecs)
    if axis_order == "F" and kept and isinstance(kept[0], Mapping):
        order = kept[0].get("configuration", {})
        order = order.get("order") if isinstance(order, Mapping) else None
        if isinstance(order, list) and order == sorted(order, reverse=True):
            kept = kept[1:]
    big: JSON = {"name": "bytes", "configuration": {"endian": "big"}}
    little: JSON = {"name": "bytes", "configuration": {"endian": "little"}}
    return [big if codec == little else codec for codec in kept]


# ---------------------------------------------------------------------- the nearest compression


def nearest_v3(codecs: Sequence[JSON]) -> Compression:
    """Find the compression of N5 that comes nearest to a chain of codecs.

    Examples
    --------
    >>> nearest_v3([{"name": "bytes"}, {"name": "numcodecs.zlib", "configuration": {"level": 1}}])
    Gzip(use_zlib=True, level=1)
    """
    for codec in reversed(codecs):
        name: Any = codec
        configuration: Any = {}
        if isinstance(codec, Mapping):
            name, configuration = codec.get("name"), codec.get("configuration") or {}
        if name == "sharding_indexed":
            inner = configuration.get("codecs")
            return nearest_v3(inner if isinstance(inner, list | tuple) else ())
        if name == BLOCK_CODEC:
            return parse_compression(configuration.get("compression", {"type": "gzip"}))
        found = _nearest(str(name).removeprefix("numcodecs."), configuration)
        if found is not None:
            return found
    return Raw()


def nearest_v2(compressor: JSON, filters: Sequence[JSON]) -> Compression:
    """Find the compression of N5 that comes nearest to those of numcodecs."""
    for codec in (compressor, *reversed(filters)):
        if isinstance(codec, Mapping):
            if codec.get("id") == NUMCODECS_BLOCK:
                return parse_compression(codec.get("compression", {"type": "gzip"}))
            found = _nearest(str(codec.get("id")), codec)
            if found is not None:
                return found
    return Raw()


def _nearest(name: str, given: Mapping[str, JSON]) -> Compression | None:
    """Translate one codec; None where N5 has nothing like it."""
    members = _TRANSLATED.get(name)
    if members is None:
        return None
    try:
        return parse_compression(members(given))
    except N5AttributesError as err:
        # its parameters are out of N5's range, but not the codec's: the defaults are near enough
        return parse_compression({"type": members(given)["type"]}) if err.problems else None


def _blosc(given: Mapping[str, JSON]) -> dict[str, JSON]:
    shuffle = given.get("shuffle", 1)
    return {
        "type": "blosc",
        "cname": given.get("cname", "lz4"),
        "clevel": given.get("clevel", 5),
        "shuffle": _SHUFFLES.get(shuffle) if isinstance(shuffle, str) else shuffle,
        "blocksize": given.get("blocksize", 0),
    }


_TRANSLATED: dict[str, Callable[[Mapping[str, JSON]], dict[str, JSON]]] = {
    "gzip": lambda given: {"type": "gzip", "level": given.get("level", 6)},
    "zlib": lambda given: {"type": "gzip", "useZlib": True, "level": given.get("level", 6)},
    "zstd": lambda given: {"type": "zstd", "level": given.get("level", 3)},
    "blosc": _blosc,
    "bz2": lambda given: {"type": "bzip2", "blockSize": given.get("level", 9)},
    "lzma": lambda given: {
        "type": "xz",
        "preset": 6 if given.get("preset") is None else given["preset"],
    },
    "lz4": lambda _: {"type": "lz4"},
}
