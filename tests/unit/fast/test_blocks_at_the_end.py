"""Parts of blocks at the end of an array are written, as it grows: by the kernel and in Python."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5Error
from n5zarr.fast import kernel
from tests.unit.arrays.blocks import block_bytes

FILL = 9
BLOCK = (5, 7)  # C order


def stored(path: Path) -> np.ndarray:
    """Read a block as the specification says, shape in C order."""
    data = path.read_bytes()
    mode, ndim, *sizes = struct.unpack(">HHII", data[:12])
    assert (mode, ndim) == (0, 2)
    payload = gzip.decompress(data[12:]) if data[12:14] == b"\x1f\x8b" else data[12:]
    return np.frombuffer(payload, ">u2").reshape(sizes[::-1])


@pytest.fixture(params=["kernel", "python"])
def make(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what makes an array of one block at the end of both axes, and asks who writes it."""
    left = list[int]()
    write_box = kernel.write_box

    def noted(*args: Any, **options: Any) -> Any:
        found = write_box(*args, **options)
        left.append(len(found))
        return found

    monkeypatch.setattr(kernel, "write_box", noted)
    if request.param == "python":
        monkeypatch.setattr(kernel, "can_do", lambda _: False)

    def made(shape: tuple[int, int], block: np.ndarray, **options: Any) -> tuple[Any, Path]:
        n5zarr.create_array(
            tmp_path / "a.n5", path="d", shape=shape, chunks=BLOCK, dtype="u2", fill_value=FILL,
            **options,
        )  # fmt: skip
        file = tmp_path / "a.n5" / "d" / "0" / "0"
        file.parent.mkdir()
        file.write_bytes(block_bytes(block, options["compression"]))
        return n5zarr.open(
            tmp_path / "a.n5", path="d", mode="r+", durability=options["durability"]
        ), file

    yield made
    assert left == ([0] if request.param == "kernel" and kernel.is_compiled() else [])


WAYS = [
    (compression, durability)
    for compression in ("raw", "gzip")
    for durability in ("atomic", "overwrite")
]


@pytest.mark.parametrize(("compression", "durability"), WAYS)
def test_a_full_size_block_stays_full_size(make: Any, compression: str, durability: str) -> None:
    """What is behind the end may be of a program that has enlarged the array since."""
    block = np.arange(100, 135, dtype="u2").reshape(BLOCK)
    array, file = make((3, 6), block, compression=compression, durability=durability)
    array[1:3, 2:4] = 77
    expected = block.copy()
    expected[1:3, 2:4] = 77
    np.testing.assert_array_equal(stored(file), expected)
    np.testing.assert_array_equal(array[...], expected[:3, :6])


@pytest.mark.parametrize(("compression", "durability"), WAYS)
@pytest.mark.parametrize("n", [3, 5])
def test_an_array_that_grew_along_its_slowest_axis(
    make: Any, compression: str, durability: str, n: int
) -> None:
    """The program that enlarged it, as tensorstore, has left the block truncated."""
    block = np.arange(100, 112, dtype="u2").reshape(2, 6)
    array, file = make((n, 6), block, compression=compression, durability=durability)
    array[1:3, 2:4] = 77
    expected = np.full((n, 6), FILL)
    expected[:2] = block
    expected[1:3, 2:4] = 77
    np.testing.assert_array_equal(stored(file), expected)
    np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("compression", ["raw", "gzip", "zstd", "blosc"])
def test_appended_frames_are_written_by_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    left, write_box = list[Any](), kernel.write_box

    def noted(*args: Any, **options: Any) -> Any:
        left.append(write_box(*args, **options))
        return left[-1]

    monkeypatch.setattr(kernel, "write_box", noted)
    frames = np.random.default_rng(3).integers(0, 999, (11, 13, 7), "u2")
    with zarr.config.set({"codec_pipeline.path": "n5zarr.arrays.pipeline.N5CodecPipeline"}):
        array: Any = n5zarr.create_array(
            tmp_path / "a.n5", path="d", shape=(0, 13, 7), chunks=(4, 5, 3), dtype="u2",
            compression=compression,
        )  # fmt: skip
        for frame in frames:
            array.append(frame[None])
    np.testing.assert_array_equal(array[...], frames)
    if kernel.is_compiled():
        assert left == [[]] * len(frames)
    document = json.loads((tmp_path / "a.n5" / "d" / "attributes.json").read_text())
    assert document["dimensions"] == [7, 13, 11]


@pytest.mark.parametrize("by", ["kernel", "python"])
def test_what_another_program_has_cut_off_is_refused(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The array was open when another program made it smaller: blocks inside are written."""
    if by == "python":
        monkeypatch.setattr(kernel, "can_do", lambda _: False)
    array: Any = n5zarr.create_array(
        tmp_path / "a.n5", path="d", shape=(7, 5), chunks=(3, 2), dtype="u2", compression="raw"
    )
    document = tmp_path / "a.n5" / "d" / "attributes.json"
    document.write_text(json.dumps(json.loads(document.read_text()) | {"dimensions": [2, 4]}))
    values = np.arange(1, 36, dtype="u2").reshape(7, 5)
    with pytest.raises(N5Error, match=r"d: chunk \(.*\): .* but the grid is \(2, 1\)"):
        array[...] = values
    folder = document.parent
    assert {str(p.relative_to(folder)) for p in folder.rglob("?/?")} == {"0/0", "0/1"}
    assert (stored(folder / "0" / "0") == values[:3, :2]).all()
    assert (stored(folder / "0" / "1")[:1, :2] == values[3:4, :2]).all()
