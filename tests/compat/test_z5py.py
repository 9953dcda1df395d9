"""z5py's names over n5zarr do what z5py does: each test runs with both libraries.

Expected values are numpy's, and documents and errors those of z5py 3.0.2. Tests of `util`, which
z5py 3 lacks, and of n5zarr's own words run with n5zarr alone.
"""

from __future__ import annotations

import importlib
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.compat import z5py as ours

theirs = pytest.importorskip("z5py", reason="peer: uv sync installs it")

both = pytest.mark.parametrize("z5", [theirs, ours], ids=["z5py", "n5zarr"])
SHAPE, CHUNKS = (5, 7, 11), (2, 3, 4)
VALUES = np.random.default_rng(7).integers(0, 60_000, SHAPE).astype("u2")
COMPRESSIONS: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = [
    (None, {}, {"type": "gzip", "level": 5}),
    ("raw", {}, {"type": "raw"}),
    ("gzip", {"level": 3}, {"type": "gzip", "level": 3}),
    ("bzip2", {"level": 4}, {"type": "bzip2", "blockSize": 4}),
    ("xz", {"level": 2}, {"type": "xz", "preset": 2}),
    ("lz4", {"level": 7}, {"type": "lz4", "blockSize": 7}),
    ("zstd", {"level": 9}, {"type": "zstd", "level": 9}),
    ("blosc", {"codec": "zstd", "shuffle": 2, "blocksize": 256},
     {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2, "blocksize": 256}),
]  # fmt: skip


def made(z5: Any, folder: Path, **options: Any) -> Any:
    """Return a dataset of `VALUES` in a new file."""
    file = z5.File(str(folder / "a.n5"), "a")
    return file.create_dataset("g/a", data=VALUES, chunks=CHUNKS, **options)


def document(folder: Path, name: str = "g/a") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "a.n5", name, "attributes.json").read_text())
    return found


# ------------------------------------------------------------------------------------ documents


@both
@pytest.mark.parametrize(("name", "options", "stored"), COMPRESSIONS)
def test_what_is_stored(
    z5: Any, name: str | None, options: dict[str, Any], stored: dict[str, Any], tmp_path: Path
) -> None:
    dataset = made(z5, tmp_path, compression=name, **options)
    found = document(tmp_path)
    compression = found.pop("compression")
    # Java's member, which z5py leaves out, and one of z5py that is none of the format
    assert {k: v for k, v in compression.items() if k not in ("useZlib", "nthreads")} == stored
    assert found == {"dimensions": [11, 7, 5], "blockSize": [4, 3, 2], "dataType": "uint16"}
    for reader in (theirs, ours):
        values = reader.File(str(tmp_path / "a.n5"))["g/a"][:]
        np.testing.assert_array_equal(values, VALUES)
    assert dataset.compression == stored["type"]
    if name != "raw":  # z5py raises an AttributeError
        shown = {k: v for k, v in dataset.compression_opts.items() if k != "nthreads"}
        assert shown == ({"level": 5, **options} if name else {"level": 5})


@pytest.mark.parametrize(("name", "options", "stored"), COMPRESSIONS)
def test_blocks_are_those_of_z5py(
    name: str | None, options: dict[str, Any], stored: dict[str, Any], tmp_path: Path
) -> None:
    files: list[list[Path]] = []
    for z5 in (theirs, ours):
        folder = tmp_path / z5.__name__
        folder.mkdir()
        dataset = made(z5, folder, compression=name, **options)
        dataset[:2, :3] = 0  # z5py removes blocks of zeros
        paths = Path(folder, "a.n5").rglob("*/*/*/*")
        files.append(sorted(p for p in paths if p.is_file() and p.name != "attributes.json"))
    one, other = files
    assert len(one) == 3 * 3 * 3 - 3
    for theirs_file, our_file in zip(one, other, strict=True):
        assert theirs_file.parts[-3:] == our_file.parts[-3:]
        first, second = theirs_file.read_bytes(), our_file.read_bytes()
        if stored["type"] in ("raw", "lz4", "bzip2"):  # others depend on the library's version
            assert first == second
        assert first[:16] == second[:16]  # the header
        position = tuple(map(int, our_file.parts[-3:]))
        decoded: list[Any] = [
            n5zarr.read_block(tmp_path / z5.__name__ / "a.n5", "g/a", position)
            for z5 in (theirs, ours)
        ]
        np.testing.assert_array_equal(decoded[0].data, decoded[1].data)


@both
@pytest.mark.parametrize(
    ("shape", "chunks", "expected"),
    [
        ((5, 7), (8, 3), (5, 3)), ((5, 7), None, (5, 7)), ((600, 700), None, (512, 512)),
        ((70, 80, 90), None, (64, 64, 64)), ((300_000,), None, (262_144,)),
        ((50, 50, 50, 50), None, (23, 23, 23, 23)),
    ],
)  # fmt: skip
def test_chunks(z5: Any, shape: Any, chunks: Any, expected: Any, tmp_path: Path) -> None:
    file = z5.File(str(tmp_path / "a.n5"), "w")
    dataset = file.create_dataset("a", shape=shape, dtype="uint8", chunks=chunks, n_threads=2)
    assert dataset.chunks == expected
    assert dataset.shape == shape
    assert (dataset.ndim, dataset.size, len(dataset)) == (len(shape), math.prod(shape), shape[0])
    grid = [math.ceil(n / c) for n, c in zip(shape, expected, strict=True)]
    assert dataset.chunks_per_dimension == grid
    assert dataset.number_of_chunks == math.prod(grid)
    assert dataset.n_threads == 2
    assert document(tmp_path, "a")["blockSize"] == list(expected[::-1])


@both
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
def test_the_ten_types(z5: Any, dtype: str, tmp_path: Path) -> None:
    values = np.linspace(-100, 100, 35).reshape(5, 7).astype(dtype)
    file = z5.File(str(tmp_path / "a.n5"), "a")
    dataset = file.create_dataset("a", data=values, dtype=dtype, chunks=(2, 3))
    assert dataset.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(dataset[...], values)
    np.testing.assert_array_equal(np.asarray(z5.File(str(tmp_path / "a.n5"))["a"]), values)


# ------------------------------------------------------------------------------------ selections

BOXES: list[Any] = [
    np.s_[:], np.s_[...], np.s_[1:4, :, 2], np.s_[-1], np.s_[1, 2, 3], np.s_[..., 2],
    np.s_[1, ..., -3:], np.s_[1:3, 2:5, :], np.s_[3:2], np.s_[9:],
    np.s_[:99, np.int64(2), np.uint8(3)], np.s_[1:3:1], np.s_[:-1, -4:-2],
]  # fmt: skip


@both
@pytest.mark.parametrize("index", BOXES, ids=str)
def test_boxes_are_those_of_numpy(z5: Any, index: Any, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path)
    found = dataset[index]
    assert type(found) is type(VALUES[index])
    assert found.dtype == VALUES.dtype
    np.testing.assert_array_equal(found, VALUES[index])
    expected = VALUES.copy()
    expected[index] = 7
    dataset[index] = 7
    np.testing.assert_array_equal(dataset[:], expected)
    expected[index] = VALUES[index] // 2
    dataset[index] = VALUES[index] // 2
    np.testing.assert_array_equal(dataset[:], expected)


@both
@pytest.mark.parametrize(
    ("item", "value"),
    [
        (-1, 65535), (70_000, 4464), (-1.0, 65535), (3.9, 3), (True, 1), (np.uint8(9), 9),
        (np.full(7, 70_001), 4465), (np.full((1, 1, 7, 1), 3.5), 3), (np.full((7, 1), -2), 65534),
        ([5] * 7, 5), (np.full((1, 7), 8, ">u2"), 8),
    ],
)  # fmt: skip
def test_values_wrap(z5: Any, item: Any, value: int, tmp_path: Path) -> None:
    file = z5.File(str(tmp_path / "a.n5"), "a")
    dataset = file.create_dataset("a", shape=(5, 7), dtype="u2", chunks=(3, 4))
    dataset[2] = item
    expected = np.zeros((5, 7), "u2")
    expected[2] = value
    np.testing.assert_array_equal(dataset[:], expected)


@both
def test_boxes_of_arrays(z5: Any, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path)
    out = np.zeros(SHAPE, "u2")
    dataset.read_direct(out)
    np.testing.assert_array_equal(out, VALUES)
    out[...] = 0
    dataset.read_direct(out, np.s_[1:3, 2:5, 3:7], np.s_[0:2, 0:3, 0:4])
    np.testing.assert_array_equal(out[0:2, 0:3, 0:4], VALUES[1:3, 2:5, 3:7])
    assert not out[2:].any()
    part = dataset.read_subarray((1, 2, 3), (4, 5, 9))
    np.testing.assert_array_equal(part, VALUES[1:4, 2:5, 3:9])
    expected = VALUES[::-1].copy()
    dataset.write_direct(expected)
    np.testing.assert_array_equal(dataset[:], expected)
    dataset.write_direct(VALUES, np.s_[0:2, 1:3, 2:9], np.s_[3:5, 4:6, 0:7])
    expected[3:5, 4:6, 0:7] = VALUES[0:2, 1:3, 2:9]
    dataset.write_subarray((1, 0, 2), VALUES[2:4, 1:3, 1:2])
    expected[1:3, 0:2, 2:3] = VALUES[2:4, 1:3, 1:2]
    np.testing.assert_array_equal(dataset[:], expected)


# ------------------------------------------------------------------------------------ chunks


@both
def test_chunks_one_by_one(z5: Any, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path)
    for position in product(range(3), range(3), range(3)):
        box = tuple(slice(i * n, (i + 1) * n) for i, n in zip(position, CHUNKS, strict=True))
        assert dataset.chunk_exists(position)
        np.testing.assert_array_equal(dataset.read_chunk(position), VALUES[box])
        assert tuple(dataset.get_chunk_shape(position)) == VALUES[box].shape
    new = np.arange(1, 10, dtype="u2").reshape(1, 1, 9)[..., :3]
    dataset.write_chunk((2, 2, 2), new)
    expected = VALUES.copy()
    expected[4:, 6:, 8:] = new
    np.testing.assert_array_equal(dataset[:], expected)
    dataset.write_chunk((0, 0, 0), np.zeros(CHUNKS, "u2"))
    assert not dataset.chunk_exists((0, 0, 0))
    assert dataset.read_chunk((0, 0, 0)) is None
    assert not dataset.chunk_exists((0, 0, 9))
    assert dataset.read_chunk((3, 0, 0)) is None


@both
@pytest.mark.parametrize("n", [1, 3, 24, 100])  # a block has 24
def test_varlength_chunks(z5: Any, n: int, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path, compression="raw")
    elements = np.arange(n, dtype="u2") + 3
    dataset.write_chunk((0, 1, 1), elements, True)
    header = bytes.fromhex(f"0001 0003 00000004 00000003 00000002 {n:08x}")
    stored = (tmp_path / "a.n5/g/a/1/1/0").read_bytes()
    assert stored == header + elements.astype(">u2").tobytes()
    for reader in (theirs, ours):
        found = reader.File(str(tmp_path / "a.n5"))["g/a"].read_chunk((0, 1, 1))
        np.testing.assert_array_equal(found, elements)
    np.testing.assert_array_equal(dataset.read_chunk((0, 0, 1)), VALUES[:2, :3, 4:8])


@both
def test_a_fill_value_is_that_of_the_object(z5: Any, tmp_path: Path) -> None:
    file = z5.File(str(tmp_path / "a.n5"), "a")
    dataset = file.create_dataset("a", shape=(7,), chunks=(3,), dtype="f4", fillvalue=2.5)
    assert dataset[:].tolist() == [2.5] * 7
    dataset[1] = 1
    assert dataset[:].tolist() == [2.5, 1, *[2.5] * 5]
    assert z5.File(str(tmp_path / "a.n5"))["a"][:].tolist() == [2.5, 1, 2.5, 0, 0, 0, 0]
    assert document(tmp_path, "a").keys() == {"dimensions", "blockSize", "dataType", "compression"}


@both
def test_a_fill_value_wraps(z5: Any, tmp_path: Path) -> None:
    file = z5.File(str(tmp_path / "a.n5"), "a")
    dataset = file.create_dataset("a", shape=(7,), chunks=(3,), dtype="u2", fillvalue=-1)
    assert dataset[:].tolist() == [65535] * 7


@both
def test_shapes_may_be_arrays(z5: Any, tmp_path: Path) -> None:
    file = z5.File(str(tmp_path / "a.n5"), "a")
    for make in (file.create_dataset, file.require_dataset):
        made = make("a", shape=np.array([5, 7]), dtype="u1", chunks=np.array([2, 3]))
        assert (made.shape, made.chunks) == ((5, 7), (2, 3))


@both
def test_a_chunk_has_as_many_indices_as_the_dataset_axes(z5: Any, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path)
    for place in [(0, 0), (0, 0, 0, 0)]:
        with pytest.raises(RuntimeError):
            dataset.write_chunk(place, np.ones(CHUNKS, "u2"))
    np.testing.assert_array_equal(dataset[...], VALUES)


@both
@pytest.mark.filterwarnings("ignore:.*tensorstore refuses this dataset")
def test_letters_of_axes_stay_where_others_look(z5: Any, tmp_path: Path) -> None:
    made(z5, tmp_path).attrs["axes"] = "zyx"
    assert document(tmp_path)["axes"] == "zyx"


@pytest.mark.parametrize("z5", ["z5py", "n5zarr.compat.z5py"])
def test_modules(z5: str) -> None:
    assert importlib.import_module(f"{z5}.group").Group.__module__.startswith(z5)


def test_elements_of_the_fill_value_stay(tmp_path: Path) -> None:
    """z5py stores no block of them, so that another object reads 0."""
    file = ours.File(tmp_path / "a.n5", "a")
    file.create_dataset("a", shape=(5,), chunks=(3,), dtype="u1", fillvalue=7)[:4] = 7
    assert ours.File(tmp_path / "a.n5")["a"][:].tolist() == [7] * 5


# ------------------------------------------------------------------------------------ files


@both
def test_groups(z5: Any, tmp_path: Path) -> None:
    with z5.File(str(tmp_path / "a.n5"), "a") as file:
        made(z5, tmp_path)
        inner = file.create_group("g/h/i")
        assert inner.name == "/g/h/i"
        assert file.require_group("g").name == file["/g"].name.replace("//", "/") == "/g"
        assert file.require_group("k").parent is file
        assert file["g/a"].file is file
        assert sorted(file.keys()) == sorted(file) == ["g", "k"]
        assert len(file["g"]) == 2
        assert [name in file for name in ("g", "/g/a", "g/h/i", "x", "g/x")] == [1, 1, 1, 0, 0]
        assert file.get("x") is None
        assert dict(file["g"].items()).keys() == {"a", "h"}
        found: list[tuple[str, bool]] = []
        file.visititems(lambda name, node: found.append((name, isinstance(node, z5.Dataset))))
        assert sorted(found) == [
            ("g", False), ("g/a", True), ("g/h", False), ("g/h/i", False), ("k", False),
        ]  # fmt: skip
        assert file["g"].visititems(lambda name, _: name if name == "h/i" else None) == "h/i"
        same = file["g"].require_dataset("a", SHAPE, dtype="uint16", chunks=list(CHUNKS))
        np.testing.assert_array_equal(same[:], VALUES)
        assert file.require_dataset("new", (3,), "u1", compression="zstd").compression == "zstd"
        del file["g/a"]
        assert "g/a" not in file
        del file["g"]
        assert sorted(file) == ["k", "new"]
        assert not file.is_zarr
        file.close()
    assert isinstance(file, z5.File)
    assert isinstance(file, z5.group.Group)
    assert z5.N5File(str(tmp_path / "a.n5")).filename == str(tmp_path / "a.n5")


@both
def test_what_is_pickled_is_the_same(z5: Any, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path, n_threads=3)
    again = pickle.loads(pickle.dumps(dataset))
    np.testing.assert_array_equal(again[:], VALUES)
    assert (again.n_threads, again.name, again.file.filename) == (3, "/g/a", str(tmp_path / "a.n5"))
    again[0] = 5
    assert dataset[0, 0, 0] == 5
    assert pickle.loads(pickle.dumps(dataset.file["g"])).name == "/g"


@both
def test_modes(z5: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.n5")
    for mode in ("r", "r+"):
        with pytest.raises(OSError, match=r"a\.n5"):
            z5.File(path, mode)
    z5.File(path, "x").create_group("g")
    for mode in ("x", "w-"):
        with pytest.raises(OSError, match=r"a\.n5"):
            z5.File(path, mode)
    assert "g" in z5.File(path, "a")
    assert "g" in z5.File(path, "r+")
    assert "g" in z5.File(path)
    assert len(z5.File(path, "w")) == 0
    assert len(z5.File(path)) == 0


@both
def test_attributes(z5: Any, tmp_path: Path) -> None:
    dataset = made(z5, tmp_path)
    attributes = {"a/b": [1, 2.5], "c[1]": "ü", "d": {"e": None}, "f": True}
    for node in (dataset, dataset.file["g"], dataset.file):
        node.attrs.update(attributes)
        node.attrs.update(g=1)
        other = z5.File(str(tmp_path / "a.n5"), "a")[node.name.strip("/") or "g"].attrs
        del node.attrs["g"]
        del node.attrs["never there"]
        assert {k: v for k, v in node.attrs.items() if k != "n5"} == attributes
        if node is not dataset.file:
            assert dict(other) == attributes  # read again
    assert dataset.attrs["d"] == {"e": None}
    assert dataset.attrs.get("x", 3) == 3
    assert "dimensions" not in dataset.attrs
    assert document(tmp_path).items() >= {**attributes, "dimensions": [11, 7, 5]}.items()
    with pytest.raises(KeyError):
        dataset.attrs["dimensions"]


@both
def test_coders_of_attributes(z5: Any, tmp_path: Path) -> None:
    class OfNumpy(json.JSONEncoder):
        def default(self, o: object) -> object:
            return o.tolist() if isinstance(o, np.generic | np.ndarray) else super().default(o)

    class Doubling(json.JSONDecoder):
        def __init__(self, **options: Any) -> None:
            super().__init__(parse_int=lambda text: 2 * int(text), **options)

    attributes = z5.File(str(tmp_path / "a.n5"), "a").attrs
    try:
        z5.set_json_encoder(OfNumpy)
        z5.set_json_decoder(Doubling)
        attributes["a"] = {"b": np.arange(3), "c": np.int64(3)}
        assert attributes["a"] == {"b": [0, 2, 4], "c": 6}
    finally:
        z5.set_json_encoder(None)
        z5.set_json_decoder(None)
    assert attributes["a"] == {"b": [0, 1, 2], "c": 3}
    with pytest.raises(TypeError, match="not JSON serializable"):
        attributes["a"] = np.int64(1)
    with pytest.raises(RuntimeError):
        z5.set_json_encoder(int)


# ------------------------------------------------------------------------------------ errors

REFUSED: list[tuple[type[Exception], Callable[[Any, Any], object]]] = [
    (KeyError, lambda f, _: f["nix"]),
    (KeyError, lambda f, _: f.__delitem__("nix")),
    (KeyError, lambda f, _: f.create_group("g")),
    (KeyError, lambda f, _: f.create_dataset("g/a", shape=(3,), dtype="u1")),
    (TypeError, lambda f, _: f.require_group("g/a")),
    (TypeError, lambda f, _: f.require_dataset("g", shape=(3,))),
    (TypeError, lambda f, _: f.require_dataset("g/a", shape=(5, 7))),
    (TypeError, lambda f, _: f.require_dataset("g/a", SHAPE, dtype="u1")),
    (TypeError, lambda f, _: f.require_dataset("g/a", SHAPE, chunks=(1, 1, 1))),
    (TypeError, lambda f, _: f.create_dataset("x", shape=(3,))),
    (TypeError, lambda f, _: f.create_dataset("x", dtype="u1")),
    (TypeError, lambda f, _: f.create_dataset("x", shape=(4,), dtype="u1", chunks=True)),
    (ValueError, lambda f, _: f.create_dataset("x", shape=(3,), dtype="bool")),
    (ValueError, lambda f, _: f.create_dataset("x", shape=(3,), dtype=">u2")),
    (ValueError, lambda f, _: f.create_dataset("x", data=VALUES, dtype="u4")),
    (ValueError, lambda f, _: f.create_dataset("x", data=VALUES, shape=(5, 7))),
    (ValueError, lambda f, _: f.create_dataset("x", data=VALUES, compression="jpeg")),
    (RuntimeError, lambda f, _: f.create_dataset("x", data=VALUES, chunks=(2, 2))),
    (RuntimeError, lambda f, _: f.create_dataset("x", data=VALUES, compression="raw", level=1)),
    (RuntimeError, lambda f, _: f.create_dataset("x", data=VALUES, foo=1)),
    (ValueError, lambda _, d: d[5]),
    (ValueError, lambda _, d: d[..., -12]),
    (ValueError, lambda _, d: d[::2]),
    (ValueError, lambda _, d: d[..., ...]),
    (TypeError, lambda _, d: d[[0, 2]]),
    (TypeError, lambda _, d: d[None]),
    (TypeError, lambda _, d: d["a"]),
    (TypeError, lambda _, d: d[0, 0, 0, [1]]),
    (TypeError, lambda _, d: d.__setitem__((0, 0, 0), "hey")),
    (OSError, lambda _, d: d.__setitem__((0, 0, slice(2)), [object()] * 2)),
    (ValueError, lambda _, d: d.__setitem__(0, VALUES[:2])),
    (ValueError, lambda _, d: d.__setitem__(np.s_[1:4, 2], VALUES[1:4, 2])),
    (ValueError, lambda _, d: d.__setitem__(0, np.ones(11, "u2"))),
    (OverflowError, lambda _, d: d.__setitem__((0, 0), [70_000] * 11)),
    (RuntimeError, lambda _, d: d.read_subarray((0, 0, 0), (6, 7, 11))),
    (RuntimeError, lambda _, d: d.read_subarray((0, 0, 0), (0, 7, 11))),
    (RuntimeError, lambda _, d: d.write_subarray((4, 0, 0), np.zeros((2, 2, 2), "u2"))),
    (RuntimeError, lambda _, d: d.write_subarray((0, 0, 0), np.zeros((2, 2, 2), "f4"))),
    (RuntimeError, lambda _, d: d.write_chunk((0, 0, 0), np.zeros((2, 3, 5), "u2"))),
    (RuntimeError, lambda _, d: d.write_chunk((0, 0, 0), np.zeros((2, 3, 4), "i2"))),
    (RuntimeError, lambda _, d: d.write_chunk((3, 0, 0), np.zeros((2, 3, 4), "u2"))),
    (RuntimeError, lambda _, d: d.attrs.__setitem__("dimensions", [1])),
    (RuntimeError, lambda _, d: d.attrs.__delitem__("blockSize")),
    (RuntimeError, lambda f, _: f.attrs.__setitem__("n5", "1.0.0")),
    (KeyError, lambda _, d: d.attrs["x"]),
    (AttributeError, lambda _, d: d.resize((3, 3, 3))),
]


@both
@pytest.mark.parametrize(("error", "call"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_what_is_refused(
    z5: Any, error: type[Exception], call: Callable[[Any, Any], object], tmp_path: Path
) -> None:
    dataset = made(z5, tmp_path)
    before = sorted((tmp_path / "a.n5").rglob("*"))
    with pytest.raises(error):
        call(dataset.file, dataset)
    np.testing.assert_array_equal(dataset[:], VALUES)
    assert sorted((tmp_path / "a.n5").rglob("*")) == before


WRITES: list[Callable[[Any], object]] = [
    lambda f: f.create_group("x"), lambda f: f.require_group("x"),
    lambda f: f.create_dataset("x", shape=(3,), dtype="u1"),
    lambda f: f.require_dataset("x", shape=(3,), dtype="u1"), lambda f: f.__delitem__("g"),
    lambda f: f.attrs.update(a=1), lambda f: f["g/a"].attrs.update(a=1),
    lambda f: f["g/a"].__setitem__(0, 1),
    lambda f: f["g/a"].write_chunk((0, 0, 0), np.ones(CHUNKS, "u2")),
    lambda f: f["g/a"].write_subarray((0, 0, 0), np.ones(CHUNKS, "u2")),
]  # fmt: skip


@both
@pytest.mark.parametrize("call", WRITES, ids=map(str, range(len(WRITES))))
def test_a_file_is_read_only_by_default(
    z5: Any, call: Callable[[Any], object], tmp_path: Path
) -> None:
    made(z5, tmp_path)
    file = z5.File(str(tmp_path / "a.n5"))
    with pytest.raises(ValueError, match=r"read-only|not opened with write|Cannot write"):
        call(file)
    np.testing.assert_array_equal(file["g"].require_dataset("a", SHAPE, dtype="u2")[:], VALUES)


@both
def test_zarr_under_the_name_of_n5(z5: Any, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        z5.File(str(tmp_path / "a.n5"), "a", use_zarr_format=True)
    assert not list(tmp_path.iterdir())


WAYS: list[tuple[Callable[[Path], object], str]] = [
    (lambda p: ours.File(p / "a.zarr", "a"), "zarr.open"),
    (lambda p: ours.ZarrFile(p / "a.n5", "a"), "zarr.open"),
    (lambda _: ours.S3File, "n5zarr.open"),
    (lambda _: ours.converter, "n5zarr.convert"),
    (lambda p: made(ours, p).astype, "n5zarr.open"),
    (lambda p: made(ours, p)[::2], "n5zarr.open"),
    (lambda p: ours.File(p / "x.n5", "a").create_dataset("a", (3,), "bool"), "n5zarr.create_a"),
    (lambda p: ours.File(p / "x.n5"), "does not exist"),
    (lambda p: made(ours, p) and ours.File(p / "a.n5").create_group("x"), 'mode "r"'),
]


@pytest.mark.parametrize(("call", "way"), WAYS, ids=map(str, range(len(WAYS))))
def test_errors_name_the_way(call: Callable[[Path], object], way: str, tmp_path: Path) -> None:
    with pytest.raises((AttributeError, OSError, TypeError, ValueError, n5zarr.N5Error), match=way):
        call(tmp_path)


def test_a_folder_of_zarr_is_told_by_its_documents(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".zgroup").write_text('{"zarr_format": 2}')
    with pytest.raises(RuntimeError, match="got Zarr"):
        ours.File(tmp_path / "a")


def test_no_warning_at_import() -> None:
    code = "from n5zarr.compat import z5py; from n5zarr.compat.z5py.util import blocking"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


# ------------------------------------------------------------------------------------ util


@pytest.mark.parametrize(
    ("roi", "centred", "expected"),
    [
        (None, False, [(0, 3, 0, 4), (0, 3, 4, 8), (0, 3, 8, 9), (3, 6, 0, 4), (3, 6, 4, 8),
                       (3, 6, 8, 9), (6, 7, 0, 4), (6, 7, 4, 8), (6, 7, 8, 9)]),
        (np.s_[2:5, 5:], False, [(2, 3, 5, 8), (2, 3, 8, 9), (3, 5, 5, 8), (3, 5, 8, 9)]),
        (np.s_[2:5, 5:], True, [(2, 5, 5, 9)]),
        (np.s_[2:6], True, [(2, 5, 0, 4), (2, 5, 4, 8), (2, 5, 8, 9), (5, 6, 0, 4), (5, 6, 4, 8),
                            (5, 6, 8, 9)]),
    ],
)  # fmt: skip
def test_blocking(roi: Any, centred: bool, expected: list[tuple[int, ...]]) -> None:
    found = ours.util.blocking((7, 9), (3, 4), roi, centred)
    assert [(a.start, a.stop, b.start, b.stop) for a, b in found] == expected


@pytest.mark.parametrize(
    ("options", "chunks", "dtype", "compression", "box"),
    [
        ({}, CHUNKS, "u2", "zstd", np.s_[:]),
        ({"chunks": (3, 4, 5)}, (3, 4, 5), "u2", "zstd", np.s_[:]),
        ({"chunks": (3, 4, 5), "block_shape": (3, 8, 10)}, (3, 4, 5), "u2", "zstd", np.s_[:]),
        ({"dtype": "f4", "compression": "gzip", "level": 2}, CHUNKS, "f4", "gzip", np.s_[:]),
        ({"roi": np.s_[1:4, :, 3:]}, CHUNKS, "u2", "zstd", None),
        ({"roi": np.s_[1:4, :, 3:], "fit_to_roi": True}, CHUNKS, "u2", "zstd", np.s_[1:4, :, 3:]),
    ],
)
def test_copies_of_a_dataset(
    options: dict[str, Any], chunks: Any, dtype: str, compression: str, box: Any, tmp_path: Path
) -> None:
    made(ours, tmp_path, compression="zstd").attrs["a"] = [1]
    paths = str(tmp_path / "a.n5"), str(tmp_path / "b.n5")
    ours.util.copy_dataset(*paths, "g/a", "c/d", 2, **options)
    copied = theirs.File(str(tmp_path / "b.n5"))["c/d"]
    expected = np.zeros(SHAPE, dtype)
    if box is None:
        expected[1:4, :, 3:] = VALUES[1:4, :, 3:]
    else:
        expected = VALUES[box].astype(dtype)
    np.testing.assert_array_equal(copied[:], expected)
    assert copied.chunks == tuple(min(n, c) for n, c in zip(expected.shape, chunks, strict=True))
    assert (copied.dtype, copied.compression) == (np.dtype(dtype), compression)
    assert dict(copied.attrs) == {"a": [1]}


def test_copies_of_groups_and_other_chunks(tmp_path: Path) -> None:
    dataset = made(ours, tmp_path)
    lists = dataset.file.create_dataset("g/h/lists", (4,), "u8", chunks=(2,), compression="raw")
    lists.write_chunk((1,), np.arange(9, dtype="u8"), True)
    dataset.file["g/h"].attrs["k"] = 1
    paths = str(tmp_path / "a.n5"), str(tmp_path / "b.n5")
    ours.util.copy_group(*paths, "g", "x/y", 2)
    file = theirs.File(str(tmp_path / "b.n5"))
    np.testing.assert_array_equal(file["x/y/a"][:], VALUES)
    assert file["x/y/h"].attrs["k"] == 1
    assert file["x/y/h/lists"].read_chunk((0,)) is None
    assert file["x/y/h/lists"].read_chunk((1,)).tolist() == list(range(9))
    ours.util.rechunk(*paths, "g/a", "r", (5, 2, 11), 2)
    np.testing.assert_array_equal(file["r"][:], VALUES)
    assert file["r"].chunks == (5, 2, 11)
