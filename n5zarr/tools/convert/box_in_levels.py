"""Find a box of the largest dataset in other ones: the same place in the levels of a pyramid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from n5zarr.container.axes import read_placed
from n5zarr.container.options import require
from n5zarr.conventions.model import Axis
from n5zarr.errors import option_error
from n5zarr.format.order import to_c
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView

type Ranges = tuple[range, ...]
"""Elements along each axis, C order."""


def boxes_of(
    source: N5Store, datasets: Mapping[str, DatasetView], box: Sequence[slice] | None
) -> dict[str, Ranges]:
    """Find the elements of each dataset that are in a box.

    Parameters
    ----------
    source : N5Store
        The container.
    datasets : mapping
        The datasets by path.
    box : sequence of slice or None
        Start and stop along each axis of the largest dataset, C order; None for all elements. Other
        datasets have the same box if they have the same shape, else the same place.

    Raises
    ------
    N5UnrepresentableError
        The box does not fit the dataset, or nothing says where it is in another one
        (``kind="option"``).
    """
    shapes = {path: to_c(view.dataset.dimensions) for path, view in datasets.items()}
    if box is None:
        return {path: tuple(map(range, shape)) for path, shape in shapes.items()}
    largest = max(shapes, key=lambda path: math.prod(shapes[path]))
    checked = _checked(box, shapes[largest], f"{source}: /{largest}")
    found = dict.fromkeys(shapes, checked)
    axes = _axes(source, largest, datasets[largest]) if len({*shapes.values()}) > 1 else None
    for path, shape in shapes.items():
        if shape == shapes[largest]:
            continue
        here = _axes(source, path, datasets[path])
        if axes is None or here is None or not _agree(axes, here):
            raise option_error(
                "box: expected datasets of one shape, or with axes that say where they are, "
                f"got /{path} of shape {shape} beside /{largest} of {shapes[largest]}; choose "
                "with paths (--path)",
                where=str(source),
            )
        found[path] = same_place(checked, axes, here, shape)
    return found


def _agree(axes: Sequence[Axis], others: Sequence[Axis]) -> bool:
    """Whether axes have the same names and units."""
    return [(a.name, a.unit) for a in axes] == [(a.name, a.unit) for a in others]


def _checked(box: Sequence[slice], shape: tuple[int, ...], where: str) -> Ranges:
    """Return the elements of a box that is in a dataset."""
    require(
        len(box) == len(shape),
        f"box: expected {len(shape)} axes, as the shape is {shape}, got {len(box)}",
        where,
    )
    ranges = []
    for part, size in zip(box, shape, strict=True):
        start = 0 if part.start is None else part.start
        stop = size if part.stop is None else part.stop
        require(
            part.step in (None, 1) and 0 <= start < stop <= size,
            f"box: expected 0 <= start < stop <= {size}, got {start}:{stop}",
            f"{where}, shape {shape}",
        )
        ranges.append(range(start, stop))
    return tuple(ranges)


def _axes(source: N5Store, path: str, view: DatasetView) -> tuple[Axis, ...] | None:
    """Return the axes of a dataset, C order; None if nothing says where it is."""
    geometry = source.run(read_placed(source.container.nodes, path, view)).geometry
    return None if geometry is None or geometry.rest else to_c(geometry.axes)


def same_place(
    box: Ranges, axes: Sequence[Axis], other: Sequence[Axis], shape: Sequence[int]
) -> Ranges:
    """Return the elements of another dataset that touch the place of a box.

    An element reaches half of ``scale`` to either side of its centre.

    Parameters
    ----------
    box : tuple of range
        Elements of the first dataset.
    axes, other : sequence of Axis
        The axes of both datasets, C order.
    shape : sequence of int
        Extent of the other dataset, in elements.
    """
    ranges = []
    for part, a, b, size in zip(box, axes, other, shape, strict=True):
        ends = [a.scale * (n - 0.5) + a.translation for n in (part.start, part.stop)]
        low, high = sorted((end - b.translation) / b.scale + 0.5 for end in ends)
        # positions that are one number in theory differ in their last digits
        start, stop = math.floor(round(low, 6)), math.ceil(round(high, 6))
        ranges.append(range(max(0, min(start, size)), max(0, min(stop, size))))
    return tuple(ranges)
