"""Show the views of a split project, boxes of the images of another one; nothing is copied.

multiview-reconstruction 8.0 ``SplitViewerImgLoader`` and ``SplitViewerSetupImgLoader``. A level is
placed by its factors, as there, also if its first element begins before the box.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, override

import numpy as np

from n5zarr.bigdataviewer.boxes import SplitBox
from n5zarr.bigdataviewer.levels import NO_LEVELS, StoredLevels, ViewLevels
from n5zarr.bigdataviewer.registrations import View
from n5zarr.conventions.levels import downsampling_factors, factors_in_json
from n5zarr.conventions.model import MisfitError, Node, level_of
from n5zarr.errors import option_error
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple, to_c
from n5zarr.format.path import join
from n5zarr.shown.made_datasets import MadeDataset
from n5zarr.shown.zarr_datasets import open_zarr_array, zarr_dataset
from n5zarr.storage.confined import confined
from n5zarr.store.n5_store import N5Store
from n5zarr.zarr_view.dataset_view import DatasetView


@dataclass(frozen=True)
class N5Views:
    """The views of a project whose images are N5.

    Parameters
    ----------
    store : N5Store
        The container, with axes in C order.
    group : str
        Path of the group of the setups.
    views : tuple of (int, int)
        The views that may exist, by setup and time point.
    """

    store: N5Store
    group: str
    views: tuple[View, ...]

    def __str__(self) -> str:
        return str(self.store)

    def close(self) -> None:
        """Close the store; reading opens it again."""
        self.store.close()

    def confined(self) -> N5Views:
        """Return the same views, without local files that links take out of the container."""
        store = N5Store(confined(self.store.store), codecs="n5", zarr_format=3, read_only=True)
        return N5Views(store, self.group, self.views)

    async def levels(self, view: View) -> StoredLevels:
        """Open the levels of a view; none if it does not exist."""
        path = join(self.group, f"setup{view[0]}", f"timepoint{view[1]}")
        nodes = self.store.container.nodes
        children = dict(await self.store.run_async(nodes.children(path)))
        found = {level_of(name): each for name, each in children.items()}
        there = {n: v for n, v in found.items() if n is not None and isinstance(v, DatasetView)}
        if not there:
            return NO_LEVELS
        above = await self.store.run_async(nodes.above(join(path, "s0")))
        listed = above[1].get("downsamplingFactors")
        n_levels = max(*there, len(listed) - 1 if isinstance(listed, list) else 0) + 1
        try:
            factors = [_factors(path, n, there.get(n), above) for n in range(n_levels)]
        except MisfitError as err:
            raise option_error(str(err), where=join(str(self.store), path)) from err
        levels: dict[int, MadeDataset] = {}
        for number in sorted(there):
            below = join(path, f"s{number}")
            array = await open_zarr_array(self.store, below, str(self.store))
            if array is not None:
                attributes: dict[str, JSON] = {
                    "downsamplingFactors": factors_in_json(factors[number])
                }
                where = join(str(self.store), below)
                levels[number] = zarr_dataset(array, where, attributes=attributes)
        return StoredLevels(factors, levels)


def _factors(
    path: str, number: int, view: DatasetView | None, above: Sequence[Mapping[str, JSON]]
) -> tuple[float, ...]:
    """Return the factors of a level of a setup; the first one needs to state none."""
    name = f"s{number}"
    dimensions = N5Tuple((1, 1, 1)) if view is None else view.dataset.dimensions
    attributes = {} if view is None else view.attributes
    names = (*path.split("/"), name)
    node = Node(path=names, dimensions=dimensions, attributes=attributes, ancestors=above)
    found = downsampling_factors(node) or (None if number else (1.0, 1.0, 1.0))
    if node.ndim != 3 or found is None:
        raise MisfitError(
            f"{name}: expected a level of three axes with downsamplingFactors, its own or of the "
            f"setup, got the dimensions {[*dimensions]} and the factors {found}"
        )
    return found


@dataclass(repr=False)
class SplitViews:
    """Views that are boxes of others.

    Parameters
    ----------
    source : ViewLevels
        The views with the images.
    boxes : mapping of int to SplitBox
        The box of each setup.
    """

    source: ViewLevels
    boxes: Mapping[int, SplitBox]
    _opened: dict[View, StoredLevels] = field(  # views share an image
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __reduce__(self) -> tuple[Any, ...]:  # without memory
        return SplitViews, (self.source, self.boxes)

    def __str__(self) -> str:
        return str(self.source)

    @property
    def views(self) -> Sequence[View]:
        """The views that may exist."""
        times: dict[int, list[int]] = {}
        for setup, timepoint in self.source.views:
            times.setdefault(setup, []).append(timepoint)
        each = sorted(self.boxes.items())
        return tuple((new, t) for new, box in each for t in times.get(box.setup, ()))

    def close(self) -> None:
        """Close the images."""
        self.source.close()

    def confined(self) -> SplitViews:
        """Return the same views, without local files that links take out of the container."""
        return SplitViews(self.source.confined(), self.boxes)

    async def levels(self, view: View) -> StoredLevels:
        """Open the levels of a view; none if its image does not exist."""
        box = self.boxes[view[0]]
        old = box.setup, view[1]
        if old not in self._opened:
            self._opened[old] = await self.source.levels(old)
        image = self._opened[old]
        levels: dict[int, MadeDataset] = {}
        for number, whole in image.stored.items():
            part = box.at_level(number, image.factors[number], whole.dimensions)
            if part is not None:
                levels[number] = _Part.of(whole, part)
            elif number == 0:
                raise option_error(
                    f"{self}: setup {view[0]}: expected a box in the image of setup {old[0]}, "
                    f"of the dimensions {[*whole.dimensions]}, got min {[*box.first]}, max "
                    f"{[*box.last]}"
                )
        return StoredLevels(image.factors, levels)


@dataclass(frozen=True, kw_only=True)
class _Part(MadeDataset):
    """A box of a dataset, with blocks of the same size."""

    whole: MadeDataset
    start: N5Tuple

    @classmethod
    def of(cls, whole: MadeDataset, box: tuple[range, ...]) -> _Part:
        return cls(
            dimensions=N5Tuple(tuple(map(len, box))),
            block_size=whole.block_size,
            data_type=whole.data_type,
            attributes=whole.attributes,
            whole=whole,
            start=N5Tuple(tuple(each.start for each in box)),
        )

    @override
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        moved = zip(box, to_c(self.start), strict=True)
        return await self.whole.values(tuple(slice(s.start + a, s.stop + a) for s, a in moved))

    @override
    async def positions(self) -> list[N5Tuple]:
        found: set[N5Tuple] = set()
        for position in await self.whole.positions():
            found.update(map(N5Tuple, product(*self._blocks(position))))
        return sorted(found)

    @override
    async def n_bytes_stored(self) -> int:
        """Return the share of the chunks that the box needs; others may need them, too."""
        stored = await self.whole.positions()
        n_needed = sum(all(self._blocks(position)) for position in stored)
        return await self.whole.n_bytes_stored() * n_needed // max(len(stored), 1)

    def _blocks(self, position: N5Tuple) -> list[range]:
        """Return where the blocks are, along each axis, that need a block of the whole."""
        each = zip(position, self.block_size, self.start, self.dimensions, strict=True)
        ends = [(max(p * b - a, 0), min((p + 1) * b - a, n), b) for p, b, a, n in each]
        sizes = [(first // b, last, b) for first, last, b in ends]
        return [range(first, -(-last // b)) for first, last, b in sizes]
