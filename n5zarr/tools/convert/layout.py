"""The user's options for what is written: chunks, shards, compression, and conventions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from n5zarr.container.options import check_compression, check_sizes, require

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.images.ome import OmeVersion
    from n5zarr.images.source import ArraySource

__all__ = ["Form", "Layout"]


@dataclass(frozen=True)
class Layout:
    """Chunks, shards and compression of the arrays to write; None keeps those of the source.

    Parameters
    ----------
    chunks, shards : tuple of int, optional
        Extents in elements, C order. One number applies to all axes; shards have at least this
        size. Several numbers apply to arrays with as many axes; others keep their chunks.
    compression : Compression, optional
        The compression.
    """

    chunks: tuple[int, ...] | None = None
    shards: tuple[int, ...] | None = None
    compression: Compression | None = None

    @classmethod
    def of(
        cls,
        chunks: int | Sequence[int] | None,
        shards: int | Sequence[int] | None,
        compression: Mapping[str, JSON] | str | None,
    ) -> Self:
        """Check the options of a user.

        Raises
        ------
        N5UnrepresentableError
            A size is no positive number (``kind="option"``).
        N5Error
            The compression is unknown, or cannot be written.
        """
        parsed = None if compression is None else check_compression(compression)
        return cls(check_sizes("chunks", chunks), check_sizes("shards", shards), parsed)

    def chunks_of(self, source: ArraySource) -> tuple[int, ...]:
        """Return the extent of a chunk of an array, in elements."""
        wanted = None if self.chunks is None else _for_axes(self.chunks, source.shape)
        if self.chunks is None or wanted is None:
            return source.chunks
        if len(self.chunks) == 1:  # no axis is that long
            return tuple(max(1, min(w, n)) for w, n in zip(wanted, source.shape, strict=True))
        return wanted

    def shards_of(self, source: ArraySource, chunks: Sequence[int]) -> tuple[int, ...] | None:
        """Return the extent of a shard, of whole chunks and no larger than the array needs.

        Raises
        ------
        N5UnrepresentableError
            The shards do not consist of whole chunks (``kind="option"``).
        """
        wanted = None if self.shards is None else _for_axes(self.shards, source.shape)
        if self.shards is None or wanted is None:
            return None
        if len(self.shards) == 1:  # about so many elements along each axis
            wanted = tuple(-(-w // c) * c for w, c in zip(wanted, chunks, strict=True))
        whole = tuple(-(-n // c) * c for n, c in zip(source.shape, chunks, strict=True))
        shards = tuple(max(c, min(*s)) for c, *s in zip(chunks, wanted, whole, strict=True))
        require(
            not any(s % c for s, c in zip(shards, chunks, strict=True)),
            f"shards: expected multiples of the chunks {tuple(chunks)}, got {wanted}; "
            "chunks=... (--chunks) chooses others",
            source.name,
        )
        return shards


@dataclass(frozen=True)
class Form:
    """The conventions that a copy follows; see :func:`~n5zarr.convert` for each.

    Parameters
    ----------
    ome : bool
        Whether it is OME-Zarr.
    ome_version : {"0.5", "0.4", "0.6rc0"}, optional
        The version; None leaves it to the format of the destination.
    labels : list of str
        Patterns of the images that are labels.
    paintera_labels : list of str
        Patterns of the arrays that become Paintera's label sources.
    coords : bool
        Whether it has coordinates as arrays.
    """

    ome: bool
    ome_version: OmeVersion | None
    labels: list[str]
    paintera_labels: list[str]
    coords: bool


def _for_axes(sizes: tuple[int, ...], shape: Sequence[int]) -> tuple[int, ...] | None:
    if not shape:
        return None
    if len(sizes) == 1:
        return sizes * len(shape)
    return sizes if len(sizes) == len(shape) else None
