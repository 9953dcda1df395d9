"""How a dataset is shown to Zarr: dtype, codecs and documents.

JSON to JSON; no zarr class is made here. What is shown is standard Zarr: standard codecs and
full-size chunks, so that copying the keys gives a hierarchy that any Zarr implementation reads,
except

 - ``codecs="zarr"``: gzip with ``useZlib``, bzip2, xz and lz4 use numcodecs' names, which
 zarr-python
   knows; ``codecs="portable"`` shows these uncompressed;
 - ``codecs="n5"``: one codec of n5zarr takes whole blocks.

Parameters are brought into the range that Zarr accepts, without touching the N5 document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from n5zarr.codecs.zstd import clamp_level
from n5zarr.errors import N5UnsupportedError
from n5zarr.format.block import MAX_ARRAY_NDIM, BlockHeader, BlockMode
from n5zarr.format.compression import (
    Blosc,
    Bzip2,
    Compression,
    Gzip,
    Jpeg,
    Lz4,
    Lzma,
    Raw,
    Xz,
    Zstd,
    compression_to_json,
)
from n5zarr.format.data_type import DataType
from n5zarr.format.order import AxisOrder, present, to_c, to_n5

if TYPE_CHECKING:
    from collections.abc import Mapping

    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.format.lenient_json import JSON
    from n5zarr.format.order import N5Tuple

__all__ = ["BLOCK_CODEC", "NUMCODECS_BLOCK", "Codecs", "Content", "Presentation"]

type Codecs = Literal["zarr", "n5", "portable"]

BLOCK_CODEC = "n5zarr.block"
NUMCODECS_BLOCK = "n5zarr_block"

_XARRAY_KEY = "_ARRAY_DIMENSIONS"  # what xarray wrote through zarr-python 2
_AXES_KEY = "axes"
_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


class Content(Enum):
    """What the blocks of a dataset hold, and so how their bytes become chunks."""

    NUMBERS = "numbers"
    STRINGS = "strings"
    LABELS = "labels"


@dataclass(frozen=True, kw_only=True)
class Presentation:
    """One dataset as Zarr sees it.

    Parameters
    ----------
    dataset : DatasetAttributes
        What is on disk.
    codecs : {"zarr", "n5", "portable"}
        Which codecs to show, see the module.
    axis_order : {"C", "F"}
        ``"C"``: axes reversed. ``"F"``: in the order of ``dimensions``.
    """

    dataset: DatasetAttributes
    codecs: Codecs
    axis_order: AxisOrder

    def __post_init__(self) -> None:
        data_type = self.dataset.data_type
        if data_type is DataType.OBJECT:
            message = (
                "dataType: 'object' is no array but opaque bytes; "
                "n5zarr.read_block reads its blocks"
            )
            raise N5UnsupportedError(message, kind="data-type")
        if self.dataset.ndim > MAX_ARRAY_NDIM:
            message = f"dimensions: arrays have at most {MAX_ARRAY_NDIM}, got {self.dataset.ndim}"
            raise N5UnsupportedError(message, kind="member")
        if isinstance(self.dataset.compression, Jpeg) and data_type is not DataType.UINT8:
            message = f"compression: jpeg is read for uint8 only, got {data_type}"
            raise N5UnsupportedError(message, kind="compression")

    # what every chunk asks for is worked out once

    @cached_property
    def content(self) -> Content:
        """What the blocks hold."""
        if self.dataset.data_type is DataType.STRING:
            return Content.STRINGS
        return Content.LABELS if self.dataset.is_label_multiset else Content.NUMBERS

    @cached_property
    def whole_blocks(self) -> bool:
        """Whether chunks are whole blocks, header included, for n5zarr's own codec."""
        return self.codecs == "n5" and self.content is Content.NUMBERS

    @property
    def data_type(self) -> DataType:
        """The data type of the elements that are shown."""
        return DataType.UINT64 if self.content is Content.LABELS else self.dataset.data_type

    @cached_property
    def grid(self) -> N5Tuple:
        """Number of blocks along each axis, N5 order."""
        return self.dataset.grid

    @cached_property
    def full_header(self) -> bytes:
        """The header that nearly every full-size block has, so that it need not be parsed."""
        return BlockHeader(mode=BlockMode.DEFAULT, block_shape=self.dataset.block_size).to_bytes()

    @cached_property
    def full_n_bytes(self) -> int:
        """Size of a full-size block before compression."""
        return math.prod(self.dataset.block_size) * self.dataset.data_type.item_size

    @cached_property
    def passes_payloads(self) -> bool:
        """Whether the codecs that are shown take the payload of a block as it is."""
        same = self.compression.type == self.dataset.compression.type
        return same and self.content is Content.NUMBERS

    @cached_property
    def compression(self) -> Compression:
        """The compression of the chunks that are shown, which need not be that of the blocks."""
        stored = self.dataset.compression
        if self.content is not Content.NUMBERS or isinstance(stored, Jpeg):
            return Raw()
        if self.codecs == "portable" and _zarr_v3(stored) is not None and not _is_portable(stored):
            return Raw()
        return _accepted(stored, self.data_type.item_size)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent in elements, in the order that is shown."""
        return present(self.dataset.dimensions, self.axis_order)

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Extent of a chunk in elements, in the order that is shown."""
        return present(self.dataset.block_size, self.axis_order)

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the axes in the order that is shown; None when they have none."""
        named = self._named_axes
        if named is None:
            return None
        names_n5 = to_n5(named[1]) if named[0] == _XARRAY_KEY else named[1]
        return tuple(name or None for name in present(names_n5, self.axis_order))

    @property
    def attributes(self) -> dict[str, JSON]:
        """The users' attributes, without the one that is shown as dimension names."""
        used = self._named_axes[0] if self._named_axes else None
        return {key: value for key, value in self.dataset.attributes.items() if key != used}

    @property
    def _named_axes(self) -> tuple[str, list[str]] | None:
        """Find what names the axes: xarray's attribute (C order) or tensorstore's (N5 order)."""
        for key in (_XARRAY_KEY, _AXES_KEY):
            names = _axis_names(self.dataset.attributes.get(key), self.dataset.ndim)
            if names:
                return key, names
        return None

    def v3_document(self) -> dict[str, JSON]:
        """Make the ``zarr.json`` of the dataset.

        Returns
        -------
        dict
            Zarr v3 array metadata, https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html.
        """
        document: dict[str, JSON] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": self.data_type.value,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk_shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": self._fill_value,
            "codecs": self._v3_codecs(),
            "attributes": self.attributes,
        }
        if self.dimension_names is not None:
            document["dimension_names"] = self.dimension_names
        return document

    def v2_document(self) -> dict[str, JSON]:
        """Make the ``.zarray`` of the dataset.

        Returns
        -------
        dict
            Zarr v2 array metadata. The fill value is null, which reads as 0: xarray would mask a 0.
        """
        is_string = self.content is Content.STRINGS
        return {
            "zarr_format": 2,
            "shape": self.shape,
            "chunks": self.chunk_shape,
            "dtype": "|O" if is_string else self.data_type.dtype.str,
            "compressor": self._v2_compressor(),
            "fill_value": "" if is_string else None,
            "order": self.axis_order,
            "filters": [{"id": "vlen-utf8"}] if is_string else None,
            "dimension_separator": ".",
        }

    @property
    def _fill_value(self) -> JSON:
        if self.content is Content.STRINGS:
            return ""
        return 0.0 if self.data_type.dtype.kind == "f" else 0

    def _v3_codecs(self) -> list[JSON]:
        if self.whole_blocks:
            stored = compression_to_json(self.dataset.compression)
            configuration: dict[str, JSON] = {"compression": stored, "axis_order": self.axis_order}
            return [{"name": BLOCK_CODEC, "configuration": configuration}]
        codecs: list[JSON] = []
        if self.axis_order == "F" and self.dataset.ndim > 1:
            order = tuple(range(self.dataset.ndim))[::-1]
            codecs.append({"name": "transpose", "configuration": {"order": order}})
        if self.content is Content.STRINGS:
            return [*codecs, {"name": "vlen-utf8"}]
        if self.data_type.item_size == 1:
            codecs.append({"name": "bytes"})
        else:
            codecs.append({"name": "bytes", "configuration": {"endian": "big"}})
        compressor = _zarr_v3(self.compression)
        if compressor is not None:
            name, parameters = compressor
            if name == "blosc":
                parameters = {"typesize": self.data_type.item_size, **parameters}
            codecs.append({"name": name, "configuration": parameters})
        return codecs

    def _v2_compressor(self) -> JSON:
        if self.whole_blocks:
            return {
                "id": NUMCODECS_BLOCK,
                "dtype": self.data_type.dtype.str,
                "block_shape": to_c(self.dataset.block_size),
                "compression": compression_to_json(self.dataset.compression),
            }
        return _zarr_v2(self.compression)


def _axis_names(value: JSON, ndim: int) -> list[str]:
    """Read one name per dimension, distinct where not empty; nothing if it is anything else."""
    names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
    given = [name for name in names if name]
    fits = isinstance(value, list) and len(names) == len(value) == ndim
    return names if fits and given and len(set(given)) == len(given) else []


def _is_portable(compression: Compression) -> bool:
    """Whether Zarr v3 specifies a codec for the compression."""
    shown = _zarr_v3(compression)
    return shown is None or not shown[0].startswith("numcodecs.")


def _accepted(compression: Compression, item_size: int) -> Compression:
    """Bring parameters into the range that zarr-python accepts."""
    match compression:
        case Gzip(level=-1):
            return replace(compression, level=6)
        case Zstd():
            return replace(compression, level=clamp_level(compression.level))
        case Blosc():
            # -1 means what c-blosc makes of it; numcodecs is built without snappy
            automatic = 2 if item_size == 1 else 1
            shuffle = automatic if compression.shuffle == -1 else compression.shuffle
            cname = "lz4" if compression.cname == "snappy" else compression.cname
            return replace(compression, shuffle=shuffle, cname=cname)
        case _:
            return compression


def _zarr_v3(compression: Compression) -> tuple[str, Mapping[str, JSON]] | None:
    """Give name and configuration of the codec; None for no compression."""
    match compression:
        case Raw() | Jpeg():
            return None
        case Gzip(use_zlib=True):
            return "numcodecs.zlib", {"level": compression.level}
        case Gzip():
            return "gzip", {"level": compression.level}
        case Zstd():
            return "zstd", {"level": compression.level, "checksum": False}
        case Blosc():
            return "blosc", {
                "cname": compression.cname,
                "clevel": compression.clevel,
                "shuffle": _SHUFFLES[compression.shuffle],
                "blocksize": compression.block_size,
            }
        case _:
            numcodec = _zarr_v2(compression) or {}  # the configuration is the same
            return f"numcodecs.{numcodec.pop('id')}", numcodec


def _zarr_v2(compression: Compression) -> dict[str, JSON] | None:
    """Give numcodecs' configuration; None for no compression."""
    config: dict[str, JSON] | None = None
    match compression:
        case Raw() | Jpeg():
            pass
        case Gzip(use_zlib=use_zlib, level=level):
            config = {"id": "zlib" if use_zlib else "gzip", "level": level}
        case Zstd(level=level):
            config = {"id": "zstd", "level": level}
        case Blosc(cname=cname, clevel=clevel, shuffle=shuffle, block_size=size):
            config = {"id": "blosc", "cname": cname, "clevel": clevel}
            config |= {"shuffle": shuffle, "blocksize": size}
        case Bzip2(block_size=level):
            config = {"id": "bz2", "level": level}
        case Xz() | Lzma():
            preset = compression.preset if isinstance(compression, Xz) else None
            config = {"id": "lzma", "format": 1, "check": -1, "preset": preset, "filters": None}
        case Lz4():
            config = {"id": "lz4", "acceleration": 1}
    return config
