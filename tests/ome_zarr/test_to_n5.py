"""OME-Zarr becomes N5 with the same elements and places, or an error says why not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.contract.stored import by_tensorstore
from tests.contract.test_ome_zarr import VERSIONS, ome_of, placed
from tests.contract.viewers import Seen, n5_universe, neuroglancer, validate_ome
from tests.ome_zarr import test_pyramid

AXES = [
    {"name": "c", "type": "channel"},
    *({"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"),
]
STEPS: list[dict[str, list[float]]] = [
    {"scale": [1, 1.5, 0.25, 0.5], "translation": [0, 30, 20, 10]},
    {"scale": [1, 3, 0.5, 1], "translation": [0, 30.75, 20.125, 10.25]},
]
CHANNELS = [
    {"label": c, "color": "00FF00", "window": {"min": 0, "max": 65535, "start": 3, "end": 700}}
    for c in "ab"
]


def write_image(group: zarr.Group, axes: slice = slice(None), **others: Any) -> list[Any]:
    """Write an image as the specifications of 0.4 and 0.5 describe; return its levels."""
    shapes = [(2, 5, 7, 11)[axes], (2, 3, 4, 6)[axes]]
    is_new = group.metadata.zarr_format == 3
    rng = np.random.default_rng(7)
    levels = [rng.integers(0, 999, shape).astype("u2") for shape in shapes]
    datasets = []
    for k, (level, steps) in enumerate(zip(levels, STEPS, strict=True)):
        names = [axis["name"] for axis in AXES[axes]] if is_new else None
        chunks = (1, 2, 3, 4)[axes]
        group.create_array(str(k), data=level, chunks=chunks, dimension_names=names)
        own = [{"type": kind, kind: numbers[axes]} for kind, numbers in steps.items()]
        datasets.append({"path": str(k), "coordinateTransformations": own})
    image: dict[str, Any] = {"axes": AXES[axes], "datasets": datasets, "name": "an image"}
    set_ome(group, multiscales=[image], **others)
    return levels


def set_ome(group: zarr.Group, **attributes: Any) -> None:
    if group.metadata.zarr_format == 3:
        group.attrs["ome"] = {"version": "0.5", **attributes}
        return
    for image in attributes.get("multiscales", []):
        image["version"] = "0.4"
    group.attrs.update(attributes)


@pytest.mark.parametrize("zarr_format", [2, 3], ids=["0.4", "0.5"])
def test_ome_zarr_becomes_n5(tmp_path: Path, zarr_format: Any) -> None:
    """A collection of two OME-Zarr series becomes N5, with the labels of the second."""
    source, out = tmp_path / "in.zarr", tmp_path / "out.n5"
    root = zarr.create_group(source, zarr_format=zarr_format)
    set_ome(root, **{"bioformats2raw.layout": 3})
    omero = {"channels": CHANNELS}
    images = [write_image(root.create_group(str(i)), omero=omero) for i in range(2)]
    set_ome(root.create_group("1/labels"), labels=["cells"])
    label = {"image-label": {"source": {"image": "../../"}}}
    labels = write_image(root.create_group("1/labels/cells"), slice(1, None), **label)
    validate_ome(source)
    n5zarr.convert(source, out, verify=True)
    expected = {
        "s0": Seen((0.5, 0.25, 1.5), (10, 20, 30), "micrometer"),
        "s1": Seen((1, 0.5, 3), (10.25, 20.125, 30.75), "micrometer"),
    }
    for i, levels in enumerate(images):
        for k, level in enumerate(levels):
            np.testing.assert_array_equal(by_tensorstore(out / str(i) / f"s{k}"), level)
        seen = n5_universe(out / str(i))
        assert {name: (s.scale[:3], s.translation[:3], s.unit) for name, s in seen.items()} == {
            name: (s.scale, s.translation, s.unit) for name, s in expected.items()
        }
        document = json.loads((out / str(i) / "attributes.json").read_text())
        assert document["omero"] == omero
        assert not {"0", "1"} & {path.name for path in (out / str(i)).iterdir()}
    assert n5_universe(out / "1" / "labels" / "cells") == expected
    assert "image-label" in json.loads((out / "1/labels/cells/attributes.json").read_text())
    for name, level in zip(("s0", "s1"), labels, strict=True):
        np.testing.assert_array_equal(by_tensorstore(out / "1" / "labels" / "cells" / name), level)
    space = neuroglancer(out, out / "0")
    assert (space.names, space.factors) == (list("xyzc"), [[1, 1, 1, 1], [2, 2, 2, 1]])
    back = tmp_path / "back.zarr"
    n5zarr.convert(out, back, ome=True)
    validate_ome(back / "1")
    for i in range(2):
        assert placed(back / str(i)) == [(s["scale"], s["translation"]) for s in STEPS]
        assert ome_of(back / str(i))["omero"] == omero


def test_a_transform_that_n5_cannot_express_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "in.zarr"
    write_image(zarr.create_group(source))
    document = json.loads((source / "zarr.json").read_text())
    entry = document["attributes"]["ome"]["multiscales"][0]["datasets"][1]
    entry["coordinateTransformations"] = [{"type": "affine", "affine": [[1]]}]
    (source / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(N5UnrepresentableError, match="expected scales and translations, got aff"):
        n5zarr.convert(source, tmp_path / "out.n5")
    assert not (tmp_path / "out.n5").exists()


@VERSIONS
def test_what_goes_to_ome_zarr_and_back_is_the_same(tmp_path: Path, version: Any) -> None:
    """Of either version, N5 has the same levels, and the other version no remains of the first."""
    out, back, again = tmp_path / "out.zarr", tmp_path / "back.n5", tmp_path / "again.zarr"
    n5zarr.convert(n5zarr.sample_path(), out, ome=True, ome_version=version)
    n5zarr.convert(out, back)
    sample = Path(n5zarr.sample_path())
    for name in ("em/s0", "em/s2", "labels/s0"):
        np.testing.assert_array_equal(by_tensorstore(back / name), by_tensorstore(sample / name))
    old, new = (n5zarr.geometry(path, "em") for path in (sample, back))
    assert [(level.scale, level.translation) for level in new.levels] == [
        (level.scale, level.translation) for level in old.levels
    ]
    attributes = json.loads((back / "em/attributes.json").read_text())
    assert "_ARRAY_DIMENSIONS" not in attributes
    other = "0.5" if version == "0.4" else "0.4"
    n5zarr.convert(back, again, ome=True, ome_version=other)  # type: ignore[arg-type]
    validate_ome(again)
    assert ("bioformats2raw.layout" in zarr.open_group(again).attrs) == (other == "0.4")


# ------------------------------------------------------------------------ damaged sources

DAMAGES: dict[str, Any] = {
    "cut": lambda _: "{",
    "without a member": lambda text: json.dumps(
        {key: value for key, value in json.loads(text).items() if key != "fill_value"}
    ),
    "codec": lambda text: text.replace('"bytes"', '"nope"'),
}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """Write an image of two levels."""
    test_pyramid.write(tmp_path / "a.zarr", 3)
    n5zarr.build_pyramid(tmp_path / "a.zarr", levels=1)
    return tmp_path / "a.zarr"


def test_a_damaged_level_is_an_error(image: Path, tmp_path: Path) -> None:
    document = image / "0" / "zarr.json"
    before = document.read_text()
    for damage in DAMAGES.values():
        document.write_text(damage(before))
        with pytest.raises(N5UnrepresentableError, match=r"a\.zarr.*: expected"):
            n5zarr.convert(image, tmp_path / "a.n5")
        with pytest.raises(N5UnrepresentableError, match="0: expected an array of Zarr"):
            n5zarr.build_pyramid(image, levels=1, overwrite=True)
        assert not (tmp_path / "a.n5").exists()


def test_a_missing_level_is_told(image: Path, tmp_path: Path) -> None:
    shutil.rmtree(image / "0")
    with pytest.warns(n5zarr.N5Warning, match="0: omitted, as multiscales lists it"):
        n5zarr.convert(image, tmp_path / "a.n5")
