"""Copy label multisets to other blocks of N5, with all labels and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, override

from n5zarr.arrays.box import Box
from n5zarr.arrays.label_multisets import LabelDataset
from n5zarr.codecs.label_multiset import payload_of_multisets
from n5zarr.tools.convert.copying import ValueCopy
from n5zarr.tools.convert.files import Copied
from n5zarr.tools.convert.target_n5 import N5Target
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from n5zarr.arrays.boxes import Box as Slices
    from n5zarr.images.source import ArraySource
    from n5zarr.tools.convert.copying import ArrayCopy
    from n5zarr.tools.convert.files import TaskSize
    from n5zarr.tools.convert.target import ArrayTarget

__all__ = ["multiset_copy"]


def multiset_copy(source: ArraySource, target: ArrayTarget, size: TaskSize) -> ArrayCopy | None:
    """Return the copy of label multisets to other blocks of N5.

    None for any other array, and for the same blocks, which are copied as files.
    """
    is_n5 = isinstance(target, N5Target) and target.blocks.view.content is Content.LABELS
    if is_n5 and source.holds_multisets and target.array.chunks != source.chunks:
        return MultisetCopy(source, target, size)
    return None


class MultisetCopy(ValueCopy):
    """Copies label multisets to blocks of another size."""

    @property
    def _datasets(self) -> tuple[LabelDataset, LabelDataset]:
        assert isinstance(self.target, N5Target)  # noqa: S101 - see `multiset_copy`
        both = self.source.blocks, self.target.blocks
        one, other = (LabelDataset(b.store, b.path, b.view) for b in both if b is not None)
        return one, other

    @override
    def copy(self, part: tuple[Slices, list[Slices], int]) -> Copied:
        _, written, n_units = part
        source, target = self._datasets
        for box in map(_as_box, written):
            target.write(box, source.read(box))
        return Copied(n_units)

    @override
    def compare(self, part: Slices) -> None:
        one, other = (payload_of_multisets(d.read(_as_box(part))) for d in self._datasets)
        if one != other:
            raise self.differing(f"[{', '.join(f'{s.start}:{s.stop}' for s in part)}]")


def _as_box(part: Slices) -> Box:
    return Box(tuple(s.start for s in part), tuple(s.stop for s in part))
