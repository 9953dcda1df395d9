"""Decode LZ4, blosclz, snappy and shuffled bytes in plain Python, from their descriptions.

Nothing of n5zarr, and none of the libraries that it calls, is used here: what a damaged payload
holds is compared with this.
"""

from __future__ import annotations

import numpy as np

__all__ = ["DamagedError", "bit_unshuffled", "blosclz", "lz4_block", "snappy", "unshuffled"]

_MAX_DISTANCE = 8191  # of blosclz, where a match needs no 16 bits


class DamagedError(Exception):
    """An error for compressed bytes that cannot be decoded."""


def lz4_block(  # noqa: C901 - one loop, as in its description
    data: bytes, n_bytes: int, history: bytes = b""
) -> bytes:
    """Decode an LZ4 block by "LZ4 Block Format Description", 1.6.

    It decodes to ``n_bytes`` at most; matches may begin in ``history``, which was decoded before.
    """
    out, at = bytearray(history), 0
    most = len(history) + n_bytes

    def length(start: int) -> int:
        nonlocal at
        if start == 15:
            while True:
                if at >= len(data):
                    raise DamagedError
                start += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        return start

    while True:
        if at >= len(data):
            raise DamagedError
        token = data[at]
        at += 1
        n = length(token >> 4)
        if at + n > len(data) or len(out) + n > most:
            raise DamagedError
        out += data[at : at + n]
        at += n
        if at == len(data):
            return bytes(out[len(history) :])
        distance = int.from_bytes(data[at : at + 2], "little")
        at += 2
        if at > len(data):
            raise DamagedError
        n = length(token & 15) + 4
        if distance == 0 and len(out) + n <= most:
            out += bytes(n)  # not allowed, but liblz4 and all that use it make zeros of it
        else:
            _copy(out, distance, n, most)


def _copy(out: bytearray, distance: int, n: int, most: int) -> None:
    """Append ``n`` bytes from some distance back, which may overlap with the new ones."""
    begin = len(out) - distance
    if distance == 0 or begin < 0 or len(out) + n > most:
        raise DamagedError
    piece = out[begin : begin + n]
    out += (piece * (n // len(piece) + 1))[:n]


def blosclz(  # noqa: C901, PLR0912 - one loop, as in its source
    data: bytes, n_bytes: int
) -> bytes:
    """Decode a stream of blosclz, as blosclz.c of c-blosc 1."""
    out, at = bytearray(), 0

    def take() -> int:
        nonlocal at
        if at >= len(data):
            raise DamagedError
        at += 1
        return data[at - 1]

    control = take() & 31
    while True:
        if control < 32:
            literals = data[at : at + control + 1]
            if len(literals) <= control or len(out) + len(literals) > n_bytes:
                raise DamagedError
            out += literals
            at += len(literals)
        else:
            n, distance = (control >> 5) - 1, (control & 31) << 8
            if n == 6:
                while True:
                    more = take()
                    n += more
                    if more != 255:
                        break
            code = take()
            if code == 255 and distance == 31 << 8:
                distance = (take() << 8) + take() + _MAX_DISTANCE
            else:
                distance += code
            if at >= len(data):  # a stream ends with bytes as they are
                raise DamagedError
            _copy(out, distance + 1, n + 3, n_bytes)
        if at >= len(data):
            return bytes(out)
        control = take()


def snappy(  # noqa: C901 - one loop, as in its description
    data: bytes, n_bytes: int
) -> bytes:
    """Decode a raw stream of snappy, by its format_description.txt."""
    at, n_all, shift = 0, 0, 0
    while True:
        byte = data[at : at + 1] or _stop()
        n_all |= (byte[0] & 127) << shift
        at, shift = at + 1, shift + 7
        if byte[0] < 128:
            break
    if n_all != n_bytes:
        raise DamagedError
    out = bytearray()
    while at < len(data):
        tag = data[at]
        kind, n = tag & 3, tag >> 2
        at += 1
        if kind == 0:
            if n >= 60:
                n_length = n - 59
                n = int.from_bytes(data[at : at + n_length], "little")
                at += n_length
            literals = data[at : at + n + 1]
            if len(literals) != n + 1:
                raise DamagedError
            out += literals
            at += n + 1
            continue
        n_offset = (0, 1, 2, 4)[kind]
        if at + n_offset > len(data):
            raise DamagedError
        offset = int.from_bytes(data[at : at + n_offset], "little")
        at += n_offset
        if kind == 1:
            offset, n = offset | tag >> 5 << 8, (n & 7) + 3
        _copy(out, offset, n + 1, n_bytes)
    return bytes(out)


def _stop() -> bytes:
    raise DamagedError


def unshuffled(data: bytes, item_size: int) -> bytes:
    """Undo blosc's shuffle: all first bytes, all second bytes, ...; the remainder stays."""
    n = len(data) // item_size
    whole = np.frombuffer(data, "u1", n * item_size)
    return whole.reshape(item_size, n).T.tobytes() + data[n * item_size :]


def bit_unshuffled(data: bytes, item_size: int) -> bytes:
    """Undo blosc's bit shuffle, which leaves a remainder of less than eight items."""
    n = len(data) // item_size
    if n % 8:
        return data
    planes = np.frombuffer(data, "u1", n * item_size).reshape(item_size * 8, n // 8)
    bits = np.unpackbits(planes, axis=1, bitorder="little")  # (bit of the item, item)
    return np.packbits(bits.T, axis=1, bitorder="little").tobytes() + data[n * item_size :]
