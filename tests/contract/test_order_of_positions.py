"""Positions in attributes are x first in N5 and z first in Zarr, as the programs that write them.

gunpowder at v1.4.0, ``ZarrWrite``: ``resolution`` and ``offset`` are those of the roi, reversed in
N5 only; Funlib and CellMap write C order in Zarr.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store

SHAPE, CHUNKS = (5, 7, 11), (3, 4, 6)
SIZE, BEGIN = (40.0, 5.0, 4.0), (100.0, 0.0, 8.0)  # C order

OF_ZARR: dict[str, dict[str, Any]] = {
    "gunpowder": {"offset": [100, 0, 8], "resolution": [40, 5, 4]},
    "xarray": {
        "offset": [100, 0, 8], "resolution": [40, 5, 4], "_ARRAY_DIMENSIONS": ["z", "y", "x"],
    },
    "neuroglancer": {
        "axes": ["z", "y", "x"], "units": ["nm"] * 3, "resolution": [40, 5, 4],
        "offset": [100, 0, 8],
    },
    "neuroglancer, copied from N5": {
        "axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4, 5, 40],
        "offset": [8, 0, 100],
    },
    "funlib": {
        "offset": [100, 0, 8], "voxel_size": [40, 5, 4], "axis_names": ["z", "y", "x"],
        "units": ["nm"] * 3,
    },
    "funlib, renamed": {
        "offset": [100, 0, 8], "resolution": [40, 5, 4], "axis_names": ["z", "y", "x"],
        "units": ["nm"] * 3, "types": ["space"] * 3,
    },
    "ilastik": {"axes": "zyx", "resolution": [40, 5, 4], "offset": [100, 0, 8]},
    "cosem": {
        "transform": {
            "axes": ["z", "y", "x"], "units": ["nm"] * 3, "scale": [40, 5, 4],
            "translate": [100, 0, 8],
        }
    },
    "n5-viewer": {"pixelResolution": {"dimensions": [4, 5, 40], "unit": "nm"}},
}  # fmt: skip

OF_N5: dict[str, dict[str, Any]] = {
    "gunpowder": {"offset": [8, 0, 100], "resolution": [4, 5, 40]},
    "neuroglancer": {
        "axes": ["x", "y", "z"], "units": ["nm", "um", "mm"], "resolution": [4, 5, 40],
        "downsamplingFactors": [2, 3, 1],
    },
    "another order": {"axes": ["z", "y", "x"], "units": ["nm"] * 3, "resolution": [40, 5, 4]},
    "names alone": {"axes": ["x", "y", "z"], "units": ["a", "b"], "offset": "none"},
    "funlib": OF_ZARR["funlib"],
    "funlib, renamed": OF_ZARR["funlib, renamed"],
    "ilastik": {"axes": "xyz", "resolution": [4, 5, 40], "offset": [8, 0, 100]},
    "cosem": OF_ZARR["cosem"],
    "n5-viewer": {**OF_ZARR["n5-viewer"], "downsamplingFactors": [2, 3, 1]},
    "of space": {"resolution": [5, 40], "offset": [0, 100], "of": [1, 2, 3]},
}  # fmt: skip


# what tensorstore refuses, of which n5zarr warns when it writes N5
REFUSED = pytest.mark.filterwarnings("ignore:.*tensorstore refuses:n5zarr.errors.N5Warning")


def make_n5(path: Path, attributes: dict[str, Any]) -> Any:
    """Write a dataset as other programs do, with attributes as they are."""
    (path / "raw").mkdir(parents=True)
    (path / "attributes.json").write_text('{"n5": "4.0.0"}')
    keys = {
        "dimensions": SHAPE[::-1], "blockSize": CHUNKS[::-1], "dataType": "uint8",
        "compression": {"type": "gzip"},
    }  # fmt: skip
    (path / "raw/attributes.json").write_text(json.dumps(keys | attributes))
    n5zarr.open_array(path / "raw", "r+")[...] = np.arange(1, 386, dtype="u1").reshape(SHAPE)


def attributes_of(path: Path) -> dict[str, Any]:
    document = json.loads((path / "attributes.json").read_text())
    own = {"dimensions", "blockSize", "dataType", "compression", "n5", "zarr"}
    return {key: value for key, value in document.items() if key not in own}


@REFUSED
@pytest.mark.each_of(3)
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", OF_ZARR)
def test_positions_of_zarr_are_those_of_its_copy_in_n5(
    tmp_path: Path, name: str, zarr_format: Any
) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=zarr_format)
    array = group.create_array("raw", shape=SHAPE, dtype="u1", chunks=CHUNKS)
    array[...] = 1
    array.attrs.update(OF_ZARR[name])
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "b.n5", verify=True)
    found = n5zarr.geometry(tmp_path / "b.n5", "raw")
    begin = (0.0, 0.0, 0.0) if name == "n5-viewer" else BEGIN
    assert (found.scale, found.translation) == (SIZE, begin)
    assert n5zarr.compare(tmp_path / "a.zarr", tmp_path / "b.n5").is_equal
    dataset = xr.open_dataset(tmp_path / "b.n5", engine="n5", group="raw")
    first = [float(dataset.coords[dim][0]) for dim in dataset["raw"].dims]
    assert tuple(first) == begin
    n5zarr.convert(tmp_path / "b.n5", tmp_path / "c.n5", chunks=2)  # from N5 to N5 nothing changes
    assert attributes_of(tmp_path / "c.n5/raw") == attributes_of(tmp_path / "b.n5/raw")


@REFUSED
@pytest.mark.each_of(5)
@pytest.mark.parametrize("to", ["zarr", "zarr2"])
@pytest.mark.parametrize("name", OF_N5)
def test_a_document_of_n5_comes_back(tmp_path: Path, name: str, to: Any) -> None:
    make_n5(tmp_path / "a.n5", OF_N5[name])
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.zarr", to=to, verify=True)
    shown = zarr.open_array(tmp_path / "b.zarr/raw", mode="r").attrs.asdict()
    if name == "gunpowder":
        assert (shown["resolution"], shown["offset"]) == ([40, 5, 4], [100, 0, 8])
    if name == "neuroglancer":
        assert shown["units"] == ["mm", "um", "nm"]
        assert shown["downsamplingFactors"] == [1, 3, 2]
    assert n5zarr.compare(tmp_path / "a.n5", tmp_path / "b.zarr").is_equal
    n5zarr.convert(tmp_path / "b.zarr", tmp_path / "c.n5")
    assert attributes_of(tmp_path / "c.n5/raw") == OF_N5[name]
    assert n5zarr.compare(tmp_path / "a.n5", tmp_path / "c.n5").is_equal


@pytest.mark.parametrize("to", ["zarr", "zarr2"])
def test_positions_of_groups_come_back(tmp_path: Path, to: Any) -> None:
    attributes = {
        "axes": ["x", "y", "z"], "units": ["nm", "um", "mm"], "resolution": [4, 5, 40],
        "downsamplingFactors": [[1, 1, 1], [2, 3, 1]], "offset": [8, 0, 100],
    }  # fmt: skip
    path = tmp_path / "a.n5"
    for level in ("s0", "s1"):
        n5zarr.create_array(path, path=f"em/{level}", shape=SHAPE, chunks=CHUNKS, dtype="u1")
    (path / "em/attributes.json").write_text(json.dumps(attributes))
    n5zarr.convert(path, tmp_path / "b.zarr", to=to)
    shown = zarr.open_group(tmp_path / "b.zarr/em", mode="r").attrs.asdict()
    assert shown == {
        "axes": ["z", "y", "x"], "units": ["mm", "um", "nm"], "resolution": [40, 5, 4],
        "downsamplingFactors": [[1, 1, 1], [1, 3, 2]], "offset": [100, 0, 8],
    }  # fmt: skip
    n5zarr.convert(tmp_path / "b.zarr", tmp_path / "c.n5")
    assert attributes_of(tmp_path / "c.n5/em") == attributes
    assert n5zarr.geometry(tmp_path / "c.n5", "em/s1").scale == (40.0, 15.0, 8.0)


@pytest.mark.parametrize("select", ["**", ["v/raw"], ["v/mip"], ["w"]])
def test_lists_of_groups_do_not_depend_on_the_selection(tmp_path: Path, select: Any) -> None:
    n5zarr.create_array(tmp_path / "a.n5/v/raw", shape=SHAPE, dtype="u1")
    n5zarr.create_array(tmp_path / "a.n5/v/mip", shape=(7, 11), dtype="u1")
    n5zarr.create_array(tmp_path / "a.n5/w", shape=(13,), dtype="u1")
    n5zarr.set_attribute(tmp_path / "a.n5", "", "resolution", [4, 5, 40])
    n5zarr.set_attribute(tmp_path / "a.n5", "v", "offset", [1, 2, 3])
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "a.zarr", select=select)
    copy = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert copy.attrs["resolution"] == [40, 5, 4]
    assert select == ["w"] or copy["v"].attrs["offset"] == [3, 2, 1]


def test_what_java_writes_in_zarr_is_as_in_n5(tmp_path: Path) -> None:
    """n5-zarr at b1fb6dd, ``ZarrV3DatasetAttributes``: names of dimensions, the last axis first."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    names = ["dim_2", "dim_1", "dim_0"]
    array = group.create_array("raw", shape=SHAPE, dtype="u1", dimension_names=names)
    array.attrs["resolution"] = group.attrs["resolution"] = [4, 5, 40]
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "b.n5")
    assert n5zarr.geometry(tmp_path / "b.n5", "raw").scale == SIZE
    n5zarr.convert(tmp_path / "b.n5", tmp_path / "c.zarr")
    n5zarr.convert(tmp_path / "c.zarr", tmp_path / "d.n5")
    for path in ("b.n5", "b.n5/raw", "d.n5", "d.n5/raw"):
        assert attributes_of(tmp_path / path)["resolution"] == [4, 5, 40]
    assert n5zarr.compare(tmp_path / "b.n5", tmp_path / "c.zarr").is_equal


def test_a_view_in_n5s_order_keeps_the_lists(tmp_path: Path) -> None:
    make_n5(tmp_path / "a.n5", OF_N5["gunpowder"])
    n5zarr.convert(N5Store(tmp_path / "a.n5", axis_order="F"), tmp_path / "b.zarr")
    array = zarr.open_array(tmp_path / "b.zarr/raw", mode="r")
    assert (array.shape, array.attrs["resolution"]) == (SHAPE[::-1], [4, 5, 40])


def test_a_store_shows_attributes_as_they_are(tmp_path: Path) -> None:
    make_n5(tmp_path / "a.n5", OF_N5["gunpowder"])
    for zarr_format in (2, 3):
        store = N5Store(tmp_path / "a.n5", zarr_format=zarr_format)
        assert zarr.open_array(store, path="raw", mode="r").attrs["resolution"] == [4, 5, 40]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_references_have_zarrs_order(tmp_path: Path, zarr_format: Any) -> None:
    make_n5(tmp_path / "a.n5", OF_N5["gunpowder"])
    (tmp_path / "a.n5/attributes.json").write_text('{"n5": "4.0.0", "resolution": [4, 5, 40]}')
    n5zarr.virtualize(tmp_path / "a.n5", tmp_path / "a.json", coords=False, zarr_format=zarr_format)
    text = (tmp_path / "a.json").read_text()
    refs = json.loads(text)["refs"]
    for path in ("", "raw/"):
        name = ".zattrs" if zarr_format == 2 else "zarr.json"
        found = refs[f"{path}{name}"]
        found = json.loads(found) if isinstance(found, str) else found
        assert found.get("attributes", found)["resolution"] == [40, 5, 4]
