"""Containers of Java N5 4 beyond the specification give the right values or an error."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Error, N5Store, N5Warning
from n5zarr.fast import kernel
from n5zarr.fast.pipeline import N5CodecPipeline
from tests.refusals import refused
from tests.shards import follow_recipe, write_shards

ROOT = Path(__file__).parents[1] / "data" / "java4" / "codecs.n5"
VALUES = (np.arange(7)[:, None] * 100 + np.arange(11)).astype("uint16")


class Expected(NamedTuple):
    """The result of reading a node: its values, or an error."""

    values: np.ndarray[Any, Any] | None = None
    error: str = ""  # kind and words of it


HEADER = "header: block header: "
SHARD = "shard: .* block 0/0: .* a shard of Java N5 4 with 4 chunks,"
SHARDS = r"compression: codecs: expected blocks, got shards .* the recipe .Read shards of Java"
CODECS = "compression: codecs: expected 'n5bytes' and at most one compression"
EXPECTED = {
    "builder": Expected(VALUES),
    "crc-first": Expected(VALUES),  # a checksum in the gzip stream
    "crc-only": Expected(VALUES),  # a checksum after raw elements
    "doc-codecs": Expected(VALUES),
    "doc-codecs-and-compression": Expected(VALUES),  # `codecs` win in Java
    "doc-codecs-raw": Expected(VALUES),
    "doc-codecs-rawbytes": Expected(error=CODECS),
    "doc-codecs-same": Expected(VALUES),  # they are what `compression` says
    "doc-codecs-shard": Expected(error=SHARDS),
    "doc-default-value": Expected(VALUES),
    "doc-empty-compression": Expected(VALUES),
    "doc-no-blocksize": Expected(0 * VALUES),  # there are no blocks
    "doc-null-compression": Expected(error="compression: compression: expected"),
    "doc-shard-compression": Expected(error=SHARDS),
    # float16, which Java does not know and zarr-python 2 writes; there are no blocks
    "doc-unknown-dtype": Expected(np.zeros_like(VALUES, "float16")),
    "gzip-zstd": Expected(error="payload: .* gzip"),
    "plain": Expected(VALUES),
    "raw-bytes": Expected(error=HEADER),
    "raw-bytes-le": Expected(error=HEADER),
    "shard-END-0": Expected(error=SHARD),
    "shard-END-1": Expected(error=SHARD),
    "shard-START-0": Expected(error=SHARD),
    "shard-START-1": Expected(error=SHARD),
    "shard-one-chunk": Expected(VALUES),  # its index after raw elements
    "shard-one-chunk-start": Expected(error="shard: .* a shard of Java N5 4 with 1 chunk,"),
    "two-codecs": Expected(error="payload: .* gzip member"),
}
UNTOLD = {"transposed"}
"""Neither document nor blocks tell what they are; Java reads other values, too."""


@pytest.fixture(params=["kernel", "python", "zarr", "portable", "n5", "v2", "F"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(kernel, "can_do", lambda dataset: False)
        yield request.param


def open_node(name: str, way: str, root: Path = ROOT) -> Any:
    if way in ("kernel", "python"):
        return n5zarr.open(root, path=name)
    if way == "F":
        return n5zarr.open(root, path=name, axis_order="F")
    codecs, zarr_format = ("zarr", 2) if way == "v2" else (way, 3)
    store = N5Store(root, codecs=codecs, zarr_format=zarr_format)  # type: ignore[arg-type]
    return zarr.open_array(store, path=name, mode="r")


def reads_in_order(way: str) -> bool:
    """Return whether the first of several damaged blocks is named; zarr's pipelines name any."""
    name = f"{N5CodecPipeline.__module__}.{N5CodecPipeline.__qualname__}"
    return way in ("kernel", "python", "F") or zarr.config.get("codec_pipeline.path") == name


@pytest.mark.parametrize("name", EXPECTED)
def test_java_4(name: str, way: str) -> None:
    expected = EXPECTED[name]
    if expected.error:
        kind, _, words = expected.error.partition(": ")
        if not reads_in_order(way):
            words = words.replace("block 0/0", "block [01]/[01]")
        with refused(N5Error, kind, words) as caught:
            open_node(name, way)[...]
        assert name in str(caught.value)
        return
    array = open_node(name, way)
    found = array[...]
    np.testing.assert_array_equal(found.T if way == "F" else found, expected.values)
    np.testing.assert_array_equal(array[2, 1:5], found[2, 1:5])


def test_blocks_of_a_dataset_without_block_size(tmp_path: Path, way: str) -> None:
    root = tmp_path / "c.n5"
    shutil.copytree(ROOT / "plain", root / "a/b")
    shutil.copy(ROOT / "doc-no-blocksize" / "attributes.json", root / "a/b")
    array = open_node("a/b", way, root)
    with pytest.warns(N5Warning, match="a/b: blockSize is missing") as caught:
        found = array[...]
    assert len(caught) == 1
    array[...]  # once for each store object: another one would be an error here
    lacking = VALUES.copy()
    lacking[4:], lacking[:, 4:] = 0, 0
    np.testing.assert_array_equal(found.T if way == "F" else found, lacking)
    shutil.copy(ROOT / "builder" / "0" / "0", root / "a/b/0/0")  # of the size of the dataset
    found = open_node("a/b", way, root)[...]
    np.testing.assert_array_equal(found.T if way == "F" else found, VALUES)


START = {'"index_location": "end"': '"index_location": "start"'}
IN_GZIP = {'document["codecs"]': repr([{"name": "n5zarr.block", "configuration": {
    "compression": {"type": "gzip"}, "axis_order": "F"}}])}  # fmt: skip
BY_RECIPE: dict[str, tuple[tuple[int, ...], dict[str, str]]] = {
    "shard-END-0": ((4, 8), {}),
    "shard-END-1": ((4, 8), IN_GZIP),  # the document says raw
    "shard-START-0": ((4, 8), START),
    "shard-START-1": ((4, 8), START | IN_GZIP),
    "shard-one-chunk": ((4, 4), {}),
    "shard-one-chunk-start": ((4, 4), START),
    "doc-codecs-shard": ((4, 8), IN_GZIP),
    "doc-shard-compression": ((4, 8), {}),
}


@pytest.mark.parametrize("name", BY_RECIPE)
def test_shards_are_read_by_the_recipe(tmp_path: Path, name: str) -> None:
    root = tmp_path / "c.n5"
    shutil.copytree(ROOT / name, root / name)
    document = json.loads((root / name / "attributes.json").read_text())
    if "codecs" in document:
        size = document.pop("codecs")[0]["configuration"]["chunk_shape"][::-1]
        document |= {"blockSize": size, "compression": {"type": "raw"}}
        (root / name / "attributes.json").write_text(json.dumps(document))
    shard, changes = BY_RECIPE[name]
    array = follow_recipe(root / name, shard, tmp_path / "plain.n5", changes)
    np.testing.assert_array_equal(array[...].T, VALUES)
    np.testing.assert_array_equal(array[1:5, 2], VALUES[2, 1:5])
    assert array.chunks == tuple(document["blockSize"])
    peer = zarr.open_array(N5Store(tmp_path / "plain.n5", codecs="portable"), path=name, mode="r")
    np.testing.assert_array_equal(peer[...], VALUES)


def test_blocks_in_shards_are_not_missing(tmp_path: Path, way: str) -> None:
    """Files of shards lie at other positions than most of their blocks, where no file is."""
    root = tmp_path / "c.n5"
    write_shards(root / "a", np.ones((53, 71), "u1"), (12, 8), (48, 32))
    with pytest.raises(N5Error, match=r"a: block 0/0: .* a shard of Java N5 4 with 16 chunks"):
        open_node("a", way, root)[50:, 50:]
    array = open_node("a", way, root)
    for box in (np.s_[:], np.s_[50:, 50:], np.s_[:1, :1], np.s_[50:, 50:]):  # an error hides none
        with pytest.raises(N5Error, match="a shard of Java N5 4"):
            array[box]
    if way in ("kernel", "python"):
        array = n5zarr.open_array(root, path="a")
        with pytest.raises(N5Error, match=r"a: block 0/0: .* a shard of Java N5 4"):
            n5zarr.read_boxes(array, [[50, 60]], (2, 2))


def test_blocks_in_shards_elsewhere_are_not_missing(tmp_path: Path) -> None:
    """One more request, for the first block of the grid, tells shards from missing blocks."""
    write_shards(tmp_path / "a", np.ones((53, 71), "u1"), (12, 8), (48, 32))
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    keys = {p.relative_to(tmp_path).as_posix(): p.read_bytes() for p in files}
    held: dict[str, Any] = {
        key: zarr.buffer.cpu.Buffer.from_bytes(value) for key, value in keys.items()
    }
    array: Any = n5zarr.open(zarr.storage.MemoryStore(held), path="a")
    with pytest.raises(N5Error, match=r"a: block 0/0: .* a shard of Java N5 4"):
        array[50:, 60:]


def test_missing_blocks_beside_ordinary_ones(tmp_path: Path, way: str) -> None:
    """A stored block is looked at once, and only if others are missing."""
    made: Any = n5zarr.create_array(tmp_path / "c.n5/a", shape=(9, 9), chunks=(2, 2), dtype="u1")
    assert not open_node("a", way, tmp_path / "c.n5")[...].any()
    made[6:, 6:] = 7
    array = open_node("a", way, tmp_path / "c.n5")
    assert not array[:2, :2].any()
    (tmp_path / "c.n5/a/3/3").write_bytes(b"")
    assert not array[2:6, :2].any()


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"chunks": 3}], ids=str)
@pytest.mark.parametrize("name", ["doc-codecs", "doc-codecs-and-compression", "doc-codecs-raw"])
def test_a_copy_needs_no_codecs(tmp_path: Path, name: str, options: Any) -> None:
    out = tmp_path / "out.n5"
    n5zarr.convert(ROOT / name, out / "a", **options)
    document = json.loads((out / "a" / "attributes.json").read_text())
    raw = name == "doc-codecs-raw"
    assert "codecs" not in document
    assert document["compression"]["type"] == options.get("compression", "raw" if raw else "gzip")
    peer = zarr.open_array(N5Store(out, codecs="portable"), path="a", mode="r")
    np.testing.assert_array_equal(peer[...], VALUES)


def test_a_dataset_with_codecs_is_written(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    shutil.copytree(ROOT, root)
    for name in ("doc-codecs", "doc-codecs-raw", "doc-codecs-and-compression"):
        before = json.loads((root / name / "attributes.json").read_text())
        array: Any = n5zarr.open(root, path=name, mode="r+")
        array[0, :5] = 9
        array.attrs["x"] = 1
        array.resize((9, 11))
        found: Any = n5zarr.open(root, path=name)
        assert found[0].tolist() == [9] * 5 + [*range(5, 11)]
        np.testing.assert_array_equal(found[1:7], VALUES[1:])
        after = json.loads((root / name / "attributes.json").read_text())
        assert after == before | {"x": 1, "dimensions": [11, 9]}


def test_every_node_is_in_the_table() -> None:
    assert {p.name for p in ROOT.iterdir() if p.is_dir()} == {*EXPECTED, *UNTOLD}


def test_codecs_as_an_attribute_do_not_stop_java(tmp_path: Path) -> None:
    """An attribute `codecs` is stored in the record, as it would stop Java at a dataset."""
    root = tmp_path / "c.n5"
    array: Any = n5zarr.create_array(root, path="g/a", shape=(5,), chunks=(3,), dtype="u1")
    array[:] = range(5)
    for value in ("h264", [1], [{"name": "n5bytes"}], None):
        array.attrs["codecs"] = value
        document = json.loads((root / "g/a/attributes.json").read_text())
        assert document["zarr"]["attributes"]["codecs"] == value
        assert "codecs" not in document
        found: Any = n5zarr.open(root, path="g/a")
        assert found.attrs["codecs"] == value
        assert found[:].tolist() == [0, 1, 2, 3, 4]
    del array.attrs["codecs"]
    assert "zarr" not in json.loads((root / "g/a/attributes.json").read_text())


def test_an_attribute_called_codecs_of_another_tool_is_one(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    made: Any = n5zarr.create_array(root, path="a", shape=(5,), chunks=(3,), dtype="u1")
    made[:] = 7
    path = root / "a/attributes.json"
    path.write_text(path.read_text()[:-1] + ',"codecs":"h264"}')
    found: Any = n5zarr.open(root, mode="r+", path="a")
    assert (found.attrs["codecs"], found[:].tolist()) == ("h264", [7] * 5)
    found.attrs["codecs"] = ["vp9"]  # a plain list would be those of Java
    again: Any = n5zarr.open(root, path="a")
    assert (again.attrs["codecs"], again[:].tolist()) == (["vp9"], [7] * 5)
