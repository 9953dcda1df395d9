"""``remove_empty_blocks`` and ``n5zarr rm-empty`` remove files and change no values."""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import N5UnsupportedError
from n5zarr.fast import kernel
from n5zarr.storage.requests import Get
from n5zarr.tools import rewriting
from tests.command import CliRunner
from tests.contract.stored import by_tensorstore, contents, in_memory, write_by_tensorstore

JAVA = Path(__file__).parents[1] / "data" / "java"
SHAPE = (7, 11, 13)


def blocks_of(root: Path, path: str) -> set[str]:
    files = (file for file in (root / path).rglob("*") if file.is_file())
    return {f.relative_to(root / path).as_posix() for f in files} - {"attributes.json"}


def write(root: Path, path: str, data: np.ndarray) -> None:
    """Write with tensorstore, which stores every block when asked to."""
    write_by_tensorstore(root / path, data.T, (5, 4, 3), store_data_equal_to_fill_value=True)


def sparse(dtype: str) -> np.ndarray:
    data = np.zeros(SHAPE, dtype)
    data[6, 10, 12] = 7
    data[3:5, 1, 5] = 1
    return data


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
def test_only_blocks_of_zeros_go(tmp_path: Path, dtype: str) -> None:
    data = sparse(dtype)
    write(tmp_path, "a.n5/x", data)
    root = tmp_path / "a.n5"
    expected = {
        f"{x}/{y}/{z}"
        for x, y, z in np.ndindex(3, 3, 3)
        if data[3 * x : 3 * x + 3, 4 * y : 4 * y + 4, 5 * z : 5 * z + 5].any()
    }
    before = {name: (root / "x" / name).stat().st_size for name in blocks_of(root, "x")}
    assert len(before) == 27
    planned = n5zarr.remove_empty_blocks(root, dry_run=True)
    assert blocks_of(root, "x") == before.keys()
    done = n5zarr.remove_empty_blocks(root)
    assert blocks_of(root, "x") == expected
    freed = sum(size for name, size in before.items() if name not in expected)
    assert (done.n_datasets, done.n_blocks, done.n_removed, done.n_bytes) == (1, 27, 25, freed)
    assert (planned.n_removed, planned.n_bytes, planned.n_directories) == (25, freed, 0)
    # directories without blocks are gone, too
    directories = [d for d in (root / "x").rglob("*") if d.is_dir()]
    assert done.n_directories == 3 + 9 - len(directories)
    assert all(any(d.iterdir()) for d in directories)
    np.testing.assert_array_equal(by_tensorstore(root / "x").T, data)


def test_minus_zero_and_what_lies_beyond_the_end_stay(tmp_path: Path) -> None:
    root = tmp_path / "a.n5"
    array: Any = n5zarr.create_array(root, path="x", shape=(7,), dtype="f4", chunks=(5,))
    n5zarr.write_block(root, "x", (0,), np.array([-0.0, 0, 0, 0, 0], "f4"))
    n5zarr.write_block(root, "x", (1,), np.array([0, 0, 9, 9, 9], "f4"))  # a full block at the end
    assert n5zarr.remove_empty_blocks(root).n_removed == 0
    assert np.signbit(array[0])


def test_the_fill_value_is_that_of_the_array(tmp_path: Path) -> None:
    store = N5Store(tmp_path / "a.n5")
    made = zarr.create_array(
        store, name="x", shape=(7, 5), chunks=(3, 2), dtype="c8",
        fill_value=complex(1, float("nan")), config={"write_empty_chunks": True},
    )  # fmt: skip
    made[...] = complex(1, float("nan"))
    made[0, 0] = 0
    made[6, 4] = 0  # a block of one element
    before = np.asarray(zarr.open_array(store, path="x", mode="r")[...])
    assert n5zarr.remove_empty_blocks(tmp_path / "a.n5").n_removed == 7
    after = np.asarray(zarr.open_array(N5Store(tmp_path / "a.n5"), path="x", mode="r")[...])
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(("dtype", "fill"), [("f4", "nan"), ("i2", 5), ("f8", -0.0)])
def test_empty_blocks_of_any_form(
    tmp_path: Path, dtype: str, fill: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that are inside, padded, truncated, and larger than their dataset."""
    values = np.array(fill, dtype)
    for path, n, full in (("x", 17, True), ("y", 17, False), ("z", 3, False)):
        made: Any = zarr.create_array(
            N5Store(tmp_path / "a.n5"), name=path, shape=(n,), chunks=(5,), dtype=dtype,
            fill_value=values[()], config={"write_empty_chunks": True},
        )  # fmt: skip
        made[...] = values
        if full:
            n5zarr.write_block(tmp_path / "a.n5", path, (3,), np.full(5, values))
        if n > 5:
            made[6] = 0
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, 77, dtype))
    done = n5zarr.remove_empty_blocks(tmp_path / "a.n5")
    assert (done.n_blocks, done.n_removed, done.problems) == (4 + 4 + 1, 3 + 3 + 1, ())
    assert blocks_of(tmp_path / "a.n5", "x") == blocks_of(tmp_path / "a.n5", "y") == {"1"}


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_filled_blocks_of_a_thin_dataset_are_looked_at_together(
    tmp_path: Path, axis_order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All blocks are at the end; of the padded ones, one is empty, and one but for its padding."""
    array: Any = n5zarr.create_array(
        tmp_path, path="x", shape=(3, 7, 11), chunks=(5, 2, 3), dtype="u2", compression="gzip"
    )
    array[...] = np.tile(np.eye(7, 11, dtype="u2"), (3, 1, 1))
    stored = blocks_of(tmp_path, "x")
    padded = np.zeros((3, 5, 2, 3), "u2")
    padded[1, 3:], padded[2] = 7, 1
    for y, block in enumerate(padded):
        n5zarr.write_block(tmp_path, "x", (3, y, 0), block)
    for file in (tmp_path / "x").rglob("*"):
        os.utime(file, (1e9, 1e9))
    decoded: list[Any] = []
    is_empty = rewriting._is_empty

    def decoding(*block: Any) -> bool:
        decoded.append(block)
        return is_empty(*block)

    monkeypatch.setattr(rewriting, "_is_empty", decoding)
    done = n5zarr.remove_empty_blocks(N5Store(tmp_path, axis_order=axis_order))
    assert done.n_removed == 1
    assert blocks_of(tmp_path, "x") == stored | {"3/1/0", "3/2/0"}
    assert len(decoded) == 3  # two, and one again before it is removed


@pytest.mark.parametrize("ndim", [0, 1, 2, 63, 64])
def test_any_number_of_axes(tmp_path: Path, ndim: int) -> None:
    document = {
        "dimensions": [2] * ndim, "blockSize": [1] * ndim, "dataType": "uint8",
        "compression": {"type": "raw"},
    }  # fmt: skip
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "attributes.json").write_text(json.dumps(document))
    header = struct.pack(f">HH{ndim}I", 0, ndim, *[1] * ndim)
    for number in range(2 if ndim else 1):
        file = tmp_path.joinpath("x", *[str(number)] * (ndim or 1))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(header + bytes([number]))
    done = n5zarr.remove_empty_blocks(tmp_path)
    assert (done.n_blocks, done.n_removed, done.problems) == (2 if ndim else 1, 1, ())
    assert not tmp_path.joinpath("x", *["0"] * (ndim or 1)).exists()


def test_text_and_damaged_blocks_are_not_removed(tmp_path: Path) -> None:
    for name in ("strings.n5", "labels.n5", "varlen.n5"):
        root = tmp_path / name
        shutil.copytree(JAVA / name, root)
        files = contents(root)
        done = n5zarr.remove_empty_blocks(root)
        assert done.n_removed == 0
        assert contents(root) == files
        said = " ".join(map(str, done.problems))
        assert ("u16: block 0/0: block header" in said) == (name == "varlen.n5")


@pytest.mark.each_of(2)
@pytest.mark.parametrize("durability", ["atomic", "overwrite"])
def test_a_writer_at_the_same_time_loses_nothing(tmp_path: Path, durability: Any) -> None:
    root = tmp_path / "a.n5"
    array: Any = n5zarr.create_array(
        root, path="x", shape=(40, 40), dtype="u2", chunks=(2, 3), durability=durability
    )
    array = array.with_config({"write_empty_chunks": True})
    stopped = threading.Event()

    def remove() -> int:
        n_removed = 0
        while not stopped.is_set():
            n_removed += n5zarr.remove_empty_blocks(root).n_removed
        return n_removed

    with ThreadPoolExecutor(1) as other:
        removing = other.submit(remove)
        expected = _write_at_random(array)
        stopped.set()
        assert removing.result() > 0
    np.testing.assert_array_equal(np.asarray(array[...]), expected)


def _write_at_random(array: Any) -> np.ndarray:
    """Write single elements, and empty some rows of blocks again, which the other removes."""
    random = np.random.default_rng(3)
    expected = np.zeros((40, 40), "u2")
    for n in range(1, 400):
        y, x = random.integers(0, 40, 2)
        array[y, x] = expected[y, x] = n
        if n % 5 == 0:
            rows = slice(y - y % 2, y - y % 2 + 2)
            array[rows] = expected[rows] = 0
    return expected


def test_any_store_and_read_only_ones(tmp_path: Path) -> None:
    write(tmp_path, "a.n5/x", sparse("uint16"))
    memory = in_memory(tmp_path / "a.n5")
    assert n5zarr.remove_empty_blocks(memory, "x").n_removed == 25
    assert sum(key.startswith("x/") for key in memory._store_dict) == 2 + 1
    closed = LocalStore(tmp_path / "a.n5", read_only=True)
    with pytest.raises(N5UnsupportedError, match="read-only"):
        n5zarr.remove_empty_blocks(closed)
    with pytest.raises(FileNotFoundError, match="/nope: expected a group or dataset"):
        n5zarr.remove_empty_blocks(tmp_path / "a.n5", "nope")


def test_the_command(tmp_path: Path) -> None:
    write(tmp_path, "a.n5/x", sparse("uint8"))
    path = str(tmp_path / "a.n5" / "x")
    planned = CliRunner().invoke(app, ["rm-empty", "--dry-run", path])
    assert planned.output.startswith("25 of 27 blocks would be removed, ")
    done = CliRunner().invoke(app, ["rm-empty", "--json", "--n-workers", "2", path])
    assert json.loads(done.output)["n_removed"] == 25
    (tmp_path / "a.n5" / "x" / "2" / "2" / "2").write_bytes(b"")
    damaged = CliRunner().invoke(app, ["rm-empty", path])
    assert damaged.exit_code == 2
    assert "block 2/2/2: block header: expected 4 bytes" in damaged.stderr


def test_a_broken_document_is_a_problem_and_others_are_done(tmp_path: Path) -> None:
    """Its blocks stay, whatever they hold."""
    for name in ("a", "b"):
        array: Any = zarr.create_array(
            N5Store(tmp_path / "c.n5"), name=name, shape=(7, 5), chunks=(3, 2), dtype="u1",
            config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = 0
    (tmp_path / "c.n5/a/attributes.json").write_text('{"dimensions": [5, 7], "blockSize": [2')
    done = n5zarr.remove_empty_blocks(tmp_path / "c.n5")
    assert (done.n_datasets, done.n_blocks, done.n_removed) == (1, 9, 9)
    (problem,) = done.problems
    assert str(problem).startswith("a/attributes.json: not JSON")
    assert (tmp_path / "c.n5/a/0/0").exists()


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
def test_only_blocks_that_may_be_empty_are_read_by_themselves(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are decoded together: all but an empty, a damaged and a truncated one here."""
    data = np.zeros((7, 8, 10), "int16")
    data[2::3, 3::4, 4::5] = 1  # the last element of each whole block
    data[:3, :4, 5:] = 0
    write(tmp_path, "a.n5/x", data)
    root = tmp_path / "a.n5"
    damaged = root / "x" / "1" / "1" / "1"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    asked.clear()
    found = n5zarr.remove_empty_blocks(root, dry_run=True)
    ends = {f"x/2/{y}/{z}" for y in range(2) for z in range(2)}
    read = {each.key for each in asked if isinstance(each, Get) and not each.key.endswith("json")}
    assert read == {"x/0/0/1", "x/1/1/1"} | ends
    assert (found.n_blocks, found.n_removed, len(found.problems)) == (12, 5, 1)
    monkeypatch.setattr(kernel, "_kernel", None)
    other = n5zarr.remove_empty_blocks(root, dry_run=True)
    assert [*map(str, other.problems)] == [*map(str, found.problems)]
    assert replace(other, problems=()) == replace(found, problems=())
