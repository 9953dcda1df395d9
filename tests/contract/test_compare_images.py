"""``compare`` finds the images of N5, OME-Zarr and projects equal, and names each change."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import Comparison, Difference
from n5zarr.errors import N5UnrepresentableError
from tests.command import printed
from tests.contract import bigstitcher

SHAPE = (13, 17, 19)
SHIFT = np.column_stack([np.eye(3), [0, 0.25, 0]])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an image of three levels, its labels, and a table beside them."""
    path = tmp_path_factory.mktemp("source") / "a.n5"
    data = np.random.default_rng(7).integers(1, 999, SHAPE)
    for name, dtype in {"em/s0": "u2", "em/labels/cells/s0": "u4"}.items():
        n5zarr.create_array(path, path=name, data=data.astype(dtype), chunks=(5, 7, 11))
        place: Any = {"scale": [4.5, 1 / 3, 0.25], "translation": [7.0, 11.0, -13.0]}
        n5zarr.set_geometry(path, name, names="zyx", units=["um"] * 3, **place)
        n5zarr.build_pyramid(path, name.removesuffix("/s0"), levels=2, factors=(2, 2, 2))
    n5zarr.create_array(path, path="table", data=np.arange(11.0), chunks=(5,))
    return path


@pytest.fixture(scope="module", params=["0.4", "0.5", "0.6"])
def copied(source: Path, request: pytest.FixtureRequest) -> Path:
    path = source.parent / f"{request.param}.zarr"
    n5zarr.convert(source, path, ome=True, ome_version=request.param)
    return path


@pytest.fixture
def changed(copied: Path, tmp_path: Path) -> Path:
    return shutil.copytree(copied, tmp_path / "changed.zarr")


def seen(found: Comparison) -> list[tuple[str, str, str]]:
    return [(d.path, d.what, d.key) for d in found.differences]


def change(image: Path, edit: Any) -> None:
    """Change the first of the multiscales in the document of a group."""
    file = next(f for name in ("zarr.json", ".zattrs") if (f := image / name).exists())
    document = json.loads(file.read_text())
    attributes = document.get("attributes", document)
    edit(attributes.get("ome", attributes)["multiscales"][0])
    file.write_text(json.dumps(document))


def only(found: Comparison) -> Difference:
    (difference,) = found.differences
    return difference


@pytest.mark.each_of(3)
def test_copies_are_equal_in_either_order(source: Path, copied: Path) -> None:
    for sides in ((source, copied), (copied, source)):
        found = n5zarr.compare(*sides)
        assert found.is_equal, found
        assert (found.n_images, found.n_groups, found.n_arrays) == (2, 0, 7)
    assert n5zarr.compare(source / "em" / "s1", copied / "em" / "s1").is_equal
    group = zarr.open_group(copied, mode="r")
    assert n5zarr.compare(n5zarr.open(source), group, scheduler="processes", n_workers=1).is_equal
    assert not n5zarr.compare(source / "em", copied / "em", images=False).is_equal


@pytest.mark.each_of(3)
def test_versions_of_ome_zarr_are_compared_by_image_if_asked(source: Path, copied: Path) -> None:
    other = source.parent / "other.zarr"
    n5zarr.convert(source, other, ome=True, overwrite=other.exists(), chunks=8)
    assert n5zarr.compare(other, copied, images=True).is_equal
    assert n5zarr.compare(source, source, images=True).n_images == 2
    assert n5zarr.compare(source, source).n_images == 0


def test_copies_in_plain_zarr_are_compared_by_node(tmp_path: Path) -> None:
    n5zarr.convert(n5zarr.sample_path(), tmp_path / "plain.zarr")
    found = n5zarr.compare(f"{n5zarr.sample_path()}/em", tmp_path / "plain.zarr" / "em")
    assert found.is_equal
    assert (found.n_images, found.n_groups) == (0, 1)  # although COSEM's multiscales are there


@pytest.mark.each_of(3)
def test_changes_are_named_by_image_and_level(source: Path, changed: Path) -> None:
    level: Any = zarr.open_array(changed / "em" / "s1", mode="r+")
    level[3, 7, 2] += 5
    found = only(n5zarr.compare(source, changed))
    assert (found.path, found.what) == ("em/s1", "values")
    assert found.values is not None
    assert found.values.elements[0].position == (3, 7, 2)
    assert n5zarr.compare(source, changed, tolerance=5).is_equal
    assert n5zarr.compare(source, changed, values=False).is_equal

    labels: Any = zarr.open_group(changed / "em" / "labels" / "cells", mode="r+")
    for name, level in labels.arrays():
        wide = np.asarray(level[:]).astype("u8")
        labels.create_array(name, data=wide + (name == "s2"), overwrite=True)
    table: Any = zarr.open_array(changed / "table", mode="r+")
    table[7] = -1
    assert seen(n5zarr.compare(changed, source)) == [
        *((f"em/labels/cells/s{n}", "data-type", "") for n in range(3)),
        ("em/s1", "values", ""),
        ("em/labels/cells/s2", "values", ""),
        ("table", "values", ""),
    ]
    shutil.rmtree(changed / "table")
    assert ("table", "missing", "") in seen(n5zarr.compare(source, changed))


def places(part: Any, key: str) -> list[list[float]]:
    """Return the scales or translations in a part of a document, at any depth."""
    if isinstance(part, list):
        return [found for each in part for found in places(each, key)]
    if not isinstance(part, dict):
        return []
    own = part.get(key)
    return [own] if isinstance(own, list) else places([*part.values()], key)


@pytest.mark.each_of(3)
def test_positions_are_compared(source: Path, changed: Path) -> None:
    def move(key: str, by: float) -> None:
        def edit(image: Any) -> None:
            for place in places(image["datasets"][1], key):
                place[-1] += by

        change(changed / "em", edit)

    for key, rounding, most in (("translation", 4e-4, 0.25), ("scale", 4e-5, 1e-3)):
        move(key, rounding)  # the last of ten elements moves by less than 0.001 of one
        assert n5zarr.compare(source, changed).is_equal
        move(key, most)
        found = only(n5zarr.compare(source, changed))
        assert (found.path, found.what, found.key) == ("em/s1", "axes", key)
        move(key, -most)


def test_axes_are_compared_by_name(source: Path, changed: Path) -> None:
    def edit(image: Any) -> None:
        axes = image["axes"] if "axes" in image else image["coordinateSystems"][0]["axes"]
        axes[2] |= {"name": "q", "unit": "foot"}

    change(changed / "em", edit)
    found = n5zarr.compare(source, changed).differences
    assert [(d.path, d.key, d.second) for d in found] == [
        ("em", "names", ["z", "y", "q"]),
        ("em", "units", ["micrometer", "micrometer", "foot"]),
    ]


@pytest.mark.each_of(5)
@pytest.mark.parametrize("number", [1, 2])
def test_a_missing_level_is_named(source: Path, changed: Path, number: int) -> None:
    change(changed / "em", lambda image: image["datasets"].pop(number))
    shutil.rmtree(changed / "em" / f"s{number}")
    found = only(n5zarr.compare(source, changed))
    assert (found.path, found.first, found.second) == (f"em/s{number}", "level", None)
    found = only(n5zarr.compare(changed, source))
    assert (found.path, found.first, found.second) == (f"em/s{number}", None, "level")
    shutil.rmtree(changed / "em" / "labels")
    assert ("em/labels/cells", "missing", "") in seen(n5zarr.compare(source, changed))


@pytest.mark.each_of(2)
@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_copies_of_other_programs_are_equal(source: Path, tmp_path: Path, version: str) -> None:
    """ome-zarr-py writes five axes, those of space in another order and another unit."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of itself
        from ome_zarr import format as formats  # noqa: PLC0415
        from ome_zarr import writer  # noqa: PLC0415

    fmt = formats.format_from_version(version)
    nm = {"type": "space", "unit": "nanometer"}
    axes: list[Any] = [{"name": "t", "type": "time"}, {"name": "c", "type": "channel"}]
    axes += [{"name": name, **nm} for name in "yzx"]
    levels, steps = [], []
    for number in range(3):
        array: Any = n5zarr.open(source, path=f"em/s{number}")
        levels.append(array[:].swapaxes(0, 1)[None, None])
        scale = np.array([1e3 / 3, 4500, 250])
        place = np.array([11e3, 7e3, -13e3]) + (2**number - 1) / 2 * scale
        steps.append([
            {"type": "scale", "scale": [1.0, 1.0, *(scale * 2**number).tolist()]},
            {"type": "translation", "translation": [0.0, 0.0, *place.tolist()]},
        ])  # fmt: skip
    store = tmp_path / "theirs.zarr"
    group: Any = zarr.open_group(store, mode="w", zarr_format=fmt.zarr_format)
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        writer.write_multiscale(
            levels, group, fmt=fmt, axes=axes, coordinate_transformations=steps,
            axes_units=dict.fromkeys("yzx", "nanometer"),
            storage_options={"chunks": (1, 1, 5, 4, 7)},
        )  # fmt: skip
    alone = tmp_path / "a.n5"
    n5zarr.convert(source / "em", alone / "em", select="s*")
    for sides in ((alone, store), (store, alone), (alone / "em", store)):
        found = n5zarr.compare(*sides)
        assert found.is_equal, found
        assert (found.n_images, found.n_arrays) == (1, 3)
    group["1" if "1" in group else "s1"][0, 0, 7, 3, 2] += 1
    values = only(n5zarr.compare(alone, store)).values
    assert values is not None
    assert values.elements[0].position == (3, 7, 2)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bigstitcher.write_project(tmp_path_factory.mktemp("project"))


@pytest.mark.filterwarnings("ignore:.*the registration turns or shears:n5zarr.N5Warning")
@pytest.mark.filterwarnings("ignore:.*without data. setup 4 at 0:n5zarr.N5Warning")
def test_projects_are_compared_by_view(project: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.xml"
    n5zarr.convert(project, new, to="ome-zarr")
    found = n5zarr.compare(project, new)
    assert found.is_equal, found
    assert (found.n_images, found.n_arrays) == (19, 38)
    turned = np.array([[0, -1, 0, 7], [1, 0, 0, 11], [0, 0, 1, 13.0]])
    n5zarr.register(new, {(0, 2): SHIFT, (7, 5): turned})
    images = tmp_path / "new.ome.zarr"
    level: Any = zarr.open_array(images / "s1-t8.zarr" / "1", mode="r+")
    level[..., 2] += 1
    shutil.rmtree(images / "s4-t0.zarr")
    differences = n5zarr.compare(project, new).differences
    assert {(d.path, d.what, d.key) for d in differences} == {
        ("setup0/timepoint2/s0", "axes", "translation"),
        ("setup0/timepoint2/s1", "axes", "translation"),
        ("setup4/timepoint0", "missing", ""),
        ("setup7/timepoint5", "axes", "registration"),
        *(("setup7/timepoint5/s" + level, "axes", "translation") for level in "01"),
        ("setup1/timepoint8/s1", "values", ""),
    }


@pytest.mark.filterwarnings("ignore:.*the registration turns or shears:n5zarr.N5Warning")
def test_a_project_is_compared_with_its_images(project: Path, tmp_path: Path) -> None:
    n5zarr.convert(project, tmp_path / "images.zarr", ome=True)
    assert n5zarr.compare(project, tmp_path / "images.zarr").is_equal
    assert n5zarr.compare(project.parent / "dataset.n5", project).is_equal


@pytest.mark.each_of(3)
def test_the_command(source: Path, changed: Path) -> None:
    last = "2 images and 7 arrays compared, 9869 elements"
    assert printed("diff", source, changed) == f"equal: {last}\n"
    change(changed / "em", lambda image: image["datasets"].pop(2))
    shutil.rmtree(changed / "em" / "s2")
    lines = printed("diff", source, changed, status=1).splitlines()
    assert lines[0] == "/em/s2: only in A: level"
    found = json.loads(printed("diff", source, changed, "--json", status=1))
    assert (found["n_images"], found["is_equal"]) == (2, False)
    assert printed("diff", source, source, "--images").startswith("equal: 2 images")
    by_node = printed("diff", source / "em", changed / "em", "--no-images", status=1)
    assert "/s2: only in A: array" in by_node


def test_what_has_no_image_is_compared_by_nodes_if_asked(source: Path, changed: Path) -> None:
    sides = source / "table", changed / "table"
    with pytest.raises(N5UnrepresentableError, match="expected an image") as caught:
        n5zarr.compare(*sides)
    assert caught.value.__notes__ == ["images=False (--no-images) compares nodes instead of images"]
    assert n5zarr.compare(*sides, images=False, attributes=False).is_equal
