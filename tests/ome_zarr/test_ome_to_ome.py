"""``convert(..., ome=True)`` of OME-Zarr writes another version, with the same images.

Expected: what the source says, by the specification of its version; yaozarrs, or for 0.6 its
schemas, ome-zarr-models and ome-zarr, accept the result.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5UnrepresentableError, N5Warning
from tests.contract import test_ome_06
from tests.contract.viewers import validate_ome
from tests.ome_zarr.documents import metadata

SOURCES = ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6rc0", "0.6"]
TARGETS: Any = {"0.4": 2, "0.5": 3, "0.6": 3}
SHAPE = (2, 7, 11, 13)
OMERO: dict[str, Any] = {
    "channels": [
        {"color": color, "active": True, "label": f"channel {color}",
         "window": {"start": 3, "end": 500, "min": 0, "max": 65535}}
        for color in ("00FF00", "FF00FF")
    ],
    "rdefs": {"model": "color"},
}  # fmt: skip
AXES = [{"name": "c", "type": "channel"}] + [
    {"name": name, "type": "space", "unit": "nanometer"} for name in "zyx"
]
SCALES, OFFSETS = [[1.0, 4.0, 0.3, 0.3], [1.0, 4.0, 0.6, 0.6]], [0.0, 100.0, 0.15, -2.5]


def elements(*shape: int, dtype: Any = "u2") -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).integers(0, 250, shape).astype(dtype)


def image_of(version: str, name: str, scales: Any, offset: Any, axes: Any = AXES) -> dict[str, Any]:
    """Describe an image with levels 0, 1, ... by the specification of a version."""
    datasets: list[Any] = [{"path": str(i)} for i, _ in enumerate(scales)]
    image = {"name": name, "datasets": datasets, "type": "gaussian", "metadata": {"sigma": 2}}
    if version in ("0.1", "0.2"):
        return image | {"version": version}
    if version == "0.3":
        return image | {"version": version, "axes": [axis["name"] for axis in axes]}
    for entry, scale in zip(datasets, scales, strict=True):
        steps: list[Any] = [{"type": "scale", "scale": scale}]
        steps += [{"type": "translation", "translation": offset}] if any(offset) else []
        if version >= "0.6":
            ends = {"input": {"path": entry["path"]}, "output": {"name": "physical"}}
            one: Any = {"type": "sequence", "transformations": steps} if steps[1:] else steps[0]
            steps = [{**one, **ends}]
        entry["coordinateTransformations"] = steps
    if version >= "0.6":
        return image | {"coordinateSystems": [{"name": "physical", "axes": axes}]}
    return image | {"axes": axes} | ({"version": "0.4"} if version == "0.4" else {})


def stated(version: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return metadata if version < "0.5" else {"ome": {"version": version, **metadata}}


def write(path: Path, version: str, **options: Any) -> zarr.Group:
    """Write an image of two channels and two levels, with labels and a table below it."""
    zarr_format: Any = 2 if version < "0.5" else 3
    names: dict[str, Any] = {"dimension_names": list("czyx")} if zarr_format == 3 else {}
    root = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    data = elements(*SHAPE)
    for name, level in (("0", data), ("1", data[..., ::2, ::2])):
        options = {"chunks": (1, 3, 5, 5)} | options
        root.create_array(name, data=level, attributes={"of": name}, **options, **names)
    image = image_of(version, "cells", SCALES, OFFSETS)
    own = stated(version, {"multiscales": [image], "omero": OMERO})
    root.attrs.put({"own": [1, {"a": None}]} | own)
    root.create_group("labels").attrs.put(stated(version, {"labels": ["nuclei"]}))
    nuclei = root.create_group("labels/nuclei")
    names = {"dimension_names": list("zyx")} if zarr_format == 3 else {}
    seeds = elements(*SHAPE[1:], dtype="u4")
    nuclei.create_array("0", data=seeds, **names)
    nuclei.create_array("1", data=seeds[..., ::2, ::2], **names)
    red = [{"label-value": 1, "rgba": [255, 0, 0, 255]}]
    colors = {"colors": red, "source": {"image": "../../"}}
    image = image_of(version, "nuclei", [each[1:] for each in SCALES], [0, 0, 0], AXES[1:])
    nuclei.attrs.put(stated(version, {"multiscales": [image], "image-label": colors}))
    root.create_array("tables/points", data=elements(17, 3, dtype="f8"))
    return root


def check(path: Path, version: str) -> None:
    """Check all groups with validators, and chunks with n5zarr."""
    if version == "0.6":
        test_ome_06.check(path)
    else:
        validate_ome(path)
    findings = n5zarr.validate(path, deep=True).findings
    assert [finding for finding in findings if finding.severity != "note"] == []


def convert(source: Path, out: Path, version: Any, **options: Any) -> n5zarr.Conversion:
    return n5zarr.convert(source, out, ome=True, ome_version=version, **options)


@pytest.mark.each_of(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("version", SOURCES)
def test_every_version_becomes_every_version(tmp_path: Path, version: str, target: str) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    write(source, version)
    done = convert(source, out, target, verify=True)
    assert {array.path: array.chunks for array in done.arrays}["1"] == (1, 3, 5, 5)
    check(out, target)
    group = zarr.open_group(out, mode="r", zarr_format=TARGETS[target])
    data = elements(*SHAPE)
    for path, values in {
        "0": data, "1": data[..., ::2, ::2], "labels/nuclei/0": elements(*SHAPE[1:], dtype="u4"),
        "tables/points": elements(17, 3, dtype="f8"),
    }.items():  # fmt: skip
        np.testing.assert_array_equal(group[path][...], values)  # type: ignore[index]
    assert group["1"].attrs["of"] == "1"
    assert group.attrs["own"] == [1, {"a": None}]
    own: Any = group.attrs.asdict()
    own = own.get("ome", own)
    assert {key: value for key, value in own["omero"].items() if key != "version"} == OMERO
    assert metadata(out / "labels")["labels"] == ["nuclei"]
    label = metadata(out / "labels/nuclei")["image-label"]
    assert (label["source"], label["colors"][0]["rgba"]) == ({"image": "../../"}, [255, 0, 0, 255])
    # 0.1 to 0.3 have neither units nor transforms: a level is scaled by the ratio of the shapes
    is_old = version < "0.4"
    axes = [{k: v for k, v in axis.items() if k != "unit" or not is_old} for axis in AXES]
    scales: Any = [[1] * 4, [1, 1, 11 / 6, 13 / 7]] if is_old else SCALES
    expected = image_of(target, "cells", scales, [0] * 4 if is_old else OFFSETS, axes)
    if target == "0.6":  # its own name of the coordinate system
        text = json.dumps(own["multiscales"][0]).replace('"intrinsic"', '"physical"')
        assert json.loads(text) == expected
    else:
        assert own["multiscales"] == [expected]


@pytest.mark.each_of(2)
@pytest.mark.parametrize(
    ("version", "target", "options", "ways"),
    [
        ("0.4", "0.4", {}, {"chunks"}),
        ("0.5", "0.5", {}, {"chunks"}),
        ("0.5", "0.6", {"dtype": ">u2"}, {"chunks"}),
        ("0.4", "0.5", {"dtype": ">u2", "order": "F"}, {"values"}),
        ("0.5", "0.4", {"shards": (1, 6, 10, 10)}, {"values"}),
        ("0.4", "0.5", {"dtype": "bool"}, {"values"}),
        ("0.4", "0.5", {"dtype": "f4", "fill_value": np.nan}, {"values"}),
        ("0.5", "0.4", {"fill_value": 41}, {"values"}),
        ("0.2", "0.2", {"chunk_key_encoding": {"name": "v2", "separator": "."}}, {"chunks"}),
    ],
)  # fmt: skip
def test_arrays_stay_as_they_are(
    tmp_path: Path, version: str, target: str, options: Any, ways: set[str]
) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    target = max(target, "0.4")
    root = write(source, version)
    options = {"dtype": "u2"} | options
    data = elements(*SHAPE).astype(np.dtype(options["dtype"]).newbyteorder("="))
    data[:, 3:] = options.get("fill_value", 0)
    array = root.create_array("0", shape=SHAPE, chunks=(1, 3, 5, 5), overwrite=True, **options)
    array[...] = data
    root.create_array("1", data=data[..., ::2, ::2], overwrite=True, chunks=(1, 3, 5, 5))
    done = convert(source, out, target, verify=True)
    assert {each.way for each in done.arrays if each.path == "0"} == ways
    check(out, target)
    written: Any = zarr.open_array(out / "0", mode="r")
    np.testing.assert_array_equal(written[...], data)
    assert (written.dtype.newbyteorder("="), written.chunks) == (data.dtype, array.chunks)
    np.testing.assert_equal(written.fill_value, array.fill_value)
    n_stored = [each.nchunks_initialized for each in (array, written) if not each.shards]
    assert len({*n_stored}) == 1


@pytest.mark.each_of(2)  # of two versions
@pytest.mark.parametrize(
    ("version", "target"), [("0.4", "0.5"), ("0.4", "0.4"), ("0.5", "0.4"), ("0.5", "0.5")]
)
def test_a_collection_stays_one(tmp_path: Path, version: str, target: str) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    root = zarr.open_group(source, mode="w", zarr_format=TARGETS[version])
    root.attrs.put(stated(version, {"bioformats2raw.layout": 3}))
    for name in ("1", "0"):
        write(source / name, version)
    root.create_group("OME").attrs.put(stated(version, {"series": ["1", "0"]}))
    xml = b"<OME>in the order of the series</OME>"
    (source / "OME/METADATA.ome.xml").write_bytes(xml)
    convert(source, out, target)
    validate_ome(out)
    assert metadata(out) == {"bioformats2raw.layout": 3}
    assert metadata(out / "OME") == {"series": ["1", "0"]}
    assert (out / "OME/METADATA.ome.xml").read_bytes() == xml
    n5zarr.convert(source / "1", tmp_path / "one.zarr", to="ome-zarr", ome_version=target)  # type: ignore[arg-type]
    assert metadata(tmp_path / "one.zarr") == metadata(out / "1")

    convert(source, tmp_path / "some.zarr", target, select="1/labels/*")
    assert metadata(tmp_path / "some.zarr" / "OME") == {"series": []}
    convert(source, tmp_path / "level.zarr", target, select=["0/1", "1/[01]"], verify=True)
    assert metadata(tmp_path / "level.zarr/OME") == {"series": ["0", "1"]}
    assert not (tmp_path / "level.zarr/OME/METADATA.ome.xml").exists()
    validate_ome(tmp_path / "level.zarr")
    (level,) = metadata(tmp_path / "level.zarr/0")["multiscales"][0]["datasets"]
    assert level == image_of("0.4", "", SCALES, OFFSETS)["datasets"][1]


def test_transforms_of_the_image_become_those_of_its_levels(tmp_path: Path) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    image: Any = image_of("0.4", "a", SCALES, OFFSETS)
    by, to = [1, 2, 10, 0.5], [0, 7, 0, 1]
    image["coordinateTransformations"] = [
        {"type": "scale", "scale": by}, {"type": "translation", "translation": to},
    ]  # fmt: skip
    write(source, "0.4").attrs["multiscales"] = [image]
    convert(source, out, "0.5")
    check(out, "0.5")
    (written,) = metadata(out)["multiscales"]
    assert "coordinateTransformations" not in written
    for entry, scale in zip(written["datasets"], SCALES, strict=True):
        first, second = entry["coordinateTransformations"]
        np.testing.assert_allclose(first["scale"], np.multiply(scale, by))
        np.testing.assert_allclose(second["translation"], np.multiply(OFFSETS, by) + to)


def test_registrations_become_attributes_and_come_back(tmp_path: Path) -> None:
    new, old, again = (tmp_path / f"{name}.zarr" for name in ("new", "old", "again"))
    root = write(new, "0.6")
    ome: Any = root.attrs["ome"]
    (image,) = ome["multiscales"]
    image["coordinateSystems"] += [{"name": name, "axes": AXES} for name in ("world", "atlas")]
    matrix = [[1.0, 0, 0, 0, 0], [0, 1, 0, 0, 5], [0, 0, 0.5, 2, 0], [0, 0, 0, 1, 3]]
    image["coordinateTransformations"] = [
        {"type": "affine", "affine": matrix, "input": {"name": "physical"}, "output": {"name": to}}
        for to in ("world", "atlas")
    ]
    image["coordinateTransformations"][1]["affine"] = [*matrix[:3], [0, 0, 0, 2, 3]]
    root.attrs["ome"] = ome
    with pytest.warns(N5Warning, match="/: the transform to 'atlas' is omitted"):
        convert(new, old, "0.4")
    rows = [1, 0, 0, 3, 2, 0.5, 0, 0, 0, 0, 1, 5]  # of x, y, z
    assert zarr.open_group(old, mode="r").attrs["registration"] == rows
    convert(old, again, "0.6")
    check(again, "0.6")
    ((written,), own) = metadata(again)["multiscales"], zarr.open_group(again, mode="r").attrs
    assert [step["affine"] for step in written["coordinateTransformations"]] == [matrix]
    assert "registration" not in own


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    write(source, "0.4")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(source, out, "0.5", progress=interrupt)
    assert not (out / "zarr.json").exists()
    convert(source, out, "0.5", resume=True)
    check(out, "0.5")
    assert convert(source, out, "0.5", resume=True).verified


def test_patterns_of_labels_mark_images(tmp_path: Path) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    root = zarr.open_group(source, mode="w", zarr_format=2)
    for name in ("em", "seg"):
        write(source / name, "0.4")
    assert "seg" in root
    convert(source, out, "0.5", labels="seg")
    assert "image-label" not in metadata(out / "em")
    assert metadata(out / "seg")["image-label"] == {}
    assert "colors" in metadata(out / "em/labels/nuclei")["image-label"]


@pytest.mark.parametrize(("version", "to"), [("0.4", "zarr"), ("0.5", "zarr2")])
def test_a_plain_copy_that_no_program_finds_is_told(tmp_path: Path, version: str, to: Any) -> None:
    source = tmp_path / "in.zarr"
    write(source, version)
    with pytest.warns(N5Warning, match=r"2 images of OME-Zarr .*, such as /, .* ome=True"):
        n5zarr.convert(source, tmp_path / "a.zarr", to=to)
    with warnings.catch_warnings():
        warnings.simplefilter("error", N5Warning)
        n5zarr.convert(source, tmp_path / "b.zarr", to="zarr" if to == "zarr2" else "zarr2")
    check(tmp_path / "b.zarr", version)


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.zarr"
    root = write(source, "0.4")
    for place in (source / "0", source / "tables"):
        with pytest.raises(N5UnrepresentableError, match="expected N5, or a group of OME-Zarr"):
            convert(place, tmp_path / "out.zarr", "0.5")
    with pytest.raises(N5UnrepresentableError, match="expected an image with levels"):
        convert(source, tmp_path / "out.zarr", "0.5", select="tables/*")
    image: Any = root.attrs["multiscales"]
    image[0]["datasets"][0]["coordinateTransformations"] = [{"type": "affine", "affine": []}]
    root.attrs["multiscales"] = image
    said = "expected scales and translations, got affine"
    with pytest.raises(N5UnrepresentableError, match=said):
        convert(source, tmp_path / "out.zarr", "0.5")
    assert not (tmp_path / "out.zarr").exists()


def invalid(
    path: Path, names: str, scale: float = 1.0, zarr_format: Any = 3
) -> np.ndarray[Any, Any]:
    """Write an image of one level with any axes."""
    kinds = {"t": "time", "c": "channel"} | dict.fromkeys("zyx", "space")
    data = elements(*(2, 3, 5, 7, 11, 13)[: len(names)])
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    options: Any = {"dimension_names": list(names)} if zarr_format == 3 else {}
    group.create_array("0", data=data, **options)
    axes = [{"name": name} | ({"type": kinds[name]} if name in kinds else {}) for name in names]
    step = {"type": "scale", "scale": [1.0] * (len(names) - 1) + [scale]}
    image: dict[str, Any] = {
        "axes": axes, "datasets": [{"path": "0", "coordinateTransformations": [step]}],
    }  # fmt: skip
    image |= {} if zarr_format == 3 else {"version": "0.4"}
    group.attrs.put(stated("0.5" if zarr_format == 3 else "0.4", {"multiscales": [image]}))
    return data


@pytest.mark.parametrize(
    ("names", "scale", "message"),
    [
        ("ctzyx", 1.0, "expected the order time, channel, space"),
        ("xcy", 1.0, "expected the order time, channel, space"),
        ("t", 1.0, "expected a list of 2 to 5 axes"),
        ("abdefg", 1.0, "expected a list of 2 to 5 axes"),
        ("zyxc", 1.0, "expected the order time, channel, space"),
        ("cy", 1.0, "two or three of the type space"),
        ("yx", -2.0, "expected scales above 0"),
        ("yx", 0.0, "expected scales above 0"),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_an_image_that_no_program_opens_is_refused(
    tmp_path: Path, names: str, scale: float, message: str, target: str
) -> None:
    source, out = tmp_path / "in.zarr", tmp_path / "out.zarr"
    way_out = "to N5" if 2 <= len(names) <= 5 else "without ome=True"
    invalid(source, names, scale, zarr_format=TARGETS[target])
    with pytest.raises(N5UnrepresentableError, match=f"{message}.*; convert it {way_out}"):
        convert(source, out, target)
    assert not out.exists()


def test_the_way_out_orders_axes_and_reverses_mirrored_ones(tmp_path: Path) -> None:
    for names, order, scale in (("ctzyx", (1, 0, 2, 3, 4), 1.0), ("zyx", (0, 1, 2), -2.0)):
        data = invalid(tmp_path / f"{names}.zarr", names, scale).transpose(order)
        n5zarr.convert(tmp_path / f"{names}.zarr", tmp_path / f"{names}.n5")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*in reverse order along x", N5Warning)
            convert(tmp_path / f"{names}.n5", tmp_path / f"{names}out.zarr", "0.5", verify=True)
        check(tmp_path / f"{names}out.zarr", "0.5")
        found = zarr.open_array(tmp_path / f"{names}out.zarr/s0", mode="r")[...]
        np.testing.assert_array_equal(found, data if scale > 0 else data[..., ::-1])


@pytest.mark.parametrize("to", ["n5", "ome-zarr"])
def test_levels_that_contradict_each_other_are_copied_with_a_warning(
    tmp_path: Path, to: Any
) -> None:
    source = tmp_path / "in.zarr"
    data = elements(96, 48)
    group = zarr.open_group(source, mode="w", zarr_format=3)
    for name, level in (("0", data), ("1", data[::4, ::4].astype("u4"))):
        group.create_array(name, data=level, dimension_names=list("yx"))
    axes = [{"name": name, "type": "space", "units": "um"} for name in "yx"]
    image = image_of("0.5", "cells", [[0.25, 0.25], [0.5, 0.5]], [0, 0], axes)
    group.attrs.put(stated("0.5", {"multiscales": [image]}))
    wrong = [
        r"axes: expected unit, got units: .*\"y\"",
        "1: expected the data type of 0, uint16, got uint32",
        r"1: scale: .* ratio of the shapes, \(96, 48\) and \(24, 12\), got \[0.5, 0.5\]",
    ]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        n5zarr.convert(source, tmp_path / "out", to=to, ome=to != "n5")
    for text in wrong:
        assert len([w for w in found if re.search(text, str(w.message))]) == 1, (text, found)
    copied = zarr.open_array(n5zarr.N5Store(tmp_path / "out") if to == "n5" else tmp_path / "out",
                             path="s1" if to == "n5" else "1", mode="r")  # fmt: skip
    np.testing.assert_array_equal(copied[...], data[::4, ::4])
    messages = " ".join(f.message for f in n5zarr.validate(tmp_path / "out").findings)
    assert re.search(r"scale: .*\(96, 48\) and \(24, 12\)|\(48, 96\) and \(12, 24\)", messages)
