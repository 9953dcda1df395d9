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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.path import check_key, join

__all__ = [
    "DEFAULT_NAMES",
    "METADATA_NAMES",
    "ChunkKey",
    "ChunkNames",
    "MetadataKey",
    "ZarrFormat",
    "parse_key",
]

type ZarrFormat = Literal[2, 3]

METADATA_NAMES: dict[ZarrFormat, tuple[str, ...]] = {
    2: (".zarray", ".zattrs", ".zgroup", ".zmetadata"),
    3: ("zarr.json",),
}
"""Names of Zarr's documents, sorted."""

_INDEX = r"(?:0|[1-9][0-9]{0,18})"
_CHUNK = {
    3: re.compile(rf"(?:(.*)/)?c(?:/({_INDEX}(?:/{_INDEX})*))?", re.ASCII | re.DOTALL),
    2: re.compile(rf"(?:(.*)/)?({_INDEX}(?:\.{_INDEX})*)", re.ASCII | re.DOTALL),
}


class ChunkNames(NamedTuple):
    """How the chunks of an array are named: ``c/2/1/0``, ``2.1.0`` and the like.

    Examples
    --------
    >>> DEFAULT_NAMES[3].key("em/s0", (2, 1, 0)), DEFAULT_NAMES[2].key("em/s0", (2, 1, 0))
    ('em/s0/c/2/1/0', 'em/s0/2.1.0')
    >>> DEFAULT_NAMES[3].key("scalar", ()), DEFAULT_NAMES[2].key("scalar", ())
    ('scalar/c', 'scalar/0')
    >>> ChunkNames("c", ".").coords("c.2.1.0")
    (2, 1, 0)
    """

    prefix: str
    separator: str

    def key(self, path: str, coords: tuple[int, ...]) -> str:
        """Give the key of a chunk, from its place in the grid that is shown."""
        parts = [self.prefix, *map(str, coords)] if self.prefix else [*map(str, coords)]
        return join(path, self.separator.join(parts) or "0")

    def coords(self, name: str) -> tuple[int, ...] | None:
        """Read the name of a chunk below its array; None if it is none."""
        parts = name.split(self.separator)
        if self.prefix and parts.pop(0) != self.prefix:
            return None
        is_index = all(re.fullmatch(_INDEX, part, re.ASCII) for part in parts)
        return tuple(map(int, parts)) if is_index else None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read how the chunks of a ``zarr.json`` or ``.zarray`` are named.

        Raises
        ------
        N5UnrepresentableError
            By no scheme of Zarr (``kind="member"``).
        """
        if document["zarr_format"] == 2:
            names = cls("", document.get("dimension_separator", "."))
        else:
            encoding = document.get("chunk_key_encoding", "default")
            name, configuration = encoding, dict[str, Any]()
            if isinstance(encoding, Mapping):
                name, configuration = encoding.get("name"), encoding.get("configuration") or {}
            prefix, separator = {"default": ("c", "/"), "v2": ("", ".")}.get(str(name), ("?", "?"))
            names = cls(prefix, configuration.get("separator", separator))
        if names.prefix == "?" or names.separator not in ("/", "."):
            message = f"chunk keys: expected the default or v2, with '/' or '.', got {names}"
            raise N5UnrepresentableError(message, kind="member")
        return names


DEFAULT_NAMES: Mapping[ZarrFormat, ChunkNames] = {
    3: ChunkNames("c", "/"),
    2: ChunkNames("", "."),
}
"""What is shown; an array that was created with other names keeps them while its store lives."""


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
    separator = DEFAULT_NAMES[zarr_format].separator
    coords = tuple(map(int, indices.split(separator))) if indices else ()
    return ChunkKey(found.group(1) or "", coords)
