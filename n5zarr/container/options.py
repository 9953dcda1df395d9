"""Define how a container is presented as Zarr: codecs, format and axis order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import index
from typing import Self, get_args

from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.order import AxisOrder
from n5zarr.zarr_view.dataset_view import Codecs
from n5zarr.zarr_view.keys import ZarrFormat

__all__ = ["ViewOptions", "check_concurrency", "check_option"]


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """How a container is presented as Zarr.

    Parameters
    ----------
    codecs : {"zarr", "n5", "portable"}, optional
        Codecs of the arrays, see `n5zarr.zarr_view.dataset_view`.
    zarr_format : {3, 2} or None, optional
        Zarr format of documents and keys; None for that in which each node was last written.
    axis_order : {"C", "F"}, optional
        ``"C"``: axes reversed. ``"F"``: in the order of ``dimensions``.

    Raises
    ------
    N5UnrepresentableError
        An option has a value outside its vocabulary (``kind="option"``).
    """

    codecs: Codecs = field(default="zarr", metadata={"known": get_args(Codecs.__value__)})
    zarr_format: ZarrFormat | None = field(
        default=None, metadata={"known": (*get_args(ZarrFormat.__value__), None)}
    )
    axis_order: AxisOrder = field(default="C", metadata={"known": get_args(AxisOrder.__value__)})

    def __post_init__(self) -> None:
        for name, member in self.__dataclass_fields__.items():
            check_option(name, getattr(self, name), member.metadata["known"])

    def for_coords(self) -> Self:
        """Return the same options for a view with coordinates, which is Zarr v3.

        Raises
        ------
        N5UnsupportedError
            Zarr v2 is asked for (``kind="option"``).
        """
        if self.zarr_format == 2:
            message = "coords=True: shown as Zarr v3 only; ds.to_zarr(..., zarr_format=2) writes v2"
            raise N5UnsupportedError(message, kind="option")
        return replace(self, zarr_format=3)


def check_option(name: str, value: object, known: tuple[object, ...]) -> None:
    """Raise if an option has a value outside its vocabulary."""
    if value not in known:
        message = f"{name}: expected one of {', '.join(map(repr, known))}, got {value!r}"
        raise N5UnrepresentableError(message, kind="option")


def check_concurrency(value: object) -> int:
    """Return a number of requests at a time; raise if it is not an integer of at least 1."""
    try:
        number = int(value) if isinstance(value, str) else index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = 0
    if number < 1:
        message = f"concurrency: expected an integer of at least 1, got {value!r}"
        raise N5UnrepresentableError(message, kind="option")
    return number
