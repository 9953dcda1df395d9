"""Levels that state no scale have the same places in every view of a container.

n5-universe at a4e759a4: ``N5GenericSingleScaleMetadataParser`` places levels by their factors,
``OmeNgffV03MetadataProcessor.inferRelativeResolution`` by their shapes.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.conventions.ngff import misread_images
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.images.find import find_images
from n5zarr.metadata.inspect import describe

S0, S1 = (13, 11, 7), (7, 6, 7)
"""Shapes in N5 order."""


def put(
    container: Path, path: str, shape: Sequence[int], data_type: str = "uint8", **own: Any
) -> None:
    document = {"dimensions": [*shape], "blockSize": [5] * len(shape), "dataType": data_type}
    group(container, path, **document, compression={"type": "raw"}, **own)


def group(container: Path, path: str, **attributes: Any) -> None:
    (container / path).mkdir(parents=True, exist_ok=True)
    (container / path / "attributes.json").write_text(json.dumps(attributes))


def by_factors(root: Path) -> None:
    """Write factors as BigStitcher-Spark does for fused images."""
    put(root, "g/s0", S0, downsamplingFactors=[1, 1, 1])
    put(root, "g/s1", S1, downsamplingFactors=[2, 2, 1])


def by_factors_of_s1(root: Path) -> None:
    """Write factors as n5-spark does beside a dataset that has no resolution."""
    put(root, "g/s0", S0)
    put(root, "g/s1", S1, downsamplingFactors=[2, 2, 1])


def bare(root: Path) -> None:
    put(root, "g/s0", S0)
    put(root, "g/s1", S1)


def named(root: Path) -> None:
    put(root, "g/s0", S0, axes=["x", "y", "z"])
    put(root, "g/s1", S1, axes=["x", "y", "z"])


def listed(root: Path) -> None:
    """Write a list of levels as bioformats2raw did before OME-NGFF 0.3."""
    levels = [{"path": "0"}, {"path": "1"}]
    group(root, "g", multiscales=[{"version": "0.2", "datasets": levels}])
    put(root, "g/0", S0)
    put(root, "g/1", S1)


FACTORS: Any = ((1, 2, 2), (0, 0.5, 0.5))
SHAPES: Any = ((1, 11 / 6, 13 / 7), (0, 0, 0))
PYRAMIDS: list[tuple[Callable[[Path], None], Any, str]] = [
    (by_factors, FACTORS, "zyx"),
    (by_factors_of_s1, FACTORS, "zyx"),
    (bare, SHAPES, ""),
    (named, SHAPES, "zyx"),
    (listed, SHAPES, ""),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    container = tmp_path / "c.n5"
    group(container, "", n5="4.0.0")
    return container


@pytest.mark.parametrize(("write", "expected", "names"), PYRAMIDS)
def test_every_view_of_a_group_has_the_same_scale(
    root: Path, write: Callable[[Path], None], expected: Any, names: str
) -> None:
    write(root)
    dims = tuple(names) or ("dim_0", "dim_1", "dim_2")
    places = ((1, 1, 1), (0, 0, 0)), expected
    for level, (scale, shift) in zip(n5zarr.geometry(root, "g").levels, places, strict=True):
        assert (level.names, level.scale, level.translation) == (dims, scale, shift)
        assert level.units == (None,) * 3
    for found, (scale, _) in zip(n5zarr.pyramid_levels(root, "g"), places, strict=True):
        assert found.voxel_size == dict(zip(dims, scale, strict=True))
    (image,) = find_images(root)
    assert [axis.name for axis in image.axes] == ["z", "y", "x"]
    assert [axis.unit for axis in image.axes] == [None] * 3
    assert (image.levels[1].scale, image.levels[1].translation) == expected
    n5zarr.convert(root, root.parent / "out.zarr", ome=True)
    ome: Any = zarr.open_group(root.parent / "out.zarr/g", mode="r").attrs["ome"]
    steps = [level["coordinateTransformations"] for level in ome["multiscales"][0]["datasets"]]
    assert [step[0]["scale"] for step in steps] == [[1, 1, 1], [*expected[0]]]
    assert n5zarr.thumbnail(root).size


@pytest.mark.parametrize(("write", "expected", "names"), PYRAMIDS)
def test_a_level_is_where_its_group_says(
    root: Path, write: Callable[[Path], None], expected: Any, names: str
) -> None:
    write(root)
    (name,) = {path.name for path in (root / "g").iterdir()} & {"s1", "1"}
    dims = tuple(names) or ("dim_0", "dim_1", "dim_2")
    level = xr.open_dataset(root, engine="n5", group=f"g/{name}")
    assert tuple(level[name].dims) == dims
    coords = xr.open_zarr(N5Store(root, coords=True), group=f"g/{name}", consolidated=False)
    opened = n5zarr.open_level(root, path="g", level=1)
    for found in (level, coords, opened):
        if write is named:  # names alone, as `to_n5` writes data without coordinates
            assert not found.coords
            continue
        for dim, scale, shift in zip(dims, *expected, strict=True):
            np.testing.assert_allclose(found[dim], np.arange(found.sizes[dim]) * scale + shift)
    tree = xr.open_datatree(root, engine="n5")
    assert tuple(tree[f"g/{name}"][name].dims) == dims
    geometry: Any = describe(root, f"g/{name}", size=False)["geometry"]
    convention = {"by_factors": "factors", "by_factors_of_s1": "factors", "named": "names"}
    assert geometry["convention"] == convention.get(write.__name__, "shapes")


@pytest.mark.parametrize("shapes", [((32, 20, 8), (16, 10, 4), (8, 5, 2)),
                                    ((25, 21, 9), (13, 11, 5), (7, 6, 3))])  # fmt: skip
def test_the_finest_level_stays_beside_factors_and_shapes(root: Path, shapes: Any) -> None:
    second: dict[str, Any] = {"downsamplingFactors": [2, 2, 2], "unit": "um"}
    for k, own in enumerate(({}, second, {})):
        put(root, f"g/s{k}", shapes[k], **own)
    ratio = tuple(n / m for n, m in zip(shapes[0][::-1], shapes[2][::-1], strict=True))
    expected = [((1,) * 3, (0,) * 3), ((2,) * 3, (0.5,) * 3), (ratio, (0,) * 3)]
    levels = n5zarr.geometry(root, "g").levels
    assert [(level.scale, level.translation) for level in levels] == expected
    assert {level.units for level in levels} == {(None,) * 3}
    (image,) = find_images(root)
    assert [(level.scale, level.translation) for level in image.levels] == expected


def test_names_of_the_finest_level_are_its_own(root: Path) -> None:
    put(root, "g/s0", S0, axes=["c", "b", "a"])
    put(root, "g/s1", S1, axes=["x", "y", "z"], downsamplingFactors=[2, 2, 1])
    levels = n5zarr.geometry(root, "g").levels
    assert [level.names for level in levels] == [("a", "b", "c"), ("z", "y", "x")]
    assert [level.scale for level in levels] == [(1, 1, 1), (1, 2, 2)]


def test_datasets_with_other_names_have_the_positions_that_they_state(root: Path) -> None:
    put(root, "g/0", S0)
    put(root, "g/1", S1, downsamplingFactors=[2, 2, 1])
    put(root, "h/0", S0)
    put(root, "h/1", S1)
    for path, scale, shift in (("g", *FACTORS), ("h", (1, 1, 1), (0, 0, 0))):
        levels = n5zarr.geometry(root, path).levels
        assert [level.path for level in levels] == [f"{path}/0", f"{path}/1"]
        assert [level.scale for level in levels] == [(1, 1, 1), scale]
        assert [level.translation for level in levels] == [(0, 0, 0), shift]
        assert n5zarr.geometry(root, f"{path}/1") == levels[1]
    images = {image.path for image in find_images(root)}
    assert images == {"g/0", "g/1", "h/0", "h/1"}


@pytest.mark.parametrize("names", [("a", "b"), ("x", "y")])
def test_datasets_with_other_names_and_axes_are_no_levels(root: Path, names: Any) -> None:
    put(root, "g/0", (13, 11), axes=["x", "y"])
    put(root, "g/1", (13, 11), axes=[*names])
    with pytest.raises(N5UnrepresentableError, match="expected datasets that are levels of one"):
        n5zarr.geometry(root, "g")


NM: Any = {"unit": "nm", "dimensions": [4, 5, 40]}
AFFINE = [[1, 0, 0, 10], [0, 1, 0, 20], [0, 0, 1, 30]]


@pytest.mark.parametrize(
    ("channel", "top", "levels", "problem"),
    [
        (
            {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4, 5, 40]}, {},
            {1: (17, 11, 7), 2: (9, 5, 4)}, "expected them, or s0, got neither",
        ),
        ({"pixelResolution": NM}, {}, {2: (17, 11, 7), 5: (2, 1, 1)}, "expected them, or s0"),
        ({"affineTransform": AFFINE}, {"pixelResolution": NM}, {0: (17, 11, 7), 1: (9, 5, 4)}, ""),
        (
            {}, {"pixelResolution": NM, "affineTransform": AFFINE, "scales": [[1] * 3, [2] * 3]},
            {1: (9, 5, 4)}, "",
        ),
    ],
)  # fmt: skip
def test_every_view_has_the_places_that_groups_give(
    root: Path, channel: Any, top: Any, levels: Any, problem: str
) -> None:
    """A level is as many times the resolution of the groups as its factors, or its name, say."""
    group(root, "", **top)
    group(root, "c0", **channel)
    for number, shape in levels.items():
        put(root, f"c0/s{number}", shape)
    is_moved = "affineTransform" in top | channel
    by_shape = {1: [17 / 9, 11 / 5, 7 / 4]} if 0 in levels else {}
    expected = {}
    for number in levels:
        by = by_shape.get(number, [2.0**number] * 3)
        scale = [r * f for r, f in zip((4, 5, 40), by, strict=True)]
        offset = (10, 20, 30) if is_moved else (0, 0, 0)
        places = zip(scale, (4, 5, 40), offset, strict=True)
        expected[f"c0/s{number}"] = scale, [(s - r) / 2 + o for s, r, o in places]

    def check(*seen: Any) -> None:  # C order
        for path, scale, translation in seen:
            assert [*scale][::-1] == pytest.approx(expected[path][0], rel=1e-12)
            assert [*translation][::-1] == pytest.approx(expected[path][1], rel=1e-12)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", N5Warning)
        found = n5zarr.geometry(root, "c0").levels
    assert [str(w.message).count("downsamplingFactors: expected") for w in caught] == [1] * bool(
        problem
    )
    check(*((level.path, level.scale, level.translation) for level in found))
    assert {unit for level in found for unit in level.units} == {"nm"}
    assert bool(n5zarr.validate(root).findings) == bool(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if problem else "error", N5Warning)
        for path in expected:
            alone = n5zarr.geometry(root, path)
            check((path, alone.scale, alone.translation))
            opened = xr.open_dataset(root, engine="n5", group=path)
            check((path, [float(opened[d][1] - opened[d][0]) if opened.sizes[d] > 1 else s for d, s
                          in zip("zyx", alone.scale, strict=True)],
                   [float(opened[dim][0]) for dim in "zyx"]))  # fmt: skip
            assert {opened[dim].attrs["units"] for dim in "zyx"} == {"nm"}
        tree = xr.open_datatree(root, engine="n5")
        assert all(tree[path]["z"].attrs["units"] == "nm" for path in expected)
        (image,) = find_images(root)
        n5zarr.convert(root, root.parent / "out.zarr", ome=True)
    check(*((level.path, level.scale, level.translation) for level in image.levels))
    ome: Any = zarr.open_group(root.parent / "out.zarr/c0", mode="r").attrs["ome"]
    (written,) = ome["multiscales"]
    for entry in written["datasets"]:
        steps = {step["type"]: step[step["type"]] for step in entry["coordinateTransformations"]}
        check((f"c0/{entry['path']}", steps["scale"], steps.get("translation", [0, 0, 0])))
    assert {axis["unit"] for axis in written["axes"]} == {"nanometer"}
    assert "affineTransform" not in zarr.open_group(root.parent / "out.zarr/c0", mode="r").attrs


def test_a_group_asks_for_no_more_levels_where_s0_is_there(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group(root, "c0", resolution=[4, 5, 40])
    put(root, "c0/s0", (17, 11, 7))
    put(root, "c0/s1", (9, 5, 4))
    with caplog.at_level(logging.DEBUG, "n5zarr.storage.requests"):
        n5zarr.geometry(root, "c0/s1")
    asked = [r.getMessage() for r in caplog.records if "attributes.json" in r.getMessage()]
    assert not [text for text in asked if "c0/s2" in text]


def test_without_the_finest_level_elements_of_the_finest_present_are_counted(root: Path) -> None:
    put(root, "g/s1", (13, 11, 7))
    put(root, "g/s2", (7, 6, 7))
    assert [level.scale for level in n5zarr.geometry(root, "g").levels] == [(1, 1, 1), SHAPES[0]]
    assert n5zarr.geometry(root, "g/s2").convention is None


def test_a_level_added_after_those_listed_is_one_in_every_view(root: Path) -> None:
    listed = [
        {"path": f"s{k}", "coordinateTransformations": [{"type": "scale", "scale": [by] * 3}]}
        for k, by in ((0, 3), (1, 6))
    ]
    group(root, "g", multiscales=[{"version": "0.4", "axes": AXES, "datasets": listed}])
    added: dict[str, Any] = {"downsamplingFactors": [4, 4, 4]}
    for k, own in enumerate(({}, {}, added)):
        put(root, f"g/s{k}", (32 >> k, 20 >> k, 8 >> k), **own)
    put(root, "g/mask", (5, 5, 5))
    levels = n5zarr.geometry(root, "g").levels
    assert [level.scale[0] for level in levels] == [3, 6, 12]
    image = next(image for image in find_images(root) if image.path == "g")
    found, expected = (
        [(level.scale, level.translation) for level in each] for each in (image.levels, levels)
    )
    assert found == expected
    put(root, "g/s3", (31, 3, 2))
    with pytest.warns(N5Warning, match="/g/s3: expected a shape .*each that multiscales does not"):
        n5zarr.convert(root, root.parent / "out.zarr", ome=True)
    ome: Any = zarr.open_group(root.parent / "out.zarr/g", mode="r").attrs["ome"]
    assert [level["path"] for level in ome["multiscales"][0]["datasets"]] == ["s0", "s1"]


def test_levels_of_two_listed_images_stay_apart(root: Path) -> None:
    group(root, "g", multiscales=[image("a", 3, "s0"), image("b", 3, "s1")])
    put(root, "g/s0", S0)
    put(root, "g/s1", S1)
    assert [level.path for level in n5zarr.geometry(root, "g").levels] == ["g/s0"]


def test_attributes_of_factors_become_coordinates_and_shapes_keep_all(root: Path) -> None:
    by_factors(root)
    assert not xr.open_dataset(root, engine="n5", group="g/s1")["s1"].attrs
    put(root, "h/s0", S0)
    put(root, "h/s1", S1, offset=[1, 2, 3], note="x")
    with pytest.warns(N5Warning, match="h/s1: offset: expected resolution") as w:
        found = xr.open_dataset(root, engine="n5", group="h/s1")["s1"]
    assert len(w) == 1
    assert found.attrs == {"offset": [1, 2, 3], "note": "x"}


def test_a_new_level_beside_factors_has_factors(root: Path) -> None:
    put(root, "g/s0", S0, downsamplingFactors=[1, 1, 1])
    made = n5zarr.build_pyramid(root, "g", factors=(1, 2, 2), levels=2)
    assert made.convention == "factors"
    for k in (1, 2):
        document = json.loads((root / f"g/s{k}/attributes.json").read_text())
        assert document["downsamplingFactors"] == [2**k, 2**k, 1]
        assert "transform" not in document
    levels = n5zarr.geometry(root, "g").levels
    assert [level.scale for level in levels] == [(1, 1, 1), (1, 2, 2), (1, 4, 4)]
    assert [level.translation for level in levels] == [(0, 0, 0), (0, 0.5, 0.5), (0, 1.5, 1.5)]
    n5zarr.build_pyramid(root, "g", factors=(1, 2, 2), levels=1, method="stride", overwrite=True)
    level = n5zarr.geometry(root, "g/s1")
    assert (level.scale, level.translation) == ((1, 2, 2), (0, 0, 0))


@pytest.mark.parametrize("own", [{}, {"offset": [10, 20, 30]}], ids=str)
@pytest.mark.parametrize("method", ["mean", "stride"])
def test_new_levels_leave_a_finest_level_with_factors_where_it_is(
    root: Path, method: Any, own: Any
) -> None:
    put(root, "g/s0", (32, 20, 8), downsamplingFactors=[2, 2, 3], **own)
    before: Any = n5zarr.geometry(root, "g/s0")
    assert before.scale == (3, 2, 2)
    n5zarr.build_pyramid(root, "g", levels=2, factors=(2, 2, 2), method=method)
    levels: Any = n5zarr.geometry(root, "g").levels
    assert levels[0] == before
    for k in (1, 2):
        level = levels[k]
        assert level.scale == (3 * 2**k, 2**k * 2, 2**k * 2)
        shift = 0 if method == "stride" else (2**k - 1) / 2
        starts = zip(before.translation, before.scale, strict=True)
        assert level.translation == tuple(start + shift * scale for start, scale in starts)
        assert n5zarr.geometry(root, f"g/s{k}") == level
        # what n5-universe's N5GenericSingleScaleMetadataParser reads of a dataset
        document = json.loads((root / f"g/s{k}/attributes.json").read_text())
        by = document["downsamplingFactors"]
        assert by == [*level.scale[::-1]]
        offset = document.get("offset", [(f - 1) / 2 for f in by])
        assert offset == [*level.translation[::-1]]


@pytest.mark.parametrize(
    ("path", "above", "method"),  # with the method whose positions the convention can state
    [
        ("g", {}, "mean"),
        ("g", {"multiScale": True}, "stride"),
        ("setup0/timepoint0", {}, "mean"),
        ("setup0/timepoint0", {"multiScale": True}, "mean"),
    ],
)
def test_new_levels_have_the_factors_of_the_finest_too(
    root: Path, path: str, above: Any, method: Any
) -> None:
    group(root, path, **above)
    put(root, f"{path}/s0", (32, 20, 8), downsamplingFactors=[2, 2, 3])
    before = n5zarr.geometry(root, f"{path}/s0")
    n5zarr.build_pyramid(root, path, levels=1, factors=(2, 2, 2), method=method)
    finest, level = n5zarr.geometry(root, path).levels
    assert finest == before
    assert level.scale == tuple(2 * scale for scale in before.scale)


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"shape": (5, 9, 7)}, "expected a shape that downsampling s0"),
        ({"shape": S0}, "expected a shape that downsampling s0"),
        ({"shape": S1, "data_type": "uint64"}, "expected the data type of s0, uint8, got uint64"),
        ({"shape": (7, 6)}, "expected the axes of s0, 3, got 2"),
    ],
    ids=str,
)
def test_datasets_that_are_no_levels_are_no_image(
    root: Path, second: dict[str, Any], why: str
) -> None:
    put(root, "g/s0", S0)
    put(root, "g/s1", **second)
    for read in (n5zarr.geometry, n5zarr.pyramid_levels):
        with pytest.raises(N5UnrepresentableError, match=f"/g/s1: {why}"):
            read(root, "g")
    said = f"/g/s1: {why}.*: no levels of one image; each becomes"
    with pytest.warns(N5Warning, match=said) as w:
        n5zarr.convert(root, root.parent / "out.zarr", ome=True)
    assert len(w) == 1
    for name in ("s0", "s1"):
        image: Any = zarr.open_group(root.parent / f"out.zarr/g/{name}", mode="r").attrs["ome"]
        (level,) = image["multiscales"][0]["datasets"]
        assert set(level["coordinateTransformations"][0]["scale"]) == {1}


def test_levels_that_state_their_scale_may_have_any_shape(root: Path) -> None:
    for name, shape, scale in (("s0", S0, 1), ("s1", (5, 9, 7), 2)):
        put(root, f"g/{name}", shape, pixelResolution=[scale] * 3, downsamplingFactors=[1, 1, 1])
    assert [level.scale for level in n5zarr.geometry(root, "g").levels] == [(1,) * 3, (2,) * 3]


def test_the_finest_level_may_be_the_one_without_a_scale(root: Path) -> None:
    put(root, "g/s0", S0, axes=["x", "y", "z"])
    put(root, "g/s1", S1, axes=["x", "y", "z"], units=["nm"] * 3, resolution=[26, 22, 40])
    (image,) = find_images(root)
    assert [*image.levels[0].scale] == pytest.approx([40, 12, 14])
    assert [*image.levels[1].scale] == [40, 22, 26]
    assert [axis.unit for axis in image.axes] == ["nanometer"] * 3


def test_the_first_listed_level_is_the_finest_also_in_0_3(root: Path) -> None:
    """OME-NGFF 0.3 levels are relative to the first in the list, as in n5-universe."""
    levels = [{"path": "./0"}, {"path": "1/"}]
    image = {"version": "0.3", "axes": ["x", "y", "z"], "datasets": levels}
    group(root, "g", multiscales=[image])
    put(root, "g/0", S0)
    put(root, "g/1", S1)
    level = n5zarr.geometry(root, "g/1")
    assert (level.scale, level.translation) == SHAPES
    assert level.units == ("um",) * 3


def test_opening_a_level_asks_for_no_more(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Opening a level without a scale asks for as many documents as opening ``s1``."""
    listed(root)
    group(root, "h")
    counts = []
    for path, first in (("g/1", "g/0"), ("h/s1", "h/s0")):
        put(root, path, S1)
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "n5zarr.storage.requests"):
            xr.open_dataset(root, engine="n5", group=path)
        asked = [r.getMessage() for r in caplog.records if "attributes.json" in r.getMessage()]
        assert len([text for text in asked if f"{first}/attributes.json" in text]) == 1
        counts.append(len(asked))
    assert counts[0] == counts[1]


AXES = [{"name": name, "type": "space"} for name in "xyz"]


def image(name: str, n_axes: int, *levels: str) -> dict[str, Any]:
    return {"name": name, "axes": AXES[:n_axes], "datasets": [{"path": path} for path in levels]}


@pytest.mark.parametrize(
    ("images", "why"),
    [
        ([image("a", 3, "a"), image("b", 3, "b")], None), ([image("a", 3, "s0", "s1")], None),
        ([image("a", 3, "a"), image("b", 3, "b0", "b1")], None), ([], None),
        ([image("a", 3, "a"), image("b", 2, "b")], "a has 3 axes, b has 2"),
        ([image("a", 2, "a"), image("b", 3, "b")], "a has 2 axes, b has 3"),
        ([image("a", 3, "s0", "s1"), image("b", 3, "b")], "a has 2 levels, b after it has 1"),
    ],
)  # fmt: skip
def test_images_that_n5_universe_misreads_are_recognised(images: Any, why: str | None) -> None:
    """Lists of images that end ``OmeNgffMetadataParser`` of n5-universe a4e759a4 are recognised.

    Its ``nd`` and ``attrs`` are those of the last image when it builds the metadata of all of them.
    ``buildMetadata`` then indexes arrays of ``nd`` by the axes of each image, and ``attrs`` by its
    levels: an image with more of them ends the parser, and one with fewer axes gets ``nd`` of them.
    """
    assert misread_images({"multiscales": images}) == why
    assert misread_images({"ome": {"multiscales": images}}) == why


def volume(*dims: str) -> xr.DataArray:
    coords = {dim: np.arange(n) * 2.0 for dim, n in zip(dims, (7, 11, 13), strict=False)}
    shape = [len(c) for c in coords.values()]
    return xr.DataArray(np.ones(shape, "u1"), dims=dims, coords=coords)


@pytest.mark.parametrize("order", [["em", "mask"], ["mask", "em"]], ids=str)
@pytest.mark.parametrize("together", [True, False])
def test_images_of_different_rank_in_one_group_stay_readable(
    tmp_path: Path, order: list[str], *, together: bool
) -> None:
    root = tmp_path / "c.n5"
    given = {"em": volume("z", "y", "x"), "mask": volume("z", "y")}
    if together:
        n5zarr.to_n5(xr.Dataset({n: given[n] for n in order}), root, convention="ngff")
    else:
        for name in order:
            n5zarr.to_n5(given[name], root, group=name, convention="ngff")
    document = json.loads((root / "attributes.json").read_text())
    assert misread_images(document) is None
    (listed,) = document["multiscales"]
    assert [level["path"] for level in listed["datasets"]] == ["em" if together else order[0]]
    for name, array in given.items():
        found = xr.open_dataset(root, engine="n5", group=name)[name]
        xr.testing.assert_equal(found, array)
        # what n5-universe's N5GenericSingleScaleMetadataParser reads of a dataset
        own = json.loads((root / name / "attributes.json").read_text())
        assert own["resolution"] == [2] * array.ndim
    assert not [f for f in n5zarr.validate(root).findings if f.kind == "levels"]


def test_an_image_with_more_levels_than_the_last_one_is_told(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    for name in ("s0", "mask"):
        n5zarr.to_n5(volume("z", "y", "x"), root, group=f"g/{name}", convention="ngff")
    with pytest.warns(N5Warning, match=r"multiscales: g has 2 levels, mask after it has 1: n5-un"):
        n5zarr.to_n5(volume("z", "y", "x"), root, group="g/s1", convention="ngff")
    (found,) = [f for f in n5zarr.validate(root).findings if f.kind == "levels"]
    assert "g has 2 levels, mask after it has 1" in found.message


def test_set_geometry_tells_of_them_too(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    for name, shape in (("em", (7, 11, 13)), ("mask", (11, 13))):
        n5zarr.create_array(root, path=name, shape=shape, dtype="u1", axes="zyx"[-len(shape) :])
    n5zarr.set_geometry(root, "em", scale=[3, 2, 1], convention="ngff")
    with pytest.warns(N5Warning, match="em has 3 axes, mask has 2"):
        n5zarr.set_geometry(root, "mask", scale=[2, 1], convention="ngff")


def test_geometry_tells_what_it_leaves_out(root: Path) -> None:
    for k in (0, 1):
        put(root, f"g/s{k}", S0 if k == 0 else S1, coordinateTransformations=[{"type": "affine"}])
    for read in (n5zarr.geometry, n5zarr.pyramid_levels):
        with pytest.warns(N5Warning, match=r"g/s0, g/s1: coordinateTransformations: expected") as w:
            read(root, "g")
        assert len(w) == 1


LISTS: dict[str, dict[str, Any]] = {
    "neuroglancer": {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [3.0, 5.0, 7.0]},
    "n5-viewer": {"pixelResolution": {"dimensions": [3.0, 5.0, 7.0], "unit": "nm"}},
    "of a script": {"units": ["nm"] * 3, "resolution": [3.0, 5.0, 7.0]},
    "without a resolution": {},
}
OF_S1 = [[2, 2, 1], [4, 4, 2], [8, 8, 4]]


def levels_of(root: Path, sizes: Sequence[Sequence[int]], **attributes: Any) -> None:
    group(root, "", n5="4.0.0")
    group(root, "g", **attributes)
    for k, size in enumerate(sizes):
        put(root, f"g/s{k}", size)


def shapes_by(factors: Sequence[Sequence[int]], *, up: bool) -> list[list[int]]:
    first = (83, 59, 31)
    each = [(zip(first, by, strict=True)) for by in factors]
    return [[*first], *([-(-n // f) if up else n // f for n, f in pairs] for pairs in each)]


def said_of(root: Path, n_levels: int) -> list[list[str]]:
    """Return what the engine, and then ``geometry``, say of each level, and then ``validate``."""
    found = []
    for k in range(n_levels):
        for read in (partial(xr.open_dataset, root, engine="n5", group=f"g/s{k}"),
                     partial(n5zarr.geometry, root, f"g/s{k}")):  # fmt: skip
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                read()
            found.append([str(w.message) for w in caught if "those of s1" in str(w.message)])
    each = n5zarr.validate(root).findings
    return [*found, [f.message for f in each if "those of s1" in f.message]]


@pytest.mark.each_of(5)
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("key", ["downsamplingFactors", "scales"])
@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_factors_that_begins_with_s1_is_said(
    tmp_path: Path, name: str, key: str, up: bool
) -> None:
    """Of each level: the shapes show it, where the list is too short."""
    levels_of(tmp_path / "a.n5", shapes_by(OF_S1, up=up), **LISTS[name], **{key: OF_S1})
    *each, findings = said_of(tmp_path / "a.n5", 4)
    assert all(len(said) == 1 for said in each)
    assert f"{key} of the group" in each[0][0]
    assert len(findings) == 4


def test_a_shifted_list_is_said_where_other_levels_are_missing(tmp_path: Path) -> None:
    levels_of(tmp_path / "a.n5", shapes_by(OF_S1[:1], up=True), **LISTS["n5-viewer"], scales=OF_S1)
    said = said_of(tmp_path / "a.n5", 2)
    assert [*map(bool, said)] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("factors", "listed"),
    [
        (OF_S1, [[1, 1, 1], *OF_S1]),  # right
        (OF_S1, [[1, 1, 1], *OF_S1[:2]]),  # a level was added
        (OF_S1[:2], [[1, 1, 1], *OF_S1]),  # one was removed
        # the finest level is not there
        ([[2, 2, 2], [4, 4, 4]], [[2, 2, 2], [4, 4, 4], [8, 8, 8]]),
        ([[4, 4, 4]], [[2, 2, 2], [8, 8, 8]]),
        ([[2, 2, 2]], []),
        ([[3, 3, 3]], [[2, 2, 2]]),  # wrong in another way
    ],
)
@pytest.mark.parametrize("up", [True, False])
def test_lists_that_can_be_right_cause_no_alarm(
    tmp_path: Path, factors: list[list[int]], listed: list[list[int]], up: bool
) -> None:
    sizes = shapes_by(factors, up=up)
    levels_of(tmp_path / "a.n5", sizes, **LISTS["neuroglancer"], downsamplingFactors=listed)
    assert not any(said_of(tmp_path / "a.n5", len(sizes)))
