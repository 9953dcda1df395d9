"""No way of reading a confined store leads out of its directory."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from zarr.buffer import cpu

from n5zarr.storage.confined import ConfinedStore
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.requests import Ends, Exists, list_each, read_key


@pytest.mark.parametrize(
    ("key", "expected"), [("own", b"own"), ("in", b"own"), ("out", None), ("above/secret", None)]
)
def test_all_reads_stay_inside(tmp_path: Path, key: str, expected: bytes | None) -> None:
    root = tmp_path / "c.n5"
    root.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "own").write_bytes(b"own")
    for link, target in (("in", "own"), ("out", "../secret"), ("above", "..")):
        (root / link).symlink_to(target)
    store, prototype = ConfinedStore(root), cpu.buffer_prototype
    read = [
        asyncio.run(store.get(key, prototype)),
        store.get_sync(key, prototype=prototype),
        *asyncio.run(store.get_partial_values(prototype, [(key, None)])),
    ]
    assert [None if each is None else each.to_bytes() for each in read] == [expected] * 3
    files = LocalFiles(root, confined=True)
    assert files.run(read_key(key), print) == expected
    assert files.answer(Exists(key), print) is (expected is not None)
    assert (files.answer(Ends(key, 3, 0), print) is None) is (expected is None)
    assert {each.name for each in files.run(list_each([""]), print)[0]} == {"own", "in"}
