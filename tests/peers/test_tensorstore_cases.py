"""The cases of tensorstore's own N5 tests hold here, compared with tensorstore itself.

What tensorstore accepts is accepted here with the same shape and elements. What it refuses is
refused here, too, unless Java accepts it: those cases are marked with ``# Java``.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5BlockError, N5Error, N5Warning
from tests.contract.stored import spec_of

tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")

JAVA = Path(__file__).parents[1] / "data" / "java"
DOCUMENT: dict[str, Any] = {
    "dimensions": [10, 11, 12], "blockSize": [1, 2, 3], "dataType": "uint16",
    "compression": {"type": "raw"},
}  # fmt: skip
HEADER = struct.pack(">HHIII", 0, 3, 1, 2, 3)
ELEMENTS = struct.pack(">6H", 1, 2, 3, 4, 5, 6)
BLOSC = {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
ABSENT = "(absent)"  # in place of a value; its text is in the names of tests


def write(folder: Path, document: dict[str, Any], blocks: dict[str, bytes] | None = None) -> Path:
    """Write a container with one dataset, ``a``, and return its path."""
    dataset = folder / "c.n5" / "a"
    dataset.mkdir(parents=True)
    (folder / "c.n5" / "attributes.json").write_text('{"n5":"4.0.0"}')
    kept = {key: value for key, value in document.items() if value != ABSENT}
    (dataset / "attributes.json").write_text(json.dumps(kept))
    for name, data in (blocks or {}).items():
        (dataset / name).parent.mkdir(parents=True, exist_ok=True)
        (dataset / name).write_bytes(data)
    return dataset


def theirs(dataset: Path, **options: Any) -> Any:
    return tensorstore.open({**spec_of(dataset), **options}).result()


def ours(dataset: Path, **options: Any) -> Any:
    return zarr.open_array(N5Store(dataset.parent, **options), path=dataset.name, mode="r+")


def is_accepted_by_tensorstore(dataset: Path) -> bool:
    error = tensorstore.open(spec_of(dataset)).exception()
    assert error is None or "FAILED_PRECONDITION" in str(error)
    return error is None


# ---------------------------------------------------------------------- documents

ACCEPTED: list[dict[str, Any]] = [
    {"axes": ["a", "", ""], "extra": "value"},
    *({"dataType": f"{kind}int{8 << n}"} for kind in ("u", "") for n in range(4)),
    *({"dataType": dtype} for dtype in ("float32", "float64")),
    {"dimensions": [0, 11, 12]},
    {"dimensions": [10.0, 11, 12]},
    {"dimensions": [2**62, 1, 1]},
    {"dimensions": [10] * 32, "blockSize": [1] * 32},
    {"blockSize": [1.0, 2, 3]},
    {"units": ["nm", "nm", "s"], "resolution": [1, 2, 0.5]},
    {"units": ["nm", "nm", "nm"]},
    {"resolution": [1, 2, 3]},
    *({"compression": {"type": "gzip", "level": level}} for level in (-1, 0, 5.0, 9)),
    *({"compression": {"type": "gzip", "useZlib": flag}} for flag in (True, False)),
    *({"compression": {"type": "bzip2", "blockSize": size}} for size in (1, 9)),
    *({"compression": {"type": "xz", "preset": preset}} for preset in (0, 6, 9)),
    *({"compression": {"type": "zstd", "level": level}} for level in (-131072, -1, 0, 22)),
    *({"compression": {"type": name}} for name in ("gzip", "bzip2", "xz", "zstd")),
    *({"compression": BLOSC | {"clevel": level}} for level in (0, 9)),
    *({"compression": BLOSC | {"shuffle": shuffle}} for shuffle in (0, 1, 2)),
    *({"compression": BLOSC | {"cname": name}} for name in ("blosclz", "lz4hc", "zlib", "zstd")),
]
REFUSED: list[dict[str, Any]] = [
    *({"dataType": dtype} for dtype in (10, "uint128", "UINT8", "object")),
    *({"compression": value} for value in (3, None, {"type": "foo"}, {"type": 3})),
    *({"dimensions": value} for value in ("x", None, ["x"], [-1, 10, 11], [1.5, 2, 3], [10, 11])),
    *({"dimensions": value} for value in ([2**63, 1, 1], [True, 1, 1])),
    *({"blockSize": value} for value in ("x", ["x"], [1, 0, 3], [1, -2, 3], [1, 2])),
    *({"blockSize": [1, 2, value]} for value in (2**31, 2**32 - 1)),
    *({"compression": {"type": "gzip", "level": level}} for level in (-2, 10)),
    {"compression": {"type": "gzip", "useZlib": 1}},
    *({"compression": {"type": "bzip2", "blockSize": size}} for size in (-1, 0, 10)),
    *({"compression": {"type": "xz", "preset": preset}} for preset in (-1, 10)),
    *({"compression": BLOSC | {"clevel": level}} for level in (-1, 10)),
    {"compression": BLOSC | {"shuffle": 3}},
    {"compression": BLOSC | {"blocksize": -1}},
    *({"compression": BLOSC | {"cname": name}} for name in ("foo", 3)),
]
# without these tensorstore finds an error, Java no dataset: it is a group
NO_DATASET = ["dimensions", "dataType", "compression"]
ONLY_HERE: list[dict[str, Any]] = [
    {"blockSize": ABSENT},  # Java
    {"dataType": "string"},  # Java
    {"dimensions": ["10", 11, 12]},  # Java: Gson reads numbers from text
    {"compression": {"type": "gzip", "level": "6"}},  # Java
    {"compression": {"type": "gzip", "useZlib": "true"}},  # Java
    {"compression": {"type": "raw", "x": 1}},  # Java
    {"compression": BLOSC | {"nthreads": 4}},  # Java writes it
    {"compression": BLOSC | {"shuffle": -1}},  # Java
    {"compression": {"type": "zstd", "level": 23}},  # Java
    {"compression": {"type": "blosc"}},  # Java
    {"dimensions": [10] * 33, "blockSize": [1] * 33},  # Java; tensorstore has at most 32
    {"blockSize": [1, 2, 2**31 - 1]},  # Java; tensorstore allocates whole blocks
    {"axes": list("abcd")},  # an attribute like any other
    {"axes": ["a", "a", ""]},
    {"axes": [1, 2, 3]},
    {"units": ["nm"]},
    {"resolution": ["a", 1, 1]},
]


@pytest.mark.parametrize("change", ACCEPTED, ids=str)
def test_documents_that_both_accept(tmp_path: Path, change: dict[str, Any]) -> None:
    dataset = write(tmp_path, DOCUMENT | change)
    other = theirs(dataset)
    array = ours(dataset)
    assert array.shape == tuple(other.shape)[::-1]
    assert array.chunks == tuple(other.chunk_layout.read_chunk.shape)[::-1]
    assert array.dtype == other.dtype.numpy_dtype
    assert ours(dataset, axis_order="F").shape == tuple(other.shape)


@pytest.mark.parametrize("change", REFUSED, ids=str)
def test_documents_that_both_refuse(tmp_path: Path, change: dict[str, Any]) -> None:
    dataset = write(tmp_path, DOCUMENT | change)
    assert not is_accepted_by_tensorstore(dataset)
    with pytest.raises(N5Error, match="blockSize|" + next(iter(change))):
        ours(dataset)


@pytest.mark.parametrize("change", ONLY_HERE, ids=str)
def test_documents_that_only_n5zarr_accepts(tmp_path: Path, change: dict[str, Any]) -> None:
    dataset = write(tmp_path, DOCUMENT | change)
    assert not is_accepted_by_tensorstore(dataset)
    assert ours(dataset).ndim == len(change.get("dimensions", "zyx"))


@pytest.mark.parametrize("name", ["blosc-lz4-0", "blosc-zstd-2"])
def test_blosc_of_java_is_refused_until_it_is_converted(tmp_path: Path, name: str) -> None:
    """tensorstore refuses blosc of Java for its extra members, and reads a converted copy."""
    java, copy = JAVA / "compressions.n5" / name / "u16", tmp_path / "copy.n5" / "a"
    with pytest.raises(ValueError, match='extra members: "nthreads","typesize"'):
        theirs(java)
    n5zarr.convert(java, copy, compression="blosc")
    found = theirs(copy).read().result()
    np.testing.assert_array_equal(found.T, n5zarr.open_array(java)[...])


@pytest.mark.parametrize("key", NO_DATASET)
def test_without_one_of_three_keys_it_is_a_group(tmp_path: Path, key: str) -> None:
    dataset = write(tmp_path, DOCUMENT | {key: ABSENT})
    assert not is_accepted_by_tensorstore(dataset)
    with pytest.warns(N5Warning, match=f"also has {key}"):
        assert isinstance(zarr.open(N5Store(dataset.parent), path="a", mode="r"), zarr.Group)


def test_names_and_units_of_dimensions(tmp_path: Path) -> None:
    names = {"axes": ["x", "y", "z"], "units": ["nm", "um", "s"], "resolution": [4, 0.5, 2]}
    dataset = write(tmp_path, DOCUMENT | names)
    other = theirs(dataset)
    found = n5zarr.geometry(dataset.parent, "a")
    assert found.names == ours(dataset).metadata.dimension_names == other.domain.labels[::-1]
    units = [(unit.multiplier, unit.base_unit) for unit in other.dimension_units]
    assert list(zip(found.scale, found.units, strict=True)) == units[::-1]


def test_names_and_units_that_are_created_are_tensorstores(tmp_path: Path) -> None:
    axes: Any = {"axes": "yx", "units": ["um", "nm"], "resolution": [0.5, 4]}
    n5zarr.create_array(tmp_path / "c.n5/a", shape=(5, 7), dtype="f4", **axes)
    other = theirs(tmp_path / "c.n5/a")
    assert other.domain.labels == ("x", "y")
    assert [str(unit) for unit in other.dimension_units] == ["4 nm", "0.5 um"]


# ---------------------------------------------------------------------- blocks


def test_the_block_of_the_specification(tmp_path: Path) -> None:
    dataset = write(tmp_path, DOCUMENT, {"0/0/0": HEADER + ELEMENTS})
    expected = np.array([[[1], [2]], [[3], [4]], [[5], [6]]], "u2")
    np.testing.assert_array_equal(ours(dataset)[:3, :2, :1], expected)
    np.testing.assert_array_equal(theirs(dataset)[:1, :2, :3].read().result().T, expected)
    ours(dataset)[3:6, :2, :1] = expected
    assert (dataset / "0/0/1").read_bytes() == HEADER + ELEMENTS


def test_a_truncated_block_inside_is_padded(tmp_path: Path) -> None:
    block = struct.pack(">HHIII4H", 0, 3, 1, 2, 2, 1, 2, 3, 4)
    dataset = write(tmp_path, DOCUMENT, {"0/0/0": block})
    expected = np.array([[[1], [2]], [[3], [4]], [[0], [0]]], "u2")
    np.testing.assert_array_equal(ours(dataset)[:3, :2, :1], expected)
    np.testing.assert_array_equal(theirs(dataset)[:1, :2, :3].read().result().T, expected)


def changed(position: int, value: int) -> bytes:
    data = bytearray(HEADER + ELEMENTS)
    data[position] = value
    return bytes(data)


DAMAGED = {
    "elements are missing": (HEADER + ELEMENTS)[:-1],
    "half a header": HEADER[:6],
    "half a mode": HEADER[:1],
    "mode varlength without its length": changed(1, 1),
    "mode unknown": changed(1, 2),
    "fewer dimensions": changed(3, 2),
    "larger than a block": changed(7, 2),
    "no byte": b"",
}


@pytest.mark.each_of(5)
@pytest.mark.parametrize("data", DAMAGED.values(), ids=list(DAMAGED))
@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
def test_damaged_blocks(tmp_path: Path, data: bytes, codecs: str) -> None:
    dataset = write(tmp_path, DOCUMENT, {"0/0/0": data})
    with pytest.raises(ValueError, match="Error reading"):
        theirs(dataset)[0, 0, 0].read().result()
    with pytest.raises(N5BlockError, match="block 0/0/0: "):
        ours(dataset, codecs=codecs)[:3, :2, :1]
    with pytest.raises(N5BlockError, match="block 0/0/0: "):
        n5zarr.open_array(dataset)[:3, :2, :1]
    assert ours(dataset, codecs=codecs)[3, 0, 0] == 0  # other blocks are read


def test_a_varlength_header_with_numbers(tmp_path: Path) -> None:
    """A varlength header with numbers is read, with the number of elements checked."""
    block = struct.pack(">HHIIII", 1, 3, 1, 2, 3, 6) + ELEMENTS
    dataset = write(tmp_path, DOCUMENT, {"0/0/0": block})
    with pytest.raises(ValueError, match="Error reading"):
        theirs(dataset)[0, 0, 0].read().result()
    assert ours(dataset)[:3, :2, :1].ravel().tolist() == [1, 2, 3, 4, 5, 6]
    fewer = struct.pack(">HHIIII", 1, 3, 1, 2, 3, 4) + ELEMENTS[:8]
    (dataset / "0/0/0").write_bytes(fewer)
    with pytest.raises(N5Error, match="expected 6 elements"):
        ours(dataset)[:3, :2, :1]


COMPRESSIONS = [
    {"type": "raw"},
    *({"type": "gzip", "level": level} for level in (-1, 0, 9)),
    {"type": "gzip", "useZlib": True},
    *({"type": "bzip2", "blockSize": size} for size in (1, 9)),
    *({"type": "xz", "preset": preset} for preset in (0, 9)),
    *({"type": "zstd", "level": level} for level in (-7, 0, 22)),
    *(BLOSC | {"shuffle": shuffle} for shuffle in (0, 1, 2)),
    *(BLOSC | {"cname": name} for name in ("blosclz", "lz4hc", "zlib", "zstd")),
]


@pytest.mark.each_of(2)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=str)
def test_each_reads_what_the_other_writes_in_each_compression(
    tmp_path: Path, compression: dict[str, Any]
) -> None:
    dataset = write(tmp_path, DOCUMENT | {"blockSize": [4, 5, 6], "compression": compression})
    values = np.arange(1, 10 * 11 * 12 + 1, dtype="u2").reshape(12, 11, 10)
    theirs(dataset)[...].write(values.T).result()
    np.testing.assert_array_equal(ours(dataset)[...], values)
    ours(dataset)[1:9, 2:, :7] = 5
    values[1:9, 2:, :7] = 5
    np.testing.assert_array_equal(theirs(dataset).read().result().T, values)


# ---------------------------------------------------------------------- stores


def test_a_missing_block_is_zero_or_an_error(tmp_path: Path) -> None:
    dataset = write(tmp_path, DOCUMENT, {"0/0/0": HEADER + ELEMENTS})
    assert ours(dataset)[5, 5, 5] == theirs(dataset)[5, 5, 5].read().result() == 0
    with pytest.raises(ValueError, match="missing"):
        theirs(dataset, fill_missing_data_reads=False)[5, 5, 5].read().result()
    strict: Any = n5zarr.open_array(dataset, fill_missing=False)
    assert strict[2, 1, 0] == 6
    with pytest.raises(zarr.errors.ChunkNotFoundError):
        strict[5, 5, 5]
    missing = pytest.raises(zarr.errors.ChunkNotFoundError)
    with zarr.config.set({"array.read_missing_chunks": False}), missing:
        ours(dataset)[5, 5, 5]


@pytest.mark.parametrize("keep", [False, True])
def test_blocks_of_zeros_are_kept_or_removed(tmp_path: Path, keep: bool) -> None:
    by_them = write(tmp_path / "theirs", DOCUMENT)
    theirs(by_them, store_data_equal_to_fill_value=keep)[0, :2, :3].write(0).result()
    by_us = write(tmp_path / "ours", DOCUMENT)
    with zarr.config.set({"array.write_empty_chunks": keep}):
        ours(by_us)[:3, :2, 0] = 0
    assert (by_us / "0/0/0").exists() == (by_them / "0/0/0").exists() == keep


def test_resizing(tmp_path: Path) -> None:
    """Resizing removes the blocks outside, so that growing again shows zeros there."""
    values = np.arange(1, 10 * 11 * 12 + 1, dtype="u2").reshape(12, 11, 10)
    found = []
    for name in ("theirs", "ours"):
        dataset = write(tmp_path / name, DOCUMENT | {"axes": ["x", "y", "z"], "extra": [1]})
        theirs(dataset)[...].write(values.T).result()
        if name == "theirs":
            theirs(dataset).resize(exclusive_max=[4, 4, 6]).result()
            theirs(dataset).resize(exclusive_max=[10, 11, 12]).result()
        else:
            ours(dataset).resize((6, 4, 4))
            ours(dataset).resize((12, 11, 10))
        document = json.loads((dataset / "attributes.json").read_text())
        assert document == DOCUMENT | {"axes": ["x", "y", "z"], "extra": [1]}
        files = sorted(str(f.relative_to(dataset)) for f in dataset.rglob("*") if f.is_file())
        found.append((files, ours(dataset)[...].tobytes()))
        assert (ours(dataset)[...] == theirs(dataset).read().result().T).all()
    assert found[0] == found[1]
    shown = ours(tmp_path / "ours/c.n5/a")[...]
    assert not shown[6:, 4:, 4:].any()
    assert (shown[:6, :4, :4] == values[:6, :4, :4]).all()


def test_an_array_of_another_rank_or_type_is_noticed(tmp_path: Path) -> None:
    """Resizing refuses an array whose rank or type has changed meanwhile."""
    dataset = write(tmp_path, DOCUMENT)
    array = ours(dataset)
    other = DOCUMENT | {"dimensions": [10, 11], "blockSize": [1, 2]}
    (dataset / "attributes.json").write_text(json.dumps(other))
    with pytest.raises(N5Error):
        array.resize((6, 4, 4))
    assert json.loads((dataset / "attributes.json").read_text()) == other


def test_resizing_what_was_removed(tmp_path: Path) -> None:
    dataset = write(tmp_path, DOCUMENT)
    array = ours(dataset)
    (dataset / "attributes.json").unlink()
    with pytest.raises(N5Error, match="removed or renamed"):
        array.resize((6, 4, 4))
    assert not (dataset / "attributes.json").exists()


def test_without_dimensions(tmp_path: Path) -> None:
    dataset = tmp_path / "c.n5" / "a"
    metadata = {"dimensions": [], "blockSize": [], "dataType": "int16", "compression": BLOSC}
    theirs(dataset, metadata=metadata, create=True).write(5).result()
    assert ours(dataset).shape == ()
    assert ours(dataset)[()] == 5
    ours(dataset)[()] = 7
    assert theirs(dataset).read().result() == 7


def test_a_dataset_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="NOT_FOUND"):
        theirs(tmp_path / "c.n5/a")
    with pytest.raises(FileNotFoundError):
        zarr.open_array(N5Store(tmp_path / "c.n5"), path="a", mode="r")
    assert not (tmp_path / "c.n5").exists()
