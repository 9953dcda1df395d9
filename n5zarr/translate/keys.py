"""Keys: Zarr's to N5's and back.

==================================================  =================================
Zarr                                                N5
==================================================  =================================
``em/s0/zarr.json`` (v3)                            ``em/s0/attributes.json``
``em/s0/.zarray``, ``.zgroup``, ``.zattrs`` (v2)    ``em/s0/attributes.json``
``em/s0/c/2/1/0`` (v3), ``em/s0/2.1.0`` (v2)        ``em/s0/0/1/2`` (C order to N5 order)
==================================================  =================================

Which keys are chunks can be told from the key alone: a node's name never looks like the last part
of a chunk key without the store finding out, because it asks the node for its number of dimensions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from n5zarr.format.path import check_key, join

__all__ = ["METADATA_NAMES", "ChunkKey", "MetadataKey", "ZarrFormat", "chunk_key", "parse_key"]

type ZarrFormat = Literal[2, 3]

METADATA_NAMES: dict[ZarrFormat, tuple[str, ...]] = {
    2: (".zarray", ".zattrs", ".zgroup", ".zmetadata"),
    3: ("zarr.json",),
}
"""Names of Zarr's documents, sorted."""

_INDEX = r"(?:0|[1-9][0-9]{0,18})"
_CHUNK = {
    3: re.compile(rf"(?:(.*)/)?c(?:/({_INDEX}(?:/{_INDEX})*))?", re.ASCII),
    2: re.compile(rf"(?:(.*)/)?({_INDEX}(?:\.{_INDEX})*)", re.ASCII),
}
_SEPARATOR = {3: "/", 2: "."}


@dataclass(frozen=True, slots=True)
class MetadataKey:
    """The key of a Zarr document: which one, of which node."""

    path: str
    name: str


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """The key of a chunk: of which node, and where in its grid, in the order that is shown."""

    path: str
    coords: tuple[int, ...]


def parse_key(key: str, zarr_format: ZarrFormat) -> MetadataKey | ChunkKey | None:
    """Read a Zarr key.

    Parameters
    ----------
    key : str
        Any key that Zarr may ask for.
    zarr_format : {2, 3}
        The format that is presented; keys of the other one are none.

    Returns
    -------
    MetadataKey, ChunkKey or None
        None for a key that no hierarchy of this format has.

    Raises
    ------
    N5UnrepresentableError
        The key leaves the container or cannot be a path (``kind="path"``).

    Examples
    --------
    >>> parse_key("em/s0/c/2/1/0", 3)
    ChunkKey(path='em/s0', coords=(2, 1, 0))
    >>> parse_key("em/s0/2.1.0", 2)
    ChunkKey(path='em/s0', coords=(2, 1, 0))
    >>> parse_key("zarr.json", 3)
    MetadataKey(path='', name='zarr.json')
    >>> parse_key("em/s0/.zarray", 3) is None
    True
    """
    check_key(key)
    path, _, name = key.rpartition("/")
    if name in METADATA_NAMES[zarr_format]:
        return MetadataKey(path, name)
    found = _CHUNK[zarr_format].fullmatch(key)
    if found is None:
        return None
    indices = found.group(2)  # v3: none for an array without dimensions
    coords = tuple(map(int, indices.split(_SEPARATOR[zarr_format]))) if indices else ()
    return ChunkKey(found.group(1) or "", coords)


def chunk_key(path: str, coords: tuple[int, ...], zarr_format: ZarrFormat) -> str:
    """Give the key of a chunk, from its place in the grid that is shown.

    Examples
    --------
    >>> chunk_key("em/s0", (2, 1, 0), 3), chunk_key("em/s0", (2, 1, 0), 2)
    ('em/s0/c/2/1/0', 'em/s0/2.1.0')
    >>> chunk_key("scalar", (), 3), chunk_key("scalar", (), 2)
    ('scalar/c', 'scalar/0')
    """
    name = _SEPARATOR[zarr_format].join(map(str, coords))
    return join(path, "c" if zarr_format == 3 else "", name or ("0" if zarr_format == 2 else ""))
