"""Views of BigDataViewer are lazy arrays: a selection reads only its own blocks."""

from __future__ import annotations

import asyncio
import json
import math
import pickle
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
import xarray as xr

import n5zarr
from tests.memory import traced
from tests.processes import METHOD

SHAPE, BLOCKS = (5, 7, 11), (2, 3, 4)  # z, y, x
N_SETUPS, N_TIMEPOINTS = 2, 3
MISSING = (1, 1)
VALUES = np.random.default_rng(7).integers(1, 999, (N_SETUPS, N_TIMEPOINTS, *SHAPE), "u2")
VALUES[MISSING] = 0


def points(*dims: str, **values: Any) -> dict[str, Any]:
    return {dim: xr.DataArray(each, dims=dims) for dim, each in values.items()}


PARTS: dict[str, dict[str, Any]] = {
    "one element": {"setup": 1, "timepoint": 0, "z": 4, "y": -1, "x": 3},
    "plane": {"setup": 0, "timepoint": 2, "z": 3},
    "plane of all": {"y": 5},
    "missing": {"setup": 1, "timepoint": 1, "x": slice(2, 5)},
    "steps": {"timepoint": slice(None, None, 2), "z": slice(1, None, 3), "x": slice(1, 9, 4)},
    "backwards": {"setup": slice(None, None, -1), "x": slice(None, None, -2), "z": 1},
    "nothing": {"setup": slice(0, 0), "y": slice(3, 3)},
    "arrays": {"setup": [1, 0, 1], "timepoint": [2, 1], "x": [10, 0, 4], "z": slice(1, 3)},
    "points": points(
        "p", setup=[0, 1, 1, 0], timepoint=[2, 1, 0, 2], z=[4, 3, 2, 1], x=[0, 10, 5, 3]
    ),
    "points of each view": points("p", "q", z=[[4, 3], [2, 1], [0, 0]], y=[[6, 0], [5, 1], [2, 2]]),
    "planes of each setup": points("p", "q", timepoint=[[2, 1], [1, 0]]),
}


def write_views(folder: Path, shape: tuple[int, ...], n: int, *, moved: bool = False) -> Path:
    """Write documents of views, without blocks, and their XML; return the path of the XML."""
    root = folder / "dataset.n5"
    document: dict[str, Any] = {"dataType": "uint16", "compression": {"type": "gzip"}}
    blocks = BLOCKS if shape == SHAPE else (64, 128, 128)
    document |= {"dimensions": shape[::-1], "blockSize": blocks[::-1]}
    for setup in range(n):
        for timepoint in range(N_TIMEPOINTS if shape == SHAPE else 1):
            level = root / f"setup{setup}" / f"timepoint{timepoint}" / "s0"
            level.mkdir(parents=True)
            level.joinpath("attributes.json").write_text(json.dumps(document))
    root.joinpath("attributes.json").write_text('{"n5": "2.5.1"}')
    setups = "".join(
        f"<ViewSetup><id>{k}</id><name>tile {k}</name><voxelSize><unit>um</unit>"
        "<size>0.5 0.5 1</size></voxelSize></ViewSetup>"
        for k in range(n)
    )
    places = "".join(
        f'<ViewRegistration setup="{k}" timepoint="0"><ViewTransform type="affine"><affine>'
        f"0.5 0 0 {9000 * k} 0 0.5 0 0 0 0 1 0</affine></ViewTransform></ViewRegistration>"
        for k in range(n if moved else 0)
    )
    loader = '<ImageLoader format="bdv.n5"><n5 type="relative">dataset.n5</n5></ImageLoader>'
    folder.joinpath("d.xml").write_text(
        f"<SpimData><SequenceDescription>{loader}<ViewSetups>{setups}</ViewSetups>"
        f"</SequenceDescription><ViewRegistrations>{places}</ViewRegistrations></SpimData>"
    )
    return folder / "d.xml"


@pytest.fixture(scope="module")
def xml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = write_views(tmp_path_factory.mktemp("views"), SHAPE, N_SETUPS)
    for setup in range(N_SETUPS):
        for timepoint in range(N_TIMEPOINTS):
            path = f"setup{setup}/timepoint{timepoint}/s0"
            if (setup, timepoint) == MISSING:
                file.parent.joinpath("dataset.n5", path, "attributes.json").unlink()
                file.parent.joinpath("dataset.n5", path).rmdir()
                continue
            array: Any = n5zarr.open(file.parent / "dataset.n5" / path, mode="r+")
            array[...] = VALUES[setup, timepoint]
    return file


# ----------------------------------------------------------------------------- opening costs little


def test_opening_costs_the_views_and_not_their_blocks(tmp_path: Path) -> None:
    """Opening 20 views of a large tile takes less than 20 MiB, in few chunks."""
    shape = (28672, 10640, 14192)
    xml = write_views(tmp_path, shape, 20, moved=True)
    n5zarr.open_bdv(xml)  # imports
    with traced() as memory:
        tree: Any = n5zarr.open_bdv(xml)
    assert memory.peak < 20 * 2**20
    data = tree["setup19/s0/data"]
    n_chunks = math.prod(map(len, data.chunks))
    assert 1000 < n_chunks <= 20_000
    blocks = zip(data.chunks[1:], (64, 128, 128), strict=True)
    assert all(sizes[0] % block == 0 for sizes, block in blocks)
    assert float(data["x"][0]) == 9000 * 19
    part = data.isel(timepoint=0, z=28671, y=slice(10600, None), x=slice(0, 3))
    assert part.compute().shape == (40, 3)


def test_chunks_of_dask_are_joined_blocks(tmp_path: Path) -> None:
    """Up to dask's ``array.chunk-size``."""
    data: Any = n5zarr.open_bdv(write_views(tmp_path, (1000, 2000, 3000), 1))["s0/data"]
    sizes = [chunks[0] for chunks in data.chunks]
    assert sizes[:2] == [1, 1]
    assert all(size % block == 0 for size, block in zip(sizes[2:], (64, 128, 128), strict=True))
    assert 2**26 < math.prod(sizes) * 2 <= 2**27
    with dask.config.set({"array.chunk-size": "16MiB"}):
        data = n5zarr.open_bdv(tmp_path / "d.xml")["s0/data"]
    assert 2**23 < math.prod(chunks[0] for chunks in data.chunks) * 2 <= 2**24


def test_chunks_have_the_meaning_of_xarrays(xml: Path) -> None:
    sizes = ((1, 1), (1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 3))
    blocks: Any = dict(zip(("setup", "timepoint", *"zyx"), sizes, strict=True))
    cases: Any = (
        ({}, blocks), ({"x": 8}, blocks | {"x": (8, 3)}),
        (-1, {dim: (n,) for dim, n in zip(blocks, VALUES.shape, strict=True)}), (None, {}),
    )  # fmt: skip
    for chunks, expected in cases:
        mine: Any = n5zarr.open_bdv(xml, chunks=chunks)["s0/data"]
        theirs = xr.open_dataset(xml, engine="n5", group="s0", chunks=chunks)["data"]
        assert mine.chunksizes == theirs.chunksizes == expected
        np.testing.assert_array_equal(mine, VALUES)
        np.testing.assert_array_equal(theirs, VALUES)


def test_without_dask_elements_are_kept_when_loaded(xml: Path) -> None:
    data: Any = n5zarr.open_bdv(xml, chunks=None)["s0/data"]
    part = data.isel(z=2)
    part.load()[...] = 0  # in its own memory
    np.testing.assert_array_equal(data, VALUES)
    assert np.shares_memory(data.values, data.values)


# ------------------------------------------------------------------------------------- selections


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("chunks", [None, "auto", {}])
def test_a_part_is_that_of_numpy(xml: Path, part: dict[str, Any], chunks: Any) -> None:
    data: Any = n5zarr.open_bdv(xml, chunks=chunks)["s0/data"]
    stored = xr.DataArray(VALUES, dims=data.dims)
    xr.testing.assert_equal(data.drop_vars(data.coords).isel(part).load(), stored.isel(part))


def test_parts_of_parts(xml: Path) -> None:
    lazy: Any = xr.open_dataset(xml, engine="n5", group="s0", cache=False)["data"]
    lazy = lazy.drop_vars(lazy.coords)
    stored = xr.DataArray(VALUES, dims=lazy.dims)
    some = points("p", setup=[1, 0], x=[2, 3])
    for first, second in (
        ({"timepoint": 2}, some),
        (some, {"p": 1, "timepoint": [1, 0]}),
        ({"timepoint": slice(1, 3), "z": [3, 0]}, {"timepoint": 1, "z": slice(None, None, -1)}),
    ):
        expected = stored.isel(first).isel(second)
        xr.testing.assert_equal(lazy.isel(first).isel(second).load(), expected)


@pytest.mark.parametrize("dims", [("timepoint", "x"), ("setup", "x"), ("z", "x")])
def test_points_of_some_axes_leave_the_others_whole(xml: Path, dims: tuple[str, str]) -> None:
    """Points of xarray, with setups, with time points, or with neither."""
    lazy: Any = xr.open_dataset(xml, engine="n5", group="s0", cache=False)["data"]
    lazy = lazy.drop_vars(lazy.coords)
    stored = xr.DataArray(VALUES, dims=lazy.dims)
    some = points("p", **{dim: [1, 0, 1] for dim in dims})
    xr.testing.assert_equal(lazy.isel(some).load(), stored.isel(some))
    part = {"setup": slice(None, None, -1), "timepoint": slice(1, None), **some}
    xr.testing.assert_equal(lazy.isel(part).load(), stored.isel(part))


def test_loading_in_an_event_loop(xml: Path) -> None:
    """xarray's load_async waits for the elements without keeping the loop."""
    lazy: Any = xr.open_dataset(xml, engine="n5", group="s0", cache=False)
    one: Any = xr.open_dataset(xml.parent / "dataset.n5", engine="n5", group="setup0/timepoint0/s0")

    async def load() -> tuple[Any, Any]:
        return await asyncio.gather(lazy.load_async(), one.load_async())

    both, first = asyncio.run(load())
    np.testing.assert_array_equal(both["data"], VALUES)
    np.testing.assert_array_equal(first[next(iter(first.data_vars))], VALUES[0, 0])


@pytest.mark.each_of(3)
@pytest.mark.parametrize("axis_order", ["C", "F"])
@pytest.mark.parametrize("scheduler", ["threads", "processes", "synchronous"])
def test_all_of_dasks_schedulers_read_it(xml: Path, scheduler: str, axis_order: Any) -> None:
    data: Any = n5zarr.open_bdv(xml, axis_order=axis_order)["s0/data"]
    context = {"multiprocessing.context": METHOD}
    with dask.config.set(context, scheduler=scheduler, num_workers=2):
        sums = data.astype("i8").sum("x").transpose(..., "z", "y").compute()
    np.testing.assert_array_equal(sums, VALUES.sum(-1, "i8"))


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_pickles_read_the_same(xml: Path, chunks: Any) -> None:
    tree: Any = pickle.loads(pickle.dumps(n5zarr.open_bdv(xml, chunks=chunks)))
    np.testing.assert_array_equal(tree["s0/data"], VALUES)


# ---------------------------------------------------------------------------------------- writing


def test_views_are_written(xml: Path, tmp_path: Path) -> None:
    ds: Any = n5zarr.open_bdv(xml)["s0"].to_dataset().drop_vars("setup_name")
    ds.to_zarr(tmp_path / "o.zarr", consolidated=False)
    again = xr.open_zarr(tmp_path / "o.zarr", consolidated=False)
    np.testing.assert_array_equal(again["data"], VALUES)
    assert again["data"].encoding["chunks"] == (1, 1, *BLOCKS)
    n5zarr.to_n5(ds[["data"]], tmp_path / "o.n5")
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "o.n5", path="data"), VALUES)


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_the_source_of_lazy_data_is_not_removed(xml: Path, chunks: Any) -> None:
    ds: Any = n5zarr.open_bdv(xml, chunks=chunks)["s0"].to_dataset()
    with pytest.raises(n5zarr.N5Error, match=r"would remove the unread source of 'data'.*setup0"):
        n5zarr.to_n5(ds[["data"]], xml.parent / "dataset.n5", mode="w")
    np.testing.assert_array_equal(ds["data"], VALUES)


@pytest.mark.parametrize("chunks", ["big", "1MiB", (1, 2), 0, -2, 1.5])
def test_chunks_of_a_wrong_kind_are_refused(chunks: Any) -> None:
    with pytest.raises(n5zarr.N5Error, match="chunks: expected 'auto', a number") as err:
        n5zarr.open_bdv("dataset.xml", chunks=chunks)
    assert err.value.kind == "option"
