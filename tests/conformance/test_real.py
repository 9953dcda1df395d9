"""Blocks, arrays and documents from public repositories are read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store, N5Warning
from n5zarr.zarr_view.dataset_view import Codecs
from tests.virtual import reference
from tests.virtual_reader import opened

DATA = Path(__file__).parents[1] / "data"
REAL = DATA / "real"
DOCUMENTS = DATA / "attributes"
EXPECTED = json.loads((DATA / "attributes.expected.json").read_text())

ZARR_PYTHON_N5 = REAL / "clbarnes+zarr-python-n5" / "data"
TENSORSTORE = REAL / "google+tensorstore"
JAVA = REAL / "saalfeldlab+n5" / "src/test/resources"


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


def place(document: str, folder: Path) -> None:
    """Write a document to its place in a container, with the children that its source has."""
    folder.mkdir()
    shutil.copy(DOCUMENTS / document, folder / "attributes.json")
    if document.startswith("21-"):
        (folder / "timepoint0" / "s0").mkdir(parents=True)


def test_every_document_is_expected_to_open_in_some_way() -> None:
    names = {path.name for path in DOCUMENTS.iterdir()} - {"SOURCES.md"}
    assert names == set(EXPECTED)
    assert len(names) == 22


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
    names = expected.get("dimension_names")
    assert node.metadata.dimension_names == (None if names is None else tuple(names))
    assert attributes == expected["attributes"]
    assert [c.to_dict() for c in node.metadata.codecs][1:] == expected["compressors"]


def test_a_bigstitcher_group_without_blocks_is_a_group_even_without_time_points(
    tmp_path: Path,
) -> None:
    shutil.copy(DOCUMENTS / "21-bigstitcher-setup-group-full.json", tmp_path / "attributes.json")
    assert isinstance(zarr.open(N5Store(tmp_path)), zarr.Group)
    (tmp_path / "0").mkdir()
    assert isinstance(zarr.open(N5Store(tmp_path)), zarr.Array)


PAINTERA = REAL / "constantinpape+elf/data/label_multiset/test_paintera.n5"


def coarse_labels() -> np.ndarray:
    """Return the label of `range/data/s1`: the lowest of eight, as each is there once."""
    z, y, x = np.indices((16, 16, 16)).astype("u8") * 2
    labels: np.ndarray = (z * 32 + y) * 32 + x
    return labels


@pytest.mark.parametrize(
    "options", [{"codecs": "zarr"}, {"codecs": "n5"}, {"codecs": "portable"}, {"zarr_format": 2}]
)
def test_coarser_levels_of_paintera_are_read_by_the_dataset_not_the_header(options: Any) -> None:
    store = N5Store(PAINTERA, **options)
    coarse: Any = zarr.open_array(store, path="range/data/s1", mode="r")
    np.testing.assert_array_equal(coarse[...], coarse_labels())


def test_coarser_levels_of_paintera_are_read_by_the_fast_way() -> None:
    opened: Any = n5zarr.open_array(PAINTERA, path="range/data/s1", mode="r")
    np.testing.assert_array_equal(opened[3:11, 5:, 7], coarse_labels()[3:11, 5:, 7])
    for level in ("s0", "s1"):
        uniform: Any = n5zarr.open_array(PAINTERA, path=f"uniform/data/{level}", mode="r")
        assert (uniform[...] == 2).all()


def test_tools_read_coarser_levels_of_paintera(tmp_path: Path) -> None:
    assert n5zarr.validate(PAINTERA, deep=True).findings == ()
    with pytest.warns(N5Warning, match="Zarr gets the most frequent label"):
        n5zarr.convert(PAINTERA / "range/data/s1", tmp_path / "out.zarr")
    n5zarr.convert(PAINTERA / "range/data/s1", tmp_path / "out.n5")
    copied: Any = zarr.open_array(tmp_path / "out.zarr", mode="r")
    np.testing.assert_array_equal(copied[...], coarse_labels())
    copied = n5zarr.open_array(tmp_path / "out.n5", mode="r")
    np.testing.assert_array_equal(copied[...], coarse_labels())
    found = n5zarr.block_statistics(PAINTERA, "range/data/s1")
    assert (found.minimum, found.maximum) == (0, coarse_labels().max())
    block = n5zarr.read_block(PAINTERA, "range/data/s1", (0, 0, 0))
    assert block is not None
    assert block.header.block_shape == (32, 32, 32)  # as it is stored
    written = n5zarr.virtualize(PAINTERA, tmp_path / "r.json", coords=False)
    shown: Any = zarr.open_array(opened(reference(written)), path="range/data/s1", mode="r")
    np.testing.assert_array_equal(shown[...], coarse_labels())


def test_a_level_without_the_attribute_of_its_siblings_says_how_to_set_it(tmp_path: Path) -> None:
    root = Path(shutil.copytree(PAINTERA, tmp_path / "c.n5"))
    document = root / "uniform/data/s1/attributes.json"
    members = json.loads(document.read_text())
    del members["isLabelMultiset"]
    document.write_text(json.dumps(members))
    array: Any = n5zarr.open_array(root, path="uniform/data/s1", mode="r")
    message = "uniform/data/s1: block 0/0/0: .*label multisets, set the attribute isLabelMultiset"
    with pytest.raises(n5zarr.errors.N5BlockError, match=message):
        array[...]
    (finding,) = n5zarr.validate(root, "uniform/data/s1").findings
    assert "isLabelMultiset" in finding.message
    n5zarr.set_attribute(root, "uniform/data/s1", "isLabelMultiset", value=True)
    array = n5zarr.open_array(root, path="uniform/data/s1", mode="r")
    assert (array[...] == 2).all()
