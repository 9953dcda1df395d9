"""Copy label multisets to other blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import override

from n5zarr.arrays.box import Box
from n5zarr.arrays.boxes import BoxSlices
from n5zarr.codecs.label_multiset import payload_of_multisets
from n5zarr.images.source import N5Blocks
from n5zarr.paintera.label_multisets import LabelDataset
from n5zarr.tools.convert.copies import Copied
from n5zarr.tools.convert.copying import ValueCopy
from n5zarr.tools.convert.target_n5 import N5Target


@dataclass(frozen=True, eq=False)
class MultisetCopy(ValueCopy):
    """Copies label multisets of N5 to blocks of another size.

    Parameters
    ----------
    blocks : N5Blocks
        The blocks of the source.
    """

    target: N5Target
    blocks: N5Blocks

    @property
    def _datasets(self) -> tuple[LabelDataset, LabelDataset]:
        both = self.blocks, self.target.blocks
        one, other = (LabelDataset(each.store, each.path, each.view) for each in both)
        return one, other

    @override
    def copy(self, part: tuple[BoxSlices, list[BoxSlices], int]) -> Copied:
        _, written, n_units = part
        source, target = self._datasets
        for box in map(_as_box, written):
            target.write(box, source.read(box))
        return Copied(n_units)

    @override
    def compare(self, part: BoxSlices) -> None:
        one, other = (payload_of_multisets(d.read(_as_box(part))) for d in self._datasets)
        if one != other:
            raise self.differing(f"[{', '.join(f'{s.start}:{s.stop}' for s in part)}]")


def _as_box(part: BoxSlices) -> Box:
    return Box(tuple(s.start for s in part), tuple(s.stop for s in part))
