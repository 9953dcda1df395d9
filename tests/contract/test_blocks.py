"""Blocks of every mode are written by ``write_block``, and encoded with a data type."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

import n5zarr
from n5zarr.errors import N5BlockError, N5UnrepresentableError
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


@pytest.mark.parametrize(
    ("data_type", "value", "dtype"),
    [("uint64", -1, "i1"), ("int64", 2**63, "u8"), ("float64", 2**53 + 1, "i8"),
     ("uint16", np.inf, "f8"), ("uint16", 70000, "u4")],
)  # fmt: skip
def test_numbers_of_another_type_are_not_changed(
    tmp_path: Path, data_type: str, value: Any, dtype: str
) -> None:
    root = dataset(tmp_path / "c.n5", "a", data_type)
    with pytest.raises(N5UnrepresentableError, match="expected values that"):
        n5zarr.write_block(root, "a", (0, 0), np.array([[value]], dtype))
    with pytest.raises(N5UnrepresentableError, match="without loss"):
        n5zarr.encode_block(np.array([value], dtype), data_type=data_type, compression=RAW)


@pytest.mark.parametrize(
    ("data", "shape", "message"),
    [([["a", 1]], None, "expected strings of Unicode"), (["a"], (3, 1), "expected strings for")],
)
def test_strings_that_do_not_fit_are_refused(
    tmp_path: Path, data: Any, shape: Any, message: str
) -> None:
    root = dataset(tmp_path / "c.n5", "s", "string")
    with pytest.raises((N5UnrepresentableError, N5BlockError), match=message):
        n5zarr.write_block(root, "s", (0, 0), data, block_shape=shape)
    assert not (root / "s/0").exists()


@pytest.mark.parametrize("level", [-1, 0, 1, 6, 9])
def test_gzip_is_small_whatever_the_data(level: int) -> None:
    rng = np.random.default_rng(0)
    image = np.clip(120 + rng.normal(0, 6, 2**18), 0, 255).astype("u1")
    labels = np.repeat(rng.integers(0, 99, 2**9), 2**6).astype(">u8")
    planes = np.repeat(rng.normal(128, 20, (8, 2**14)).clip(0, 255).astype("u1"), 2, 0).ravel()
    for data in (image, labels, planes, np.zeros(10, "u1")):
        block = n5zarr.encode_block(data, compression={"type": "gzip", "level": level})
        assert gzip.decompress(block[8:]) == data.tobytes()
        if level != 0 and data.size > 10:
            size = len(zlib.compress(data.tobytes(), 6 if level < 0 else level))
            assert len(block) - 8 <= 1.02 * size + 64 or data is labels
        again = n5zarr.encode_block(data, compression={"type": "gzip", "level": level})
        assert again == block
