"""Other programs work on N5, each in a few lines as its users write them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.store import Store
from zarr.storage import LocalStore

import n5zarr
from n5zarr import N5Store
from tests.contract.stored import by_tensorstore

z5py = pytest.importorskip("z5py", reason="peer: uv sync installs it")

same = np.testing.assert_array_equal
SHAPE, BLOCK = (7, 11, 13), (3, 4, 5)
VALUES = np.arange(7 * 11 * 13, dtype="u2").reshape(SHAPE)
SCALE, OFFSET = (40, 8, 4), (80, 16, 12)  # in nm; z, y, x

WARNINGS = (
    "The 'future.infer_string' option is deprecated",  # anndata
    "zarr v3 will become the only option",  # anndata
    "This setting will be removed in 0.14",  # anndata
    "using axis names to define which axes are ch",  # funlib
)
filters = (pytest.mark.filterwarnings(f"ignore:{text}:DeprecationWarning") for text in WARNINGS)
pytestmark = [pytest.mark.long, *filters]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the directory, as some programs log there, or read pyproject.toml."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "c.n5"


def program(name: str) -> Any:
    return pytest.importorskip(name, reason="program: uv sync installs it")


def read_by_z5py(root: Path, path: str) -> np.ndarray:
    return np.asarray(z5py.File(str(root), "r")[path][:])


def test_z5py_and_tensorstore_agree(root: Path) -> None:
    with z5py.File(str(root), "a", use_zarr_format=False) as file:
        file.create_dataset("x", data=VALUES, chunks=BLOCK)
    same(by_tensorstore(root / "x"), VALUES)
    same(read_by_z5py(root, "x"), VALUES)


# ---------------------------------------------------------------------- anndata


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def cells(root: Path, zarr_format: int) -> np.ndarray:
    """Write a table of anndata: numbers, dense and sparse, text and categories."""
    anndata, sparse, pandas = program("anndata"), program("scipy.sparse"), program("pandas")
    x = np.asarray(VALUES[3] % 7, "f4") * (VALUES[3] % 3 == 0)
    data = anndata.AnnData(
        x,
        obs=pandas.DataFrame(
            {"kind": pandas.Categorical(list("abcabcabcab")), "n": np.arange(11)},
            index=[f"cell {k}" for k in range(11)],
        ),
        layers={"csr": sparse.csr_matrix(x), "csc": sparse.csc_matrix(x)},
        obsm={"pca": VALUES[:2, :, 3].T.astype("f8")},
        uns={"of": {"text": "grüße", "list": np.arange(5)}},
    )
    with anndata.settings.override(zarr_write_format=zarr_format):
        data.write_zarr(N5Store(root))
    return np.asarray(x)


def test_anndata_reads_what_it_wrote(root: Path, cells: np.ndarray, zarr_format: int) -> None:
    found = program("anndata").read_zarr(N5Store(root, mode="r"))
    assert zarr.open_group(N5Store(root), mode="r").metadata.zarr_format == zarr_format
    same(found.X, cells)
    assert (found.layers["csr"].format, found.layers["csc"].format) == ("csr", "csc")
    for name in ("csr", "csc"):
        same(found.layers[name].toarray(), cells)
    same(found.obsm["pca"], VALUES[:2, :, 3].T)
    assert list(found.obs["kind"]) == list("abcabcabcab")
    assert found.obs["kind"].dtype == "category"
    assert list(found.obs_names) == [f"cell {k}" for k in range(11)]
    assert (found.uns["of"]["text"], found.uns["of"]["list"].tolist()) == ("grüße", [0, 1, 2, 3, 4])


def test_anndata_reads_lazily(root: Path, cells: np.ndarray) -> None:
    lazy = program("anndata.experimental").read_lazy(N5Store(root, mode="r"))
    same(lazy.X[2:7].compute(), cells[2:7])
    same(lazy.layers["csr"][2:7].compute().toarray(), cells[2:7])
    same(lazy[:, 3:5].layers["csc"].compute().toarray(), cells[:, 3:5])
    backed = program("anndata.io").sparse_dataset(
        zarr.open_group(N5Store(root), path="layers/csr", mode="r")
    )
    same(backed[2:5].toarray(), cells[2:5])


def test_others_read_the_numbers_of_anndata(root: Path, cells: np.ndarray) -> None:
    data = program("scipy.sparse").csr_matrix(cells)
    parts = {"X": cells, "layers/csr/data": data.data, "layers/csr/indptr": data.indptr}
    for name, expected in parts.items():
        same(by_tensorstore(root / name), expected)
        same(read_by_z5py(root, name), expected)


def test_anndata_adds_to_a_container_of_others(root: Path, zarr_format: int) -> None:
    anndata = program("anndata")
    with z5py.File(str(root), "a", use_zarr_format=False) as file:
        file.create_dataset("em/s0", data=VALUES, chunks=BLOCK)
    group = zarr.open_group(N5Store(root), path="table", mode="a", zarr_format=zarr_format)  # type: ignore[arg-type]
    with anndata.settings.override(zarr_write_format=zarr_format):
        program("anndata.io").write_elem(group, "x", VALUES[2])
    found = program("anndata.io").read_elem(zarr.open_group(N5Store(root), path="table")["x"])
    same(found, VALUES[2])
    same(read_by_z5py(root, "em/s0"), VALUES)


# ---------------------------------------------------------------------- ome-zarr


@pytest.fixture(params=["0.4", "0.5"])
def ome_format(request: pytest.FixtureRequest) -> Any:
    return program("ome_zarr.format").format_from_version(request.param)


@pytest.fixture
def image(root: Path, ome_format: Any) -> list[np.ndarray]:
    levels = [VALUES, VALUES[:, ::2, ::2]]
    group = zarr.open_group(N5Store(root), path="im", mode="w", zarr_format=ome_format.zarr_format)
    program("ome_zarr.writer").write_multiscale(
        levels, group, fmt=ome_format, axes="zyx",
        scale=dict(zip("zyx", SCALE, strict=True)), axes_units=dict.fromkeys("zyx", "nanometer"),
        storage_options={"chunks": BLOCK},
    )  # fmt: skip
    return levels


def test_ome_zarr_writes_a_pyramid(root: Path, image: list[np.ndarray], ome_format: Any) -> None:
    group = zarr.open_group(N5Store(root), path="im", mode="r")
    assert group.metadata.zarr_format == ome_format.zarr_format
    attributes: Any = dict(group.attrs)
    if ome_format.version == "0.5":
        attributes = attributes["ome"]
    paths = [level["path"] for level in attributes["multiscales"][0]["datasets"]]
    for path, level in zip(paths, image, strict=True):
        array: Any = group[path]
        same(array[...], level)
        same(by_tensorstore(root / f"im/{path}"), level)
        same(read_by_z5py(root, f"im/{path}"), level)
    found = n5zarr.geometry(root, "im")
    assert (found.names, found.units) == (("z", "y", "x"), ("nanometer",) * 3)
    scales = [SCALE, pytest.approx((40, 8 * 11 / 6, 4 * 13 / 7))]
    assert [level.scale for level in found.levels] == scales


@pytest.mark.parametrize("is_copied", [False, True], ids=["the store", "its copied keys"])
def test_ome_zarr_reads(
    tmp_path: Path, root: Path, image: list[np.ndarray], is_copied: bool
) -> None:
    """ome-zarr reads a store, or its copied keys: releases up to 0.21 need files or fsspec."""
    store: Store = N5Store(root / "im", mode="r")
    if is_copied:
        for key, value in N5Store(root / "im", mode="r").as_mapping().items():
            (tmp_path / "copy" / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "copy" / key).write_bytes(value)
        store = LocalStore(tmp_path / "copy", read_only=True)
    (node,) = program("ome_zarr.reader").Reader(program("ome_zarr.io").ZarrLocation(store))()
    for found, level in zip(node.data, image, strict=True):
        same(found.compute(), level)


def test_ome_zarr_writes_an_image(root: Path, ome_format: Any) -> None:
    group = zarr.open_group(N5Store(root), mode="w", zarr_format=ome_format.zarr_format)
    program("ome_zarr.writer").write_image(
        VALUES, group, fmt=ome_format, axes="zyx", scale_factors=[2],
        storage_options={"chunks": BLOCK},
    )  # fmt: skip
    arrays: Any = dict(zarr.open_group(N5Store(root), mode="r").arrays())
    assert len(arrays) == 2
    (full,) = (name for name, array in arrays.items() if array.shape == SHAPE)
    same(arrays[full][...], VALUES)
    same(by_tensorstore(root / full), VALUES)


# ---------------------------------------------------------------------- BigDataViewer: pybdv


@pytest.mark.filterwarnings("ignore:Setup 0 and timepoint 0 are present")
def test_pybdv_and_n5zarr_work_on_one_container(root: Path) -> None:
    pybdv = program("pybdv")
    values = np.arange(14 * 22 * 26, dtype="i2").reshape(14, 22, 26)  # halved, they are prime
    pybdv.make_bdv(
        values, str(root), downscale_factors=[[2, 2, 2]], downscale_mode="max",
        resolution=[0.5, 0.2, 0.1], unit="um", chunks=BLOCK,
    )  # fmt: skip
    group: Any = zarr.open_group(N5Store(root), path="setup0/timepoint0", mode="r+")
    same(group["s0"][...], values)
    same(group["s1"][...], values[1::2, 1::2, 1::2])
    assert n5zarr.geometry(root, "setup0/timepoint0/s1").scale == (1.0, 0.4, 0.2)
    stacked = n5zarr.open_bdv(root)["s1"]["data"].sel(setup=0, timepoint=0)
    same(stacked, values[1::2, 1::2, 1::2])
    np.testing.assert_allclose(stacked["x"], 0.05 + 0.2 * np.arange(13))

    group["s0"][...] = 0
    group["s1"][...] = 0
    box, halved = np.s_[2:8, 4:10, 6:20], np.s_[1:4, 2:5, 3:10]
    dataset = program("pybdv.bdv_datasets").BdvDataset(
        str(root), 0, 0, downscale_mode="max", n_threads=1
    )
    dataset[box] = values[box]
    expected = np.zeros_like(values)
    expected[box] = values[box]
    same(group["s0"][...], expected)
    same(group["s1"][halved], expected[1::2, 1::2, 1::2][halved])


def test_pybdv_writes_the_xml_beside_a_setup(root: Path) -> None:
    setup = "setup0/timepoint0"
    n5zarr.create_array(
        root / setup / "s0", data=VALUES, chunks=BLOCK,
        axes="zyx", units=["um"] * 3, resolution=SCALE,
    )  # fmt: skip
    n5zarr.build_pyramid(root / setup, levels=2)
    factors: Any = n5zarr.get_attribute(root, "setup0", "downsamplingFactors")
    assert len(factors) == 3
    file = root.with_suffix(".xml")
    program("pybdv.metadata").write_xml_metadata(
        str(file), str(root), unit="um", resolution=SCALE, is_h5=False, setup_id=0, timepoint=0,
        setup_name="left", affine=None, attributes={"channel": {"id": 0}}, overwrite=False,
        overwrite_data=False, enforce_consistency=True,
    )  # fmt: skip
    tree: Any = n5zarr.open_bdv(file)
    whole, half = (tree[name]["data"][0, 0] for name in ("s0", "s1"))
    same(whole, VALUES)
    same(half, n5zarr.open_array(root / setup / "s1"))
    assert [*half.n5.voxel_size.values()] == [*np.multiply(SCALE, factors[1][::-1])]


# ---------------------------------------------------------------------- funlib, daisy, gunpowder


def test_funlib_persistence(root: Path) -> None:
    persistence, geometry = program("funlib.persistence"), program("funlib.geometry")
    made = persistence.prepare_ds(
        N5Store(root), SHAPE, path="f/x", offset=OFFSET, voxel_size=SCALE,
        axis_names=["z", "y", "x"], units=["nm"] * 3, chunk_shape=BLOCK, dtype="u2",
    )  # fmt: skip
    made[made.roi] = VALUES
    found = persistence.open_ds(N5Store(root, mode="r"), path="f/x")
    assert (tuple(found.voxel_size), tuple(found.offset)) == (SCALE, OFFSET)
    assert (found.axis_names, found.units) == (["z", "y", "x"], ["nm"] * 3)
    box = geometry.Roi((120, 32, 20), (80, 24, 16))
    same(found[box], VALUES[1:3, 2:5, 2:6])
    same(by_tensorstore(root / "f/x"), VALUES)
    same(read_by_z5py(root, "f/x"), VALUES)
    shown = n5zarr.geometry(root, "f/x")
    assert (shown.scale, shown.translation, shown.convention) == (SCALE, OFFSET, "funlib")


def test_funlib_persistence_keeps_what_is_there(root: Path) -> None:
    persistence = program("funlib.persistence")
    n5zarr.create_array(
        root, path="x", data=VALUES, chunks=BLOCK,
        attributes={"voxel_size": list(SCALE), "offset": list(OFFSET), "kept": 1},
    )  # fmt: skip
    found = persistence.prepare_ds(
        N5Store(root), SHAPE, path="x", offset=OFFSET, voxel_size=SCALE, chunk_shape=BLOCK,
        dtype="u2", mode="a",
    )  # fmt: skip
    same(found[found.roi], VALUES)
    assert n5zarr.open_array(root, path="x").attrs["kept"] == 1
    with pytest.raises(PermissionError):
        persistence.prepare_ds(N5Store(root), (7, 11, 17), path="x", dtype="u2", mode="a")


def twice(block: Any) -> None:
    """Double the elements of a block, in a worker of daisy."""
    scale = np.array(SCALE)
    start, end = np.array(block.write_roi.begin) // scale, np.array(block.write_roi.end) // scale
    box = tuple(map(slice, start.tolist(), end.tolist()))
    source: Any = zarr.open(N5Store(os.environ["DAISY_TEST_ROOT"], mode="r"))
    target: Any = zarr.open(N5Store(os.environ["DAISY_TEST_ROOT"]), mode="r+")
    target["out"][box] = source["in"][box] * 2


@pytest.mark.parametrize("parallel", [False, True])
def test_daisy(root: Path, parallel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    daisy = program("daisy")
    monkeypatch.setenv("DAISY_TEST_ROOT", str(root))
    n5zarr.create_array(root, path="in", data=VALUES, chunks=BLOCK)
    n5zarr.create_array(root, path="out", shape=SHAPE, chunks=BLOCK, dtype="u2")
    scale = daisy.Coordinate(SCALE)
    block = daisy.Roi((0, 0, 0), daisy.Coordinate(2, 4, 5) * scale)  # workers share blocks of N5
    task = daisy.Task(
        "twice", total_roi=daisy.Roi((0, 0, 0), daisy.Coordinate(SHAPE) * scale),
        read_roi=block, write_roi=block, process_function=twice, read_write_conflict=False,
        fit="shrink", max_workers=2,
    )  # fmt: skip
    assert daisy.run_blockwise([task], multiprocessing=parallel, progress=False)
    same(by_tensorstore(root / "out"), VALUES * 2)


def copied_by_gunpowder(gp: Any, root: Path) -> Any:
    """Copy ``raw`` to ``copy`` with gunpowder, in pieces; return the specification of ``raw``."""
    raw, step = gp.ArrayKey("RAW"), gp.BatchRequest()
    step.add(raw, (120, 32, 20))
    known = {raw: gp.ArraySpec(interpolatable=True)}
    pipeline = (
        gp.ZarrSource(N5Store(root, mode="r"), {raw: "raw"}, known)
        + gp.ZarrWrite({raw: "copy"}, store=N5Store(root), compression_type="gzip")
        + gp.Scan(step)
    )
    with gp.build(pipeline):
        pipeline.request_batch(gp.BatchRequest())
        return pipeline.spec[raw]


def test_gunpowder(root: Path) -> None:
    gp = program("gunpowder")
    attributes: Any = {"resolution": list(SCALE), "offset": list(OFFSET)}
    n5zarr.create_array(root, path="raw", data=VALUES, chunks=BLOCK, attributes=attributes)
    spec = copied_by_gunpowder(gp, root)
    assert (tuple(spec.voxel_size), tuple(spec.roi.offset)) == (SCALE, OFFSET)
    array: Any = zarr.open_array(N5Store(root), path="copy", mode="r")
    same(array[...], VALUES)
    assert {name: list(array.attrs[name]) for name in attributes} == attributes
    same(by_tensorstore(root / "copy"), VALUES)
    same(read_by_z5py(root, "copy"), VALUES)


def test_gunpowder_with_the_order_of_n5(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gunpowder reads attributes in N5's order, as before zarr 3, if one method is replaced."""
    gp = program("gunpowder")

    def is_n5(node: Any) -> bool:
        return isinstance(zarr.open_group(node.store, mode="r").store, N5Store)

    for node in (gp.ZarrSource, gp.ZarrWrite):
        monkeypatch.setattr(node, "_rev_metadata", is_n5)
    attributes: Any = {"resolution": list(SCALE[::-1]), "offset": list(OFFSET[::-1])}
    n5zarr.create_array(root, path="raw", data=VALUES, chunks=BLOCK, attributes=attributes)
    spec = copied_by_gunpowder(gp, root)
    assert (tuple(spec.voxel_size), tuple(spec.roi.offset)) == (SCALE, OFFSET)
    for path in ("raw", "copy"):
        shown = n5zarr.geometry(root, path)
        assert (shown.scale, shown.translation) == (SCALE, OFFSET)
    same(read_by_z5py(root, "copy"), VALUES)


# ---------------------------------------------------------------------- hoa-tools


@pytest.fixture
def atlas(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Serve a dataset of the Human Organ Atlas on loopback."""
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # as tests/remote/test_gcs.py
    gcsfs = program("gcsfs")
    server = program("gcp_storage_emulator.server").create_server(
        "127.0.0.1", 0, in_memory=True, default_bucket="organs"
    )
    server.start()
    url = f"http://127.0.0.1:{server._api._httpd.server_address[1]}"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
    n5zarr.create_array(
        root, path="s0", data=VALUES, chunks=BLOCK,
        compression={"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2},
    )  # fmt: skip
    options = {"token": "anon", "endpoint_url": url, "skip_instance_cache": True}
    fs = gcsfs.GCSFileSystem(**options)
    for file in root.rglob("*"):
        if file.is_file():
            fs.pipe(f"organs/lung/a.n5/{file.relative_to(root).as_posix()}", file.read_bytes())
    dataset: Any = next(iter(program("hoa_tools.dataset")._DATASETS.values()))
    data = dataset.data.model_copy(update={"gcs_url": "n5://gs://organs/lung/a.n5/"})
    yield dataset.model_copy(update={"data": data})
    server.stop()


@pytest.mark.parametrize("whose", ["its own", "ours"])
def test_hoa_tools(atlas: Any, whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """hoa_tools reads arrays of n5zarr, with its own reader and with N5Store in its place."""
    if whose == "ours":

        def store(fs: Any, path: str, read_only: bool) -> N5Store:
            return N5Store(path, fs=fs, read_only=read_only)

        monkeypatch.setattr(program("hoa_tools.dataset"), "N5FSStore", store)
    array = atlas.data_array(downsample_level=0)
    assert (array.dims, array.shape) == (("z", "y", "x"), SHAPE)
    same(array[2:5, 3:9].to_numpy(), VALUES[2:5, 3:9])
    np.testing.assert_allclose(array["z"], np.arange(7) * atlas.data.voxel_size_um)
