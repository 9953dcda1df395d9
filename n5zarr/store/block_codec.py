"""Codecs that read and write whole N5 blocks: one for zarr, one for numcodecs.

What: array to bytes, one whole N5 block, header included. Used by ``N5Store(..., codecs="n5")``,
whose errors then name the block, and by services that deliver N5 blocks.
Specification: N5 spec, "File-system specification", items 8 and 9, in :mod:`n5zarr.codecs.block`.
Zarr v3: ``{"name": "n5zarr.block", "configuration": {"compression": {...}, "axis_order": "C"}}``.
Zarr v2: ``{"id": "n5zarr_block", "dtype": ">u2", "block_shape": [...], "compression": {...}}``.
Compatible implementations: none; the blocks are N5's, but the names of the codecs are n5zarr's own.
Limits: numbers only. Reads truncated and padded blocks; writes full-size ones, because a codec does
not know where the array ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, override

import numpy as np
from numcodecs.abc import Codec
from zarr.abc.buffer import Buffer, NDBuffer
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
from zarr.abc.store import ByteGetter, SyncByteGetter

from n5zarr.codecs.block import decode_full, encode_payload
from n5zarr.errors import ErrorsAt, N5UnrepresentableError, option_error
from n5zarr.format.attributes import DatasetAttributes
from n5zarr.format.compression import Compression, Gzip, compression_to_json, parse_compression
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, CTuple, N5Tuple, from_presented, to_n5
from n5zarr.storage.ending import on_thread
from n5zarr.zarr_view.dataset_view import BLOCK_CODEC, NUMCODECS_BLOCK, DatasetView

if TYPE_CHECKING:
    from n5zarr._zarr import ArraySpec, ChunkGridMetadata, SelectorTuple, ZDType


def _data_type(dtype: np.dtype) -> DataType:
    name = dtype.newbyteorder("=").name
    if name not in DataType:
        message = f"dtype {name}: expected [u]int8 to 64, float32 or float64; convert first"
        raise N5UnrepresentableError(message, kind="data-type")
    return DataType(name)


@dataclass(frozen=True)
class N5BlockCodec(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """Whole N5 blocks as a zarr serializer.

    Parameters
    ----------
    compression : Compression, optional
        The compression of the payloads; gzip by default.
    axis_order : {"C", "F"}, optional
        ``"C"``: the axes of a chunk are ``(z, y, x)``. ``"F"``: ``(x, y, z)``.

    Examples
    --------
    >>> N5BlockCodec().to_dict()["configuration"]["compression"]
    {'type': 'gzip', 'useZlib': False, 'level': 6}
    """

    compression: Compression = field(default_factory=Gzip)
    axis_order: AxisOrder = "C"

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Parse the JSON form; the exact inverse of :meth:`to_dict`.

        Raises
        ------
        N5UnrepresentableError
            The configuration has unknown members or an unknown axis order (``kind="option"``).
        N5AttributesError
            The compression is unknown or has invalid members.
        """
        configuration = data.get("configuration", {})
        if not isinstance(configuration, Mapping) or set(configuration) - {
            "compression",
            "axis_order",
        }:
            raise option_error(
                f"codec {BLOCK_CODEC}: expected compression and axis_order, got "
                f"{configuration!r:.80}"
            )
        axis_order = configuration.get("axis_order", "C")
        if axis_order not in ("C", "F"):
            raise option_error(
                f"codec {BLOCK_CODEC}: axis_order: expected 'C' or 'F', got {axis_order!r:.80}"
            )
        return cls(
            parse_compression(configuration.get("compression", {"type": "gzip"})), axis_order
        )

    @override
    def to_dict(self) -> dict[str, Any]:
        configuration = {
            "compression": compression_to_json(self.compression),
            "axis_order": self.axis_order,
        }
        return {"name": BLOCK_CODEC, "configuration": configuration}

    def standard(self, ndim: int, dtype: np.dtype) -> list[JSON]:
        """Return standard Zarr codecs of the same compression, for arrays outside of N5.

        Parameters
        ----------
        ndim : int
            Number of dimensions of the array.
        dtype : numpy.dtype
            Data type of the array.

        Returns
        -------
        list
            The codecs in their JSON form.

        Raises
        ------
        N5UnrepresentableError
            N5 has no such data type (``kind="data-type"``).
        """
        dataset = DatasetAttributes(
            dimensions=N5Tuple((1,) * ndim),
            block_size=N5Tuple((1,) * ndim),
            data_type=_data_type(dtype),
            compression=self.compression,
            attributes={},
        )
        return DatasetView(
            dataset=dataset, codecs="zarr", axis_order=self.axis_order
        ).derived_codecs()

    def validate(
        self,
        *,
        shape: tuple[int, ...],
        dtype: ZDType,
        chunk_grid: ChunkGridMetadata,
    ) -> None:
        """Raise if blocks cannot hold the array.

        Raises
        ------
        N5UnrepresentableError
            N5 has no such data type (``kind="data-type"``), or the array has no dimensions
            (``kind="header"``).
        """
        _data_type(dtype.to_native_dtype())
        if not shape:
            raise N5UnrepresentableError("shape (): expected at least one dimension", kind="header")

    @override
    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        raise NotImplementedError  # in zarr, this means that the size depends on the data

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        stored = memoryview(np.ascontiguousarray(chunk_data.as_numpy_array()).view("u1"))
        data_type = _data_type(chunk_spec.dtype.to_native_dtype())
        block_size = from_presented(chunk_spec.shape, self.axis_order)
        fill_value = 0 if chunk_spec.fill_value is None else chunk_spec.fill_value
        chunk = decode_full(stored, block_size, data_type, self.compression, fill_value)
        # stays big-endian: copying it into an output swaps the bytes in the same pass
        presented = chunk if self.axis_order == "C" else chunk.transpose()
        return chunk_spec.prototype.nd_buffer.from_numpy_array(presented)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        presented = chunk_data.as_numpy_array()
        chunk = presented if self.axis_order == "C" else presented.transpose()
        data_type = _data_type(chunk_spec.dtype.to_native_dtype())
        return chunk_spec.prototype.buffer.from_bytes(
            encode_payload(chunk, data_type, self.compression)
        )

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await on_thread(self._decode_sync, chunk_data, chunk_spec)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        return await on_thread(self._encode_sync, chunk_data, chunk_spec)

    # zarr passes the source of the bytes only to codecs that decode partially; errors need it to
    # name the block

    async def _decode_partial_single(
        self, byte_getter: ByteGetter, selection: SelectorTuple, chunk_spec: ArraySpec
    ) -> NDBuffer | None:
        stored = await byte_getter.get(chunk_spec.prototype)
        if stored is None:
            return None
        return await on_thread(self._decode_part, stored, byte_getter, selection, chunk_spec)

    def _decode_partial_sync(
        self,
        byte_getter: SyncByteGetter,
        selection: SelectorTuple,
        chunk_spec: ArraySpec,
    ) -> NDBuffer | None:
        stored = byte_getter.get_sync(prototype=chunk_spec.prototype)
        if stored is None:
            return None
        return self._decode_part(stored, byte_getter, selection, chunk_spec)

    def _decode_part(
        self, stored: Buffer, source: object, selection: SelectorTuple, chunk_spec: ArraySpec
    ) -> NDBuffer:
        with ErrorsAt(partial(_where, source)):
            return self._decode_sync(stored, chunk_spec)[selection]


def _where(source: object) -> str:
    """Return the name of a ``StorePath``'s block: its grid position if the store is an N5 store."""
    store = getattr(source, "store", None)
    if store is None:  # a chunk inside of a shard, whose text has the bytes of the others
        return "a block in a shard"
    locate = getattr(store, "locate", None)
    return str(locate(getattr(source, "path", ""))) if locate else str(source)


class N5Block(Codec):
    """Whole N5 blocks as a numcodecs codec; replaces zarr-python 2's ``N5ChunkWrapper``.

    Parameters
    ----------
    dtype : str or numpy.dtype
        Data type that :meth:`decode` returns and :meth:`encode` takes, such as ``">u2"``.
    block_shape : iterable of int
        Shape of a full block, C order, in elements.
    compression : mapping, optional
        The ``compression`` object of the dataset; gzip by default.
    """

    codec_id = NUMCODECS_BLOCK

    def __init__(
        self,
        dtype: str | np.dtype,
        block_shape: Iterable[int],
        compression: Mapping[str, JSON] | None = None,
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.block_shape = tuple(block_shape)
        self._data_type = _data_type(self.dtype)
        self._compression = parse_compression(dict(compression or {"type": "gzip"}))

    def encode(self, buf: object) -> bytes:
        """Encode a full-size block, header included.

        Parameters
        ----------
        buf : array-like or bytes-like
            ``prod(block_shape)`` elements of ``dtype``, C order.
        """
        elements = np.asarray(buf).ravel(order="K")  # in the order of memory, even if that is F
        if elements.dtype != self.dtype:
            elements = np.frombuffer(np.ascontiguousarray(elements), self.dtype)
        return encode_payload(
            elements.reshape(self.block_shape), self._data_type, self._compression
        )

    def decode(self, buf: object, out: np.ndarray | None = None) -> np.ndarray:
        """Decode a block and bring it to full size.

        Parameters
        ----------
        buf : bytes-like
            The stored block, header first.
        out : numpy.ndarray, optional
            Array for the result.

        Returns
        -------
        numpy.ndarray
            1-D, ``prod(block_shape)`` elements of ``dtype``, C order; ``out`` if it was given.

        Raises
        ------
        N5BlockError
            The header or payload does not fit the block shape or data type.
        """
        stored = memoryview(np.ascontiguousarray(np.asarray(memoryview(buf))).view("u1"))  # type: ignore[arg-type]
        block_size = to_n5(CTuple(self.block_shape))
        block = decode_full(stored, block_size, self._data_type, self._compression)
        chunk = block.reshape(-1).astype(self.dtype, copy=False)
        if out is None:
            return chunk
        np.asarray(out).reshape(-1).view(self.dtype)[...] = chunk
        return out

    def get_config(self) -> dict[str, JSON]:
        """Return the JSON form that ``.zarray`` holds."""
        return {
            "id": self.codec_id,
            "dtype": self.dtype.str,
            "block_shape": list(self.block_shape),
            "compression": compression_to_json(self._compression),
        }
