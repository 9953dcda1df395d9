"""Compute levels of label multisets as Paintera does, block by block; each from the previous one.

``SparkDownsampler`` of label-utilities-spark bb066da: the counts of the labels of all voxels that
become one are summed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, override

from n5zarr.arrays.box import Box
from n5zarr.arrays.boxes import boxes
from n5zarr.arrays.label_multisets import LabelDataset
from n5zarr.codecs.multiset_merging import downsampled, joined, used_only
from n5zarr.errors import ErrorsAt
from n5zarr.format.order import from_presented
from n5zarr.format.path import join
from n5zarr.tools.pyramid.work import Pass, blocks_of, differing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from n5zarr.codecs.multisets import LabelMultisets
    from n5zarr.format.lenient_json import JSON
    from n5zarr.store.n5_store import N5Store
    from n5zarr.tools.pyramid.describe import Finest
    from n5zarr.tools.pyramid.work import Level, PassTask

__all__ = ["MultisetPass", "describe_labels", "members_of_level"]

_PER_VOXEL = 64  # bytes for each voxel that is read: its list, copies for sorting, entries


@dataclass(frozen=True, kw_only=True)
class MultisetPass(Pass):
    """A function of a :class:`PassTask` that computes one level; see :class:`Pass`.

    Parameters
    ----------
    max_entries : int
        Largest number of labels of a voxel; no limit below 1.
    memory : int
        Bytes that a worker may use.
    """

    max_entries: int
    memory: int

    @cached_property
    def datasets(self) -> tuple[LabelDataset, LabelDataset]:
        """The previous level, and the one that is computed."""
        (level,) = self.levels
        return _dataset(self.store, self.source), _dataset(self.store, level)

    @override
    def work(self, task: PassTask) -> None:
        (level,), (done,) = self.levels, task.done
        _, target = self.datasets
        for name, box in blocks_of(task.region, level, self.store.axis_order):
            if name in done:
                continue
            place = tuple(s.start // n for s, n in zip(box, level.block, strict=True))
            position = target.view.grid_position(place)
            with ErrorsAt(f"{self.store}: {join(level.path, name)}"):
                made = target.encoded(self._compute(level, box))
            if not self.compares:
                target.put(position, made)
            elif target.get(position) != made:
                raise differing(self.store, level, name)

    def _compute(self, level: Level, box: Sequence[slice]) -> LabelMultisets:
        """Compute a block, in parts that fit into memory."""
        source, _ = self.datasets
        shape = [s.stop - s.start for s in box]
        parts = []
        for part in boxes(shape, self._part(shape, level.factors)):
            each = list(zip(box, part, level.factors, self.source.shape, strict=True))
            start = tuple((s.start + p.start) * f for s, p, f, _ in each)
            stop = tuple(min((s.start + p.stop) * f, n) for s, p, f, n in each)
            found = source.read(Box(start, stop))
            parts.append((part, used_only(downsampled(found, level.factors, self.max_entries))))
        return joined(shape, parts)

    def _part(self, shape: Sequence[int], factors: Sequence[int]) -> list[int]:
        """Halve a block along its longest axis until its voxels fit into memory."""
        part = list(shape)
        while max(part) > 1 and math.prod(part) * math.prod(factors) * _PER_VOXEL > self.memory:
            longest = part.index(max(part))
            part[longest] = -(-part[longest] // 2)
        return part


def _dataset(store: N5Store, level: Level) -> LabelDataset:
    """Find a level, also one whose document is not written yet."""
    if level.document:
        store = store.assuming(level.path, level.document)
    return LabelDataset.at(store, level.path)


def members_of_level(finest: Finest, total: Sequence[int], max_entries: int) -> dict[str, JSON]:
    """Return the attributes of a level by which Paintera knows it.

    Parameters
    ----------
    finest : Finest
        ``s0``.
    total : sequence of int
        Number of voxels of ``s0`` that become one, in the order of the array.
    max_entries : int
        Largest number of labels of a voxel; no limit below 1.
    """
    by = from_presented(total, finest.placed.view.axis_order)
    factors = [f * own for f, own in zip(by, finest.own_factors, strict=True)]
    return {
        "downsamplingFactors": [*map(float, factors)],
        "maxNumEntries": max_entries,
        "isLabelMultiset": True,
    }


def describe_labels(store: N5Store, finest: Finest) -> None:
    """Describe the group of the levels for Paintera.

    ``SparkDownsampler``: the group says that it has levels, and repeats what ``s0`` says.
    """
    own = finest.placed.view.dataset.attributes
    repeated = ("maxId", "resolution", "offset")
    wanted: dict[str, JSON] = {"multiScale": True, "isLabelMultiset": True}
    wanted |= {key: own[key] for key in repeated if key in own}

    def change(attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
        return {**attributes, **{k: v for k, v in wanted.items() if k not in attributes}}

    store.run(store.container.update_attributes(finest.group, change, is_group=True))
