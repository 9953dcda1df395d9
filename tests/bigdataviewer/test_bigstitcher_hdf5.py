"""A project in BigDataViewer's HDF5 is the same as in N5.

Layout: bigdataviewer-core of 2026-06-15 (commit 19911bd6), ``bdv.img.hdf5.Util`` (names),
``XmlIoHdf5ImageLoader``, ``Hdf5ImageLoader`` (``dataType``; without it int16 with the bits of
uint16), ``Partition`` (files that the first one links to).
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.bigdataviewer.levels import Hdf5Views
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.tools.hdf5_file import hdf5_file
from tests.bigdataviewer.bigstitcher_zarr import with_loader
from tests.bigdataviewer.conftest import (
    check_that_commands_print_the_same,
    check_that_viewers_show_the_same,
)
from tests.command import printed
from tests.contract import bigstitcher as project
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS, elements, levels

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*the registration turns or shears:n5zarr.N5Warning"
)
LOADER = '<ImageLoader format="bdv.hdf5"><hdf5 type="relative">my %20.h5</hdf5></ImageLoader>'
CHUNKS = (2, 3, 5)


def write_project(folder: Path, *, states_type: bool = False, partitions: bool = False) -> Path:
    file = folder / "my %20.h5"
    with h5py.File(file, "w") as main:
        for number, setup in SETUPS.items():
            factors = np.array(levels(setup), float)
            main[f"s{number:02}/resolutions"] = factors
            main[f"s{number:02}/subdivisions"] = np.array([CHUNKS[::-1]] * len(factors), "i4")
            if states_type:
                main[f"s{number:02}"].attrs["dataType"] = "uint16"
        for timepoint in TIMEPOINTS:
            name = f"part-{timepoint}.h5"
            with h5py.File(folder / name, "w") as part:
                target = part if partitions else main
                for number, setup in SETUPS.items():
                    if (number, timepoint) == MISSING:
                        continue
                    path = f"t{timepoint:05}/s{number:02}"
                    for level in range(len(levels(setup))):
                        values = elements(number, timepoint, level)
                        target.create_dataset(
                            f"{path}/{level}/cells",
                            data=values if states_type else values.view("i2"),
                            chunks=tuple(map(min, CHUNKS, values.shape)),
                            compression="gzip",
                        )
                    if partitions:
                        main[path] = h5py.ExternalLink(name, path)
    xml = folder / "dataset.xml"
    xml.write_text(with_loader(project.project_xml(), LOADER))
    return xml


@pytest.fixture(scope="module")
def xml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("hdf5"))


@pytest.mark.each_of(3)
@pytest.mark.parametrize("states_type", [False, True])
@pytest.mark.parametrize("partitions", [False, True])
def test_views_are_those_of_n5(
    tmp_path: Path, n5_tree: Any, states_type: bool, partitions: bool
) -> None:
    xml = write_project(tmp_path, states_type=states_type, partitions=partitions)
    xr.testing.assert_identical(n5zarr.open_bdv(xml).load(), n5_tree)
    xr.testing.assert_identical(xr.open_datatree(xml, engine="n5").load(), n5_tree)


def test_large_values_keep_their_bits(tmp_path: Path) -> None:
    xml = write_project(tmp_path)
    with h5py.File(tmp_path / "my %20.h5", "r+") as file:
        file["t00002/s00/0/cells"][0, 0, :3] = [-1, -32768, 32767]
    data: Any = n5zarr.open_bdv(xml)["setup0/s0/data"]
    assert data.sel(timepoint=2)[0, 0, :3].values.tolist() == [65535, 32768, 32767]


def test_the_commands_print_the_same(xml: Path, n5_project: Path) -> None:
    check_that_commands_print_the_same(xml, n5_project)
    node = json.loads(printed("tree", xml, "--json", "--size"))
    for name in ("setup1", "timepoint2", "s0"):
        node = next(child for child in node["children"] if child["name"] == name)
    with h5py.File(xml.parent / "my %20.h5") as file:
        size = file["t00002/s01/0/cells"].id.get_storage_size()
    assert (node["n_blocks_stored"], node["n_bytes_stored"]) == (6, size)
    assert (node["dimensions_n5"], node["block_size_n5"]) == ([11, 5, 2], [5, 3, 2])


def test_copies_and_viewers_hold_the_same(xml: Path, n5_project: Path, tmp_path: Path) -> None:
    check_that_viewers_show_the_same(xml, n5_project)
    n5zarr.convert(xml, tmp_path / "o.zarr", ome=True)
    n5zarr.convert(xml, tmp_path / "o.n5")
    array: Any = zarr.open_group(tmp_path / "o.zarr")["right_green/s1"]
    np.testing.assert_array_equal(array[1], elements(1, 2, 1))
    copy: Any = n5zarr.open(tmp_path / "o.n5", path="setup1/timepoint2/s1")
    np.testing.assert_array_equal(copy[...], elements(1, 2, 1))


def test_more_views_than_can_be_counted_are_an_error(tmp_path: Path) -> None:
    text = with_loader(project.project_xml(), LOADER)
    setup = text[text.index("<ViewSetup>") : text.index("</ViewSetup>") + len("</ViewSetup>")]
    more = "".join(setup.replace("<id>0</id>", f"<id>{n}</id>") for n in range(20))
    xml = tmp_path / "dataset.xml"
    xml.write_text(text.replace(setup, more).replace(project.PATTERN, "0-99999"))
    with pytest.raises(N5Error, match=r"dataset\.xml: expected ViewSetups and Timepoints, at most"):
        n5zarr.open_bdv(xml)


def test_mistakes_are_told(tmp_path: Path) -> None:
    xml = write_project(tmp_path)
    file = tmp_path / "my %20.h5"
    with h5py.File(file, "r+") as opened:
        del opened["t00002/s00/0/cells"]
        opened["t00002/s00/0/cells"] = np.zeros((3, 5), "u2")
    with pytest.raises(N5UnsupportedError, match=r"t00002/s00/0/cells: expected three axes"):
        n5zarr.open_bdv(xml)
    file.write_text("no")
    with pytest.raises(OSError, match=r"my %20\.h5: expected a file of HDF5"):
        n5zarr.open_bdv(xml)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"dataset\.xml.*my %20\.h5"):
        n5zarr.open_bdv(xml)


@pytest.mark.parametrize(
    ("path", "node", "message"),
    [
        ("t00002/s00", h5py.SoftLink("/t00002/s00"), "expected a dataset, got a link that leads"),
        ("s00", h5py.SoftLink("/s00"), "s00: expected a dataset, got a link that leads nowhere"),
        ("s00/resolutions", None, "s00/resolutions: expected three factors .* got None"),
        ("s00/resolutions", np.ones(3), "s00/resolutions: expected three factors for each level"),
        ("t00002/s00/0/cells/a", np.ones(3), "t00002/s00/0/cells: expected a dataset, got a group"),
    ],
)
def test_broken_files_are_told(tmp_path: Path, path: str, node: Any, message: str) -> None:
    xml = write_project(tmp_path)
    with h5py.File(tmp_path / "my %20.h5", "r+") as file:
        del file[path.removesuffix("/a")]
        if node is not None:
            file[path] = node
    with pytest.raises(N5Error, match=message):
        n5zarr.open_bdv(xml)


def test_partitions_that_are_missing_have_no_data(tmp_path: Path) -> None:
    """As views that the XML lists as missing: HDF5 cannot follow the link to their file."""
    xml = write_project(tmp_path, partitions=True)
    (tmp_path / "part-5.h5").unlink()
    (tmp_path / "part-8.h5").unlink()
    (tmp_path / "part-8.h5").symlink_to("part-8.h5")  # to itself
    with pytest.warns(n5zarr.N5Warning, match="without data: 5, 8"):
        opened: Any = n5zarr.open_bdv(xml)["setup0/s0"]
    assert opened["present"].values.tolist() == [True, True, False, False]
    np.testing.assert_array_equal(opened["data"].sel(timepoint=2), elements(0, 2, 0))


def test_confined_views_have_no_elements_of_other_folders(tmp_path: Path) -> None:
    """A server shows partitions beside the file, and nothing that links lead to elsewhere."""
    folder, outside = tmp_path / "served", tmp_path / "outside"
    for each in (folder, outside):
        each.mkdir()
    values = np.arange(2 * 3 * 5, dtype="i2").reshape(2, 3, 5)
    (outside / "raw").write_bytes(values.tobytes())
    for part in (folder / "part.h5", outside / "part.h5"):
        with h5py.File(part, "w") as file:
            file["cells"] = values
    layout = h5py.VirtualLayout((2, 3, 5), "i2")
    layout[...] = h5py.VirtualSource(str(outside / "part.h5"), "cells", (2, 3, 5))
    main = folder / "main.h5"
    with h5py.File(main, "w") as file:
        for setup in range(4):
            file[f"s{setup:02}/resolutions"] = np.ones((1, 3))
        file["t00000/s00/0/cells"] = h5py.ExternalLink("part.h5", "cells")
        file["t00000/s01/0/cells"] = h5py.ExternalLink(str(outside / "part.h5"), "cells")
        file.create_dataset(
            "t00000/s02/0/cells", (2, 3, 5), "i2", external=[(str(outside / "raw"), 0, 60)]
        )
        file.create_virtual_dataset("t00000/s03/0/cells", layout)
    views = Hdf5Views(hdf5_file(str(main)), tuple((setup, 0) for setup in range(4)))
    box = (slice(None),) * 3
    for confined, expected in ((views, [1, 1, 1, 1]), (views.confined(), [1, 0, 0, 0])):
        found = [asyncio.run(confined.levels((setup, 0))).stored for setup in range(4)]
        assert [len(levels) for levels in found] == expected
        for shown in filter(None, found):
            np.testing.assert_array_equal(asyncio.run(shown[0].values(box)), values)


def test_hdf5_of_bigdataviewer_needs_its_xml(tmp_path: Path) -> None:
    xml = write_project(tmp_path)
    file = tmp_path / "my %20.h5"
    with pytest.raises(N5UnrepresentableError, match=r"expected the XML of BigDataViewer that"):
        n5zarr.convert(file, tmp_path / "o.n5")
    n5zarr.convert(xml, tmp_path / "o.n5")
    n5zarr.convert(file / "t00002/s00/0/cells", tmp_path / "one.n5/raw")
    for path in ("o.n5/setup0/timepoint2/s0", "one.n5/raw"):
        copy: Any = n5zarr.open(tmp_path / path)
        np.testing.assert_array_equal(copy[...], project.elements(0, 2, 0))
