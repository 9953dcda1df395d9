"""With the pipeline of zarrs-python configured, N5 is read and written as without it."""

from __future__ import annotations

import math
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Store
from tests.outputs import python

zarrs = pytest.importorskip("zarrs.pipeline", reason="peer: uv sync installs it")
pytest.importorskip("zarr_n5", reason="peer: uv sync installs it")  # zarr looks at its codec, too

THEIRS = "zarrs.ZarrsCodecPipeline"
SHAPES = [(29,), (13, 17), (7, 11, 13), (3, 5, 7, 11), (2, 3, 5, 7, 3)]
BLOCKS = [(5,), (4, 5), (3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 2)]
TYPES = [f"{u}int{n}" for n in (8, 16, 32, 64) for u in ("u", "")] + ["float32", "float64"]
COMPRESSIONS: list[dict[str, Any]] = [
    {"type": "raw"},
    {"type": "gzip", "level": 5},
    {"type": "bzip2", "blockSize": 9},
    {"type": "xz", "preset": 6},
    {"type": "zstd", "level": 3},
    {"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
]


@pytest.fixture(autouse=True, params=[False, True], ids=["lenient", "strict"])
def _their_pipeline(request: pytest.FixtureRequest) -> Iterator[None]:
    with zarr.config.set({"codec_pipeline.path": THEIRS, "codec_pipeline.strict": request.param}):
        yield


def dataset(
    path: Path | str, shape: tuple[int, ...] = (), block: tuple[int, ...] = (), **members: Any
) -> Any:
    """Make a dataset of tensorstore's; C order."""
    spec: dict[str, Any] = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    if shape:
        metadata = {"dimensions": shape[::-1], "blockSize": block[::-1], **members}
        return ts.open({**spec, "metadata": metadata}, create=True).result().T
    return ts.open(spec).result().T


@pytest.mark.each_of(59)
@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda each: each["type"])
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_values_are_read_and_written(
    axis_order: Any, compression: dict[str, Any], data_type: str, tmp_path: Path
) -> None:
    for shape, block in zip(SHAPES, BLOCKS, strict=True):
        path = tmp_path / str(len(shape))
        values = (np.arange(math.prod(shape)).reshape(shape) % 101 + 1).astype(data_type)
        values[tuple(slice(0, each) for each in block)] = 0  # a missing block
        made = dataset(path, shape, block, dataType=data_type, compression=compression)
        made.write(values).result()
        expected = values if axis_order == "C" else values.T
        store = N5Store(path, axis_order=axis_order)
        every_second = tuple(slice(1, None, 2) for _ in shape)
        for array in (
            zarr.open_array(store, mode="r"),
            zarr.open_array(store.with_read_only(read_only=True), mode="r"),
            n5zarr.open_array(path, axis_order=axis_order),
        ):
            found: Any = array
            np.testing.assert_array_equal(found[...], expected)
            np.testing.assert_array_equal(found[every_second], expected[every_second])
        writable: Any = zarr.open_array(store, mode="r+")
        inner = tuple(slice(1, n) for n in expected.shape)  # parts of blocks, also at the edges
        changed = expected.copy()
        changed[inner] += 7
        writable[inner] = changed[inner]
        stored = dataset(path).read().result()
        np.testing.assert_array_equal(stored if axis_order == "C" else stored.T, changed)


def test_all_ways_to_open(tmp_path: Path) -> None:
    path = tmp_path / "sample.n5"
    shutil.copytree(n5zarr.sample_path(), path)
    expected = dataset(path / "em/s0").read().result()
    for array in (
        zarr.open_group(N5Store(path), mode="r")["em/s0"],
        zarr.open_array(N5Store(path, codecs="portable"), path="em/s0", mode="r"),
        zarr.open_array(N5Store(path, zarr_format=2), path="em/s0", mode="r"),
        pickle.loads(pickle.dumps(n5zarr.open_array(path, path="em/s0"))),
        xr.open_dataset(path, group="em/s0", engine="n5")["s0"],
        xr.open_dataset(path, group="em/s0", engine="n5", chunks={})["s0"],
    ):
        found: Any = array
        np.testing.assert_array_equal(np.asarray(found[...]), expected)


def test_conversions_to_zarr_and_back(tmp_path: Path) -> None:
    source = f"{n5zarr.sample_path()}/em/s0"
    expected = dataset(source).read().result()
    n5zarr.convert(source, tmp_path / "a.zarr", shards=(32, 80, 100), verify=True)
    plain: Any = zarr.open_array(tmp_path / "a.zarr", mode="r")
    assert type(plain.async_array.codec_pipeline).__name__ == THEIRS.rpartition(".")[2]
    np.testing.assert_array_equal(plain[...], expected)
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "b.n5", verify=True)
    np.testing.assert_array_equal(dataset(tmp_path / "b.n5").read().result(), expected)


@pytest.mark.filterwarnings("ignore:Array is unsupported by ZarrsCodecPipeline:UserWarning")
@pytest.mark.filterwarnings("ignore:Codec 'n5_default' not configured:UserWarning")
def test_documents_beside_the_blocks(tmp_path: Path) -> None:
    """zarrs has no ``n5_default``: it decodes by zarr-python, or refuses if it is strict."""
    path = tmp_path / "sample.n5"
    shutil.copytree(n5zarr.sample_path(), path)
    beside = Path(__file__).parents[1] / "data/sidecars/zarr-n5-0.3.1"
    shutil.copytree(beside, path, dirs_exist_ok=True)
    ours = {"codecs.n5_default": "n5zarr.store.n5_default.N5DefaultCodec"}
    with zarr.config.set(ours):
        if zarr.config.get("codec_pipeline.strict"):
            with pytest.raises(zarrs.UnsupportedMetadataError):
                zarr.open_array(path / "em/s0", mode="r")[...]
        else:
            found: Any = zarr.open_array(path / "em/s0", mode="r")[...]
            expected = dataset(path / "em/s0").read().result()
            np.testing.assert_array_equal(found.T, expected)


def test_it_may_be_configured_before_n5zarr_is_imported() -> None:
    code = f"""
import zarr
zarr.config.set({{"codec_pipeline.path": "{THEIRS}"}})
import n5zarr
path = n5zarr.sample_path()
assert zarr.config.get("codec_pipeline.path") == "{THEIRS}"
by_zarr = zarr.open_array(n5zarr.N5Store(path), path="em/s0", mode="r")[...]
print(int(by_zarr.sum()), int(n5zarr.open(path, path="em/s0")[...].sum()))
"""
    total = dataset(f"{n5zarr.sample_path()}/em/s0").read().result().sum()
    assert python("-W", "error", "-c", code).split() == [str(total)] * 2
