"""Parse and make the keys of Zarr, each of which corresponds to a key of N5.

N5 spec, "File-system specification", items 2 and 5 (the right column):

==================================================  =================================
Zarr                                                N5
==================================================  =================================
``em/s0/zarr.json`` (v3)                            ``em/s0/attributes.json``
``em/s0/.zarray``, ``.zgroup``, ``.zattrs`` (v2)    ``em/s0/attributes.json``
``em/s0/c/2/1/0`` (v3), ``em/s0/2.1.0`` (v2)        ``em/s0/0/1/2`` (C order to N5 order)
==================================================  =================================

A key is parsed without its node. A node may be named like a part of a chunk key, ``c`` or ``0``:
the store then compares the number of coordinates with that of the node's dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.format.path import check_key, join

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
    """The names of the chunks of an array, such as ``c/2/1/0`` or ``2.1.0``.

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
        """Return the key of a chunk from its coordinates in Zarr's chunk grid."""
        parts = [self.prefix, *map(str, coords)] if self.prefix else [*map(str, coords)]
        return join(path, self.separator.join(parts) or "0")

    def coords(self, name: str) -> tuple[int, ...] | None:
        """Parse the key of a chunk, relative to its array; None for other keys."""
        parts = name.split(self.separator)
        if self.prefix and parts.pop(0) != self.prefix:
            return None
        is_index = all(re.fullmatch(_INDEX, part, re.ASCII) for part in parts)
        return tuple(map(int, parts)) if is_index else None

    @classmethod
    def of(cls, document: Mapping[str, JSON]) -> Self:
        """Read the chunk key encoding of a ``zarr.json`` or ``.zarray``.

        Raises
        ------
        N5UnrepresentableError
            Zarr specifies no such encoding (``kind="member"``).
        """
        if document["zarr_format"] == 2:
            names = cls("", str(document.get("dimension_separator", ".")))
        else:
            encoding = document.get("chunk_key_encoding", "default")
            name, configuration = encoding, None
            if isinstance(encoding, Mapping):
                name, configuration = encoding.get("name"), encoding.get("configuration")
            prefix, separator = {"default": ("c", "/"), "v2": ("", ".")}.get(str(name), ("?", "?"))
            if isinstance(configuration, Mapping):
                separator = str(configuration.get("separator", separator))
            names = cls(prefix, separator)
        if names.prefix == "?" or names.separator not in ("/", "."):
            message = f"chunk keys: expected the default or v2, with '/' or '.', got {names}"
            raise N5UnrepresentableError(message, kind="member")
        return names


DEFAULT_NAMES: Mapping[ZarrFormat, ChunkNames] = {
    3: ChunkNames("c", "/"),
    2: ChunkNames("", "."),
}
"""The encodings of the documents that n5zarr makes.

An array that was created with another encoding keeps it while its store object exists.
"""


@dataclass(frozen=True, slots=True)
class MetadataKey:
    """The key of a document of Zarr: path of its node, and name."""

    path: str
    name: str

    @property
    def zarr_format(self) -> ZarrFormat:
        """The format of the document."""
        return 3 if self.name in METADATA_NAMES[3] else 2


@dataclass(frozen=True, slots=True)
class ChunkKey:
    """The key of a chunk: path of its node, coordinates in Zarr's chunk grid, and its format."""

    path: str
    coords: tuple[int, ...]
    zarr_format: ZarrFormat = 3


def parse_key(key: str, zarr_format: ZarrFormat) -> MetadataKey | ChunkKey | None:
    """Parse a key of Zarr.

    Parameters
    ----------
    key : str
        Any key that Zarr may ask for.
    zarr_format : {2, 3}
        The format of the hierarchy; keys of the other format are unknown.

    Returns
    -------
    MetadataKey, ChunkKey or None
        None for a key that Zarr does not use in this format.

    Raises
    ------
    N5UnrepresentableError
        The key leaves the container or cannot be a path (``kind="path"``).

    Examples
    --------
    >>> parse_key("em/s0/c/2/1/0", 3)
    ChunkKey(path='em/s0', coords=(2, 1, 0), zarr_format=3)
    >>> parse_key("em/s0/2.1.0", 2)
    ChunkKey(path='em/s0', coords=(2, 1, 0), zarr_format=2)
    >>> parse_key("zarr.json", 3)
    MetadataKey(path='', name='zarr.json')
    >>> parse_key("em/s0/.zarray", 3) is None
    True
    """
    check_key(key)
    path, _, name = key.rpartition("/")
    if name in METADATA_NAMES[zarr_format]:
        return MetadataKey(path, name)
    chunk = _CHUNK[zarr_format].fullmatch(key)
    if chunk is None:
        return None
    indices = chunk.group(2)  # v3: None for an array without dimensions
    separator = DEFAULT_NAMES[zarr_format].separator
    coords = tuple(map(int, indices.split(separator))) if indices else ()
    return ChunkKey(chunk.group(1) or "", coords, zarr_format)
