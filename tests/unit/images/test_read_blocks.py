"""Stored blocks, read many at a time, are the bytes of their files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.fast.kernel import is_compiled
from n5zarr.format.order import N5Tuple
from n5zarr.images.from_n5 import n5_tree
from n5zarr.images.source import read_blocks
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.place import place_of

LONG = (2, 1)  # a block with 3000 bytes behind its payload
MISSING = (1, 1)


@pytest.mark.parametrize("block", [3, 1031], ids=["small blocks", "a block of a megabyte"])
def test_blocks_are_the_bytes_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    shape = (2 * block - 1, 4 * block - 2)
    asked = list[str]()
    for name in ("a", "b"):
        data = np.random.default_rng(5).integers(0, 255, shape, "u1")
        options: Any = {"chunks": (block, block), "compression": "raw"}
        n5zarr.create_array(tmp_path / "c.n5", path=name, data=data, **options)
        (tmp_path / "c.n5" / name / "1" / "1").unlink()
        with (tmp_path / "c.n5" / name / "2" / "1").open("ab") as long:
            long.write(bytes(3000))
    for file in (tmp_path / "c.n5").rglob("[0-9]"):
        os.utime(file, (1e9, 1e9))  # what was written just now is read one by one
    answer = LocalFiles.answer

    def noted(storage: LocalFiles, request: Any, warn: Any) -> Any:
        asked.append(request.key)
        return answer(storage, request, warn)

    arrays = n5_tree(place_of(tmp_path / "c.n5")).arrays
    wanted: list[Any] = [
        (arrays[name].blocks, N5Tuple(position))
        for name in ("a", "b", "a")
        for position in ((0, 0), MISSING, LONG, (3, 1))
    ]
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "answer", noted)
        values = read_blocks(wanted)
    for (blocks, position), value in zip(wanted, values, strict=True):
        file = tmp_path / "c.n5" / blocks.path / "/".join(map(str, position))
        expected = None if position == MISSING else file.read_bytes()
        assert expected == (None if value is None else bytes(value))
    odd = [each for each in wanted if each[1] in (MISSING, LONG)]
    assert len(asked) == len(odd if block == 3 and is_compiled() else wanted)
