"""A project with very many views costs no more for each of them."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import override

import numpy as np
import pytest

from n5zarr.bigdataviewer.levels import NO_LEVELS, StoredLevels
from n5zarr.bigdataviewer.registrations import View
from n5zarr.bigdataviewer.shown_as_n5 import BdvImages
from n5zarr.errors import N5FormatError
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple
from n5zarr.shown.made_datasets import MadeDataset


@dataclass(frozen=True, kw_only=True)
class Ones(MadeDataset):
    """A level of ones in one block."""

    @override
    async def values(self, box: tuple[slice, ...]) -> np.ndarray:
        return np.ones([s.stop - s.start for s in box], "u1")

    @override
    async def positions(self) -> list[N5Tuple]:
        return [N5Tuple((0, 0, 0))]

    @override
    async def n_bytes_stored(self) -> int:
        return 3 * 5 * 7


SIZE = N5Tuple((7, 5, 3))
LEVEL = Ones(dimensions=SIZE, block_size=SIZE, data_type=DataType.UINT8)
FACTORS = [(1.0, 1.0, 1.0), (2.0, 2.0, 1.5)]


class Counted:
    """Views that count what is asked."""

    def __init__(self, n_setups: int, n_timepoints: int) -> None:
        self._views = list(product(range(n_setups), range(n_timepoints)))
        self.asked: list[str | View] = []

    @property
    def views(self) -> Sequence[View]:
        self.asked.append("views")
        return self._views

    async def levels(self, view: View) -> StoredLevels:
        self.asked.append(view)
        return StoredLevels([(1.0, 1.0, 1.0)], {0: LEVEL})

    def confined(self) -> Counted:
        return self

    def close(self) -> None:
        self.asked.append("close")


@pytest.fixture
def source() -> Counted:
    return Counted(1000, 100)


async def all_of(keys: AsyncIterator[str]) -> list[str]:
    return [key async for key in keys]


def test_views_are_looked_through_once(source: Counted) -> None:
    async def use() -> None:
        images = BdvImages(source)
        assert len(await all_of(images.list_dir(""))) == 1001
        assert source.asked == ["views"]
        for setup in (3, 999):
            names = await all_of(images.list_dir(f"setup{setup}"))
            assert names == ["attributes.json", *(f"timepoint{t}" for t in range(100))]
        assert source.asked == ["views", (3, 0), (999, 0)]  # the first of each makes the document
        view = "setup999/timepoint99"
        assert await all_of(images.list_dir(view)) == ["attributes.json", "s0"]
        own = f"{view}/attributes.json"
        for prefix in (view, f"{view}/", f"{view}/s0", f"{view}/s0/"):
            found = await all_of(images.list_prefix(prefix))
            expected = [own, f"{view}/s0/attributes.json", f"{view}/s0/0/0/0"]
            assert found == [key for key in expected if key.startswith(prefix)]
        assert await images.getsize_prefix(view) == len(LEVEL.document) + 3 * 5 * 7
        document = await images.get(f"{view}/s0/attributes.json")
        assert document is not None
        assert json.loads(document.to_bytes())["dimensions"] == [7, 5, 3]
        assert source.asked == ["views", (3, 0), (999, 0), (999, 99)]

    asyncio.run(use())


@pytest.mark.parametrize(
    "path", ["setup1000/timepoint0", "setup0/timepoint100", "setup01/timepoint0", "setup0/other"]
)
def test_other_views_are_not_asked_for(source: Counted, path: str) -> None:
    async def use() -> None:
        images = BdvImages(source)
        assert not await images.exists(f"{path}/s0/attributes.json")
        assert not await images.exists(f"{path}/s0/0/0/0")
        assert await all_of(images.list_prefix(f"{path}/")) == []
        assert await all_of(images.list_dir(path)) == []
        assert source.asked == ["views"]

    asyncio.run(use())


class Partial(Counted):
    """A view that cannot be read, one without an image, and one without its finest level."""

    async def levels(self, view: View) -> StoredLevels:
        if view[1] == 0:
            raise N5FormatError("broken", kind="member")
        return NO_LEVELS if view[1] == 1 else StoredLevels(FACTORS, {1: LEVEL})


def test_groups_have_the_documents_that_java_reads() -> None:
    """``DefaultN5Properties`` reads the setup; the time point is BigStitcher's, for Paintera."""
    sizes = {0: (0.2, 0.3, 1.5), 1: (1.0, 1.0), 2: (0.0, 1.0, 1.0), 3: (float("inf"), 1.0, 1.0)}
    images = BdvImages(Partial(5, 3), sizes)

    async def document(path: str) -> object:
        found = await images.get(f"{path}/attributes.json")
        assert await images.exists(f"{path}/attributes.json") == (found is not None)
        return None if found is None else json.loads(found.to_bytes())

    async def use() -> None:
        factors = {"downsamplingFactors": [[1, 1, 1], [2, 2, 1.5]]}
        assert await document("setup0") == factors | {"dataType": "uint8"}
        bare = {"saved_completely": False, "multiScale": True}
        assert await document("setup0/timepoint2") == bare | {"resolution": [0.2, 0.3, 1.5]}
        for setup in range(1, 5):
            assert await document(f"setup{setup}/timepoint2") == bare
        for path in ("setup0/timepoint0", "setup0/timepoint1", "setup0/timepoint3", "setup5"):
            assert await document(path) is None

    asyncio.run(use())
    assert pickle.loads(pickle.dumps(images)).voxel_sizes == sizes
    assert images.confined() == images != BdvImages(images.source)


def test_closing_closes_the_views(source: Counted) -> None:
    BdvImages(source).close()
    assert source.asked == ["views", "close"]
