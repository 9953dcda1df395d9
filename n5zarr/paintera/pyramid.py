"""Compute levels of label multisets as Paintera does, block by block; each from the previous one.

``SparkDownsampler`` of label-utilities-spark bb066da: the counts of the labels of all voxels that
become one are summed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, override

from n5zarr.arrays.box import Box
from n5zarr.arrays.boxes import boxes
from n5zarr.codecs.multiset_merging import used_only
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.errors import ErrorsAt
from n5zarr.format.lenient_json import JSON
from n5zarr.paintera.combining import downsampled, joined
from n5zarr.paintera.label_multisets import LabelDataset
from n5zarr.store.n5_store import N5Store
from n5zarr.tools.pyramid.image import Level
from n5zarr.tools.pyramid.work import Pass, PassTask

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
    def datasets(self) -> list[LabelDataset]:
        """The previous level, and the one that is computed."""
        targets: list[Any] = self.targets  # of N5
        each = (target.blocks for target in targets)
        return [LabelDataset(blocks.store, blocks.path, blocks.view) for blocks in each]

    @override
    def work(self, task: PassTask) -> None:
        (level,), (done,) = self.levels, task.done
        _, target = self.datasets
        for place, key, box in self.blocks_of(1, task.region):
            if key in done:
                continue
            position = target.view.grid_position(place)
            with ErrorsAt(f"{target.store}: {key}"):
                made = target.encoded(self._compute(level, box))
            if not self.compares:
                target.put(position, made)
            elif target.get(position) != made:
                raise self.differing(level, key)

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


def describe_labels(store: N5Store, group: str, own: Mapping[str, JSON]) -> None:
    """Describe the group of the levels for Paintera.

    ``SparkDownsampler``: the group says that it has levels, and repeats what ``s0`` says.

    Parameters
    ----------
    store : N5Store
        The container.
    group : str
        The group.
    own : mapping
        The attributes of ``s0``.
    """
    repeated = ("maxId", "resolution", "offset")
    wanted: dict[str, JSON] = {"multiScale": True, "isLabelMultiset": True}
    wanted |= {key: own[key] for key in repeated if key in own}

    def change(attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
        return {**attributes, **{k: v for k, v in wanted.items() if k not in attributes}}

    store.run(store.container.update_attributes(group, change, is_group=True))
