"""Describe the positions of the levels of a pyramid, in attributes of their datasets and group.

An element of a level is in the middle of those that it stands for, half of (factor - 1) elements of
``s0`` beside the first one; with ``stride`` it is at the first one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from n5zarr.container.options import require
from n5zarr.conventions.axis_names import AXES_KEY
from n5zarr.conventions.describe import WRITTEN, Written, choose_convention, describe_axes
from n5zarr.conventions.factors import factors_in_json
from n5zarr.conventions.model import axes_of, centre_shifts, numbers
from n5zarr.conventions.units import ratio
from n5zarr.errors import N5Warning
from n5zarr.format.compression import compression_to_json
from n5zarr.format.order import from_presented, present
from n5zarr.store.geometry import geometry
from n5zarr.store.levels import describe_group
from n5zarr.store.set_geometry import set_geometry
from n5zarr.zarr_view.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.container.axes import Placed
    from n5zarr.conventions.model import Axis
    from n5zarr.format.attributes import DatasetAttributes
    from n5zarr.format.compression import Compression
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.pyramid.methods import Method

__all__ = ["Finest", "document_of", "finest_level"]

_BY_FACTORS = ("bdv", "factors", "paintera")
"""Conventions that place levels by factors, relative to s0 in the group or an XML."""


@dataclass(frozen=True, kw_only=True)
class Finest:
    """``s0``: the dataset, and the positions of its elements.

    Parameters
    ----------
    placed : Placed
        The dataset.
    axes : tuple of Axis
        Its axes, N5 order; x, y, z, c, t without positions where nothing is known.
    convention : str
        Convention that describes the levels.
    is_own : bool
        Whether ``s0`` is described in this convention already.
    """

    placed: Placed
    axes: tuple[Axis, ...]
    convention: str
    is_own: bool

    @property
    def path(self) -> str:
        """Path of the dataset."""
        return self.placed.path

    @property
    def group(self) -> str:
        """Path of the group of the levels."""
        return self.path.rpartition("/")[0]

    @property
    def voxel(self) -> tuple[float | None, ...]:
        """Distance between elements along axes of space, in one unit, in the order of the array."""
        is_space = [axis.type == "space" for axis in self.axes]
        if not any(is_space):  # unknown names
            is_space = [axis.type == "" and axis.labels is None for axis in self.axes]
        units = [axis.unit for axis, is_one in zip(self.axes, is_space, strict=True) if is_one]
        sizes = [
            axis.scale * (ratio(axis.unit, units[0]) or 1.0) if is_one else None
            for axis, is_one in zip(self.axes, is_space, strict=True)
        ]
        return present(sizes, self.placed.view.axis_order)

    @property
    def names_of_levels(self) -> list[str]:
        """Names of the axes of levels, N5 order; empty if ``s0`` has none and needs none."""
        own = self.placed.view.dimension_names
        return [] if self.convention in _BY_FACTORS and not own else [a.name for a in self.axes]

    def axes_at(self, total: Sequence[int], method: Method) -> tuple[Axis, ...]:
        """Return the axes of a level, N5 order.

        Parameters
        ----------
        total : sequence of int
            Number of elements of ``s0`` in one element of the level, in the order of the array.
        method : str
            How to combine elements.
        """
        by = from_presented(total, self.placed.view.axis_order)
        shifts = centre_shifts(
            [axis.scale for axis in self.axes], [1] * len(by) if method == "stride" else by
        )
        return tuple(
            replace(axis, scale=axis.scale * f, translation=axis.translation + shift)
            for axis, f, shift in zip(self.axes, by, shifts, strict=True)
        )

    def written(self, name: str, total: Sequence[int], method: Method) -> Written:
        """Describe a level."""
        if self.convention in _BY_FACTORS:
            by = from_presented(total, self.placed.view.axis_order)
            factors = [f * own for f, own in zip(by, self.own_factors, strict=True)]
            is_double = self.convention == "paintera"
            written: list[JSON] = [*factors] if is_double else factors_in_json(factors)
            attributes: dict[str, JSON] = {"downsamplingFactors": written}
            starts = [axis.translation for axis in self.axes_at(total, method)]
            if self.convention == "factors" and starts != [
                *centre_shifts([1.0] * len(by), factors)
            ]:
                attributes["offset"] = [*starts]
            return Written(attributes)
        return describe_axes(self.convention, self.axes_at(total, method), name, self.axes)

    @property
    def own_factors(self) -> Sequence[float]:
        """Number of elements of full resolution in one element of ``s0``, N5 order."""
        if self.convention == "factors":  # which gives no other scale
            return [axis.scale for axis in self.axes]
        own = numbers(self.placed.view.dataset.attributes.get("downsamplingFactors")) or ()
        return [*own, *[1.0] * (len(self.axes) - len(own))]

    def check_setup(self, store: N5Store, totals: Sequence[Sequence[int]]) -> None:
        """Check that levels are those that BigDataViewer's setup lists for all time points.

        Raises
        ------
        N5UnrepresentableError
            They are others (``kind="option"``).
        """
        if self.convention != "bdv":
            return
        setup = self.group.rpartition("/")[0]
        node = store.node(setup)
        listed = node.attributes.get("downsamplingFactors") if node is not None else None
        order = self.placed.view.axis_order
        for known, total in zip(
            listed[1:] if isinstance(listed, list) else (), totals, strict=False
        ):
            wanted = [*from_presented(total, order)]
            require(
                known == wanted,
                f"factors: expected those that the time points of the setup have, "
                f"{known} in N5 order as {setup} lists them, got {wanted}",
            )

    def describe(self, store: N5Store, written: Mapping[str, Written]) -> None:
        """Describe the levels in the group, after their documents are written."""
        if self.convention not in _BY_FACTORS:
            first = describe_axes(self.convention, self.axes, "s0", self.axes)
            written = {"s0": first, **written}
        describe_group(store, self.group, written)

    def describe_itself(self, store: N5Store) -> None:
        """Describe ``s0`` in the convention of its levels, if it is described in another one."""
        if self.is_own:
            return
        in_order = present(self.axes, self.placed.view.axis_order)
        set_geometry(
            store,
            self.path,
            names=[axis.name for axis in in_order],
            units=[axis.unit for axis in in_order],
            scale=[axis.scale for axis in in_order],
            translation=[axis.translation for axis in in_order],
            convention=self.convention,
        )

    def check(self, store: N5Store, totals: Mapping[str, Sequence[int]], method: Method) -> None:
        """Warn of levels for which readers get wrong positions."""
        found = {level.path: level for level in geometry(store, self.group).levels}
        order = self.placed.view.axis_order
        for path, total in totals.items():
            wanted = present(self.axes_at(total, method), order)
            level = found[path]
            pairs = [
                *zip(level.scale, (axis.scale for axis in wanted), strict=True),
                *zip(level.translation, (axis.translation for axis in wanted), strict=True),
            ]
            if any(abs(a - b) > 1e-9 * max(abs(a), abs(b), 1e-300) for a, b in pairs):
                message = (
                    f"{store}: {path}: the convention {level.convention} places it at "
                    f"{level.translation}, and its first element is at "
                    f"{tuple(axis.translation for axis in wanted)}; try another convention"
                )
                warnings.warn(message, N5Warning, stacklevel=3)


def finest_level(store: N5Store, placed: Placed, convention: str) -> Finest:
    """Read the position of ``s0``, and choose how to describe its levels.

    ``"auto"`` chooses the convention of ``s0`` if n5zarr can write it; factors if ``s0`` has only
    these, or if BigDataViewer or a group of Paintera places it; otherwise COSEM's, for ``s0``, too.

    Raises
    ------
    N5UnrepresentableError
        The convention is only read, or unknown (``kind="option"``).
    """
    require(
        convention in ("auto", *WRITTEN),
        f"convention: expected auto or one of {', '.join(WRITTEN)}, got {convention!r}",
    )
    found = placed.geometry
    known = found.convention if found is not None and found.is_stated else None
    chosen = choose_convention(convention, [known])
    is_of_group = known in ("bdv", "factors") or (
        known == "paintera" and "resolution" not in placed.view.dataset.attributes
    )
    if convention == "auto" and known is not None and is_of_group:
        chosen = known
    axes = None if found is None or known is None else found.axes
    if axes is None:
        names = [name or "" for name in placed.view.dimension_names or ()]
        axes = axes_of(
            placed.view.ndim, names=from_presented(names, placed.view.axis_order) or None
        )
    return Finest(placed=placed, axes=axes, convention=chosen, is_own=chosen == known)


def document_of(
    finest: DatasetAttributes,
    dimensions: Sequence[int],
    block_size: Sequence[int],
    compression: Compression,
    written: Written,
    names: Sequence[str],
) -> dict[str, JSON]:
    """Make the ``attributes.json`` of a level.

    Parameters
    ----------
    finest : DatasetAttributes
        Document of ``s0``: the level has elements of the same type, but other attributes.
    dimensions, block_size : sequence of int
        Extent of the level and of its blocks, in elements, N5 order.
    compression : Compression
        Compression of the level.
    written : Written
        Attributes that place the level.
    names : sequence of str
        Names of the axes, N5 order; empty for none.
    """
    record = replace(
        Record.from_json(finest.record), shape=None, attributes={}, nonfinite={}, nulls=[]
    ).to_json()
    document: dict[str, JSON] = {
        "dataType": finest.type_name,
        "compression": compression_to_json(compression),
        "blockSize": [*block_size],
        "dimensions": [*dimensions],
        **written.on_dataset(()),
    }
    if names and all(names) and "dimension_names" not in record:
        document[AXES_KEY] = [*names]
    return {**document, "zarr": record} if record else document
