"""Sources of ``convert`` in other formats: values are those that the library of the format reads.

Axes of HDF5: "HDF5 Dimension Scales Specification" and netCDF's ``units``; lazyflow
``OpStreamingH5N5Reader`` (``axistags``); Fiji's HDF5 plugin (``element_size_um``: z, y, x).
"""

from __future__ import annotations

import json
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import bioio
import dask.array as da
import h5py
import mrc
import numpy as np
import pytest
import zarr
from bioio_base.types import PhysicalPixelSizes
from zarr.storage import ZipStore

import n5zarr
from n5zarr.errors import N5FormatError, N5MissingDependencyError, N5UnrepresentableError
from tests.command import printed
from tests.contract import bigstitcher as project
from tests.contract import test_bigstitcher_hdf5 as bdv_hdf5
from tests.memory import traced

if TYPE_CHECKING:
    from pathlib import Path

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
    check(
        hdf5(tmp_path, axistags=axistags, axis_units=units),
        "czyx", (None, "nm", "nm", "nm"), (1, 40, 4, 5),
    )  # fmt: skip


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
        {"axistags": "{"},
        {"axistags": tags(("z", 2, 0))},
        {"element_size_um": (1.5, 0.3)},
        {"element_size_um": "large"},
        {"element_size_um": (1.5, 0.0, 0.2)},
    ],
)
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


def test_hdf5_of_bigdataviewer_needs_its_xml(tmp_path: Path) -> None:
    xml = bdv_hdf5.write_project(tmp_path)
    file = tmp_path / "my %20.h5"
    with pytest.raises(N5UnrepresentableError, match=r"expected the XML of BigDataViewer that"):
        n5zarr.convert(file, tmp_path / "o.n5")
    n5zarr.convert(xml, tmp_path / "o.n5")
    n5zarr.convert(file / "t00002/s00/0/cells", tmp_path / "one.n5/raw")
    copies: list[Any] = [
        n5zarr.open(tmp_path / "o.n5", path="setup0/timepoint2/s0"),
        n5zarr.open(tmp_path / "one.n5/raw"),
    ]
    for copy in copies:
        np.testing.assert_array_equal(copy[...], project.elements(0, 2, 0))


# --------------------------------------------------------------------------------------- BioIO


PIXEL: dict[str, Any] = {"dx": 0.2, "dy": 0.3, "dz": 1.5}


def write_dv(path: Path, values: np.ndarray[Any, Any] = VALUES) -> Path:
    """Write DeltaVision's format: axes t, z, y, x; pixels of 0.2 x 0.3 x 1.5 µm."""
    save: Any = mrc.save
    save(values, str(path), zAxisOrder="tz", metadata=PIXEL)
    return path


def test_a_file_of_a_microscope_becomes_n5(tmp_path: Path) -> None:
    source = write_dv(tmp_path / "a.dv")
    expected = np.asarray(mrc.imread(str(source)))
    assert expected.shape == VALUES.shape
    printed("convert", source, tmp_path / "o.n5/em/s0", "--verify")
    copy: Any = n5zarr.open(tmp_path / "o.n5/em/s0")
    np.testing.assert_array_equal(copy[...], expected)
    np.testing.assert_array_equal(copy[...], VALUES)
    assert copy.chunks == (1, 5, 17, 23)
    found = n5zarr.geometry(tmp_path / "o.n5/em/s0")
    assert (found.names, found.units) == (("t", "z", "y", "x"), (None, "µm", "µm", "µm"))
    np.testing.assert_allclose(found.scale, (1, 1.5, 0.3, 0.2), rtol=1e-6)
    n5zarr.convert(source, tmp_path / "o.zarr", chunks=(2, 3, 7, 11), verify=True)
    array: Any = zarr.open(tmp_path / "o.zarr")
    np.testing.assert_array_equal(array[...], VALUES)
    assert array.metadata.dimension_names == ("t", "z", "y", "x")


def test_axes_of_one_element_are_left_out(tmp_path: Path) -> None:
    source = write_dv(tmp_path / "a.dv", VALUES[:1, :1])
    n5zarr.convert(source, tmp_path / "o.n5", verify=True)
    assert n5zarr.geometry(tmp_path / "o.n5").names == ("y", "x")
    copy: Any = n5zarr.open(tmp_path / "o.n5")
    np.testing.assert_array_equal(copy[...], VALUES[0, 0])


def scenes_of(*arrays: Any, **options: Any) -> Any:
    """Replace BioIO's opening of a file: its own reader of arrays has them as scenes."""
    original = bioio.BioImage

    def opened(_: str, **__: Any) -> Any:
        scenes: list[Any] = list(arrays)
        return original(scenes, **options)

    return opened


def test_scenes_become_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of channels become those of OME-Zarr."""
    (tmp_path / "a.lif").write_bytes(b"")
    first, second = VALUES.astype("f4"), VALUES[:2, :3, ::2]
    sizes = PhysicalPixelSizes(Z=1.5, Y=0.3, X=0.2)
    opened = scenes_of(
        first, second, dim_order="CZYX", physical_pixel_sizes=sizes,
        channel_names=[["DAPI", "GFP", "RFP"], ["a", "b"]],
    )  # fmt: skip
    monkeypatch.setattr(bioio, "BioImage", opened)
    done = n5zarr.convert(tmp_path / "a.lif", tmp_path / "o.n5", n_workers=2, verify=True)
    assert [array.path for array in done.arrays] == ["Image_0/s0", "Image_1/s0"]
    for name, values in (("Image_0", first), ("Image_1", second)):
        copy: Any = n5zarr.open(tmp_path / "o.n5", path=f"{name}/s0")
        np.testing.assert_array_equal(copy[...], values)
        assert n5zarr.geometry(copy).names == ("c", "z", "y", "x")
    # BioIO's reader of arrays has sizes for the first scene only
    assert n5zarr.geometry(tmp_path / "o.n5", "Image_0/s0").scale == (1, 1.5, 0.3, 0.2)
    assert not n5zarr.geometry(tmp_path / "o.n5", "Image_1/s0").units[1]
    n5zarr.convert(tmp_path / "o.n5", tmp_path / "o.zarr", ome=True)
    ome: Any = zarr.open_group(tmp_path / "o.zarr")["Image_0"].attrs["ome"]
    labels = [channel["label"] for channel in ome["omero"]["channels"]]
    assert labels == ["DAPI", "GFP", "RFP"]


def test_a_czi_file_becomes_n5(tmp_path: Path) -> None:
    """Times and channels, written and read by Zeiss' own library."""
    pytest.importorskip("bioio_czi", reason="no bioio-czi")
    czi: Any = pytest.importorskip("pylibCZIrw.czi", reason="no bioio-czi")
    values = np.random.default_rng(3).integers(0, 60000, (2, 3, 5, 17, 23)).astype("u2")
    file = tmp_path / "a.czi"
    with czi.create_czi(str(file)) as written:
        for t, c, z in np.ndindex(values.shape[:3]):
            written.write(values[t, c, z][..., None], plane={"T": t, "C": c, "Z": z})
        written.write_metadata(
            "a", channel_names={0: "DAPI", 1: "GFP", 2: "RFP"},
            scale_x=0.2e-6, scale_y=0.3e-6, scale_z=1.5e-6,
        )  # fmt: skip
    n5zarr.convert(file, tmp_path / "o.n5", verify=True)
    copy: Any = n5zarr.open(tmp_path / "o.n5")
    with czi.open_czi(str(file)) as opened:
        for t, c, z in np.ndindex(values.shape[:3]):
            plane = opened.read(plane={"T": t, "C": c, "Z": z})[..., 0]
            np.testing.assert_array_equal(copy[t, c, z], plane)
    np.testing.assert_array_equal(copy[...], values)
    found = n5zarr.geometry(copy)
    assert found.names == ("t", "c", "z", "y", "x")
    np.testing.assert_allclose(found.scale, (1, 1, 1.5, 0.3, 0.2))
    assert copy.attrs["coordinateArrays"] == {"c": ["DAPI", "GFP", "RFP"]}


def plane(z: int) -> np.ndarray[Any, Any]:
    return np.add.outer(z + 7 * np.arange(521), np.arange(1031)).astype("u2")


def test_large_files_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds some planes, not the file, whatever the blocks are."""
    n_planes, read = 61, []

    def block(block_info: Any) -> np.ndarray[Any, Any]:
        z = block_info[None]["chunk-location"][1]
        read.append(z)
        return plane(z)[None, None]

    chunks = ((1,), (1,) * n_planes, (521,), (1031,))
    map_blocks: Any = da.map_blocks
    lazy = map_blocks(block, dtype="u2", chunks=chunks, meta=np.empty((0, 0, 0, 0), "u2"))
    (tmp_path / "a.nd2").write_bytes(b"")
    n5zarr.convert(write_dv(tmp_path / "b.dv"), tmp_path / "b.n5")  # imports what is needed
    monkeypatch.setattr(bioio, "BioImage", scenes_of(lazy, dim_order="CZYX"))
    n_bytes = n_planes * 521 * 1031 * 2
    with traced() as memory:
        n5zarr.convert(
            tmp_path / "a.nd2", tmp_path / "o.n5", chunks=64, max_memory=2**22, n_workers=1
        )
    assert memory.peak < n_bytes / 3
    copy: Any = n5zarr.open(tmp_path / "o.n5")
    for z in (0, 31, 60):
        np.testing.assert_array_equal(copy[z], plane(z))
    read.clear()
    n5zarr.convert(tmp_path / "a.nd2", tmp_path / "p.n5", chunks=64, n_workers=1)
    assert sorted(read) == list(range(n_planes))  # with memory for it, each once


def test_missing_readers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, package in (("a.nd2", "bioio-nd2"), ("b.IMS", "bioio-bioformats")):
        (tmp_path / name).write_bytes(b"any")
        with pytest.raises(N5MissingDependencyError, match=rf"pip install {package}$"):
            n5zarr.convert(tmp_path / name, tmp_path / "o.n5")
    monkeypatch.setitem(sys.modules, "bioio", None)
    with pytest.raises(N5MissingDependencyError, match=r"reading \.nd2 .*n5zarr\[bioio\]"):
        n5zarr.convert(tmp_path / "a.nd2", tmp_path / "o.n5")
    assert not (tmp_path / "o.n5").exists()


def test_damaged_files_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.dv"
    file.write_bytes(b"no image of a microscope")
    with pytest.raises(
        N5FormatError, match=r"a\.dv: expected a file that a reader of BioIO"
    ) as err:
        n5zarr.convert(file, tmp_path / "o.n5")
    assert err.value.kind == "foreign"
    save: Any = mrc.save
    save(VALUES, str(file), zAxisOrder="tz")
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises((N5FormatError, ValueError, OSError), match=r"a\.dv|size|bytes|mmap"):
        n5zarr.convert(file, tmp_path / "o.n5", verify=True)
    with pytest.raises(FileNotFoundError, match=r"b\.dv"):
        n5zarr.convert(tmp_path / "b.dv", tmp_path / "o.n5")
