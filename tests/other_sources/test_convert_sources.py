"""Sources of ``convert`` in other formats: values are those that the library of the format reads.

Axes of HDF5: "HDF5 Dimension Scales Specification" and netCDF's ``units``; lazyflow
``OpStreamingH5N5Reader`` (``axistags``); Fiji's HDF5 plugin (``element_size_um``: z, y, x).
"""

from __future__ import annotations

import gc
import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tifffile
import zarr
from zarr.storage import ZipStore

import n5zarr
from n5zarr.errors import N5FormatError, N5UnrepresentableError
from n5zarr.other_sources.tiff import _array
from tests.command import printed

VALUES = np.random.default_rng(5).integers(0, 60000, (3, 5, 17, 23)).astype("u2")

# ------------------------------------------------------------------------------------ archives


def pack(archive: Path, folder: Path, above: str = "") -> Path:
    with zipfile.ZipFile(archive, "w") as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                packed.write(file, f"{above}{file.relative_to(folder).as_posix()}")
    return archive


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("inner", ["", "em/s0"])
def test_a_zip_store_becomes_n5(tmp_path: Path, zarr_format: Any, inner: str) -> None:
    path = tmp_path / "a.zarr.zip"
    with ZipStore(path, mode="w") as store:
        root = zarr.create_group(store, zarr_format=zarr_format, attributes={"mine": 1})
        array = root.create_array("em/s0", shape=VALUES.shape, dtype="u2", chunks=(1, 2, 7, 11))
        array[...] = VALUES
    done = n5zarr.convert(path / inner, tmp_path / "o.n5", verify=True)
    assert done.verified
    copy: Any = n5zarr.open(tmp_path / "o.n5", path="" if inner else "em/s0")
    np.testing.assert_array_equal(copy[...], VALUES)
    assert copy.chunks == (1, 2, 7, 11)
    if not inner:
        assert n5zarr.open_group(tmp_path / "o.n5").attrs["mine"] == 1
    with ZipStore(path, mode="r") as store:  # it is as it was
        kept: Any = zarr.open_group(store, mode="r")["em/s0"]
        np.testing.assert_array_equal(kept[...], VALUES)


@pytest.mark.parametrize("above", ["", "folder/a.n5/"])
def test_an_archive_of_n5_becomes_zarr(tmp_path: Path, above: str) -> None:
    """The hierarchy may be in a directory of the archive."""
    array = n5zarr.create_array(
        tmp_path / "a.n5", path="em/s0", shape=VALUES.shape, dtype="u2", chunks=(1, 2, 7, 11),
        axes="czyx", units=["", "nm", "nm", "nm"], resolution=[1, 40, 4, 4],
    )  # fmt: skip
    array[...] = VALUES
    archive = pack(tmp_path / "b.zip", tmp_path / "a.n5", above)
    found = n5zarr.convert(archive, tmp_path / "o.zarr", verify=True)
    assert [(a.path, a.way) for a in found.arrays] == [("em/s0", "chunks")]
    copy: Any = zarr.open_group(tmp_path / "o.zarr")["em/s0"]
    np.testing.assert_array_equal(copy[...], VALUES)
    n5zarr.convert(archive / "em", tmp_path / "ome.zarr", ome=True)
    image: Any = zarr.open_group(tmp_path / "ome.zarr")
    np.testing.assert_array_equal(image["s0"][...], VALUES)
    scale = image.attrs["ome"]["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]
    assert scale["scale"] == [1, 40, 4, 4]


def test_other_archives_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"no")
    with pytest.raises(N5FormatError, match=r"a\.zip: expected a zip archive, got File is not"):
        n5zarr.convert(tmp_path / "a.zip", tmp_path / "o.n5")
    (tmp_path / "text").mkdir()
    (tmp_path / "text/b.txt").write_text("b")
    pack(tmp_path / "b.zip", tmp_path / "text")
    with pytest.raises(N5FormatError, match=r"b\.zip: expected an archive of N5 or Zarr") as err:
        n5zarr.convert(tmp_path / "b.zip", tmp_path / "o.n5")
    assert err.value.kind == "foreign"
    with pytest.raises(FileNotFoundError, match=r"c\.zip"):
        n5zarr.convert(tmp_path / "c.zip", tmp_path / "o.n5")
    with pytest.raises(N5UnrepresentableError, match=r"got an archive: write a folder and pack it"):
        n5zarr.convert(n5zarr.sample_path(), tmp_path / "d.zarr.zip")
    assert not list(tmp_path.glob("o.n5*"))
    assert not list(tmp_path.glob("d.zarr*"))


# ---------------------------------------------------------------------------------------- HDF5


def tags(*axes: tuple[str, int, float]) -> str:
    """Write ``axistags`` as vigra's ``AxisTags.toJSON`` does."""
    each = [{"key": k, "typeFlags": f, "resolution": r, "description": ""} for k, f, r in axes]
    return json.dumps({"axes": each})


def hdf5(folder: Path, **attributes: Any) -> Path:
    with h5py.File(folder / "a.h5", "w") as file:
        dataset = file.create_dataset("volumes/raw", data=VALUES, chunks=(1, 2, 7, 11))
        dataset.attrs.update(attributes)
    return folder / "a.h5/volumes/raw"


def check(source: Path, names: Any, units: Any, scale: Any, translation: Any = (0,) * 4) -> None:
    copy = source.parents[2] / "o.n5/raw"
    printed("convert", source, copy, "--verify")
    array: Any = n5zarr.open(copy)
    with h5py.File(source.parents[1]) as file:
        np.testing.assert_array_equal(array[...], file["volumes/raw"][...])
    found = n5zarr.geometry(copy)
    assert (found.names, found.units) == (tuple(names), tuple(units))
    np.testing.assert_allclose(found.scale, scale)
    np.testing.assert_allclose(found.translation, translation)


def test_hdf5_of_ilastik_keeps_its_axes(tmp_path: Path) -> None:
    axistags = tags(("t", 8, 0), ("z", 2, 0), ("y", 2, 0), ("x", 2, 0))
    source = hdf5(tmp_path, axistags=axistags, element_size_um=(1.5, 0.3, 0.2))
    check(source, "tzyx", (None, "µm", "µm", "µm"), (1, 1.5, 0.3, 0.2))


def test_resolutions_in_axistags(tmp_path: Path) -> None:
    axistags = tags(("c", 1, 0), ("z", 2, 40), ("y", 2, 4), ("x", 2, 5))
    units = json.dumps({"z": "nm", "y": "nm", "x": "nm"})
    source = hdf5(tmp_path, axistags=axistags, axis_units=units)
    check(source, "czyx", (None, "nm", "nm", "nm"), (1, 40, 4, 5))


def test_scales_of_dimensions(tmp_path: Path) -> None:
    """Even positions are scale and offset, with the unit of netCDF; others are names only."""
    source = hdf5(tmp_path, element_size_um=(1.5, 0.3, 0.2))
    positions = {
        "time": np.array([0, 1, 5.0]),  # uneven
        "z": 7 + 2.5 * np.arange(5),
        "y": 100 - 4.0 * np.arange(17),
    }
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        dataset = file["volumes/raw"]
        for n, (name, values) in enumerate(positions.items()):
            file[name] = values
            file[name].make_scale(name)
            file[name].attrs["units"] = "nm"
            dataset.dims[n].attach_scale(file[name])
        dataset.dims[3].label = "x"
    check(
        source, ("time", "z", "y", "x"), (None, "nm", "nm", "µm"), (1, 2.5, -4, 0.2),
        (0, 7, 100, 0),
    )  # fmt: skip


def test_element_sizes_of_three_axes_name_them(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"] = VALUES[0]
        file["raw"].attrs["element_size_um"] = np.array([1.5, 0.3, 0.2])
    n5zarr.convert(tmp_path / "a.h5", tmp_path / "o.n5", verify=True)
    found = n5zarr.geometry(tmp_path / "o.n5/raw")
    assert (found.names, found.units) == (("z", "y", "x"), ("µm",) * 3)
    assert found.scale == (1.5, 0.3, 0.2)


@pytest.mark.parametrize(
    "attributes",
    [
        {"axistags": "{"}, {"axistags": tags(("z", 2, 0))}, {"element_size_um": (1.5, 0.3)},
        {"element_size_um": "large"}, {"element_size_um": (1.5, 0.0, 0.2)},
    ],
)  # fmt: skip
def test_attributes_that_do_not_fit_are_copied_as_they_are(
    tmp_path: Path, attributes: dict[str, Any]
) -> None:
    n5zarr.convert(hdf5(tmp_path, **attributes), tmp_path / "o.n5/raw", verify=True)
    document = json.loads((tmp_path / "o.n5/raw/attributes.json").read_bytes())
    for name, value in attributes.items():
        assert document[name] == (list(value) if isinstance(value, tuple) else value)
    assert "resolution" not in document


def test_positions_of_a_convention_of_n5_win(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"] = VALUES
        file["raw"].attrs["pixelResolution"] = [4.0, 4.0, 8.0, 1.0]
        file["raw"].attrs["axistags"] = tags(("c", 1, 0), *((k, 2, 3.0) for k in "zyx"))
    n5zarr.convert(tmp_path / "a.h5/raw", tmp_path / "o.n5/raw")
    document = json.loads((tmp_path / "o.n5/raw/attributes.json").read_bytes())
    assert document["pixelResolution"] == [4, 4, 8, 1]
    assert "resolution" not in document


@pytest.mark.parametrize("end", ["h5", "tif"])
def test_a_folder_with_the_name_of_a_file_is_no_file(tmp_path: Path, end: str) -> None:
    folder = tmp_path / f"a.{end}"
    folder.mkdir()
    with pytest.raises(FileNotFoundError, match="an empty directory"):
        n5zarr.convert(folder, tmp_path / "b.n5")
    n5zarr.create_array(folder, path="d", data=np.arange(5))
    n5zarr.convert(folder, tmp_path / "b.n5")
    written = n5zarr.open_array(tmp_path / "b.n5", path="d", mode="r")
    np.testing.assert_array_equal(written[...], np.arange(5))


def test_a_file_is_closed_when_nothing_reads_it_any_more(tmp_path: Path) -> None:
    values = np.arange(385, dtype="u2").reshape(5, 7, 11)
    tifffile.imwrite(tmp_path / "a.tif", values)
    n5zarr.convert(tmp_path / "a.tif", tmp_path / "a.n5")
    _array.cache_clear()  # as the 65th image does
    gc.collect()  # an open file would be a warning
    copy: Any = n5zarr.open(tmp_path / "a.n5")
    np.testing.assert_array_equal(copy[...], values)
