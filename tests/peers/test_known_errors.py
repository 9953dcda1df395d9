"""The errors of other programs that docs/suites.md describes are still there.

A test that fails here is good news: that program is mended, and the page has to say since when.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

import n5zarr
from tests.contract.stored import by_tensorstore, spec_of

tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")
z5py = pytest.importorskip("z5py", reason="peer: uv sync installs it")
zarr_n5 = pytest.importorskip("zarr_n5", reason="peer: uv sync installs it")

DOCUMENTS = Path(__file__).parents[1] / "data" / "attributes"
VALUES = np.arange(1, 36, dtype="u1").reshape(5, 7)


def by_z5py(dataset: Path) -> np.ndarray:
    return np.asarray(z5py.File(str(dataset.parent), "r")[dataset.name][:])


def test_z5py_reads_other_numbers_where_a_block_inside_is_small(tmp_path: Path) -> None:
    dataset = tmp_path / "c.n5" / "a"
    array = n5zarr.create_array(dataset, shape=(4, 6), chunks=(2, 3), dtype="u1")
    n5zarr.write_block(dataset, "", (0, 0), np.array([[5, 6], [7, 8]], "u1"))
    expected = np.zeros((4, 6), "u1")
    expected[:2, :2] = [[5, 6], [7, 8]]
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(by_tensorstore(dataset), expected)
    assert by_z5py(dataset)[:2, :3].tolist() == [[5, 6, 7], [8, 0, 0]]


def test_z5py_reads_other_numbers_where_a_dataset_has_grown(tmp_path: Path) -> None:
    """z5py reads wrong numbers where Java has enlarged a dataset with truncated blocks."""
    dataset = tmp_path / "c.n5" / "a"
    n5zarr.create_array(dataset, data=VALUES, chunks=(3, 4))
    document = json.loads((dataset / "attributes.json").read_text())
    (dataset / "attributes.json").write_text(json.dumps(document | {"dimensions": [9, 8]}))
    expected = np.zeros((8, 9), "u1")
    expected[:5, :7] = VALUES
    np.testing.assert_array_equal(n5zarr.open_array(dataset)[...], expected)
    np.testing.assert_array_equal(by_tensorstore(dataset), expected)
    assert not np.array_equal(by_z5py(dataset), expected)


@pytest.fixture
def zarr_n5_alone() -> Iterator[None]:
    """Return zarr-n5's codec and pipeline, without n5zarr, which registers ``n5_default``, too."""
    codec = "zarr_n5.codec.default.N5DefaultCodec"
    pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"
    with zarr.config.set({"codecs.n5_default": codec, "codec_pipeline.path": pipeline}):
        yield


@pytest.mark.usefixtures("zarr_n5_alone")
def test_zarr_n5_changes_nothing_and_raises_nothing(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a", data=VALUES, chunks=(3, 4))
    document = (tmp_path / "c.n5" / "a" / "attributes.json").read_bytes()
    store = zarr_n5.N5WrapperStore(LocalStore(tmp_path / "c.n5"))
    array: Any = zarr.open_array(store, path="a")
    assert type(array.metadata.codecs[0]) is zarr_n5.N5DefaultCodec
    np.testing.assert_array_equal(array[...].T, VALUES)
    array.attrs["stain"] = "DAPI"
    array.resize((9, 9))
    zarr.create_array(store, name="new", data=VALUES)
    assert (tmp_path / "c.n5" / "a" / "attributes.json").read_bytes() == document
    assert not (tmp_path / "c.n5" / "new" / "attributes.json").exists()


def test_a_group_of_bigstitcher_is_an_array_of_zeros_to_others(tmp_path: Path) -> None:
    setup = tmp_path / "c.n5" / "setup0"
    n5zarr.create_array(setup / "timepoint0" / "s0", data=VALUES)
    shutil.copy(DOCUMENTS / "21-bigstitcher-setup-group-full.json", setup / "attributes.json")
    assert isinstance(n5zarr.open(setup), zarr.Group)
    phantom = tensorstore.open(spec_of(setup)).result()
    corner = (slice(0, 3),) * len(phantom.shape)
    assert not phantom[corner].read().result().any()
    assert not z5py.File(str(setup.parent), "r")["setup0"][corner].any()
