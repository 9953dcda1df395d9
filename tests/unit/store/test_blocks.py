"""Single blocks are read and written with their headers; bytes are those of the specification."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.storage import MemoryStore

from n5zarr.codecs.block import Block
from n5zarr.errors import (
    N5AttributesError,
    N5BlockError,
    N5UnrepresentableError,
    N5UnsupportedError,
)
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.order import N5Tuple
from n5zarr.store.blocks import read_block, write_block
from n5zarr.store.shown_store import ShownStore
from tests.refusals import refused
from tests.shards import write_shards
from tests.unit.store.made import EDGE, FULL, ROOT, block, document, memory, on_disk, values_of

write: Any = write_block


def of(data_type: str, **changed: Any) -> MemoryStore:
    """Return a container with one dataset, ``a``."""
    return memory({"attributes.json": ROOT, "a/attributes.json": document(data_type, **changed)})


def test_a_block_is_read_with_its_header() -> None:
    found: Any = read_block(memory(), "g/a", (0, 0))
    assert found.header == BlockHeader(mode=BlockMode.DEFAULT, block_shape=N5Tuple((3, 2)))
    assert (found.data.dtype, found.data.tolist()) == ("u2", [1, 2, 3, 4, 5, 65535])
    position: Any = np.array([2, 1])
    found = read_block(memory(), "g/a", position)
    assert (found.header.block_shape, found.data.tolist()) == ((1, 2), [7, 8])
    assert read_block(memory(), "g/a", (1, 2)) is None
    store = of("string")
    write(store, "a", (0, 0), [["b", "é"]])
    assert read_block(store, "a", [0, 0]).data == ["b", "é"]  # type: ignore[union-attr]


NUMBERS = [
    ("uint16", FULL, None, block(FULL)),
    ("uint16", np.array(FULL, "i8"), None, block(FULL)),
    ("uint16", [[7.0, 8.0]], None, block([[7, 8]])),
    ("int8", [[-3]], None, block([[-3]], "i1")),
    ("float32", [[0.1, np.inf]], None, block([[0.1, np.inf]], "f4")),
    ("float64", [[1, np.nan]], None, block([[1, np.nan]], "f8")),
    ("uint8", [[True, False]], None, block([[1, 0]], "u1")),
    ("uint16", [1, 2, 3, 4, 5, 6], (3, 2), block([[1, 2, 3], [4, 5, 6]])),
    ("uint16", [1, 2, 3, 4], (3, 2), struct.pack(">HHIII4H", 1, 2, 3, 2, 4, 1, 2, 3, 4)),
    ("uint16", [], (3, 1), struct.pack(">HHIII", 1, 2, 3, 1, 0)),
    ("string", [["a", "é"]], None, struct.pack(">HHIII", 1, 2, 2, 1, 5) + b"a\0\xc3\xa9\0"),
    ("string", ["a"], np.array([1, 1]), struct.pack(">HHIII", 1, 2, 1, 1, 2) + b"a\0"),
    ("object", b"\1\2\3", None, struct.pack(">HI", 2, 3) + b"\1\2\3"),
    ("object", bytearray(b"\1"), None, struct.pack(">HI", 2, 1) + b"\1"),
    ("object", memoryview(b"\1"), None, struct.pack(">HI", 2, 1) + b"\1"),
]


@pytest.mark.parametrize(("data_type", "data", "shape", "stored"), NUMBERS)
def test_a_block_is_written_in_any_mode(data_type: str, data: Any, shape: Any, stored: Any) -> None:
    store = of(data_type)
    write_block(store, "a", (2, 1), data, block_shape=shape)
    assert values_of(store)["a/2/1"] == stored
    again: Any = read_block(store, "a", (2, 1))
    write_block(store, "a", (0, 2), again)  # a block as it was read
    assert values_of(store)["a/0/2"] == stored


def test_the_data_of_a_block_get_the_type_of_the_dataset() -> None:
    header = BlockHeader(mode=BlockMode.DEFAULT, block_shape=N5Tuple((3, 2)))
    store = of("uint16")
    write_block(store, "a", (0, 0), Block(header, np.array(FULL, "i8").ravel()))
    assert values_of(store)["a/0/0"] == block(FULL)


def test_values_of_numpys_types_have_the_bytes_of_integers() -> None:
    store = of("datetime64[s]")  # as zarr-python 2 names it
    times = np.array([["1970-01-01T00:00:05", "NaT"]], "M8[s]")
    write_block(store, "a", (0, 0), times)
    least = -(2**63)  # NaT, in numpy
    assert values_of(store)["a/0/0"] == block([[5, least]], "i8")
    found: Any = read_block(store, "a", (0, 0))
    np.testing.assert_array_equal(found.data, times[0])
    with pytest.raises(N5UnrepresentableError, match=r"expected elements of .*, got <U1"):
        write(store, "a", (0, 0), [["x"]])


@pytest.mark.parametrize(
    ("data_type", "data", "options", "error", "match"),
    [
        ("uint16", [[65536]], {}, "data-type", "values that >u2 can hold, got others of int64"),
        ("uint16", [[-1]], {}, "data-type", "got others of int64"),
        ("uint16", [[0.5]], {}, "data-type", "got others of float64"),
        ("uint16", [[np.nan]], {}, "data-type", "got others of float64"),
        ("float64", [[2**63 - 1]], {}, "data-type", "can hold, got others of int64"),
        ("uint16", [["1"]], {}, "data-type", "expected elements of >u2, got <U1"),
        ("uint16", [[1j]], {}, "data-type", "got complex128"),
        ("object", "text", {}, "data-type", "expected bytes for an object, got str"),
        ("object", [1], {}, "data-type", "expected bytes for an object, got list"),
        ("uint16", [1], {"block_shape": (-1, 1)}, "header", r"sizes of at least 1, got \(-1, 1\)"),
        ("uint16", [], {"block_shape": (0, 1)}, "header", r"sizes of at least 1"),
        ("uint16", [[1]], {"block_shape": (1, 1)}, "header", r"flat elements .*, got \(1, 1\)"),
        ("uint16", [1, 2], {}, "header", "expected 2 dimensions, got 1"),
        ("uint16", [[[1]]], {}, "header", "expected 2 dimensions, got 3"),
        ("uint16", [[1, 2, 3, 4]], {}, "header", r"at most \(3, 2\), got \(4, 1\)"),
        ("uint16", [[1], [2], [3]], {}, "header", r"at most \(3, 2\), got \(1, 3\)"),
    ],
)
def test_what_does_not_fit_is_refused(
    data_type: str, data: Any, options: Any, error: str, match: str
) -> None:
    store = of(data_type)
    with refused((N5UnrepresentableError, N5BlockError), error, match) as caught:
        write(store, "a", (1, 2), data, **options)
    assert caught.value.where.endswith(": a: block 1/2")
    assert "a/1/2" not in values_of(store)


@pytest.mark.parametrize(
    ("position", "match"),
    [
        ((0,), r"expected 2 integers >= 0, got \(0,\)"),
        ((0, 0, 0), "expected 2 integers >= 0"),
        ((0, -1), r"expected 2 integers >= 0, got \(0, -1\)"),
        ((3, 0), r"expected less than \(3, 3\), got \(3, 0\)"),
        ((0, 3), "expected less than"),
    ],
)
def test_positions_outside_of_the_grid(position: Any, match: str) -> None:
    store = of("uint16")
    with pytest.raises(N5UnrepresentableError, match=match) as caught:
        write_block(store, "a", position, EDGE)
    assert (caught.value.kind, ": a" in str(caught.value)) == ("option", True)
    if "less than" in match:  # blocks that others wrote there can be read
        assert read_block(store, "a", position) is None


def test_a_node_that_is_no_dataset_is_named() -> None:
    store = memory()
    for path, match in [
        ("h", "/?h: expected a dataset, got a group; in it: none"),
        ("g", "g: expected a dataset, got a group; in it: g/a"),
        ("", ": /: expected a dataset, got a group; in it: g/a"),
        ("g/b", "/g/b: expected a dataset, got nothing; in /g: a"),
    ]:
        with pytest.raises(FileNotFoundError, match=match):
            read_block(store, path, (0, 0))
    broken = of("uint17")
    with pytest.raises(N5AttributesError, match=r"a: attributes.json: dataType"):
        read_block(broken, "a", (0, 0))
    damaged = memory({"a/attributes.json": document(), "a/0/0": b"\0"})
    with pytest.raises(N5BlockError, match="a: block 0/0: "):
        read_block(damaged, "a", (0, 0))


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    for store in (memory(read_only=True), of("uint8", compression={"type": "jpeg"})):
        path = "a" if "a/attributes.json" in values_of(store) else "g/a"
        with pytest.raises(N5UnsupportedError):
            write_block(store, path, (0, 0), [[1]])
    assert read_block(memory(read_only=True), "g/a", (0, 0)) is not None
    write_shards(tmp_path / "c.n5/a", np.ones((5, 7), "u2"), (3, 2), (6, 2))
    before = (tmp_path / "c.n5/a/0/0").read_bytes()
    with pytest.raises(N5BlockError) as caught:
        write_block(tmp_path / "c.n5", "a", (0, 0), FULL)
    assert (caught.value.kind, caught.value.where) == (
        "shard",
        f"{tmp_path / 'c.n5'}: a: block 0/0",
    )
    assert (tmp_path / "c.n5/a/0/0").read_bytes() == before


def test_a_location_in_a_container(tmp_path: Path) -> None:
    root = on_disk(tmp_path / "c.n5")
    write_block(root / "g", "a", (1, 0), FULL)
    assert (root / "g/a/1/0").read_bytes() == block(FULL)
    found: Any = read_block(root / "g/a", "", (2, 1))
    assert found.data.tolist() == [7, 8]


class Shown(ShownStore, MemoryStore):
    """Shows data of another format."""

    refusal = "expected what can be written"


def test_data_of_another_format_have_no_stored_blocks() -> None:
    shown = Shown(memory()._store_dict, read_only=True)
    with pytest.raises(N5UnsupportedError, match=r"n5zarr.open reads its elements") as caught:
        read_block(shown, "g/a", (0, 0))
    assert (caught.value.kind, caught.value.where.endswith(": g/a")) == ("option", True)
    with refused(N5UnsupportedError, "read-only", "expected what can be written"):
        write_block(shown, "g/a", (0, 0), FULL)
