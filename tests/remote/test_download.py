"""``download`` from servers copies the same bytes, each block once and all of them."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from tests.remote.conftest import ODD, Place
from tests.waiting import PATIENCE

WHOLE = [slice(None)] * 3
MARK = "n5zarr-incomplete.json"


def is_block(method: str, path: str) -> bool:
    """Return whether a block of ``em/s0`` is requested."""
    return method == "GET" and "/em/s0/" in path and path[-1:].isdigit()


def files(root: Path) -> dict[str, bytes]:
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file() and file.name != "n5zarr-download.json"  # names the source
    }


@pytest.mark.each_of(4)
def test_blocks_of_a_box_and_the_documents_above(place: Place, local: Path, tmp_path: Path) -> None:
    source, target = place.open(), tmp_path / "d.n5"
    box = [slice(17, 31), slice(0, 40), slice(49, 51)]
    planned = n5zarr.download(source, target, paths=["em/s0"], box=box, dry_run=True)
    assert not target.exists()
    done = n5zarr.download(source, target, paths=["em/s0"], box=box)
    # blocks of 16 x 40 x 50, in C order: z 16 to 31, y 0 to 39, x 0 to 99
    expected = ["attributes.json", "em/attributes.json", "em/s0/attributes.json"]
    expected += ["em/s0/0/0/1", "em/s0/1/0/1"]
    ours = files(local)
    assert files(target) == {key: ours[key] for key in expected}
    size = len(ours["em/s0/0/0/1"]) + len(ours["em/s0/1/0/1"])
    assert (done.n_blocks, done.n_bytes, done.n_loaded, done.n_bytes_loaded) == (2, size, 2, size)
    assert planned == done
    read, whole = (np.asarray(n5zarr.open_array(root, path="em/s0")) for root in (target, local))
    np.testing.assert_array_equal(read[17:31, :40, 49:51], whole[17:31, :40, 49:51])
    assert n5zarr.geometry(target, "em/s0") == n5zarr.geometry(local, "em/s0")


@pytest.mark.each_of(4)
def test_whole_containers(place: Place, local: Path, tmp_path: Path) -> None:
    if not place.has_lists:
        with pytest.raises(N5UnsupportedError, match="listing"):
            n5zarr.download(place.open(), tmp_path / "d.n5")
        assert not (tmp_path / "d.n5").exists()
        n5zarr.download(place.open(), tmp_path / "d.n5", paths=[ODD, "em/s2"])
        expected = {"attributes.json", "em/attributes.json", "em/s2/attributes.json"}
    else:
        n5zarr.download(place.open(), tmp_path / "d.n5")
        expected = set(files(local)) - {"readme.txt", "implicit/sub/attributes.json"}
    ours, theirs = files(local), files(tmp_path / "d.n5")
    assert expected <= theirs.keys()
    assert all(ours[key] == data for key, data in theirs.items())
    assert {key for key in ours if key.startswith(f"{ODD}/")} <= theirs.keys()


@pytest.mark.each_of(4)
def test_an_interrupted_download_goes_on(place: Place, local: Path, tmp_path: Path) -> None:
    target = tmp_path / "d.n5"
    answered = itertools.count()

    def fault(method: str, path: str) -> str | None:
        return "reset" if is_block(method, path) and next(answered) >= 11 else None

    place.proxy.fault = fault
    with pytest.raises(OSError, match=r"em/s0|reset|disconnected|closed"):
        n5zarr.download(place.open(concurrency=1), target, paths=["em/s0"], box=WHOLE)
    place.proxy.fault = lambda *_: None
    there = files(target)
    assert MARK in there
    assert len(there) == 1 + 11
    with pytest.raises(N5UnrepresentableError, match="expected an array, got a group"):
        n5zarr.open_array(target, path="em/s0")
    with pytest.raises(N5UnrepresentableError, match="expected the options of the run"):
        n5zarr.download(place.open(), target, paths=["em/s1"])
    place.proxy.requests.clear()
    told: list[tuple[str, int, int]] = []
    done = n5zarr.download(
        place.open(), target, paths=["em/s0"], box=WHOLE, progress=lambda *args: told.append(args)
    )
    assert sum(is_block(*request) for request in place.proxy.requests) == 27 - 11
    assert (done.n_blocks, done.n_loaded) == (27, 27 - 11)
    assert told[-1] == ("download", done.n_bytes, done.n_bytes)
    ours = files(local)
    assert files(target) == {
        key: data
        for key, data in ours.items()
        if key.startswith("em/s0/") or key in ("attributes.json", "em/attributes.json")
    }


@pytest.mark.each_of(3)  # one of them does not list
def test_many_requests_at_a_time(place: Place, tmp_path: Path) -> None:
    changed, running, most = threading.Condition(), 0, 0

    def fault(method: str, path: str) -> None:
        nonlocal running, most
        if not is_block(method, path):
            return
        with changed:
            running += 1
            most = max(most, running)
            changed.notify_all()
            changed.wait_for(lambda: most >= 7, PATIENCE)
            running -= 1

    place.proxy.fault = fault
    n5zarr.download(place.open(concurrency=7), tmp_path / "d.n5", paths=["em/s0"], box=WHOLE)
    assert most == 7


@pytest.mark.each_of(9)
def test_the_place_must_be_local(place: Place) -> None:
    opened: Any = place.open()
    with pytest.raises(N5UnrepresentableError, match="expected a local path"):
        n5zarr.download(opened, "s3://bucket/d.n5")
