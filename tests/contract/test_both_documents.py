"""A directory with documents of N5 and of Zarr is what its chunks are.

n5-zarr's test data hold arrays of Zarr with a second copy of their document, ``attributes.json``.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5Error, N5FormatError
from n5zarr.metadata import inspect
from n5zarr.storage.requests import List

SIDECARS = Path(__file__).parents[1] / "data" / "sidecars"
VALUES = np.arange(1, 5 * 7 + 1, dtype="u2").reshape(5, 7)
CHUNKS = (2, 3)
KEYS = {
    "dimensions": [7, 5], "blockSize": [3, 2], "dataType": "uint16", "compression": {"type": "raw"},
}  # fmt: skip
TEXTS = ["copy", "{}", '{"name": "x"}', '{"n5": "4.0.0"}', "// none\n{}", json.dumps(KEYS)]


@pytest.fixture(params=[2, 3])
def zarr_format(request: pytest.FixtureRequest) -> Any:
    return request.param


def make_array(path: Path, zarr_format: Any) -> None:
    zarr.create_array(path, data=VALUES, chunks=CHUNKS, zarr_format=zarr_format)


def add_document(path: Path, text: str) -> None:
    if text == "copy":
        own = path / "zarr.json"
        text = (own if own.exists() else path / ".zarray").read_text()
    (path / "attributes.json").write_text(text)


def make_group(path: Path, zarr_format: Any) -> None:
    zarr.open_group(path, mode="w", zarr_format=zarr_format)
    zarr.open_group(path / "em", mode="w", zarr_format=zarr_format)
    make_array(path / "em/s0", zarr_format)


def folders_listed(asked: Iterable[Any]) -> set[str]:
    return {request.path for request in asked if isinstance(request, List)}


@pytest.mark.each_of(5)
@pytest.mark.parametrize(
    ("name", "text"), [*(("a.zarr", text) for text in TEXTS), *(("a", t) for t in TEXTS[:3])]
)
def test_an_array_of_zarr_is_copied_with_its_values(
    tmp_path: Path, zarr_format: Any, text: str, name: str, asked: list[Any]
) -> None:
    path = tmp_path / name
    make_array(path, zarr_format)
    add_document(path, text)
    (array,) = n5zarr.convert(path, tmp_path / "b.n5/v").arrays
    assert array.path == ""
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "b.n5/v")[...], VALUES)
    assert not {f for f in folders_listed(asked) if f.startswith("c/")}
    for call in (
        lambda: n5zarr.open(path),
        lambda: zarr.open(N5Store(path), mode="r"),
        lambda: N5Store(path).info,
        lambda: n5zarr.geometry(path),
        lambda: xr.open_dataset(path, engine="n5"),
        lambda: n5zarr.validate(path),
        lambda: n5zarr.block_statistics(path),
    ):
        with pytest.raises(N5FormatError, match=rf"expected N5, got a Zarr v{zarr_format} array"):
            call()
    assert n5zarr.compare(path, tmp_path / "b.n5/v").differences == ()


@pytest.mark.each_of(5)
@pytest.mark.parametrize("text", ["copy", "{}", '{"n5": "4.0.0"}'])
@pytest.mark.parametrize("below", [(), ("em",), ("em", "em/s0")])
def test_a_group_of_zarr_is_copied_with_its_arrays(
    tmp_path: Path, zarr_format: Any, text: str, below: tuple[str, ...]
) -> None:
    path = tmp_path / "a.zarr"
    make_group(path, zarr_format)
    for each in ("", *below):
        add_document(path / each, "{}" if text == "copy" and zarr_format == 2 else text)
    (array,) = n5zarr.convert(path, tmp_path / "b.n5").arrays
    assert array.path == "em/s0"
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "b.n5/em/s0")[...], VALUES)
    for call in (n5zarr.open, n5zarr.validate):
        with pytest.raises(N5FormatError, match=f"expected N5, got a Zarr v{zarr_format} group"):
            call(path)


def test_zarr_in_a_container_is_no_group_without_arrays(tmp_path: Path, zarr_format: Any) -> None:
    path = tmp_path / "a.n5"
    n5zarr.create_array(path, path="raw", data=VALUES, chunks=CHUNKS)
    make_array(path / "em", zarr_format)
    add_document(path / "em", "{}")
    with pytest.raises(N5Error, match="expected N5, got a Zarr v") as caught:
        n5zarr.convert(path, tmp_path / "b.zarr")
    assert "em" in str(caught.value)
    (found,) = n5zarr.validate(path).findings
    assert (found.kind, found.path) == ("foreign", "em")


def test_what_looks_like_a_container_is_refused_when_listed(
    tmp_path: Path, zarr_format: Any
) -> None:
    make_array(tmp_path / "a", zarr_format)
    add_document(tmp_path / "a", '{"n5": "4.0.0"}')
    with pytest.raises(N5FormatError, match=f"expected N5, got a Zarr v{zarr_format} array"):
        n5zarr.convert(tmp_path / "a", tmp_path / "b.n5")


@pytest.mark.parametrize(("chunk", "own"), [("c", 3), ("0.0", 2)])
def test_data_of_both_are_refused(tmp_path: Path, chunk: str, own: int) -> None:
    path = tmp_path / "a.zarr"
    make_array(path, own)
    assert (path / chunk).exists()
    add_document(path, json.dumps(KEYS))
    (path / "0").mkdir()
    block = struct.pack(">HHII", 0, 2, 3, 2) + bytes(12)
    (path / "0/0").write_bytes(block)
    for call in (
        lambda: n5zarr.convert(path, tmp_path / "b.n5"),
        lambda: n5zarr.open(path),
        lambda: n5zarr.validate(path),
    ):
        said = r"both, attributes\.json and (zarr\.json|\.zarray)"
        with pytest.raises(N5FormatError, match=said):
            call()
    assert not (tmp_path / "b.n5").exists()


def test_a_dataset_with_a_document_of_zarr_stays_one(tmp_path: Path, zarr_format: Any) -> None:
    """Its blocks decide; without any data the document of N5 does, if it is one of a dataset."""
    for name in ("a.zarr", "b.zarr"):
        n5zarr.create_array(tmp_path / name, shape=VALUES.shape, chunks=CHUNKS, dtype="u2")
        zarr.create_array(
            tmp_path / "other", shape=(3, 5), dtype="u1", zarr_format=zarr_format, overwrite=True
        )
        document = "zarr.json" if zarr_format == 3 else ".zarray"
        (tmp_path / name / document).write_bytes((tmp_path / "other" / document).read_bytes())
    n5zarr.open_array(tmp_path / "a.zarr", "r+")[...] = VALUES
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "a.zarr")[...], VALUES)
    assert not np.any(n5zarr.open_array(tmp_path / "b.zarr")[...])
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "c.n5/v")
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "c.n5/v")[...], VALUES)


@pytest.mark.filterwarnings("ignore:Endian.big is deprecated:DeprecationWarning")  # of zarr-n5
@pytest.mark.parametrize("writer", ["n5zarr-0.1.0", "zarr-n5-0.3.1"])
def test_documents_of_zarr_that_describe_blocks_of_n5_change_nothing(
    tmp_path: Path, writer: str
) -> None:
    path = tmp_path / "a.zarr"
    shutil.copytree(n5zarr.sample_path(), path)
    before = inspect.describe_tree(path, size=False)
    shutil.copytree(SIDECARS / writer, path, dirs_exist_ok=True)
    assert inspect.describe_tree(path, size=False) == before
    expected = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")[...]
    np.testing.assert_array_equal(n5zarr.open_array(path / "em/s0")[...], expected)
    n5zarr.convert(path, tmp_path / "b.n5")
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "b.n5/em/s0")[...], expected)
    with zarr.config.set({"codecs.n5_default": "n5zarr.store.n5_default.N5DefaultCodec"}):
        array: Any = zarr.open_array(path / "em/s0", mode="r")
        np.testing.assert_array_equal(array[...].T, expected)


def test_a_group_that_has_only_a_marked_document_is_one_of_n5(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(7, 5), dtype="u2")
    (tmp_path / "c.n5/g").mkdir()
    shutil.copy(SIDECARS / "n5zarr-0.1.0/zarr.json", tmp_path / "c.n5/g")
    assert sorted(n5zarr.open_group(tmp_path / "c.n5")) == ["a", "g"]
    assert not [*n5zarr.open_group(tmp_path / "c.n5/g")]


def test_a_store_without_a_name_is_recognised_by_the_document(tmp_path: Path) -> None:
    store = MemoryStore()
    zarr.create_array(store, data=VALUES, chunks=CHUNKS)
    store._store_dict["attributes.json"] = store._store_dict["zarr.json"]
    n5zarr.convert(store, tmp_path / "b.n5/v")
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "b.n5/v")[...], VALUES)
    with pytest.raises(N5FormatError, match="expected N5, got a Zarr v3 array"):
        n5zarr.open(store)


def test_an_ordinary_container_is_asked_no_more(tmp_path: Path, asked: list[Any]) -> None:
    """Nobody asks for documents of Zarr where N5 has a document, or for directories of blocks."""
    for name in ("a.n5", "a"):
        n5zarr.create_array(tmp_path / name, path="em/s0", data=VALUES, chunks=CHUNKS)
        asked.clear()
        n5zarr.open(tmp_path / name, path="em/s0")
        n5zarr.geometry(tmp_path / name, "em/s0")
        n5zarr.open(tmp_path / name)
        names = {getattr(request, "key", "").rpartition("/")[2] for request in asked}
        assert names & {"zarr.json", ".zarray", ".zgroup"} == set()
        assert not folders_listed(asked)
