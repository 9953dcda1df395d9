"""``write_bdv(tree, levels="given")`` writes the levels of the tree, which Java finds."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorstore as ts
import xarray as xr

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.bigdataviewer.split_project import FACTORS, TIMEPOINTS, image, write_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCALE = {"z": 2.0, "y": 0.5, "x": 0.5}
SETUPS = (0, 3)


def tree_of_images() -> xr.DataTree:
    """Return two setups with levels that no method makes of each other."""
    nodes = {}
    for setup in SETUPS:
        for level, by in enumerate(FACTORS):
            data = np.stack([image(setup, t, level) for t in TIMEPOINTS])
            coords: dict[str, Any] = {"timepoint": [*TIMEPOINTS], "setup": setup}
            for dim, factor, n in zip("zyx", by[::-1], data.shape[1:], strict=True):
                places = 10 + (np.arange(n) * factor + (factor - 1) / 2) * SCALE[dim]
                coords[dim] = (dim, places, {"units": "um"})
            array = xr.DataArray(data, dims=("timepoint", *"zyx"), coords=coords)
            nodes[f"setup{setup}/s{level}"] = array.to_dataset(name="data")
    return xr.DataTree.from_dict(nodes)


def read(driver: str, path: Path) -> Any:
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(path)}}
    found: Any = ts.open(spec, open=True).result().read().result()
    return found


def in_n5(folder: Path, setup: int, t: int) -> list[Any]:
    """Read the levels of a view, as ``DefaultN5Properties`` counts them."""
    document = json.loads((folder / f"d.n5/setup{setup}/attributes.json").read_text())
    assert [tuple(by) for by in document["downsamplingFactors"]] == FACTORS
    assert document["dataType"] == "uint16"
    paths = [folder / f"d.n5/setup{setup}/timepoint{t}/s{level}" for level in range(len(FACTORS))]
    for path, by in zip(paths[1:], FACTORS[1:], strict=True):
        own = json.loads((path / "attributes.json").read_text())
        assert own["downsamplingFactors"] == [*by]
    return [read("n5", path).T for path in paths]


def in_ome(folder: Path, setup: int, t: int, version: str) -> list[Any]:
    """Read the levels of a view, as ``AllenOMEZarrProperties``: factors are ratios of scales."""
    image = folder / f"d.ome.zarr/s{setup}-t{t}.zarr"
    found = json.loads((image / {"0.4": ".zattrs", "0.5": "zarr.json"}[version]).read_text())
    found = found if version == "0.4" else found["attributes"]["ome"]
    levels = found["multiscales"][0]["datasets"]
    assert [each["path"] for each in levels] == ["0", "1", "2"]
    scales = [np.array(e["coordinateTransformations"][0]["scale"]) for e in levels]
    assert [tuple((s / scales[0])[:1:-1].tolist()) for s in scales] == FACTORS
    driver = {"0.4": "zarr", "0.5": "zarr3"}[version]
    return [read(driver, image / each["path"])[0, 0] for each in levels]


@pytest.mark.parametrize("version", [None, "0.4", "0.5"])
def test_java_finds_the_levels(version: Any, tmp_path: Path) -> None:
    options: Any = {} if version is None else {"format": "ome-zarr", "ome_version": version}
    n5zarr.write_bdv(tree_of_images(), tmp_path / "d.xml", levels="given", **options)
    for view in product(SETUPS, TIMEPOINTS):
        found = in_ome(tmp_path, *view, version) if version else in_n5(tmp_path, *view)
        for level, array in enumerate(found):
            np.testing.assert_array_equal(array, image(*view, level))
    again: Any = n5zarr.open_bdv(tmp_path / "d.xml")
    for node in tree_of_images().leaves:
        for name in ("data", *"zyx"):
            np.testing.assert_allclose(again[node.path][name], node[name])


def test_a_split_project_is_written_as_it_is(tmp_path: Path) -> None:
    tree: Any = n5zarr.open_bdv(write_project(tmp_path, "n5"))
    n5zarr.write_bdv(tree, tmp_path / "new.xml", levels="given")
    again: Any = n5zarr.open_bdv(tmp_path / "new.xml")
    for node in tree.leaves:
        for name in ("data", "present", *"zyx"):
            np.testing.assert_allclose(again[node.path][name], node[name])


def without(path: str) -> Callable[[xr.DataTree], xr.DataTree]:
    return lambda tree: xr.DataTree.from_dict(
        {node.path: node.to_dataset() for node in tree.leaves if node.path != path}
    )


def changed(**coords: Any) -> Callable[[xr.DataTree], xr.DataTree]:
    def change(tree: xr.DataTree) -> xr.DataTree:
        node: Any = tree["setup3/s1"]
        node.dataset = node.to_dataset().assign(**coords)
        return tree

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("/setup3/s1"), r"setup 3, time point 0: expected each level from s0 to s2.* s1"),
        (without("/setup3/s0"), r"setup 3, time point 0: expected s0, got s1 only"),
        (
            changed(x=lambda d: d["x"] - 0.25),
            r"begins 0\.5 elements of s0 after s0 along x.* got 0;",
        ),
        (changed(data=lambda d: d["data"].astype("f4")), r"s1: expected a level of s0, uint16"),
        (lambda tree: tree["setup0/s0"].to_dataset(), r"levels: expected 'given' with a DataTree"),
    ],
)
def test_mistakes_are_told_and_nothing_is_written(
    change: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.write_bdv(change(tree_of_images()), tmp_path / "d.xml", levels="given")
    assert [*tmp_path.iterdir()] == []
