"""Parse and write the header of a block.

N5 spec, "File-system specification", item 9; for mode 2 ``N5BlockCodecs.java``. All integers are
big-endian:

==========  =========  ==============================================================
mode        uint16     then
==========  =========  ==============================================================
0 default   ``0000``   uint16 ndim; ndim x uint32 size; payload
1 varlength ``0001``   uint16 ndim; ndim x uint32 size; uint32 number of elements; payload
2 object    ``0002``   uint32 number of bytes; payload
==========  =========  ==============================================================

Sizes are in N5 order. Only the payload is compressed; `n5zarr.codecs` decodes it.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Self

from n5zarr.errors import N5BlockError
from n5zarr.format.order import N5Tuple

MAX_BLOCK_BYTES = 2**31 - 1
"""N5 spec, "File-system specification", item 7. Java: a block is one Java array."""

MAX_NDIM = 2**16 - 1
"""N5 spec, "File-system specification", item 9: the number of dimensions is a uint16."""

MAX_ARRAY_NDIM = 64
"""The limit of numpy."""

_NO_SIZES = N5Tuple(())
_MODE = struct.Struct(">H")
_MODE_NDIM = struct.Struct(">HH")
_COUNT = struct.Struct(">I")


class BlockMode(IntEnum):
    """How the elements of a block are counted.

    N5 spec, "File-system specification", item 9.
    """

    DEFAULT = 0
    VARLENGTH = 1
    OBJECT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockHeader:
    """The header of a stored block.

    Parameters
    ----------
    mode : BlockMode
        Mode of the block, which decides the layout of the header.
    block_shape : tuple of int
        Extent of the block in elements, N5 order; empty in mode 2.
    n_elements : int or None
        Mode 1: number of elements in the payload, which may differ from that of the extent.
        Mode 2: number of bytes. Mode 0: None.
    """

    mode: BlockMode
    block_shape: N5Tuple = _NO_SIZES
    n_elements: int | None = None

    @property
    def n_bytes(self) -> int:
        """Length of the header itself, in bytes."""
        sizes = 0 if self.mode is BlockMode.OBJECT else 2 + 4 * len(self.block_shape)
        return 2 + sizes + (0 if self.mode is BlockMode.DEFAULT else 4)

    @property
    def n_payload_elements(self) -> int:
        """Number of elements that the payload decodes to."""
        return math.prod(self.block_shape) if self.n_elements is None else self.n_elements

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, /) -> Self:
        """Parse the header at the start of a stored block.

        N5 spec, "File-system specification", item 9.

        Parameters
        ----------
        data : bytes or memoryview
            The stored block, header first. The payload is not read.

        Returns
        -------
        BlockHeader
            With ``block_shape`` in N5 order (fastest-varying axis first), in elements.

        Raises
        ------
        N5BlockError
            ``data`` is shorter than the header it announces, or the mode is none of 0, 1, 2
            (``kind="header"``).

        Examples
        --------
        The example block of the specification:

        >>> BlockHeader.from_bytes(bytes.fromhex("0000 0003 00000001 00000002 00000003"))
        BlockHeader(mode=<BlockMode.DEFAULT: 0>, block_shape=(1, 2, 3), n_elements=None)
        """
        if len(data) < _MODE_NDIM.size:
            raise _truncated(_MODE_NDIM.size, len(data), "the shortest header")
        mode, ndim = _MODE_NDIM.unpack_from(data)
        if mode > BlockMode.OBJECT:
            message = f"block header: mode: expected 0, 1 or 2, got {mode} (not an N5 block?)"
            raise N5BlockError(message, kind="header")
        if mode == BlockMode.OBJECT:
            if len(data) < _MODE.size + _COUNT.size:
                raise _truncated(_MODE.size + _COUNT.size, len(data), "mode 2")
            return cls(mode=BlockMode.OBJECT, n_elements=_COUNT.unpack_from(data, 2)[0])
        n_bytes = 4 + 4 * ndim + 4 * mode
        if len(data) < n_bytes:
            raise _truncated(n_bytes, len(data), f"{ndim} dimensions in mode {mode}")
        sizes = struct.unpack_from(f">{ndim + mode}I", data, 4)
        if mode == BlockMode.DEFAULT:
            return cls(mode=BlockMode.DEFAULT, block_shape=N5Tuple(sizes))
        return cls(mode=BlockMode.VARLENGTH, block_shape=N5Tuple(sizes[:-1]), n_elements=sizes[-1])

    def to_bytes(self) -> bytes:
        """Write the header.

        N5 spec, "File-system specification", item 9.

        Returns
        -------
        bytes
            What :meth:`from_bytes` reads.

        Examples
        --------
        >>> BlockHeader(mode=BlockMode.DEFAULT, block_shape=(1, 2, 3)).to_bytes().hex()
        '00000003000000010000000200000003'
        """
        count = () if self.mode is BlockMode.DEFAULT else (self.n_elements or 0,)
        if self.mode is BlockMode.OBJECT:
            return _MODE.pack(self.mode) + _COUNT.pack(*count)
        sizes = (*self.block_shape, *count)
        return struct.pack(f">HH{len(sizes)}I", self.mode, len(self.block_shape), *sizes)


def _truncated(expected: int, n_bytes: int, what: str) -> N5BlockError:
    wanted = f"expected {expected} bytes for {what}"
    return N5BlockError(f"block header: {wanted}, got {n_bytes} (incomplete write?)", kind="header")
