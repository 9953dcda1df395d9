"""What a store object remembers, and what it forgets."""

from __future__ import annotations

import pickle

import pytest

from n5zarr.container.memory import Memory
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple
from n5zarr.zarr_view.keys import ChunkNames, MetadataKey

PATHS = ("", "a", "a/b", "ab", "c")
GROUP = GroupAttributes(attributes={})
DOCUMENT = {"zarr_format": 3, "shape": [5, 7], "codecs": [], "attributes": {"x": 1}}
V2_NAMES = {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}


def full_memory() -> Memory:
    memory = Memory(has_root=True)
    for path in PATHS:
        memory.keep(path, GROUP, 1)
        memory.served[MetadataKey(path, "zarr.json")] = b"{}"
        memory.create(path, DOCUMENT | V2_NAMES, (DataType.UINT8, N5Tuple((3, 2)), None))
        memory.coords_groups[path] = object()
        memory.formats[path] = (None, 2)
        memory.assumed[path] = b"{}"
    memory.keep_listed(dict.fromkeys(PATHS, GROUP), {})
    return memory


@pytest.mark.parametrize(
    ("path", "left"),
    [("a", ("", "ab", "c")), ("a/b", ("", "a", "ab", "c")), ("", ()), ("nothing", PATHS)],
)
def test_forgetting_a_path_forgets_all_below_it_and_nothing_beside(
    path: str, left: tuple[str, ...]
) -> None:
    memory = full_memory()
    memory.forget(path)
    for kept in (
        memory.nodes, memory.listed, memory.created, memory.chunk_names, memory.coords_groups,
        memory.formats,
    ):  # fmt: skip
        assert tuple(kept) == left
    assert tuple(key.path for key in memory.served) == left
    assert tuple(memory.assumed) == PATHS  # what the user says stays
    assert memory.has_root is (path != "")


def test_every_mapping_of_the_memory_is_forgotten_or_meant_to_stay() -> None:
    memory = full_memory()
    memory.forget("")
    left = {name for name, value in vars(memory).items() if isinstance(value, dict) and value}
    assert left == {"assumed"}


@pytest.mark.parametrize(
    ("name", "forgets_creation"), [("zarr.json", True), (".zarray", True), (".zattrs", False)]
)
def test_forgetting_a_document_keeps_what_is_below(name: str, forgets_creation: bool) -> None:
    memory = full_memory()
    memory.served[MetadataKey("a", name)] = b"{}"
    memory.forget_document(MetadataKey("a", name))
    assert MetadataKey("a", name) not in memory.served
    assert memory.node("a") is None
    assert memory.node("a/b") is GROUP
    assert ("a" not in memory.created) is forgets_creation
    assert ("a" not in memory.chunk_names) is forgets_creation


def test_a_creation_keeps_what_a_live_array_relies_on() -> None:
    memory = Memory()
    memory.create("a", DOCUMENT, (DataType.UINT8, N5Tuple((3, 2)), None))
    assert memory.created["a"].document == {"zarr_format": 3, "codecs": []}
    assert memory.chunk_names == {}
    memory.create("a", DOCUMENT | V2_NAMES, (DataType.UINT8, N5Tuple((3, 2)), None))
    assert memory.chunk_names == {"a": ChunkNames("", ".")}


def test_a_listed_node_is_taken_once_and_only_right_after_the_listing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr("n5zarr.container.memory.time.monotonic", lambda: now[0])
    memory = Memory()
    memory.keep_listed({"a": GROUP, "b": GROUP}, {})
    assert memory.take_listed("a", None) is GROUP
    assert memory.take_listed("a", None) is None
    now[0] += 3
    assert memory.take_listed("b", None) is None


def test_a_copy_serves_the_same_live_arrays_and_remembers_nothing_else() -> None:
    memory = full_memory()
    copied = memory.for_copy()
    assert copied.created is memory.created
    assert copied.chunk_names is memory.chunk_names
    assert copied.assumed is memory.assumed
    assert (copied.nodes, copied.served, copied.listed, copied.has_root) == ({}, {}, {}, False)


def test_a_pickle_has_no_times_and_no_shard() -> None:
    memory = full_memory()
    memory.coords_groups.clear()
    memory.last_shard = ("k", b"", b"")
    copied = pickle.loads(pickle.dumps(memory))
    assert copied.listed == {}
    assert copied.last_shard is None
    assert copied.served == memory.served
    assert copied.nodes.keys() == memory.nodes.keys()
