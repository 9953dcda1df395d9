"""Removing a directory removes all of it, or nothing."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from n5zarr.storage.removing import remove_tree


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "g" / "0").mkdir(parents=True)
    (tmp_path / "g" / "0" / "1").write_bytes(b"block")
    return tmp_path / "g"


def test_a_removal_that_cannot_be_synced_is_undone(top: Path) -> None:
    def sync(_: set[str]) -> None:
        raise OSError(errno.EIO, "no disk")

    with pytest.raises(OSError, match="no disk"):
        remove_tree(top, sync=sync)
    assert [path.name for path in top.parent.iterdir()] == ["g"]
    assert (top / "0" / "1").read_bytes() == b"block"


def test_a_removal_that_fails_midway_is_tried_once_more(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    rmtree: Any = shutil.rmtree

    def fails_once(name: str) -> None:
        calls.append(name)
        if len(calls) == 1:
            raise OSError(errno.EMFILE, "too many files")
        rmtree(name)

    monkeypatch.setattr(shutil, "rmtree", fails_once)
    remove_tree(top)
    assert list(top.parent.iterdir()) == []
    assert len(calls) == 2
