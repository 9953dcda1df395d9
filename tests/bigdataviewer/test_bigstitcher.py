"""Views of a BigStitcher project are found by name and lie in their places."""

from __future__ import annotations

import itertools
import json
import re
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fsspec
import numpy as np
import pytest
import xarray as xr

import n5zarr
from n5zarr.bigdataviewer.description import parse_xml
from n5zarr.bigdataviewer.project import XmlFile
from n5zarr.cli.app import app
from n5zarr.metadata.inspect import describe_tree
from n5zarr.storage.place import place_of
from tests.command import CliRunner, printed
from tests.contract import bigstitcher as project
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS
from tests.unit.store.test_inspect import shapes_with_axes

TURNS = "ignore:.*the registration turns or shears:n5zarr.N5Warning"


# ----------------------------------------------------------------------------------------- views


def test_views_have_the_names_of_the_xml(n5_tree: Any) -> None:
    assert sorted(n5_tree.children) == [f"setup{number}" for number in SETUPS]
    for number, setup in SETUPS.items():
        for node in (n5_tree[f"setup{number}{level}"] for level in ("", "/s0", "/s1")):
            found = {name: node[name].item() for name in node.coords if node[name].ndim == 0}
            name, place = project.TILES[setup.tile]
            assert found == {
                "setup": number,
                "setup_name": setup.name,
                "channel": project.CHANNELS[setup.channel],
                "tile": name,
                "angle": project.ANGLES[setup.angle],
                "illumination": "0",  # which has no name
                **dict(zip(("tile_x", "tile_y", "tile_z"), map(float, place.split()), strict=True)),
            }
        assert n5_tree[f"setup{number}/s1/timepoint"].values.tolist() == [*TIMEPOINTS]
        present = n5_tree[f"setup{number}/s1/present"]
        assert present.dims == ("timepoint",)
        assert present.values.tolist() == [(number, t) != MISSING for t in TIMEPOINTS]


def test_views_are_found_by_name(n5_tree: Any) -> None:
    red = n5_tree.filter(lambda node: node.coords.get("channel") == "mCherry & 561")
    assert [n.path for n in red.leaves] == [f"/setup{s}/s{k}" for s in (3, 4) for k in (0, 1)]
    right = n5_tree.filter(
        lambda node: node.coords.get("tile") == "right" and node.coords.get("channel") == "GFP"
    )
    assert list(right.children) == ["setup1"]


def test_views_have_their_elements(n5_tree: Any) -> None:
    for (number, _), timepoint, level in itertools.product(SETUPS.items(), TIMEPOINTS, (0, 1)):
        data = n5_tree[f"setup{number}/s{level}/data"].sel(timepoint=timepoint)
        if (number, timepoint) == MISSING:
            assert not data.any()
        else:
            np.testing.assert_array_equal(data, project.elements(number, timepoint, level))


def test_tiles_lie_at_their_places_in_the_world(n5_tree: Any) -> None:
    """Tiles lie in the world where spimdata's ViewRegistration.updateModel puts them."""
    for number, setup in SETUPS.items():
        for level, by in enumerate(project.levels(setup)):
            data = n5_tree[f"setup{number}/s{level}/data"]
            assert data["x"].attrs == {"units": "um"}
            rest = np.reshape(data.attrs.get("registration", np.eye(3, 4)), (3, 4))
            assert ("registration" in data.attrs) == (setup.angle == 1)
            for corner in itertools.product(*((0, n - 1) for n in data.shape[1:])):
                at = data.isel(dict(zip("zyx", corner, strict=True)))
                position = rest @ [*(float(at[dim]) for dim in "xyz"), 1]
                # BigDataViewer's MipmapTransforms.getMipmapTransformDefault
                index = [i * f + (f - 1) / 2 for i, f in zip(corner[::-1], by, strict=True)]
                np.testing.assert_allclose(position, project.world(setup, *index), atol=1e-12)


def test_setups_that_are_alike_are_selected_by_name(n5_project: Path) -> None:
    container = alike(n5_project)
    with pytest.warns(n5zarr.N5Warning, match="omitted") as warned:
        tree: Any = n5zarr.open_bdv(container / "dataset.xml", registrations=False)
    assert [str(w.message).partition("dataset.xml: ")[2] for w in warned] == [
        "setups: the XML lists 0, 3, the container holds 0-1, 3-4, 7: omitted: 1, 4, 7",
        "timepoints: the XML lists 0, 2, 5, the container holds 0, 2, 5, 8: omitted: 8",
    ]
    data = tree["s0/data"]
    assert data.dims == ("setup", "timepoint", "z", "y", "x")
    assert data["present"].dims == ("setup", "timepoint")
    assert data["present"].values.tolist() == [[True, True, True], [True, True, False]]
    for name, number in (("GFP", 0), ("mCherry & 561", 3)):
        chosen = data.sel(channel=name, timepoint=2)
        assert int(chosen["setup"]) == number
        np.testing.assert_array_equal(chosen, project.elements(number, 2, 0))
    both = data.sel(tile="left").sel(channel="GFP", timepoint=5)
    np.testing.assert_array_equal(both, project.elements(0, 5, 0))
    assert data.sel(setup_name="left red")["setup"] == 3


def test_a_view_that_the_xml_calls_missing_is_not_shown(tmp_path: Path) -> None:
    """A view among MissingViews is absent, as spimdata's ViewDescription.isPresent says."""
    xml = project.write_project(tmp_path, [0])
    more = '<MissingViews><MissingView timepoint="2" setup="0" />'
    xml.write_text(xml.read_text().replace("<MissingViews>", more))
    data: Any = n5zarr.open_bdv(xml)["s0/data"]
    assert data["present"].values.tolist() == [[True, False, True, True]]
    assert not data.sel(setup=0, timepoint=2).any()
    np.testing.assert_array_equal(data.sel(setup=0, timepoint=5), project.elements(0, 5, 0))


def alike(xml: Path) -> Path:
    """Write XML that describes only two setups, of equal size, and three time points."""
    root = ElementTree.fromstring(xml.read_text())  # noqa: S314 - ours
    setups = root.find(".//ViewSetups")
    assert setups is not None
    for element in setups.findall("ViewSetup"):
        if element.findtext("id") not in ("0", "3"):
            setups.remove(element)
    folder = xml.parent / "alike"
    folder.mkdir()
    text = ElementTree.tostring(root, encoding="unicode").replace(project.PATTERN, "5, 2-0:2")
    text = text.replace(">dataset.n5<", ">../dataset.n5<")
    (folder / "dataset.xml").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("timepoints", "expected"),
    [
        ('type="range"><first>3</first><last>5</last>', (3, 4, 5)),
        ('type="pattern"><integerpattern></integerpattern>', (0,)),
        ('type="pattern"><integerpattern> 7, 9-3:4 ,10-12</integerpattern>', (5, 7, 9, 10, 11, 12)),
        ('type="pattern"><integerpattern>40-50:10,0,1-3</integerpattern>', (0, 1, 2, 3, 40, 50)),
        ('type="pattern"><integerpattern>1-a</integerpattern>', None),
        ('type="pattern"><integerpattern>1-9:0</integerpattern>', None),
        ('type="pattern"><integerpattern>0-2000000000</integerpattern>', None),
        ('type="list"><Timepoint><id>8</id></Timepoint><Timepoint><id>1</id></Timepoint>', (1, 8)),
        ('type="range"><first>3</first>', None),
        ('type="other">', None),
    ],
)
def test_time_points_are_parsed_as_in_java(timepoints: str, expected: Any) -> None:
    """Time points are parsed as by spimdata's IntegerPattern and XmlIoTimePoints."""
    loader = "<ImageLoader><n5>a.n5</n5></ImageLoader>"
    sequence = f"<SequenceDescription>{loader}<Timepoints {timepoints}</Timepoints>"
    text = f"<SpimData>{sequence}</SequenceDescription></SpimData>"
    description = parse_xml(text.encode())
    assert description is not None
    assert description.timepoints == expected


# -------------------------------------------------------------------- the XML as a place


@pytest.mark.filterwarnings(TURNS)
def test_the_engine_takes_the_xml(n5_project: Path, n5_tree: Any) -> None:
    opened = xr.open_datatree(n5_project, engine="n5")
    xr.testing.assert_identical(opened.load(), n5_tree.load())
    one = xr.open_dataset(n5_project, group="setup3/s1", chunks={})  # the engine is guessed
    assert one.chunksizes == {"timepoint": (1, 1, 1, 1), "z": (3,), "y": (3,), "x": (4,)}
    xr.testing.assert_identical(one.load(), n5_tree["setup3/s1"].to_dataset())
    without = xr.open_dataset(n5_project, group="/setup3/s1", drop_variables="present")
    assert set(one.variables) - set(without.variables) == {"present"}
    below = xr.open_datatree(n5_project, engine="n5", group="setup4")
    assert list(below.children) == ["s0", "s1"]
    ordered = xr.open_dataset(n5_project, engine="n5", group="setup4/s0", axis_order="F")
    assert ordered["data"].dims == ("timepoint", "x", "y", "z")
    with pytest.warns(n5zarr.N5Warning, match=r"open one with group=.*: setup0/s0, setup0/s1"):
        assert not xr.open_dataset(n5_project, engine="n5").variables
    with pytest.raises(FileNotFoundError, match=r"group: expected one of setup0/s0.*, got setup9"):
        xr.open_dataset(n5_project, engine="n5", group="setup9")


@pytest.mark.filterwarnings(TURNS)
def test_the_xml_may_be_a_url(n5_project: Path, n5_tree: Any) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(n5_project.parent), "/bigstitcher", recursive=True)
    try:
        remote = n5zarr.open_bdv("memory://bigstitcher/dataset.xml")
        xr.testing.assert_identical(remote.load(), n5_tree.load())
        one = xr.open_dataset("memory://bigstitcher/dataset.xml", engine="n5", group="setup1/s0")
        xr.testing.assert_identical(one.load(), n5_tree["setup1/s0"].to_dataset())
    finally:
        memory.rm("/bigstitcher", recursive=True)


def test_the_commands_take_the_xml(n5_project: Path, tmp_path: Path) -> None:
    lines = printed("tree", n5_project, "--depth", "1").splitlines()
    assert lines[1:] == [
        "├── setup0  left green, illumination 0, channel GFP, tile left, angle 0",
        "├── setup1  right green, illumination 0, channel GFP, tile right, angle 0",
        "├── setup3  left red, illumination 0, channel mCherry & 561, tile left, angle 0",
        "├── setup4  right red, illumination 0, channel mCherry & 561, tile right, angle 0",
        "└── setup7  left green turned, illumination 0, channel GFP, tile left, angle 90",
    ]
    rows = dict(line.split("  ", 1) for line in printed("info", n5_project).splitlines() if line)
    said = {name.strip(): value.strip() for name, value in rows.items()}
    assert said["time points"] == "0, 2, 5, 8"
    assert said["missing views"] == "setup 3 at 5"
    assert said["interest points"] == "none"
    assert said["setup 4"].endswith("11 x 5 x 2 voxels  of 0.2 x 0.3 x 1.5 um")
    described = json.loads(printed("info", n5_project, "--json"))["project"]
    assert described["missing_views"] == [{"setup": 3, "timepoint": 5}]
    assert described["setups"][1]["tile_location_n5"] == [1.4, 0.3, 0.0]
    (tmp_path / "other.xml").write_text("<a/>")
    cases = {"other": "BigDataViewer's XML", "missing": "the file does not exist"}
    for name, expected in cases.items():
        result = CliRunner().invoke(app, ["info", str(tmp_path / f"{name}.xml")])
        assert result.exit_code == 2
        assert expected in result.output


@pytest.mark.filterwarnings(TURNS)
def test_the_xml_may_name_a_container_elsewhere(
    n5_project: Path, tmp_path: Path, n5_tree: Any
) -> None:
    container = str(n5_project.parent / "dataset.n5")
    urls = (f"file:{container}", f"file://{container}")
    places = [(str(n5_project.parent), "dataset.n5"), *((".", each) for each in (container, *urls))]
    for base, location in places:
        text = project.project_xml().replace(">dataset.n5<", f">{location}<")
        text = text.replace('"relative">.<', f'"absolute">{base}<')
        (tmp_path / "elsewhere.xml").write_text(text)
        opened: Any = n5zarr.open_bdv(tmp_path / "elsewhere.xml")
        xr.testing.assert_identical(opened["setup4/s0"].load(), n5_tree["setup4/s0"].load())


# ------------------------------------------------------------------------------ mistakes


def test_more_time_points_than_can_be_counted_are_not_understood(tmp_path: Path) -> None:
    xml = project.write_project(tmp_path, [0])
    text = xml.read_text()
    for pattern in ("0-99999999999999999999", "99999999999999999999"):
        xml.write_text(text.replace(project.PATTERN, pattern))
        data: Any = n5zarr.open_bdv(xml)["s0/data"]
        assert data["timepoint"].values.tolist() == [*TIMEPOINTS]  # those that are there
        n5zarr.geometry(tmp_path / "dataset.n5", "setup0/timepoint0/s0")  # does not raise


@pytest.mark.parametrize(
    ("file", "location", "expected"),
    [
        ("http://a:1/d/e.xml?sig=t", "../x.n5", "http://a:1/x.n5?sig=t"),
        ("http://a:1/d/e.xml?sig=t", "../../b:2/x.n5", "http://a:1/b:2/x.n5?sig=t"),
        ("http://a:1/e.xml", "/x.n5", "http://a:1/x.n5"),
        ("http://a:1/d/e.xml?sig=t", "http://b/x.n5", "http://b/x.n5"),
        ("s3://bucket/d/e.xml", "../../other/x.n5", "s3://bucket/other/x.n5"),
        ("memory://d/e.xml", "../x.n5", "memory://x.n5"),
        ("memory://d/e.xml", "memory://x.n5", "memory://x.n5"),
        ("sftp://a/d/e.xml", "sftp://b/x.n5", "sftp://b/x.n5"),
        ("http://a/e.xml", "S3://b/x.n5", "S3://b/x.n5"),
        ("gs://a/e.xml", "abfs://c@b.net/x.n5", "abfs://c@b.net/x.n5"),
    ],
)
def test_an_xml_on_a_server_names_a_container_on_its_host(
    file: str, location: str, expected: str
) -> None:
    assert XmlFile.at(place_of(file)).beside(location) == expected


def test_options_are_for_the_host_of_the_xml_alone(tmp_path: Path) -> None:
    options = {"headers": {"Authorization": "secret"}}
    remote = XmlFile.at(place_of("https://me:pw@a/d/e.xml", options))
    for place, expected in (
        ("https://me:pw@a/d/x.n5", options),
        ("https://a/x.n5", options),
        ("https://b/x.n5", None),
        ("http://a/x.n5", None),
        ("simplecache::https://a/x.n5", None),
    ):
        assert remote.options_for(place) == expected
    local = XmlFile.at(place_of(tmp_path / "e.xml", options))
    assert local.options_for("https://b/x.n5") == options


def test_secrets_of_urls_are_not_shown(n5_project: Path) -> None:
    file = XmlFile.at(place_of("https://me:hidden@a/d/e.xml?sig=hidden"))
    assert str(file) == "https://a/d/e.xml"
    with pytest.raises(n5zarr.N5Error) as raised:
        n5zarr.N5Store("foo://me:hidden@a/d.n5")
    assert "hidden" not in str(raised.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", n5zarr.N5Warning)
        one = xr.open_dataset(n5_project, engine="n5", group="setup3/s1")
        tree = xr.open_datatree(n5_project, engine="n5")
    # xarray takes the place as it was given where there is none
    assert one.encoding["source"] == tree.encoding["source"] == str(n5_project)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.filterwarnings(TURNS)
def test_attributes_with_names_that_are_taken_are_left_out(tmp_path: Path, apart: bool) -> None:
    xml = project.write_project(tmp_path, SETUPS if apart else [0])
    names = ("data", "present", "s0", "setup", "setup_name", "timepoint", "tile_x", "x", "stage")
    more = "".join(f"<{name}>6</{name}>" for name in names)
    xml.write_text(xml.read_text().replace("<attributes>", f"<attributes>{more}"))
    with pytest.warns(n5zarr.N5Warning) as warned:
        node: Any = n5zarr.open_bdv(xml)["setup0/s0" if apart else "s0"]
    told = [str(w.message) for w in warned if "names are taken" in str(w.message)]
    assert [text.rpartition("taken: ")[2] for text in told] == [", ".join(sorted(names[:-1]))]
    assert np.ravel(node["stage"]).tolist() == ["6"]
    assert np.ravel(node["setup_name"]).tolist() == ["left green"]
    assert np.ravel(node["tile_x"]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("</SpimData>", ""), "not well-formed: "),
        (("<SpimData", "<!DOCTYPE a><SpimData"), "a DOCTYPE"),
        (("UTF-8", "no-such"), "not well-formed: "),
        (("<SpimData", '<SpimData xmlns="http://a"'), "the root element {http://a}SpimData"),
        ((">dataset.n5<", ">dataset.xml<"), "got the XML itself"),
    ],
)
def test_xml_that_cannot_be_read_is_told(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    xml = tmp_path / "dataset.xml"
    xml.write_text(project.project_xml().replace(*change))
    with pytest.raises(n5zarr.N5Error, match=re.escape(message)) as raised:
        n5zarr.open_bdv(xml)
    assert str(xml) in str(raised.value)
    assert "got the format bdv.n5" not in str(raised.value)


def test_backups_of_the_xml_are_places_too(tmp_path: Path) -> None:
    xml = project.write_project(tmp_path, [0])
    backup = xml.rename(tmp_path / "dataset.xml~12")
    data: Any = n5zarr.open_bdv(backup)["s0/data"]
    np.testing.assert_array_equal(data.sel(timepoint=2)[0], project.elements(0, 2, 0))
    assert xr.open_dataset(backup, engine="n5", group="s0").sizes["timepoint"] == 4
    assert n5zarr.read_interest_points(backup).lists.empty


# ------------------------------------------------------------------------------------ loaders


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("my data+#1.n5", 'bdv.n5" version="1.0"><n5 type="relative">my data+#1.n5'),
        # XmlHelpers.loadPathURI, whatever the version: relative paths are parts of a URI
        ("100%.n5", 'bdv.n5" version="1.0"><n5 type="relative">100%25.n5'),
        ("my data+#1.n5", 'bdv.n5" version="1.1"><n5 type="relative">my%20data+%231.n5'),
        ("my data.n5", 'bdv.n5" version="1.1"><n5 type="absolute">file:{folder}/my%20data.n5'),
        ("100%.n5", 'bdv.n5" version="1.1"><n5 type="relative">file:{folder}/100%25.n5'),
        ("100%25.n5", 'bdv.n5" version="1.1"><n5 type="absolute">{folder}/100%25.n5'),
        ("a:b.n5", 'bdv.n5" version="1.1"><n5 type="relative">./a:b.n5'),
        ("a:b.n5", 'bdv.n5" version="1.1"><n5 type="relative">a%3Ab.n5'),
        ("Ä b.n5", 'bdv.n5" version="1.1"><n5 type="relative">Ä%20b.n5'),
        # no URI, which Java refuses
        ("100%25 a.n5", 'bdv.n5" version="1.0"><n5 type="relative">100%25 a.n5'),
        ("100%.n5", 'bdv.n5" version="1.1"><n5 type="relative">100%.n5'),
        ("a%00.n5", 'bdv.n5" version="1.1"><n5 type="relative">a%00.n5'),
        # Mastodon XmlIoN5UniverseImgLoader: XmlHelpers.loadPath, of files
        ("100%25.n5", 'bdv.n5.universe" version="1.0"><Url type="relative">100%25.n5'),
        ("a.n5", 'bdv.n5.universe"><Url type="absolute">{folder}/a.n5'),
        ("a.n5", 'bdv.n5.universe"><Url>file://{folder}/a.n5'),
    ],
)
def test_loaders_name_the_container(tmp_path: Path, name: str, loader: str) -> None:
    xml = project.write_project(tmp_path, [0])
    (tmp_path / "dataset.n5").rename(tmp_path / name)
    tag = "Url" if "<Url" in loader else "n5"
    with_loader(xml, f'<ImageLoader format="{loader}</{tag}></ImageLoader>'.format(folder=tmp_path))
    data: Any = n5zarr.open_bdv(xml)["s0/data"]
    np.testing.assert_array_equal(data.sel(setup=0, timepoint=2), project.elements(0, 2, 0))


@pytest.mark.parametrize(
    "base",
    ['"relative">new%20%23data/', '"absolute">file:{folder}/new%20%23data',
     '"absolute">{folder}/new #data'],
)  # fmt: skip
def test_base_paths_are_parts_of_uris(tmp_path: Path, base: str) -> None:
    """``XmlIoAbstractSpimData`` reads ``BasePath`` by ``loadPathURI``, too."""
    folder = tmp_path / "new #data"
    folder.mkdir()
    project.write_project(folder, [0])
    project.write_list(folder / "interestpoints.n5", "tpId_2_viewSetupId_0/beads", {1: (2, 3, 5)})
    entry = '<ViewInterestPointsFile timepoint="2" setup="0" label="beads" params="" />'
    text = (folder / "dataset.xml").read_text().replace(">dataset.n5<", ">my%20%23data.n5<")
    (folder / "dataset.n5").rename(folder / "my #data.n5")
    text = text.replace('"relative">.<', f"{base}<".format(folder=tmp_path))
    listed = f"<ViewInterestPoints>{entry}</ViewInterestPoints>"
    text = text.replace("<ViewInterestPoints />", listed)
    xml = tmp_path / "elsewhere.xml"
    xml.write_text(text)
    (folder / "dataset.xml").unlink()
    data: Any = n5zarr.open_bdv(xml)["s0/data"]
    np.testing.assert_array_equal(data.sel(setup=0, timepoint=2), project.elements(0, 2, 0))
    assert len(n5zarr.read_interest_points(xml).points) == 1


@pytest.mark.parametrize("location", ["my%20%23data.n5", "file:{folder}/my%20%23data.n5"])
def test_the_xml_beside_a_container_names_it_by_a_uri(tmp_path: Path, location: str) -> None:
    xml = project.write_project(tmp_path, [0])
    container = (tmp_path / "dataset.n5").rename(tmp_path / "my #data.n5")
    text = xml.read_text().replace(">dataset.n5<", f">{location.format(folder=tmp_path)}<")
    xml.write_text(text)
    data: Any = n5zarr.open_bdv(container)["s0/data"]
    assert data["setup_name"].values.tolist() == [SETUPS[0].name]


def test_keys_of_object_stores_are_not_quoted() -> None:
    """``new URI("s3://...").getPath()`` is decoded; web servers get quoted paths."""
    form = '<S><SequenceDescription><ImageLoader><n5 type="{}">{}</n5></ImageLoader>{}'
    for kind, text, at, expected in (
        ("absolute", "s3://b/my%20data.n5", "s3://x/a.xml", "s3://b/my data.n5"),
        ("relative", "my%20%23data.n5", "s3://x/d/a.xml", "s3://x/d/my #data.n5"),
        ("relative", "my%20%3Fdata.n5", "http://x/d/a.xml?t=1", "http://x/d/my%20%3Fdata.n5?t=1"),
        ("absolute", "http://y/my%20data.n5", "http://x/a.xml", "http://y/my%20data.n5"),
    ):
        xml = form.format(kind, text, "</SequenceDescription></S>").encode()
        description = parse_xml(xml)
        assert description is not None
        assert XmlFile.at(place_of(at)).beside(description.loader.location) == expected


@pytest.mark.parametrize("group", ["images/bdv", "/images/bdv/"])
def test_mastodons_loader_names_a_group(tmp_path: Path, group: str) -> None:
    xml = project.write_project(tmp_path, [0])
    inner = tmp_path / "dataset.n5" / "images" / "bdv"
    inner.mkdir(parents=True)
    (tmp_path / "dataset.n5" / "setup0").rename(inner / "setup0")
    url = '<Url type="relative">dataset.n5</Url>'
    loader = f'<ImageLoader format="bdv.n5.universe">{url}<Dataset>{group}</Dataset></ImageLoader>'
    with_loader(xml, loader)
    values = project.elements(0, 2, 1)
    for tree in (n5zarr.open_bdv(xml), xr.open_datatree(xml, engine="n5")):
        found: Any = tree["s1/data"]
        np.testing.assert_array_equal(found.sel(setup=0, timepoint=2), values)
        assert found["channel"].values.tolist() == ["GFP"]
    # the XML is found beside the container, too
    at_group: Any = n5zarr.open_bdv(inner)["s1/data"]
    assert at_group["channel"].values.tolist() == ["GFP"]
    assert "setup0  left green" in printed("tree", xml)
    n5zarr.convert(xml, tmp_path / "o.zarr", ome=True)
    converted: Any = n5zarr.napari_layers(str(xml))
    assert [options["name"] for _, options, _ in converted] == ["dataset.xml: left_green"]


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ('bdv.ome.zarr"><zarr>a.zarr</zarr>',
            "the format bdv.ome.zarr without the element ome.zarr"),
        ('bdv.hdf5"><file>a.h5</file>', "the format bdv.hdf5 without the element hdf5"),
        ('bdv.zarr"><zarr>a.zarr</zarr>',
            "of N5, OME-Zarr or HDF5, got the format bdv.zarr; n5zarr reads bdv.n5, bdv.n5.s3, "),
        ('bdv.n5.s3"><Key>a.n5</Key>', "the format bdv.n5.s3 without the element BucketName"),
        ('bdv.n5.universe"><Dataset>a</Dataset>', "bdv.n5.universe without the element Url"),
        ('bdv.n5.s3"><Key>a</Key><BucketName>b</BucketName><ServiceEndpoint>/a</ServiceEndpoint>',
            "a ServiceEndpoint that is no web address, '/a'"),
    ],
)  # fmt: skip
def test_loaders_that_cannot_be_read_are_named(tmp_path: Path, loader: str, message: str) -> None:
    xml = project.write_project(tmp_path, [0])
    with_loader(xml, f'<ImageLoader format="{loader}</ImageLoader>')
    with pytest.raises(n5zarr.N5Error, match=re.escape(message)) as raised:
        n5zarr.open_bdv(xml)
    assert str(xml) in str(raised.value)


def with_loader(xml: Path, loader: str) -> None:
    before, _, rest = xml.read_text().partition("<ImageLoader")
    xml.write_text(before + loader + rest.partition("</ImageLoader>")[2])


# ------------------------------------------------------- views that the container does not hold


@pytest.mark.parametrize(
    ("pattern", "numbers", "expected"),
    [
        ("0-3", [0], ("timepoints: the XML lists 0-3, the container holds 0, 2, 5, 8: "
                     "omitted: 5, 8; without data: 1, 3")),
        ("0,2,5,8", [0, 9], "setups: the XML lists 0, 9, the container holds 0: without data: 9"),
    ],
)  # fmt: skip
def test_an_xml_of_other_views_is_told(
    tmp_path: Path, pattern: str, numbers: list[int], expected: str
) -> None:
    xml = other_views(tmp_path, pattern, numbers)
    with pytest.warns(n5zarr.N5Warning, match=re.escape(f"{xml}: {expected}")):
        data: Any = n5zarr.open_bdv(xml)["s0/data"]
    np.testing.assert_array_equal(data.sel(setup=0, timepoint=2), project.elements(0, 2, 0))
    if pattern == "0-3":
        assert data["present"].values.tolist() == [[True, False, True, False]]
        assert not data.sel(timepoint=3).any()


@pytest.mark.parametrize(
    ("pattern", "numbers", "expected"),
    [
        ("3,4", [0], ("setups: the XML lists 0, the container holds 0; "
                     "timepoints: the XML lists 3-4, the container holds 0, 2, 5, 8")),
        ("0,2,5,8", [9], ("setups: the XML lists 9, the container holds 0; "
                         "timepoints: the XML lists 0, 2, 5, 8, the container holds 0, 2, 5, 8")),
    ],
)  # fmt: skip
def test_an_xml_without_any_view_of_the_container_is_an_error(
    tmp_path: Path, pattern: str, numbers: list[int], expected: str
) -> None:
    xml = other_views(tmp_path, pattern, numbers)
    message = re.escape(f"{xml} describes, got none; {expected}")
    with pytest.raises(FileNotFoundError, match=message) as raised:
        n5zarr.open_bdv(xml)
    assert str(tmp_path / "dataset.n5") in str(raised.value)
    with pytest.raises(FileNotFoundError, match=message):
        xr.open_datatree(xml, engine="n5")
    with pytest.raises(FileNotFoundError, match=message):
        n5zarr.convert(xml, tmp_path / "o.zarr", ome=True)
    with pytest.raises(FileNotFoundError, match="the XML lists"):  # found beside the container
        n5zarr.open_bdv(tmp_path / "dataset.n5")


def test_views_that_the_xml_calls_missing_are_not_missed(tmp_path: Path) -> None:
    xml = other_views(tmp_path, "0-2", [0, 9])
    nine = [(9, t) for t in (0, 1, 2)]
    missing = "".join(f'<MissingView timepoint="{t}" setup="{s}" />' for s, t in [*nine, (0, 1)])
    xml.write_text(xml.read_text().replace("<MissingViews>", f"<MissingViews>{missing}"))
    with pytest.warns(n5zarr.N5Warning) as warned:
        n5zarr.open_bdv(xml)
    assert [str(w.message).partition("dataset.xml: ")[2] for w in warned] == [
        "timepoints: the XML lists 0-2, the container holds 0, 2, 5, 8: omitted: 5, 8"
    ]


def other_views(folder: Path, pattern: str, numbers: list[int]) -> Path:
    """Write a project of setup 0, with XML of other time points and setups."""
    xml = project.write_project(folder, [0])
    known = dict.fromkeys(numbers, SETUPS[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(project, "SETUPS", known)
        text = project.project_xml(numbers=numbers)
    xml.write_text(text.replace(project.PATTERN, pattern))
    return xml


def test_missing_views_cost_little(tmp_path: Path) -> None:
    xml = project.write_project(tmp_path, [0])
    xml.write_text(xml.read_text().replace(project.PATTERN, "0-3999"))
    with pytest.warns(n5zarr.N5Warning, match="without data: 1, 3-4, 6-7, 9-3999"):
        data: Any = n5zarr.open_bdv(xml)["s0/data"]
    assert len(data.data.dask.layers) < 10
    assert data.sizes["timepoint"] == 4000
    assert not data.sel(timepoint=3999).any()
    np.testing.assert_array_equal(data.sel(timepoint=8)[0], project.elements(0, 8, 0))


def test_a_tree_shows_axes_of_setups(tmp_path: Path) -> None:
    xml = project.write_project(tmp_path)
    for place in (tmp_path / "dataset.n5", xml):
        found = shapes_with_axes(describe_tree(place, geometry=True))
        assert found
        assert set(found.values()) == {("z", "y", "x")}
