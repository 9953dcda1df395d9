"""Projects of MoBIE and Mastodon: one image of OME-Zarr, in which a setup is a channel.

MoBIE ``XmlN5OmeZarrImageLoader`` (element ``ome.zarr``), mobie-io of 2021 to 2023;
``N5OMEZarrImageLoader``: setups are channels, time points indices of ``t``; ``ZarrAxes``: also
images without ``z``. pybdv ``metadata.py`` writes this loader. Mastodon ``N5UniverseImgLoader`` and
``AbstractOmeZarrToViewerImgLoaderAdapter`` (commit 7ad23541, of 2026): the same, and HDF5.
"""

from __future__ import annotations

import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from tests.bigdataviewer import bigstitcher_zarr as written
from tests.bigdataviewer import test_bigstitcher_hdf5 as in_hdf5
from tests.bigdataviewer.conftest import check_that_viewers_show_the_same
from tests.bigdataviewer.loaders import N5Loader
from tests.command import printed
from tests.contract import bigstitcher as project
from tests.contract.bigstitcher import SETUPS

OME = '<ImageLoader format="bdv.ome.zarr"><ome.zarr type="relative">my %20.ome.zarr</ome.zarr>'


def mobie(
    folder: Path, attributes: Any, axes: str, setups: list[int], element: str = OME, group: str = ""
) -> Path:
    """Write one image: setups 0 and 3 of the project as channels, its time points 0 and 2."""
    root = folder / "my %20.ome.zarr" / group
    zarr.create_group(str(root), zarr_format=2, attributes=attributes)
    for level in (0, 1):
        values = np.array([[project.elements(s, t, level) for s in setups] for t in (0, 2)])
        values = values if "t" in axes else values[0]
        values = values if "c" in axes else values[..., 0, :, :, :]
        values = values if "z" in axes else values[..., 1, :, :]
        array = zarr.create_array(str(root), name=str(level), data=values, zarr_format=2)
        assert array.ndim == len(axes)
    text = project.project_xml(numbers=setups)
    for number, setup in enumerate(setups):
        text = text.replace(f'setup="{setup}"', f'setup="{number}"')
        name = "</id>\n        <name>"
        text = text.replace(f"<id>{setup}{name}", f"<id>{number}{name}")
    text = re.sub("<integerpattern>.*<", "<integerpattern>0-1<", text)
    text = text.replace('timepoint="2"', 'timepoint="1"')
    xml = folder / "dataset.xml"
    xml.write_text(written.with_loader(text, f"{element}</ImageLoader>"))
    return xml


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    ("version", "axes"),
    [
        ("0.1", "tczyx"),
        *product(("0.3", "0.4"), ("tczyx", "czyx", "tzyx", "zyx", "tcyx", "cyx", "tyx", "yx")),
    ],
)
def test_channels_of_an_image_are_setups(tmp_path: Path, version: str, axes: str) -> None:
    attributes: dict[str, Any] = written.image_attributes(0, len(axes))
    image = attributes["multiscales"][0]
    image["axes"] = [{"name": axis} if version == "0.4" else axis for axis in axes]
    if version == "0.1":
        del image["axes"]
    if version != "0.4":  # shapes tell the factors
        image["datasets"] = [{"path": "0"}, {"path": "1"}]
    setups = [0, 3] if "c" in axes else [0]
    xml = mobie(tmp_path, attributes, axes, setups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)  # of time points without data
        opened: Any = n5zarr.open_bdv(xml)
    for level in (0, 1):
        for number, setup in enumerate(setups):
            # setups differ in position, so that each has a node; one setup alone is a dimension
            node = opened[f"setup{number}/s{level}"] if "c" in axes else opened[f"s{level}"]
            data = node["data"] if "c" in axes else node["data"].isel(setup=0)
            assert data["channel"].item() == project.CHANNELS[SETUPS[setup].channel]
            assert data["x"].values[1] - data["x"].values[0] == pytest.approx(0.2 * (level + 1))
            for index, timepoint in enumerate((0, 2)[: 2 if "t" in axes else 1]):
                expected = project.elements(setup, timepoint, level)
                expected = expected if "z" in axes else expected[1:2]
                np.testing.assert_array_equal(data.isel(timepoint=index), expected)


def attributes(axes: str) -> dict[str, Any]:
    found: dict[str, Any] = written.image_attributes(0, len(axes))
    found["multiscales"][0]["axes"] = [{"name": axis} for axis in axes]
    return found


@pytest.fixture(scope="module", params=["tczyx", "tcyx"])
def xml(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mobie")
    return mobie(folder, attributes(request.param), request.param, [0, 3])


def elements(xml: Path, setup: int, timepoint: int, level: int) -> np.ndarray[Any, Any]:
    """Return the elements of a view, by its numbers in the XML; of plane 1 if there is no ``z``."""
    values = project.elements((0, 3)[setup], (0, 2)[timepoint], level)
    shape = zarr.open_array(str(xml.parent / "my %20.ome.zarr"), path="0").shape
    return values if len(shape) == 5 else values[1:2]


def test_conversions_hold_the_same(xml: Path, tmp_path: Path) -> None:
    n5zarr.convert(xml, tmp_path / "o.n5")
    n5zarr.convert(xml, tmp_path / "o.zarr")
    n5zarr.convert(xml, tmp_path / "ome.zarr", ome=True)
    plain: Any = zarr.open_group(tmp_path / "o.zarr")
    java = N5Loader(tmp_path / "o.n5")
    for setup, name in enumerate(("left_green", "left_red")):
        assert java.data_type(setup) == "uint16"
        assert java.resolutions(setup) == project.levels(SETUPS[0])
        for level in (0, 1):
            image: Any = zarr.open_group(tmp_path / "ome.zarr")[f"{name}/s{level}"]
            for timepoint in (0, 1):
                path = f"setup{setup}/timepoint{timepoint}/s{level}"
                expected = elements(xml, setup, timepoint, level)
                copies: list[Any] = [n5zarr.open(tmp_path / "o.n5", path=path), plain[path]]
                copies.append(java.level(setup, timepoint, level).values)
                for array in (*copies, image[timepoint]):
                    np.testing.assert_array_equal(array[...], expected)
                assert plain[path].compressors  # not raw, as the blocks are


def test_viewers_show_the_same(xml: Path, tmp_path: Path) -> None:
    """As those of a copy in N5."""
    n5zarr.convert(xml, tmp_path / "dataset.n5")
    copy = tmp_path / "dataset.xml"
    loader = '<ImageLoader format="bdv.n5"><n5 type="relative">dataset.n5</n5></ImageLoader>'
    copy.write_text(written.with_loader(xml.read_text(), loader))
    check_that_viewers_show_the_same(xml, copy)
    printed("thumbnail", xml, "--all", "-o", tmp_path / "images.png")
    assert (tmp_path / "images.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("group", ["", "em/image"])
def test_mastodons_loader_names_an_image(tmp_path: Path, group: str) -> None:
    element = '<ImageLoader format="bdv.n5.universe" version="1.0">'
    element += f"<Url>{tmp_path}/my %20.ome.zarr</Url><Dataset>/{group}</Dataset>"
    xml = mobie(tmp_path, attributes("tczyx"), "tczyx", [0, 3], element, group)
    opened: Any = n5zarr.open_bdv(xml)
    for setup in (0, 1):
        for timepoint in (0, 1):
            data = opened[f"setup{setup}/s1/data"].sel(timepoint=timepoint)
            np.testing.assert_array_equal(data, project.elements(3 * setup, 2 * timepoint, 1))


@pytest.mark.filterwarnings("ignore:.*the registration turns or shears:n5zarr.N5Warning")
def test_mastodons_loader_names_hdf5(tmp_path: Path, n5_tree: Any) -> None:
    xml = in_hdf5.write_project(tmp_path)
    url = f"<Url>{tmp_path}/my %20.h5</Url>"
    element = f'<ImageLoader format="bdv.n5.universe">{url}<Dataset>/</Dataset></ImageLoader>'
    xml.write_text(written.with_loader(project.project_xml(), element))
    xr.testing.assert_identical(n5zarr.open_bdv(xml).load(), n5_tree)
    xml.write_text(xml.read_text().replace("<Dataset>/<", "<Dataset>/bdv<"))
    with pytest.raises(n5zarr.N5Error, match=r"bdv\.n5\.universe with the Dataset 'bdv' in HDF5"):
        n5zarr.open_bdv(xml)


@pytest.mark.parametrize("axes", ["tzcyx", "zxy", "x"])
def test_other_axes_are_refused(tmp_path: Path, axes: str) -> None:
    root = tmp_path / "my %20.ome.zarr"
    zarr.create_group(str(root), zarr_format=2, attributes=attributes(axes))
    for level in ("0", "1"):
        shape = (2, 3, 5, 7, 11)[-len(axes) :]
        zarr.create_array(str(root), name=level, shape=shape, dtype="u1", zarr_format=2)
    xml = tmp_path / "dataset.xml"
    text = project.project_xml(numbers=[0])
    xml.write_text(written.with_loader(text, f"{OME}</ImageLoader>"))
    message = r"ome\.zarr.*: expected (the axes t, c, z, y, x or some|an array with the axes)"
    with pytest.raises(n5zarr.N5Error, match=message):
        n5zarr.open_bdv(xml)
