"""The project in the package, read by the rules of Java and with tensorstore."""

from __future__ import annotations

import importlib.util
import itertools
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.bigdataviewer import spimdata
from tests.contract.bigstitcher import read_list
from tests.contract.stored import by_tensorstore, contents

DATA = Path(__file__).parents[1] / "data"
XML = Path(n5zarr.sample_path("bigstitcher"))
FOLDER = XML.parent
VIEWS = [view for view in itertools.product(range(8), range(2)) if view != (7, 1)]

spec = importlib.util.spec_from_file_location("make_bigstitcher", DATA / "make_bigstitcher.py")
assert spec is not None
assert spec.loader is not None
make_bigstitcher: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_bigstitcher)


def elements(setup: int, timepoint: int, level: int = 0) -> Any:
    """Read a view with tensorstore, z first."""
    return by_tensorstore(FOLDER / f"dataset.n5/setup{setup}/timepoint{timepoint}/s{level}")


def unpacked(name: str, data: bytes) -> bytes:
    """Return the bytes of a document, or of a block without its compression."""
    if not name.rpartition("/")[2].isdecimal():
        return data
    n_header = 4 + 4 * data[3]
    return data[:n_header] + zlib.decompress(data[n_header:], 31)


def test_the_project_is_small() -> None:
    assert sum(map(len, contents(FOLDER).values())) < 300_000


def test_the_project_is_what_its_writer_makes_of_its_values(tmp_path: Path) -> None:
    for view in VIEWS:  # of exponentials, whose last bit differs between machines
        made = make_bigstitcher.record(*view).astype("i8")
        assert abs(made - elements(*view)).max() <= 16
    make_bigstitcher.record = elements
    make_bigstitcher.main(tmp_path / "project")
    # other versions of libdeflate compress to other bytes
    there, made = (
        {name: unpacked(name, data) for name, data in contents(folder).items()}
        for folder in (FOLDER, tmp_path / "project")
    )
    assert made == there


def test_java_reads_names_sizes_and_missing_views() -> None:
    project = spimdata.read(XML)
    assert (project.loader, project.container) == ("bdv.n5", "dataset.n5")
    assert (project.timepoints, project.missing) == ([0, 1], {(7, 1)})
    names = [(s.names["channel"], s.names["tile"]) for s in project.setups.values()]
    tiles = ["top left", "top right", "bottom left", "bottom right"]
    assert names == [*itertools.product(["GFP", "RFP"], tiles)]
    assert {(s.size, s.unit, s.voxel_size) for s in project.setups.values()} == {
        ((61, 53, 11), "um", (0.5, 0.5, 2.0))
    }
    assert sorted(project.transforms) == VIEWS
    for view in VIEWS:
        fine, coarse = elements(*view), elements(*view, 1)
        means = fine[:, :52, :60].reshape(11, 26, 2, 30, 2).mean(axis=(2, 4))
        assert np.abs(means - coarse[:, :26, :30]).max() <= 0.5


def test_tiles_fit_with_the_stitching_and_not_without() -> None:
    project = spimdata.read(XML)
    for channel, time in itertools.product((0, 4), (0, 1)):
        setups = [s for s in range(channel, channel + 4) if (s, time) in VIEWS]
        for a, b in itertools.combinations(setups, 2):
            stitched = misfit(project, (a, time), (b, time), 0)
            stage = misfit(project, (a, time), (b, time), 1)
            assert stitched < 15
            is_corner = a + b == 2 * channel + 3  # little lies in the overlap of these
            assert is_corner or stage > 30


def misfit(project: spimdata.SpimData, a: tuple[int, int], b: tuple[int, int], first: int) -> float:
    """Return the standard deviation of the difference of two views where they overlap."""
    corners = []
    for view in (a, b):
        transforms = [matrix for _, matrix in project.transforms[view][first:]]
        corner = np.sum([m[:, 3] for m in transforms], axis=0) / (1, 1, 4)  # elements, x y z
        corners.append(corner[::-1].astype(int))
    low = np.maximum(*corners)
    high = np.minimum(*corners) + np.array([11, 53, 61])
    parts = [
        elements(*view)[tuple(map(slice, low - corner, high - corner))].astype(float)
        for view, corner in zip((a, b), corners, strict=True)
    ]
    return float(np.std(parts[0] - parts[1]))


def test_interest_points_lie_on_beads_and_pairs_in_one_place() -> None:
    project = spimdata.read(XML)
    points = FOLDER / "interestpoints.n5"
    lists = {
        (setup, time): read_list(points, f"tpId_{time}_viewSetupId_{setup}/beads")
        for setup, time in itertools.product(range(4), range(2))
    }
    n_pairs = 0
    for view, (places, pairs) in lists.items():
        image = elements(*view)
        for place in places.values():
            assert image[tuple(np.round(place[::-1]).astype(int))] > 400
        for own, other, key, _ in pairs:
            time, setup, label = key.split(",")
            there = int(setup), int(time)
            assert label == "beads"
            worlds = [
                project.model(*v) @ (*lists[v][0][number], 1)
                for v, number in ((view, own), (there, other))
            ]
            assert np.abs(worlds[0] - worlds[1]).max() < 0.05  # they are rounded
            n_pairs += 1
    assert n_pairs > 30


def test_n5zarr_and_pydantic_bigstitcher_read_it() -> None:
    tree = n5zarr.open_bdv(XML)
    for setup, time in VIEWS:
        data = tree[f"setup{setup}/s0/data"].sel(timepoint=time)
        np.testing.assert_array_equal(data, elements(setup, time))
    assert not tree["setup7/s0"]["present"].sel(timepoint=1)
    assert n5zarr.validate(FOLDER / "dataset.n5", deep=True).findings == ()
    found = n5zarr.read_interest_points(XML)
    assert len(found.lists) == 8
    peer = pytest.importorskip("pydantic_bigstitcher")
    read = peer.SpimData2.from_xml(XML.read_bytes())
    assert len(read.sequence_description.view_setups.elements) == 8
    assert len(read.view_registrations.elements) == len(VIEWS)


def test_other_names_of_samples_are_refused() -> None:
    with pytest.raises(N5UnrepresentableError, match="'n5', 'bigstitcher', got 'stitcher'"):
        n5zarr.sample_path("stitcher")  # type: ignore[arg-type]
    assert n5zarr.sample_path("n5") == n5zarr.sample_path()
