"""Each package that may be missing is deleted in a copy; the rest imports and does its main job."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.outputs import python
from tests.structure import REPOSITORY
from tests.test_rooms import BUDGETS, MODULES, WITHOUT_REPOSITORY

# what each may leave undone, in the words of JOB
PACKAGES: dict[str, set[str]] = {
    "fast": set(),
    "servers": {"url"},
    "paintera": {"labels"},
    "other_sources": {"tiff"},
    "ome_zarr": {"ome"},
    "bigdataviewer": {"project"},
    "compat": {"zarr2", "z5py"},
    "hdmf": set(),
    "viewing": {"picture"},
    "xarray": {"engine", "project"},
    "cli": {"command"},
    "tools/virtualize": {"virtual"},
    "tools/diff": {"compare", "ome"},
    "tools/evidence": {"report"},
    "tools/validate": {"validate"},
    "tools/pyramid": {"pyramid", "project", "ome"},
}
JOB = """
import hashlib, importlib, json, pathlib, subprocess, sys, tempfile, warnings
warnings.simplefilter("ignore")
import numpy as np, tifffile, zarr, n5zarr

lacking, where = set(sys.argv[1:]), pathlib.Path(tempfile.mkdtemp())
data = np.random.default_rng(0).integers(0, 999, (11, 13, 17)).astype("u2")
container = where / "a.n5"

def step(name, *needs):
    def run(function):
        if lacking.isdisjoint({name, *needs}):
            function()
            print(name)
    return run

@step("array")
def _():
    for name in ("raw", "gzip", "zstd", "lz4", "bzip2", "xz", "blosc"):
        array = n5zarr.create_array(container, path=name, data=data, chunks=(3, 5, 7), axes="zyx",
                                    compression=name)
        array[2:5, 1, ::3] = 7
        expected = data.copy()
        expected[2:5, 1, ::3] = 7
        for opened in (n5zarr.open(container, path=name),
                       zarr.open_array(n5zarr.N5Store(container), path=name)):
            assert (opened[...] == expected).all(), name
        boxes = n5zarr.read_boxes(array, [[1, 2, 3], [4, 5, 6]], (2, 3, 4))
        assert (boxes[1] == expected[4:6, 5:8, 6:10]).all()
        array[...] = data
    array.resize((13, 13, 17))
    array.append(data)
    assert (array[13:] == data).all() and not array[11:13].any()
    text = n5zarr.create_array(container, path="text", shape=(5,), chunks=2, dtype=str)
    text[:] = np.array(["a", "bb", "", "c", "d"], object)
    assert text[1] == "bb"
    n5zarr.set_attribute(container, "text", "k", [1])
    assert n5zarr.get_attribute(container, "text", "k") == [1]

@step("stores")
def _():
    from obstore.store import MemoryStore
    stores = [
        zarr.storage.MemoryStore(), zarr.storage.ObjectStore(MemoryStore()),
        zarr.storage.FsspecStore.from_url("memory://stores", read_only=False),
        zarr.storage.ZipStore(where / "a.zip", mode="w"),
    ]
    for store in stores:
        array = n5zarr.create_array(store, path="g/a", data=data, chunks=(3, 5, 7), axes="zyx")
        plain = zarr.open_group(n5zarr.N5Store(store), mode="r")
        assert (array[2:9] == data[2:9]).all() and (plain["g/a"][...] == data).all()
        assert plain["g/a"].metadata.dimension_names == ("z", "y", "x")

@step("url")
def _():
    n5zarr.create_array("memory://a.n5", path="a", data=data)
    assert (n5zarr.open("memory://a.n5", path="a", mode="r")[...] == data).all()

if "url" in lacking:
    try:
        n5zarr.open("s3://bucket/a.n5")
    except n5zarr.errors.N5UnsupportedError as err:
        assert "expected the package n5zarr.servers" in str(err)
    else:
        raise AssertionError

@step("engine")
def _():
    import xarray as xr
    found = xr.open_dataset(container, engine="n5", group="zstd")
    assert (found["zstd"].values == data).all() and "z" in found.dims
    n5zarr.to_n5(found, where / "x.n5")

@step("convert")
def _():
    n5zarr.convert(container, where / "b.zarr")
    n5zarr.convert(where / "b.zarr", where / "c.n5", chunks=(4, 4, 4))
    assert (n5zarr.open(where / "c.n5", path="gzip")[...] == data).all()
    n5zarr.rechunk(where / "c.n5/gzip", chunks=(5, 5, 5))
    n5zarr.remove_empty_blocks(where / "c.n5", "gzip")

@step("compare")
def _():
    assert n5zarr.compare(container, where / "b.zarr").is_equal

@step("validate")
def _():
    assert not n5zarr.validate(container, deep=True).findings

@step("report")
def _():
    n5zarr.convert(container, where / "r.zarr", report=where / "r.json", verify=True)
    (run,) = json.loads((where / "r.json").read_text())["runs"]
    (raw,) = (each for each in run["datasets"] if each["path"] == "raw")
    values = n5zarr.open(container, path="raw")[...].astype("<u2").tobytes()
    assert raw["destination"]["sha256"] == hashlib.sha256(values).hexdigest()

if "report" in lacking:
    for call in (n5zarr.convert, n5zarr.compare):
        try:
            call(container, where / "b.zarr", report=where / "r.json")
        except n5zarr.errors.N5UnsupportedError as err:
            assert "report: expected the package n5zarr.tools.evidence" in str(err)
        else:
            raise AssertionError(call)

@step("pyramid")
def _():
    n5zarr.create_array(where / "p.n5", path="m/s0", data=data, chunks=(3, 5, 7), axes="zyx")
    assert n5zarr.build_pyramid(where / "p.n5", "m", levels=2).levels[-1].path == "m/s2"

@step("ome", "pyramid")
def _():
    n5zarr.convert(where / "p.n5", where / "o.zarr", ome=True)
    assert n5zarr.compare(where / "p.n5", where / "o.zarr").is_equal

@step("labels")
def _():
    n5zarr.write_fragment_segments(where / "l.n5" / "neurons", [3, 5], [5, 5])
    table = n5zarr.read_fragment_segments(where / "l.n5" / "neurons")
    assert n5zarr.segments_of([[1, 3], [5, 0]], table).tolist() == [[1, 5], [5, 0]]

@step("tiff")
def _():
    tifffile.imwrite(where / "t.tif", data)
    n5zarr.convert(where / "t.tif", where / "t.n5")

@step("picture")
def _():
    n5zarr.thumbnail(container / "zstd").save(where / "a.png")

@step("project")
def _():
    n5zarr.write_bdv({(0, 0): data}, where / "project.xml")
    tree = n5zarr.open_bdv(where / "project.xml")
    found = [v.values for node in tree.subtree for v in node.data_vars.values()]
    assert any(data.shape == v.squeeze().shape and (v.squeeze() == data).all() for v in found)

@step("zarr2")
def _():
    from n5zarr.compat import zarr2
    root = zarr2.open(str(where / "o.n5"), "w")
    root.create_dataset("x", data=data, chunks=(3, 5, 7), compressor=zarr2.GZip(1))
    assert (root.x[2:5] == data[2:5]).all()

@step("z5py")
def _():
    from n5zarr.compat import z5py
    with z5py.File(str(where / "p.n5"), "a") as file:
        file.create_dataset("x", data=data, chunks=(3, 5, 7), compression="gzip")[:2] = 7
        assert (file["x"][2:5] == data[2:5]).all() and (file["x"][:2] == 7).all()

@step("virtual")
def _():
    n5zarr.virtualize(container, where / "v.json")

@step("command")
def _():
    call = [sys.executable, "-m", "n5zarr", "info", str(container / "zstd")]
    assert b"zstd" in subprocess.run(call, check=True, capture_output=True).stdout

for name in OTHERS:
    importlib.import_module(name)
"""
STEPS = {line.split('"')[1] for line in JOB.splitlines() if line.startswith("@step")}
SHORT = {"fast", "servers"}  # rooms of the core
LONG = [pytest.param(name, marks=pytest.mark.long) for name in PACKAGES if name not in SHORT]


@pytest.mark.parametrize("name", [*sorted(SHORT), *LONG])
def test_the_rest_does_its_main_job(name: str, tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "n5zarr", tmp_path / "n5zarr", ignore=ignored)
    shutil.rmtree(tmp_path / "n5zarr" / name)
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_REPOSITORY)
    lacking, gone = PACKAGES[name], f"n5zarr.{name.replace('/', '.')}."
    # modules of rooms are imported with what they add; those of commands by the command
    others = [
        each
        for each, module in MODULES.items()
        if module.room not in {*BUDGETS, "cli", "__main__"} and not f"{each}.".startswith(gone)
    ]
    job = ("-c", f"OTHERS = {others}\n{JOB}", *lacking)
    done = python(*job, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert {*done.split()} == STEPS - lacking
