"""Open Zarr v3 of Java's n5-zarr 2, whose documents zarr-python refuses.

Java: ``ZarrV3Compressor`` and ``DefaultShardCodecInfo`` (n5-zarr at b1fb6dd, n5 at 7ba6b144) add
members that Zarr does not have, write values that it does not allow, and may write a compression
inside of shards as in ``attributes.json``::

    {"name": "gzip", "configuration": {"level": -1, "useZlib": false}}
    {"name": "blosc", "configuration": {"typesize": 0, "nthreads": 1, ...}}
    {"type": "gzip", "level": 6, "useZlib": false}
    {"name": "xz", "configuration": {"preset": 6}}

The stored bytes are those of the codecs, so only the document changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self, override

import zarr
from zarr.abc.buffer import Buffer, BufferPrototype
from zarr.abc.store import ByteRequest, Store
from zarr.storage import StorePath, WrapperStore

from n5zarr._zarr import REFUSALS
from n5zarr.codecs.compress import codec_of
from n5zarr.errors import N5Error, option_error
from n5zarr.format.compression import parse_compression
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.compressors import zarr_compressors

_GZIP_LEVELS = range(10)
_DEFAULT_LEVEL = 6  # of Deflater.DEFAULT_COMPRESSION, -1
_OF_N5 = ("bzip2", "xz")  # names that Zarr does not have
_RAW = {"type": "raw"}  # no codec in Zarr


def as_specified(document: Mapping[str, Any]) -> dict[str, JSON]:
    """Return a document with codecs that any reader of Zarr v3 knows; others stay as they are.

    Parameters
    ----------
    document : mapping
        A ``zarr.json``.

    Raises
    ------
    N5AttributesError
        A compression of N5 has a value that it does not allow.

    Examples
    --------
    >>> java = [{"name": "gzip", "configuration": {"useZlib": False, "level": -1}}]
    >>> as_specified({"data_type": "uint16", "codecs": java})["codecs"]
    [{'name': 'gzip', 'configuration': {'level': 6}}]
    """
    codecs, data_type = document.get("codecs"), document.get("data_type")
    if not isinstance(codecs, list):
        return {**document}
    sizes = {each.value: each.dtype.itemsize for each in DataType if each.is_numeric}
    item_size = sizes.get(data_type, 1) if isinstance(data_type, str) else 1
    return {**document, "codecs": _codecs(codecs, item_size)}


def _codecs(codecs: list[JSON], item_size: int) -> list[JSON]:
    return [_codec(each, item_size) for each in codecs if each != _RAW]


def _codec(codec: JSON, item_size: int) -> JSON:
    if not isinstance(codec, Mapping):
        return codec
    name, members = codec.get("name"), codec.get("configuration")
    if name is None and "type" in codec:
        return _of_n5(codec)
    if not isinstance(members, Mapping):
        return codec
    if name in _OF_N5:
        return _of_n5({"type": name, **members})
    return {**codec, "configuration": _configuration(name, members, item_size)}


def _configuration(name: JSON, members: Mapping[str, JSON], item_size: int) -> JSON:
    if name == "sharding_indexed":
        inner = members.get("codecs")
        codecs = _codecs(inner, item_size) if isinstance(inner, list) else inner
        return {**members, "codecs": codecs}
    if name == "gzip":
        # Java: reads and writes gzip even if useZlib is true
        level = members.get("level")
        return {"level": level if level in _GZIP_LEVELS else _DEFAULT_LEVEL}
    if name == "blosc":
        kept = {key: value for key, value in members.items() if key != "nthreads"}
        return kept if kept.get("typesize") else {**kept, "typesize": item_size}
    return {**members}


def _of_n5(compression: Mapping[str, JSON]) -> JSON:
    """Translate a compression of N5; what has other bytes in Zarr stays, and zarr refuses it."""
    parsed = parse_compression(compression)
    codecs = zarr_compressors(parsed)
    return codecs[0] if codecs and codec_of(parsed).passes else {**compression}


_DOCUMENT = "zarr.json"


class JavaZarrStore(WrapperStore["Store"]):
    """A hierarchy with each ``zarr.json`` as Zarr specifies it, to open its nodes.

    Parameters
    ----------
    store : Store
        The hierarchy.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.plain = store

    @override
    def _with_store(self, store: Store) -> Self:
        return type(self)(store)

    @override
    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        stored = await self.plain.get(key, prototype, byte_range)
        if stored is not None and key.rpartition("/")[2] == _DOCUMENT:
            with suppress(ValueError):  # zarr reports it
                document = json.loads(stored.to_bytes())
                changed = as_specified(document) if isinstance(document, dict) else document
                if changed != document:
                    return prototype.buffer.from_bytes(json.dumps(changed).encode())
        return stored


def in_own_store(array: zarr.AsyncArray[Any]) -> zarr.AsyncArray[Any]:
    """Return an array of a :class:`JavaZarrStore` in the store of its chunks; others as they are.

    That store may read without an event loop, which zarr asks its class.
    """
    place = array.store_path
    if not isinstance(place.store, JavaZarrStore):
        return array
    return zarr.AsyncArray(array.metadata, StorePath(place.store.plain, place.path))


@contextmanager
def zarr_documents(where: str) -> Iterator[None]:
    """Say of a document that zarr refuses where it is.

    Raises
    ------
    N5UnrepresentableError
        A document is not that of Zarr (``kind="option"``).
    """
    try:
        yield
    except N5Error:
        raise
    except REFUSALS as err:
        message = f"expected valid documents of Zarr, got {type(err).__name__}: {err}"
        raise option_error(f"{where}: {message}") from err
