"""Define the types of options that several modules of this package take."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, TypedDict

__all__ = ["Chunks", "Decoding", "Region", "StorageOptions"]

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
