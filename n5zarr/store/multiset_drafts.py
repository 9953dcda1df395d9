"""Drafts of Zarr extensions for label multisets: a data type and two codecs, registered on request.

What: ``label_multiset``, data type and codec (array to bytes; the lists of a chunk, little-endian),
and ``n5_varlen`` with ``n5_label_multiset`` inside (a whole N5 block of mode 1).
Specification: the proposals https://github.com/zarr-developers/zarr-extensions/pull/54, 55 and 56,
as of commits 3c51863, cf9eca3 and d69dff5; they are not accepted, and may change.
Zarr v3: ``"label_multiset"`` as ``data_type``, with ``{"name": "label_multiset"}`` or
``{"name": "n5_varlen", "configuration": {"codecs": [{"name": "n5_label_multiset"}, ...]}}``.
Compatible implementations: none known.
Limits: zarr shows the most frequent label of each voxel, and can only read; ``n5zarr.convert``
copies all labels. Of equally frequent labels the lowest as int64, as in Java; the draft compares
without sign.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self, override

import numpy as np
from zarr.abc.codec import ArrayBytesCodec
from zarr.dtype import UInt64, data_type_registry
from zarr.errors import DataTypeValidationError
from zarr.registry import register_codec

from n5zarr.codecs.block import pad_or_truncate
from n5zarr.codecs.compress import zarr_to_compression
from n5zarr.codecs.label_multiset import decode_labels, multisets_of_draft
from n5zarr.errors import N5UnsupportedError, option_error
from n5zarr.format.compression import Compression, Raw
from n5zarr.format.order import CTuple, to_n5

if TYPE_CHECKING:
    from zarr.abc.buffer import Buffer, NDBuffer

    from n5zarr._zarr import ArraySpec
    from n5zarr.format.lenient_json import JSON

__all__ = [
    "LabelMultisetCodec",
    "LabelMultisetType",
    "N5VarlenCodec",
    "compression_of",
    "register_drafts",
]

NAME = "label_multiset"
VARLEN = "n5_varlen"
IN_VARLEN = "n5_label_multiset"


def register_drafts() -> None:
    """Let zarr read label multisets in the drafts of Zarr extensions, in this process.

    The data type ``label_multiset`` and the codecs ``label_multiset`` and ``n5_varlen`` are
    proposals that may change: arrays show the most frequent label of each voxel, and can only be
    read. :func:`n5zarr.convert` with ``drafts=True`` copies all labels; :func:`n5zarr.sidecar` with
    ``drafts=True`` writes documents for blocks.

    Examples
    --------
    >>> import n5zarr
    >>> n5zarr.register_drafts()
    """
    data_type_registry.register(NAME, LabelMultisetType)
    register_codec(NAME, LabelMultisetCodec)
    register_codec(VARLEN, N5VarlenCodec)


@dataclass(frozen=True, kw_only=True)
class LabelMultisetType(UInt64):
    """The data type: in memory, the most frequent label of each voxel."""

    _zarr_v3_name = NAME  # type: ignore[assignment]
    _zarr_v2_names = ()  # type: ignore[assignment]

    @override
    @classmethod
    def from_native_dtype(cls, dtype: Any) -> NoReturn:
        raise DataTypeValidationError(f"{dtype}: no dtype of numpy is {NAME}")

    @override
    def to_json_scalar(self, data: object, *, zarr_format: Any) -> Any:
        return f"0x{int(data):016X}"  # type: ignore[call-overload]

    @override
    def from_json_scalar(self, data: JSON, *, zarr_format: Any) -> np.uint64:
        if not isinstance(data, str) or not data.startswith("0x"):
            raise TypeError(f"fill_value: expected a label as '0x0000000000000000', got {data!r}")
        return np.uint64(int(data, 16))


class _ReadOnly(ArrayBytesCodec):
    """A codec from which zarr only reads."""

    def _labels(self, stored: memoryview, shape: CTuple) -> np.ndarray:
        raise NotImplementedError

    @override
    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError  # in zarr, this means that the size depends on the data

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        stored = memoryview(np.ascontiguousarray(chunk_data.as_numpy_array()).view("u1"))
        labels = self._labels(stored, CTuple(chunk_spec.shape)).astype("=u8")
        full = pad_or_truncate(labels, CTuple(chunk_spec.shape), chunk_spec.fill_value)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(full)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NoReturn:
        del chunk_data, chunk_spec
        message = f"{NAME}: expected to read, as labels alone would replace multisets; write N5"
        raise N5UnsupportedError(message, kind="read-only")

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NoReturn:
        self._encode_sync(chunk_data, chunk_spec)


@dataclass(frozen=True)
class LabelMultisetCodec(_ReadOnly):
    """The codec of pull request 55: offsets and lists of the voxels of a chunk."""

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Parse the JSON form; the exact inverse of :meth:`to_dict`."""
        if data.get("configuration"):
            raise option_error(f"codec {NAME}: expected no configuration, got {data!r:.80}")
        return cls()

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"name": NAME}

    @override
    def _labels(self, stored: memoryview, shape: CTuple) -> np.ndarray:
        return multisets_of_draft(stored, shape).argmax()


@dataclass(frozen=True)
class N5VarlenCodec(_ReadOnly):
    """The codec of pull requests 54 and 56: an N5 block of mode 1 with label multisets.

    Parameters
    ----------
    codecs : tuple of mapping
        ``n5_label_multiset``, and at most one compressor.
    """

    codecs: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Parse the JSON form; the exact inverse of :meth:`to_dict`."""
        configuration = data.get("configuration")
        given = configuration.get("codecs") if isinstance(configuration, Mapping) else None
        codecs = tuple(c if isinstance(c, Mapping) else {"name": c} for c in given or ())  # type: ignore[union-attr]
        if not codecs or codecs[0].get("name") != IN_VARLEN:
            raise option_error(f"codec {VARLEN}: expected {IN_VARLEN} first, got {given!r:.80}")
        compression_of(codecs[1:])
        return cls(codecs)

    @override
    def to_dict(self) -> dict[str, Any]:
        return {"name": VARLEN, "configuration": {"codecs": [dict(c) for c in self.codecs]}}

    @override
    def _labels(self, stored: memoryview, shape: CTuple) -> np.ndarray:
        compression = compression_of(self.codecs[1:])
        return decode_labels(stored, len(shape), compression, to_n5(shape))


def compression_of(codecs: tuple[Mapping[str, Any], ...]) -> Compression:
    """Return the compression of N5 with the bytes of a chain of codecs from bytes to bytes.

    Raises
    ------
    N5UnrepresentableError
        There is none (``kind="option"``).
    """
    found: Compression | None = Raw()
    if codecs:
        configuration = codecs[0].get("configuration") or {}
        found = zarr_to_compression(str(codecs[0].get("name")), configuration)
    if len(codecs) > 1 or found is None:
        names = [codec.get("name") for codec in codecs]
        raise option_error(f"codecs: expected at most one compressor that N5 has, got {names}")
    return found
