"""Blocks, arrays and documents found in public repositories."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store

if TYPE_CHECKING:
    from n5zarr.zarr_view.dataset_view import Codecs

DATA = Path(__file__).parents[1] / "data"
REAL = DATA / "real"
DOCUMENTS = DATA / "attributes"
EXPECTED = json.loads((DATA / "attributes.expected.json").read_text())

ZARR_PYTHON_N5 = REAL / "clbarnes+zarr-python-n5" / "data"
TENSORSTORE = REAL / "google+tensorstore"
JAVA = REAL / "saalfeldlab+n5" / "src/test/resources"
RUST = REAL / "aschampion+rust-n5"


@pytest.mark.parametrize("codecs", ["zarr", "n5", "portable"])
@pytest.mark.parametrize("path", sorted(p.name for p in ZARR_PYTHON_N5.glob("*.n5")))
def test_the_arrays_of_zarr_python_n5_equal_their_source(path: str, codecs: Codecs) -> None:
    source = np.load(ZARR_PYTHON_N5 / "raw.npy")
    # that project shows N5 order
    array = zarr.open_array(N5Store(ZARR_PYTHON_N5 / path, codecs=codecs, axis_order="F"))
    np.testing.assert_array_equal(array[...], source)
    reversed_array = zarr.open_array(N5Store(ZARR_PYTHON_N5 / path, codecs=codecs))
    np.testing.assert_array_equal(reversed_array[...], source.transpose())


@pytest.mark.parametrize("name", ["raw", "gzip", "bzip2", "xz", "blosc"])
def test_the_test_data_of_tensorstore_reads_as_tensorstore_reads_it(name: str) -> None:
    tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")
    path = TENSORSTORE / "tensorstore/driver/n5/testdata" / name
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    expected = tensorstore.open(spec, read=True).result().read().result()
    array = zarr.open_array(N5Store(path, axis_order="F"))
    np.testing.assert_array_equal(array[...], expected)
    assert np.asarray(array[...]).sum() == 190  # 0 to 19: not read as empty by both


@pytest.mark.parametrize("version", ["1.5.0", "2.5.1", "3.1.3"])
def test_containers_of_old_java_versions_are_equal(version: str) -> None:
    array = zarr.open_array(N5Store(JAVA / f"backward/data-{version}.n5"), path="raw")
    assert (array.shape, array.chunks, array.dtype.name) == ((5, 7), (4, 5), "uint8")
    files = sorted((JAVA / f"backward/data-{version}.n5/raw").rglob("[0-9]"))
    blocks = {f.relative_to(f.parents[1]).as_posix(): f for f in files if f.is_file()}
    assert len(blocks) == 4
    for position, file in blocks.items():
        x, y = map(int, position.split("/"))
        raw = file.read_bytes()
        nx, ny = np.frombuffer(raw, ">u4", 2, 4)
        payload = np.frombuffer(raw, "u1", offset=12).reshape(ny, nx)
        np.testing.assert_array_equal(array[y * 4 : y * 4 + ny, x * 5 : x * 5 + nx], payload)


GOLDEN = {
    "blosc_compressor_test_0": {"type": "blosc"},
    "bzip2_compressor_test_0": {"type": "bzip2"},
    "gzip_compressor_test_0": {"type": "gzip"},
    "metadata_test_0": {"type": "raw"},
    "xz_compressor_test_0": {"type": "xz"},
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_blocks_of_tensorstore_decode(name: str) -> None:
    data = (TENSORSTORE / "golden" / f"{name}_kData.block").read_bytes()
    block = n5zarr.decode_block(data, data_type="uint16", compression=GOLDEN[name], axis_order="F")
    np.testing.assert_array_equal(block, [[[1, 3, 5], [2, 4, 6]]])


@pytest.mark.parametrize("name", ["RAW", "GZIP", "BZIP2", "XZ", "LZ4"])
def test_the_blocks_of_rust_n5_decode(name: str) -> None:
    """The lz4 one is in the LZ4 frame format, which is not Java's."""
    data = (RUST / f"TEST_BLOCK_I16_{name}.block").read_bytes()
    block = n5zarr.decode_block(
        data, data_type="int16", compression={"type": name.lower()}, axis_order="F"
    )
    assert block.shape == (1, 2, 3)
    assert block.ravel(order="F").tolist() == [1, 2, 3, 4, 5, 6]


def place(document: str, folder: Path) -> None:
    """Put a document where it would be in a container, with the children that its source has."""
    folder.mkdir()
    shutil.copy(DOCUMENTS / document, folder / "attributes.json")
    if document.startswith("21-"):
        (folder / "timepoint0" / "s0").mkdir(parents=True)


def test_every_document_is_expected_to_open_in_some_way() -> None:
    names = {path.name for path in DOCUMENTS.iterdir()} - {"SOURCES.md"}
    assert names == set(EXPECTED)
    assert len(names) == 19


@pytest.mark.parametrize("document", EXPECTED)
def test_a_document_opens_as_its_source_says(document: str, tmp_path: Path) -> None:
    place(document, tmp_path / "node")
    expected = EXPECTED[document]
    node = zarr.open(N5Store(tmp_path), path="node", mode="r")
    attributes = list(node.attrs)
    if expected["kind"] == "group":
        assert isinstance(node, zarr.Group)
        assert attributes == expected["attributes"]
        return
    assert isinstance(node, zarr.Array)
    assert node.shape == tuple(expected["shape_c"])
    assert node.chunks == tuple(expected["chunks_c"])
    assert node.dtype.name == expected["dtype"]
    assert node.metadata.zarr_format == 3
    assert node.metadata.dimension_names == _tuple(expected.get("dimension_names"))
    assert attributes == expected["attributes"]
    assert [c.to_dict() for c in node.metadata.codecs][1:] == expected["compressors"]


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def test_a_bigstitcher_group_without_blocks_is_a_group_even_without_time_points(
    tmp_path: Path,
) -> None:
    shutil.copy(DOCUMENTS / "21-bigstitcher-setup-group-full.json", tmp_path / "attributes.json")
    assert isinstance(zarr.open(N5Store(tmp_path)), zarr.Group)
    (tmp_path / "0").mkdir()
    assert isinstance(zarr.open(N5Store(tmp_path)), zarr.Array)
