"""Every way of reading a pyramid gives the same positions, whatever its levels state."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given
from hypothesis import strategies as st

import n5zarr
from n5zarr.conventions.units import ratio
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.viewing.napari import napari_layers
from tests.memory import MEMORY

type Positions = tuple[tuple[float, float, str | None], ...]
"""Scale, translation and unit along each axis, in the order of the array."""

SHAPES = ((29, 23, 13), (32, 20, 17), (25, 21, 9))
NUMBERS = st.sampled_from([0.0, 1.5, -7.0, 30.0])
VOXELS = st.sampled_from([1.0, 4.0, 0.25, 30.0])
UNITS = st.sampled_from(["nm", "um"])
COUNTED = ("none", "factors", "invalid")
"""What leaves a finest level without a scale, or one in elements."""


@st.composite
def positions_in_attributes(draw: st.DrawFn, kind: str, by: Sequence[float]) -> dict[str, Any]:
    """Draw attributes of a level that state its positions."""
    sizes = [draw(VOXELS) for _ in range(3)]
    if kind == "factors":
        return {"downsamplingFactors": by}
    if kind == "invalid":
        return {"downsamplingFactors": draw(st.sampled_from(["2", [2, 2, 1, 1], [0, 1, 1]]))}
    if kind == "cosem":
        starts = [draw(NUMBERS) for _ in range(3)]
        units = [draw(UNITS)] * 3
        axes = {"axes": ["z", "y", "x"], "units": units}
        return {"transform": {"scale": sizes, "translate": starts, **axes}}
    if kind == "n5viewer":
        resolution = draw(st.sampled_from([sizes, {"unit": draw(UNITS), "dimensions": sizes}]))
        factors = {"downsamplingFactors": by} if draw(st.booleans()) else {}
        return {"pixelResolution": resolution, **factors}
    return {}


@st.composite
def levels(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """Draw the kind and the attributes of each level of a pyramid."""
    drawn = []
    for k in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from(["none", "factors", "invalid", "cosem", "n5viewer"]))
        by = [float(draw(st.sampled_from([1, 2]))) * 2.0**k for _ in range(3)]
        own = draw(positions_in_attributes(kind, by))
        if draw(st.booleans()):
            own["offset"] = [draw(NUMBERS) for _ in range(3)]
        key = draw(st.sampled_from(["unit", "units", "offset_unit", ""]))
        if key:
            own[key] = draw(UNITS)
        drawn.append((kind, own))
    return drawn


def write(root: Path, shape: Sequence[int], drawn: Sequence[tuple[str, dict[str, Any]]]) -> None:
    (root / "g").mkdir(parents=True)
    (root / "attributes.json").write_text('{"n5": "4.0.0"}')
    for k, (_, own) in enumerate(drawn):
        (root / f"g/s{k}").mkdir()
        document = {
            "dimensions": [-(-n // 2**k) for n in shape], "blockSize": [5] * 3,
            "dataType": "uint8", "compression": {"type": "raw"}, **own,
        }  # fmt: skip
        (root / f"g/s{k}/attributes.json").write_text(json.dumps(document))


def of_geometry(found: n5zarr.ArrayGeometry) -> Positions:
    return tuple(zip(found.scale, found.translation, found.units, strict=True))


def of_level(found: Any) -> Positions:
    return tuple(
        (found.voxel_size.get(d, 1.0), found.translation.get(d, 0.0), found.units.get(d))
        for d in found.sizes
    )


def of_dataset(ds: xr.Dataset, name: str) -> Positions:
    positions = []
    for dim in ds[name].dims:
        along = ds.coords.get(dim)
        if along is None:
            positions.append((1.0, 0.0, None))
        else:
            step = float(along[1] - along[0])
            positions.append((step, float(along[0]), along.attrs.get("units")))
    return tuple(positions)


def of_ome(root: Path) -> dict[str, Positions]:
    """Read the levels of a conversion, if it is one image; those of each level otherwise."""
    found: dict[str, Positions] = {}
    image: Any = zarr.open_group(root, mode="r").attrs.get("ome", {})
    for each in image.get("multiscales", ()):
        units = [axis.get("unit") for axis in each["axes"]]
        for level in each["datasets"]:
            steps = {
                step["type"]: step[step["type"]] for step in level["coordinateTransformations"]
            }
            shifts = steps.get("translation", [0.0] * 3)
            found[level["path"]] = tuple(zip(steps["scale"], shifts, units, strict=True))
    return found


def assert_same(found: Positions, expected: Positions) -> None:
    """Compare positions; units may have other spellings."""
    for (scale, start, unit), (known_scale, known_start, known_unit) in zip(
        found, expected, strict=True
    ):
        by = ratio(unit, known_unit)
        assert by is not None, (unit, known_unit)
        np.testing.assert_allclose([scale * by, start * by], [known_scale, known_start], atol=1e-9)


def alone(root: Path, tree: xr.DataTree, k: int) -> Mapping[str, Positions]:
    """Read a level in the ways that see only the level, the groups above it and ``s0``."""
    name = f"s{k}"
    return {
        "geometry": of_geometry(n5zarr.geometry(root, f"g/{name}")),
        "engine": of_dataset(xr.open_dataset(root, engine="n5", group=f"g/{name}"), name),
        "open_level": of_dataset(n5zarr.open_level(root, path="g", level=k), name),
        "open_datatree": of_dataset(tree[f"g/{name}"].to_dataset(), name),
    }


@given(st.sampled_from(SHAPES), levels())
def test_all_ways_place_levels_alike(
    shape: Sequence[int], drawn: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    kinds = [kind for kind, _ in drawn]
    is_first_known = kinds[0] not in COUNTED or set(kinds) <= {*COUNTED}
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore", N5Warning)
        root = Path(directory) / "c.n5"
        write(root, shape, drawn)
        group = [of_geometry(level) for level in n5zarr.geometry(root, "g").levels]
        assert [of_level(level) for level in n5zarr.pyramid_levels(root, "g")] == group
        tree = xr.open_datatree(root, engine="n5")
        for k, expected in enumerate(group):
            # else the group knows more of a level without a scale than the level itself
            if is_first_known or "factors" in kinds or kinds[k] in {"cosem", "n5viewer"}:
                for found in alone(root, tree, k).values():
                    assert_same(found, expected)
        if len({unit is None for level in group for _, _, unit in level}) > 1:
            with pytest.raises(N5UnrepresentableError, match="expected the unit of the finest"):
                n5zarr.convert(root, Path(directory) / "out.zarr", ome=True)
            return  # units of length or none, not both
        n5zarr.convert(root, Path(directory) / "out.zarr", ome=True)
        converted = of_ome(Path(directory) / "out.zarr/g")
        assert converted
        for name, found in converted.items():
            assert_same(found, group[int(name[1:])])
        (layer,) = napari_layers(root)
        places = zip(layer[1]["scale"], layer[1]["translate"], strict=True)
        unit = converted["s0"][0][2]
        assert_same(tuple((scale, start, unit) for scale, start in places), converted["s0"])
