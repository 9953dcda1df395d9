"""BigDataViewer's XML may name images of OME-Zarr on S3, for MoBIE's and BigStitcher's loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import n5zarr
from n5zarr.storage.place import place_of
from n5zarr.viewing.serve.location import ServedLocation
from tests.bigdataviewer import bigstitcher_zarr as written
from tests.contract import bigstitcher as project
from tests.remote.conftest import chosen_options, upload

BUCKET = "omezarr"


@pytest.fixture(scope="module")
def folder(s3_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project on local disk, whose images are also on S3, for everybody."""
    folder = tmp_path_factory.mktemp("project")
    written.write_project(folder, written.KINDS["sharded"], [0, 1])
    upload(s3_server, BUCKET, folder / "dataset.ome.zarr", public=True)
    return folder


def written_xml(folder: Path, server: str, name: str, key: str) -> Path:
    """Write a project whose loader is MoBIE's: XmlN5S3OmeZarrImageLoader of mobie-io, 2021."""
    loader = f"""<ImageLoader format="{name}">
      <Key>{key}</Key>
      <SigningRegion>us-west-2</SigningRegion>
      <ServiceEndpoint>{server}</ServiceEndpoint>
      <BucketName>{BUCKET}</BucketName>
    </ImageLoader>"""
    xml = folder / "remote.xml"
    text = project.project_xml(numbers=[0]).replace(project.PATTERN, "0")
    xml.write_text(written.with_loader(text, loader))
    return xml


@pytest.mark.parametrize("name", ["bdv.ome.zarr.s3", "ome.zarr.s3"])
def test_mobies_loader_names_an_image_on_s3(
    s3_server: str, folder: Path, tmp_path: Path, name: str
) -> None:
    xml = written_xml(tmp_path, s3_server, name, "dataset.ome.zarr/s0-t0.zarr")
    for tree in (n5zarr.open_bdv(xml), xr.open_datatree(xml, engine="n5")):
        data: Any = tree["s0/data"]
        np.testing.assert_array_equal(data[0, 0], project.elements(0, 0, 0))
        assert data["channel"].values.tolist() == ["GFP"]


def test_an_image_on_s3_is_converted_and_shown(
    s3_server: str, folder: Path, tmp_path: Path
) -> None:
    xml = written_xml(tmp_path, s3_server, "ome.zarr.s3", "dataset.ome.zarr/s0-t0.zarr")
    n5zarr.convert(xml, tmp_path / "o.n5", level=1)
    copy: Any = n5zarr.open(tmp_path / "o.n5", path="setup0/timepoint0/s1")
    np.testing.assert_array_equal(copy[...], project.elements(0, 0, 1))
    picture = np.asarray(n5zarr.thumbnail(xml))
    assert picture.std() > 0
    served = ServedLocation(place_of(xml))
    assert [image.path for image in served.images().images] == ["left_green"]
    assert served.first_dataset() == "setup0/timepoint0/s0"


@pytest.mark.parametrize("name", ["bdv.ome.zarr.s3", "bdv.n5.s3"])
def test_a_missing_container_on_s3_is_told(s3_server: str, tmp_path: Path, name: str) -> None:
    xml = written_xml(tmp_path, s3_server, name, "none.zarr")
    with pytest.raises(FileNotFoundError, match=r"remote\.xml.*none\.zarr"):
        n5zarr.open_bdv(xml)


@pytest.mark.filterwarnings("ignore:.*the registration turns or shears:n5zarr.N5Warning")
def test_bigstitchers_loader_names_a_bucket(s3_server: str, folder: Path, tmp_path: Path) -> None:
    """Version 1.0 names the bucket, later ones have a URL."""
    local = folder / "dataset.xml"
    expected = n5zarr.open_bdv(local).load()
    for version, place in (
        ("1.0", f'<s3bucket>{BUCKET}</s3bucket><zarr type="absolute">/dataset.ome.zarr/</zarr>'),
        ("3.0", f'<zarr type="absolute">s3://{BUCKET}/dataset.ome.zarr/</zarr>'),
    ):
        text = local.read_text().replace('<zarr type="relative">dataset.ome.zarr</zarr>', place)
        xml = tmp_path / f"{version}.xml"
        xml.write_text(text)
        opened = n5zarr.open_bdv(xml, storage_options=chosen_options(s3_server))
        xr.testing.assert_identical(opened.load(), expected)
