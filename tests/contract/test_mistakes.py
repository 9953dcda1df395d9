"""What people type by mistake: the message, or the warning, names the way out."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Error, N5Store, N5Warning

n5: Any = n5zarr  # mistakes are of any type
TOLD = N5Error, N5Warning, ValueError, IndexError, OSError, TypeError  # of zarr, too
ZEROS, ONE_AXIS = np.zeros((48, 64), "u1"), xr.Dataset({"a": ("x", np.zeros(3))})


def array(at: Path) -> Any:
    return n5.open(at / "a.n5", mode="r+", path="em/s1")  # of the shape (20, 48, 64)


def new(at: Path, **options: Any) -> Any:
    given = {"path": "n", "shape": (3, 5, 7), "dtype": "u1", **options}
    return n5.create_array(at / "a.n5", **given)


def other(name: str, data: bytes = b"") -> Any:
    """Open a file or, without data, a folder that is no N5."""

    def call(at: Path) -> None:
        (at / name).write_bytes(data) if data else (at / name).mkdir()
        n5.open(at / name)

    return call


def of_zarr(at: Path) -> None:
    zarr.create_group(at / "a.zarr")
    n5.open(at / "a.zarr")


def put(at: Path, selection: Any, value: Any) -> None:
    array(at)[selection] = value


MISTAKES: dict[str, tuple[Any, str]] = {
    # where it is
    "a path that is misspelt": (lambda at: n5.open(at / "b.n5"), r"did you mean .*a\.n5\?"),
    "a folder that is not there": (lambda at: n5.open(at / "x" / "y"), "the nearest existing dir"),
    "a dataset of another name": (lambda at: n5.open(at / "a.n5", path="em/S1"), "s0, s1, s2"),
    "a document": (lambda at: n5.open(at / "a.n5/attributes.json"), "in /: em, labels"),
    "an empty folder": (other("e"), "an empty directory; the root of a container has"),
    "HDF5": (other("a.h5", b"\x89HDF\r\n\x1a\n" + bytes(99)), r"h5py\.File.*n5zarr convert"),
    "Zarr": (of_zarr, r"got a Zarr v3 group; open it with zarr\.open"),
    "a server that is off": (lambda _: n5.open("http://127.0.0.1:9/a.n5"), "check the address"),
    "no such protocol": (lambda _: n5.open("s4://b/a.n5"), "expected a URL"),
    "a number": (lambda _: n5.open(5), "a path, a URL, a store of zarr's"),
    "a group as an array": (lambda at: n5.open_array(at / "a.n5/em"), "arrays in it: em/s0"),
    "an array as a group": (lambda at: n5.open_group(at / "a.n5/em/s1"), "open_array opens it"),
    "a mode by position": (lambda at: n5.N5FSStore(at / "a.n5", *"r"), "mode='r'"),
    "no such mode": (lambda at: n5.open(at / "a.n5", mode="rw"), r"expected one of \('r', 'r\+'"),
    "written, opened to read": (
        lambda at: n5.open(at / "a.n5")["em/s1"].__setitem__(0, 1),
        r"mode='r\+' opens it to write"),
    "zarr 2 by the store": (
        lambda at: zarr.open(N5Store(at / "c.n5", zarr_format=2), mode="w"), "with zarr_format=2"),
    # order and shape
    "an index in N5's order": (
        lambda at: array(at)[60, 40, 10], "axis 0: .*reverse of N5's dimensions"),
    "values in N5's order": (lambda at: put(at, 0, ZEROS.T), r"value\.T has the other one"),
    "boxes of two axes": (
        lambda at: n5.read_boxes(array(at), [[0, 0]], (4, 4, 4)), r"\(boxes, 3\)"),
    "a box that sticks out": (
        lambda at: n5.read_boxes(array(at), [[18, 0, 0]], (4, 4, 4)), "inside of the array"),
    "a crop outside": (lambda at: array(at)[20:30], "axis 0: expected elements of 0:20, got 20:30"),
    "one chunk size too few": (
        lambda at: new(at, chunks=(3, 5)), "3 values, one for each dimension"),
    "names of another number": (
        lambda at: n5.set_geometry(at / "a.n5", "em/s1", names="xyzc"),
        "3 values, one for each axis"),
    "the same name twice": (lambda at: new(at, axes="zyy"), "another name"),
    "a block outside": (
        lambda at: n5.write_block(at / "a.n5", "em/s1", (9, 0, 0), ZEROS),
        r"less than \(2, 2, 2\)"),
    # values
    "too large for the type": (
        lambda at: put(at, 0, np.full((48, 64), 256)), "from 0 to 255 .* wrap"),
    "below zero": (lambda at: put(at, ..., np.int8(-1)), "wrap"),
    "rows that do not fit": (lambda at: array(at).append(np.full((1, 48, 64), 300)), "wrap"),
    "writing behind the end": (lambda at: put(at, np.s_[20:30], 1), "got 20:30, which is empty"),
    "an option that is misspelt": (
        lambda at: n5.stored_blocks(array(at), slice=True), "unexpected keyword argument 'slice'"),
    "fractions": (lambda at: put(at, np.s_[:, [0, 5]], 0.5), "fractions, which are cut off"),
    "data that do not fit": (lambda at: new(at, shape=None, data=[[300]]), "wrap"),
    "a block of another type": (
        lambda at: n5.write_block(at / "a.n5", "em/s1", (0, 0, 0), np.full((16, 40, 50), 256)),
        "values that uint8 can hold"),
    "a unit that is misspelt": (
        lambda at: new(at, units=["nm", "mn", "nm"]), r"such as nm or s, got \['mn'\]"),
    "a compression that is misspelt": (
        lambda at: new(at, compression="gz"), "expected one of blosc, bzip2, gz"),
    "numpy in to_n5": (lambda at: n5.to_n5(ZEROS, at / "b.n5"), r"create_array\(data="),
    "what is there": (lambda at: new(at, path="em/s1"), "overwrite=True removes it first"),
    "a group is there": (
        lambda at: new(at, path=""), "got a group; overwrite=True removes it first"),
    "mode w- where something is": (
        lambda at: n5.to_n5(ONE_AXIS, at / "a.n5", group="em", mode="w-"), "mode='a' adds to it"),
    # tools
    "a destination without suffix": (
        lambda at: n5.convert(at / "a.n5", at / "b"),
        r"ends in \.n5 or \.zarr; or choose the format"),
    "a destination that is there": (
        lambda at: n5.convert(at / "a.n5/em", at / "a.n5/labels"), r"overwrite=True"),
    "chunks of two axes": (
        lambda at: n5.convert(at / "a.n5", at / "b.zarr", chunks=(1, 2)),
        "one for each of 3 axes"),
    "a method that is misspelt": (
        lambda at: n5.build_pyramid(at / "a.n5/labels/s0", method="avg"), "one of auto, mean"),
    "a resolution by position": (
        lambda at: n5.open_level(at / "a.n5/em", 1), r"such as \{'z': 40\}"),
    "no project": (lambda at: n5.open_bdv(at / "a.n5"), "expected groups setup0, setup1"),
    "nothing to rechunk": (
        lambda at: n5.rechunk(at / "a.n5"), "expected chunks, a compression or both"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_the_way_out(tmp_path: Path, mistake: str) -> None:
    call, message = MISTAKES[mistake]
    shutil.copytree(n5.sample_path(), tmp_path / "a.n5")
    with warnings.catch_warnings(action="error"), pytest.raises(TOLD, match=message):
        call(tmp_path)
