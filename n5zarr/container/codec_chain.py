"""Decode and encode chunks with any chain of codecs, through zarr's own codecs.

An array that zarr created with codecs that N5 lacks continues to write its chunks with them. This
module decodes these chunks to arrays, which become blocks, and encodes arrays to such chunks.
"""

from __future__ import annotations

import json
import warnings
import zlib
from functools import lru_cache
from lzma import LZMAError

import numpy as np

from n5zarr._zarr import REFUSALS, ChunkCodecs, check_codecs
from n5zarr.codecs.buffers import BufferLike
from n5zarr.errors import N5AttributesError, N5Error, N5UnsupportedError, Problem
from n5zarr.format.attributes import ZARR_KEY
from n5zarr.zarr_view.compressors import excess
from n5zarr.zarr_view.dataset_view import DatasetView


def check(view: DatasetView) -> None:
    """Raise if zarr cannot open an array with the record of a dataset, or its codecs cost too much.

    Raises
    ------
    N5AttributesError
        The record has such members (``kind="compression"``).
    """
    record = view.record
    if view.given is None and (record.codecs is not None or record.v2 or record.extra):
        document = view.document() | {"attributes": {}}
        _check(json.dumps(document))


@lru_cache(maxsize=256)
def _check(document: str) -> None:
    too_much = excess(json.loads(document))
    if too_much is not None:
        raise N5AttributesError([Problem((ZARR_KEY,), too_much, "compression")])
    try:
        with warnings.catch_warnings(action="ignore"):  # zarr warns when it opens the array
            check_codecs(json.loads(document))
    except REFUSALS as err:
        message = f"expected codecs that zarr accepts, got the error: {str(err)[:200]}"
        raise N5AttributesError([Problem((ZARR_KEY,), message, "compression")]) from err


@lru_cache(maxsize=256)
def _codecs(document: str) -> ChunkCodecs:
    return ChunkCodecs(json.loads(document))


def _refused(document: str, err: Exception) -> N5UnsupportedError:
    members = json.loads(document)
    codecs = members.get("codecs") or [members.get("filters"), members.get("compressor")]
    return N5UnsupportedError(
        f"codecs {codecs!r:.200}: zarr's error: {str(err)[:200] or repr(err)}", kind="compression"
    )


def decode(chunk: memoryview, document: str) -> np.ndarray:
    """Decode a chunk as Zarr wrote it.

    Parameters
    ----------
    chunk : memoryview
        The bytes of the chunk.
    document : str
        See :attr:`~n5zarr.zarr_view.dataset_view.DatasetView.transcoded`.

    Returns
    -------
    numpy.ndarray
        The full-size chunk, axes in the order of the Zarr array.
    """
    try:
        return _codecs(document).decode(chunk)
    except N5Error:
        raise
    except (*REFUSALS, OSError, EOFError, zlib.error, LZMAError) as err:  # OSError: bz2's, gzip's
        raise _refused(document, err) from err


def encode(array: np.ndarray, document: str) -> BufferLike:
    """Encode a chunk as Zarr reads it; the inverse of :func:`decode`."""
    try:
        return _codecs(document).encode(array)
    except N5Error:
        raise
    except REFUSALS as err:
        raise _refused(document, err) from err
