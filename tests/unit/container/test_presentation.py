"""Nodes become documents and keys of Zarr, in the format in which each was last written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from n5zarr.container import hierarchy
from n5zarr.container.container import Container
from n5zarr.container.formats import in_format
from n5zarr.container.memory import Memory
from n5zarr.container.node_names import Broken, ReplacedError, names_of_nodes
from n5zarr.container.nodes import Nodes
from n5zarr.container.options import ViewOptions
from n5zarr.errors import N5AttributesError, N5Error, N5FormatError, N5UnsupportedError, N5Warning
from n5zarr.format.attributes import GroupAttributes
from n5zarr.storage.requests import Entry, Get, List, Request, Stamp
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import ChunkNames, MetadataKey
from tests.refusals import refused
from tests.unit.container.answers import DATASET, FULL_BLOCK, Answers, Doc, presented

OF_2: Doc = {"zarr": {"zarr_format": 2}}
OF_3: Doc = {"zarr": {"zarr_format": 3}}
ZARR_GROUP = {"zarr_format": 3, "node_type": "group"}
NESTED: Doc = {
    "attributes.json": {"n5": "4.0.0"}, "z/zarr.json": ZARR_GROUP, "z/c/0/0": b"zz",
    "a/attributes.json": DATASET, "a/0/0": FULL_BLOCK, "a/README": b"r",
    "a/inner/attributes.json": {"u": 1}, "g/attributes.json": {"x": 1}, "g/7": b"seven",
    "g/README": b"?", "bare/x/attributes.json": {}, "bare/x/y/d/attributes.json": DATASET,
    "bare/x/y/d/0/0": FULL_BLOCK, "bare/x/y/d/1/1": FULL_BLOCK,
}  # fmt: skip
CHUNK = FULL_BLOCK[12:]


def value_of(answers: Answers, container: Container, key: str) -> Any:
    found = bytes(answers(container.read(key)) or b"")
    is_document = key.endswith((".json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"))
    return json.loads(found) if is_document and found else found or None


# expected: a member of the document, or the bytes
@pytest.mark.parametrize(
    ("key", "mixed", "of_v3", "of_v2"),
    [
        ("zarr.json", "zarr_format", "zarr_format", None),
        (".zgroup", None, None, "zarr_format"),
        (".zattrs", None, None, None),
        ("a/zarr.json", "shape", "shape", None),
        ("a/.zarray", None, None, "chunks"),
        ("a/.zgroup", None, None, None),
        ("a/0.0", CHUNK, None, CHUNK),
        ("a/c/0/0", CHUNK, CHUNK, None),
        ("a/7", None, None, None),
        ("a/README", None, None, None),
        ("a/attributes.json", None, None, None),
        ("a/inner/zarr.json", "attributes", "attributes", None),
        ("g/.zattrs", None, None, "x"),
        ("g/zarr.json", "attributes", "attributes", None),
        ("g/README", b"?", b"?", b"?"),
        # a file in a group that has the name of a chunk of v2
        ("g/7", b"seven", b"seven", None),
        ("g/attributes.json", None, None, None),
        ("bare/zarr.json", "node_type", "node_type", None),
        ("bare/.zgroup", None, None, "zarr_format"),
        ("nothing/zarr.json", None, None, None),
        ("z/c/0/0", b"zz", b"zz", None),
        ("z/nothing", None, None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("zarr_format", "column"), [(None, 0), (3, 1), (2, 2)])
def test_what_each_key_holds(
    key: str, mixed: Any, of_v3: Any, of_v2: Any, zarr_format: Any, column: int
) -> None:
    expected = (mixed, of_v3, of_v2)[column]
    answers, container = Answers(**NESTED), presented(zarr_format=zarr_format)
    value = value_of(answers, container, key)
    assert (expected in value) if isinstance(expected, str) else value == expected
    for again in (container, presented(zarr_format=zarr_format)):
        assert answers(again.exists(key)) is (expected is not None)


@pytest.mark.parametrize(("zarr_format", "name"), [(3, "zarr.json"), (2, ".zgroup")])
def test_a_node_of_zarr_is_refused_by_its_name(zarr_format: Any, name: str) -> None:
    answers, container = Answers(**NESTED), presented(zarr_format=zarr_format)
    for steps in (container.read, container.exists, lambda _: container.node("z")):
        with refused(N5FormatError, "foreign", r"^c\.n5: z: expected N5, got a Zarr v3"):
            answers(steps(f"z/{name}"))


@pytest.mark.parametrize(
    ("path", "names", "below"),
    [
        ("", ["a", "bare", "g", "zarr.json"],
         ["zarr.json", "a/zarr.json", "a/c/0/0", "bare/zarr.json", "bare/x/zarr.json",
          "bare/x/y/zarr.json", "bare/x/y/d/zarr.json", "bare/x/y/d/c/0/0", "bare/x/y/d/c/1/1",
          "g/zarr.json"]),
        ("a", ["c", "zarr.json"], ["a/zarr.json", "a/c/0/0"]),
        ("a/c", ["0"], ["a/c/0/0"]),
        ("bare/x/y/d/c/1", ["1"], ["bare/x/y/d/c/1/1"]),
        ("a/0", [], []),
        ("g", ["zarr.json"], ["g/zarr.json"]),
        ("g/c", [], []),
        ("bare/x/y", ["d", "zarr.json"],
         ["bare/x/y/zarr.json", "bare/x/y/d/zarr.json", "bare/x/y/d/c/0/0", "bare/x/y/d/c/1/1"]),
        ("nothing", [], []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_stamps", [True, False])
def test_what_is_below_a_path(
    path: str, names: list[str], below: list[str], *, has_stamps: bool
) -> None:
    answers, container = Answers(**NESTED), presented(has_stamps=has_stamps)
    assert answers(container.names(path)) == names
    assert [key for flow in container.keys_below(path) for key in answers(flow)] == below
    assert answers(container.is_empty(path)) is (not below)
    if not path:
        answers.warnings.clear()
        for flow in container.keys_below(path):
            answers(flow)
        assert {w[:30] for w in answers.warnings} == {"omitted from the listing: z: e"}


@pytest.mark.parametrize(("names", "size"), [("_KEYS", 2), ("_AHEAD", 1), ("_TOGETHER", 1)])
def test_a_listing_in_small_batches_is_the_same(
    names: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, container = Answers(**NESTED), presented()
    whole = [key for flow in container.keys_below("") for key in answers(flow)]
    children = answers(container.names(""))
    monkeypatch.setattr(hierarchy, names, size)
    batches = [answers(flow) for flow in container.keys_below("")]
    assert [key for batch in batches for key in batch] == whole
    assert names != "_KEYS" or max(map(len, batches)) <= size
    assert answers(container.names("")) == children


@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_many_chunks_are_sorted_by_their_names(
    axis_order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [(0, 0), (0, 2), (0, 10), (2, 1), (10, 0), (10, 11), (1, 2)]
    document = DATASET | {"dimensions": [33, 24]}
    answers = Answers(
        **{"a/attributes.json": document}, **{f"a/{x}/{y}": FULL_BLOCK for x, y in blocks}
    )
    monkeypatch.setattr(hierarchy, "_SORTED", 3)
    keys = [k for f in presented(axis_order=axis_order).keys_below("a") for k in answers(f)][1:]
    shown = [(y, x) if axis_order == "C" else (x, y) for x, y in blocks]
    assert keys == sorted(f"a/c/{i}/{j}" for i, j in shown)


def test_chunks_of_an_array_with_other_names_are_listed_and_read_by_them() -> None:
    answers, container = Answers(**NESTED), presented()
    document = {"zarr_format": 3, "shape": [3, 5]}
    view = answers(container.node("a"))
    assert isinstance(view, DatasetView)
    of = view.dataset
    container.memory.create("a", document, (of.data_type, of.block_size, None))
    container.memory.chunk_names["a"] = ChunkNames("c", ".")
    assert [k for f in container.keys_below("a") for k in answers(f)] == ["a/zarr.json", "a/c.0.0"]
    assert bytes(answers(container.read("a/c.0.0")) or b"") == CHUNK


# ---------------------------------------------------------------------- formats of Zarr

MIXED: Doc = {
    "attributes.json": OF_2, "two/attributes.json": {"u": 1},
    "two/d/attributes.json": DATASET | {"axes": ["x", "y"]}, "two/bare/file": b"",
    "three/attributes.json": OF_3, "three/d/attributes.json": DATASET,
    "three/two/attributes.json": OF_2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "has_stamps", "names"),
    [
        ("", True, [".zgroup"]),
        ("two", True, [".zattrs", ".zgroup"]),
        ("two/d", True, [".zarray", ".zattrs"]),
        ("two/bare", True, [".zgroup"]),
        ("three", True, ["zarr.json"]),
        ("three/d", True, ["zarr.json"]),
        ("three/two", True, [".zgroup"]),
        # on servers, the groups above are not read for this
        ("two", False, ["zarr.json"]),
        ("three/two", False, [".zgroup"]),
    ],
)
def test_a_node_has_the_format_of_its_record_or_of_the_nearest_group_with_one(
    path: str, names: list[str], *, has_stamps: bool
) -> None:
    answers, container = Answers(**MIXED), presented(has_stamps=has_stamps)
    known = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
    keys = {name: f"{path}/{name}".lstrip("/") for name in known}
    found = [name for name in sorted(keys) if answers(container.read(keys[name])) is not None]
    assert found == names
    assert [name for name in sorted(keys) if answers(container.exists(keys[name]))] == names


def test_attributes_of_an_array_of_v2_have_the_names_of_its_axes() -> None:
    answers = Answers(**MIXED)
    found = value_of(answers, presented(), "two/d/.zattrs")
    assert found["_ARRAY_DIMENSIONS"] == ["y", "x"]
    found = value_of(answers, presented(zarr_format=2, axis_order="F"), "two/d/.zattrs")
    assert found["_ARRAY_DIMENSIONS"] == ["x", "y"]


def test_formats_above_are_read_again_when_their_documents_change() -> None:
    answers, container = Answers(**MIXED), presented()
    for _ in range(2):
        assert answers(container.read("two/d/zarr.json")) is None
    assert answers.asked.count(Get("two/attributes.json")) == 1
    answers.values["two/attributes.json"] = json.dumps(OF_3).encode()
    assert answers(container.read("two/d/zarr.json")) is not None
    answers.values["two/attributes.json"] = b'{"zarr_format"'  # a damaged one names none
    assert answers(container.read("two/d/zarr.json")) is None


@pytest.mark.parametrize(
    ("path", "has_stamps", "fixed", "expected"),
    [
        ("three/d", True, None, True), ("two/d", True, None, False), ("new", True, None, False),
        ("three/two", True, None, False), ("three/d", False, None, False),
        ("three/d", True, 3, False),
    ],
)  # fmt: skip
def test_a_node_that_is_surely_of_v3_is_not_parsed_for_v2(
    path: str, fixed: Any, *, has_stamps: bool, expected: bool
) -> None:
    container = presented(has_stamps=has_stamps, zarr_format=fixed)
    assert Answers(**MIXED)(container.nodes.formats.is_surely_v3(path)) is expected


def test_a_chunk_of_a_known_array_is_told_by_its_format() -> None:
    plain = {"dataType": "uint8", "compression": {"type": "raw"}}
    block = bytes.fromhex("0000 0001 00000001")
    scalar = plain | {"dimensions": [1], "blockSize": [1], "zarr": {"shape": []}}
    line = plain | {"dimensions": [1], "blockSize": [1]} | OF_2
    values = {"s/attributes.json": scalar, "s/0": block + b"1", "p/attributes.json": line}
    values |= {"p/0": block + b"2", "p/c/attributes.json": line, "p/c/0": block + b"3"}
    answers, container = Answers(**values), presented()
    for _ in range(2):
        for key, expected in {"s/c": b"1", "p/0": b"2", "p/c/0": b"3"}.items():
            answers(container.read(f"{key.rpartition('/')[0]}/.zarray"))
            assert value_of(answers, container, key) == expected


def test_an_array_that_is_shown_in_another_format_has_no_given_document() -> None:
    answers = Answers(**{"a/attributes.json": DATASET})
    view = answers(presented().node("a"))
    assert isinstance(view, DatasetView)
    given = replace(view, given={"zarr_format": 3})
    assert in_format(given, 3).given == {"zarr_format": 3}
    assert (in_format(given, 2).given, in_format(given, 2).zarr_format) == (None, 2)
    assert in_format(view, 2).given is None


def test_a_document_of_v2_is_not_looked_for_where_all_is_v3() -> None:
    answers, container = Answers(**NESTED), presented()
    assert answers(container.read("a/.zarray")) is None
    assert answers(container.exists("a/.zarray")) is False
    answers.asked.clear()
    container = presented()
    answers(container.read("bare/x/y/d/.zarray"))
    assert not any(r == List("bare/x/y/d") for r in answers.asked)


# ---------------------------------------------------------------------- consolidated metadata

TREE: Doc = {
    "attributes.json": {}, "g/attributes.json": {"zarr": {"consolidated": True}},
    "g/d/attributes.json": DATASET, "g/e/attributes.json": {"u": 1}, "g/e/f/attributes.json": {},
    "g/e/b/attributes.json": b"{", "g/e/t/attributes.json": {"zarr": {"zarr_format": 2}},
}  # fmt: skip


@pytest.mark.parametrize("path", ["g", ""])
def test_the_metadata_of_all_nodes_below_are_part_of_a_consolidated_group(path: str) -> None:
    values = {key.removeprefix("" if path else "g/"): value for key, value in TREE.items()}
    answers = Answers(**values)
    found = value_of(answers, presented(), f"{path}/zarr.json".lstrip("/"))
    below = found["consolidated_metadata"]
    assert (below["kind"], below["must_understand"]) == ("inline", False)
    assert list(below["metadata"]) == ["d", "e", "e/f"]  # parents first, without v2 and broken ones
    assert below["metadata"]["d"]["shape"] == [3, 5]
    assert below["metadata"]["e"]["attributes"] == {"u": 1}
    assert [w[:25] for w in answers.warnings] == ["omitted from the listing:"]


def test_consolidated_metadata_of_v2_have_their_own_document() -> None:
    answers, container = Answers(**TREE), presented(zarr_format=2)
    found = value_of(answers, container, "g/.zmetadata")
    assert found["zarr_consolidated_format"] == 1
    # the nodes of a fixed format are all shown
    assert sorted(found["metadata"]) == [
        ".zgroup", "d/.zarray", "e/.zattrs", "e/.zgroup", "e/f/.zgroup", "e/t/.zgroup",
    ]  # fmt: skip
    assert value_of(answers, container, "g/.zgroup") == {"zarr_format": 2}
    assert answers(container.names("g")) == [".zgroup", ".zmetadata", "d", "e"]
    unshown: Doc = {"g/.zmetadata": {"zarr_format": 3}, "g/e/.zmetadata": {}}
    for key, options in unshown.items():
        assert value_of(answers, presented(**options), key) is None
        assert not answers(presented(**options).exists(key))


def test_consolidated_metadata_are_not_made_for_whole_blocks_nor_of_another_format() -> None:
    answers = Answers(**TREE)
    assert "consolidated_metadata" not in value_of(answers, presented(codecs="n5"), "g/zarr.json")
    of_2 = {"g/attributes.json": {"zarr": {"consolidated": True, "zarr_format": 2}}}
    assert value_of(Answers(**TREE | of_2), presented(), "g/zarr.json") is None
    found = value_of(Answers(**TREE | of_2), presented(), "g/.zmetadata")
    assert sorted(found["metadata"]) == [
        ".zgroup", "d/.zarray", "e/.zattrs", "e/.zgroup", "e/f/.zgroup", "e/t/.zgroup",
    ]  # fmt: skip


@pytest.mark.parametrize("read_only", [False, True])
def test_what_zarr_reads_is_remembered_unless_nothing_is_written(*, read_only: bool) -> None:
    answers, container = Answers(**TREE), presented(read_only=read_only)
    for key in ("g/zarr.json", "g/e/zarr.json", "new/zarr.json"):
        answers(container.read(key))
    served = container.memory.served
    if read_only:
        assert served == {}
        return
    marked: Any = json.loads(served[MetadataKey("g", "zarr.json")])
    assert marked["consolidated_metadata"] is True
    assert json.loads(served[MetadataKey("g/e", "zarr.json")])["attributes"] == {"u": 1}
    assert served[MetadataKey("new", "zarr.json")] == b"{}"


# ---------------------------------------------------------------------- nodes

BIGSTITCHER = DATASET | {"downsamplingFactors": [[1, 1], [2, 2]]}


@pytest.mark.parametrize(
    ("values", "path", "expected"),
    [
        ({"a/attributes.json": DATASET}, "a", DatasetView),
        ({"a/attributes.json": {"u": 1}}, "a", GroupAttributes),
        ({"a/file": b""}, "a", GroupAttributes),
        ({"a/file": b""}, "b", type(None)),
        ({"attributes.json": {}}, "", GroupAttributes),
        ({}, "", type(None)),
        ({"file": b""}, "", type(None)),
        ({"a/file": b""}, "", type(None)),  # no node
        ({"a/b/file": b""}, "", GroupAttributes),
        ({"a/attributes.json": DATASET}, "", GroupAttributes),
        # below a dataset, names of blocks are no nodes
        ({"a/attributes.json": DATASET, "a/0/0": b""}, "a/0", type(None)),
        ({"a/attributes.json": DATASET, "a/0/1/2": b""}, "a/0/1", type(None)),
        ({"a/attributes.json": DATASET, "a/s/0": b""}, "a/s", GroupAttributes),
        ({"a/attributes.json": {"u": 1}, "a/0/0": b""}, "a/0", GroupAttributes),
        ({"a/attributes.json": b"{", "a/0/0": b""}, "a/0", GroupAttributes),
        ({"attributes.json": DATASET, "0/0": b""}, "0", type(None)),
        ({"0/0": b""}, "0", GroupAttributes),
        # BigStitcher's setups are groups, which their children tell
        ({"a/attributes.json": BIGSTITCHER, "a/timepoint0/x": b""}, "a", GroupAttributes),
        ({"a/attributes.json": BIGSTITCHER, "a/timepoint0/x": b"", "a/0/0": b""}, "a",
         GroupAttributes),
        ({"a/attributes.json": BIGSTITCHER}, "a", GroupAttributes),
        ({"a/attributes.json": BIGSTITCHER, "a/0/0": b""}, "a", DatasetView),
        ({"a/attributes.json": b""}, "a", GroupAttributes),
        ({"a/attributes.json": b" \n"}, "a", GroupAttributes),
        ({"a/attributes.json": [1]}, "a", GroupAttributes),
    ],
)  # fmt: skip
@pytest.mark.parametrize("zarr_format", [None, 3])
def test_the_kind_of_a_node(values: Doc, path: str, expected: type, zarr_format: Any) -> None:
    answers, container = Answers(**values), presented(zarr_format=zarr_format)
    assert type(answers(container.node(path))) is expected


@pytest.mark.parametrize(
    ("values", "path", "kind", "found"),
    [
        ({"attributes.json": {"n5": "5.0.0"}}, "", "version", "n5: expected a version up to 4"),
        ({"attributes.json": {"n5": "5.0.0"}, "a/attributes.json": {}}, "a", "version",
         "attributes.json: n5"),
        ({"zarr.json": ZARR_GROUP, "x/file": b""}, "", "foreign", "got a Zarr v3 group"),
        ({"a/attributes.json": {"zarr_format": 2}, "a/.zarray": {}}, "a", "foreign",
         "a: expected N5, got a Zarr v2 array"),
        ({"a/attributes.json": b"{"}, "a", "json", "a/attributes.json"),
        ({"a/attributes.json": b"", "a/0/0": FULL_BLOCK}, "a", "json", "there are blocks"),
        ({"a/attributes.json": b" ", "a/0": FULL_BLOCK}, "a", "json", "there are blocks"),
        ({"a/attributes.json": DATASET | {"dataType": "object"}}, "a", "data-type", "a/attr"),
        ({"a/attributes.json": DATASET | {"zarr": 1}}, "a", "member", "zarr: expected an object"),
        ({"a/attributes.json": DATASET | {"zarr": {"codecs": [{"name": "bytes"}] * 65}}}, "a",
         "compression", "at most 64"),
        ({"a/attributes.json": DATASET | {"zarr": {"codecs": [{"name": "odd"}]}}}, "a",
         "compression", "expected codecs that zarr accepts"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("zarr_format", [None, 3])
def test_a_node_that_cannot_be_read_is_named(
    values: Doc, path: str, kind: str, found: str, zarr_format: Any
) -> None:
    with refused(N5Error, kind, rf"^c\.n5: .*{found}"):
        Answers(**values)(presented(zarr_format=zarr_format).node(path))


def test_the_version_is_checked_once_and_only_that_of_the_root() -> None:
    answers = Answers(**{"a/attributes.json": {"n5": "9.0.0"}, "attributes.json": {"n5": "4.9.0"}})
    container = presented(zarr_format=3)
    for _ in range(2):
        answers(container.node("a"))
    assert answers.asked.count(Get("attributes.json")) == 1
    # nor that of a container whose document a user gives
    answers = Answers(**{"attributes.json": {"n5": "5.0.0"}})
    container.memory.assumed["a"] = json.dumps(DATASET).encode()  # type: ignore[index]
    assert isinstance(answers(container.node("a")), DatasetView)


def test_an_incomplete_document_is_read_again_when_it_is_settled() -> None:
    class Settling(Answers):
        def answer(self, request: Request) -> object:
            if request == Get("a/attributes.json", settled=True):
                return json.dumps(DATASET).encode()
            return super().answer(request)

    for cut in (b"", b'{"dimensions":[5'):
        answers = Settling(**{"a/attributes.json": cut, "a/0/0": FULL_BLOCK})
        assert isinstance(answers(presented().node("a")), DatasetView)


@pytest.mark.parametrize(
    ("document", "is_near"),
    [
        ({"dimensions": [5], "blockSize": [3], "dataType": "uint8"}, True),
        ({"dimensions": [5], "blockSize": [3]}, False),
        ({"dimensions": [5], "blockSize": [3], "codecs": [1]}, False),
        ({"dimensions": [5], "blockSize": [3], "dataType": "uint8",
          "zarr": {"attributes": {"compression": 1}}}, False),
    ],
)  # fmt: skip
def test_a_group_that_lacks_one_key_of_a_dataset_is_told(document: Doc, *, is_near: bool) -> None:
    answers = Answers(**{"a/attributes.json": document})
    assert isinstance(answers(presented().node("a")), GroupAttributes)
    assert len(answers.warnings) == is_near
    if is_near:
        assert answers.warnings[0].startswith("a/attributes.json: read as a group: it has ")
        assert "but a dataset also has compression" in answers.warnings[0]


@pytest.mark.parametrize(
    ("members", "record", "data_type", "fill_value", "is_stale"),
    [
        ({"dataType": "uint8"}, {"data_type": "bool", "fill_value": True}, "bool", True, False),
        ({"dataType": "uint8"}, {"data_type": "bool"}, "bool", False, False),
        ({}, {"fill_value": 7}, "uint16", 7, False),
        ({}, {"data_type": "bool", "fill_value": True}, "uint16", 0, True),
        ({"dataType": "float32", "dimensions": [2, 5, 3], "blockSize": [2, 3, 2]},
         {"data_type": "complex64", "fill_value": [1.0, 0.0]}, "complex64", [1.0, 0.0], False),
        # the axis of the parts has been cut
        ({"dataType": "float32", "dimensions": [3, 5, 3], "blockSize": [2, 3, 2]},
         {"data_type": "complex64", "fill_value": [1.0, 0.0]}, "float32", 0.0, True),
        ({"dataType": "float32", "dimensions": [2, 5, 3], "blockSize": [3, 3, 2]},
         {"data_type": "complex64", "fill_value": [1.0, 0.0]}, "float32", 0.0, True),
        ({"dataType": "bool"}, {}, "bool", False, False),
        ({"dataType": "float16"}, {"data_type": "int8", "fill_value": 3}, "float16", 0.0, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("zarr_format", [None, 3])
def test_elements_are_those_of_the_record_while_it_fits(
    members: Doc, record: Doc, data_type: str, fill_value: Any,
    zarr_format: Any, *, is_stale: bool,
) -> None:  # fmt: skip
    values = {"a/attributes.json": DATASET | members | ({"zarr": record} if record else {})}
    answers = Answers(**values)
    found = value_of(answers, presented(zarr_format=zarr_format), "a/zarr.json")
    assert (found["data_type"], found["fill_value"]) == (data_type, fill_value)
    assert [w[:18] for w in answers.warnings] == ["a/attributes.json:"] * is_stale


@pytest.mark.parametrize(
    ("record", "fill_value"),
    [
        ({"fill_value": 7}, 7), ({"fill_value": 0}, None),
        ({"fill_value": 7, "v2": {"dtype": "<u2"}}, 7), ({}, None),
    ],
)  # fmt: skip
def test_the_fill_value_of_v2(record: Doc, fill_value: Any) -> None:
    answers = Answers(**{"a/attributes.json": DATASET | {"zarr": record}})
    found = value_of(answers, presented(zarr_format=2), "a/.zarray")
    assert found["fill_value"] == fill_value
    assert found["dtype"] == record.get("v2", {}).get("dtype", ">u2")


def test_an_array_that_was_created_keeps_its_document_until_it_is_replaced() -> None:
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    created = {
        "zarr_format": 3, "node_type": "array", "shape": [3, 5], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [little],
    }  # fmt: skip
    several: list[Doc] = [{}, {"zarr_format": 3}]
    for options in several:
        answers, container = Answers(), presented(**options)
        answers(container.write("a/zarr.json", memoryview(json.dumps(created).encode())))
        assert value_of(answers, container, "a/zarr.json")["codecs"] == [little]
        other = presented(**options)
        assert value_of(answers, other, "a/zarr.json")["codecs"][0]["configuration"] == {
            "endian": "big"
        }
        if not options:  # another program has written it as v2: then the creation does not matter
            record = {"zarr": {"zarr_format": 2}}
            answers.values["a/attributes.json"] = json.dumps(DATASET | record).encode()
            assert value_of(answers, container, "a/.zarray")["dtype"] == ">u2"
        for change in ({"dataType": "uint8"}, {"blockSize": [3, 3]}):
            answers.values["a/attributes.json"] = json.dumps(DATASET | change).encode()
            container.memory.known.clear()
            with refused(N5Error, "changed", "with which this store object created"):
                answers(container.node("a"))


class Refusing(Answers):
    """Storage in which some documents are no files."""

    def answer(self, request: Request) -> object:
        if isinstance(request, Get) and request.key.startswith("pipe"):
            message = "expected a file, got a pipe"
            raise N5FormatError(message, kind="file")
        return super().answer(request)


SIBLINGS: Doc = {
    "d/attributes.json": DATASET, "pipe/attributes.json": b"", "b/attributes.json": b"{",
    "g/attributes.json": {"u": 1}, "bare/file": b"", "z/.zgroup": {"zarr_format": 2},
    "q\\r/attributes.json": {}, "file": b"",
}  # fmt: skip


def test_children_are_read_and_what_is_broken_is_named() -> None:
    answers = Refusing(**SIBLINGS)
    nodes = Nodes(ViewOptions(), Memory(), has_stamps=True)
    found = dict(answers(nodes.children("")))
    assert list(found) == ["b", "bare", "d", "g", "pipe", "z", "q\\r"]
    kinds = {name: type(node).__name__ for name, node in found.items()}
    assert {name for name, kind in kinds.items() if kind == "Broken"} == {"b", "pipe", "z", "q\\r"}
    assert (kinds["d"], kinds["bare"]) == ("DatasetView", "GroupAttributes")
    errors = {name: node.error for name, node in found.items() if isinstance(node, Broken)}
    assert errors["z"].where == "z"
    assert errors["q\\r"].where == "/"
    assert (errors["pipe"].kind, errors["b"].kind) == ("file", "json")
    wanted = answers(nodes.children("", lambda name: name in ("g", "q\\r")))
    assert [name for name, _ in wanted] == ["g", "q\\r"]
    assert list(answers(nodes.datasets(["d", "g", "b", "nothing"]))) == ["d"]


def test_a_group_of_zarr_has_no_children() -> None:
    values = {"attributes.json": {}, "zarr.json": ZARR_GROUP, "a/zarr.json": ZARR_GROUP}
    nodes = Nodes(ViewOptions(), Memory())
    with pytest.raises(N5FormatError, match="got a Zarr v3 group"):
        Answers(**values)(nodes.children(""))


@pytest.mark.parametrize(("has_stamps", "n_listed"), [(True, 2), (False, 3)])
def test_children_that_a_listing_reads_are_kept_for_their_opening(
    n_listed: int, *, has_stamps: bool
) -> None:
    answers = Answers(**{f"t/{k}": v for k, v in SIBLINGS.items() if k[:4] != "pipe"})
    container = presented(has_stamps=has_stamps)
    container.memory.keep("t", GroupAttributes(attributes={}))
    assert answers(container.names("t")) == ["bare", "d", "g", "zarr.json"]
    assert (
        Get("t/attributes.json") in answers.asked
    ) is has_stamps  # on servers it costs a request
    left_out = {
        w.removeprefix("omitted from the listing: ").partition(":")[0] for w in answers.warnings
    }
    assert left_out == {"t/b/attributes.json", "t/z", "t"}  # the last one has a wrong name
    listed = container.memory.listed
    # where there are stamps, a directory without a document has none
    assert sorted(listed) == [*(["t/bare"] if not has_stamps else []), "t/d", "t/g"]
    assert len(listed) == n_listed
    assert {type(each.stamp) for each in listed.values()} == {tuple if has_stamps else type(None)}
    assert {"t/d", "t/g", "t/bare"} == container.memory.named
    answers.asked.clear()
    assert isinstance(answers(container.node("t/d")), DatasetView)
    assert Get("t/d/attributes.json") not in answers.asked
    answers(container.names("t"))
    assert answers.asked.count(Stamp("t/d/attributes.json")) == 2 * has_stamps
    answers(container.delete_dir("t/g"))
    assert container.memory.listed == {}


def test_a_node_that_a_listing_has_named_and_that_is_broken_now_is_left_out_by_zarr() -> None:
    answers, container = Answers(**SIBLINGS), presented()
    answers(container.names(""))
    answers.values["d/attributes.json"] = b"{"
    with pytest.raises(ReplacedError, match=r"c\.n5: d/attributes\.json") as caught:
        answers(container.read("d/zarr.json"))
    assert (caught.value.kind, isinstance(caught.value, KeyError)) == ("json", True)
    assert [type(arg) for arg in caught.value.args] == [str]
    assert str(caught.value.args[0]).startswith("d/attributes.json: ")
    with pytest.raises(N5AttributesError):
        answers(presented().read("d/zarr.json"))


class Linked(Answers):
    def answer(self, request: Request) -> object:
        found = super().answer(request)
        if isinstance(request, List):
            return [e._replace(is_nested_link=e.name in "gd") for e in found or ()]  # type: ignore[attr-defined]
        return found


def test_groups_behind_two_links_are_not_listed() -> None:
    answers = Linked(**{k: v for k, v in SIBLINGS.items() if k[:4] != "pipe"})
    container = presented()
    assert answers(container.names("")) == ["bare", "d", "zarr.json"]
    assert [name for name, _ in answers(container.nodes.children(""))] == [
        "b", "bare", "d", "z", "q\\r",
    ]  # fmt: skip
    keys = [key for flow in container.keys_below("") for key in answers(flow)]
    assert keys == ["zarr.json", "bare/zarr.json", "d/zarr.json"]


def test_attributes_above_a_node_are_read_the_nearest_first() -> None:
    answers = Answers(
        **{
            "attributes.json": {"n5": "4.0.0", "u": 1}, "a/attributes.json": b"{",
            "a/b/attributes.json": {"w": None, "zarr": {"nonfinite": {"/w": "NaN"}}},
        }
    )  # fmt: skip
    nodes = Nodes(ViewOptions(), Memory())
    found = answers(nodes.above("a/b/c/d"))
    assert [list(each) for each in found] == [[], ["w"], [], ["u"]]
    assert str(found[1]["w"]) == "nan"
    assert [w.partition(" ignored")[0] for w in answers.warnings] == ["axes in a/attributes.json"]


@pytest.mark.parametrize("kind", ["listing", "option"])
def test_an_error_of_storage_is_no_broken_node(kind: Any) -> None:
    class Failing(Answers):
        def answer(self, request: Request) -> object:
            if request == Get("a/attributes.json", settled=True):
                message = "no"
                raise N5UnsupportedError(message, kind=kind)
            return super().answer(request)

    values = {"a/attributes.json": b"{", "a/b/attributes.json": {}}
    nodes = Nodes(ViewOptions(), Memory())
    for steps in (nodes.children(""), nodes.above("a/b")):
        with pytest.raises(N5UnsupportedError, match="no"):
            Failing(**values)(steps)


@pytest.mark.parametrize(("depth", "is_refused"), [(254, False), (255, True)])
def test_groups_are_listed_down_to_255_levels(depth: int, *, is_refused: bool) -> None:
    entries = [Entry("attributes.json", None), Entry("b", None), Entry("a", is_dir=True)]
    names, refused = names_of_nodes("/".join("x" * depth), [*entries, Entry("f", is_dir=False)])
    assert names == ([] if is_refused else ["a", "b"])
    assert [name for name, _ in refused] == (["a", "b"] if is_refused else [])
    assert all("at most 255 levels" in str(broken.error) for _, broken in refused)
    assert names_of_nodes("", entries)[0] == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "path", "left"),
    [
        (NESTED, "a", {key for key in NESTED if key[:2] != "a/"}), (NESTED, "", set()),
        (NESTED, "nothing", {*NESTED}), (NESTED, "a/c", {*NESTED} - {"a/0/0"}),
        (NESTED, "bare/x/y/d/c/1", {*NESTED} - {"bare/x/y/d/1/1"}),
        ({"a/attributes.json": b"{", "a/0": b""}, "a", set()),
    ],
)  # fmt: skip
def test_removing_what_is_below_a_path(values: Doc, path: str, left: set[str]) -> None:
    answers, container = Answers(**values), presented()
    answers(container.delete_dir(path))
    assert answers.values.keys() == left


@pytest.mark.parametrize(
    "gone", [(), ("attributes.json", "inner/attributes.json", "README", "0/0")]
)
def test_removing_an_open_array_forgets_it(gone: tuple[str, ...]) -> None:
    answers, container = Answers(**NESTED), presented()
    answers(container.read("a/c/0/0"))
    for name in gone:
        answers.values.pop(f"a/{name}")
    answers(container.delete_dir("a"))
    assert container.memory.node("a") is None


@pytest.mark.parametrize(
    ("key", "removes"),
    [
        ("g/zarr.json", True), ("g/.zgroup", False), ("nothing/zarr.json", False),
        ("a/zarr.json", True), ("a/.zattrs", False),
    ],
)  # fmt: skip
def test_removing_the_document_of_a_node_forgets_it(key: str, *, removes: bool) -> None:
    answers, container = Answers(**NESTED), presented()
    path = key.partition("/")[0]
    answers(container.names(""))
    answers(container.delete(key))
    assert (f"{path}/attributes.json" in answers.values) is (not removes and path in "ga")
    assert container.memory.node(path) is None
    assert container.memory.listed == {}


def test_a_listing_that_storage_cannot_do_is_no_broken_node() -> None:
    class Unlistable(Answers):
        def answer(self, request: Request) -> object:
            if isinstance(request, List) and request.path:
                message = "listing: the server does not list"
                raise N5UnsupportedError(message, kind="listing")
            return super().answer(request)

    # only a listing tells whether BigStitcher's setups are groups
    answers, container = Unlistable(**{"a/attributes.json": BIGSTITCHER}), presented()
    flows: list[Any] = [
        container.names(""), container.delete_dir("a"), container.nodes.datasets(["a"]),
        container.delete_dir("b"),
    ]  # fmt: skip
    for steps in flows:
        with pytest.raises(N5UnsupportedError, match="the server does not list"):
            answers(steps)
    assert set(answers.values) == {"a/attributes.json"}


def test_a_warning_is_given_once() -> None:
    container = presented()
    with pytest.warns(N5Warning, match=r"c\.n5: careful"):
        container.warn("careful")
    container.warn("careful")
