"""The draft 0.6rc0 of OME-Zarr: valid by its JSON schemas, with affines of registered views."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.images.find import find_images
from n5zarr.images.ome_draft import as_06, from_06, other_systems
from tests.command import CliRunner
from tests.contract import bigstitcher
from tests.contract.bigstitcher import SETUPS
from tests.contract.test_ome_pyramid import mean

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = Path(__file__).parents[1] / "data" / "ngff-0.6rc0"
JAVA = Path(__file__).parents[1] / "data" / "java" / "metadata.n5"
DRAFT: Any = "0.6rc0"


def documents() -> dict[str, Any]:
    found = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.schema")}
    assert len(found) >= 10
    return found


def validate(attributes: Any) -> None:
    """Validate the attributes of a group by the schema of what it is."""
    known = documents()
    registry: Any = Registry().with_resources(
        (document["$id"], Resource.from_contents(document)) for document in known.values()
    )
    kinds = {
        "multiscales": "image", "image-label": "label", "plate": "plate", "well": "well",
        "series": "ome", "bioformats2raw.layout": "bf2raw",
    }  # fmt: skip
    ome = attributes["ome"]
    assert ome["version"] == DRAFT
    for part, kind in kinds.items():
        if part in ome:
            validator = Draft202012Validator(known[f"{kind}.schema"], registry=registry)
            validator.validate(attributes)
    for image in ome.get("multiscales", []):
        check_names(image)


def check_names(image: Any) -> None:
    """Check what a JSON schema cannot: "multiscales" and "coordinateSystems" of the draft's text.

    Names of systems are unique; all levels lead to one of them, from which further transforms
    begin; the input of a level is its path.
    """
    names = [system["name"] for system in image["coordinateSystems"]]
    assert len({*names}) == len(names)
    steps = [(d["path"], *d["coordinateTransformations"]) for d in image["datasets"]]
    assert [path for path, _ in steps] == [step["input"]["path"] for _, step in steps]
    (intrinsic,) = {step["output"]["name"] for _, step in steps}
    assert intrinsic in names
    for step in image.get("coordinateTransformations", []):
        assert step["input"]["name"] == intrinsic
        assert step["output"]["name"] in names


def groups(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of all groups with metadata of OME-Zarr."""
    for file in sorted(path.rglob("zarr.json")):
        document = json.loads(file.read_text())
        if "ome" in document.get("attributes", {}):
            yield file.parent.relative_to(path).as_posix(), document["attributes"]


def convert(source: Any, out: Path, **options: Any) -> None:
    with pytest.warns(N5Warning, match=r"OME-Zarr 0\.6rc0 is a draft"):
        n5zarr.convert(source, out, ome=True, ome_version=DRAFT, **options)


def test_the_schemas_tell_valid_from_invalid() -> None:
    for path in SCHEMAS.glob("*.json"):
        attributes = json.loads(path.read_text())["attributes"]
        validate(attributes)
        attributes["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"] = [
            {"type": "scale", "scale": [1.0, 1.0]}  # as in 0.5
        ]
        with pytest.raises(ValidationError, match="is not valid under any of the given schemas"):
            validate(attributes)


@pytest.mark.parametrize("source", [n5zarr.sample_path(), str(JAVA)], ids=["sample", "java"])
def test_images_are_valid_and_shown_like_their_n5(tmp_path: Path, source: str) -> None:
    out = tmp_path / "out.zarr"
    convert(source, out)
    found = dict(groups(out))
    assert len(found) >= 4
    for attributes in found.values():
        validate(attributes)
    images = find_images(source)
    assert [image.path for image in find_images(out)] == [image.path for image in images]
    for image, other in zip(images, find_images(out), strict=True):
        assert (image.axes, image.channels) == (other.axes, other.channels)
        for a, b in zip(image.levels, other.levels, strict=True):
            assert (a.scale, a.translation) == (b.scale, b.translation)
            np.testing.assert_array_equal(a.values[:], b.values[:])  # type: ignore[index]
    assert n5zarr.validate(out, deep=True).findings == ()


def test_registrations_become_affines_to_the_world_and_come_back(tmp_path: Path) -> None:
    xml = bigstitcher.write_project(tmp_path)
    out, old = tmp_path / "out.zarr", tmp_path / "old.zarr"
    with pytest.warns(N5Warning, match="left_green_turned: the registration turns"):
        convert(xml, out)
    with pytest.warns(N5Warning, match="the registration turns"):
        n5zarr.convert(xml, old, ome=True)
    found = dict(groups(out))
    for attributes in found.values():
        validate(attributes)
    (image,) = found["left_green_turned"]["ome"]["multiscales"]
    assert "registration" not in found["left_green_turned"]
    assert [system["name"] for system in image["coordinateSystems"]] == ["intrinsic", "world"]
    (step,) = image["coordinateTransformations"]
    assert (step["type"], step["input"], step["output"]) == (
        "affine", {"name": "intrinsic"}, {"name": "world"},
    )  # fmt: skip
    # an element, time first, by the transforms of its level and the affine: t, z, y, x
    for level in image["datasets"]:
        (own,) = level["coordinateTransformations"]
        by = {each["type"]: each[each["type"]] for each in own.get("transformations", [own])}
        scale, to = np.array(by["scale"]), np.array(by.get("translation", [0.0] * 4))
        x, y, z = 1, 2, 1
        point = scale * [1, z, y, x] + to
        got = np.array(step["affine"]) @ [*point, 1]
        number = int(level["path"].removeprefix("s"))
        by_full = bigstitcher.levels(SETUPS[7])[number]
        full = [i * f + (f - 1) / 2 for i, f in zip((x, y, z), by_full, strict=True)]
        np.testing.assert_allclose(got[:0:-1], bigstitcher.world(SETUPS[7], *full), rtol=1e-12)
        assert got[0] == point[0]
    assert all(
        "coordinateTransformations" not in image
        for path, attributes in found.items()
        if path != "left_green_turned"
        for image in attributes["ome"].get("multiscales", [])
    )
    expected = zarr.open_group(old / "left_green_turned", mode="r").attrs["registration"]
    n5zarr.convert(out, tmp_path / "back.n5")
    kept = n5zarr.get_attribute(tmp_path / "back.n5", "left_green_turned", "registration")
    assert kept == expected
    again = tmp_path / "again.zarr"
    convert(tmp_path / "back.n5", again)
    (other,) = dict(groups(again))["left_green_turned"]["ome"]["multiscales"]
    assert {**other, "name": image["name"]} == image


def test_a_pyramid_of_the_draft_is_valid(tmp_path: Path) -> None:
    data = np.arange(11 * 71 * 83, dtype="u2").reshape(11, 71, 83)
    n5zarr.create_array(
        tmp_path / "in.n5", path="em/s0", data=data, axes="zyx", units=["nm"] * 3,
        resolution=[40, 8, 8], offset=[0, 20, 3],
    )  # fmt: skip
    convert(tmp_path / "in.n5", tmp_path / "out.zarr")
    n5zarr.build_pyramid(tmp_path / "out.zarr" / "em", levels=2)
    attributes = dict(groups(tmp_path / "out.zarr"))["em"]
    validate(attributes)
    (image,) = attributes["ome"]["multiscales"]
    step = image["datasets"][1]["coordinateTransformations"][0]
    assert step["transformations"] == [
        {"type": "scale", "scale": [40.0, 16.0, 16.0]},
        {"type": "translation", "translation": [0.0, 24.0, 7.0]},
    ]
    array = zarr.open_array(tmp_path / "out.zarr" / "em" / "s1", mode="r")
    np.testing.assert_array_equal(array[...], mean(data, [1, 2, 2]))
    assert n5zarr.validate(tmp_path / "out.zarr").findings == ()


def test_the_intrinsic_system_need_not_be_the_first(tmp_path: Path) -> None:
    """An example of the draft: ``physical`` comes first, and levels lead to ``intrinsic``."""
    document = json.loads((SCHEMAS / "multiscales_transformations.json").read_text())
    group = zarr.create_group(tmp_path / "in.zarr")
    group.create_array("s0", data=np.ones((5, 7), "u1"), dimension_names=["y", "x"])
    image = document["attributes"]["ome"]["multiscales"][0]
    image["coordinateSystems"][0]["axes"][0]["unit"] = "millimeter"
    group.attrs.update(document["attributes"])
    assert n5zarr.geometry(tmp_path / "in.zarr", "s0").units == ("micrometer", "micrometer")
    with pytest.warns(N5Warning, match="the transform to 'physical' is omitted, as N5 has no"):
        n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5")
    assert n5zarr.geometry(tmp_path / "out.n5", "s0").scale == (1.0, 1.0)


def test_a_transform_may_lead_to_the_intrinsic_system() -> None:
    """One of its ends is intrinsic, the other is told as omitted; of labels, too."""
    document = json.loads((SCHEMAS / "multiscales_transformations.json").read_text())
    image = document["attributes"]["ome"]["multiscales"][0]
    assert other_systems(image) == ["physical"]
    (step,) = image["coordinateTransformations"]
    step["input"], step["output"] = step["output"], step["input"]
    assert other_systems(image) == ["physical"]
    step["input"] = {"path": "labels/cells", "name": "intrinsic"}
    assert other_systems(image) == ["intrinsic"]


@pytest.mark.parametrize("output", [{"name": "none"}, {}], ids=["unknown", "missing"])
def test_levels_without_a_known_system_are_an_error(tmp_path: Path, output: Any) -> None:
    document = json.loads((SCHEMAS / "multiscales_transformations.json").read_text())
    group = zarr.create_group(tmp_path / "in.zarr")
    group.create_array("s0", data=np.ones((5, 7), "u1"))
    image = document["attributes"]["ome"]["multiscales"][0]
    image["datasets"][0]["coordinateTransformations"][0]["output"] = output
    image["coordinateSystems"] = image["coordinateSystems"] if output else []
    group.attrs.update(document["attributes"])
    with pytest.raises(N5UnrepresentableError, match="expected one of coordinateSystems as the"):
        n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5")
    with pytest.raises(N5UnrepresentableError, match="expected one of coordinateSystems as the"):
        n5zarr.thumbnail(tmp_path / "in.zarr")
    assert not n5zarr.validate(tmp_path / "in.zarr").ok


def test_an_affine_that_moves_other_axes_is_no_registration() -> None:
    axes = [{"name": name} for name in "czyx"]
    level: Any = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1.0] * 4}]}
    rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
    made: Any = as_06({"axes": axes, "datasets": [level], "registration": rows})
    assert made["coordinateTransformations"][0]["affine"] == [
        [1, 0, 0, 0, 0], [0, 11, 10, 9, 12], [0, 7, 6, 5, 8], [0, 3, 2, 1, 4],
    ]  # fmt: skip
    assert from_06(made)["registration"] == rows
    made["coordinateTransformations"][0]["affine"][0][1] = 5.0
    assert "registration" not in from_06(made)


def test_the_command_marks_the_draft(tmp_path: Path) -> None:
    out = str(tmp_path / "out.zarr")
    args = ["convert", n5zarr.sample_path(), out, "--ome", "--ome-version", DRAFT]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 0, done.output
    assert "is a draft" in done.output
    assert "draft" in CliRunner().invoke(app, ["convert", "--help"]).output
    with pytest.raises(N5UnrepresentableError, match="ome_version: expected one of"):
        n5zarr.convert(n5zarr.sample_path(), tmp_path / "b.zarr", ome=True, ome_version="0.6")  # type: ignore[arg-type]
