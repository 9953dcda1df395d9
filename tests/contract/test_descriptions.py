"""Arrays, groups and stores describe themselves; zarr's own classes print as before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import fsspec
import obstore.store
import pytest
import zarr
from zarr.storage import FsspecStore, MemoryStore, ObjectStore, StorePath

import n5zarr
from n5zarr import N5Store

JAVA = Path(__file__).parents[1] / "data" / "java"
SAMPLE = n5zarr.sample_path()
KEYS: Any = {"access_key_id": "user", "secret_access_key": "word"}
SIGNED = "https://user:pass@word@host/lab/a.n5?X-Signature=word"


def document(container: str | Path, path: str) -> Any:
    return json.loads((Path(container) / path / "attributes.json").read_bytes())


# ------------------------------------------------------------------------------------- repr


def test_an_opened_array_names_container_node_shape_and_dtype() -> None:
    place = JAVA / "sparse.n5"  # dimensions [9, 7] in its attributes.json
    wanted = f"<N5Array {place}/skip2 shape=(7, 9) dtype=uint16>"
    assert repr(n5zarr.open(place / "skip2")) == wanted
    assert repr(n5zarr.open(N5Store(place), path="skip2")) == wanted
    assert repr(n5zarr.open_group(place)["skip2"]) == wanted
    assert repr(n5zarr.open_group(place)) == f"<N5Group {place}>"
    assert repr(n5zarr.open_group(SAMPLE)["em"]) == f"<N5Group {SAMPLE}/em>"


def test_text_says_that_it_is_n5_too() -> None:
    array = n5zarr.open(JAVA / "strings.n5", path="one")
    wanted = f"<N5Array {JAVA}/strings.n5/one shape=(1,) dtype="
    assert repr(array).startswith(wanted)
    assert array == zarr.open_array(array.store, path="one", mode="r")


def test_a_store_names_its_container_and_what_is_not_as_by_default() -> None:
    store = N5Store(SAMPLE, read_only=True, axis_order="F")
    assert repr(store) == f"N5Store({SAMPLE!r}, axis_order='F', read_only=True)"
    assert str(StorePath(store, "em/s0")) == f"{store}/em/s0" == f"{SAMPLE}/em/s0"
    assert "read_only" not in repr(N5Store(SAMPLE))


@pytest.mark.parametrize(
    ("store", "name"),
    [
        (lambda: SIGNED, "https://host/lab/a.n5"),
        (lambda: f"simplecache::{SIGNED}", "simplecache://https://host/lab/a.n5"),
        (lambda: FsspecStore.from_url(SIGNED), "https://host/lab/a.n5"),
        (lambda: ObjectStore(obstore.store.HTTPStore.from_url(SIGNED)), "https://host/lab/a.n5"),
        (
            lambda: ObjectStore(obstore.store.S3Store("bucket", prefix="lab/a.n5", **KEYS)),
            "s3://bucket/lab/a.n5",
        ),
        (
            lambda: ObjectStore(
                obstore.store.AzureStore("bucket", account_name="a", account_key="d29yZA==")
            ),
            "az://bucket",
        ),
        (lambda: fsspec.filesystem("memory").get_mapper("lab/a.n5"), "memory:///lab/a.n5"),
    ],
    ids=["http", "chain", "fsspec", "obstore-http", "obstore-s3", "obstore-azure", "mapping"],
)
def test_no_secret_of_a_place_is_shown(store: Any, name: str) -> None:
    opened = N5Store(store())
    assert str(opened) == name
    for text in (repr(opened), str(StorePath(opened, "em")), opened.locate("em/zarr.json")):
        assert name in text
        assert "word" not in text
        assert "user" not in text


def test_the_url_store_itself_shows_no_secret() -> None:
    assert "word" not in repr(N5Store(SIGNED).store)


# ------------------------------------------------------------------------------------- info


@pytest.mark.parametrize("axis_order", ["C", "F"])
@pytest.mark.parametrize(
    ("container", "path"),
    [(JAVA / "sparse.n5", "skip2"), (JAVA / "compressions.n5", "bzip2/u16"), (SAMPLE, "em/s0")],
)
def test_an_array_has_its_document_in_its_info(
    container: str | Path, path: str, axis_order: Any
) -> None:
    stored = document(container, path)
    array = n5zarr.open_array(container, path=path, axis_order=axis_order)
    info = array.info
    assert list(info["dimensions_n5"]) == stored["dimensions"]
    assert list(info["block_size_n5"]) == stored["blockSize"]
    assert info["data_type"] == stored["dataType"]
    assert info["compression"].items() >= stored["compression"].items()
    assert list(info["shape_c"]) == stored["dimensions"][::-1]
    assert list(info["chunk_shape_c"]) == stored["blockSize"][::-1]
    assert info["n5"] == document(container, "")["n5"]
    assert info["axis_order"] == axis_order
    assert "n_blocks_stored" not in info
    text = repr(info)
    for line in (
        f"container            : {container}",
        f"path                 : /{path}",
        f"dimensions, N5 order : {stored['dimensions']}",
        f"block size, N5 order : {stored['blockSize']}",
        f"data type            : {stored['dataType']}",
        f"axis order           : {axis_order}",
    ):
        assert line in text.splitlines()


def test_the_info_of_an_array_has_axes_units_and_grid() -> None:
    # attributes.json: axes x, y, z, units nm, resolution [8, 8, 20]; 128, 96, 40 in 50, 40, 16
    lines = repr(n5zarr.open(SAMPLE, path="em/s0").info).splitlines()
    assert "shape, C order       : (40, 96, 128) z, y, x" in lines
    assert "axes, N5 order       : x 8 nm, y 8 nm, z 20 nm  (cosem)" in lines
    assert "blocks               : 27; grid [3, 3, 3] in N5 order" in lines
    assert "read only            : True" in lines


def test_the_complete_info_counts_blocks_and_bytes() -> None:
    info = n5zarr.open_array(JAVA / "sparse.n5", path="skip2").info_complete()
    files = [f for f in (JAVA / "sparse.n5" / "skip2").rglob("*") if f.is_file()]
    blocks = [f for f in files if f.name != "attributes.json"]
    assert info["n_blocks_stored"] == len(blocks) == 8
    assert info["n_bytes_stored"] == sum(f.stat().st_size for f in blocks)


def test_the_info_of_a_group_counts_children_by_kind(tmp_path: Path) -> None:
    path = tmp_path / "c.n5"
    shutil.copytree(JAVA / "sparse.n5", path / "a" / "group")
    (path / "a" / "other").mkdir()
    for name in ("one", "two", "three"):
        shutil.copytree(JAVA / "sparse.n5" / "skip2", path / "a" / name)
    (path / "a" / "bad").mkdir()
    bad = {"dimensions": [5], "blockSize": [0], "dataType": "uint8", "compression": {"type": "raw"}}
    (path / "a" / "bad" / "attributes.json").write_text(json.dumps(bad))
    for name in ("a", "a/other"):
        (path / name / "attributes.json").write_text("{}")
    (path / "attributes.json").write_text('{"n5": "2.5.1"}')
    info = n5zarr.open_group(path, path="a").info
    assert info["children_by_kind"] == {"array": 3, "broken": 1, "group": 2}
    lines = repr(info).splitlines()
    assert "children   : bad, group, one, other, three, two" in lines
    assert "by kind    : 3 arrays, 1 broken, 2 groups" in lines
    assert "N5 version : 2.5.1" in lines


def test_a_container_that_does_not_exist_yet_has_no_version() -> None:
    store = N5Store(MemoryStore(), zarr_format=3)
    assert "N5 version  : none" in repr(store.info)
    n5zarr.create_array(store, path="a", shape=(5, 3), dtype="u1")
    assert "N5 version  : 4.0.0" in repr(store.info)


def test_zarrs_own_arrays_keep_zarrs_info() -> None:
    group = zarr.open_group(N5Store(SAMPLE), mode="r")
    assert repr(group.info).startswith("Name")
    assert repr(group["em/s0"].info).startswith("Type  ")
    assert repr(group).startswith("<Group ")


def test_where_axes_are_arrays_zarr_describes() -> None:
    group = n5zarr.open_group(N5Store(SAMPLE, coords=True), path="em/s0")
    assert repr(group.info).startswith("Name")
    assert "Chunk shape" in repr(group["z"].info)
    assert "No. bytes stored" in repr(group["z"].info_complete())
