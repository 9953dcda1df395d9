"""Chunks are read, written and removed as blocks, with the requests that this takes."""

from __future__ import annotations

import bz2
import gzip
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from n5zarr.container.container import Container
from n5zarr.errors import N5BlockError, N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.storage.requests import Get, Put, Remove, Request, Stamp, Update, Work
from n5zarr.zarr_view.dataset_view import DatasetView
from tests.refusals import refused
from tests.unit.container.answers import DATASET, EDGE_BLOCK, FULL_BLOCK, Answers, Doc, presented

HEADER, ELEMENTS = FULL_BLOCK[:12], FULL_BLOCK[12:]
# a shard of Java N5 4: two blocks, then big-endian offsets and lengths, without a checksum
SHARD = FULL_BLOCK + EDGE_BLOCK + struct.pack(">4Q", 0, 24, 24, 20)


def stored(block: bytes | None = FULL_BLOCK, **members: Any) -> Answers:
    blocks = {} if block is None else {"a/0/0": block}
    return Answers(**{"a/attributes.json": DATASET | members}, **blocks)


def of(compression: str, **members: Any) -> Doc:
    return {"compression": {"type": compression, **members}}


def gets(answers: Answers) -> list[bool]:
    """Return whether each read of the block at the origin waited for writers."""
    return [r.settled for r in answers.asked if isinstance(r, Get) and r.key == "a/0/0"]


# N5 spec, "File-system specification", item 9: the elements follow the header
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a/c/0/0", [1, 2, 3, 4, 5, 6]), ("a/c/0/1", [10, 11, 0, 12, 13, 0]),  # padded
        ("a/c/1/0", None), ("a/c/2/0", None), ("nothing/c/0/0", None),
    ],
)  # fmt: skip
def test_a_chunk_has_the_elements_of_its_block_in_full_size(key: str, expected: Any) -> None:
    answers, container = stored(), presented()
    answers.values["a/1/0"] = EDGE_BLOCK
    chunk = answers(container.read(key))
    found = None if chunk is None else np.frombuffer(chunk, ">u2").tolist()
    assert found == expected
    assert answers(container.exists(key)) is (expected is not None)


ZLIB = of("gzip", useZlib=True)


@pytest.mark.parametrize(
    ("members", "payload", "has_stamps", "settled"),
    [
        # the end of the payload tells whether it is complete
        (of("raw"), ELEMENTS, True, [False]),
        (of("gzip"), gzip.compress(ELEMENTS), True, [False]),
        (of("gzip"), gzip.compress(ELEMENTS)[:-1], True, [False, True]),
        (of("raw"), ELEMENTS[:-1], True, [False, True]),
        (of("raw"), ELEMENTS[:-1], False, [False]),
        # it does not
        (ZLIB, zlib.compress(ELEMENTS), True, [True]),
        (ZLIB, zlib.compress(ELEMENTS), False, [True]),
    ],
    ids=["raw", "gzip", "gzip-cut", "raw-cut", "raw-cut-on-a-server", "zlib", "zlib-on-a-server"],
)
def test_a_block_that_may_be_incomplete_is_read_when_it_is_settled(
    members: Doc, payload: bytes, settled: list[bool], *, has_stamps: bool
) -> None:
    answers = stored(HEADER + payload, **members)
    container = presented(has_stamps=has_stamps)
    try:
        chunk = answers(container.read("a/c/0/0"))
    except N5BlockError as err:
        assert err.where == "c.n5: a: block 0/0"  # noqa: PT017 - some of them raise
        assert payload[-1:] != ELEMENTS[-1:] or members == of("raw")
    else:
        assert bytes(chunk or b"") == payload
    assert gets(answers) == settled


def test_a_whole_block_for_the_own_codec_is_read_again_if_its_end_is_missing() -> None:
    cut = HEADER + gzip.compress(ELEMENTS)[:-1]
    answers = stored(cut, **of("gzip"))
    assert bytes(answers(presented(codecs="n5").read("a/c/0/0")) or b"") == cut
    assert gets(answers) == [False, True]
    whole = HEADER + gzip.compress(ELEMENTS)
    answers = stored(whole, **of("gzip"))
    assert bytes(answers(presented(codecs="n5").read("a/c/0/0")) or b"") == whole
    assert gets(answers) == [False]
    answers = stored(b"\0\0", **of("gzip"))
    with pytest.raises(N5BlockError, match="block header"):
        answers(presented(codecs="n5").read("a/c/0/0"))
    assert gets(answers) == [False, True]


@pytest.mark.parametrize(("settled", "chunk"), [(None, None), (FULL_BLOCK, ELEMENTS)])
def test_a_cut_block_is_what_it_is_when_it_is_settled(
    settled: bytes | None, chunk: bytes | None
) -> None:
    class Settling(Answers):
        def answer(self, request: Request) -> object:
            at_end = request == Get("a/0/0", settled=True)
            return settled if at_end else super().answer(request)

    answers = Settling(**{"a/attributes.json": DATASET, "a/0/0": FULL_BLOCK[:-1]})
    assert answers(presented().read("a/c/0/0")) == chunk


@pytest.mark.parametrize(
    ("members", "payload", "decompress", "is_passed", "n_work"),
    [
        pytest.param(of("gzip"), gzip.compress(ELEMENTS), gzip.decompress, True, 1, id="gzip"),
        # the length at the end is that of the last member
        pytest.param(of("gzip"),
                     gzip.compress(ELEMENTS[:8]) + gzip.compress(ELEMENTS[8:] + bytes(8)),
                     gzip.decompress, False, 1, id="gzip-members"),
        pytest.param(ZLIB, zlib.compress(ELEMENTS), zlib.decompress, True, 1, id="zlib"),
        pytest.param(ZLIB, zlib.compress(ELEMENTS + bytes(2**20)), zlib.decompress, False, 2,
                     id="zlib-expands"),
        pytest.param(of("bzip2"), bz2.compress(ELEMENTS), bz2.decompress, True, 1, id="bzip2"),
        pytest.param(of("bzip2"), bz2.compress(ELEMENTS) + bz2.compress(bytes(2**20)),
                     bz2.decompress, False, 1, id="bzip2-streams"),
        pytest.param(of("raw"), ELEMENTS, bytes, True, 0, id="raw"),
    ],
)  # fmt: skip
def test_a_payload_that_expands_to_more_than_its_elements_is_cut(
    members: Doc,
    payload: bytes,
    decompress: Callable[[bytes], bytes],
    n_work: int,
    *,
    is_passed: bool,
) -> None:
    answers = stored(HEADER + payload, **members)
    chunk = bytes(answers(presented().read("a/c/0/0")) or b"")
    assert (chunk == payload) is is_passed
    assert decompress(chunk) == ELEMENTS
    assert answers.count(Work) == n_work
    # a copy decodes nothing
    copied = bytes(answers(presented().read("a/c/0/0", is_copied=True)) or b"")
    assert copied == payload
    assert answers.count(Work) == n_work


@pytest.mark.parametrize(("grown", "n_warnings"), [([5, 3], 1), ([3, 2], 0)])
def test_a_block_of_another_size_than_a_dataset_without_block_size_is_told(
    grown: list[int], n_warnings: int
) -> None:
    document = {key: value for key, value in DATASET.items() if key != "blockSize"}
    document["dimensions"] = grown
    answers = Answers(**{"a/attributes.json": document, "a/0/0": FULL_BLOCK})
    chunk = bytes(answers(presented().read("a/c/0/0")) or b"")
    padded = np.zeros(grown[::-1], ">u2")
    padded[:2, :3] = np.frombuffer(ELEMENTS, ">u2").reshape(2, 3)
    assert chunk == padded.tobytes()
    warnings = [w for w in answers.warnings if "blockSize is missing" in w]
    assert len(warnings) == n_warnings
    assert all(w.startswith("a: ") and "(5, 3), got one of (3, 2)" in w for w in warnings)


def test_a_truncated_block_of_a_dataset_with_block_size_is_as_expected() -> None:
    answers = Answers(**{"a/attributes.json": DATASET, "a/1/0": EDGE_BLOCK})
    answers(presented().read("a/c/0/1"))
    assert answers.warnings == []


def test_on_servers_a_chunk_outside_of_the_known_grid_reads_the_document_again() -> None:
    answers = stored(None)
    container = presented(has_stamps=False)
    for _ in range(2):
        assert answers(container.read("a/c/0/1")) is None
    assert answers.asked.count(Get("a/attributes.json")) == 1
    larger = DATASET | {"dimensions": [7, 3]}
    answers.values["a/attributes.json"] = json.dumps(larger).encode()
    answers.values["a/2/0"] = FULL_BLOCK
    assert not answers(container.exists("a/c/2/0"))
    assert answers(container.exists("a/c/0/2"))
    chunk = answers(container.read("a/c/0/2"))
    assert bytes(chunk or b"") == ELEMENTS
    assert answers.asked.count(Get("a/attributes.json")) == 2


def test_a_dataset_that_is_gone_is_named_when_its_array_is_used() -> None:
    answers, container = stored(None), presented()
    answers(container.read("a/c/0/0"))
    other = json.dumps(DATASET | {"dataType": "uint8"}).encode()
    for now, found in (
        (other, "another program has replaced"), (b'{"u": 1}', "got a group"), (None, "got nothing")
    ):  # fmt: skip
        answers.values.pop("a/attributes.json", None)
        answers.values |= {} if now is None else {"a/attributes.json": now}
        with refused(N5Error, "changed", rf"c\.n5: a: .*{found}"):
            answers(container.read("a/c/0/0"))
    with pytest.raises(N5Error, match=r"c\.n5: b: .*got nothing"):
        answers(container.dataset_of("b", 3))


@pytest.mark.parametrize(
    ("options", "members", "zarr_format", "as_blocks", "is_fit"),
    [
        ({}, {}, 3, False, True),
        ({}, {}, 2, False, True),
        ({}, {"dataType": "string"}, 3, False, False),
        ({}, {"dataType": "string"}, 3, True, True),
        ({"chunk_grid": "rectilinear"}, {}, 3, False, False),
        ({"chunk_grid": "rectilinear"}, {"dimensions": [6, 4]}, 3, False, True),
        ({"chunk_grid": "rectilinear"}, {}, 3, True, True),
    ],
)  # fmt: skip
def test_blocks_that_hold_the_elements_as_they_are_can_be_read_at_once(
    options: Doc, members: Doc, zarr_format: Any, *, as_blocks: bool,
    is_fit: bool,
) -> None:  # fmt: skip
    found = stored(**members)(
        presented(**options).dataset_of("a", zarr_format, as_blocks=as_blocks)
    )
    assert (found is not None) is is_fit
    if found is not None:
        assert (found[0], found[1].zarr_format) == ("a", zarr_format)


@pytest.mark.parametrize(("anew", "n_reads"), [(False, 1), (True, 2)])
def test_the_dataset_of_an_open_array_is_read_anew_only_if_that_is_asked(
    n_reads: int, *, anew: bool
) -> None:
    answers, container = stored(), presented(has_stamps=False)
    for _ in range(2):
        answers(container.dataset_of("a", 3, anew=anew))
    assert answers.asked.count(Get("a/attributes.json")) == n_reads


# ---------------------------------------------------------------------- codecs that N5 lacks


def recorded(*codecs: Doc) -> Doc:
    return {"zarr": {"codecs": list(codecs)}}


BIG = {"name": "bytes", "configuration": {"endian": "big"}}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
TRANSPOSED = recorded({"name": "transpose", "configuration": {"order": [1, 0]}}, LITTLE)
SHARDED = recorded(
    {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1, 3], "codecs": [BIG], "index_codecs": [LITTLE],
            "index_location": "end",
        },
    }
)  # fmt: skip
# Zarr v3, "Sharding codec": offset and length of each chunk, little-endian, behind the chunks
AS_SHARD = ELEMENTS + struct.pack("<4Q", 0, 6, 6, 6)
AS_TRANSPOSED = np.frombuffer(ELEMENTS, ">u2").reshape(2, 3).T.astype("<u2").tobytes()


@pytest.mark.parametrize(
    ("record", "chunk"), [(TRANSPOSED, AS_TRANSPOSED), (SHARDED, AS_SHARD)], ids=["chain", "shard"]
)
def test_a_chunk_of_recorded_codecs_is_made_and_taken(record: Doc, chunk: bytes) -> None:
    answers, container = stored(**record), presented()
    assert bytes(answers(container.read("a/c/0/0")) or b"") == chunk
    answers(container.write("a/c/1/0", memoryview(chunk)))
    # truncated: the second row is outside of the dataset
    assert answers.values["a/0/1"] == bytes.fromhex("0000 0002 00000003 00000001 0001 0002 0003")
    seen: list[bytes | None] = []

    def change(old: bytes | None) -> bytes | None:
        seen.append(old)
        return chunk[::-1] if record is TRANSPOSED else old

    answers(container.update("a/c/0/0", change))
    assert seen == [chunk]
    other = np.frombuffer(ELEMENTS, "<u2").reshape(2, 3)[::-1, ::-1].astype(">u2").tobytes()
    assert answers.values["a/0/0"] == HEADER + (other if record is TRANSPOSED else ELEMENTS)


def test_the_last_shard_is_made_once_while_its_block_stays() -> None:
    answers, container = stored(**SHARDED), presented()
    first = answers(container.read("a/c/0/0"))
    assert answers(container.read("a/c/0/0")) is first
    answers.values["a/0/0"] = HEADER + bytes(12)
    assert answers(container.read("a/c/0/0")) != first


def test_a_chunk_that_zarr_does_not_decode_is_named() -> None:
    answers, container = stored(**SHARDED), presented()
    with pytest.raises(N5UnsupportedError, match=r"c\.n5: a: block 0/0: codecs \[.*zarr's error"):
        answers(container.write("a/c/0/0", memoryview(b"?")))
    with pytest.raises(N5UnsupportedError, match=r"c\.n5: a: block 1/0: codecs"):
        answers(container.update("a/c/0/1", lambda _: b"?"))


# ---------------------------------------------------------------------- checks


@pytest.mark.parametrize(
    ("key", "block", "is_damaged"),
    [
        ("a/c/0/0", FULL_BLOCK, False), ("a/c/0/0", FULL_BLOCK[:-1], True),
        ("a/c/0/0", None, False), ("a/c/0/7", FULL_BLOCK[:-1], False),
        ("a/zarr.json", FULL_BLOCK[:-1], False),
    ],
)  # fmt: skip
def test_checking_a_chunk_names_a_damaged_block(
    key: str, block: bytes | None, *, is_damaged: bool
) -> None:
    answers, container = stored(block), presented()
    if is_damaged:
        with pytest.raises(N5BlockError, match=r"c\.n5: a: block 0/0: .*expected 12 bytes, got 11"):
            answers(container.check_chunk(key))
    else:
        answers(container.check_chunk(key))
    assert answers.count(Work) == (block is not None and key == "a/c/0/0")
    assert gets(answers) == [True] * (key == "a/c/0/0")


@pytest.mark.parametrize(
    ("blocks", "has_stamps", "found"),
    [
        ({"a/0/0": SHARD}, True, "0/0"),
        ({"a/0/0": SHARD}, False, "0/0"),
        ({"a/1/0": SHARD}, True, "1/0"),  # the first of local files
        ({"a/1/0": SHARD}, False, None),
        ({"a/10/1": SHARD, "a/9/12": SHARD, "a/9/3": SHARD}, True, "9/3"),
        ({"a/s0/0": SHARD, "a/2": SHARD, "a/1/x": SHARD}, True, None),
        ({"a/1/0": EDGE_BLOCK}, True, None),
        ({}, True, None),
    ],
)
def test_where_no_block_is_found_one_is_looked_at_once_whether_it_is_a_shard(
    blocks: Doc, found: str | None, *, has_stamps: bool
) -> None:
    answers = Answers(**{"a/attributes.json": DATASET}, **blocks)
    container = presented(has_stamps=has_stamps)
    if found is None:
        assert answers(container.read("a/c/1/1")) is None
        has_seen = bool(blocks.keys() & {"a/1/0"} and has_stamps) or not has_stamps
        assert ("a" in container.memory.plain) is has_seen
        answers.asked.clear()
        answers(container.read("a/c/1/1"))
        assert (Get("a/0/0") in answers.asked) is not has_seen
        return
    with refused(N5BlockError, "shard", rf"c\.n5: a: block {found}: .*shard"):
        answers(container.read("a/c/1/1"))


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize(
    ("key", "n_reads"), [("a/c/0/0", 1), ("a/c/0/1", 2), ("a/c/1/0", 2), ("a/c/1/1", 2)]
)
def test_on_servers_the_document_is_read_again_for_a_chunk_at_the_end_only(
    key: str, n_reads: int
) -> None:
    answers, container = stored(None), presented(has_stamps=False)
    answers(container.read("a/c/0/0"))
    answers(container.write(key, memoryview(ELEMENTS)))
    assert answers.asked.count(Get("a/attributes.json")) == n_reads
    answers(container.read("a/c/0/0"))
    assert answers.asked.count(Get("a/attributes.json")) == n_reads


def test_a_chunk_beside_a_dataset_that_has_grown_is_written_in_its_new_extent() -> None:
    answers, container = stored(None), presented()
    answers(container.read("a/c/0/0"))
    answers.values["a/attributes.json"] = json.dumps(DATASET | {"dimensions": [6, 4]}).encode()
    answers(container.write("a/c/1/1", memoryview(ELEMENTS)))
    assert answers.values["a/1/1"] == FULL_BLOCK


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("a/c/0/2", r"c\.n5: a: chunk \(0, 2\): .*the grid is \(2, 2\)"),
        ("a/c/0", r"c\.n5: a: chunk \(0,\): .*the grid is \(2, 2\)"),
        ("b/c/0/0", r"c\.n5: b: chunk \(0, 0\): .*there is no array"),
    ],
)
@pytest.mark.parametrize("as_update", [False, True])
def test_a_chunk_of_no_array_is_not_written(key: str, found: str, *, as_update: bool) -> None:
    answers, container = stored(), presented()
    before = dict(answers.values)
    write: Any = container.update if as_update else container.write
    with pytest.raises(N5UnrepresentableError, match=found) as caught:
        answers(write(key, (lambda _: ELEMENTS) if as_update else memoryview(ELEMENTS)))
    assert (caught.value.kind, answers.values) == ("path", before)


def test_a_chunk_is_truncated_where_the_dataset_ends() -> None:
    answers = stored(None)
    chunk = np.array([[20, 21, 99], [22, 23, 99]], ">u2")
    answers(presented().write("a/c/0/1", memoryview(chunk.tobytes())))
    assert answers.values["a/1/0"] == EDGE_BLOCK[:12] + bytes.fromhex("0014 0015 0016 0017")


def test_a_chunk_is_written_only_where_there_is_none() -> None:
    answers, container = stored(), presented()
    for key in ("a/c/0/0", "a/c/1/0"):
        answers(container.write(key, memoryview(bytes(12)), only_new=True))
    assert answers.values["a/0/0"] == FULL_BLOCK
    assert answers.values["a/0/1"] == bytes.fromhex("0000 0002 00000003 00000001") + bytes(6)


@pytest.mark.parametrize(
    ("block", "change", "seen", "expected"),
    [
        (FULL_BLOCK, lambda old: old[::-1], ELEMENTS, HEADER + ELEMENTS[::-1]),
        (None, lambda _: ELEMENTS, None, FULL_BLOCK),
        (FULL_BLOCK, lambda _: None, ELEMENTS, None),
        # truncated although the dataset goes on: padded
        (EDGE_BLOCK, lambda old: old, bytes.fromhex("000a 000b 0000 000c 000d 0000"),
         HEADER + bytes.fromhex("000a 000b 0000 000c 000d 0000")),
    ],
)  # fmt: skip
def test_a_chunk_is_replaced_by_a_function_of_it(
    block: bytes | None, change: Any, seen: bytes | None, expected: bytes | None
) -> None:
    answers, given = stored(block), list[Any]()

    def noting(old: bytes | None) -> bytes | None:
        given.append(old)
        result: bytes | None = change(old)
        return result

    answers(presented().update("a/c/0/0", noting))
    assert given == [seen]
    assert answers.values.get("a/0/0") == expected


def test_only_documents_and_chunks_are_written_and_only_chunks_are_updated() -> None:
    answers, container = stored(), presented()
    before = dict(answers.values)
    with pytest.raises(N5UnrepresentableError, match="key 'a/README': expected a Zarr document"):
        answers(container.write("a/README", memoryview(b"?")))
    with pytest.raises(N5UnrepresentableError, match=r"c\.n5: key 'a/zarr.json': expected the key"):
        container.update("a/zarr.json", lambda old: old)
    assert answers.values == before


@pytest.mark.parametrize("steps", ["write", "remove", "update"])
def test_a_shard_in_the_place_of_a_block_is_not_replaced(steps: str) -> None:
    answers, container = stored(SHARD), presented()
    flow: Any = {
        "write": lambda: container.write("a/c/0/0", memoryview(ELEMENTS)),
        "remove": lambda: container.delete("a/c/0/0"),
        "update": lambda: container.update("a/c/0/0", lambda old: old),
    }[steps]()
    if steps == "update":
        with pytest.raises(N5BlockError, match=r"c\.n5: a: block 0/0: .*shard"):
            answers(flow)
        return
    answers(flow)
    (request,) = [r for r in answers.asked if isinstance(r, Put | Remove)]
    assert request.check is not None
    with pytest.raises(N5BlockError, match=r"c\.n5: a: block 0/0: .*shard"):
        request.check(len(SHARD), lambda offset, n: SHARD[offset : offset + n])
    request.check(len(FULL_BLOCK), lambda offset, n: FULL_BLOCK[offset : offset + n])


def test_a_block_outside_of_the_grid_is_removed_too() -> None:
    answers, container = stored(None), presented()
    answers.values |= {"a/2/0": FULL_BLOCK, "a/0/0": FULL_BLOCK}
    for key in ("a/c/0/2", "a/c/0/0", "a/c/0", "b/c/0/0", "README"):
        answers(container.delete(key))
    assert answers.values.keys() == {"a/attributes.json"}


# imglib2-label-multisets: a block of 3 x 2 voxels, which all hold label 7 once
LABELS = {"dataType": "uint8", "isLabelMultiset": True}


def labelled(container: Container, answers: Answers, values: list[int]) -> None:
    array = np.array(values, ">u8").reshape(2, 3)
    answers(container.write("a/c/0/0", memoryview(array.tobytes())))


def test_labels_change_the_multisets_that_are_stored() -> None:
    answers, container = stored(None, **LABELS), presented()
    labelled(container, answers, [1, 2, 3, 4, 5, 6])
    assert answers.count(Update) == 1
    assert answers.count(Put) == 0
    block = answers.values["a/0/0"]
    chunk = np.frombuffer(bytes(answers(container.read("a/c/0/0")) or b""), ">u8")
    assert chunk.tolist() == [1, 2, 3, 4, 5, 6]
    labelled(container, answers, [1, 2, 3, 4, 5, 6])
    assert answers.values["a/0/0"] == block
    answers(
        container.update("a/c/0/0", lambda old: np.frombuffer(old or b"", ">u8")[::-1].tobytes())
    )
    chunk = np.frombuffer(bytes(answers(container.read("a/c/0/0")) or b""), ">u8")
    assert chunk.tolist() == [6, 5, 4, 3, 2, 1]
    answers(container.delete("a/c/0/0"))
    assert "a/0/0" not in answers.values
    assert answers.count(Remove) == 0


@pytest.mark.parametrize(
    ("block", "found"),
    [(SHARD, "block 0/0: .*shard"), (b"\0\1", "block 0/0")],
    ids=["shard", "cut"],
)
def test_labels_are_not_put_into_a_shard_or_a_damaged_block(block: bytes, found: str) -> None:
    answers, container = stored(block, **LABELS), presented()
    with pytest.raises(N5BlockError, match=rf"c\.n5: a: {found}"):
        labelled(container, answers, [1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize(
    ("key", "is_there"), [("a/c", True), ("a/c/0", True), ("a/c/1", False), ("a/c/0/0", False)]
)
def test_the_chunk_of_an_array_without_dimensions(key: str, *, is_there: bool) -> None:
    scalar = DATASET | {"dimensions": [1], "blockSize": [1], "zarr": {"shape": []}}
    block = bytes.fromhex("0000 0001 00000001 0007")
    answers = Answers(**{"a/attributes.json": scalar, "a/0": block})
    found = answers(presented().read(key))
    assert (bytes(found) if found is not None else None) == (b"\0\7" if is_there else None)


def test_a_known_document_is_read_again_when_its_stamp_changes() -> None:
    answers, container = stored(), presented()
    for _ in range(2):
        answers.asked.clear()
        answers(container.read("a/c/0/0"))
    assert answers.asked == [Stamp("a/attributes.json"), Get("a/0/0")]
    answers.values["a/attributes.json"] = json.dumps(DATASET | {"dimensions": [5, 7]}).encode()
    answers(container.read("a/c/0/0"))
    assert answers.asked.count(Get("a/attributes.json")) == 1
    view = container.memory.dataset("a")
    assert isinstance(view, DatasetView)
    assert view.shape == (7, 5)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a/c/0/1", "c.n5: a: block 1/0"), ("a/zarr.json", "c.n5: a"), ("zarr.json", "c.n5: /"),
        ("b/c/0/1", "c.n5: b"), ("README", "c.n5: README"),
    ],
)  # fmt: skip
def test_keys_in_the_terms_of_n5(key: str, expected: str) -> None:
    answers, container = stored(), presented()
    answers(container.read("a/c/0/0"))
    assert container.locate(key) == expected
