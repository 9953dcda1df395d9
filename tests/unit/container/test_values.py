"""Options, data types, resizes, walks and listings: functions of a container on small values."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
import zarr

from n5zarr.container import block_listing, resizing
from n5zarr.container.block_listing import (
    blocks_by_prefix,
    grid_position_rows,
    holds_blocks,
    n_bytes_below,
    stored_rows,
)
from n5zarr.container.codec_chain import check, decode, encode
from n5zarr.container.data_types import (
    default_fill,
    element_of_v2,
    element_of_v3,
    type_of_numpy,
    v2_fill,
    v3_form,
)
from n5zarr.container.foreign import check_n5, read_node_of_any, read_zarr_node, zarr_instead
from n5zarr.container.memory import Memory, check_still_there
from n5zarr.container.nodes import Nodes
from n5zarr.container.options import (
    ViewOptions,
    check_compression,
    check_concurrency,
    check_sizes,
    require,
    texts_of,
    unknown,
)
from n5zarr.container.resizing import pad_blocks, remove_outside
from n5zarr.container.walk import PathPatterns, Selection, Walk
from n5zarr.errors import (
    N5AttributesError,
    N5Error,
    N5FormatError,
    N5UnrepresentableError,
    N5UnsupportedError,
)
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.compression import Gzip
from n5zarr.format.data_type import DataType
from n5zarr.format.order import N5Tuple
from n5zarr.storage.requests import Ends, Entry, KeysBelow, List, Remove, Request, Update
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Element
from n5zarr.zarr_view.record import Record
from tests.refusals import refused
from tests.unit.container.answers import DATASET, EDGE_BLOCK, FULL_BLOCK, Answers, Doc, presented


def view_of(element: Element | None = None, record: Any = None, **members: Any) -> DatasetView:
    parsed = parse_attributes(DATASET | members)
    assert isinstance(parsed, DatasetAttributes)
    return DatasetView(
        dataset=parsed, codecs="zarr", axis_order="C", element=element, record=record or Record()
    )


# ---------------------------------------------------------------------- options


def test_a_view_with_coordinates_is_of_v3() -> None:
    for given in (None, 3):
        assert ViewOptions(zarr_format=given).for_coords() == ViewOptions(zarr_format=3)
    options = ViewOptions(codecs="n5", axis_order="F")
    assert options.for_coords() == ViewOptions(codecs="n5", axis_order="F", zarr_format=3)
    assert options.for_grid() is options
    with pytest.raises(N5UnsupportedError, match=r"coords=True: expected Zarr v3, got v2"):
        ViewOptions(zarr_format=2).for_coords()


def test_truncated_chunks_need_v3_and_zarrs_permission() -> None:
    options = ViewOptions(chunk_grid="rectilinear")
    with zarr.config.set({"array.rectilinear_chunks": False}):
        with pytest.raises(N5UnsupportedError, match="expected zarr to allow this"):
            options.for_grid()
        with pytest.raises(N5UnsupportedError, match="expected Zarr v3, got zarr_format=2"):
            ViewOptions(chunk_grid="rectilinear", zarr_format=2).for_grid()
    with zarr.config.set({"array.rectilinear_chunks": True}):
        assert options.for_grid() == ViewOptions(chunk_grid="rectilinear", zarr_format=3)
        assert options.for_coords() == ViewOptions(chunk_grid="rectilinear", zarr_format=3)


@pytest.mark.parametrize(
    ("options", "coords", "found"),
    [
        (ViewOptions(), True, "coords=True: expected a read-only store"),
        (ViewOptions(chunk_grid="rectilinear"), False, "chunk_grid='rectilinear': expected a read"),
        (ViewOptions(), False, None),
    ],
)
def test_what_can_only_be_read(options: ViewOptions, found: str | None, *, coords: bool) -> None:
    if found is None:
        return options.check_writable(coords=coords)
    with refused(N5UnsupportedError, "read-only", found):
        options.check_writable(coords=coords)
    return None


def test_a_condition_that_does_not_hold_is_an_error() -> None:
    require([1], "no")
    with refused(N5UnrepresentableError, "option", r"^c: no$"):
        require("", "no", "c")
    with refused(N5UnrepresentableError, "path"):
        require(holds=False, message="no", kind="path")


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (lambda v: texts_of("t", v), "ab", ["ab"]),
        (lambda v: texts_of("t", v), ("a", "b"), ["a", "b"]), (lambda v: texts_of("t", v), [], []),
        (lambda v: texts_of("t", v), 3, None), (lambda v: texts_of("t", v), ["a", 3], None),
        (lambda v: check_sizes("t", v), None, None), (lambda v: check_sizes("t", v), 3, (3,)),
        (lambda v: check_sizes("t", v), [np.int64(3), 1], (3, 1)),
        (lambda v: check_sizes("t", v), 0, ()), (lambda v: check_sizes("t", v), [3, 0], ()),
        (lambda v: check_sizes("t", v), [0, 3], ()), (lambda v: check_sizes("t", v), [], ()),
        (lambda v: check_sizes("t", v), [3, 1.5], ()), (lambda v: check_sizes("t", v), "3", ()),
        (check_concurrency, 1, 1), (check_concurrency, "12", 12), (check_concurrency, 0, ()),
        (check_concurrency, "x", ()), (check_concurrency, 1.5, ()), (check_concurrency, -1, ()),
    ],
)  # fmt: skip
def test_what_a_user_gives_is_checked(function: Any, given: Any, expected: Any) -> None:
    if expected == () or (expected is None and given is not None):
        with refused(N5UnrepresentableError, "option", rf"got {re.escape(repr(given))}"):
            function(given)
    else:
        assert function(given) == expected


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [("codecs", "x", "'zarr', 'n5', 'portable'"), ("zarr_format", 4, "2, 3, None"),
     ("axis_order", "c", "'C', 'F'")],
)  # fmt: skip
def test_an_unknown_option_is_refused_with_those_that_are_known(
    option: str, value: Any, known: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=f"{option}: expected one of {known}, got"):
        ViewOptions(**{option: value})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("gzip", Gzip()),
        ({"type": "gzip", "level": 3}, Gzip(level=3)),
        ({"type": "gzip", "useZlib": True, "level": 3}, Gzip(use_zlib=True, level=3)),
    ],
)
def test_a_compression_is_given_by_name_or_members(given: Any, expected: Gzip) -> None:
    assert check_compression(given) == expected


@pytest.mark.parametrize(
    ("given", "found", "kind"),
    [
        ({"type": "gzip", "levle": 3}, "members type, useZlib, level, got 'levle'.*level",
         "option"),
        ("jpeg", "jpeg can only be read", "compression"),
        ("odd", "odd", "compression"),
    ],
)  # fmt: skip
def test_another_compression_is_refused(given: Any, found: str, kind: str) -> None:
    with refused(N5Error, kind, found):
        check_compression(given)


def test_an_unknown_argument_has_pythons_error() -> None:
    error = unknown("open", "modee", ["mode", "path"])
    assert isinstance(error, TypeError)
    assert re.match(r"open\(\) got an unexpected keyword argument 'modee'.*mode", str(error))


# ---------------------------------------------------------------------- data types of Zarr


@pytest.mark.parametrize(
    ("data_type", "fill_value", "dtype", "scalar"),
    [
        ("uint16", 7, "uint16", 7), ("uint16", None, "uint16", 0),
        ("float32", "NaN", "float32", np.nan), ("complex64", [1.0, 2.0], "complex64", 1 + 2j),
        ("string", "a", "T", "a"),
    ],
)  # fmt: skip
def test_elements_of_v3(data_type: str, fill_value: Any, dtype: str, scalar: Any) -> None:
    element = element_of_v3(data_type, fill_value)
    assert element.dtype == np.dtype(dtype)
    assert element.dtype.kind == "T" or element.dtype.isnative
    np.testing.assert_equal(element.fill_value, scalar)


@pytest.mark.parametrize(
    ("document", "dtype", "scalar", "v3"),
    [
        ({"dtype": "<u2", "fill_value": 7}, "uint16", 7, ("uint16", 7)),
        ({"dtype": ">u2", "fill_value": None}, "uint16", 0, ("uint16", 0)),
        ({"dtype": "|b1"}, "bool", False, ("bool", False)),
        ({"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": "a"}, "T", "a",
         ("string", "a")),
        ({"dtype": "|O", "filters": [{"id": "x"}, {"id": "vlen-bytes"}], "fill_value": "YQ=="},
         "O", b"a", ("variable_length_bytes", "YQ==")),
    ],
)  # fmt: skip
def test_elements_of_v2(document: Doc, dtype: str, scalar: Any, v3: Any) -> None:
    element = element_of_v2(document)
    assert element.dtype == np.dtype(dtype)
    assert element.dtype.kind in "TO" or element.dtype.isnative
    assert element.fill_value == scalar
    assert v3_form(document) == v3


@pytest.mark.parametrize(
    ("data_type", "fill_value", "v2_dtype", "expected"),
    [
        ("uint16", 7, "<u2", 7), ("uint16", 0, "<u2", None), ("float64", -0.0, ">f8", -0.0),
        ("float64", 0.0, ">f8", None), ("string", "", "|O", None), ("string", "a", "|O", "a"),
        ("bool", True, "|b1", True),
    ],
)  # fmt: skip
def test_fill_values_of_v2(data_type: str, fill_value: Any, v2_dtype: str, expected: Any) -> None:
    found = v2_fill(data_type, fill_value, v2_dtype)
    assert repr(found) == repr(expected)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("<u2", ("uint16", 0)), ("?", ("bool", False)), ("f2", ("float16", 0.0)),
     ("M8[10s]", ({"name": "numpy.datetime64",
                   "configuration": {"unit": "s", "scale_factor": 10}}, 0))],
)  # fmt: skip
def test_types_of_numpy(dtype: str, expected: Any) -> None:
    assert type_of_numpy(np.dtype(dtype)) == expected


def test_default_fill_values() -> None:
    assert [default_fill(t) for t in ("uint16", "bool", "string")] == [0, False, ""]


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda: element_of_v3("odd", 0), "data type: expected one that zarr knows, got 'odd'"),
        (lambda: element_of_v3("uint8", "x"), "fill_value: expected one of uint8, got 'x'"),
        (lambda: element_of_v3("uint8", 256), "fill_value: expected one of uint8, got 256"),
        (lambda: element_of_v3("bool", [True]), "fill_value"),
        (lambda: element_of_v2({"dtype": "odd"}), "data type: .*'odd'"),
        (lambda: element_of_v2({"dtype": "|O"}), "data type: .*O"),
        (lambda: type_of_numpy(np.dtype("f16")), "data type: .*float128"),
    ],
)
def test_another_type_or_value_is_refused(function: Any, found: str) -> None:
    with refused(N5UnrepresentableError, "data-type", found):
        function()


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (Record(), None),
        (Record(codecs=[{"name": "bytes", "configuration": {"endian": "little"}}]), None),
        (Record(codecs=[{"name": "bytes"}] * 65), "zarr: codecs: expected at most 64"),
        (Record(codecs=[{"name": "odd"}]), "zarr: expected codecs that zarr accepts, got"),
        (Record(extra={"odd": {"must_understand": True}}), "zarr: expected codecs that zarr"),
    ],
)
def test_a_record_that_zarr_refuses_is_named(record: Record, found: str | None) -> None:
    if found is None:
        return check(view_of(record=record))
    with refused(N5AttributesError, "compression", found):
        check(view_of(record=record))
    return None


def test_chunks_of_any_codecs_are_decoded_and_encoded_by_zarr() -> None:
    little: Any = {"name": "bytes", "configuration": {"endian": "little"}}
    view = view_of(record=Record(codecs=[little]))
    document = view.v3_text.replace("[3, 5]", "[2, 3]")
    array = np.arange(6, dtype="u2").reshape(2, 3)
    data = array.astype("<u2").tobytes()
    np.testing.assert_array_equal(decode(memoryview(data), document), array)
    assert bytes(encode(array, document)) == data
    with pytest.raises(N5UnsupportedError, match=r"codecs \[.*bytes.*zarr's error"):
        decode(memoryview(b"1"), document)


@pytest.mark.parametrize("codec", ["zlib", "gzip", "bz2", "lzma", "zstd", "blosc", "lz4"])
def test_a_damaged_chunk_names_its_codecs(codec: str) -> None:
    document = {
        "zarr_format": 2, "shape": [2], "chunks": [2], "dtype": "<u2", "fill_value": 0,
        "order": "C", "compressor": {"id": codec}, "filters": [{"id": "delta", "dtype": "<u2"}],
    }  # fmt: skip
    with pytest.raises(N5UnsupportedError, match=f"codecs .*delta.*{codec}.*zarr's error"):
        decode(memoryview(b"1"), json.dumps(document))


# ---------------------------------------------------------------------- resizing

PADDED = bytes.fromhex("0000 0002 00000003 00000002 000a 000b 0009 000c 000d 0009")


@pytest.mark.parametrize(
    ("resized", "block", "members", "expected"),
    [
        ((6, 3), EDGE_BLOCK, {}, PADDED),
        ((4, 3), EDGE_BLOCK, {}, PADDED),
        ((5, 4), EDGE_BLOCK, {}, EDGE_BLOCK),  # its extent stays
        ((5, 3), EDGE_BLOCK, {}, EDGE_BLOCK),
        ((3, 3), EDGE_BLOCK, {}, EDGE_BLOCK),  # outside from now on
        ((6, 3), FULL_BLOCK, {}, FULL_BLOCK),
        ((6, 3), EDGE_BLOCK[:-1], {}, EDGE_BLOCK[:-1]),  # damaged
        ((6, 3), b"\0", {}, b"\0"),
        ((6, 3, 1), EDGE_BLOCK, {}, EDGE_BLOCK),
        ((6, 3), EDGE_BLOCK, {"dataType": "string"}, EDGE_BLOCK),
        ((6, 3), EDGE_BLOCK, {"dataType": "uint8", "compression": {"type": "jpeg"}}, EDGE_BLOCK),
        # larger than a block, or of another rank
        ((6, 3), bytes.fromhex("0000 0002 00000004 00000001") + bytes(8), {},
         bytes.fromhex("0000 0002 00000004 00000001") + bytes(8)),
        ((6, 3), bytes.fromhex("0000 0001 00000002") + bytes(4), {},
         bytes.fromhex("0000 0001 00000002") + bytes(4)),
    ],
)  # fmt: skip
def test_blocks_at_the_old_end_are_padded_with_the_fill_value(
    resized: tuple[int, ...], block: bytes, members: Doc, expected: bytes
) -> None:
    is_number = "dataType" not in members
    element = Element(dtype=np.dtype("u2"), fill_value=9) if is_number else None
    answers = Answers(**{"a/1/0": block})
    answers(pad_blocks("a", view_of(element, **members), N5Tuple(resized)))
    assert answers.values["a/1/0"] == expected
    is_changed = expected is PADDED
    assert (answers.count(Update) == 0) or is_changed or block == EDGE_BLOCK[:-1]


def test_a_block_that_already_has_its_new_extent_is_kept() -> None:
    block = bytes.fromhex("0000 0002 00000001 00000002 0001 0002")
    answers = Answers(**{"a/1/0": block})
    answers(pad_blocks("a", view_of(), N5Tuple((4, 3))))
    assert answers.values["a/1/0"] == block


def test_a_block_that_another_program_pads_or_removes_meanwhile_is_kept() -> None:
    class Racing(Answers):
        def answer(self, request: Request) -> object:
            found = super().answer(request)
            if isinstance(request, Ends):
                self.values.pop("a/1/0", None)
                self.values |= {"a/1/1": FULL_BLOCK} if "a/1/1" in self.values else {}
            return found

    corner = bytes.fromhex("0000 0002 00000002 00000001 000a 000b")
    answers = Racing(**{"a/1/0": EDGE_BLOCK, "a/1/1": corner})
    answers(pad_blocks("a", view_of(), N5Tuple((6, 3))))
    assert answers.values == {"a/1/1": FULL_BLOCK}


@pytest.mark.parametrize(("name", "most"), [("MOST_BLOCKS", 1), ("MOST_BYTES", 12)])
def test_too_many_truncated_blocks_stay_and_are_told(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    corner = bytes.fromhex("0000 0002 00000002 00000001 000a 000b")
    answers = Answers(**{"a/1/0": EDGE_BLOCK, "a/1/1": corner})
    monkeypatch.setattr(resizing, name, most)
    answers(pad_blocks("a", view_of(), N5Tuple((6, 3))))
    assert answers.values == {"a/1/0": EDGE_BLOCK, "a/1/1": corner}
    assert [w[:16] for w in answers.warnings] == ["a: more than 1 b"]
    monkeypatch.setattr(resizing, name, 2 * most)
    answers(pad_blocks("a", view_of(), N5Tuple((6, 3))))
    assert len(answers.values["a/1/1"]) == 24


@pytest.mark.parametrize("listed", [10_000, 0])
@pytest.mark.parametrize("at_once", [64, 1])
def test_blocks_outside_of_the_new_grid_are_removed(
    listed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resizing, "_LISTED", listed)
    monkeypatch.setattr(resizing, "_AT_ONCE", at_once)
    blocks = {f"a/{x}/{y}": b"" for x in range(4) for y in range(3)}
    answers = Answers(**blocks, **{"a/attributes.json": b"", "a/1/x": b""})
    dataset = view_of(dimensions=[12, 6]).dataset
    answers(remove_outside("a", dataset, N5Tuple((5, 3))))
    left = {"a/0/0", "a/0/1", "a/1/0", "a/1/1", "a/attributes.json", "a/1/x"}
    assert answers.values.keys() == left
    assert answers.count(Remove) == 8
    answers.asked.clear()
    padded = Answers(**{f"b/{x}/{y}": EDGE_BLOCK for x in range(2) for y in range(2)})
    padded(pad_blocks("b", view_of(), N5Tuple((6, 4))))
    # all but the one that was not truncated by the dataset
    assert [k for k, v in padded.values.items() if v == EDGE_BLOCK] == ["b/0/0"]


# ---------------------------------------------------------------------- listings of blocks


class Prefixed(Answers):
    """An object store, which lists keys by their prefix."""

    def answer(self, request: Request) -> object:
        if not isinstance(request, KeysBelow):
            return super().answer(request)
        prefix = f"{request.path}/"
        keys = [key.removeprefix(prefix) for key in self.values if key.startswith(prefix)]
        sizes = [len(self.values[prefix + key]) for key in keys]
        return [request.take(keys[:2], sizes[:2]), request.take(keys[2:], sizes[2:])]


STORED: Doc = {"a/1/0": b"12", "a/0/1": b"3", "a/0/0": b"", "a/2/0": b"", "a/x": b"12345"}


def test_blocks_are_listed_by_their_prefix_or_by_directories() -> None:
    grid = N5Tuple((2, 2))
    for answers in (Answers(**STORED), Prefixed(**STORED)):
        assert answers(grid_position_rows("a", grid)).tolist() == [[0, 0], [0, 1], [1, 0]]
        assert [r.tolist() for r in stored_rows(answers, "a", grid)] == [[[0, 0], [0, 1], [1, 0]]]
        assert answers(grid_position_rows("b", grid)).tolist() == []
        assert list(stored_rows(answers, "b", grid)) == []
        part = [range(1), range(2)]
        assert answers(grid_position_rows("a", grid, part)).tolist() == [[0, 0], [0, 1]]
        whole = [range(2), range(2)]
        answers.asked.clear()
        assert len(answers(grid_position_rows("a", grid, whole))) == 3
        assert isinstance(answers, Prefixed) is (answers.count(List) == 0)
        digits = "1" * 19  # those of the largest grid
        longest = answers.__class__(**{f"a/{digits}": b"", f"a/{digits}1": b""})
        found = longest(grid_position_rows("a", N5Tuple((2**63 - 1,))))
        assert found.tolist() == [[int(digits)]]
        assert answers(grid_position_rows("a", N5Tuple((0, 2)))).shape == (0, 2)
    stored = Prefixed(**STORED)(blocks_by_prefix("a", grid))
    assert stored is not None
    assert (stored.n_bytes, stored.others) == (3, ("2/0", "x"))
    assert Answers(**STORED)(blocks_by_prefix("a", grid)) is None
    scalar = Prefixed(**{"a/0": b"12", "a/1": b""})(blocks_by_prefix("a", N5Tuple(())))
    assert scalar is not None
    assert (scalar.rows.shape, scalar.others) == ((1, 0), ("1",))
    walked = Answers(**{"a/0": b"12", "a/1": b""})(grid_position_rows("a", N5Tuple(())))
    assert walked.shape == (1, 0)


@pytest.mark.parametrize(
    ("grid", "dtype"), [((127, 1), "i1"), ((128, 1), "i1"), ((129, 1), "i2"), ((2**31 + 1,), "i8")]
)
def test_positions_have_the_smallest_type(grid: tuple[int, ...], dtype: str) -> None:
    for answers in (Answers(), Prefixed()):
        assert answers(grid_position_rows("a", N5Tuple(grid))).dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["a/0"], True), (["a/0/1/2"], True), (["a/x"], False), (["a/x/0"], False), ([], False),
        (["a/0/attributes.json", "a/0/1"], False), (["a/attributes.json", "a/0"], True),
        (["a/00"], False), (["a/0/x"], False), (["a/0/x", "a/1/2"], True),
    ],
)  # fmt: skip
def test_whether_a_node_holds_blocks(keys: list[str], *, expected: bool) -> None:
    assert Answers(**dict.fromkeys(keys, b""))(holds_blocks("a")) is expected


def test_bytes_below_a_directory_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = Answers(**STORED, **{"b/0": b"12"})
    assert answers(n_bytes_below("a")) == 8
    assert answers(n_bytes_below("")) == 10
    monkeypatch.setattr(block_listing, "_DIRECTORIES", (1, 1))
    assert answers(n_bytes_below("")) == 10
    assert answers(grid_position_rows("a", N5Tuple((2, 2)))).tolist() == [[0, 0], [0, 1], [1, 0]]
    sparse = Answers(**{"a/0/x": b"", "a/1/x": b"", "a/2/0": b""})
    assert sparse(grid_position_rows("a", N5Tuple((3, 2)))).tolist() == [[2, 0]]

    class Linked(Answers):
        def answer(self, request: Request) -> object:
            found = super().answer(request)
            is_link = isinstance(request, List) and request.path == "a"
            return [e._replace(is_nested_link=True) for e in found] if is_link else found  # type: ignore[attr-defined]

    assert Linked(**STORED)(n_bytes_below("a")) == 5


# ---------------------------------------------------------------------- the memory of a store


def test_the_memory_forgets_what_is_gone_and_limits_what_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    container = presented()
    memory = container.memory
    answers = Answers(**{"a/attributes.json": DATASET})
    answers(container.read("a/zarr.json"))
    answers(container.read("b/zarr.json"))
    memory.keep("a", None)
    assert (memory.node("a"), [key.path for key in memory.served]) == (None, ["b"])
    monkeypatch.setattr("n5zarr.container.memory._NAMED", 2)
    for names, kept in (["a", "b"], {"a", "b"}), (["c"], {"a", "b", "c"}), (["d"], {"d"}):
        memory.keep_named(names)
        assert memory.named == kept
    memory.keep_before("a", b"1")
    assert memory.before is None
    memory.before = {}
    for data in (b"1", b"2"):
        memory.keep_before("a", data)
    assert memory.before == {"a": b"1"}
    memory.keep_shard("k", b"1", b"shard")
    assert [memory.shard_of(k, b) for k, b in (("k", b"1"), ("k", b"2"), ("l", b"1"))] == [
        b"shard", None, None
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "stamp", "is_taken"),
    [(2, None, True), (2.1, None, False), (9, 1, True), (0, 2, False)],
)
def test_a_listed_node_is_fresh_for_two_seconds_or_while_its_stamp_stays(
    seconds: float, stamp: object, monkeypatch: pytest.MonkeyPatch, *, is_taken: bool
) -> None:
    now = [7.0]
    monkeypatch.setattr("n5zarr.container.memory.time.monotonic", lambda: now[0])
    memory = Memory()
    node = view_of()
    memory.keep_listed({"a": node}, {"a": 1} if stamp else {})
    now[0] += seconds
    assert (memory.take_listed("a", stamp) is node) is is_taken
    assert memory.take_listed("a", stamp) is None  # once
    memory.keep_listed({"a": node}, {})
    memory.keep("a", node)
    memory.forget_attributes("a")
    assert (memory.listed, memory.node("a")) == ({}, None)


@pytest.mark.parametrize("change", [{"dataType": "int16"}, {"blockSize": [2, 3]}])
def test_a_dataset_with_other_elements_or_blocks_is_another_one(change: Doc) -> None:
    own = view_of().dataset
    check_still_there(own, view_of(dimensions=[9, 9]).dataset)
    with refused(N5Error, "changed", r"expected uint16 in blocks \(3, 2\), got "):
        check_still_there(own, view_of(**change).dataset)
    memory = Memory()
    memory.create("a", {"zarr_format": 3}, (DataType.UINT16, N5Tuple((3, 2)), "bool"))
    created = memory.created["a"]
    assert created.fits(own, "bool")
    assert not created.fits(own, None)
    assert not created.fits(view_of(**change).dataset, "bool")


# ---------------------------------------------------------------------- Zarr beside N5

V3_ARRAY = {"zarr_format": 3, "node_type": "array", "shape": [3]}
V3_GROUP = {"zarr_format": 3, "node_type": "group"}
N5_DEFAULT = V3_ARRAY | {"codecs": [{"name": "n5_default"}]}


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"a/x": b""}, None),
        ({"a/zarr.json": V3_GROUP}, "a Zarr v3 group"),
        ({"a/zarr.json": V3_ARRAY, "a/c/0": b""}, "a Zarr v3 array"),
        ({"a/.zarray": {}}, "a Zarr v2 array"),
        ({"a/zarr.json": V3_GROUP, "a/b/attributes.json": {}}, None),
        ({"a/zarr.json": V3_GROUP, "a/b/attributes.json": {}, "a/b/zarr.json": V3_GROUP}, None),
        ({"a/zarr.json": V3_GROUP, "a/b/attributes.json": {}, "a/b/zarr.json": V3_GROUP,
          "a/b/c/zarr.json": V3_GROUP}, "a Zarr v3 group"),
        ({"a/zarr.json": V3_GROUP, "a/b/c/attributes.json": DATASET, "a/b/zarr.json": V3_GROUP},
         None),
        ({"a/zarr.json": V3_GROUP | {"n5zarr": {
            "must_understand": False, "sidecar_of": "attributes.json"}}}, None),
        ({"a/zarr.json": V3_GROUP, "a/x/p/file": b"", "a/x/q/attributes.json": {}}, None),
        ({"a/zarr.json": V3_GROUP, "a/0/file": b"", "a/1/attributes.json": {}}, None),
        ({"a/n5zarr-incomplete.json": b""}, "the incomplete result of an interrupted run"),
        ({"a/n5zarr-incomplete.json": b"", "a/attributes.json": {}}, None),
        # documents of both
        ({"a/attributes.json": DATASET, "a/zarr.json": N5_DEFAULT, "a/c/0": b""}, None),
        ({"a/attributes.json": DATASET, "a/zarr.json": V3_ARRAY, "a/c/0": b""}, "a Zarr v3 array"),
        ({"a/attributes.json": DATASET, "a/zarr.json": V3_ARRAY, "a/0/0": b""}, None),
        ({"a/attributes.json": DATASET, "a/zarr.json": V3_ARRAY, "a/0/0": b"", "a/c/0": b""},
         "expected N5 or Zarr, got the documents of both"),
        ({"a/attributes.json": DATASET, "a/.zarray": {"shape": [3]}, "a/0": b""},
         "expected N5 or Zarr, got the documents of both"),
        ({"a/attributes.json": {"u": 1}, "a/zarr.json": V3_ARRAY}, "a Zarr v3 array"),
        ({"a/attributes.json": {"u": 1}, "a/zarr.json": V3_GROUP}, None),
        ({"a/attributes.json": {"u": 1}, "a/zarr.json": V3_GROUP, "a/b/zarr.json": V3_GROUP},
         "a Zarr v3 group"),
        ({"a/attributes.json": {}, "a/zarr.json": V3_ARRAY, "a/b/attributes.json": {}}, None),
        ({"a/attributes.json": b"{", "a/zarr.json": V3_GROUP}, None),
    ],
)  # fmt: skip
def test_a_directory_is_of_n5_or_zarr(values: Doc, found: str | None) -> None:
    answers = Answers(**values)
    entries: list[Entry] = answers.answer(List("a"))  # type: ignore[assignment]
    if found is None:
        return answers(check_n5("a", entries))
    with refused(N5FormatError, "foreign", found):
        answers(check_n5("a", entries))
    return None


@pytest.mark.parametrize(
    ("path", "values", "location", "found", "n_asked"),
    [
        # what is usual asks for nothing
        ("a", {"a/attributes.json": DATASET, "a/zarr.json": V3_ARRAY, "a/c/0": b""}, "x.n5",
         None, 0),
        ("", {"attributes.json": DATASET, "zarr.json": V3_ARRAY, "c/0": b""}, "x.n5", None, 0),
        ("", {"attributes.json": {"n5": "4.0.0"}, "zarr.json": V3_GROUP}, "x.n5", None, 0),
        ("", {"attributes.json": {"u": 1}, "zarr.json": V3_GROUP, "b/zarr.json": V3_GROUP},
         "x.n5", "a Zarr v3 group", None),
        ("", {"attributes.json": {"u": 1}}, "x.n5", None, 3),
        ("", {"attributes.json": [1]}, "x.n5", None, 3),
        ("a", {"a/attributes.json": DATASET, "a/zarr.json": V3_ARRAY, "a/c/0": b""}, "x.zarr",
         "a Zarr v3 array", None),
        ("a.zarr", {"a.zarr/attributes.json": DATASET, "a.zarr/zarr.json": V3_ARRAY,
                    "a.zarr/c/0": b""}, "x", "a Zarr v3 array", None),
        ("a", {"a/attributes.json": {"zarr_format": 2}, "a/.zarray": {}}, "x.n5",
         "a Zarr v2 array", None),
        ("a", {"a/attributes.json": b'{"zarr_format"', "a/.zarray": {}}, "x.n5", None, 0),
    ],
)  # fmt: skip
def test_a_node_of_zarr_may_have_a_file_of_the_name_of_n5s_document(
    path: str, values: Doc, location: str, found: str | None, n_asked: int | None
) -> None:
    answers = Answers(**values)
    data = answers.values[f"{path}/attributes.json".lstrip("/")]
    foreign = answers(zarr_instead(path, data, location))
    assert (foreign and foreign.what) == found
    assert n_asked is None or len(answers.asked) == n_asked
    is_n5, again = answers(read_node_of_any(path, location))
    assert (is_n5, again) == (found is None, foreign)
    assert answers(read_zarr_node(path, location)) == foreign


def test_where_nothing_is_listed_the_documents_decide() -> None:
    class Unlisted(Answers):
        def answer(self, request: Request) -> object:
            return [] if isinstance(request, List) else super().answer(request)

    for document, found in ((DATASET, None), ({"u": 1}, "a Zarr v3 group")):
        answers = Unlisted(**{"a/attributes.json": document, "a/zarr.json": V3_GROUP})
        foreign = answers(zarr_instead("a", answers.values["a/attributes.json"], "x.zarr"))
        assert (foreign and foreign.what) == found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"a/zarr.json": V3_ARRAY}, (False, "array")), ({"a/.zgroup": {}}, (False, "group")),
        ({"a/x": b""}, (False, None)), ({"a/attributes.json": {}}, (True, None)),
    ],
)  # fmt: skip
def test_nodes_of_any_format_are_read(values: Doc, expected: Any) -> None:
    is_n5, foreign = Answers(**values)(read_node_of_any("a", "x"))
    assert (is_n5, foreign and foreign.kind) == expected


# ---------------------------------------------------------------------- walks

TREE = {
    "attributes.json": {}, "a/attributes.json": {},
    **{f"a/d{k}/attributes.json": DATASET for k in range(5)}, "b/x/attributes.json": DATASET,
    "b/q\\r/attributes.json": {}, "c/attributes.json": DATASET,
}  # fmt: skip


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ["", "a", "a/d0", "a/d1", "a/d2", "a/d3", "a/d4", "b", "b/x", "b/q\\r", "c"]),
        (Selection(depth=0), [""]),
        (Selection(depth=1), ["", "a", "b", "c"]),
        (Selection(limit=2), ["", "a", "a/d0", "a/d1", "a +3", "b", "b/x", "b/q\\r", " +1"]),
        (Selection(limit=2, limit_below=1),
         ["", "a", "a/d0", "a +4", "b", "b/x", "b/q\\r", " +1"]),
        (Selection(limit=0), ["", " +3"]),
        (Selection(limit_below=3, skip=1), ["", "b", "b/x", "b/q\\r", "c"]),
        (Selection(pattern="a/d[13]"), ["", "a", "a/d1", "a/d3"]),
        (Selection(pattern="/?/x/"), ["", "a", "b", "b/x", "c"]),
        (Selection(skip=2), ["", "c"]),
        (Selection(paths=PathPatterns(["a/d1", "c"])), ["", "a", "a/d1", "c"]),
        (Selection(paths=PathPatterns((), ["a"])), ["", "b", "b/x", "b/q\\r", "c"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("top", ["", "t"])
@pytest.mark.parametrize("has_stamps", [True, False])
def test_a_walk_visits_what_is_selected(
    selection: Selection, expected: list[str], top: str, *, has_stamps: bool
) -> None:
    answers = Answers(**{f"{top}/{key}".lstrip("/"): value for key, value in TREE.items()})
    container = presented(has_stamps=has_stamps)
    node = answers(container.node(top))
    assert node is not None
    found = list(Walk(container.nodes, answers, selection).run(top, node))
    shown = [
        f.path.removeprefix(top).lstrip("/") + (f" +{f.n_more}" if f.n_more else "")
        for f, _ in found
    ]
    assert shown == expected
    levels = [0 if not p else p.count("/") + 1 for p in shown]
    assert [f.level for f, _ in found if not f.n_more] == [
        n for n, p in zip(levels, shown, strict=True) if "+" not in p
    ]
    # the last one of each group is marked
    for n, (each, is_last) in enumerate(found):
        later = [f.level for f, _ in found[n + 1 :]]
        same = next((level for level in later if level <= each.level), -1)
        assert is_last is (same != each.level)


def test_patterns_of_a_server_need_no_listing_and_links_are_told() -> None:
    selection = Selection(paths=PathPatterns(["a/d1", "nothing"]))
    answers = Answers(**TREE)
    container = presented(has_stamps=False)
    node = answers(container.node(""))
    assert node is not None
    answers.asked.clear()
    walked = [f.path for f, _ in Walk(container.nodes, answers, selection).run("", node)]
    assert walked == ["", "a", "a/d1"]
    assert [r.path for r in answers.asked if isinstance(r, List)] == ["nothing"]

    class Linked(Answers):
        def answer(self, request: Request) -> object:
            found = super().answer(request)
            if request != List(""):
                return found
            changed = [e._replace(is_nested_link=e.name in "abc") for e in found or ()]  # type: ignore[attr-defined]
            return [*changed, Entry("dead", is_dir=False, is_dead_link=True)]

    told: list[tuple[str, str]] = []
    linked = Linked(**TREE)
    nodes = Nodes(ViewOptions(), Memory())
    walk = Walk(nodes, linked, leave_out=lambda path, why: told.append((path, why)))
    assert [f.path for f, _ in walk.run("", node)] == ["", "c"]
    assert told == [
        ("dead", "a link to nothing"),
        ("a", "a group behind a link that is behind another link"),
    ]


def test_a_walk_names_groups_of_zarr_as_broken() -> None:
    both = {"b/attributes.json": {}, "b/zarr.json": V3_GROUP, "b/c/zarr.json": V3_GROUP}
    answers = Answers(**{"attributes.json": {}, "a/zarr.json": V3_GROUP, **both})
    nodes = Nodes(ViewOptions(), Memory())
    node = answers(nodes.node(""))
    assert node is not None
    found = {f.path: f.node for f, _ in Walk(nodes, answers).run("", node)}
    assert [(p, type(n).__name__) for p, n in found.items()][1:] == [
        ("a", "Broken"),
        ("b", "Broken"),
    ]
    assert {p: n.error.where for p, n in found.items() if p} == {"a": "a", "b": "b"}  # type: ignore[union-attr]
    assert [f.name for f, _ in Walk(nodes, answers).run("", node)] == ["", "a", "b"]
