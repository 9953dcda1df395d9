"""BigDataViewer's XML may name a container on S3, for MoBIE's and Mastodon's loaders."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.bigdataviewer.project import XmlFile, read_project
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.place import place_of
from n5zarr.viewing.serve.location import ServedLocation
from tests.command import CliRunner
from tests.contract import bigstitcher as project
from tests.remote import servers
from tests.remote.conftest import chosen_options, client, upload

KEY = "0.6.3/images/remote/prospr 1.n5"  # its folders are those of MoBIE's platybrowser-project
NUMBERS = (0, 1, 3)


@pytest.fixture(scope="module")
def bucket(s3_server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("project")
    project.write_project(folder, NUMBERS)
    upload(s3_server, "platybrowser", folder / "dataset.n5", name=KEY, public=True)
    return "platybrowser"


def s3_loader(endpoint: str, bucket: str, more: str = "") -> str:
    """Write the element of a loader as MoBIE does, of version 0.1 or of none."""
    return f"""<ImageLoader format="bdv.n5.s3"{' version="0.1"' if more else ""}>
      <Key>{KEY}</Key>
      <SigningRegion>us-west-2</SigningRegion>
      <ServiceEndpoint>{endpoint}</ServiceEndpoint>
      <BucketName>{bucket}</BucketName>{more}
    </ImageLoader>"""


def written(folder: Path, loader: str) -> Path:
    text = project.project_xml(numbers=NUMBERS)
    before, _, rest = text.partition("<ImageLoader")
    after = rest.partition("</ImageLoader>")[2]
    xml = folder / "remote.xml"
    xml.write_text(before + loader + after)
    return xml


@pytest.fixture
def xml(tmp_path: Path, bucket: str, proxied_s3: servers.Proxy) -> Path:
    more = "<Authentication>Anonymous</Authentication>"
    return written(tmp_path, s3_loader(proxied_s3.url, bucket, more))


def authorizations(proxy: servers.Proxy) -> list[str]:
    """Record the signatures of requests from now on."""
    seen: list[str] = []

    def note(headers: Any) -> bool:
        seen.append(headers.get("Authorization", ""))
        return False

    proxy.refused = note
    return seen


def test_the_views_are_opened_without_an_account(xml: Path, proxied_s3: servers.Proxy) -> None:
    signatures = authorizations(proxied_s3)
    tree: Any = n5zarr.open_bdv(xml)
    for number in NUMBERS:
        data = tree[f"setup{number}/s1/data"].sel(timepoint=2)
        np.testing.assert_array_equal(data, project.elements(number, 2, 1))
        assert data["channel"] == project.CHANNELS[project.SETUPS[number].channel]
    assert signatures
    assert not any(signatures)


@pytest.mark.long
def test_everything_takes_it(xml: Path, tmp_path: Path) -> None:
    from bioio import BioImage  # noqa: PLC0415 - takes a second

    from n5zarr.viewing.bioio import Reader  # noqa: PLC0415 - likewise

    values = project.elements(3, 8, 0)
    one = xr.open_dataset(xml, engine="n5", group="setup3/s0")
    np.testing.assert_array_equal(one["data"].sel(timepoint=8), values)
    opened: Any = xr.open_datatree(xml, chunks={})  # the engine is guessed
    np.testing.assert_array_equal(opened["setup3/s0/data"].sel(timepoint=8), values)
    for command in (["tree"], ["info"], ["info", "--json"]):
        result = CliRunner().invoke(app, [command[0], str(xml), *command[1:]])
        assert result.exit_code == 0, result.output
        assert "left green" in result.output
    n5zarr.convert(xml, tmp_path / "o.zarr", ome=True)
    found: Any = zarr.open_array(tmp_path / "o.zarr", path="left_red/s0", mode="r")
    np.testing.assert_array_equal(found[3], values)
    layers = {options["name"]: data for data, options, _ in n5zarr.napari_layers(str(xml))}
    np.testing.assert_array_equal(layers["remote.xml: left_red"][0][3], values)
    image = BioImage(str(xml), reader=Reader)
    image.set_scene("left_red")
    np.testing.assert_array_equal(image.get_image_data("ZYX", T=3), values)
    paths = {each.path for each in ServedLocation(place_of(str(xml))).images().images}
    assert paths >= {"left_red", "left_green", "right_green"}
    assert n5zarr.validate(str(xml)).ok


def test_the_user_may_have_an_account_and_another_service(
    tmp_path: Path, bucket: str, proxied_s3: servers.Proxy
) -> None:
    nowhere = "http://127.0.0.1:9"
    xml = written(tmp_path, s3_loader(nowhere, bucket))
    signatures = authorizations(proxied_s3)
    options = chosen_options(proxied_s3.url)
    tree: Any = n5zarr.open_bdv(xml, storage_options=options)
    np.testing.assert_array_equal(
        tree["setup0/s0/data"].sel(timepoint=0), project.elements(0, 0, 0)
    )
    assert signatures
    assert all("Credential=a/" in signature for signature in signatures)


def test_options_do_not_follow_an_xml_of_a_server_to_its_service(s3_server: str) -> None:
    client(s3_server).create_bucket(Bucket="foreign")
    body = project.project_xml().replace('"bdv.n5"', '"bdv.n5.s3"')
    elements = "<Key>a.n5</Key><BucketName>foreign</BucketName>"
    elements += "<ServiceEndpoint>https://elsewhere.example</ServiceEndpoint>"
    body = body.replace('<n5 type="relative">dataset.n5</n5>', elements)
    client(s3_server).put_object(Bucket="foreign", Key="d.xml", Body=body.encode())
    file = XmlFile.at(place_of("s3://foreign/d.xml", chosen_options(s3_server)))
    found = read_project(file).place
    assert found.location == "s3://foreign/a.n5"
    assert found.storage_options == {
        "anon": True,
        "client_kwargs": {"endpoint_url": "https://elsewhere.example"},
    }


@pytest.fixture(scope="module")
def files_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local")
    project.write_project(folder, [0])
    shutil.make_archive(str(folder / "d"), "zip", folder, "dataset.n5")
    assert n5zarr.open_bdv(folder / "dataset.xml")["s0/data"].shape[-3:] == (3, 5, 7)
    return folder


@pytest.mark.parametrize(
    "place",
    [
        "local://{0}/dataset.n5", "LOCAL://{0}/dataset.n5", "n5://{0}/dataset.n5",
        "file:{0}/dataset.n5", "file://{0}/dataset.n5", "{0}/dataset.n5|n5:",
        "dir::{0}/dataset.n5", "dir::file://{0}/dataset.n5", "simplecache::{0}/dataset.n5",
        "filecache::local://{0}/dataset.n5", "blockcache::file://{0}/dataset.n5",
        "zip://dataset.n5::{0}/d.zip", "zip://dataset.n5::file://{0}/d.zip", "zip://{0}/d.zip",
        "{0}/d.zip|zip:dataset.n5|n5:", "reference://::{0}/r.json", "reference://x", "memory://x",
        "http://127.0.0.1:9/x::{0}/dataset.n5", "s3::{0}/dataset.n5",
    ],
)  # fmt: skip
def test_an_xml_of_a_server_reads_no_file_of_this_machine(
    files_of_this_machine: Path, tmp_path: Path, place: str
) -> None:
    text = project.project_xml(numbers=[0])
    for element in ('<n5 type="absolute">{}</n5>', '<n5 type="relative">{}</n5>'):
        named = element.format(place.format(files_of_this_machine))
        changed = text.replace('<n5 type="relative">dataset.n5</n5>', named)
        assert changed != text
        (tmp_path / "d.xml").write_text(changed)
        with (
            servers.static(tmp_path) as url,
            pytest.raises((N5UnrepresentableError, FileNotFoundError), match="expected"),
        ):
            n5zarr.open_bdv(f"{url}/d.xml")


def test_mastodons_loader(tmp_path: Path, bucket: str, s3_server: str) -> None:
    """Mastodon's loader is read: a URL as it is, and a group of the setups."""
    url = f"s3://{bucket}"
    loader = '<ImageLoader format="bdv.n5.universe" version="1.0">'
    loader += f"<Url>{url}/{KEY}</Url><Dataset>/</Dataset></ImageLoader>"
    xml = written(tmp_path, loader)
    options = chosen_options(s3_server)
    tree: Any = n5zarr.open_bdv(xml, storage_options=options)
    values = project.elements(1, 5, 0)
    np.testing.assert_array_equal(tree["setup1/s0/data"].sel(timepoint=5), values)
