"""Stores of users over obstore: all requests go by their methods, and changes are not lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, override

import numpy as np
import pytest
from zarr.storage import ObjectStore, WrapperStore

import n5zarr

obstore = pytest.importorskip("obstore")


from obstore.store import LocalStore, MemoryStore  # noqa: E402 - see above

FOLDER = "folder/"
DATA = np.arange(5 * 7 * 11, dtype="u2").reshape(5, 7, 11)


class InFolder(ObjectStore[Any]):
    """Keeps its keys in a folder."""

    @override
    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        return await super().get(FOLDER + key, prototype, byte_range)

    @override
    async def set(self, key: str, value: Any) -> None:
        await super().set(FOLDER + key, value)

    @override
    async def delete(self, key: str) -> None:
        await super().delete(FOLDER + key)

    @override
    async def exists(self, key: str) -> bool:
        return await super().exists(FOLDER + key)

    @override
    async def getsize(self, key: str) -> int:
        return await super().getsize(FOLDER + key)

    @override
    async def list_dir(self, prefix: str) -> AsyncIterator[str]:  # type: ignore[override]
        async for name in super().list_dir(FOLDER + prefix):
            yield name.removeprefix(FOLDER)

    @override
    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:  # type: ignore[override]
        async for key in super().list_prefix(FOLDER + prefix):
            yield key.removeprefix(FOLDER)


def test_all_requests_go_by_the_methods_of_a_users_class() -> None:
    memory = MemoryStore()
    array = n5zarr.create_array(InFolder(memory), path="g/a", data=DATA, chunks=(2, 3, 4))
    n5zarr.set_attribute(InFolder(memory), "g/a", "k", [1])
    keys = [entry["path"] for page in obstore.list(memory) for entry in page]
    assert f"{FOLDER}g/a/attributes.json" in keys
    assert all(key.startswith(FOLDER) for key in keys)
    np.testing.assert_array_equal(array[...], DATA)
    found = n5zarr.open_array(InFolder(memory), path="g/a", mode="r")
    np.testing.assert_array_equal(found[...], DATA)
    assert found.attrs["k"] == [1]


@pytest.mark.parametrize("make", [WrapperStore, lambda store: store], ids=["wrapped", "plain"])
def test_two_stores_of_one_place_lose_no_changes(make: Any, tmp_path: Path) -> None:
    stores = [make(ObjectStore(LocalStore(tmp_path))) for _ in range(2)]
    n5zarr.create_array(stores[0], path="a", data=DATA)

    def change(k: int) -> None:
        n5zarr.set_attribute(stores[k % 2], "a", f"k{k}", k)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(change, range(60)))
    found = n5zarr.open_array(stores[0], path="a", mode="r").attrs
    assert [k for k in range(60) if found.get(f"k{k}") != k] == []
