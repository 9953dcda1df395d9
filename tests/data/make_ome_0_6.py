"""Write `ome-0.6`: images, labels, scenes and a plate of OME-Zarr 0.6, without n5zarr.

    uv venv --python 3.13 /tmp/ome06
    uv pip install --python /tmp/ome06/bin/python ome-zarr==0.21.0 ngff-zarr==0.50.0
    /tmp/ome06/bin/python tests/data/make_ome_0_6.py

The folder `ome-zarr` is written by the first, `ngff-zarr` by the second.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

HERE = Path(__file__).parent / "ome-0.6"
SIZES = {"c": 1, "z": 2, "y": 0.5, "x": 0.25}
UNITS = dict.fromkeys("zyx", "micrometer")


def values(shape: tuple[int, ...], first: int) -> Any:
    """Return numbers that tell an image, and each of its elements, from others."""
    return (np.arange(np.prod(shape)) + first).reshape(shape).astype("u2")


def system(name: str, axes: str, unit: str | None = "micrometer") -> dict[str, Any]:
    """Describe a coordinate system."""
    described = []
    for axis in axes:
        entry = {"name": axis, "type": "channel" if axis == "c" else "space"}
        described.append(entry | ({"unit": unit} if unit and axis != "c" else {}))
    return {"name": name, "axes": described}


def with_ome_zarr(root: Path) -> None:
    """Write a scene with tiles of four axes: one with labels, one in a nested group."""
    image, scene = map(import_module, ("ome_zarr.classes.image", "ome_zarr.classes.scene"))
    models = import_module("ome_zarr_models.v06.coordinate_transforms")

    def transform(kind: str, start: Any, end: Any, **members: Any) -> Any:
        return getattr(models, kind)(input=start, output=end, **members)

    def tile(name: str, first: int, **options: Any) -> Any:
        data = values((2, 3, 5, 7), first)
        finest = image.OMEZarrImage(data, "czyx", SIZES, UNITS, name=name)
        return image.OMEZarrMultiscale(finest, scale_factors=[2], method="nearest", **options)

    by, to = models.Scale, models.Translation
    world, stage = {"name": "world"}, {"name": "stage"}
    left = tile("left", 1)
    sizes = {axis: SIZES[axis] for axis in "zyx"}
    cells = image.OMEZarrImage(values((3, 5, 7), 1) % 3, "zyx", sizes, UNITS)
    left.labels = {"cells": image.OMEZarrLabels(cells, scale_factors=[2])}
    scaled = transform("Scale", {"name": "physical"}, {"name": "array"}, scale=[1, 0.5, 2, 4])
    array = [models.CoordinateSystem(**system("array", "czyx", None))]
    middle = tile("middle", 1001, coordinate_transformations=[scaled], coordinate_systems=array)
    steps = [by(scale=[1, 2, 0.5, 0.25]), to(translation=[0, 0, 0, 7])]
    others = [by(scale=[1, 1, 2, 3]), to(translation=[0, 0, -4, 0.5])]
    at_left, at_right = ({"path": name, "name": "physical"} for name in ("left", "right"))
    in_array = {"path": "row/middle", "name": "array"}
    scene.OMEZarrScene(
        {"left": left, "row/middle": middle, "right": tile("right", 2001)},
        [
            transform("Translation", at_left, world, translation=[0, 10, 20, 30]),
            transform("Sequence", in_array, stage, transformations=steps),
            transform("Translation", stage, world, translation=[0, 100, 0, 0]),
            transform("Sequence", at_right, world, transformations=others),
        ],
        [models.CoordinateSystem(**system(name, "czyx")) for name in ("world", "stage")],
    ).to_ome_zarr(str(root / "scene.zarr"))


def with_ngff_zarr(root: Path) -> None:
    """Write a scene whose tiles have positions of their own, one of them turned, and a plate."""
    ngff, v04, v06 = (
        import_module(f"ngff_zarr{name}")
        for name in ("", ".v04.zarr_metadata", ".v06.zarr_metadata")
    )

    def image(first: int, x: float = 0.0) -> Any:
        chunked: Any = da.from_array
        data = chunked(values((5, 7), first), chunks=(5, 7))
        scale, at = {"y": 0.5, "x": 0.25}, {"y": 0.0, "x": x}
        made = ngff.to_ngff_image(data, dims=["y", "x"], scale=scale, translation=at)
        made.axes_units = {axis: UNITS[axis] for axis in "yx"}
        return ngff.to_multiscales(made, scale_factors=[])

    def at(name: str, path: str | None = None) -> Any:
        return v06.CoordinateSystemIdentifier(path, name)

    axes = [v06.Axis(**axis) for axis in system("world", "yx")["axes"]]
    to, by, world = v06.Translation, v06.Rotation, at("world")
    turned, turn = at("intrinsic", "turned"), [[0.0, -1.0], [1.0, 0.0]]
    scene = ngff.NgffScene(
        {"a": image(1), "b": image(101, x=3.0), "turned": image(201)},
        [
            to(translation=[10.0, 20.0], input=at("intrinsic", "a"), output=world),
            to(translation=[-1.0, -2.0], input=world, output=at("intrinsic", "b")),
            by(rotation=turn, input=turned, output=world),
        ],
        [v06.CoordinateSystem("world", axes)],
    )
    ngff.to_ome_zarr(str(root / "scene.zarr"), scene)
    place = str(root / "plate.zarr")
    plate = v04.Plate(
        [v04.PlateColumn("1"), v04.PlateColumn("2")],
        [v04.PlateRow("A"), v04.PlateRow("B")],
        [v04.PlateWell("A/1", 0, 0), v04.PlateWell("B/2", 1, 1)],
        version="0.6",
        name="plate",
        field_count=1,
    )
    ngff.to_hcs_zarr(ngff.HCSPlate(place, plate), place)
    for i, row in enumerate("AB"):
        made = image(1 + 100 * i)
        ngff.write_hcs_well_image(place, made, plate, row, str(i + 1), version="0.6")


if __name__ == "__main__":
    for folder, make in {"ome-zarr": with_ome_zarr, "ngff-zarr": with_ngff_zarr}.items():
        (HERE / folder).mkdir(parents=True)
        make(HERE / folder)
