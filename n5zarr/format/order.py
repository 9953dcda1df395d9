"""Convert tuples between N5 order and C order; no other module does.

N5 lists the fastest-varying axis first (x, y, z), numpy in C order lists it last (z, y, x). The
payload of a block and the C-order bytes of the array with reversed shape are the same bytes, so
only tuples are reversed and data never are.

Three kinds of tuples of integers, kept apart by the type checker:

===================  ==============================================================================
:data:`N5Tuple`      N5 order: ``dimensions``, ``blockSize``, grid positions, sizes in block headers
:data:`CTuple`       C order: shapes of numpy arrays
``tuple[int, ...]``  the order of a Zarr array, which ``axis_order`` selects: C order or N5 order
===================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NewType, overload

from n5zarr.errors import option_error

N5Tuple = NewType("N5Tuple", tuple[int, ...])
"""Integers in N5 order: the fastest-varying axis first."""

CTuple = NewType("CTuple", tuple[int, ...])
"""Integers in C order: the fastest-varying axis last."""

type AxisOrder = Literal["C", "F"]
"""How a dataset is presented: reversed (``"C"``), or in the order of ``dimensions`` (``"F"``)."""


def check_axis_order(axis_order: str) -> None:
    """Raise if the value of ``axis_order`` is unknown.

    Raises
    ------
    N5UnrepresentableError
        The value is neither ``"C"`` nor ``"F"`` (``kind="option"``).
    """
    if axis_order not in ("C", "F"):
        raise option_error(f"axis_order: expected 'C' or 'F', got {axis_order!r}")


@overload
def to_c(values_n5: N5Tuple) -> CTuple: ...
@overload
def to_c[T](values_n5: Iterable[T]) -> tuple[T, ...]: ...
def to_c(values_n5: Iterable[object]) -> tuple[object, ...]:
    """Convert one value per axis from N5 order into C order.

    Examples
    --------
    >>> to_c((7, 5, 3))
    (3, 5, 7)
    """
    return tuple(values_n5)[::-1]


@overload
def to_n5(values_c: CTuple) -> N5Tuple: ...
@overload
def to_n5[T](values_c: Iterable[T]) -> tuple[T, ...]: ...
def to_n5(values_c: Iterable[object]) -> tuple[object, ...]:
    """Convert one value per axis from C order into N5 order.

    Examples
    --------
    >>> to_n5((3, 5, 7))
    (7, 5, 3)
    """
    return tuple(values_c)[::-1]


def present[T](values_n5: Iterable[T], axis_order: AxisOrder) -> tuple[T, ...]:
    """Convert one value per axis from N5 order into the order that ``axis_order`` selects.

    The inverse is :func:`from_presented`.

    Examples
    --------
    >>> present((7, 5, 3), "C"), present((7, 5, 3), "F")
    ((3, 5, 7), (7, 5, 3))
    """
    values = tuple(values_n5)
    return values[::-1] if axis_order == "C" else values


@overload
def from_presented(values: Iterable[int], axis_order: AxisOrder) -> N5Tuple: ...
@overload
def from_presented[T](values: Iterable[T], axis_order: AxisOrder) -> tuple[T, ...]: ...
def from_presented(values: Iterable[object], axis_order: AxisOrder) -> tuple[object, ...]:
    """Convert one value per axis from the order that ``axis_order`` selects into N5 order.

    The inverse of :func:`present`.

    Examples
    --------
    >>> from_presented((3, 5, 7), "C"), from_presented((7, 5, 3), "F")
    ((7, 5, 3), (7, 5, 3))
    """
    return present(values, axis_order)


def transposition(ndim: int) -> list[int]:
    """List the axes of an array last to first: the ``order`` of a codec that reverses them.

    Examples
    --------
    >>> transposition(3)
    [2, 1, 0]
    """
    return list(range(ndim))[::-1]
