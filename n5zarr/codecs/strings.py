r"""Split and join the payloads of blocks that hold strings, or bytes of any length.

n5 ``StringBlockCodec``: the payload is the UTF-8 of all strings, each followed by NUL, first axis
of N5 order fastest. n5 4.x writes mode 1 with the number of bytes; 3.x wrote mode 0 if that
happened to equal the number of strings.

Java's own reader drops empty strings at the end of a block; here they are kept. A NUL inside a
string is written as the bytes C0 80, which are never valid UTF-8 (Java reads them as U+FFFD).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numcodecs.vlen import VLenBytes, VLenUTF8

from n5zarr.codecs.buffers import BufferLike, damaged
from n5zarr.errors import N5UnrepresentableError

_NUL = b"\xc0\x80"
_MAX_PADDING = 2**20  # missing strings; a header of 12 bytes must not make a list of 16 GiB


def split_strings(data: BufferLike, n_strings: int) -> list[str]:
    r"""Split the decompressed payload of a block into its strings.

    Parameters
    ----------
    data : bytes-like
        The strings, each followed by NUL; the last NUL may be missing.
    n_strings : int
        Number of strings in the block; strings missing at the end are empty.

    Returns
    -------
    list of str
        ``n_strings`` strings; bytes that are not UTF-8 become U+FFFD, as in Java.

    Raises
    ------
    N5BlockError
        There are more than ``n_strings`` strings, or a million fewer (``kind="payload"``).

    Examples
    --------
    >>> split_strings(b"a\0bb\0\0", 4)
    ['a', 'bb', '', '']
    """
    most = n_strings + 1  # enough to detect too many; a list of all could exhaust the memory
    try:
        strings = bytes(data).decode().split("\0", most)
    except UnicodeDecodeError:  # NUL in a string, or damage
        pieces = bytes(data).split(b"\0", most)
        strings = [piece.replace(_NUL, b"\0").decode("utf-8", "replace") for piece in pieces]
    if strings[-1] == "":
        strings.pop()
    if not n_strings - _MAX_PADDING <= len(strings) <= n_strings:
        more = " or more" if len(strings) > n_strings else ""
        raise damaged(f"expected {n_strings} strings, got {len(strings)}{more}")
    return strings + [""] * (n_strings - len(strings))


def join_strings(strings: Iterable[object]) -> bytes:
    r"""Join strings into the payload of a block, before compression.

    Raises
    ------
    N5UnrepresentableError
        A value is not a string, or has an unpaired surrogate (``kind="data-type"``).

    Examples
    --------
    >>> join_strings(["a", "bb", ""])
    b'a\x00bb\x00\x00'
    """
    return b"".join(_utf8(s).replace(b"\0", _NUL) + b"\0" for s in strings)


def _utf8(string: object) -> bytes:
    try:
        if isinstance(string, str):
            return string.encode()
    except UnicodeEncodeError:
        pass
    message = f"expected strings of Unicode text, got {string!r:.80}; N5 cannot hold it as a string"
    raise N5UnrepresentableError(message, kind="data-type")


def vlen_utf8(strings: Sequence[str]) -> bytes:
    r"""Encode strings as Zarr's ``vlen-utf8`` codec does: counts and lengths in little-endian.

    Examples
    --------
    >>> vlen_utf8(["é"])
    b'\x01\x00\x00\x00\x02\x00\x00\x00\xc3\xa9'
    """
    array = np.empty(len(strings), object)
    array[:] = strings
    return bytes(VLenUTF8().encode(array))


def split_vlen_utf8(data: BufferLike) -> np.ndarray:
    """Decode what :func:`vlen_utf8` encodes into a 1-D array of dtype object."""
    try:
        strings: np.ndarray = VLenUTF8().decode(bytes(data))
    except (ValueError, RuntimeError) as err:
        raise damaged(f"expected a chunk of vlen-utf8, got {err}") from err
    return strings


def join_bytes(array: np.ndarray) -> bytes:
    r"""Join bytes of any length into the payload of an ``object`` block, before compression.

    Parameters
    ----------
    array : numpy.ndarray
        Bytes, dtype object.

    Returns
    -------
    bytes
        The elements as Zarr's ``vlen-bytes`` codec encodes them, C order.

    Examples
    --------
    >>> import numpy as np
    >>> join_bytes(np.array([b"a", b""], object))
    b'\x02\x00\x00\x00\x01\x00\x00\x00a\x00\x00\x00\x00'
    """
    return bytes(VLenBytes().encode(array.ravel()))


def split_bytes(data: BufferLike, n_values: int) -> np.ndarray:
    """Split the payload of an ``object`` block that holds bytes of any length.

    Returns
    -------
    numpy.ndarray
        1-D, dtype object.

    Raises
    ------
    N5BlockError
        The payload does not have the format of :func:`join_bytes`, or holds another number of
        values (``kind="payload"``).
    """
    n_stored = int.from_bytes(bytes(data[:4]), "little")
    if len(data) < 4 or n_stored != n_values:
        raise damaged(f"expected {n_values} values of bytes, got {n_stored}")
    if len(data) < 4 + 4 * n_values:  # 4 bytes of length each: numcodecs allocates first
        raise damaged(f"expected {n_values} values of bytes, got {len(data)} bytes in total")
    try:
        values: np.ndarray = VLenBytes().decode(bytes(data))
    except (ValueError, RuntimeError) as err:
        raise damaged(f"expected values of bytes, got {err}") from err
    return values
