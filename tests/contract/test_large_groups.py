"""Listing a group of many children reads each document once and stores little."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.storage.local import LocalFiles

N = 900
DATASET = {
    "dimensions": [7, 5], "blockSize": [3, 2], "dataType": "uint8", "compression": {"type": "raw"},
}  # fmt: skip


def make(root: Path, n: int) -> Path:
    """Make a container of groups and datasets, alternately."""
    root.mkdir()
    (root / "attributes.json").write_text('{"n5": "4.0.0"}')
    for i in range(n):
        (root / f"n{i:05d}").mkdir()
        document: dict[str, Any] = DATASET if i % 2 else {"a": i}
        (root / f"n{i:05d}" / "attributes.json").write_text(json.dumps(document))
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("large") / "c.n5", N)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the requests of local files, by kind."""
    found: Counter[str] = Counter()
    answer = LocalFiles.answer

    def counting(self: LocalFiles, request: Any, warn: Any) -> object:
        found[type(request).__name__] += 1
        return answer(self, request, warn)

    monkeypatch.setattr(LocalFiles, "answer", counting)
    return found


ALL: dict[str, Callable[[Path], Any]] = {
    "zarr: members": lambda root: zarr.open_group(N5Store(root), mode="r").members(),
    "zarr: keys": lambda root: list(zarr.open_group(N5Store(root), mode="r").keys()),
    "members": lambda root: n5zarr.open_group(root).members(),
    "keys": lambda root: list(n5zarr.open_group(root).keys()),
    # not list(...), which asks for the length first
    "iteration": lambda root: [name for name in n5zarr.open_group(root)],  # noqa: C416
    "group_keys, twice": lambda root: [*n5zarr.open_group(root).group_keys()] * 2,
    "array_values, twice": lambda root: [*n5zarr.open_group(root).array_values()] * 2,
    "length": lambda root: range(len(n5zarr.open_group(root))),
}


@pytest.mark.each_of(3)
@pytest.mark.parametrize("way", ALL)
def test_each_document_is_read_once(root: Path, counts: Counter[str], way: str) -> None:
    assert len(ALL[way](root)) == N
    assert N <= counts["Get"] < N + 10


def test_a_tree_reads_what_it_shows(root: Path, counts: Counter[str]) -> None:
    assert "n00004" in str(n5zarr.open_group(root).tree(max_nodes=6, plain=True))
    assert counts["Get"] < 520  # what a walk reads ahead


async def test_the_first_key_comes_before_the_last_document_is_read(
    root: Path, counts: Counter[str]
) -> None:
    keys = N5Store(root).list()
    assert await anext(keys) == "zarr.json"
    assert counts["Get"] < 10
    assert len([key async for key in keys]) == N
    assert N <= counts["Get"] < N + 10


async def list_all(root: Path) -> int:
    n = 0
    async for _ in N5Store(root, read_only=True).list():
        n += 1
    return n


def keys(root: Path) -> int:
    return sum(1 for _ in n5zarr.open_group(root))


async def peak(work: Callable[[Path], Any], root: Path) -> int:
    tracemalloc.start()
    try:
        found = work(root)
        assert (found if isinstance(found, int) else await found) > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("work", "most"), [(list_all, 700), (keys, 900)])
async def test_memory_holds_the_names_of_a_large_group(
    tmp_path: Path, root: Path, work: Callable[[Path], Any], most: int
) -> None:
    small = make(tmp_path / "small.n5", 300)
    await peak(work, small)  # what is imported and remembered once
    assert (await peak(work, root) - await peak(work, small)) / (N - 300) < most
