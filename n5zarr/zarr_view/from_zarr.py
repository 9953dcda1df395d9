"""Translate the document of a Zarr array into N5's keys and a record of the remaining properties.

N5 spec, "File-system specification", item 4. First makes N5's keys, then derives the Zarr document
from them, like a reader. The record holds only the differences from the given document.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from n5zarr.codecs.compress import codec_of, zarr_to_compression
from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.block import MAX_BLOCK_BYTES, MAX_NDIM
from n5zarr.format.compression import Compression, Raw, compression_to_json, parse_compression
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, N5Tuple, from_presented
from n5zarr.zarr_view.compressors import excess, name_and_configuration, same_codecs
from n5zarr.zarr_view.dataset_view import BLOCK_CODEC, NUMCODECS_BLOCK, DatasetView
from n5zarr.zarr_view.element import Element
from n5zarr.zarr_view.keys import ChunkNames
from n5zarr.zarr_view.record import Record

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


@dataclass(frozen=True, kw_only=True)
class Members:
    """The members of ``attributes.json`` that make a node an array.

    Parameters
    ----------
    dimensions, block_size : tuple of int
        N5 order, with the axis of parts if elements have parts.
    element : Element
        The elements in Zarr and in N5.
    compression : Compression
        The compression of N5 that is nearest to the codecs.
    record : Record
        The properties of the Zarr array that cannot be derived from N5's keys.
    """

    dimensions: N5Tuple
    block_size: N5Tuple
    element: Element
    compression: Compression
    record: Record

    def to_json(self) -> dict[str, JSON]:
        """Return N5's keys, in Java's order.

        N5 spec, "File-system specification", item 4.
        """
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
        The chunk grid is not regular, the chunk key encoding is unknown, the codecs cost too much,
        or there are storage transformers.
    """
    grid = document.get("chunk_grid")
    if not isinstance(grid, Mapping) or grid.get("name") != "regular":
        message = f"chunk_grid: expected a regular grid, the only one of N5, got {grid!r:.80}"
        raise N5UnrepresentableError(message, kind="member")
    ChunkNames.of(document)
    if document.get("storage_transformers"):
        message = f"storage_transformers: expected none, got {document['storage_transformers']!r}"
        raise N5UnrepresentableError(message, kind="member")
    _check_cost(document)


def _check_cost(document: Mapping[str, JSON]) -> None:
    """Raise for codecs that cost more than a reader accepts."""
    too_much = excess(document)
    if too_much is not None:
        raise N5UnrepresentableError(too_much, kind="compression")


def members_of_v3(document: Mapping[str, Any], element: Element, axis_order: AxisOrder) -> Members:
    """Translate the ``zarr.json`` of an array.

    Parameters
    ----------
    document : mapping
        The document, after :func:`check_v3`.
    element : Element
        The elements, from ``data_type`` and ``fill_value``.
    axis_order : {"C", "F"}
        The order in which the store presents axes.

    Returns
    -------
    Members
        N5's keys and the record.

    Raises
    ------
    N5UnrepresentableError
        N5 cannot store the rank, the block size or the dtype.
    """
    codecs = list(document["codecs"])
    chunk_shape = document["chunk_grid"]["configuration"]["chunk_shape"]
    dataset, plain = plain_dataset(
        document["shape"], chunk_shape, element, nearest_v3(codecs), axis_order
    )
    names = [name_and_configuration(codec)[0] for codec in codecs]
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
    *,
    keeps_zero: bool = False,
) -> Members:
    """Translate a ``.zarray``; see :func:`members_of_v3`.

    Parameters
    ----------
    document : mapping
        The document.
    element : Element
        The elements, from ``dtype`` and ``fill_value``.
    v3_type : tuple of JSON
        ``data_type`` and ``fill_value`` of the same elements in Zarr v3.
    axis_order : {"C", "F"}
        The order in which the store presents axes.
    keeps_zero : bool, optional
        Whether to record a fill value of 0; otherwise it becomes null.
    """
    _check_cost(document)
    given = {key: document.get(key) for key in ("compressor", "filters", "order")}
    compression = nearest_v2(given["compressor"], given["filters"] or ())
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
    is_block_codec = isinstance(given["compressor"], Mapping) and (
        given["compressor"].get("id") == NUMCODECS_BLOCK
    )
    follows = is_block_codec or {**given, "filters": given["filters"] or None} == derived
    recorded = {} if follows else given
    if document["dtype"] != element.v2_dtype:
        recorded = recorded | {"dtype": document["dtype"]}
    if keeps_zero and element.fill_is_zero and document.get("fill_value") is not None:
        # xarray masks elements that equal a fill value, unless it is null
        recorded = recorded | {"fill_value": document["fill_value"]}
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
    """Return the fill value if it has to be recorded: without a record readers use 0."""
    return None if element.is_native and element.fill_is_zero else fill_value


def plain_dataset(
    shape: Sequence[int],
    chunk_shape: Sequence[int],
    element: Element,
    compression: Compression,
    axis_order: AxisOrder,
) -> tuple[DatasetAttributes, Record]:
    """Make the description of the N5 dataset for a Zarr array.

    Parameters
    ----------
    shape, chunk_shape : sequence of int
        In elements, in the order of the Zarr array.
    element : Element
        The elements in Zarr and in N5.
    compression : Compression
        How blocks are compressed.
    axis_order : {"C", "F"}
        Whether the Zarr array is in C order or in N5 order.

    Returns
    -------
    dataset, record : DatasetAttributes, Record
        The record is empty, unless the array has no dimensions: its dataset has one.

    Raises
    ------
    N5UnrepresentableError
        N5 cannot store the rank, the extent, the block size or the dtype.
    N5UnsupportedError
        The compression can only be read.
    """
    parts = () if element.n_parts is None else (element.n_parts,)
    dimensions = N5Tuple((*parts, *(from_presented(shape, axis_order) or (1,))))
    block_size = N5Tuple((*parts, *(from_presented(chunk_shape, axis_order) or (1,))))
    # N5 spec, "File-system specification", item 7
    n_bytes = math.prod(block_size) * element.stored.item_size
    if n_bytes > MAX_BLOCK_BYTES:
        message = (
            f"chunks {tuple(chunk_shape)} of {element.dtype}: expected at most {MAX_BLOCK_BYTES} "
            f"bytes in a block, got {n_bytes}; use smaller chunks"
        )
        raise N5UnrepresentableError(message, kind="member")
    if any(d > 2**63 - 1 for d in dimensions) or any(b > 2**31 - 1 for b in block_size):
        message = f"shape {tuple(shape)}, chunks {tuple(chunk_shape)}: too large for N5"
        raise N5UnrepresentableError(message, kind="member")
    codec_of(compression).check_writable(compression)
    if len(dimensions) > MAX_NDIM:
        message = f"shape: expected at most {MAX_NDIM} dimensions, got {len(dimensions)}"
        raise N5UnrepresentableError(message, kind="member")
    dataset = DatasetAttributes(
        dimensions=dimensions,
        block_size=block_size,
        data_type=element.stored,
        compression=codec_of(compression).within_limits(compression, element.stored.item_size),
        attributes={},
    )
    return dataset, Record(shape=None if shape else [])


def _big_endian(codecs: Sequence[JSON], axis_order: AxisOrder) -> list[JSON]:
    """Remove what the record need not have: the byte order, and the transposition of F order."""
    kept = list(codecs)
    if axis_order == "F" and kept and isinstance(kept[0], Mapping):
        order = name_and_configuration(kept[0])[1].get("order")
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
        name, configuration = name_and_configuration(codec)
        if name in ("sharding_indexed", "n5_default"):
            inner = configuration.get("codecs")
            return nearest_v3(inner if isinstance(inner, list | tuple) else ())
        if name == BLOCK_CODEC:
            return parse_compression(configuration.get("compression", {"type": "gzip"}))
        nearest = zarr_to_compression(name, configuration)
        if nearest is not None:
            return nearest
    return Raw()


def nearest_v2(compressor: JSON, filters: Sequence[JSON]) -> Compression:
    """Find the compression of N5 that comes nearest to a compressor and filters of numcodecs.

    Examples
    --------
    >>> nearest_v2({"id": "lzma", "preset": 3}, [{"id": "delta", "dtype": "<u2"}])
    Xz(preset=3)
    """
    for codec in (compressor, *reversed(filters)):
        if isinstance(codec, Mapping):
            if codec.get("id") == NUMCODECS_BLOCK:
                return parse_compression(codec.get("compression", {"type": "gzip"}))
            nearest = zarr_to_compression(str(codec.get("id")), codec)
            if nearest is not None:
                return nearest
    return Raw()
