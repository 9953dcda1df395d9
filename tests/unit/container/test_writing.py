"""Documents of Zarr become changes of ``attributes.json``, and nothing else changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from n5zarr.container.container import Container
from n5zarr.container.updates import make_root, parse_document, remove_document, update_attributes
from n5zarr.errors import N5Error, N5UnrepresentableError
from n5zarr.format.attributes import GroupAttributes
from n5zarr.format.lenient_json import JSON
from n5zarr.storage.requests import Ends, Remove, Request, Update
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.keys import MetadataKey
from tests.refusals import refused
from tests.unit.container.answers import DATASET, EDGE_BLOCK, Answers, Doc, presented

# Zarr v3 and v2, "Array metadata": the array of DATASET
ARRAY: Doc = {
    "zarr_format": 3, "node_type": "array", "shape": [3, 5], "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}], "attributes": {},
}  # fmt: skip
V2: Doc = {
    "zarr_format": 2, "shape": [3, 5], "chunks": [2, 3], "dtype": ">u2", "compressor": None,
    "filters": None, "order": "C", "fill_value": 0,
}  # fmt: skip
GROUP: Doc = {"zarr_format": 3, "node_type": "group", "attributes": {}}
BELOW: Doc = {"metadata": {}, "zarr_consolidated_format": 1}
OF_2: Doc = {"zarr": {"zarr_format": 2}}
ROOT = {"n5": "4.0.0"}


def write(
    answers: Answers, container: Container, key: str, document: Mapping[str, JSON], **options: bool
) -> None:
    value = memoryview(json.dumps(document).encode())
    answers(container.write(key, value, **options))


def documents(answers: Answers) -> Doc:
    return {
        key.removesuffix("attributes.json").rstrip("/"): json.loads(value)
        for key, value in answers.values.items()
        if key.endswith("attributes.json")
    }


EXTRA = {"mine": {"must_understand": False}}


# N5 spec, "File-system specification", items 1 to 4
@pytest.mark.parametrize(
    ("options", "name", "document", "expected"),
    [
        ({}, "zarr.json", ARRAY | {"attributes": {"u": 1}}, DATASET | {"u": 1}),
        ({}, "zarr.json", ARRAY | {"dimension_names": ["y", "x"]}, DATASET | {"axes": ["x", "y"]}),
        ({}, ".zarray", V2, DATASET | {"zarr": {"v2": {"fill_value": 0}, "zarr_format": 2}}),
        ({"zarr_format": 2}, ".zarray", V2, DATASET),
        ({"zarr_format": 3}, "zarr.json", ARRAY, DATASET),
        ({"axis_order": "F", "zarr_format": 2}, ".zarray",
         V2 | {"shape": [5, 3], "chunks": [3, 2], "order": "F"}, DATASET),
        ({}, "zarr.json", GROUP | {"attributes": {"u": 1}}, {"u": 1}),
        ({}, "zarr.json", GROUP | {"consolidated_metadata": BELOW},
         {"zarr": {"consolidated": True}}),
        ({}, "zarr.json", GROUP | {"consolidated_metadata": None}, {}),
        ({}, "zarr.json", GROUP | EXTRA, {"zarr": {"extra": EXTRA}}),
        ({}, ".zgroup", {"zarr_format": 2}, OF_2),
        ({}, ".zattrs", {"u": 1}, OF_2 | {"u": 1}),
        ({}, ".zmetadata", BELOW, {"zarr": {"consolidated": True, "zarr_format": 2}}),
        ({"zarr_format": 2}, ".zattrs", {"_ARRAY_DIMENSIONS": ["y", "x"]},
         {"_ARRAY_DIMENSIONS": ["y", "x"]}),
        ({"zarr_format": 2, "axis_order": "F"}, ".zattrs", {"_ARRAY_DIMENSIONS": ["x", "y"]},
         {"_ARRAY_DIMENSIONS": ["y", "x"]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_stamps", [True, False])
def test_a_new_node(
    options: Doc,
    name: str,
    document: Doc,
    expected: Doc,
    *,
    has_stamps: bool,
) -> None:
    answers, container = Answers(), presented(has_stamps=has_stamps, **options)
    write(answers, container, f"a/b/{name}", document)
    is_mixed = not options.get("zarr_format") and name != "zarr.json"
    above = OF_2 if is_mixed else {}
    # of v3, servers need no documents of the groups above
    groups = {"a": above} if is_mixed or has_stamps else {}
    assert documents(answers) == {"": ROOT | above, **groups, "a/b": expected}
    known = container.memory.known["a/b"]
    assert isinstance(known.node, DatasetView if "shape" in document else GroupAttributes)
    assert known.stamp is None
    assert container.memory.has_root
    served = container.memory.served[MetadataKey("a/b", name)]
    is_consolidated = document.get("consolidated_metadata") is not None
    marked = document | {"consolidated_metadata": True} if is_consolidated else document
    assert json.loads(served) == marked
    # what is there already is not changed by a document that is only for new nodes
    write(answers, container, f"a/b/{name}", {**document, "attributes": {"v": 2}}, only_new=True)
    assert documents(answers)["a/b"] == expected


def test_a_group_of_v2_below_one_of_v3_names_its_format_and_the_reverse() -> None:
    answers, container = Answers(**{"attributes.json": OF_2, "a/attributes.json": {}}), presented()
    write(answers, container, "a/zarr.json", GROUP, only_new=True)
    assert answers.document("a") == {}
    write(answers, container, "b/c/zarr.json", GROUP)
    of_3 = {"zarr": {"zarr_format": 3}}
    assert documents(answers) == {"": OF_2, "a": {}, "b": of_3, "b/c": of_3}
    write(answers, container, "d/.zgroup", {"zarr_format": 2})
    assert answers.document("d") == OF_2


@pytest.mark.parametrize(
    ("values", "key", "document", "found"),
    [
        # a group with nodes below it, with or without a document
        ({"a/b/attributes.json": {}}, "a/.zarray", V2, "got a group of Zarr v3"),
        ({"a/attributes.json": OF_2, "a/b/attributes.json": {}}, "a/zarr.json", ARRAY,
         "got a group of Zarr v2"),
        ({"a/attributes.json": DATASET}, "a/.zarray", V2, "got an array of Zarr v3"),
        ({"a/attributes.json": DATASET}, "a/zarr.json", GROUP, "expected a group or nothing"),
    ],
)  # fmt: skip
def test_a_node_of_the_other_kind_or_format_is_not_replaced(
    values: Doc, key: str, document: Doc, found: str
) -> None:
    answers = Answers(**{"attributes.json": ROOT, **values})
    before = dict(answers.values)
    with refused(N5Error, "changed", rf"c\.n5: a: .*{found}"):
        write(answers, presented(), key, document)
    assert answers.values == before


@pytest.mark.parametrize(
    ("name", "expected"), [("file", OF_2 | {"u": 1}), ("b/attributes.json", {"u": 1})]
)
def test_a_directory_is_a_group_of_the_other_format_only_if_nodes_are_below_it(
    name: str, expected: Doc
) -> None:
    answers = Answers(**{"attributes.json": ROOT, f"a/{name}": b"{}"})
    write(answers, presented(), "a/.zattrs", {"u": 1})
    assert answers.document("a") == expected


def test_attributes_of_a_new_array_of_v2_come_at_once_in_any_order() -> None:
    answers, container = Answers(**{"attributes.json": ROOT | OF_2}), presented()
    attributes = container.write("a/.zattrs", memoryview(b'{"u": 1}'))
    write(answers, container, "a/.zarray", V2)
    answers(attributes)
    assert answers.document("a")["u"] == 1
    assert isinstance(container.memory.node("a"), DatasetView)


SERVED = {"a/attributes.json": DATASET | {"u": 1, "axes": ["x", "y"]}, "attributes.json": ROOT}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"attributes": {"u": 2}}, {"u": 2}),
        ({"attributes": {}}, {"u": None}),
        ({"dimension_names": ["j", "i"]}, {"axes": ["i", "j"]}),
        ({"dimension_names": None}, {"axes": None}),
        ({"shape": [7, 5]}, {"dimensions": [5, 7]}),
        ({"shape": [7, 5], "attributes": {"u": 2}}, {"dimensions": [5, 7], "u": 2}),
        # an array with other elements, chunks or codecs is a new one
        ({"data_type": "int16"}, {"dataType": "int16", "theirs": None}),
        ({"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 4]}}},
         {"blockSize": [4, 3], "theirs": None}),
        ({"fill_value": 7}, {"zarr": {"fill_value": 7}, "theirs": None}),
        ({"codecs": [*ARRAY["codecs"], {"name": "gzip", "configuration": {"level": 5}}]},
         {"compression": {"type": "gzip", "useZlib": False, "level": 5}, "theirs": None}),
        # the same in another notation
        ({"codecs": [{"name": "bytes", "configuration": {"endian": "big"}}]}, {}),
    ],
)  # fmt: skip
def test_only_what_zarr_changes_in_the_document_that_it_was_served_is_changed(
    change: Doc, expected: Doc
) -> None:
    answers, container = Answers(**SERVED), presented()
    served: Any = json.loads(bytes(answers(container.read("a/zarr.json")) or b""))
    # another program writes meanwhile
    theirs = DATASET | {"u": 1, "axes": ["x", "y"], "theirs": [1.5]}
    answers.values["a/attributes.json"] = json.dumps(theirs).encode()
    write(answers, container, "a/zarr.json", served | change)
    merged = {key: value for key, value in (theirs | expected).items() if value is not None}
    assert answers.document("a") == merged


@pytest.mark.parametrize(
    ("key", "before", "served", "written", "expected"),
    [
        ("a/zarr.json", {"u": 1}, GROUP | {"attributes": {"u": 1}}, GROUP, {"theirs": 2}),
        ("a/zarr.json", {}, GROUP, GROUP | EXTRA, {"theirs": 2, "zarr": {"extra": EXTRA}}),
        ("a/zarr.json", {"zarr": {"extra": EXTRA}}, GROUP | EXTRA, GROUP, {"theirs": 2}),
        ("a/zarr.json", {"zarr": {"extra": EXTRA}}, GROUP | EXTRA, GROUP | EXTRA,
         {"theirs": 2, "zarr": {"extra": EXTRA}}),
        ("a/zarr.json", {}, GROUP, GROUP | {"consolidated_metadata": BELOW},
         {"theirs": 2, "zarr": {"consolidated": True}}),
        ("a/zarr.json", {"zarr": {"consolidated": True}},
         GROUP | {"consolidated_metadata": True}, GROUP, {"theirs": 2}),
        # others have consolidated it since
        ("a/zarr.json", {"zarr": {"consolidated": True}}, GROUP, GROUP,
         {"theirs": 2, "zarr": {"consolidated": True}}),
        ("a/.zattrs", {"u": 1} | OF_2, {"u": 1}, {"w": 3}, {"theirs": 2, "w": 3} | OF_2),
        ("a/.zgroup", OF_2, {"zarr_format": 2}, {"zarr_format": 2}, {"theirs": 2} | OF_2),
    ],
)  # fmt: skip
def test_a_group_changes_as_zarr_changed_its_document(
    key: str,
    before: Doc,
    served: Doc,
    written: Doc,
    expected: Doc,
) -> None:
    answers = Answers(**{"attributes.json": ROOT, "a/attributes.json": before | {"theirs": 2}})
    container = presented()
    name = key.partition("/")[2]
    container.memory.served[MetadataKey("a", name)] = json.dumps(served).encode()
    write(answers, container, key, written)
    assert answers.document("a") == expected


def test_an_array_in_another_notation_is_the_same() -> None:
    own = DATASET | {"dataType": "uint8"}
    answers = Answers(**{"attributes.json": ROOT, "a/attributes.json": own})
    container = presented(zarr_format=2)
    served: Any = json.loads(bytes(answers(container.read("a/.zarray")) or b""))
    answers.values["a/attributes.json"] = json.dumps(own | {"dimensions": [7, 3]}).encode()
    write(answers, container, "a/.zarray", served | {"dtype": "<u1"})
    assert answers.document("a") == own | {"dimensions": [7, 3]}
    write(answers, container, "a/.zarray", served | {"dtype": "|i1"})
    assert answers.document("a") == own | {"dataType": "int8"}


def test_attributes_that_zarr_has_not_read_are_replaced() -> None:
    answers, container = Answers(**{"attributes.json": ROOT}), presented(zarr_format=2)
    write(answers, container, "a/.zarray", V2)
    answers.values["a/attributes.json"] = json.dumps(DATASET | {"theirs": 1}).encode()
    write(answers, container, "a/.zattrs", {"u": 1})
    assert answers.document("a") == DATASET | {"u": 1}
    # three keys share one document, which may exist without this key
    answers.values["b/attributes.json"] = b"{}"
    for value in (1, 2):
        write(answers, container, "b/.zattrs", {"u": value}, only_new=True)
    assert answers.document("b") == {"u": 1}


@pytest.mark.parametrize(
    "change",
    [{"chunk_grid": {"name": "rectilinear", "configuration": {}}}, {"storage_transformers": [1]}],
)
def test_an_array_that_n5_cannot_hold_is_not_written(change: Doc) -> None:
    answers = Answers()
    with pytest.raises(N5UnrepresentableError, match=r"c\.n5: a: (chunk_grid|storage_tr)"):
        write(answers, presented(), "a/zarr.json", ARRAY | change)
    assert answers.values == {}


def test_a_group_that_became_a_dataset_gets_attributes_only() -> None:
    answers = Answers(**{"attributes.json": ROOT, "a/attributes.json": {"u": 1}})
    container = presented()
    answers(container.read("a/zarr.json"))
    answers.values["a/attributes.json"] = json.dumps(DATASET | {"u": 1}).encode()
    write(answers, container, "a/zarr.json", GROUP | {"attributes": {"u": 2}})
    assert answers.document("a") == DATASET | {"u": 2}


def test_an_array_that_became_a_group_of_zarr_is_replaced() -> None:
    answers = Answers(**{"attributes.json": ROOT})
    container = presented()
    container.memory.served[MetadataKey("a", "zarr.json")] = json.dumps(ARRAY).encode()
    write(answers, container, "a/zarr.json", GROUP | {"attributes": {"u": 1}})
    assert answers.document("a") == {"u": 1}


def test_a_document_that_was_removed_is_written_as_a_whole() -> None:
    answers, container = Answers(**SERVED), presented()
    served: Any = json.loads(bytes(answers(container.read("a/zarr.json")) or b""))
    answers.values["a/attributes.json"] = b" "
    container.memory.known.clear()
    write(answers, container, "a/zarr.json", served)
    assert answers.document("a") == DATASET | {"u": 1, "axes": ["x", "y"]}


@pytest.mark.parametrize(
    ("now", "change", "found"),
    [
        (DATASET | {"dataType": "uint8"}, {"attributes": {}}, "got uint8 in blocks"),
        (DATASET | {"blockSize": [3, 3]}, {"shape": [7, 5]}, r"got uint16 in blocks \(3, 3\)"),
        ({"u": 1}, {"attributes": {}}, "got a group"),
        (None, {"attributes": {}}, "got nothing"),
    ],
)
def test_an_array_that_another_program_has_replaced_is_not_changed(
    now: Doc | None, change: Doc, found: str
) -> None:
    answers, container = Answers(**SERVED), presented()
    served: Any = json.loads(bytes(answers(container.read("a/zarr.json")) or b""))
    answers.values.pop("a/attributes.json")
    if now is not None:
        answers.values["a/attributes.json"] = json.dumps(now).encode()
    before = dict(answers.values)
    with refused(N5Error, "changed", rf"c\.n5: a: .*{found}"):
        write(answers, container, "a/zarr.json", served | change)
    assert answers.values == before


def test_a_resize_stores_truncated_blocks_full_size_before_and_after_the_document() -> None:
    answers = Answers(**SERVED, **{"a/1/0": EDGE_BLOCK})
    container = presented()
    served: Any = json.loads(bytes(answers(container.read("a/zarr.json")) or b""))
    answers.asked.clear()
    write(answers, container, "a/zarr.json", served | {"shape": [3, 6]})
    full = "0000 0002 00000003 00000002 000a 000b 0000 000c 000d 0000"
    assert answers.values["a/1/0"] == bytes.fromhex(full)
    of_blocks = [r.key for r in answers.asked if isinstance(r, Ends | Update)]
    assert of_blocks == [
        *("a/1/0", "a/1/1"), "a/1/0", "a/attributes.json", *("a/1/0", "a/1/1"),
    ]  # fmt: skip


def test_documents_before_their_change_are_kept_if_an_error_would_undo_it() -> None:
    answers, container = Answers(**SERVED), presented()
    before = answers.values["a/attributes.json"]
    container.memory.before = {}
    for document in (ARRAY, ARRAY | {"attributes": {"v": 1}}):
        write(answers, container, "a/zarr.json", document)
    assert container.memory.before == {"a": before}


def test_what_a_user_should_know_is_told() -> None:
    answers = Answers(**{"attributes.json": ROOT})
    write(answers, presented(), "a/zarr.json", ARRAY | {"attributes": {"resolution": [4.0]}})
    assert [w.partition(": ")[0] for w in answers.warnings] == ["a"]
    assert "tensorstore refuses this dataset" in answers.warnings[0]


@pytest.mark.parametrize(
    ("key", "value", "kind", "found"),
    [
        (MetadataKey("a", "zarr.json"), b"{", "json",
         "zarr.json: expected a Zarr document, got b'{'"),
        (MetadataKey("a", "zarr.json"), b"[1]", "json", "of this name"),
        (MetadataKey("a", "zarr.json"), b'{"zarr_format": 3}', "json", "of this name"),
        (MetadataKey("a", "zarr.json"), json.dumps(ARRAY).replace("codecs", "other").encode(),
         "json", "zarr.json: expected a Zarr document of this name"),
        (MetadataKey("a", ".zarray"), b'{"zarr_format": 2, "shape": [], "chunks": []}', "json",
         ".zarray"),
        (MetadataKey("a", ".zgroup"), b"{}", "json", ".zgroup"),
        (MetadataKey("a", ".zmetadata"), b"{}", "json", ".zmetadata"),
        (MetadataKey("attributes.json", ".zattrs"), b"{}", "path", "path 'attributes.json'"),
        (MetadataKey("a/attributes.json/b", ".zattrs"), b"{}", "path", "N5 reserves the name"),
    ],
)  # fmt: skip
def test_a_value_that_is_no_document_is_refused(
    key: MetadataKey, value: bytes, kind: str, found: str
) -> None:
    with refused(N5UnrepresentableError, kind, found):
        parse_document(key, value)


@pytest.mark.parametrize(
    ("name", "document"), [(".zattrs", {}), (".zgroup", {"zarr_format": 2}), (".zmetadata", BELOW)]
)
def test_a_document_is_parsed(name: str, document: Doc) -> None:
    key = MetadataKey("a.attributes.json", name)
    assert parse_document(key, json.dumps(document).encode()) == document


DOUBLED = {"u": 1, "zarr": {"consolidated": True, "zarr_format": 2}}


@pytest.mark.parametrize(
    ("name", "before", "expected"),
    [
        (".zattrs", DATASET | {"u": 1}, DATASET), (".zarray", DATASET | {"u": 1}, {"u": 1}),
        (".zarray", DATASET, None), (".zmetadata", DOUBLED, OF_2 | {"u": 1}),
        (".zgroup", {"u": 1}, None), ("zarr.json", DATASET, None), (".zattrs", {"u": 1}, {}),
        (".zattrs", None, None),
    ],
)  # fmt: skip
def test_removing_a_document_removes_its_part(
    name: str, before: Doc | None, expected: Doc | None
) -> None:
    answers = Answers(**{} if before is None else {"a/attributes.json": before})
    answers(remove_document(MetadataKey("a", name)))
    assert documents(answers) == ({} if expected is None else {"a": expected})
    removals = [r for r in answers.asked if isinstance(r, Remove)]
    assert all(r.prune for r in removals)
    assert answers.count(Update) == (before is not None and name not in (".zgroup", "zarr.json"))


def test_the_version_of_the_container_is_no_attribute_that_is_removed() -> None:
    for version in ("4.0.0", "none"):
        answers = Answers(**{"attributes.json": {"n5": version, "u": 1}})
        answers(remove_document(MetadataKey("", ".zattrs")))
        assert documents(answers) == {"": {"n5": version}}


@pytest.mark.parametrize(
    ("values", "expected"),
    [({}, {"": ROOT}), ({"a/0": b""}, {}), ({"attributes.json": {}}, {"": {}})],
)
def test_only_an_empty_container_gets_the_version(values: Doc, expected: Doc) -> None:
    answers = Answers(**values)
    answers(make_root())
    assert documents(answers) == expected


def test_a_root_that_another_program_makes_first_is_kept() -> None:
    class First(Answers):
        def answer(self, request: Request) -> object:
            if isinstance(request, Update):
                self.values[request.key] = b'{"theirs": 1}'
            return super().answer(request)

    answers = First()
    answers(make_root())
    assert answers.document() == {"theirs": 1}


@pytest.mark.parametrize(
    ("path", "before", "is_group", "seen", "expected"),
    [
        ("a", DATASET | {"u": 1}, False, {"u": 1}, DATASET | {"w": 2}),
        ("a", {"u": 1}, True, {"u": 1}, {"w": 2}),
        ("a", None, True, {}, {"w": 2}),
        ("a", b" ", True, {}, {"w": 2}),
        ("a", [1], True, {}, {"w": 2}),
        ("", ROOT | {"u": 1}, True, {"u": 1}, ROOT | {"w": 2}),
        ("a", {"u": None, "zarr": {"nonfinite": {"/u": "Infinity"}}}, True,
         {"u": float("inf")}, {"w": 2}),
    ],
)  # fmt: skip
def test_attributes_are_replaced_by_a_function_of_them(
    path: str, before: Any, seen: Doc, expected: Doc, *, is_group: bool
) -> None:
    key = f"{path}/attributes.json".lstrip("/")
    answers = Answers(**{} if before is None else {key: before})
    given: list[Any] = []

    def change(attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
        given.append(attributes)
        return {"w": 2}

    answers(update_attributes(path, change, is_group=is_group))
    assert given == [seen]
    assert answers.document(path) == expected


@pytest.mark.parametrize("before", [None, b" "])
def test_attributes_of_a_dataset_that_is_gone_are_not_written(before: bytes | None) -> None:
    answers = Answers(**{} if before is None else {"a/attributes.json": before})
    container = presented()
    with refused(N5Error, "changed", r"c\.n5: a: expected the document of a dataset"):
        answers(container.update_attributes("a", dict, is_group=False))


def test_changed_attributes_are_forgotten_and_told() -> None:
    answers, container = Answers(**{"a/attributes.json": DATASET}), presented()
    answers(container.read("a/zarr.json"))
    change = container.update_attributes("a", lambda _: {"units": ["nm"]}, is_group=False)
    answers(change)
    assert container.memory.node("a") is None
    assert [w.partition(": ")[0] for w in answers.warnings] == ["a"]
    assert answers.document("a") == DATASET | {"units": ["nm"]}


class Creating(Answers):
    """Storage in which another program creates a document just before ours is written."""

    def answer(self, request: Request) -> object:
        if isinstance(request, Update) and request.key == "a/attributes.json":
            self.values.setdefault(request.key, b'{"theirs":1}')
        return super().answer(request)


@pytest.mark.parametrize("zarr_format", [None, 3])
def test_a_document_that_another_program_creates_meanwhile_is_not_replaced(
    zarr_format: Any,
) -> None:
    answers, container = Creating(**{"attributes.json": ROOT}), presented(zarr_format=zarr_format)
    write(answers, container, "a/zarr.json", GROUP | {"attributes": {"u": 1}}, only_new=True)
    assert answers.document("a") == {"theirs": 1}
    assert container.memory.known == {}
    assert container.memory.served == {}
