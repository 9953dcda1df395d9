"""Blocks of every mode are written by ``write_block``, and encoded with a data type."""

from __future__ import annotations

import contextlib
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError, N5Error, N5UnrepresentableError, N5UnsupportedError
from tests.contract.stored import by_tensorstore

JAVA = Path(__file__).parents[1] / "data" / "java"
RAW: dict[str, Any] = {"type": "raw"}
write: Any = n5zarr.write_block  # with arguments that its types refuse


def dataset(root: Path, path: str, data_type: str, compression: Any = RAW) -> Path:
    """Write the document of a dataset as another program does, with its own keys only."""
    document = {
        "dataType": data_type, "dimensions": [7, 5], "blockSize": [3, 2],
        "compression": compression,
    }  # fmt: skip
    (root / path).mkdir(parents=True)
    (root / path / "attributes.json").write_text(json.dumps(document))
    return root


@pytest.mark.parametrize("compression", [RAW, {"type": "gzip"}, {"type": "zstd", "level": 3}])
def test_numbers_are_read_by_others(tmp_path: Path, compression: Any) -> None:
    root = dataset(tmp_path / "c.n5", "a", "uint16", compression)
    n5zarr.write_block(root, "a", (1, 0), [[1, 2, 3], [4, 5, 65535]])
    n5zarr.write_block(root, "a", (2, 2), np.array([[7]], "i8"))  # truncated, another dtype
    n5zarr.write_block(root, "a", (0, 1), [1, 2, 3, 4, 5, 6], block_shape=(3, 2))
    expected = np.zeros((5, 7), "u2")
    expected[:2, 3:6] = [[1, 2, 3], [4, 5, 65535]]
    expected[4, 6] = 7
    expected[2:4, :3] = [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(by_tensorstore(root / "a"), expected)


def test_bytes_of_each_mode(tmp_path: Path) -> None:
    """Blocks have the bytes of the N5 specification's item 9, and those of mode 2 as in Java."""
    root = dataset(tmp_path / "c.n5", "numbers", "uint16")
    n5zarr.write_block(root, "numbers", (0, 0), [1, 2, 3, 4], block_shape=(3, 2))
    stored = (root / "numbers/0/0").read_bytes()
    assert stored == struct.pack(">HHIII4H", 1, 2, 3, 2, 4, 1, 2, 3, 4)
    dataset(root, "strings", "string")
    n5zarr.write_block(root, "strings", (0, 0), [["a", "é"]])
    stored = (root / "strings/0/0").read_bytes()
    assert stored == struct.pack(">HHIII", 1, 2, 2, 1, 5) + b"a\0\xc3\xa9\0"
    dataset(root, "objects", "object")
    n5zarr.write_block(root, "objects", (2, 2), b"\x01\x02\x03")
    stored = (root / "objects/2/2").read_bytes()
    assert stored == struct.pack(">HI", 2, 3) + b"\x01\x02\x03"
    for path, position in [("numbers", (0, 0)), ("strings", (0, 0)), ("objects", (2, 2))]:
        block = n5zarr.read_block(root, path, position)
        assert block is not None
        n5zarr.write_block(root, path, position, block)
        again = n5zarr.read_block(root, path, position)
        assert again is not None
        assert again.header == block.header
        assert np.array_equal(again.data, block.data)


@pytest.mark.parametrize("name", ["varlen.n5", "strings.n5", "blocks.n5", "labels.n5"])
def test_blocks_of_java_come_back(tmp_path: Path, name: str) -> None:
    """Blocks of Java that are read and written again are read as before, to the last bit."""
    root = tmp_path / "c.n5"
    shutil.copytree(JAVA / name, root)
    n_blocks = 0
    for document in sorted(root.rglob("attributes.json")):
        path = str(document.parent.relative_to(root))
        members = json.loads(document.read_text())
        if "dimensions" not in members or members["compression"]["type"] == "jpeg":
            continue
        for file in sorted(
            p for p in document.parent.rglob("*") if p.name.isdigit() and p.is_file()
        ):
            position = tuple(map(int, file.relative_to(document.parent).parts))
            with contextlib.suppress(N5BlockError):  # damaged, or larger than `blockSize`
                block = n5zarr.read_block(root, path, position)
                assert block is not None
                file.unlink()
                n5zarr.write_block(root, path, position, block)
                again = n5zarr.read_block(root, path, position)
                assert again is not None
                assert again.header == block.header
                assert np.array_equal(again.data, block.data)
                n_blocks += 1
    assert n_blocks > 3


def test_in_any_storage() -> None:
    memory = MemoryStore()
    array: Any = n5zarr.create_array(memory, path="a", shape=(5, 7), chunks=(2, 3), dtype="f4")
    n5zarr.write_block(memory, "a", (1, 1), np.full((2, 3), 2.5))
    assert array[2:4, 3:6].tolist() == [[2.5] * 3] * 2
    array = zarr.create_array(N5Store(memory), name="c", shape=(5,), chunks=(2,), dtype="c8")
    array[...] = 1
    assert array[:].tolist() == [1] * 5


def test_a_block_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    root = dataset(tmp_path / "c.n5", "a", "uint8")
    dataset(root, "s", "string")
    dataset(root, "o", "object")
    cases: list[tuple[str, Any, Any, Any, type[Exception], str]] = [
        ("a", (3, 0), [[1]], None, N5UnrepresentableError, r"expected less than \(3, 3\)"),
        ("a", (0, -1), [[1]], None, N5UnrepresentableError, "expected 2 integers >= 0"),
        ("a", (0,), [[1]], None, N5UnrepresentableError, "expected 2 integers >= 0"),
        ("a", (0, 0), [[256]], None, N5UnrepresentableError, "expected values that uint8"),
        ("a", (0, 0), [[1.5]], None, N5UnrepresentableError, "expected values that uint8"),
        ("a", (0, 0), [[np.nan]], None, N5UnrepresentableError, "expected values that uint8"),
        ("a", (0, 0), [["x"]], None, N5UnrepresentableError, "expected elements of uint8"),
        ("a", (0, 0), [1, 2], None, N5BlockError, "expected 2 dimensions, got 1"),
        ("a", (0, 0), [[1] * 4], None, N5BlockError, r"expected at most \(3, 2\), got \(4, 1\)"),
        ("a", (0, 0), [[1]], (1, 1), N5BlockError, "expected flat elements"),
        ("a", (0, 0), np.zeros((0, 2)), None, N5BlockError, "expected sizes of at least 1"),
        ("s", (0, 0), [["a", 1]], None, N5UnrepresentableError, "expected strings"),
        ("s", (0, 0), ["a", "b"], (3, 1), N5BlockError, "expected strings for"),
        ("o", (0, 0), [[1]], None, N5UnrepresentableError, "expected bytes for an object"),
        ("nothing", (0, 0), [[1]], None, FileNotFoundError, "expected a dataset"),
    ]
    for path, position, data, shape, error, message in cases:
        with pytest.raises(error, match=message):
            write(root, path, position, data, block_shape=shape)
    with pytest.raises(N5UnsupportedError, match="read-only"):
        n5zarr.write_block(N5Store(root, read_only=True), "a", (0, 0), [[1]])
    dataset(root, "j", "uint8", {"type": "jpeg", "quality": 50})
    with pytest.raises(N5Error, match="jpeg"):
        n5zarr.write_block(root, "j", (0, 0), [[1]])
    assert [p for p in root.rglob("*") if p.is_file() and p.name != "attributes.json"] == []


def test_numbers_of_another_type_are_not_changed(tmp_path: Path) -> None:
    root = dataset(tmp_path / "c.n5", "u2", "uint16")
    for path, data_type in [
        ("f8", "float64"),
        ("u8", "uint64"),
        ("i8", "int64"),
        ("f4", "float32"),
    ]:
        dataset(root, path, data_type)
    for path, data in [
        ("u2", np.array([[1.5]])),
        ("u2", np.array([[np.inf]])),
        ("u2", np.array([[70000]], "u4")),
        ("i8", np.array([[2**63]], "u8")),
        ("u8", np.array([[-1]], "i1")),
        ("f8", np.array([[2**53 + 1]])),
    ]:
        with pytest.raises(N5UnrepresentableError, match="expected values that"):
            n5zarr.write_block(root, path, (0, 0), data)
    n5zarr.write_block(root, "f8", (0, 0), [[0.1]])
    n5zarr.write_block(root, "f4", (0, 0), [[0.1, np.nan]])
    block = n5zarr.read_block(root, "f8", (0, 0))
    assert block is not None
    with pytest.raises(N5UnrepresentableError, match="expected values that"):
        n5zarr.write_block(root, "u2", (0, 0), block)
    with pytest.raises(N5UnrepresentableError, match="without loss"):
        n5zarr.encode_block(np.array([2**53 + 1]), data_type="float64", compression=RAW)
    with pytest.raises(N5BlockError, match="expected sizes of at least 1"):
        n5zarr.write_block(root, "u2", (0, 0), [1], block_shape=(-3, 2))


def test_encode_block_takes_what_decode_block_takes() -> None:
    options: dict[str, Any] = {"data_type": "uint16", "compression": {"type": "gzip"}}
    block = n5zarr.encode_block([[1, 2, 3]], **options | {"data_type": "int64"})
    assert n5zarr.decode_block(block, **options | {"data_type": "int64"}).tolist() == [[1, 2, 3]]
    block = n5zarr.encode_block(np.array([[1, 2, 3]], "u1"), axis_order="F", **options)
    found = n5zarr.decode_block(block, axis_order="F", **options)
    assert (found.dtype, found.tolist()) == (np.dtype("u2"), [[1, 2, 3]])
    text: dict[str, Any] = {"data_type": "string", "compression": RAW}
    assert n5zarr.decode_block(n5zarr.encode_block(["a", "b"], **text), **text).tolist() == [
        "a",
        "b",
    ]
    for given in (np.array([1], "i4"), np.array([1.0]), ["a"]):
        with pytest.raises(N5UnrepresentableError, match="without loss"):
            n5zarr.encode_block(given, **options)
    with pytest.raises(N5UnrepresentableError, match="without loss"):
        n5zarr.encode_block([1], **text)


def test_the_number_of_elements_of_automatic_chunks(tmp_path: Path) -> None:
    """Automatic chunks have as many elements as those that tensorstore chooses."""
    shape, ratio = (70, 110, 130), [1, 2, 4]
    spec: Any = {
        "driver": "n5", "kvstore": {"driver": "memory"},
        "schema": {
            "dtype": "uint8", "domain": {"shape": shape[::-1]},
            "chunk_layout": {"chunk": {"elements": 5000, "aspect_ratio": ratio[::-1]}},
        },
    }  # fmt: skip
    made: Any = tensorstore.open(spec, create=True).result()
    array = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=shape, dtype="u1", chunk_elements=5000,
        chunk_aspect_ratio=ratio,
    )  # fmt: skip
    assert array.chunks == made.chunk_layout.read_chunk.shape[::-1]
    with pytest.raises(N5UnrepresentableError, match="chunk_elements: expected a number above 0"):
        n5zarr.create_array(tmp_path / "c.n5", path="b", shape=(3,), dtype="u1", chunk_elements=0)
