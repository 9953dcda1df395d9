"""N5 order and C order: the only place where anything is reversed.

N5 lists the fastest-varying axis first (x, y, z), numpy in C order lists it last (z, y, x). A
block payload and the C-order bytes of the array with reversed shape are the same bytes, so the
reversal never touches data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from n5zarr.errors import N5UnrepresentableError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AxisOrder", "CTuple", "N5Tuple", "check_axis_order", "present", "to_c", "to_n5"]

type N5Tuple = tuple[int, ...]
"""Integers in N5 order: the fastest-varying axis first."""

type CTuple = tuple[int, ...]
"""Integers in C order: the fastest-varying axis last."""

type AxisOrder = Literal["C", "F"]
"""How a dataset is shown: reversed (``"C"``), or in the order of ``dimensions`` (``"F"``)."""


def check_axis_order(axis_order: str) -> None:
    """Raise if this is no order of axes.

    Raises
    ------
    N5UnrepresentableError
        It is neither ``"C"`` nor ``"F"`` (``kind="option"``).
    """
    if axis_order not in ("C", "F"):
        message = f"axis_order: expected 'C' or 'F', got {axis_order!r}"
        raise N5UnrepresentableError(message, kind="option")


def to_c[T](values_n5: Iterable[T]) -> tuple[T, ...]:
    """Turn one value per axis from N5 order into C order.

    Examples
    --------
    >>> to_c((7, 5, 3))
    (3, 5, 7)
    """
    return tuple(values_n5)[::-1]


def to_n5[T](values_c: Iterable[T]) -> tuple[T, ...]:
    """Turn one value per axis from C order into N5 order.

    Examples
    --------
    >>> to_n5((3, 5, 7))
    (7, 5, 3)
    """
    return tuple(values_c)[::-1]


def present[T](values_n5: Iterable[T], axis_order: AxisOrder) -> tuple[T, ...]:
    """Turn one value per axis from N5 order into the order that is shown, or back.

    Examples
    --------
    >>> present((7, 5, 3), "C"), present((7, 5, 3), "F")
    ((3, 5, 7), (7, 5, 3))
    """
    return to_c(values_n5) if axis_order == "C" else tuple(values_n5)
