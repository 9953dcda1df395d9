"""A store object remembers documents until they change, and forgets them then."""

from __future__ import annotations

import pickle

import pytest

from n5zarr.container.memory import Memory
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple
from n5zarr.zarr_view.keys import ChunkKey, ChunkNames, MetadataKey

PATHS = ("", "a", "a/b", "ab", "c")
GROUP = GroupAttributes(attributes={})
DOCUMENT = {"zarr_format": 3, "shape": [5, 7], "codecs": [], "attributes": {"x": 1}}
V2_NAMES = {"chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}}


def full_memory() -> Memory:
    memory = Memory(dict.fromkeys(PATHS, b"{}"))
    memory.has_root = True
    for path in PATHS:
        memory.keep(path, GROUP, 1)
        memory.served[MetadataKey(path, "zarr.json")] = b"{}"
        memory.create(path, DOCUMENT | V2_NAMES, (DataType.UINT8, N5Tuple((3, 2)), None))
        memory.formats[path] = 1, 2
        memory.without_trailer.add(path)
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
    for is_kept in (
        memory.node,
        lambda at: memory.take_listed(at, None),
        memory.created.__contains__,
        memory.chunk_names.__contains__,
        memory.formats.__contains__,
        lambda at: MetadataKey(at, "zarr.json") in memory.served,
        lambda at: at in memory.without_trailer,
    ):
        assert tuple(filter(is_kept, PATHS)) == left
    assert memory.assumed.keys() == {*PATHS}  # what the user says stays
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
    assert memory.has_root
    memory.forget_document(MetadataKey("", name))
    assert not memory.has_root


def test_a_creation_keeps_what_a_live_array_relies_on() -> None:
    memory = Memory()
    memory.create("a", DOCUMENT, (DataType.UINT8, N5Tuple((3, 2)), None))
    assert memory.created["a"].document == {"zarr_format": 3, "codecs": []}
    assert "a" not in memory.chunk_names
    memory.create("a", DOCUMENT | V2_NAMES, (DataType.UINT8, N5Tuple((3, 2)), None))
    assert memory.chunk_names["a"] == ChunkNames("", ".")
    assert memory.chunk_of("a/1.0") == ChunkKey("a", (1, 0), 3)
    assert memory.chunk_of("b/1.0") is None


def test_a_copy_serves_the_same_live_arrays_and_remembers_nothing_else() -> None:
    memory = full_memory()
    copied = memory.for_copy()
    memory.create("new", DOCUMENT | V2_NAMES, (DataType.UINT8, N5Tuple((3, 2)), None))
    for path in ("a", "new"):
        assert copied.created[path] is memory.created[path]
        assert copied.chunk_names[path] is memory.chunk_names[path]
    assert copied.assumed["a"] == b"{}"
    kept = {name for name, value in vars(copied).items() if value}
    assert kept == {"assumed", "created", "chunk_names"}


def test_a_pickle_has_no_times_and_no_shard() -> None:
    memory = full_memory()
    memory.keep_named(PATHS)
    memory.keep_shard("k", b"", b"shard")
    copied = pickle.loads(pickle.dumps(memory))
    assert memory.shard_of("k", b"") == b"shard"
    assert copied.shard_of("k", b"") is None
    assert copied.take_listed("a", None) is None
    assert "a" not in copied.named
    for path in PATHS:
        assert copied.served[MetadataKey(path, "zarr.json")] == b"{}"
        assert copied.node(path) == GROUP
