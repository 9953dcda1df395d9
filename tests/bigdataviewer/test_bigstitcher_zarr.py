"""A BigStitcher project with images in OME-Zarr is the same as in N5."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import AsyncIterator
from functools import partialmethod
from itertools import product
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import xarray as xr
import zarr
from bioio import BioImage

import n5zarr
from n5zarr._zarr import sync
from n5zarr.bigdataviewer.project import XmlFile, read_project
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.storage.place import place_of
from n5zarr.viewing.bioio import Reader
from n5zarr.viewing.serve.location import ServedLocation
from tests.bigdataviewer import bigstitcher_zarr as written
from tests.bigdataviewer.conftest import (
    check_that_commands_print_the_same,
    check_that_viewers_show_the_same,
)
from tests.command import printed
from tests.contract import bigstitcher as project
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS

TURNS = "ignore:.*the registration turns or shears:n5zarr.N5Warning"
pytestmark = pytest.mark.filterwarnings(TURNS)
NESTED: Any = {"name": "v2", "separator": "/"}  # keys of chunks


@pytest.fixture(scope="module", params=written.KINDS)
def xml(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("zarr")
    return written.write_project(folder, written.KINDS[request.param])


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written.write_project(tmp_path_factory.mktemp("zarr"), written.KINDS["sharded"])


# ------------------------------------------------------------------------------------- the same


@pytest.mark.each_of(6)
def test_views_are_those_of_n5(xml: Path, n5_tree: Any) -> None:
    """Names, positions, elements and missing views are those of the project in N5."""
    xr.testing.assert_identical(n5zarr.open_bdv(xml).load(), n5_tree)
    xr.testing.assert_identical(xr.open_datatree(xml, engine="n5").load(), n5_tree)
    one = xr.open_dataset(xml, group="setup3/s1", chunks={})  # the engine is guessed
    assert one.chunksizes == {"timepoint": (1, 1, 1, 1), "z": (2, 1), "y": (3,), "x": (4,)}
    xr.testing.assert_identical(one.load(), n5_tree["setup3/s1"].to_dataset())


async def all_of(keys: AsyncIterator[str]) -> list[str]:
    return [key async for key in keys]


LIST_PREFIX = zarr.storage.LocalStore.list_prefix


async def noted_list(store: Any, prefix: str, listed: list[str]) -> AsyncIterator[str]:
    """List keys of files, and note them."""
    async for key in LIST_PREFIX(store, prefix):
        listed.append(key)
        yield key


def test_all_views_may_be_in_one_image(
    tmp_path: Path, n5_tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``indicies`` choose channel and time point of an image with five axes."""
    root = tmp_path / "dataset.ome.zarr"
    attributes = written.image_attributes(0)
    zarr.create_group(str(root), path="all", zarr_format=2, attributes=attributes)
    for level in (0, 1):
        each = [[project.elements(s, t, level) for s in (0, 3)] for t in TIMEPOINTS]
        array = zarr.create_array(
            str(root), name=f"all/{level}", data=np.array(each), zarr_format=2,
            chunks=(3, 1, *written.CHUNKS),  # time points share chunks
            chunk_key_encoding=NESTED,
        )  # fmt: skip
        assert array.shape[:2] == (4, 2)
    entries = {
        (s, t): ("/all/", f"{c} {i}")
        for c, s in enumerate((0, 3))
        for i, t in enumerate(TIMEPOINTS)
        if (s, t) != MISSING
    }
    xml = tmp_path / "dataset.xml"
    loader = written.loader("3.0", entries)
    xml.write_text(written.with_loader(project.project_xml(numbers=[0, 3]), loader))
    opened = n5zarr.open_bdv(xml).load()
    for setup in ("setup0", "setup3"):
        xr.testing.assert_identical(opened[setup], n5_tree[setup].copy())
    store: Any = read_project(XmlFile.at(place_of(xml))).place.location
    listed: list[str] = []
    monkeypatch.setattr(
        zarr.storage.LocalStore, "list_prefix", partialmethod(noted_list, listed=listed)
    )
    keys = sync(all_of(store.list_prefix("setup3/timepoint2/s0/")))
    assert len(keys) == 1 + 8  # the document, and the blocks
    assert len(listed) == 8  # of the volume, and not of the other channel and time points


def reorder(image: Path, order: str) -> None:
    """Write an image anew with its axes in another order."""
    name = "zarr.json" if (image / "zarr.json").exists() else ".zattrs"
    document = json.loads((image / name).read_text())
    inner = document if name == ".zattrs" else document["attributes"]["ome"]
    (multiscale,) = inner["multiscales"]
    old = [axis["name"] for axis in multiscale["axes"]]
    axes = [old.index(each) for each in order]
    multiscale["axes"] = [multiscale["axes"][axis] for axis in axes]
    for level, dataset in enumerate(multiscale["datasets"]):
        for transform in dataset["coordinateTransformations"]:
            kind = transform["type"]
            transform[kind] = [transform[kind][axis] for axis in axes]
        array: Any = zarr.open_array(image / str(level), mode="r")
        shards = array.shards and tuple(array.shards[axis] for axis in axes)
        zarr.create_array(
            image / str(level), data=array[...].transpose(axes).copy(), shards=shards,
            chunks=tuple(array.chunks[axis] for axis in axes), overwrite=True,
            zarr_format=array.metadata.zarr_format,
            chunk_key_encoding=NESTED if name == ".zattrs" else None,
        )  # fmt: skip
    (image / name).write_text(json.dumps(document))


@pytest.mark.each_of(5)
@pytest.mark.parametrize(
    ("kind", "order"),
    [("3.0", "tcxyz"), ("3.0", "zxcty"), ("3.0 of three axes", "yxz"), ("Zarr v3", "xyzct"),
     ("sharded", "tcyzx")],
)  # fmt: skip
def test_axes_may_be_in_another_order(
    tmp_path: Path, n5_project: Path, n5_tree: Any, kind: str, order: str
) -> None:
    """As ``AllenOMEZarrLoader.reorderToCanonicalAxes`` of BigStitcher for Zarr v3 permutes them."""
    xml = written.write_project(tmp_path, written.KINDS[kind], [0, 3])
    for image in (tmp_path / "dataset.ome.zarr").glob("s*.zarr"):
        reorder(image, order)
    opened = n5zarr.open_bdv(xml).load()
    for setup in ("setup0", "setup3"):
        xr.testing.assert_identical(opened[setup], n5_tree[setup].copy())
        engine = xr.open_datatree(xml, engine="n5", group=setup).load()
        xr.testing.assert_identical(engine, xr.open_datatree(n5_project, group=setup).load())
    n5zarr.convert(xml, tmp_path / "new/dataset.xml", to="n5")
    for number, timepoint, level in product((0, 3), TIMEPOINTS, (0, 1)):
        if (number, timepoint) != MISSING:
            path = f"setup{number}/timepoint{timepoint}/s{level}"
            array: Any = n5zarr.open(tmp_path / "new/dataset.n5", path=path)
            np.testing.assert_array_equal(array[...], project.elements(number, timepoint, level))
    store: Any = read_project(XmlFile.at(place_of(xml))).place.location
    (dataset,) = (store.source.levels((0, 2)),)
    positions = sync(sync(dataset).stored[0].positions())
    assert positions == sorted(product(range(2), range(2), range(2)))


def test_indices_choose_in_the_order_of_axes_by_name(tmp_path: Path) -> None:
    """``indicies`` are those of c and t, wherever the image has these axes."""
    xml = written.write_project(tmp_path, written.KINDS["3.0"], [0])
    image = tmp_path / "dataset.ome.zarr" / "s0-t2.zarr"
    values = [[project.elements(0, 2, 0) + 100 * t + 10 * c for c in (0, 1, 2)] for t in (0, 1)]
    options: Any = {"zarr_format": 2, "overwrite": True, "chunk_key_encoding": NESTED}
    chunks = (1, 1, *written.CHUNKS)
    zarr.create_array(image / "0", data=np.array(values), chunks=chunks, **options)
    zarr.create_array(image / "1", data=np.zeros((2, 3, 3, 3, 4), "u2"), **options)
    text = xml.read_text()
    for order in ("tczyx", "ctzyx", "xcyzt"):
        reorder(image, order)
        for t, c in ((0, 2), (1, 0), (1, 1)):
            new = f'path="s0-t2.zarr" indicies="{c} {t}"'
            xml.write_text(text.replace('path="s0-t2.zarr" indicies="0 0"', new))
            data: Any = n5zarr.open_bdv(xml)["s0/data"].sel(setup=0, timepoint=2)
            np.testing.assert_array_equal(data, values[t][c])


def test_an_image_of_another_size_than_that_of_its_setup_is_told(tmp_path: Path) -> None:
    xml = written.write_project(tmp_path, written.KINDS["3.0"], [0])
    document = tmp_path / "dataset.ome.zarr" / "s0-t2.zarr" / ".zattrs"
    attributes = json.loads(document.read_text())
    axes = attributes["multiscales"][0]["axes"]
    attributes["multiscales"][0]["axes"] = [axes[n] for n in (0, 1, 4, 3, 2)]
    document.write_text(json.dumps(attributes))
    message = r"s0-t2\.zarr: .*of setup 0 in the XML, x, y, z = \[7, 5, 3\], got \[3, 5, 7\]"
    for read in (n5zarr.open_bdv, xr.open_datatree, n5zarr.thumbnail):
        with pytest.raises(N5UnrepresentableError, match=message):
            read(xml)
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.convert(xml, tmp_path / "new/dataset.xml", to="n5")


def test_axes_of_other_names_stay_as_they_are(tmp_path: Path, n5_tree: Any) -> None:
    """As in Java, where they do not tell each axis apart."""
    xml = written.write_project(tmp_path, written.KINDS["3.0"], [0])
    for document in (tmp_path / "dataset.ome.zarr").glob("s*.zarr/.zattrs"):
        attributes = json.loads(document.read_text())
        attributes["multiscales"][0]["axes"][0] = {"name": "x", "type": "space"}
        document.write_text(json.dumps(attributes))
    tree: Any = n5zarr.open_bdv(xml).load()
    np.testing.assert_array_equal(tree["s0/data"][0], n5_tree["setup0/s0/data"])


@pytest.mark.each_of(6)
def test_the_commands_print_the_same(xml: Path, n5_project: Path) -> None:
    check_that_commands_print_the_same(xml, n5_project)


@pytest.mark.each_of(6)
def test_sizes_are_those_of_stored_chunks(xml: Path) -> None:
    root = xml.parent / "dataset.ome.zarr" / "s1-t2.zarr" / "0"
    described = n5zarr.N5Store(read_project(XmlFile.at(place_of(xml))).place).info
    assert str(xml.parent) in str(described)
    tree = json.loads(printed("tree", xml, "--json", "--size"))
    node = tree
    for name in ("setup1", "timepoint2", "s0"):
        node = next(child for child in node["children"] if child["name"] == name)
    assert node["dimensions_n5"] == [11, 5, 2]
    assert node["block_size_n5"] == [5, 3, 2]
    assert node["n_blocks_stored"] == node["n_blocks"] == 6
    documents = {".zarray", ".zattrs", "zarr.json"}
    files = [f for f in root.rglob("*") if f.is_file() and f.name not in documents]
    assert node["n_bytes_stored"] == sum(f.stat().st_size for f in files)


@pytest.mark.parametrize("shards", [None, (4, 4, 4)])
@pytest.mark.parametrize("fill_value", [0, 7])
def test_chunks_that_are_not_stored_have_the_fill_value(
    tmp_path: Path, fill_value: int, shards: tuple[int, int, int] | None
) -> None:
    xml = written.write_project(tmp_path, written.KINDS["Zarr v3"], [0])
    array = zarr.create_array(
        str(tmp_path / "dataset.ome.zarr"), name="s0-t2.zarr/0", shape=(1, 1, 3, 5, 7), dtype="u2",
        chunks=(1, 1, 2, 2, 2), shards=None if shards is None else (1, 1, *shards),
        fill_value=fill_value, overwrite=True,
    )  # fmt: skip
    array[0, 0, 0, 0, 6] = 5
    expected = np.full((3, 5, 7), fill_value)
    expected[0, 0, 6] = 5
    data: Any = n5zarr.open_bdv(xml)["s0/data"]
    np.testing.assert_array_equal(data.sel(timepoint=2)[0], expected)
    place = read_project(XmlFile.at(place_of(xml))).place
    store = n5zarr.N5Store(place)
    path = "setup0/timepoint2/s0"
    keys = sync(all_of(store.storage.store.list_prefix(f"{path}/")))
    n_blocks = 24 if fill_value else 8 if shards else 1
    assert len(keys) == n_blocks + 1  # and the document
    copied = tmp_path / "o.n5"
    n5zarr.convert(xml, copied)
    copy: Any = n5zarr.open(copied, path=path)
    np.testing.assert_array_equal(copy[...], expected)


@pytest.mark.each_of(6)
@pytest.mark.filterwarnings("ignore:Object at METADATA.ome.xml is not:UserWarning")
def test_conversions_hold_the_same(xml: Path, n5_project: Path, tmp_path: Path) -> None:
    for name in ("o.zarr", "o.n5", "p.zarr"):
        for source in (xml, n5_project):
            n5zarr.convert(source, tmp_path / source.parent.name / name, ome=name == "o.zarr")
    one, other = (zarr.open_group(tmp_path / x.parent.name / "o.zarr") for x in (xml, n5_project))
    members = dict(other.members(max_depth=None))
    assert set(dict(one.members(max_depth=None))) == set(members)
    for path, node in members.items():
        assert dict(one[path].attrs) == dict(node.attrs), path
        if isinstance(node, zarr.Array):
            found: Any = one[path]
            np.testing.assert_array_equal(found[...], node[...])
            assert found.compressors, path  # not raw, as the blocks are
    for number in SETUPS:
        path = f"setup{number}/timepoint2/s1"
        values = project.elements(number, 2, 1)
        folder = tmp_path / xml.parent.name
        copies: list[Any] = [n5zarr.open(folder / "o.n5"), zarr.open_group(folder / "p.zarr")]
        for copy in copies:
            np.testing.assert_array_equal(copy[path][...], values)


def test_viewers_show_the_same(sharded: Path, n5_project: Path) -> None:
    check_that_viewers_show_the_same(sharded, n5_project)
    opened, one = (BioImage(x, reader=Reader) for x in (sharded, n5_project))
    assert opened.scenes == one.scenes
    np.testing.assert_array_equal(opened.get_image_data("TZYX"), one.get_image_data("TZYX"))


def test_servers_stay_in_the_container(tmp_path: Path) -> None:
    xml = written.write_project(tmp_path, written.KINDS["3.0"], [0])
    image = tmp_path / "dataset.ome.zarr" / "s0-t2.zarr"
    image.rename(tmp_path / "elsewhere.zarr")
    image.symlink_to(tmp_path / "elsewhere.zarr")
    expected = project.elements(0, 2, 0)
    opened: Any = n5zarr.open_bdv(xml)["s0/data"]
    np.testing.assert_array_equal(opened.sel(timepoint=2)[0], expected)
    served = ServedLocation(place_of(xml)).store
    assert served.node("setup0/timepoint0/s0") is not None
    assert served.node("setup0/timepoint2/s0") is None


def test_the_project_may_be_on_a_server(sharded: Path, n5_tree: Any) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(sharded.parent), "/bigstitcher-zarr", recursive=True)
    try:
        remote = n5zarr.open_bdv("memory://bigstitcher-zarr/dataset.xml")
        xr.testing.assert_identical(remote.load(), n5_tree)
    finally:
        memory.rm("/bigstitcher-zarr", recursive=True)


def test_arrays_reach_other_processes(sharded: Path) -> None:
    dataset = xr.open_dataset(sharded, group="setup1/s0")
    copy = pickle.loads(pickle.dumps(dataset))
    xr.testing.assert_identical(copy.load(), dataset.load())


# ------------------------------------------------------------------------------------- mistakes


def changed(folder: Path, old: str, new: str, kind: str = "3.0") -> Path:
    xml = written.write_project(folder, written.KINDS[kind], [0])
    text = xml.read_text()
    assert old in text
    xml.write_text(text.replace(old, new))
    return xml


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('path="s0-t0.zarr"', 'path="../s0-t0.zarr"', "s0-t0.zarr"),
        ('indicies="0 0"', 'indicies="1 0"', "expected indicies in the XML that choose a volume"),
        ('indicies="0 0"', 'indicies="0 a"', "a zgroup that lacks the number of its setup"),
        ('tp="0"', 'tp="-1"', "a zgroup that lacks the number of its setup or time point"),
        ('path="s0-t0.zarr"', 'path=""', "a zgroup that lacks the number of its setup"),
        (">dataset.ome.zarr<", ">dataset.xml<", "got the XML itself"),
        ("zgroup ", "group ", "the format bdv.multimg.zarr without the element zgroup"),
        ("zarr>", "n5>", "the format bdv.multimg.zarr without the element zarr"),
    ],
)
def test_mistakes_in_the_loader_are_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    xml = changed(tmp_path, old, new)
    xml.write_text(xml.read_text().replace("<zarr ", "<n5 ") if new == "n5>" else xml.read_text())
    with pytest.raises(n5zarr.N5Error, match=re.escape(message)):
        n5zarr.open_bdv(xml)


def test_a_missing_container_is_told(tmp_path: Path) -> None:
    xml = changed(tmp_path, ">dataset.ome.zarr<", ">other.zarr<")
    with pytest.raises(FileNotFoundError, match=r"dataset\.xml.*other\.zarr"):
        n5zarr.open_bdv(xml)
    assert not (tmp_path / "other.zarr").exists()


def test_damaged_documents_are_told(tmp_path: Path) -> None:
    xml = written.write_project(tmp_path, written.KINDS["3.0"], [0])
    image = tmp_path / "dataset.ome.zarr" / "s0-t2.zarr"
    for name, text, message in (
        (".zattrs", "[1]", r"s0-t2\.zarr.*expected the document of a group"),
        (".zattrs", "{}", r"s0-t2\.zarr: expected an image of OME-Zarr, got no multiscales"),
        ("0/.zarray", "{}", r"s0-t2\.zarr/0: expected an array of Zarr, got"),
    ):
        document = image / name
        before = document.read_text()
        document.write_text(text)
        with pytest.raises(n5zarr.N5Error, match=message):
            n5zarr.open_bdv(xml)
        document.write_text(before)
    array = image / "0" / ".zarray"
    array.write_text(array.read_text().replace("<u2", "<f2"))
    with pytest.raises(N5UnsupportedError, match=r"t2\.zarr/0: expected integers or floats"):
        n5zarr.open_bdv(xml)


def test_views_without_an_image_have_no_data(tmp_path: Path) -> None:
    """As in N5: the XML lists a view, and there are no levels at its path."""
    kept = written.write_project(tmp_path, written.KINDS["3.0"], [0])
    (tmp_path / "dataset.ome.zarr" / "s0-t8.zarr").rename(tmp_path / "away")
    opened: Any = n5zarr.open_bdv
    with pytest.warns(n5zarr.N5Warning, match="timepoints: the XML lists .* without data: 8"):
        data = opened(kept)["s0"]
    assert data["present"].values.tolist() == [[True, True, True, False]]
    np.testing.assert_array_equal(data["data"].sel(timepoint=8), np.zeros((1, 3, 5, 7)))


def test_nothing_is_written(sharded: Path) -> None:
    store: Any = read_project(XmlFile.at(place_of(sharded))).place.location
    assert store.with_read_only(read_only=True) is store
    with pytest.raises(N5UnsupportedError, match=r"n5zarr\.convert copies it"):
        store.with_read_only(read_only=False)
    with pytest.raises(ValueError, match="read-only"):
        zarr.create_group(n5zarr.N5Store(store), path="new")
