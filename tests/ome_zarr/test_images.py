"""OME-Zarr is read as images like N5: the same pictures, positions and errors."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import warnings
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pytest
import xarray as xr
import zarr
from ome_zarr.format import FormatV04, FormatV05

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import (
    N5AttributesError,
    N5FormatError,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
)
from n5zarr.images.find import find_images
from n5zarr.metadata.inspect import describe, describe_tree
from n5zarr.storage.place import place_of
from n5zarr.store.locating import locate
from tests.command import CliRunner, printed
from tests.ome_zarr.documents import change
from tests.remote.servers import static
from tests.unit.store.test_inspect import shapes_with_axes

JAVA = Path(__file__).parents[1] / "data" / "java" / "metadata.n5"
VERSIONS = pytest.mark.parametrize("version", ["0.4", "0.5"])
AXES = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
STEPS: list[list[dict[str, Any]]] = [
    [{"type": "scale", "scale": [2.0, *by]}, {"type": "translation", "translation": [7.0, *to]}]
    for by, to in (([0.5, 0.25], [5.0, 3.0]), ([1.0, 0.5], [5.25, 3.125]))
]


def picture(location: Any, **options: Any) -> np.ndarray[Any, Any]:
    return np.asarray(n5zarr.thumbnail(location, size=160, **options))


def elements() -> list[np.ndarray[Any, Any]]:
    """Two levels, of unequal prime extents."""
    first = np.arange(7 * 38 * 46, dtype="u2").reshape(7, 38, 46)
    return [first, first[:, ::2, ::2].copy()]


def by_ome_zarr_py(path: Path, version: Any) -> Path:
    """Write an image and its labels with ome-zarr-py; levels are named as it names them."""
    fmt: Any = FormatV05() if version == "0.5" else FormatV04()
    root = zarr.open_group(path, mode="w", zarr_format=fmt.zarr_format)
    options: Any = {"fmt": fmt, "storage_options": {"chunks": (3, 17, 19)}}
    data = elements()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of itself
        from ome_zarr.writer import write_multiscale, write_multiscale_labels  # noqa: PLC0415

        units = {axis["name"]: axis["unit"] for axis in AXES}
        options |= {"axes": AXES, "axes_units": units}
        write_multiscale(data, root, coordinate_transformations=STEPS, **options)
        labels = [(level // 5000).astype("u4") for level in data]
        write_multiscale_labels(labels, root, "cells", axes="zyx", fmt=fmt)
    return path


@pytest.fixture(scope="module", params=["0.4", "0.5"])
def kept(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return by_ome_zarr_py(tmp_path_factory.mktemp("kept") / "an.ome.zarr", request.param)


@pytest.fixture
def written(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "an.ome.zarr"))


def n5_of(path: Path) -> Path:
    """Write the same image with n5zarr alone, from the numbers of this module."""
    for k, (data, steps) in enumerate(zip(elements(), STEPS, strict=True)):
        scale, translation = (step[str(step["type"])] for step in steps)
        n5zarr.create_array(
            path / f"s{k}", data=data, chunks=(3, 17, 19), axes="zyx", units=["um"] * 3,
            resolution=scale, offset=translation,
        )  # fmt: skip
    return path


# ---------------------------------------------------------------------------- pictures, positions


@pytest.mark.each_of(2)
@pytest.mark.parametrize("version", ["0.4", "0.5", "0.6"])
def test_pictures_are_those_of_the_n5_that_was_converted(tmp_path: Path, version: Any) -> None:
    for source, out in ((JAVA, tmp_path / "a.zarr"), (n5zarr.sample_path(), tmp_path / "b.zarr")):
        n5zarr.convert(source, out, ome=True, ome_version=version)
        images = find_images(source)
        assert [image.path for image in find_images(out)] == [image.path for image in images]
        for image, other in zip(images, find_images(out), strict=True):
            assert (image.axes, image.channels) == (other.axes, other.channels)
            for a, b in zip(image.levels, other.levels, strict=True):
                assert (a.path, a.scale, a.translation) == (b.path, b.scale, b.translation)
                np.testing.assert_array_equal(a.values[:], b.values[:])  # type: ignore[index]
            expected = picture(f"{source}/{image.path}")
            np.testing.assert_array_equal(picture(f"{out}/{image.path}"), expected)


@pytest.mark.each_of(2)
def test_an_image_of_another_writer_is_drawn_like_the_same_n5(
    tmp_path: Path, written: Path
) -> None:
    expected = picture(n5_of(tmp_path / "same.n5"))
    np.testing.assert_array_equal(picture(written), expected)
    np.testing.assert_array_equal(picture(zarr.open_group(written, mode="r")), expected)
    with static(tmp_path, lists=False) as url:
        np.testing.assert_array_equal(picture(f"{url}/an.ome.zarr"), expected)
        with_labels = picture(f"{url}/an.ome.zarr", all_images=True)
    np.testing.assert_array_equal(picture(written, all_images=True), with_labels)
    assert [image.path for image in find_images(written)] == ["", "labels/cells"]


def test_a_level_has_its_name_in_zarr_and_in_n5(written: Path) -> None:
    names = sorted(key for key, _ in zarr.open_group(written, mode="r").arrays())
    for k, name in enumerate(names):
        for path in (name, f"s{k}"):
            (level,) = find_images(written / path)[0].levels
            np.testing.assert_array_equal(level.values[:, :, :], elements()[k])
            assert level.scale == tuple(STEPS[k][0]["scale"])
            assert level.translation == tuple(STEPS[k][1]["translation"])


def test_xarray_opens_levels_with_their_positions(written: Path) -> None:
    found = xr.open_dataset(written, engine="n5", group="s1")
    assert found["z"].attrs["units"] == "micrometer"
    np.testing.assert_allclose(found["y"], 5.25 + np.arange(19))
    np.testing.assert_array_equal(found["s1"], elements()[1])
    tree = xr.open_datatree(written, engine="n5")
    assert {"/s0", "/s1", "/labels/cells/s0"} <= {*tree.groups}
    fine, coarse = n5zarr.pyramid_levels(written)
    assert (fine.voxel_size["x"], coarse.voxel_size["x"]) == (0.25, 0.5)
    assert n5zarr.geometry(written, "s1").translation == (7, 5.25, 3.125)


def test_the_engine_leaves_the_name_zarr_to_others(written: Path) -> None:
    """xarray asks each engine for a location without the name of one."""
    from n5zarr.xarray.backend import N5BackendEntrypoint  # noqa: PLC0415

    assert not N5BackendEntrypoint().guess_can_open(written)


def test_commands_take_ome_zarr(written: Path, tmp_path: Path) -> None:
    for command in ("tree", "info"):
        assert "s1" in printed(command, written)
    printed("thumbnail", written, "-o", tmp_path / "out.png")


@pytest.mark.each_of(2)
def test_a_server_shows_its_images_as_n5(written: Path, tmp_path: Path) -> None:
    expected = picture(n5_of(tmp_path / "same.n5"))
    with n5zarr.serve(written) as server:
        level = n5zarr.open_array(f"{server.url}n5/s1")
        np.testing.assert_array_equal(level[...], elements()[1])
        np.testing.assert_array_equal(picture(f"{server.url}ome/"), expected)
    with n5zarr.view(written) as shown:
        assert shown.url.endswith("/view")


def test_statistics_and_levels_are_those_of_the_elements(written: Path) -> None:
    found = n5zarr.block_statistics(written, "s1")
    data = elements()[1]
    assert (found.minimum, found.maximum, found.n_elements) == (data.min(), data.max(), data.size)
    level = n5zarr.open_level(written, level=1)
    np.testing.assert_array_equal(level["s1"], data)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_server_shows_no_images_behind_links_that_lead_out(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "secret")
    (written / "linked").symlink_to(tmp_path / "secret", target_is_directory=True)
    assert len(find_images(written)) == 4
    with n5zarr.serve(written) as server:
        urlopen(f"{server.url}n5/s1/attributes.json").close()  # noqa: S310
        with pytest.raises(HTTPError, match="404"):
            urlopen(f"{server.url}n5/linked/s1/attributes.json")  # noqa: S310


# ---------------------------------------------------------------------------- keys


@pytest.mark.each_of(2)
@VERSIONS
def test_documents_and_elements_are_those_of_a_conversion(tmp_path: Path, version: Any) -> None:
    source = tmp_path / "in.zarr"
    n5zarr.convert(JAVA, source, ome=True, ome_version=version)
    check_conversion(source, tmp_path)


def check_conversion(source: Path, tmp_path: Path) -> None:
    """Check that OME-Zarr is shown with the documents and elements of its conversion to N5."""
    n5zarr.convert(source, tmp_path / "out.n5")
    found = locate(place_of(source))
    place = found.place
    assert not found.path
    made = n5zarr.N5Store(place.location)
    for written_path in sorted((tmp_path / "out.n5").rglob("attributes.json")):
        name = written_path.parent.relative_to(tmp_path / "out.n5").as_posix()
        expected = json.loads(written_path.read_text())
        got = document_of(place.location, name)
        for each in (expected, got):
            for key in ("n5", "compression", "zarr", "blockSize"):
                each.pop(key, None)
        assert got == expected, name
        if "dimensions" in expected:
            expected = n5zarr.open_array(written_path.parent)[...]
            np.testing.assert_array_equal(n5zarr.open_array(made, path=name)[...], expected)


TWO: dict[str, list[float]] = {"0": [2, 1, 0.5], "1": [2, 2, 1],
                               "seg/0": [6, 5, 3], "seg/1": [6, 10, 6]}  # fmt: skip


def two_images(path: Path, version: Any, second: tuple[str, ...] = ("seg/0", "seg/1")) -> Path:
    """Write a group with two images, as in IDR's 4995115.zarr (ome/ZarrReader 44)."""
    root = zarr.create_group(path, zarr_format=3 if version == "0.5" else 2)
    first, other = elements()
    for name in TWO:
        data = (first if name.endswith("0") else other) + (100 if name.startswith("seg") else 0)
        root.create_array(name, data=data, chunks=(3, 17, 19))
    images = [
        {"name": names[0], "axes": AXES, "version": version, "datasets": [
            {"path": name, "coordinateTransformations": [
                {"type": "scale", "scale": TWO[name]},
                {"type": "translation", "translation": [k, 0, TWO[name][2]]},
            ]} for k, name in enumerate(names)
        ]} for names in (("0", "1"), second)
    ]  # fmt: skip
    root.attrs.update({"ome": {"version": version, "multiscales": images}}
                      if version == "0.5" else {"multiscales": images})  # fmt: skip
    return path


@VERSIONS
def test_each_image_of_a_group_keeps_its_place(tmp_path: Path, version: Any) -> None:
    """The second image is the group ``image2``, shown and converted alike."""
    source = two_images(tmp_path / "in.zarr", version)
    check_conversion(source, tmp_path)
    n5zarr.convert(tmp_path / "out.n5", tmp_path / "back.zarr", ome=True, ome_version=version)
    locations: Any = (source, tmp_path / "out.n5", tmp_path / "back.zarr")
    for location in locations:
        assert [image.path for image in find_images(location)] == ["", "image2"]
        for path, names in (("", ("0", "1")), ("image2", ("seg/0", "seg/1"))):
            levels = zip(names, n5zarr.geometry(location, path).levels, strict=True)
            for k, (name, level) in enumerate(levels):
                assert level.scale == tuple(TWO[name])
                assert list(level.translation) == [k, 0, TWO[name][2]]
                assert level.units == ("micrometer",) * 3
                assert n5zarr.geometry(location, f"{path}/s{k}".strip("/")).scale == level.scale
    opened = xr.open_dataset(source, engine="n5", group="image2/s0")["s0"]
    np.testing.assert_array_equal(opened, elements()[0] + 100)
    assert n5zarr.geometry(source, "seg/1").path == "image2/s1"  # by its name in Zarr
    assert not n5zarr.validate(source).findings
    assert "image2" in printed("tree", source)
    with static(tmp_path, lists=False) as url:
        assert [image.path for image in find_images(f"{url}/in.zarr")] == ["", "image2"]
    shutil.move(source / "seg/1", tmp_path / "moved")
    with pytest.warns(N5Warning, match="seg/1: omitted, as multiscales lists it"):
        n5zarr.convert(source, tmp_path / "rest.n5")
    assert n5zarr.geometry(tmp_path / "rest.n5", "image2/s0").scale == tuple(TWO["seg/0"])


@VERSIONS
def test_an_array_of_two_images_belongs_to_both(tmp_path: Path, version: Any) -> None:
    check_conversion(two_images(tmp_path / "in.zarr", version, ("0", "1")), tmp_path)
    for path in ("s1", "image2/s1"):
        found = n5zarr.open_array(tmp_path / "out.n5", path=path)
        np.testing.assert_array_equal(found[...], elements()[1])


@VERSIONS
def test_a_node_in_the_way_of_an_image_is_an_error(tmp_path: Path, version: Any) -> None:
    source = two_images(tmp_path / "in.zarr", version)
    zarr.open_group(source).create_group("image2")
    with pytest.raises(N5UnrepresentableError, match="image2: expected a name that no level needs"):
        find_images(source)
    with pytest.raises(N5UnrepresentableError, match="image2: expected a free name for an image"):
        n5zarr.convert(source, tmp_path / "out.n5")
    assert not (tmp_path / "out.n5").exists()


def document_of(store: Any, name: str) -> dict[str, Any]:
    found = asyncio.run(store.get("attributes.json" if name == "." else f"{name}/attributes.json"))
    document: dict[str, Any] = {} if found is None else json.loads(found.to_bytes())
    return document


def test_keys_that_are_listed_exist(written: Path) -> None:
    """The laws of a store: what is listed exists and has the size of its value."""
    place = locate(place_of(written)).place
    store: Any = place.location

    async def check() -> int:
        keys = [key async for key in store.list()]
        for key in keys:
            value = await store.get(key)
            assert value is not None, key
            assert await store.exists(key)
            assert len(value.to_bytes()) == await store.getsize(key)
            directory, _, name = key.rpartition("/")
            assert name in [each async for each in store.list_dir(directory)]
        some = [key async for key in store.list_prefix("s1/")]
        assert some == [key for key in keys if key.startswith("s1/")]
        return len(keys)

    grid = 3 * 3 * 3 + 3 * 2 * 2
    assert asyncio.run(check()) > grid
    again = pickle.loads(pickle.dumps(n5zarr.N5Store(store)))
    np.testing.assert_array_equal(n5zarr.open_array(again, path="s1")[...], elements()[1])


def test_other_data_types_and_shards(tmp_path: Path) -> None:
    root = zarr.create_group(tmp_path / "in.zarr", zarr_format=3)
    root.attrs["ome"] = {"version": "0.5", "bioformats2raw.layout": 3}
    data = np.arange(11 * 13, dtype="i8").reshape(11, 13) % 3
    root.create_array("mask", data=data == 1, dimension_names=["y", "x"], chunks=(4, 5))
    root.create_array("filled", shape=(5, 7), dtype="f4", fill_value=3, chunks=(2, 3))
    root.create_array("sharded", data=data, shards=(8, 10), chunks=(4, 5))
    root.create_array("text", shape=(2,), dtype="U3")
    with pytest.raises(N5AttributesError, match=r"dataType: expected .* got '<U3'"):
        describe(tmp_path / "in.zarr", "text")
    found = find_images(tmp_path / "in.zarr")
    values = {image.path: image.levels[0].values[:, :] for image in found}
    np.testing.assert_array_equal(values["mask"], (data == 1).astype("u1"))
    np.testing.assert_array_equal(values["filled"], np.full((5, 7), 3, "f4"))
    np.testing.assert_array_equal(values["sharded"], data)


# ---------------------------------------------------------------------------- what is refused


def test_nothing_is_written(written: Path) -> None:
    place = locate(place_of(written)).place
    store: Any = place.location
    with pytest.raises(N5UnsupportedError, match="only reading of OME-Zarr"):
        store.with_read_only(read_only=False)
    before = sorted(written.rglob("*"))
    said = r"only reading of OME-Zarr as N5; n5zarr\.convert copies"
    with pytest.raises(n5zarr.N5Error, match=said):
        n5zarr.set_attribute(written, "", "a", 1)
    assert sorted(written.rglob("*")) == before


BAD: dict[str, tuple[Any, str]] = {
    "outside": (lambda image: image["datasets"][1].update(path="../an.ome.zarr/0"),
        r"path: expected that of an array below the group, got .*\.\./an"),
    "itself": (lambda image: image["datasets"][1].update(path="."),
        "path: expected that of an array below the group"),
    "twice": (lambda image: image["datasets"].append(image["datasets"][0]),
        "path: expected each one once"),
    "missing": (lambda image: image["datasets"][1].update(path="gone"),
        "expected the array 'gone', which multiscales lists, got none"),
    "axes": (lambda image: image["axes"].pop(), "axes: expected a list of 3 axes"),
    "scale": (
        lambda image: image["datasets"][0]["coordinateTransformations"][0].update(scale=[1, 2]),
        "scale: expected 3 numbers"),
    "affine": (
        lambda image: image["datasets"][0].update(coordinateTransformations=[{"type": "affine"}]),
        "expected scales and translations, got affine"),
}  # fmt: skip


@pytest.mark.each_of(3)
@pytest.mark.parametrize("case", BAD)
def test_wrong_metadata_is_an_error_that_says_where(written: Path, case: str) -> None:
    function, message = BAD[case]
    change(written, lambda _, image: function(image))
    with pytest.raises((N5UnrepresentableError, N5FormatError), match=message) as err:
        n5zarr.thumbnail(written)
    assert str(written) in str(err.value)
    done = CliRunner().invoke(app, ["thumbnail", str(written)])
    assert done.exit_code == 2


def test_other_zarr_is_left_to_zarr(tmp_path: Path) -> None:
    zarr.create_group(tmp_path / "plain.zarr").create_array("a", shape=(5, 7), dtype="u1")
    with pytest.raises(N5FormatError, match=r"got a Zarr v3 group; open it with zarr\.open"):
        n5zarr.thumbnail(tmp_path / "plain.zarr")


def test_a_level_that_no_image_needs_keeps_its_name(written: Path) -> None:
    level = next(path for path in written.iterdir() if path.name.endswith("0"))
    shutil.copytree(level, written / "extra")
    assert [image.path for image in find_images(written)] == ["", "extra", "labels/cells"]


def test_a_tree_shows_axes(tmp_path: Path) -> None:
    n5zarr.convert(JAVA / "cosem", tmp_path / "a.zarr", ome=True)
    found = shapes_with_axes(describe_tree(tmp_path / "a.zarr", geometry=True))
    assert found == {"/s0": ("z", "y", "x"), "/s1": ("z", "y", "x")}
