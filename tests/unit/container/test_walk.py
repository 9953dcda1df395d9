"""A walk asks for each document and listing once, many at a time, in small batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from n5zarr.container.memory import Memory
from n5zarr.container.node_names import Broken
from n5zarr.container.nodes import Nodes
from n5zarr.container.options import ViewOptions
from n5zarr.container.walk import Selection, Unreadable, Walk, WalkNode
from n5zarr.format.attributes import GroupAttributes
from n5zarr.storage.requests import Entry, Get, List, Request, Steps
from n5zarr.zarr_view.dataset_view import DatasetView

DATASET = b'{"dataType":"uint8","compression":{"type":"raw"},"blockSize":[2],"dimensions":[3]}'
ROOT = GroupAttributes(attributes={})


class Server:
    """An object store of keys, without empty directories, and a record of its requests."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        self.keys = keys
        self.batches: list[Sequence[Request]] = []

    def __call__(self, steps: Steps[None]) -> None:
        try:
            requests = next(steps)
            while True:
                if requests:
                    self.batches.append(requests)
                requests = steps.send([self.answer(request) for request in requests])
        except StopIteration:
            pass

    def answer(self, request: Request) -> object:
        if isinstance(request, Get):
            return self.keys.get(request.key)
        assert isinstance(request, List)
        prefix = f"{request.path}/" if request.path else ""
        names = {
            key[len(prefix) :].partition("/")[::2] for key in self.keys if key.startswith(prefix)
        }
        entries = {name: bool(inner) for name, inner in sorted(names)}
        return [Entry(name, is_dir) for name, is_dir in entries.items()] or None

    @property
    def asked(self) -> Counter[str]:
        return Counter(str(request) for batch in self.batches for request in batch)


def walk(server: Server, depth: int | None = None) -> Iterator[tuple[WalkNode, bool]]:
    return Walk(Nodes(ViewOptions(), Memory()), server, Selection(depth)).run("", ROOT)


def deep(n_groups: int, n_datasets: int) -> dict[str, bytes]:
    keys = {"attributes.json": b"{}"}
    for i in range(n_groups):
        if i % 2:
            keys[f"g{i:03}/attributes.json"] = b"{}"
        for j in range(n_datasets):
            keys[f"g{i:03}/d{j:03}/attributes.json"] = DATASET
    return keys


def test_nodes_come_depth_first_and_sorted() -> None:
    server = Server(
        {
            "attributes.json": b"{}", "b/attributes.json": b"{}", "b/y/attributes.json": DATASET,
            "b/y/0": b"block", "b/x/deep/attributes.json": DATASET, "a/attributes.json": b"{",
            "c/readme.txt": b"no node of its own, but a group", "z\\q/attributes.json": b"{}",
        }
    )  # fmt: skip
    found = [(f.path, f.level, type(f.node), is_last) for f, is_last in walk(server)]
    assert found == [
        ("", 0, GroupAttributes, True), ("a", 1, Broken, False), ("b", 1, GroupAttributes, False),
        ("b/x", 2, GroupAttributes, False), ("b/x/deep", 3, DatasetView, True),
        ("b/y", 2, DatasetView, True), ("c", 1, GroupAttributes, False), ("z\\q", 1, Broken, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("n_groups", "n_datasets"), [(1, 709), (53, 17), (709, 1), (3, 0)])
def test_each_document_and_listing_is_asked_for_once(n_groups: int, n_datasets: int) -> None:
    server = Server(deep(n_groups, n_datasets))
    found = [f.path for f, _ in walk(server)]
    assert found == sorted({key.rpartition("/")[0] for key in server.keys} | set(found))
    asked = server.asked
    assert max(asked.values()) == 1
    groups = [path for path in found if path.count("/") == 0]
    documents = [f for f in found if f]
    assert sum("Get" in request for request in asked) == len(documents)
    assert sum("List" in request for request in asked) == len(groups)


@pytest.mark.each_of(3)
@pytest.mark.parametrize(("n_groups", "n_datasets"), [(1, 1511), (59, 29), (1511, 1)])
def test_many_are_asked_for_at_a_time(n_groups: int, n_datasets: int) -> None:
    server = Server(deep(n_groups, n_datasets))
    n_nodes = sum(1 for _ in walk(server))
    assert n_nodes > 1511
    assert len(server.batches) < n_nodes / 20
    assert max(map(len, server.batches)) <= 512


def test_the_first_nodes_come_before_the_last_ones_are_asked_for() -> None:
    server = Server(deep(1, 5000))
    nodes = walk(server)
    assert [next(nodes)[0].path for _ in range(3)] == ["", "g000", "g000/d000"]
    assert sum(server.asked.values()) < 600


def test_no_more_than_the_wanted_levels_are_listed() -> None:
    server = Server(deep(4, 3))
    assert [f.path for f, _ in walk(server, depth=1)] == ["", "g000", "g001", "g002", "g003"]
    # those without a document are asked whether they are there
    assert sorted(r for r in server.asked if "List" in r) == [
        str(List("", few=False)), str(List("g000", few=True)), str(List("g002", few=True)),
    ]  # fmt: skip
    assert [f.path for f, _ in walk(server, depth=0)] == [""]


def test_a_node_that_disappears_during_a_walk_is_skipped() -> None:
    server = Server(deep(2, 2))
    nodes = walk(server)
    next(nodes)
    server.keys = {key: value for key, value in server.keys.items() if "d001" not in key}
    rest = [(f.path, is_last) for f, is_last in nodes]
    assert rest == [
        ("g000", False), ("g000/d000", True), ("g001", True), ("g001/d000", True),
    ]  # fmt: skip


class Refusing(Server):
    """A server that refuses some of the keys and listings."""

    def __init__(self, keys: dict[str, bytes], refused: dict[str, Exception]) -> None:
        super().__init__(keys)
        self.refused = refused

    def answer(self, request: Request) -> object:
        assert isinstance(request, Get | List)
        error = self.refused.get(request.key if isinstance(request, Get) else f"{request.path}/")
        if error is not None:
            raise error
        return super().answer(request)


class ResponseError(Exception):
    """An error in the form of aiohttp's and gcsfs's."""

    status = 403


@pytest.mark.parametrize("error", [PermissionError("Access Denied"), ResponseError("Forbidden")])
def test_a_key_that_storage_refuses_is_reported_and_the_rest_is_walked(error: Exception) -> None:
    keys = deep(5, 300)
    refused = ["g001/d007/attributes.json", "g001/d299/attributes.json", "g003/"]
    server = Refusing(keys, dict.fromkeys(refused, error))
    found = {f.path: f.node for f, _ in walk(server)}
    unreadable = {path for path, node in found.items() if isinstance(node, Unreadable)}
    assert unreadable == {"g001/d007", "g001/d299", "g003"}
    assert len(found) == 1 + 5 + 4 * 300
    assert sum(isinstance(node, DatasetView) for node in found.values()) == 4 * 300 - 2
    assert len(server.batches) < 100  # halves are asked for, not single nodes


@pytest.mark.parametrize("error", [ConnectionError("lost"), TimeoutError(), ValueError("odd")])
def test_an_error_that_concerns_more_than_one_key_ends_the_walk(error: Exception) -> None:
    server = Refusing(deep(2, 3), {"g001/d001/attributes.json": error})
    with pytest.raises(type(error)):
        list(walk(server))
