"""OME-Zarr 0.6 is valid by its JSON schemas, and other programs read it.

Affines of registered views lead to another coordinate system.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ome_zarr_models
import pytest
import zarr
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from ome_zarr.classes.image import OMEZarrMultiscale
from referencing import Registry, Resource

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError
from n5zarr.images.ome_06 import as_06, from_06, other_systems
from tests.command import CliRunner

SCHEMAS = Path(__file__).parents[1] / "data" / "ngff-0.6"
JAVA = Path(__file__).parents[1] / "data" / "java" / "metadata.n5"
VERSION: Any = "0.6"


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
    assert ome["version"] in (VERSION, "0.6rc0")
    for part, kind in kinds.items():
        if part in ome:
            validator = Draft202012Validator(known[f"{kind}.schema"], registry=registry)
            validator.validate(attributes)
    for image in ome.get("multiscales", []):
        check_names(image)


def check_names(image: Any) -> None:
    """Check what a JSON schema cannot: "multiscales" and "coordinateSystems" of the specification.

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


def check(path: Path) -> None:
    """Check all groups by the schemas and ome-zarr-models, and read images with ome-zarr."""
    for inner, attributes in groups(path):
        validate(attributes)
        if attributes["ome"].keys().isdisjoint({"series", "bioformats2raw.layout"}):
            ome_zarr_models.open_ome_zarr(zarr.open_group(path / inner, mode="r"), version=VERSION)
        if "multiscales" in attributes["ome"]:
            read = OMEZarrMultiscale.from_ome_zarr(str(path / inner))
            assert len(read.images) == len(attributes["ome"]["multiscales"][0]["datasets"])


def convert(source: Any, out: Path, **options: Any) -> None:
    n5zarr.convert(source, out, ome=True, ome_version=VERSION, **options)


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
def test_images_are_valid(tmp_path: Path, source: str) -> None:
    out = tmp_path / "out.zarr"
    convert(source, out)
    assert len(dict(groups(out))) >= 4
    check(out)


def test_a_transform_may_lead_to_the_intrinsic_system() -> None:
    """One of its ends is intrinsic, the other is told as omitted; of labels, too.

    An identity, as to labels, says what N5 says without it.
    """
    document = json.loads((SCHEMAS / "multiscales_transformations.json").read_text())
    image = document["attributes"]["ome"]["multiscales"][0]
    assert other_systems(image) == ["physical"]
    (step,) = image["coordinateTransformations"]
    step["input"], step["output"] = step["output"], step["input"]
    assert other_systems(image) == ["physical"]
    step["input"] = {"path": "labels/cells", "name": "intrinsic"}
    assert other_systems(image) == ["intrinsic"]
    step["type"] = "identity"
    assert other_systems(image) == []


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


def test_the_command_writes_0_6_and_only_reads_the_draft(tmp_path: Path) -> None:
    out = tmp_path / "out.zarr"
    args = ["convert", n5zarr.sample_path(), str(out), "--ome", "--ome-version"]
    done = CliRunner().invoke(app, [*args, VERSION])
    assert done.exit_code == 0, done.output
    assert dict(groups(out))["em"]["ome"]["version"] == "0.6"
    draft: Any = "0.6rc0"
    with pytest.raises(N5UnrepresentableError, match=r"'0\.5', '0\.6', got '0\.6rc0'"):
        n5zarr.convert(n5zarr.sample_path(), tmp_path / "b.zarr", ome=True, ome_version=draft)
    assert CliRunner().invoke(app, [*args, draft]).exit_code != 0
