"""Define the options of the Zarr view: codecs, format, axis order and chunk grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, Self, get_args

import zarr

from n5zarr.codecs.compress import codec_of
from n5zarr.errors import Kind, N5UnrepresentableError, N5UnsupportedError, option_error
from n5zarr.format.compression import Compression, compression_to_json, parse_compression
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, CTuple
from n5zarr.storage.not_found import meant
from n5zarr.zarr_view.chunk_grid import ChunkGrid
from n5zarr.zarr_view.dataset_view import Codecs
from n5zarr.zarr_view.keys import ZarrFormat


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """The options with which a container is presented as Zarr.

    Parameters
    ----------
    codecs : {"zarr", "n5", "portable"}, optional
        Codecs of the arrays, see `n5zarr.zarr_view.dataset_view`.
    zarr_format : {3, 2} or None, optional
        Zarr format of documents and keys; None for the format in which each node was last written.
    axis_order : {"C", "F"}, optional
        ``"C"``: axes reversed. ``"F"``: in the order of ``dimensions``.
    chunk_grid : {"regular", "rectilinear"}, optional
        ``"rectilinear"``: chunks at the end of an axis are truncated, see
        `n5zarr.zarr_view.chunk_grid`.

    Raises
    ------
    N5UnrepresentableError
        An option has a value that is not allowed (``kind="option"``).
    """

    codecs: Codecs = field(default="zarr", metadata={"known": get_args(Codecs.__value__)})
    zarr_format: ZarrFormat | None = field(
        default=None, metadata={"known": (*get_args(ZarrFormat.__value__), None)}
    )
    axis_order: AxisOrder = field(default="C", metadata={"known": get_args(AxisOrder.__value__)})
    chunk_grid: ChunkGrid = field(
        default="regular", metadata={"known": get_args(ChunkGrid.__value__)}
    )

    def __post_init__(self) -> None:
        for name, member in self.__dataclass_fields__.items():
            check_option(name, getattr(self, name), member.metadata["known"])

    def for_coords(self) -> Self:
        """Return the same options for a view with coordinates, which must be Zarr v3.

        Raises
        ------
        N5UnsupportedError
            The options request Zarr v2 (``kind="option"``).
        """
        if self.zarr_format == 2:
            raise N5UnsupportedError(
                "coords=True: expected Zarr v3, got v2; ds.to_zarr(..., zarr_format=2) writes it",
                kind="option",
            )
        return replace(self.for_grid(), zarr_format=3)

    def for_grid(self) -> Self:
        """Return the same options for the chunk grid; truncated chunks need Zarr v3.

        Raises
        ------
        N5UnsupportedError
            The options request Zarr v2, or zarr does not allow such a grid (``kind="option"``).
        """
        if self.chunk_grid == "regular":
            return self
        if self.zarr_format == 2:
            raise N5UnsupportedError(
                "chunk_grid='rectilinear': expected Zarr v3, got zarr_format=2, which lacks this "
                "grid",
                kind="option",
            )
        if not zarr.config.get("array.rectilinear_chunks", default=False):
            raise N5UnsupportedError(
                "chunk_grid='rectilinear': expected zarr to allow this experimental grid; allow it "
                "with zarr.config.set({'array.rectilinear_chunks': True}) or the environment "
                "variable ZARR_ARRAY__RECTILINEAR_CHUNKS=True",
                kind="option",
            )
        return replace(self, zarr_format=3)

    def check_writable(self, *, coords: bool) -> None:
        """Raise if the view is read-only.

        Raises
        ------
        N5UnsupportedError
            The view has coordinates or truncated chunks (``kind="read-only"``).
        """
        if coords:
            raise N5UnsupportedError(
                "coords=True: expected a read-only store, as coordinates are not stored",
                kind="read-only",
            )
        if self.chunk_grid == "rectilinear":
            raise N5UnsupportedError(
                "chunk_grid='rectilinear': expected a read-only store; to write, open it without",
                kind="read-only",
            )


def require(holds: object, message: str, where: str = "", *, kind: Kind = "option") -> None:
    """Raise if what a caller asks for cannot be done.

    Parameters
    ----------
    holds : bool
        The condition.
    message : str
        What was expected, what was found, and the way out.
    where : str, optional
        The container and the node.
    kind : str, optional
        Kind of the error.

    Raises
    ------
    N5UnrepresentableError
        The condition is false.
    """
    if not holds:
        raise N5UnrepresentableError(message, kind=kind, where=where)


def check_option(name: str, value: object, known: tuple[object, ...]) -> None:
    """Raise if the value of an option is not allowed."""
    if value not in known:  # the message takes longer than the check
        expected = ", ".join(map(repr, known))
        raise option_error(f"{name}: expected one of {expected}, got {value!r}")


def texts_of(name: str, given: Any) -> list[str]:  # noqa: ANN401 - what a user gives
    """Return one text, or several, as a list.

    Raises
    ------
    N5UnrepresentableError
        It is neither (``kind="option"``).
    """
    is_one = isinstance(given, str) or not isinstance(given, Iterable)
    texts = [given] if is_one else list(given)
    if not all(isinstance(text, str) for text in texts):
        raise option_error(f"{name}: expected a text, or a list of texts, got {given!r}")
    return texts


def check_compression(given: Mapping[str, JSON] | str) -> Compression:
    """Return the compression that a caller asks for, by its name or as in ``attributes.json``.

    Raises
    ------
    N5Error
        The compression is unknown, or can only be read; it has no such member
        (``kind="option"``).
    """
    compression = parse_compression({"type": given} if isinstance(given, str) else given)
    known = compression_to_json(compression)
    for name in () if isinstance(given, str) else given.keys() - known.keys():
        members = ", ".join(known)
        raise option_error(
            f"compression: expected the members {members}, got {name!r}{meant(name, known)}"
        )
    codec_of(compression).check_writable(compression)
    return compression


def unknown(function: str, name: str, known: Iterable[str]) -> TypeError:
    """Make the error of an option that a function does not have, as Python does."""
    hint = meant(name, known)
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def check_sizes(name: str, given: int | Sequence[int] | None) -> CTuple | None:
    """Return extents in elements, C order; one number is for all axes.

    Raises
    ------
    N5UnrepresentableError
        An extent is no integer above 0 (``kind="option"``).
    """
    if given is None:
        return None
    try:
        sizes = tuple(map(index, given if isinstance(given, Sequence) else [given]))
    except TypeError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise option_error(
            f"{name}: expected a number of elements above 0, or one for each axis, got {given!r}"
        )
    return CTuple(sizes)


def check_concurrency(value: object) -> int:
    """Return a number of requests at a time; raise if it is not an integer of at least 1."""
    try:
        number = int(value) if isinstance(value, str) else index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        raise option_error(f"concurrency: expected an integer of at least 1, got {value!r}")
    return number
