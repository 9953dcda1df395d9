"""Conversions between N5 and OME-Zarr agree with validators and other readers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from ome_zarr.io import parse_url
from ome_zarr.reader import Reader

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.images.find import find_images
from tests.command import CliRunner
from tests.contract.stored import by_tensorstore
from tests.contract.viewers import validate_ome

JAVA = Path(__file__).parents[1] / "data" / "java"


def placed(path: Path) -> list[tuple[list[float], list[float]]]:
    """Return scale and translation of each level by ome-zarr-py; check the names of axes."""
    (node, *_) = Reader(parse_url(path))()
    found = []
    ndim = len(node.metadata["axes"])
    for steps in node.metadata["coordinateTransformations"]:
        by = {step["type"]: step[step["type"]] for step in steps}
        found.append((by["scale"], by.get("translation", [0.0] * ndim)))
    return found


def ome_of(path: Path) -> dict[str, Any]:
    """Read the metadata of a group of 0.5, or the attributes of one of 0.4."""
    if (path / ".zattrs").exists():
        found: dict[str, Any] = json.loads((path / ".zattrs").read_text())
    else:
        found = json.loads((path / "zarr.json").read_text())["attributes"]["ome"]
    return found


def names_of(array: Any) -> tuple[str, ...]:
    """Return the names of the axes, as Zarr v3 and xarray keep them."""
    is_v2 = array.metadata.zarr_format == 2
    return tuple(array.attrs["_ARRAY_DIMENSIONS"] if is_v2 else array.metadata.dimension_names)


VERSIONS = pytest.mark.parametrize("version", ["0.4", "0.5"])


@VERSIONS
def test_the_sample_validates_and_readers_find_its_scales(tmp_path: Path, version: Any) -> None:
    out = tmp_path / "out.zarr"
    done = n5zarr.convert(n5zarr.sample_path(), out, ome=True, ome_version=version, verify=True)
    assert {array.way for array in done.arrays} == {"chunks"}
    for path in (out, out / "em", out / "labels"):
        validate_ome(path)
    assert ome_of(out / "OME")["series"] == ["em"]
    assert placed(out / "em") == [
        ([20.0, 8.0, 8.0], [0.0, 0.0, 0.0]),
        ([40.0, 16.0, 16.0], [10.0, 4.0, 4.0]),
        ([80.0, 32.0, 32.0], [30.0, 12.0, 12.0]),
    ]
    assert [axis["unit"] for axis in ome_of(out / "em")["multiscales"][0]["axes"]] == [
        "nanometer"
    ] * 3
    assert ome_of(out / "labels")["image-label"]["source"] == {"image": "../em"}
    root = zarr.open_group(out, mode="r")
    for name in ("em/s0", "em/s1", "em/s2", "labels/s0"):
        expected = by_tensorstore(Path(n5zarr.sample_path(), name))
        np.testing.assert_array_equal(root[name][...], expected)  # type: ignore[index]
    n5zarr.convert(out, tmp_path / "back.n5")
    old, new = (
        n5zarr.geometry(path, "em") for path in (n5zarr.sample_path(), tmp_path / "back.n5")
    )
    assert [level.scale for level in old.levels] == [level.scale for level in new.levels]


@pytest.mark.parametrize(
    "image", ["cosem", "cosem-forder", "n5viewer/c0", "ngff-0.4-n5order", "ngff-0.5-n5order",
              "ngff-0.3"],
)  # fmt: skip
def test_each_convention_is_placed_as_java_places_it(tmp_path: Path, image: str) -> None:
    """Images of each convention have the scales and translations of n5-universe's parsers."""
    lines = (JAVA / "metadata.expected.jsonl").read_text().splitlines()
    parsed = {entry["path"].strip("/"): entry for entry in map(json.loads, lines)}
    levels = sorted(p for p in parsed if p.startswith(f"{image}/s"))
    out = tmp_path / "out.zarr"
    n5zarr.convert(JAVA / "metadata.n5", out, ome=True, select=image)
    validate_ome(out)
    written = {entry.name for entry in out.iterdir()}
    assert written == {"OME", image.partition("/")[0], "zarr.json"}
    rows = [parsed[level]["spatialTransform"] for level in levels]
    expected = [
        ([m[2 - i][2 - i] for i in range(3)], [m[2 - i][3] for i in range(3)]) for m in rows
    ]
    assert placed(out / image) == expected
    full = {"nm": "nanometer", "um": "micrometer", "micrometer": "micrometer"}
    axes = ome_of(out / image)["multiscales"][0]["axes"]
    assert [a["unit"] for a in axes] == [full[parsed[levels[0]]["unit"]]] * 3


@VERSIONS
def test_all_conventions_validate(tmp_path: Path, version: Any) -> None:
    out = tmp_path / "out.zarr"
    n5zarr.convert(JAVA / "metadata.n5", out, ome=True, ome_version=version)
    validate_ome(out)
    shown = ome_of(out / "canonical" / "ds")["omero"]["channels"][0]
    assert (shown["color"], shown["window"]) == (
        "00FF00",  # ARGB -16711936
        {"min": 0, "max": 255, "start": 0.0, "end": 200.0},
    )
    channels = ome_of(out / "neuroglancer" / "channels")["omero"]["channels"]
    assert [channel["label"] for channel in channels] == ["DAPI", "GFP"]


@VERSIONS
def test_axes_of_imagej_are_put_in_order(tmp_path: Path, version: Any) -> None:
    """ImageJ's axes x, y, c, z, t are put into the order t, c, z, y, x of OME-Zarr."""
    data = np.arange(2 * 5 * 3 * 7 * 11, dtype="u2").reshape(2, 5, 3, 7, 11)  # t, z, c, y, x
    source = tmp_path / "in.n5"
    array = n5zarr.create_array(source / "img", data=data, chunks=(1, 2, 2, 4, 5))
    sizes = {"numChannels": 3, "numSlices": 5, "numFrames": 2}
    array.attrs.update({"pixelWidth": 0.25, "pixelHeight": 0.5, "pixelDepth": 1.5,
                        "pixelUnit": "µm", "xOrigin": 10.0, "fps": 0.0, **sizes})  # fmt: skip
    out = tmp_path / "out.zarr"
    done = n5zarr.convert(source, out, ome=True, ome_version=version, verify=True)
    validate_ome(out)
    assert done.arrays[0].chunks == (1, 2, 2, 4, 5)
    written: Any = zarr.open_array(out / "img" / "s0", mode="r")
    np.testing.assert_array_equal(written[...], data.transpose(0, 2, 1, 3, 4))
    assert names_of(written) == ("t", "c", "z", "y", "x")
    ((scale, translation),) = placed(out / "img")
    assert (scale[2:], translation[2:]) == ([1.5, 0.5, 0.25], [0.0, 0.0, 10.0])
    assert ome_of(out / "img")["multiscales"][0]["axes"][2]["unit"] == "micrometer"


@VERSIONS
@pytest.mark.parametrize("wanted", ["zyx", "yxzc"])
def test_mirrored_images_are_reversed_at_the_same_positions(
    tmp_path: Path, version: Any, wanted: str
) -> None:
    """Each element keeps its position: scale and translation of COSEM, by the rules of numpy."""
    axes, shape = list(wanted), (13, 11, 7, 3)[: len(wanted)]
    data = np.random.default_rng(3).integers(0, 999, shape).astype("u2")
    step, start = [-1.5 if name == "y" else 2.0 for name in axes], [7.0] * len(axes)
    for k in (0, 1):
        by = tuple(slice(None, None, 2**k if name == "y" else 1) for name in axes)
        scale = [s * (2**k if name == "y" else 1) for s, name in zip(step, axes, strict=True)]
        if "c" in axes:
            scale[axes.index("c")] = 1.0
        transform: Any = {
            "axes": axes, "scale": scale, "translate": start, "units": ["nm"] * len(axes),
        }  # fmt: skip
        n5zarr.create_array(
            tmp_path / f"a.n5/im/s{k}", data=data[by], chunks=(5, 4, 3, 2)[: len(axes)],
            attributes={"transform": transform},
        )  # fmt: skip
    out = tmp_path / "out.zarr"
    with pytest.warns(N5Warning, match="/im: in reverse order along y, at the same positions"):
        n5zarr.convert(tmp_path / "a.n5", out, ome=True, ome_version=version, verify=True)
    validate_ome(out / "im")
    order = sorted(range(len(axes)), key=lambda i: axes[i] != "c")
    names = [axes[i] for i in order]
    with pytest.warns(N5Warning, match="in reverse order"):  # for all who look at images
        (image,) = find_images(tmp_path / "a.n5")
    for k, (scale, translation) in enumerate(placed(out / "im")):
        found = zarr.open_array(out, path=f"im/s{k}", mode="r")[...]
        by = tuple(slice(None, None, 2**k if name == "y" else 1) for name in axes)
        expected = np.flip(data[by].transpose(order), names.index("y"))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.asarray(image.levels[k].lazy()), expected)
        y, n = names.index("y"), expected.shape[names.index("y")]
        assert (scale[y], translation[y]) == (1.5 * 2**k, 7.0 - 1.5 * 2**k * (n - 1))
    assert n5zarr.compare(tmp_path / "a.n5", out).is_equal


@VERSIONS
def test_labels_are_listed_where_ome_zarr_wants_them(tmp_path: Path, version: Any) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    data = np.arange(3 * 5 * 7, dtype="u4").reshape(3, 5, 7)
    for path, dtype in {
        "em/s0": "u1",
        "em/labels/cells": "u4",
        "em/labels/probability": "f4",
        "other/labels": "u8",
        "seg/a": "u2",
        "raw": "u2",
    }.items():
        n5zarr.create_array(source / path, data=data.astype(dtype), axes="zyx")
    n5zarr.create_array(source / "raw" / ".." / "table", data=np.arange(13.0))
    n5zarr.convert(source, out, ome=True, ome_version=version, labels="seg/*")
    for name in ("", "em", "em/labels", "em/labels/cells"):
        validate_ome(out / name)
    assert ome_of(out / "em" / "labels")["labels"] == ["cells"]
    assert ome_of(out / "em/labels/cells")["image-label"]["source"] == {"image": "../.."}
    assert "image-label" not in ome_of(out / "em/labels/probability")
    assert "image-label" in ome_of(out / "other/labels")
    assert "source" not in ome_of(out / "seg/a")["image-label"]  # of em, or of raw
    assert ome_of(out / "OME")["series"] == ["em", "em/labels/probability", "raw"]
    nodes = list(Reader(parse_url(out / "em"))())
    assert [Path(node.zarr.path).name for node in nodes] == ["em", "labels", "cells"]
    np.testing.assert_array_equal(zarr.open_array(out / "table", mode="r")[...], np.arange(13.0))


def test_the_list_of_images_has_the_places_where_they_are_written(tmp_path: Path) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    for path in ("em/s0", "em/labels/s0"):  # of floats, which are no labels
        n5zarr.create_array(source / path, data=np.zeros((3, 5), "f4"), axes="yx")
    n5zarr.convert(source, out, ome=True)
    assert ome_of(out / "OME")["series"] == ["em", "em/labels/labels"]
    validate_ome(out / "em/labels/labels")


def test_an_image_called_labels_in_an_image_goes_one_group_deeper(tmp_path: Path) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    data = np.arange(3 * 5, dtype="u4").reshape(3, 5)
    for path in ("em/s0", "em/labels/s0"):
        n5zarr.create_array(source / path, data=data, axes="yx")
    n5zarr.convert(source, out, ome=True)
    validate_ome(out / "em")
    assert ome_of(out / "em" / "labels") == {"version": "0.5", "labels": ["labels"]}
    np.testing.assert_array_equal(zarr.open_array(out / "em/labels/labels/s0", mode="r")[...], data)


def test_a_dataset_that_is_no_image_is_refused_or_kept_as_an_array(tmp_path: Path) -> None:
    source = tmp_path / "in.n5"
    n5zarr.create_array(source / "trace", data=np.arange(7.0))
    with pytest.raises(N5UnrepresentableError, match=r"expected an image .*, got none"):
        n5zarr.convert(source, tmp_path / "out.zarr", ome=True)
    n5zarr.create_array(source / "volume", data=np.zeros((2, 3, 5, 7, 11, 13), "u1"))
    n5zarr.create_array(source / "image", data=np.zeros((3, 5), "u1"), axes="yx")
    with pytest.warns(
        N5Warning, match="volume: kept as an array, .* expected a list of 2 to 5 axes"
    ):
        n5zarr.convert(source, tmp_path / "out.zarr", ome=True)
    root = zarr.open_group(tmp_path / "out.zarr", mode="r")
    assert sorted(root) == ["OME", "image", "trace", "volume"]
    assert isinstance(root["volume"], zarr.Array)
    with pytest.raises(N5UnrepresentableError, match="expected Zarr as destination, got N5"):
        n5zarr.convert(source, tmp_path / "out2.n5", ome=True)


def test_a_group_whose_levels_do_not_fit_is_no_image(tmp_path: Path) -> None:
    source = tmp_path / "in.n5"
    shutil.copytree(JAVA / "metadata.n5" / "ngff-0.5-n5order", source / "g")
    n5zarr.create_array(source / "g" / "s1", data=np.zeros((4, 2, 3, 4), "u1"), overwrite=True)
    with (
        pytest.warns(N5Warning, match="/g: multiscales omitted, as the datasets are not"),
        pytest.warns(N5Warning, match="/g/s1: multiscales: axes: expected a list of 4"),
    ):
        n5zarr.convert(source, tmp_path / "out.zarr", ome=True)
    root = zarr.open_group(tmp_path / "out.zarr", mode="r")
    assert "ome" not in root["g"].attrs
    assert ome_of(tmp_path / "out.zarr" / "OME")["series"] == ["g/s0", "g/s1"]
    for name, scale in {"g/s0": [1.5, 0.25, 0.25], "g/s1": [1.0] * 4}.items():
        assert placed(tmp_path / "out.zarr" / name)[0][0] == scale
    with pytest.warns(N5Warning):
        assert [image.path for image in find_images(source)] == ["g/s0", "g/s1"]


def test_labels_with_fewer_levels_than_their_image_are_told(tmp_path: Path) -> None:
    """OME-Zarr requires as many."""
    for path, shape in (
        ("em/s0", (10, 14, 22)), ("em/s1", (5, 7, 11)), ("em/labels/seg/s0", (10, 14, 22)),
    ):  # fmt: skip
        n5zarr.create_array(tmp_path / "c.n5", path=path, data=np.ones(shape, "u1"))
    with pytest.warns(
        n5zarr.N5Warning, match="/em/labels/seg: OME-Zarr expects labels to have the 2 levels"
    ):
        n5zarr.convert(tmp_path / "c.n5", tmp_path / "c.zarr", ome=True)
    written = json.loads((tmp_path / "c.zarr/em/labels/seg/zarr.json").read_bytes())
    assert len(written["attributes"]["ome"]["multiscales"][0]["datasets"]) == 1


# -------------------------------------------------------------------------------------------- 0.4


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_documents_of_0_4_are_those_of_its_specification(tmp_path: Path) -> None:
    """https://ngff.openmicroscopy.org/0.4/: Zarr v2, "/" between chunks, attributes in .zattrs."""
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    for name, shape in (("s0", (14, 22, 26)), ("s1", (7, 11, 13))):
        data = np.arange(np.prod(shape), dtype="u2").reshape(shape)
        n5zarr.create_array(source / "em" / name, data=data, chunks=(3, 5, 7))
    n5zarr.set_geometry(source, "em", names="zyx", scale=(3, 0.5, 0.25), units=["um"] * 3)
    n5zarr.set_attribute(source, "em", "min", 3)
    n5zarr.set_attribute(source, "em", "max", 700)
    cells = np.ones((14, 22, 26), "u4")
    n5zarr.create_array(source / "em/labels/cells/s0", data=cells, chunks=(3, 5, 7), axes="zyx")
    with pytest.warns(N5Warning, match="expects labels to have the 2 levels"):
        n5zarr.convert(source, out, ome=True, to="zarr2")
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert not {name for name in files if name.endswith("zarr.json")}
    groups = ["", "OME/", "em/", "em/labels/", "em/labels/cells/"]
    assert {f"{group}.zgroup" for group in groups} <= files
    assert "em/s0/4/4/3" in files  # the last chunk of 14 x 22 x 26
    array = document(out / "em/s0/.zarray")
    assert (array["zarr_format"], array["dimension_separator"], array["dtype"]) == (2, "/", ">u2")
    assert array["fill_value"] == 0  # without one, zarr-python 2 does not fill missing chunks
    assert document(out / "em/s0/.zattrs")["_ARRAY_DIMENSIONS"] == ["z", "y", "x"]
    assert document(out / ".zattrs") == {"bioformats2raw.layout": 3}
    assert document(out / "OME/.zattrs") == {"series": ["em"]}
    assert document(out / "em/labels/.zattrs") == {"labels": ["cells"]}
    label = document(out / "em/labels/cells/.zattrs")["image-label"]
    assert label == {"version": "0.4", "source": {"image": "../.."}}
    found = document(out / "em/.zattrs")
    assert found.keys() == {"multiscales", "omero", "min", "max", "_ARRAY_DIMENSIONS"}
    assert found["_ARRAY_DIMENSIONS"] == ["z", "y", "x"]
    window = {"min": 0, "max": 65535, "start": 3.0, "end": 700.0}
    channel = {"color": "FFFFFF", "window": window, "active": True}
    assert found["omero"] == {"version": "0.4", "channels": [channel]}
    (image,) = found["multiscales"]
    assert (image["version"], image["name"]) == ("0.4", "em")
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    assert image["axes"] == axes
    assert image["datasets"] == [
        {"path": "s0", "coordinateTransformations": [{"type": "scale", "scale": [3, 0.5, 0.25]}]},
        {
            "path": "s1",
            "coordinateTransformations": [
                {"type": "scale", "scale": [6, 1, 0.5]},
                {"type": "translation", "translation": [1.5, 0.25, 0.125]},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("options", "zarr_format"),
    [
        ({}, 3),
        ({"to": "zarr"}, 3),
        ({"to": "zarr2"}, 2),
        ({"ome_version": "0.4"}, 2),
        ({"ome_version": "0.5"}, 3),
        ({"ome_version": "0.4", "to": "zarr2"}, 2),
        ({"ome_version": "0.5", "to": "zarr"}, 3),
    ],
    ids=str,
)
def test_the_version_and_the_format_choose_each_other(
    tmp_path: Path, options: dict[str, Any], zarr_format: int
) -> None:
    n5zarr.convert(n5zarr.sample_path(), tmp_path / "out.zarr", ome=True, level=2, **options)
    assert (tmp_path / "out.zarr" / "zarr.json").exists() == (zarr_format == 3)
    assert (tmp_path / "out.zarr" / ".zgroup").exists() == (zarr_format == 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ome_version": "0.4", "to": "zarr"}, r"expected '0.5' for Zarr v3, got '0.4'; without"),
        ({"ome_version": "0.5", "to": "zarr2"}, r"expected '0.4' for Zarr v2, got '0.5'; without"),
        (
            {"ome_version": "0.3"},
            r"ome_version: expected one of None, '0.4', '0.5', '0.6', got '0.3'",
        ),
        ({"ome_version": "0.4", "ome": False}, r"ome_version .*: expected only with ome=True"),
        ({"ome_version": "0.4", "shards": 64}, r"shards .*: expected Zarr v3 as destination"),
        ({"ome_version": "0.4", "coords": True}, r"coords=True .*: expected Zarr v3 .*without ome"),
        ({"ome_version": "0.4", "to": "n5"}, r"ome=True .*: expected Zarr as destination, got N5"),
    ],
    ids=str,
)
def test_options_that_contradict_a_version_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.convert(n5zarr.sample_path(), tmp_path / "out.zarr", **{"ome": True, **options})
    assert not list(tmp_path.iterdir())


def test_the_command_writes_0_4(tmp_path: Path) -> None:
    runs = {"a": ["--to", "zarr2"], "b": ["--ome-version", "0.4"]}
    for name, options in runs.items():
        command = ["convert", n5zarr.sample_path(), str(tmp_path / f"{name}.zarr"), "--ome"]
        done = CliRunner().invoke(app, [*command, *options])
        assert done.exit_code == 0, done.output
        validate_ome(tmp_path / f"{name}.zarr")
        assert ome_of(tmp_path / f"{name}.zarr" / "em")["multiscales"][0]["version"] == "0.4"
