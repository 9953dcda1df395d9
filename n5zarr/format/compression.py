"""Describe compressions: the ``compression`` object of ``attributes.json``.

N5 spec, "File-system specification", item 4 (``compression``).

One frozen dataclass for each ``type``, with the members that Java writes (the
``@CompressionParameter`` fields of ``GzipCompression.java`` and its siblings), their defaults and
their limits. `n5zarr.codecs` compresses.

Absent members take Java's default. Unknown members are ignored, and kept in the document.

Deviation: three kinds of documents are errors here, while Java reads them as raw bytes or refuses
them only on writing: an object with members but without ``type``, an unknown ``compressionType``,
and a level out of range.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import ClassVar, cast

from n5zarr.errors import N5AttributesError, Problem
from n5zarr.format.lenient_json import JSON, as_boolean, as_integer

_ANY_INT = (-(2**31), 2**31 - 1)
_CNAMES = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")


def _integer[T: (int, int | None)](json_name: str, default: T, low: int, high: int) -> T:
    return field(default=default, metadata={"json": json_name, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Raw:
    """No compression: ``{"type":"raw"}``.

    N5 spec, "File-system specification", item 4 (raw).
    """

    type: ClassVar[str] = "raw"


@dataclass(frozen=True, kw_only=True)
class Gzip:
    """RFC 1952, or RFC 1950 with ``useZlib``: ``{"type":"gzip","useZlib":false,"level":6}``.

    N5 spec, "File-system specification", item 4 (gzip). Java adds ``useZlib``, and its default
    level is 6 since 4.0; before it was -1, which means 6.
    """

    type: ClassVar[str] = "gzip"
    use_zlib: bool = field(default=False, metadata={"json": "useZlib"})
    level: int = _integer("level", 6, -1, 9)


@dataclass(frozen=True, kw_only=True)
class Bzip2:
    """A bzip2 stream: ``{"type":"bzip2","blockSize":9}``, in units of 100 kB.

    N5 spec, "File-system specification", item 4 (bzip2).
    """

    type: ClassVar[str] = "bzip2"
    block_size: int = _integer("blockSize", 9, 1, 9)


@dataclass(frozen=True, kw_only=True)
class Xz:
    """An .xz container: ``{"type":"xz","preset":6}``.

    N5 spec, "File-system specification", item 4 (xz).
    """

    type: ClassVar[str] = "xz"
    preset: int = _integer("preset", 6, 0, 9)


@dataclass(frozen=True, kw_only=True)
class Lz4:
    """Java's ``LZ4Block`` stream: ``{"type":"lz4","blockSize":65536}``, size of a piece in bytes.

    N5 spec, "File-system specification", item 4 (lz4). Two programs give this name to a framing of
    their own, which the members tell: zarr-python 2 writes ``acceleration``, z5 its level, at most
    12, as ``blockSize``. Reading does not need the values.
    """

    type: ClassVar[str] = "lz4"
    block_size: int = _integer("blockSize", 65536, *_ANY_INT)
    acceleration: int | None = _integer("acceleration", None, *_ANY_INT)


@dataclass(frozen=True, kw_only=True)
class Blosc:
    """One c-blosc 1 buffer.

    ``{"type":"blosc","cname":"zstd","clevel":6,"shuffle":1,"blocksize":0}``

    N5 spec, "File-system specification", item 4 (custom compression: N5 Blosc). Java also writes
    ``typesize`` and ``nthreads``. They change nothing, and tensorstore refuses them.
    """

    type: ClassVar[str] = "blosc"
    cname: str = field(default="blosclz", metadata={"json": "cname", "choices": _CNAMES})
    clevel: int = _integer("clevel", 6, 0, 9)
    shuffle: int = _integer("shuffle", 0, -1, 2)
    block_size: int = _integer("blocksize", 0, 0, 2**31 - 1)


@dataclass(frozen=True, kw_only=True)
class Zstd:
    """Zstandard frames: ``{"type":"zstd","level":3}``. Java clamps the level.

    N5 spec, "File-system specification", item 4 (custom compression: N5 ZStandard).
    """

    type: ClassVar[str] = "zstd"
    level: int = _integer("level", 3, *_ANY_INT)


@dataclass(frozen=True, kw_only=True)
class Jpeg:
    """One JPEG image, lossy, read only: ``{"type":"jpeg","quality":100,"dataType":"uint8"}``."""

    type: ClassVar[str] = "jpeg"
    quality: int = _integer("quality", 100, 1, 100)


@dataclass(frozen=True, kw_only=True)
class Lzma:
    """LZMA as zarr-python 2 writes it where it is not .xz: ``{"type":"lzma","format":2}``.

    Only the self-describing formats, .xz (1) and .lzma (2), are read.
    """

    type: ClassVar[str] = "lzma"
    format: int = _integer("format", 1, 1, 2)


type Compression = Raw | Gzip | Bzip2 | Xz | Lz4 | Blosc | Zstd | Jpeg | Lzma

# N5 spec, "Extensible compression schemes": add a new compression here and to `Compression`
COMPRESSIONS: Mapping[str, type[Compression]] = {
    cls.type: cls for cls in (Raw, Gzip, Bzip2, Xz, Lz4, Blosc, Zstd, Jpeg, Lzma)
}

# N5 1.x: `compressionType` is one of these names; the parameters are the defaults
_VERSION_0_TYPES = ("raw", "gzip", "bzip2", "lz4", "xz")


def parse_compression(value: JSON, loc: tuple[str, ...] = ("compression",)) -> Compression:
    """Parse a compression of ``attributes.json``.

    N5 spec, "File-system specification", item 4 (``compression``).

    Parameters
    ----------
    value : JSON
        The object under ``compression``, or the name under ``compressionType`` (N5 1.x).
    loc : tuple of str, optional
        Path of the value in the document, for messages.

    Returns
    -------
    Compression
        The description; absent members have Java's defaults.

    Raises
    ------
    N5AttributesError
        Unknown type, or a member of wrong type or out of range (``kind="compression"``).

    Examples
    --------
    >>> parse_compression({"type": "gzip", "level": "3"})
    Gzip(use_zlib=False, level=3)
    >>> parse_compression("xz", ("compressionType",))
    Xz(preset=6)
    """
    known: tuple[str, ...] = tuple(COMPRESSIONS)
    name: JSON = value
    members: Mapping[str, JSON] = {}
    where = loc
    if loc == ("compressionType",):
        known = _VERSION_0_TYPES
    elif isinstance(value, Mapping):
        # Java: an object without type is raw. Deviation: only an empty object is.
        name, members, where = value.get("type", None if value else "raw"), value, (*loc, "type")
    else:
        raise N5AttributesError(
            [Problem(loc, f"expected an object, got {value!r:.80}", "compression")]
        )
    if not isinstance(name, str) or name not in known:
        message = f"expected one of {', '.join(sorted(known))}, got {name!r:.80}"
        raise N5AttributesError([Problem(where, message, "compression")])
    return _parse_members(COMPRESSIONS[name], members, loc)


def _parse_members(
    cls: type[Compression], members: Mapping[str, JSON], loc: tuple[str, ...]
) -> Compression:
    arguments: dict[str, JSON] = {}
    problems: list[Problem] = []
    for member in fields(cls):
        json_name = member.metadata["json"]
        if json_name not in members:
            continue
        try:
            arguments[member.name] = _member_value(member, members[json_name])
        except ValueError as err:
            problems.append(Problem((*loc, json_name), str(err), "compression"))
    if problems:
        raise N5AttributesError(problems)
    # the members have been checked against the fields
    return cast("Callable[..., Compression]", cls)(**arguments)


def _member_value(member: Field[object], value: JSON) -> JSON:
    """Convert the value of a member to the type of its field; raise ValueError if it is wrong."""
    limits = member.metadata
    if "choices" in limits:
        if value not in limits["choices"]:
            raise ValueError(f"expected one of {', '.join(limits['choices'])}, got {value!r:.80}")
        return value
    if "low" not in limits:
        return as_boolean(value)
    return as_integer(value, limits["low"], limits["high"])


def compression_to_json(compression: Compression) -> dict[str, JSON]:
    """Write a compression with all its members, as Java does.

    Examples
    --------
    >>> compression_to_json(Gzip())
    {'type': 'gzip', 'useZlib': False, 'level': 6}
    """
    members = {f.metadata["json"]: getattr(compression, f.name) for f in fields(compression)}
    if isinstance(compression, Lz4):  # zarr-python 2 refuses Java's member, and Java its
        members.pop("acceleration" if compression.acceleration is None else "blockSize")
    return {"type": compression.type, **members}
