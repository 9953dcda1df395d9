"""The image of N5 that gets levels: how they are made, found, described and removed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, override

from n5zarr._zarr import sync
from n5zarr.arrays.opening import open_array
from n5zarr.container.axes import Placed
from n5zarr.container.foreign import INCOMPLETE_JSON
from n5zarr.container.options import require
from n5zarr.conventions.axis_names import AXES_KEY
from n5zarr.conventions.describe import (
    WRITTEN,
    choose_convention,
    describe_axes,
    remove_levels,
)
from n5zarr.conventions.find import BY_NAME
from n5zarr.conventions.levels import factors_in_json
from n5zarr.conventions.model import Axis, Written, axes_of, centre_shifts, numbers
from n5zarr.errors import N5Warning
from n5zarr.format.attributes import ATTRIBUTES_JSON
from n5zarr.format.compression import compression_to_json
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import from_presented, present
from n5zarr.format.path import join
from n5zarr.format.raw_json import RawObject
from n5zarr.images.source import N5Blocks
from n5zarr.metadata.geometry import geometry
from n5zarr.metadata.levels import describe_group, is_level
from n5zarr.metadata.set_geometry import set_geometry
from n5zarr.rooms import Door
from n5zarr.storage.requests import Remove, RemoveTree, list_each, put_each, request_each
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.convert.source_files import described_dataset
from n5zarr.tools.convert.target import ArrayTarget
from n5zarr.tools.convert.target_n5 import N5Target
from n5zarr.tools.jobs.nodes import check_no_links
from n5zarr.tools.pyramid.image import Level, PyramidImage, Wanted
from n5zarr.tools.pyramid.methods import Method, choose_method
from n5zarr.tools.pyramid.model import ChosenLevel
from n5zarr.zarr_view.element import Content
from n5zarr.zarr_view.record import Record

_DESCRIBE_LABELS: Door[Callable[[N5Store, str, Mapping[str, JSON]], None]] = Door(
    "step", "describe a label source"
)


@dataclass(frozen=True, kw_only=True)
class N5Image(PyramidImage):
    """``s0`` of a group of N5.

    Parameters
    ----------
    container : N5Store
        The container, to be written.
    placed : Placed
        The dataset.
    is_own : bool
        Whether ``s0`` is described in the convention of the levels already.
    """

    container: N5Store
    placed: Placed
    is_own: bool

    @classmethod
    def of(cls, store: N5Store, placed: Placed, convention: str) -> N5Image:
        """Read the position of ``s0``, and choose how to describe its levels.

        ``"auto"`` chooses the convention of ``s0`` if n5zarr can write it; factors if ``s0`` has
        only these, or if BigDataViewer or a group of Paintera places it; otherwise COSEM's, for
        ``s0``, too.

        Raises
        ------
        N5UnrepresentableError
            The convention is only read, or unknown (``kind="option"``).
        """
        require(
            store.durability != "overwrite",
            "durability: expected 'atomic' or 'durable', so that blocks are whole if the run is "
            "interrupted, got 'overwrite'",
            f"{store}: {placed.path}",
        )
        require(
            convention in ("auto", *WRITTEN),
            f"convention: expected auto or one of {', '.join(WRITTEN)}, got {convention!r}",
        )
        found = placed.geometry
        known = found.convention if found is not None and found.is_stated else None
        chosen = choose_convention(convention, [known])
        if convention == "auto" and known is not None and BY_NAME[known].is_by_factors:
            is_placed = {*BY_NAME[known].placing_keys} & placed.view.dataset.attributes.keys()
            chosen = chosen if is_placed else known
        axes = None if found is None or known is None else found.axes
        if axes is None:
            names = [name or "" for name in placed.view.dimension_names or ()]
            axes = axes_of(
                placed.view.ndim, names=from_presented(names, placed.view.axis_order) or None
            )
        view, group = placed.view, placed.path.rpartition("/")[0]
        return cls(
            storage=store.storage,
            group=group,
            source=Level(placed.path, view.chunk_shape, shape=view.shape),
            dtype=view.kind.dtype,
            chunks=view.chunk_shape,
            axes=present(axes, view.axis_order),
            convention=chosen,
            documents=tuple(join(path, ATTRIBUTES_JSON) for path in (placed.path, group)),
            described=described_dataset(view.dataset),
            compression=view.dataset.compression,
            container=store,
            placed=placed,
            is_own=chosen == known,
        )

    @property
    def _own_axes(self) -> tuple[Axis, ...]:
        """The axes in N5 order."""
        return from_presented(self.axes, self.placed.view.axis_order)

    @override
    def method(self, given: str) -> Method:
        is_multiset = self.placed.view.content is Content.LABELS
        return choose_method(given, self.dtype, is_multiset=is_multiset)

    # ----------------------------------------------------------------------------- arrays

    @override
    def level(self, name: str, chosen: ChosenLevel, wanted: Wanted) -> Level:
        self._check_setup(name, chosen)
        path, document = self.full(name), self._document(name, chosen, wanted)
        data = RawObject(document).to_bytes()
        return Level(
            path,
            wanted.chunks,
            {join(path, ATTRIBUTES_JSON): data},
            shape=chosen.shape,
            factors=chosen.factors,
            total=chosen.total,
        )

    def _document(self, name: str, level: ChosenLevel, wanted: Wanted) -> dict[str, JSON]:
        """Make the ``attributes.json`` of a level: that of ``s0`` with other attributes."""
        view = self.placed.view
        record = replace(
            Record.from_json(view.dataset.record), shape=None, attributes={}, nonfinite={}, nulls=[]
        ).to_json()
        written = self._written(name, level.total, wanted.method)
        document: dict[str, JSON] = {
            "dataType": view.dataset.type_name,
            "compression": compression_to_json(wanted.compression or view.dataset.compression),
            "blockSize": [*from_presented(wanted.chunks, view.axis_order)],
            "dimensions": [*from_presented(level.shape, view.axis_order)],
            **written.on_dataset(()),
        }
        # levels by factors need no names that s0 lacks
        is_named = view.dimension_names or not BY_NAME[self.convention].is_by_factors
        names = [axis.name for axis in self._own_axes] if is_named else []
        if names and all(names) and "dimension_names" not in record:
            document[AXES_KEY] = [*names]
        if record:
            document["zarr"] = record
        if wanted.method == "multiset":
            document |= {  # by which Paintera knows it
                "downsamplingFactors": [*map(float, self._total_factors(level.total))],
                "maxNumEntries": wanted.max_entries,
                "isLabelMultiset": True,
            }
        return document

    @override
    def target(self, level: Level, mode: Literal["r", "r+"]) -> ArrayTarget:
        store = self.container
        for data in level.documents.values():
            store = store.assuming(level.path, RawObject.parse(data).values)
        array = open_array(store, mode, path=level.path)
        if mode == "r+":
            array = array.with_config({"write_empty_chunks": False})
        view: Any = store.node(level.path)  # the document is one of a dataset
        return N5Target(level.path, array, N5Blocks(store, level.path, view))

    @override
    def n_bytes_stored(self, level: Level) -> int:
        n_document = sync(self.store.getsize(join(level.path, ATTRIBUTES_JSON)))
        return sync(self.container.getsize_prefix(level.path)) - n_document

    # ------------------------------------------------------------------ levels that are there

    @override
    def existing(self, names: Sequence[str]) -> list[str]:
        return coarser_levels(self.container, self.group)

    @override
    def remove(self, names: Sequence[str]) -> None:
        paths = [self.full(name) for name in names]
        check_no_links(self.storage, paths)
        # and the marks: no run may continue a half-removed level
        files = [join(path, file) for path in paths for file in (ATTRIBUTES_JSON, INCOMPLETE_JSON)]
        self.container.run(request_each(map(Remove, files)))
        unlist(self.container, self.group, names)
        self.container.run(request_each(map(RemoveTree, paths)))

    # -------------------------------------------------------------------------- positions

    def _total_factors(self, total: Sequence[int]) -> list[float]:
        """Return the elements of full resolution in one element of a level, N5 order.

        Those in an element of ``s0`` times those of ``s0`` in an element of the level.
        """
        if self.convention == "factors":  # which gives no other scale
            own = [axis.scale for axis in self._own_axes]
        else:
            known = numbers(self.placed.view.dataset.attributes.get("downsamplingFactors")) or ()
            own = [*known, *[1.0] * (len(self.axes) - len(known))]
        by = from_presented(total, self.placed.view.axis_order)
        return [f * n for f, n in zip(by, own, strict=True)]

    def _written(self, name: str, total: Sequence[int], method: Method) -> Written:
        """Describe a level."""
        axes = from_presented(self.axes_at(total, method), self.placed.view.axis_order)
        if not BY_NAME[self.convention].is_by_factors:
            return describe_axes(self.convention, axes, name, self._own_axes)
        factors = self._total_factors(total)
        is_double = self.convention == "paintera"
        written: list[JSON] = [*factors] if is_double else factors_in_json(factors)
        attributes: dict[str, JSON] = {"downsamplingFactors": written}
        starts = [axis.translation for axis in axes]
        if self.convention == "factors" and starts != [*centre_shifts([1.0] * len(axes), factors)]:
            attributes["offset"] = [*starts]
        return Written(attributes)

    def _check_setup(self, name: str, chosen: ChosenLevel) -> None:
        """Check that a level is the one that BigDataViewer's setup lists for all time points."""
        if self.convention != "bdv":
            return
        setup = self.group.rpartition("/")[0]
        node = self.container.node(setup)
        listed = node.attributes.get("downsamplingFactors") if node is not None else None
        wanted = [*from_presented(chosen.total, self.placed.view.axis_order)]
        known = dict(enumerate(listed if isinstance(listed, list) else ()))
        found = known.get(int(name[1:]), wanted)
        require(
            found == wanted,
            f"factors: expected those that the time points of the setup have, {found} in N5 order "
            f"as {setup} lists them, got {wanted}",
        )

    @override
    def finish(self, levels: Sequence[Level], wanted: Wanted) -> None:
        store, axes = self.container, self.axes
        if not self.is_own:
            set_geometry(
                store,
                self.source.path,
                names=[axis.name for axis in axes],
                units=[axis.unit for axis in axes],
                scale=[axis.scale for axis in axes],
                translation=[axis.translation for axis in axes],
                convention=self.convention,
            )
        store.run(put_each([item for level in levels for item in level.documents.items()]))
        written = {
            self.name(level): self._written(self.name(level), level.total, wanted.method)
            for level in levels
        }
        if not BY_NAME[self.convention].is_by_factors:
            first = describe_axes(self.convention, self._own_axes, "s0", self._own_axes)
            written = {"s0": first, **written}
        describe_group(store, self.group, written)
        if wanted.method == "multiset":
            _DESCRIBE_LABELS.needed()(store, self.group, self.placed.view.dataset.attributes)

    @override
    def warn(self, levels: Sequence[Level], method: Method) -> None:
        if (method, self.convention) == ("multiset", "paintera"):  # which has no shift
            return
        found = {level.path: level for level in geometry(self.container, self.group).levels}
        for made in levels:
            wanted, level = self.axes_at(made.total, method), found[made.path]
            pairs = [
                *zip(level.scale, (axis.scale for axis in wanted), strict=True),
                *zip(level.translation, (axis.translation for axis in wanted), strict=True),
            ]
            if any(abs(a - b) > 1e-9 * max(abs(a), abs(b), 1e-300) for a, b in pairs):
                message = (
                    f"{self.container}: {made.path}: the convention {level.convention} places it "
                    f"at {level.translation}, and its first element is at "
                    f"{tuple(axis.translation for axis in wanted)}; try another convention"
                )
                warnings.warn(message, N5Warning, stacklevel=3)


def coarser_levels(store: N5Store, group: str) -> list[str]:
    """List the existing levels beside ``s0``, complete or not."""
    (entries,) = store.run(list_each([group]))
    found = [e.name for e in entries if is_level(e.name) and e.is_dir is not False]
    names = sorted({*found} - {"s0"}, key=lambda name: int(name[1:]))
    # a run that was killed while it wrote its first file leaves a directory without others
    inside = store.run(list_each([join(group, name) for name in names]))
    return [name for name, files in zip(names, inside, strict=True) if files]


def unlist(store: N5Store, group: str, names: Sequence[str]) -> None:
    """Remove levels without documents from the attributes of their group."""
    store.run(
        store.container.update_attributes(
            group, lambda attributes: remove_levels(attributes, names), is_group=True
        )
    )
    describe_group(store, group)
