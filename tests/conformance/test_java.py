"""Containers of Java N5, tensorstore and zarr-python 2 are read, and their checksums agree."""

from __future__ import annotations

import hashlib
import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.buffer import Buffer
from zarr.abc.store import Store
from zarr.storage import MemoryStore
from zarr.types import AnyArray

import n5zarr
from n5zarr import N5Store
from tests.refusals import refused

JAVA = Path(__file__).parents[1] / "data" / "java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text())
DATASETS = MANIFEST["datasets"]
PIPELINES = (
    "zarr.core.codec_pipeline.BatchedCodecPipeline", "zarr.core.codec_pipeline.FusedCodecPipeline",
    "n5zarr.arrays.pipeline.N5CodecPipeline",
)  # fmt: skip
VIEWS = list(itertools.product((3, 2), ("C", "F"), ("zarr", "n5", "portable")))


def view(root: str | Store, *options: Any) -> N5Store:
    """Open a container with a zarr format, an axis order and codecs."""
    store = JAVA / root if isinstance(root, str) else root
    zarr_format, axis_order, codecs = options
    return N5Store(store, zarr_format=zarr_format, axis_order=axis_order, codecs=codecs)


def in_c_order(array: AnyArray | zarr.Group, axis_order: str) -> np.ndarray:
    assert isinstance(array, zarr.Array)
    values = np.asarray(array[...])
    return values if axis_order == "C" else values.transpose()


def checksum(array_c: np.ndarray) -> str:
    """Return SHA-256 of the elements as big-endian bytes, first axis of N5 order fastest."""
    big_endian = np.ascontiguousarray(array_c, array_c.dtype.newbyteorder(">"))
    return hashlib.sha256(big_endian.tobytes()).hexdigest()


def test_the_corpus_is_whole() -> None:
    assert len(DATASETS) == 255
    assert len({d["dtype"] for d in DATASETS}) == 10
    assert {d["compression"]["type"] for d in DATASETS} == {
        *("raw", "gzip", "bzip2", "xz", "lz4", "blosc", "zstd")
    }


@pytest.mark.each_of(47)
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda name: name.rpartition(".")[2])
@pytest.mark.parametrize("dataset", DATASETS, ids=lambda d: f"{d['root']}/{d['path']}")
def test_dataset_reads_to_its_checksum_in_every_view(
    dataset: dict[str, Any], pipeline: str
) -> None:
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        for zarr_format, axis_order, codecs in VIEWS:
            store = view(dataset["root"], zarr_format, axis_order, codecs)
            array = zarr.open_array(store, path=dataset["path"], mode="r")
            values = in_c_order(array, axis_order)
            shown = (zarr_format, axis_order, codecs)
            assert array.shape == tuple(dataset["dims"][:: -1 if axis_order == "C" else 1]), shown
            assert array.chunks == tuple(dataset["blockSize"][:: -1 if axis_order == "C" else 1]), (
                shown
            )
            assert values.dtype.newbyteorder("=").name == dataset["dtype"], shown
            assert checksum(values) == dataset["sha256"], shown


@pytest.mark.each_of(7)
@pytest.mark.parametrize("dataset", DATASETS, ids=lambda d: f"{d['root']}/{d['path']}")
def test_as_many_chunks_are_listed_as_there_are_blocks(dataset: dict[str, Any]) -> None:
    for zarr_format in (3, 2):
        store = view(dataset["root"], zarr_format, "C", "zarr")
        array = zarr.open_array(store, path=dataset["path"], mode="r")
        assert array.nchunks_initialized == dataset["blocksPresent"]
        assert array.nchunks == dataset["blocksPresent"] + dataset["blocksMissing"]


@pytest.mark.each_of(2)
@pytest.mark.parametrize("codecs", ["zarr", "n5"])
def test_a_container_in_another_store_reads_the_same(codecs: str) -> None:
    root = JAVA / "compressions.n5"
    contents: dict[str, Buffer] = {
        path.relative_to(root).as_posix(): zarr.buffer.cpu.Buffer.from_bytes(path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }
    for pipeline in PIPELINES:
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            group = zarr.open_group(view(MemoryStore(contents), 3, "C", codecs), mode="r")
            for dataset in DATASETS:
                if dataset["root"] == "compressions.n5":
                    array = group[dataset["path"]]
                    assert checksum(in_c_order(array, "C")) == dataset["sha256"]


@pytest.mark.parametrize(("zarr_format", "axis_order", "codecs"), VIEWS)
@pytest.mark.parametrize("dataset", MANIFEST["strings"], ids=lambda d: d["path"])
def test_strings_read_as_java_wrote_them(
    dataset: dict[str, Any], zarr_format: int, axis_order: str, codecs: str
) -> None:
    store = view("strings.n5", zarr_format, axis_order, codecs)
    array = zarr.open_array(store, path=dataset["path"], mode="r")
    # the fixture "mode0" has no list of what was written: two strings in a block of four
    written = dataset["valuesN5Order"] or ["a", "b", "", ""]
    assert in_c_order(array, axis_order).ravel().tolist() == written
    assert array.shape == tuple(dataset["dims"][:: -1 if axis_order == "C" else 1])


@pytest.mark.parametrize(("zarr_format", "axis_order", "codecs"), VIEWS)
def test_label_multisets_show_the_most_frequent_label(
    zarr_format: int, axis_order: str, codecs: str
) -> None:
    group = zarr.open_group(view("labels.n5", zarr_format, axis_order, codecs), mode="r")
    for multiset in MANIFEST["labelMultisets"]:
        if "blocks" in multiset:
            expected = _labels(multiset)
            labels = in_c_order(group[multiset["path"]], axis_order)
            np.testing.assert_array_equal(labels, expected)
            assert labels.dtype.newbyteorder("=") == np.uint64
    np.testing.assert_array_equal(
        in_c_order(group["old-argmax"], axis_order), np.full((2, 2, 2), 7, "u8")
    )


def _labels(multiset: dict[str, Any]) -> np.ndarray:
    """Take the arg-max labels from the lists that the Java generator noted for each voxel."""
    labels = np.zeros(multiset["dims"][::-1], "u8")
    for block in multiset["blocks"]:
        voxels = iter(block["voxelsN5Order"].split(";"))
        (x0, y0, z0), (nx, ny, nz) = (
            [p * b for p, b in zip(block["pos"], multiset["blockSize"], strict=True)],
            block["size"],
        )
        for z, y, x in itertools.product(range(nz), range(ny), range(nx)):
            entries = [entry.split(":") for entry in next(voxels).split(",")]
            counts = [(int(count), -int(label)) for label, count in entries]
            labels[z0 + z, y0 + y, x0 + x] = -max(counts)[1]
    return labels


def test_varlength_blocks_are_read_as_they_are() -> None:
    numbers, objects = MANIFEST["varlength"]
    for block in numbers["blocks"]:
        position = tuple(map(int, block["pos"].split(",")))
        found = n5zarr.read_block(JAVA / "varlen.n5", "u16", position)
        assert found is not None
        assert found.header.block_shape == tuple(map(int, block["size"].split(",")))
        assert isinstance(found.data, np.ndarray)
        assert found.data.dtype == np.uint16
        assert found.data.tolist() == block["values"]
    for block in objects["blocks"]:
        found = n5zarr.read_block(JAVA / "varlen.n5" / "object", "", [int(block["pos"])])
        assert found is not None
        assert found.data == bytes.fromhex(block["hex"])
    assert n5zarr.read_block(JAVA / "varlen.n5", "u16", (7, 7)) is None


def test_string_blocks_are_read_as_they_are() -> None:
    found = n5zarr.read_block(JAVA / "strings.n5", "twod", (0, 0))
    assert found is not None
    assert (found.header.mode, found.header.n_elements) == (1, 9)
    assert found.data == ["p", "q", "s", "tt"]


@pytest.mark.parametrize("codecs", ["zarr", "n5"])
def test_a_varlength_block_is_no_part_of_an_array(codecs: str) -> None:
    array = zarr.open_array(view("varlen.n5", 3, "C", codecs), path="u16", mode="r")
    np.testing.assert_array_equal(array[:2, 2:], [[1, 2], [3, 4]])  # an ordinary block
    with refused(n5zarr.N5Error, "varlength", r"u16: block 0/1: .* 4 elements .* got 7"):
        array[2:, :2]


def test_objects_are_no_arrays() -> None:
    group = zarr.open_group(view("varlen.n5", 3, "C", "zarr"), mode="r")
    with pytest.raises(n5zarr.N5Error, match=r"object/attributes\.json: dataType: .*read_block"):
        group["object"]
    with pytest.warns(n5zarr.N5Warning, match=r"omitted from the listing: .*object"):
        assert [name for name, _ in group.members()] == ["u16"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group.members()  # warns once per store


@pytest.mark.parametrize("version", MANIFEST["versions"], ids=lambda v: v["root"])
def test_the_versions_that_java_opens_are_opened(version: dict[str, Any]) -> None:
    store = view(version["root"], 3, "C", "zarr")
    if version["opensInJava"]:
        assert isinstance(zarr.open(store), zarr.Group)
        return
    with pytest.raises(n5zarr.N5Error, match=r"attributes\.json: n5: expected a version up to 4"):
        zarr.open(store)


def test_attributes_are_those_that_java_wrote() -> None:
    expected = MANIFEST["treeAttributes"]
    group = zarr.open_group(view(expected["root"], 3, "C", "zarr"))
    attributes = group[expected["path"]].attrs.asdict()
    for key, value in expected["attributes"].items():
        if key != "slash/key":  # Java reads it by an escaped path
            assert attributes[key] == value, key
            assert type(attributes[key]) is type(value), key


def test_the_tree_is_the_one_that_java_lists() -> None:
    group = zarr.open_group(view("tree.n5", 3, "C", "zarr"))
    found = {name for name, _ in group.members(max_depth=None)}
    # the file system of the fixtures lost the empty directory ".hidden"
    assert found == set(MANIFEST["treeDeepList"]) - {".hidden"}
    assert isinstance(group["a/b/data"], zarr.Array)


@pytest.mark.parametrize("root", ["no-root-attrs.n5", "root-dataset.n5", "zero-version.n5"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_unusual_roots_open(root: str, zarr_format: int) -> None:
    node = zarr.open(view(root, zarr_format, "C", "zarr"))
    assert isinstance(node, zarr.Array) == (root == "root-dataset.n5")
