"""Two workers of dask in separate processes give the results of a single process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from distributed import Client, LocalCluster

import n5zarr
from n5zarr import N5Store
from n5zarr.tools.jobs.run import RunOptions
from tests.contract.truth import METADATA, TRUTH

SAMPLE = n5zarr.sample_path()


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Start a cluster of two processes, which computes all lazy arrays of these tests."""
    options: Any = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster,  # type: ignore[no-untyped-call]
        Client(cluster) as connected,  # type: ignore[no-untyped-call]
    ):
        yield connected
        workers = set(connected.run(os.getpid).values())
        assert os.getpid() not in workers
        assert len(workers) == 2


@pytest.mark.long
@pytest.mark.usefixtures("client")
def test_they_read_and_write_for_xarray(tmp_path: Path) -> None:
    raw = np.asarray(zarr.open_array(N5Store(SAMPLE), path="em/s0")[...])
    how: Any = {"engine": "n5", "group": "em/s0", "chunks": {}}
    lazy = xr.open_dataset(SAMPLE, **how)
    np.testing.assert_array_equal(lazy["s0"].mean("z"), raw.mean(0))
    for truth in TRUTH:  # every convention
        path = truth["path"]
        array = xr.open_dataset(METADATA, engine="n5", group=path, chunks={})
        (variable,) = array.data_vars.values()
        plain = zarr.open_array(N5Store(METADATA), path=path)
        np.testing.assert_array_equal(variable.max("x"), np.asarray(plain[...]).max(-1))
    later: Any = n5zarr.to_n5(lazy, tmp_path / "c.n5", group="em/s0", compute=False)
    later.compute()
    again = xr.open_dataset(tmp_path / "c.n5", engine="n5", group="em/s0")
    np.testing.assert_array_equal(again["s0"], raw)


@pytest.mark.long
@pytest.mark.usefixtures("client")
def test_they_convert(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 60000, (67, 101, 131), "u2")
    n5zarr.create_array(tmp_path / "in.n5", path="v", data=values, chunks=(16, 32, 32))
    for name, options in (("a", {}), ("b", {"shards": (32, 64, 64)}), ("c", {"chunks": 24})):
        out = tmp_path / f"{name}.zarr"
        done = n5zarr.convert(tmp_path / "in.n5", out, verify=True, **options)
        assert done.verified
        read: Any = zarr.open_array(out, path="v", mode="r")
        np.testing.assert_array_equal(read[...], values)


@pytest.mark.long
def test_they_share_the_memory(client: Any) -> None:
    client.cluster.scale(3)
    client.wait_for_workers(3)
    try:
        for scheduler in (client, client.scheduler.address, None):  # the active one
            assert RunOptions(scheduler).memory_of_worker(3 * 2**20) == 2**20
    finally:
        client.cluster.scale(2)
    assert RunOptions("threads", 5).memory_of_worker(5 * 2**20) == 2**20


@pytest.mark.long
def test_they_build_a_pyramid(client: Any, tmp_path: Path) -> None:
    data = np.random.default_rng(11).integers(0, 60000, (67, 131, 149), "u2")
    written: list[dict[str, bytes]] = []
    seen: list[tuple[str, int, int]] = []
    few: dict[str, Any] = {"scheduler": client, "max_memory": 2**21}
    for way in ({"scheduler": "threads"}, few):
        root = tmp_path / f"{len(written)}.n5"
        n5zarr.create_array(
            root / "em" / "s0", data=data, chunks=(8, 16, 16), axes="zyx", units=["nm"] * 3,
            resolution=(40.0, 8.0, 4.0), offset=(3000.0, -200.0, 100.5),
        )  # fmt: skip
        n5zarr.build_pyramid(
            root / "em", levels=2, progress=lambda *state: seen.append(state), **way
        )
        files = (path for path in root.rglob("*") if path.is_file())
        written.append({path.relative_to(root).as_posix(): path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert seen[-1][1] == seen[-1][2] > 0
