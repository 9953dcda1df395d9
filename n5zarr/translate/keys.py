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
from typing import TYPE_CHECKING, Literal

from n5zarr.format.order import present
from n5zarr.format.path import check_key, join

if TYPE_CHECKING:
    from n5zarr.format.order import AxisOrder, N5Tuple

__all__ = ["METADATA_NAMES", "ChunkKey", "MetadataKey", "ZarrFormat", "chunk_key", "parse_key"]

type ZarrFormat = Literal[2, 3]

METADATA_NAMES: dict[ZarrFormat, tuple[str, ...]] = {
    2: (".zarray", ".zattrs", ".zgroup"),
    3: ("zarr.json",),
}
"""Names of Zarr's documents, sorted."""

_INDEX = r"(?:0|[1-9][0-9]{0,18})"
_CHUNK = {
    3: re.compile(rf"(?:(.*)/)?c/({_INDEX}(?:/{_INDEX})*)", re.ASCII),
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

    def grid_position(self, axis_order: AxisOrder) -> N5Tuple:
        """Give the position of the block, N5 order.

        Examples
        --------
        >>> ChunkKey("em/s0", (2, 1, 0)).grid_position("C")
        (0, 1, 2)
        """
        return present(self.coords, axis_order)


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
    coords = tuple(map(int, found.group(2).split(_SEPARATOR[zarr_format])))
    return ChunkKey(found.group(1) or "", coords)


def chunk_key(
    path: str, grid_position: N5Tuple, zarr_format: ZarrFormat, axis_order: AxisOrder
) -> str:
    """Give the Zarr key of a block.

    Examples
    --------
    >>> chunk_key("em/s0", (0, 1, 2), 3, "C"), chunk_key("em/s0", (0, 1, 2), 2, "C")
    ('em/s0/c/2/1/0', 'em/s0/2.1.0')
    """
    name = _SEPARATOR[zarr_format].join(map(str, present(grid_position, axis_order)))
    return join(path, "c" if zarr_format == 3 else "", name)
