"""The kernel reads ends and stamps of many files as Python reads those of one."""

from __future__ import annotations

import os
import struct
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from n5zarr.fast import kernel, many_files
from n5zarr.format.order import N5Tuple
from n5zarr.storage.files import read_ends

pytestmark = pytest.mark.skipif(kernel._kernel is None, reason="no compiled kernel")

SIZES = [0, 1, 19, 20, 21, 50, 51, 52, 70, 71, 72, 5000]
FIRST, LAST = 31, 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that are a minute old, at 0/7, 1/7 and so on."""
    rng = np.random.default_rng(3)
    for number, size in enumerate(SIZES):
        file = tmp_path / str(number) / "7"
        file.parent.mkdir()
        file.write_bytes(rng.integers(1, 255, size, "u1").tobytes())
        os.utime(file, (1.7e9 + number, 1.7e9 + number))
    return tmp_path


def ends(folder: Path, *positions: tuple[int, ...]) -> list[Any]:
    return many_files.read_ends(f"{folder}/", [N5Tuple(p) for p in positions], FIRST, LAST)


def test_what_is_odd_is_left_to_python(folder: Path) -> None:
    (folder / "0" / "8").write_bytes(b"just now")
    (folder / "1" / "8").mkdir()
    os.mkfifo(folder / "2" / "8")
    (folder / "3" / "8").write_bytes(bytes(40) + struct.pack("<QQI", 0, 40, 1))  # as a shard ends
    os.utime(folder / "3" / "8", (1.7e9, 1.7e9))
    (folder / "4" / "8").symlink_to("nowhere")
    (folder / "6" / "8").write_bytes(b"")
    tenth = time.time() - 0.1  # not just now, but a writer may be about to lock it
    os.utime(folder / "6" / "8", (tenth, tenth))
    assert ends(folder, (6, 8)) == [None]
    positions = [(number, 8) for number in range(6)]
    found: list[Any] = []
    for _ in range(100):  # the system may take longer than the moment in which a file is new
        os.utime(folder / "0" / "8")
        found = ends(folder, *positions, (-1, 7), (5, 7))
        if found[0] is None:
            break
    assert found == [None] * 7 + [read_ends(f"{folder}/5/7", FIRST, LAST)]
    assert ends(folder / "missing", (0, 7)) == [None]


@pytest.mark.parametrize(("change", "message"), [
    ({"ndim": 0}, "1 to"), ({"ndim": 65}, "1 to"), ({"ndim": 3}, "a place and a row"),
    ({"first": 19}, "ends of 20"), ({"last": 0}, "ends of 20"), ({"last": 2**40}, "ends of 20"),
    ({"out": bytearray(2 * 51 - 1)}, "a row"), ({"sizes": np.zeros(3, "i8")}, "a place"),
    ({"sizes": np.zeros(2, "i4")}, "sizes: expected"), ({"places": b"12345678"}, "places: exp"),
])  # fmt: skip
def test_wrong_arguments_are_refused(folder: Path, change: Any, message: str) -> None:
    given = {
        "directory": os.fsencode(folder), "ndim": 2, "places": np.array([0, 7, 1, 7]),
        "first": FIRST, "last": LAST, "out": bytearray(2 * 51), "sizes": np.zeros(2, "i8"),
    }  # fmt: skip
    function: Any = kernel._kernel.read_ends
    function(*given.values())
    with pytest.raises(ValueError, match=message):
        function(*(given | change).values())


def test_wrong_arguments_of_stamps_are_refused(folder: Path) -> None:
    function: Any = kernel._kernel.stamps
    out = array("i", bytes(64))
    with pytest.raises(ValueError, match="out: expected"):
        function(bytes(folder / "0" / "7"), out)
    out.append(1)  # nothing holds it
    for wrong in (str(folder), None):
        with pytest.raises(TypeError):
            function(wrong, array("q", bytes(64)))
    few = array("q", (5, 5, 5))  # room for one file and a half
    function(b"\0".join(bytes(folder / str(n) / "7") for n in range(3)), few)
    assert list(few) == [1_700_000_000 * 10**9, 0, 5]
