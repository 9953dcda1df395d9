"""Make the Zarr documents of a dataset, and choose how its blocks become chunks.

The documents are plain JSON; no class of zarr is used. They are standard Zarr, with standard codecs
and full-size chunks: a copy of the keys is a hierarchy that any Zarr implementation reads. The
option ``codecs`` selects the codecs:

``"zarr"``
    Codecs of zarr-python: those of Zarr v3, and numcodecs' own for gzip with ``useZlib``, bzip2, xz
    and lz4.
``"portable"``
    Codecs of Zarr v3 only; for the other compressions chunks are uncompressed.
``"n5"``
    One codec of n5zarr that takes whole blocks.

Parameters of codecs are brought into the range that Zarr accepts; the N5 document is not changed.
While a store object exists, an array that was created through it keeps its Zarr document, since the
open array continues to write chunks with these codecs. The record keeps codecs that cannot be
derived from N5's keys.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import mod
from typing import Literal

import numpy as np

from n5zarr.codecs.compress import codec_of, within_zarr_limits
from n5zarr.conventions.axis_names import derived_names
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.block import MAX_ARRAY_NDIM, BlockHeader, BlockMode
from n5zarr.format.compression import Compression, Jpeg, Raw, compression_to_json
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, N5Tuple, from_presented, present, to_c, transposition
from n5zarr.zarr_view.chunk_grid import LONGEST_AXIS, ChunkGrid, grid_document
from n5zarr.zarr_view.compressors import is_portable, keeps_elements, keeps_elements_v2, same_codecs
from n5zarr.zarr_view.element import Content, Element
from n5zarr.zarr_view.keys import ZarrFormat
from n5zarr.zarr_view.record import Record

type Codecs = Literal["zarr", "n5", "portable"]

BLOCK_CODEC = "n5zarr.block"
"""Name of n5zarr's codec of whole blocks in Zarr v3."""

NUMCODECS_BLOCK = "n5zarr_block"
"""The ``id`` of the same codec in numcodecs."""

_SCALAR = N5Tuple((0,))


@dataclass(frozen=True, kw_only=True)
class DatasetView:
    """One dataset as a Zarr array.

    Parameters
    ----------
    dataset : DatasetAttributes
        The content of ``attributes.json``.
    codecs : {"zarr", "n5", "portable"}
        The codecs of the documents, see the module.
    axis_order : {"C", "F"}
        ``"C"``: axes reversed. ``"F"``: in the order of ``dimensions``.
    record : Record, optional
        The properties of the Zarr array that N5's keys cannot express.
    element : Element, optional
        The elements, if Zarr's type is not that of the dataset or the fill value is not 0.
    v2_fill : JSON, optional
        ``fill_value`` of the ``.zarray``.
    given : mapping, optional
        The Zarr document with which this store created the array.
    zarr_format : {3, 2}, optional
        The format of the documents.
    chunk_grid : {"regular", "rectilinear"}, optional
        ``"rectilinear"``: chunks of numbers at the end of an axis are truncated, as Java's blocks.
    """

    dataset: DatasetAttributes
    codecs: Codecs
    axis_order: AxisOrder
    record: Record = field(default_factory=Record)
    element: Element | None = None
    v2_fill: JSON = None
    given: Mapping[str, JSON] | None = None
    zarr_format: ZarrFormat = 3
    chunk_grid: ChunkGrid = "regular"

    def __post_init__(self) -> None:
        data_type = self.dataset.data_type
        if data_type is DataType.OBJECT and self.element is None:
            message = (
                "dataType: expected numbers or strings, got 'object', which is opaque bytes; "
                "n5zarr.read_block reads its blocks"
            )
            raise N5UnsupportedError(message, kind="data-type")
        if self.dataset.ndim > MAX_ARRAY_NDIM:
            message = f"dimensions: expected at most {MAX_ARRAY_NDIM}, got {self.dataset.ndim}"
            raise N5UnsupportedError(message, kind="member")
        if isinstance(self.dataset.compression, Jpeg) and data_type is not DataType.UINT8:
            message = f"compression: jpeg: expected dataType uint8, got {data_type}"
            raise N5UnsupportedError(message, kind="compression")

    def __getstate__(self) -> dict[str, object]:
        # what is cached is made again, in less time than it takes to send
        return {each.name: self.__dict__[each.name] for each in fields(self)}

    # cached, since every chunk needs these

    @cached_property
    def content(self) -> Content:
        """The content of the blocks."""
        return Content.of(self.dataset)

    @cached_property
    def truncated(self) -> bool:
        """Whether the chunks at the end of an axis are truncated."""
        is_plain = self.content is Content.NUMBERS and self.kind.is_native and all(self.shape)
        is_wanted = self.chunk_grid == "rectilinear" and self.zarr_format == 3
        is_short = max(self.grid, default=1) <= LONGEST_AXIS
        return is_wanted and is_plain and is_short and any(map(mod, self.shape, self.chunk_shape))

    @cached_property
    def whole_blocks(self) -> bool:
        """Whether a chunk is a whole block with its header, for n5zarr's own codec."""
        return self._uses_block_codec and self.transcoded is None

    @cached_property
    def holds_elements(self) -> bool:
        """Whether blocks hold the elements of the Zarr array unchanged, for any codecs of it."""
        is_plain = self.content is Content.NUMBERS and self.kind.is_native and self.ndim > 0
        if not is_plain or self.transcoded is None:
            return is_plain
        if self.zarr_format == 3:
            return keeps_elements(self.v3_codecs)
        return keeps_elements_v2(self.v2_encoding)

    @property
    def data_type(self) -> DataType:
        """The data type of the numbers in a chunk that is not transcoded."""
        return DataType.UINT64 if self.content is Content.LABELS else self.dataset.data_type

    @cached_property
    def kind(self) -> Element:
        """The elements in Zarr and in N5."""
        if self.element is not None:
            return self.element
        if self.content is Content.STRINGS:
            return Element.text()
        return Element(dtype=self.data_type.dtype.newbyteorder("="))

    @cached_property
    def grid(self) -> N5Tuple:
        """Number of blocks along each axis, N5 order."""
        return self.dataset.grid

    @cached_property
    def full_header(self) -> bytes:
        """The usual header of a full-size block; a block that begins with it needs no parsing."""
        return BlockHeader(mode=BlockMode.DEFAULT, block_shape=self.dataset.block_size).to_bytes()

    @cached_property
    def full_n_bytes(self) -> int:
        """Size of a full-size block before compression."""
        return math.prod(self.dataset.block_size) * self.dataset.data_type.item_size

    @cached_property
    def passes_payloads(self) -> bool:
        """Whether the payload of a full-size block is a chunk, byte for byte."""
        if self.transcoded or self.whole_blocks:
            return False
        same = self.compression.type == self.dataset.compression.type
        is_swapped = self.chunk_dtype != self.data_type.dtype
        return same and not is_swapped and self.content is Content.NUMBERS

    @cached_property
    def chunk_dtype(self) -> np.dtype[np.generic]:
        """The dtype of the numbers in a chunk that is not transcoded.

        Big-endian as in blocks, unless the ``.zarray`` says little-endian.
        """
        v2_dtype = self.v2_dtype if self.zarr_format == 2 else None
        is_little = isinstance(v2_dtype, str) and np.dtype(v2_dtype).str.startswith("<")
        return self.data_type.dtype.newbyteorder("<" if is_little else ">")

    @cached_property
    def compression(self) -> Compression:
        """The compression of chunks that are not transcoded; blocks may have another one."""
        stored = self.dataset.compression
        if self.content is Content.LABELS or codec_of(stored).numcodec(stored) is None:
            return Raw()
        if self.content is Content.STRINGS and self.element is None:
            return Raw()  # strings that Java wrote, without a record
        if self.codecs == "portable" and not is_portable(stored):
            return Raw()
        return within_zarr_limits(stored, self.kind.dtype.itemsize)

    # ------------------------------------------------------------------ axes

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements, in the order of the Zarr array."""
        return self.presented(self.dataset.dimensions)

    @cached_property
    def chunk_shape(self) -> tuple[int, ...]:
        """Extent of a chunk in elements, in the order of the Zarr array."""
        return self.presented(self.dataset.block_size)

    @cached_property
    def is_scalar(self) -> bool:
        """Whether the array has no dimensions; its dataset has one, of length 1."""
        return self.record.shape == [] and self.dataset.ndim == 1 + (self.kind.n_parts is not None)

    @cached_property
    def ndim(self) -> int:
        """Number of dimensions of the Zarr array."""
        return len(self.presented(self.dataset.dimensions))

    def presented(self, values_n5: N5Tuple) -> tuple[int, ...]:
        """Convert one value per axis of the dataset into one per axis of the Zarr array.

        The inverse is :meth:`grid_position`. The array lacks the axis of the parts of elements.
        """
        own = values_n5 if self.kind.n_parts is None else values_n5[1:]
        return () if self.is_scalar else present(own, self.axis_order)

    def grid_position(self, coords: tuple[int, ...]) -> N5Tuple:
        """Convert the coordinates of a chunk in Zarr's chunk grid into the block's grid position.

        N5 spec, "File-system specification", item 5.
        """
        own = _SCALAR if self.is_scalar else from_presented(coords, self.axis_order)
        return own if self.kind.n_parts is None else N5Tuple((0, *own))

    def with_other_axes[T](self, presented: Sequence[T], values_n5: Sequence[T]) -> tuple[T, ...]:
        """Convert values for the axes of the array into N5 order, with the axes that it lacks."""
        own = from_presented(presented, self.axis_order)
        return (*values_n5[: len(values_n5) - len(own)], *own)

    @cached_property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the axes, in the order of the Zarr array; None if they have no names."""
        names_n5 = self.record.dimension_names
        if names_n5 is None:
            names = self._names_in_attributes
            names_n5 = () if names is None else [name or None for name in names[1]]
        if len(names_n5) != self.ndim or not names_n5:
            return None  # [] in the record: the array has no names
        return present(names_n5, self.axis_order)

    @property
    def attributes(self) -> dict[str, JSON]:
        """A copy of the users' attributes, without the one that became ``dimension_names``."""
        names = self._names_in_attributes if self.record.dimension_names is None else None
        used = names[0] if names else None
        own = self.dataset.attributes.items()
        return {key: deepcopy(value) for key, value in own if key != used}

    @cached_property
    def _names_in_attributes(self) -> tuple[str, tuple[str, ...]] | None:
        """The attribute that names the axes, and the names in N5 order."""
        return derived_names(self.dataset.attributes, self.ndim)

    # ------------------------------------------------------------------ documents

    def document(self) -> dict[str, JSON]:
        """Make the document that describes the array: ``zarr.json`` or ``.zarray``."""
        return self.v3_document() if self.zarr_format == 3 else self.v2_document()

    @cached_property
    def v3_text(self) -> str:
        """The ``zarr.json`` as text, without attributes."""
        return json.dumps({**self.v3_document(), "attributes": {}})

    def v3_document(self) -> dict[str, JSON]:
        """Make the ``zarr.json`` of the dataset.

        Returns
        -------
        dict
            Zarr v3 array metadata, https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html.
        """
        grid: JSON = grid_document(self.shape, self.chunk_shape, truncated=self.truncated)
        document: dict[str, JSON] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": self.record.data_type or self.data_type.value,
            "chunk_grid": grid,
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": self._v3_fill_value,
            "codecs": self.v3_codecs,
        }
        # the document twice: its members stand first, and precede those of the record
        document = {**document, **self.record.extra, **document, **(self.given or {})}
        # the rest of the given document may be outdated: these members change
        document |= {"shape": self.shape, "attributes": self.attributes}
        document.pop("dimension_names", None)
        if self.dimension_names is not None:
            document["dimension_names"] = self.dimension_names
        return document

    def v2_document(self) -> dict[str, JSON]:
        """Make the ``.zarray`` of the dataset: Zarr v2 array metadata.

        The fill value of plain N5 is null, which reads as 0: with 0, xarray would mask elements
        that are 0.
        """
        recorded = (self.record.v2 or {}).get("fill_value")
        is_zero = self.v2_fill is None and self.kind.fill_is_zero
        return {
            "zarr_format": 2,
            "chunks": self.chunk_shape,
            "dtype": self.v2_dtype,
            "fill_value": recorded if is_zero else self.v2_fill,
            "dimension_separator": ".",
            **self.v2_encoding,
            **(self.given or {}),
            "shape": self.shape,
        }

    @cached_property
    def v2_dtype(self) -> JSON:
        """The ``dtype`` of the ``.zarray``: given, recorded, or derived from the elements."""
        if self.given is not None:
            return self.given.get("dtype")
        recorded = (self.record.v2 or {}).get("dtype")
        # another program may have changed the dataset since it was recorded
        return recorded if self.kind.matches_v2_dtype(recorded) else self.kind.v2_dtype

    @property
    def _v3_fill_value(self) -> JSON:
        """The value of missing blocks: N5 spec, "File-system specification", item 6."""
        if self.record.fill_value is not None:
            return self.record.fill_value
        if self.content is Content.STRINGS:
            return ""
        return 0.0 if self.kind.dtype.kind == "f" else 0

    # ------------------------------------------------------------------ codecs

    @cached_property
    def v3_codecs(self) -> Sequence[JSON]:
        """The codecs of the ``zarr.json``: given, recorded, or derived from N5's keys."""
        given = (self.given or {}).get("codecs")
        if isinstance(given, list | tuple):
            return given
        recorded = self.record.codecs if self._uses_recorded_codecs else None
        return self.derived_codecs() if recorded is None else recorded

    @cached_property
    def v2_encoding(self) -> Mapping[str, JSON]:
        """Compressor, filters and order of the ``.zarray``: given, recorded, or derived."""
        if self.given is not None:
            return {key: self.given.get(key) for key in ("compressor", "filters", "order")}
        recorded = self.record.v2 if self._uses_recorded_codecs else None
        derived = self.derived_v2()
        return {key: (recorded or {}).get(key, derived[key]) for key in derived}

    @property
    def _uses_recorded_codecs(self) -> bool:
        """Whether the documents have the recorded codecs.

        False if the axis order differs from that of the record, and if the option ``codecs`` asks
        for faster codecs or for codecs that every reader has.
        """
        fast = self.codecs == "n5" and self.kind.is_native
        same_order = self.axis_order == self.record.axis_order
        return same_order and not fast and self.codecs != "portable" and not self.truncated

    @cached_property
    def transcoded(self) -> str | None:
        """The document, as JSON, with which Zarr's codecs decode and encode a chunk.

        None if blocks and chunks are converted without Zarr's codecs.
        """
        if self.zarr_format == 3:
            is_derived = same_codecs(self.v3_codecs, self.derived_codecs())
        else:
            # only plain types may differ in byte order: fields of a struct must have the stored one
            is_plain = isinstance(self.v2_dtype, str)
            is_stored = is_plain and self.kind.matches_v2_dtype(self.v2_dtype)
            has_dtype = is_stored or self.v2_dtype == self.kind.v2_dtype
            is_derived = has_dtype and self.v2_encoding == self.derived_v2()
        # the length of the data, which is known for numbers only, distinguishes the formats of lz4
        unclear = self.content is not Content.NUMBERS and self.compression.type == "lz4"
        if is_derived and not self.kind.is_widened and not unclear:
            return None
        document = self.document()
        kept = {k: v for k, v in document.items() if k not in ("attributes", "dimension_names")}
        return json.dumps(kept | {"shape": self.chunk_shape}, sort_keys=True)

    def derived_codecs(self) -> list[JSON]:
        """Derive the codecs of a ``zarr.json`` from N5's keys."""
        if self._uses_block_codec:
            stored = compression_to_json(self.dataset.compression)
            configuration: dict[str, JSON] = {"compression": stored, "axis_order": self.axis_order}
            return [{"name": BLOCK_CODEC, "configuration": configuration}]
        codecs: list[JSON] = []
        if self.axis_order == "F" and self.ndim > 1:
            order: JSON = {"order": transposition(self.ndim)}
            codecs.append({"name": "transpose", "configuration": order})
        codecs.append(self._serializer())
        compressor = codec_of(self.compression).zarr_codec(self.compression)
        if compressor is not None:
            name, parameters = compressor
            if name == "blosc":
                parameters = {"typesize": self.kind.dtype.itemsize, **parameters}
            codecs.append({"name": name, "configuration": parameters})
        return codecs

    def _serializer(self) -> JSON:
        match self.content:
            case Content.STRINGS:
                return {"name": "vlen-utf8"}
            case Content.OBJECTS:
                return {"name": "vlen-bytes"}
            case _ if self.kind.has_byte_order:
                return {"name": "bytes", "configuration": {"endian": self.kind.byte_order}}
            case _:
                return {"name": "bytes"}

    def derived_v2(self) -> dict[str, JSON]:
        """Derive compressor, filters and order of a ``.zarray`` from N5's keys."""
        filters = {Content.STRINGS: "vlen-utf8", Content.OBJECTS: "vlen-bytes"}.get(self.content)
        compressor: JSON = codec_of(self.compression).numcodec(self.compression)
        if self._uses_block_codec:
            compressor = {
                "id": NUMCODECS_BLOCK,
                "dtype": self.v2_dtype,
                "block_shape": to_c(self.dataset.block_size),
                "compression": compression_to_json(self.dataset.compression),
            }
        return {
            "compressor": compressor,
            "filters": [{"id": filters}] if filters else None,
            "order": self.axis_order,
        }

    @property
    def _uses_block_codec(self) -> bool:
        """Whether n5zarr's own codec is used, which decodes whole blocks of numbers."""
        is_suitable = self.content is Content.NUMBERS and self.kind.is_native and self.ndim > 0
        # a codec of numcodecs does not get the fill value, with which truncated blocks are padded
        knows_fill = self.zarr_format == 3 or self.kind.fill_is_zero
        return self.codecs == "n5" and is_suitable and knows_fill
