"""Copy label multisets whole: to other blocks of N5, to the draft of Zarr, and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, override

import numpy as np

from n5zarr.arrays.box import Box
from n5zarr.arrays.label_multisets import LabelDataset
from n5zarr.codecs.compress import codec_of, decompress_all
from n5zarr.codecs.label_multiset import draft_of_multisets, encode_multisets, multisets_of_draft
from n5zarr.codecs.multiset_merging import fitted
from n5zarr.codecs.multisets import LabelMultisets
from n5zarr.container.options import require
from n5zarr.errors import ErrorsAt
from n5zarr.format.block import MAX_BLOCK_BYTES
from n5zarr.format.grid import block_path
from n5zarr.format.order import CTuple, N5Tuple, to_n5
from n5zarr.format.path import join
from n5zarr.images.encoded_chunks import read_chunks
from n5zarr.storage.requests import get_each
from n5zarr.store.multiset_drafts import LabelMultisetType, compression_of, register_drafts
from n5zarr.tools.convert.copying import ChunkCopy, ValueCopy
from n5zarr.tools.convert.files import Copied, Folder
from n5zarr.tools.convert.target import ZarrTarget
from n5zarr.tools.convert.target_n5 import N5Destination, N5Target
from n5zarr.zarr_view.chunks import stored_multisets
from n5zarr.zarr_view.element import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from zarr.types import AnyArray

    from n5zarr.arrays.boxes import Box as Slices
    from n5zarr.codecs.buffers import BufferLike
    from n5zarr.format.compression import Compression
    from n5zarr.images.source import ArraySource, N5Blocks, SourceTree
    from n5zarr.tools.convert.copying import ArrayCopy, Way
    from n5zarr.tools.convert.files import Task, TaskSize
    from n5zarr.tools.convert.layout import Form
    from n5zarr.tools.convert.target import ArrayTarget, Destination

__all__ = ["MultisetCopy", "check_drafts", "multiset_copy", "with_multisets"]


def check_drafts(target: Destination, form: Form) -> None:
    """Register the drafts if they are wanted; raise where they do not apply.

    Parameters
    ----------
    target : Destination
        The destination.
    form : Form
        Whether drafts are wanted; readers of OME-Zarr and of coordinates know none.
    """
    if form.drafts:
        is_able = isinstance(target, N5Destination) or target.zarr_format == 3
        message = "drafts=True (--drafts): expected N5 or Zarr v3 as destination, without ome or"
        require(is_able and not (form.ome or form.coords), f"{message} coords", str(target))
        register_drafts()


def with_multisets(found: SourceTree, target: Destination) -> SourceTree:
    """Mark the arrays whose copies hold label multisets, for Zarr or from Zarr."""
    is_n5 = isinstance(target, N5Destination)
    arrays = {
        path: replace(source, label_multiset=True, fill_value=0)
        if _is_draft(source) or (not is_n5 and _has_multisets(source))
        else source
        for path, source in found.arrays.items()
    }
    return replace(found, arrays=arrays)


def _is_draft(source: ArraySource) -> bool:
    return isinstance(source.dtype, LabelMultisetType)


def _has_multisets(source: ArraySource) -> bool:
    return source.blocks is not None and source.blocks.view.content is Content.LABELS


def multiset_copy(source: ArraySource, target: ArrayTarget, size: TaskSize) -> ArrayCopy | None:
    """Return the copy of label multisets to or from the draft, or to other blocks of N5.

    None for any other array, and for the same blocks, which are copied as files.
    """
    if source.label_multiset and (_is_draft(source) or _has_multisets(source)):
        return MultisetCopy(source, target, size)
    is_n5 = isinstance(target, N5Target) and target.blocks.view.content is Content.LABELS
    if is_n5 and _has_multisets(source) and target.array.chunks != source.chunks:
        return MultisetValueCopy(source, target, size)
    return None


class MultisetValueCopy(ValueCopy):
    """Copies label multisets to blocks of another size."""

    way: ClassVar[Way] = "values"

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
        one, other = (draft_of_multisets(d.read(_as_box(part))) for d in self._datasets)
        if one != other:
            raise self.differing(f"[{', '.join(f'{s.start}:{s.stop}' for s in part)}]")


def _as_box(part: Slices) -> Box:
    return Box(tuple(s.start for s in part), tuple(s.stop for s in part))


@dataclass(frozen=True, eq=False)
class MultisetCopy(ChunkCopy):
    """Copies label multisets, chunk by chunk; both sides have the same chunks."""

    way: ClassVar[Way] = "chunks"

    @override
    def copy(self, part: Sequence[tuple[int, ...]]) -> Copied:
        read = zip(part, _read_source(self.source, part), strict=True)
        found = [(position, multisets) for position, multisets in read if multisets is not None]
        if isinstance(self.target, N5Target):
            blocks, packed = self.target.blocks, self.target.compression
            named = [
                (block_path(_in_n5(p)), encode_multisets(fitted(m, self._inside(p)), packed))
                for p, m in found
            ]
            return Copied(len(named), Folder(blocks.store.storage, blocks.path).write(named))
        packed = _compression_of(self.target.array)
        chunks = [(p, draft_of_multisets(fitted(m, self.source.chunks))) for p, m in found]
        compress = codec_of(packed).compress
        return Copied(
            len(chunks), self.target.put([(p, compress(data, packed, 1)) for p, data in chunks])
        )

    @override
    def comparisons(self) -> Iterator[Task]:
        return self.in_batches(self.units(), self.n_together)

    @override
    def compare(self, part: Sequence[tuple[int, ...]]) -> None:
        """Compare all labels and counts inside the array."""
        sides = _read_source(self.source, part), _read_target(self.target, part)
        for position, *both in zip(part, *sides, strict=True):
            inside = self._inside(position)
            empty = LabelMultisets.of(np.zeros((0,) * len(inside), "u8"))
            each = [draft_of_multisets(fitted(one or empty, inside)) for one in both]
            if each[0] != each[1]:
                raise self.differing(f"chunk {position}")

    def _inside(self, position: tuple[int, ...]) -> tuple[int, ...]:
        """Return the extent of a chunk inside the array."""
        return tuple(s.stop - s.start for s in self.box_of(position))


def _in_n5(position: tuple[int, ...]) -> N5Tuple:
    return to_n5(CTuple(position))


def _read_source(
    source: ArraySource, positions: Sequence[tuple[int, ...]]
) -> list[LabelMultisets | None]:
    """Read chunks of a source; None for a missing one, which is background."""
    if source.blocks is not None:
        return _read_blocks(source.blocks, positions)
    assert source.encoded is not None  # noqa: S101 - with shards it is no draft
    return _decoded(source.encoded, positions, read_chunks(source, positions))


def _read_target(
    target: ArrayTarget, positions: Sequence[tuple[int, ...]]
) -> list[LabelMultisets | None]:
    """Read chunks of a destination."""
    if isinstance(target, N5Target):
        return _read_blocks(target.blocks, positions)
    assert isinstance(target, ZarrTarget)  # noqa: S101 - there are two kinds
    return _decoded(target.array, positions, target.read(positions))


def _read_blocks(
    blocks: N5Blocks, positions: Sequence[tuple[int, ...]]
) -> list[LabelMultisets | None]:
    found: list[LabelMultisets | None] = []
    places = list(map(_in_n5, positions))
    keys = [join(blocks.path, block_path(place)) for place in places]
    for place, data in zip(places, blocks.store.run(get_each(keys)), strict=True):
        with ErrorsAt(blocks.store.container.chunks.block_name(blocks.path, place)):
            if data is None:
                found.append(None)
            else:
                found.append(stored_multisets(memoryview(data), blocks.view, place))
    return found


def _decoded(
    array: AnyArray,
    positions: Sequence[tuple[int, ...]],
    stored: Sequence[BufferLike | None],
) -> list[LabelMultisets | None]:
    """Decode chunks of the draft; a missing one holds the fill value once."""
    compression, shape = _compression_of(array), CTuple(array.chunks)
    fill = np.uint64(array.fill_value)
    found: list[LabelMultisets | None] = []
    for position, data in zip(positions, stored, strict=True):
        if data is None:
            found.append(LabelMultisets.of(np.full(shape, fill)) if fill else None)
            continue
        with ErrorsAt(f"{array.store_path}: chunk {position}"):
            payload = decompress_all(memoryview(data), MAX_BLOCK_BYTES, compression)
            found.append(multisets_of_draft(payload, shape))
    return found


def _compression_of(array: AnyArray) -> Compression:
    """Return the compression of the chunks of an array of the draft."""
    codecs: Any = array.metadata.to_dict()["codecs"]
    return compression_of(tuple(codecs[1:]))
