"""Define the types of options that several modules of this package take."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from n5zarr.format.grid import join_blocks

__all__ = ["Chunks", "Decoding", "Region", "StorageOptions", "preferred_chunks"]

_MANY, _FEWER = 2**24, 2**20  # chunks; dask holds all of an array in memory

type StorageOptions = dict[str, Any]
"""Options of the library that reads a URL; only that library knows their types."""

type Chunks = Mapping[Any, int] | Literal["auto"] | None
"""Extent of a block in elements, by dimension. Any: type checkers refuse str for Hashable here."""

type Region = Mapping[str, slice | Literal["auto"]] | Literal["auto"]
"""The part of existing datasets to write, by dimension."""


class Decoding(TypedDict, total=False):
    """Hold the options of :func:`xarray.decode_cf`."""

    mask_and_scale: bool
    decode_times: bool
    concat_characters: bool
    decode_coords: bool
    drop_variables: str | Iterable[Hashable] | None
    use_cftime: bool | None
    decode_timedelta: bool | None


def preferred_chunks(
    dims: Sequence[str], shape: Sequence[int], block: Sequence[int]
) -> dict[str, int]:
    """Return the extent of dask's chunks for ``chunks={}``: blocks, joined if dask cannot hold all.

    Examples
    --------
    >>> preferred_chunks("yx", (5, 7), (2, 3)), preferred_chunks("yx", (10**10, 7), (1, 7))
    ({'y': 2, 'x': 3}, {'y': 16384, 'x': 7})
    """
    n_blocks = math.prod(-(-n // size) for n, size in zip(shape, block, strict=True))
    chunks = join_blocks(shape, block, most=_FEWER) if n_blocks > _MANY else block
    return dict(zip(dims, chunks, strict=True))
