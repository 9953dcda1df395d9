"""Calls of four programs write and read the same with zarr-python 2 and with n5zarr.

``zarr2_lines.py`` has the calls with zarr-python 2 under the same names.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
import s3fs
import zarr
from zarr.codecs import GzipCodec

import n5zarr
from n5zarr import N5Block, N5FSStore, N5Store
from tests.peers import zarr2_lines as old
from tests.peers.environments import environment, run
from tests.peers.zarr2_lines import BEADS, BLOCK, BLOCKS, OFFSET, POINTS, SCALE, SHAPE, VALUES
from tests.remote import servers

# ---------------------------------------------------------------------- each writes and reads


def write_pybdv(folder: Path) -> None:
    """Write as pybdv, without ``overwrite=False``, which zarr-python 2 ignored."""
    store = N5FSStore(str(folder / "pybdv.n5"))
    # v3 has other names of codecs
    old.fill_pybdv(zarr.open_group(store, mode="a", zarr_format=2))


def read_pybdv(folder: Path) -> dict[str, Any]:
    return old.found_pybdv(zarr.open(N5FSStore(str(folder / "pybdv.n5")), mode="r"))


def write_rhapso(folder: Path) -> None:
    store = N5Store(str(folder / "rhapso.n5"))
    old.begin_rhapso(zarr.group(store, overwrite=False))
    options: Any = {"compression": "gzip"}
    make = n5zarr.create_array
    make(store, path=f"{BEADS}/id", data=old.POINT_IDS, dtype="u8", chunks=(300000, 1), **options)
    make(store, path=f"{BEADS}/loc", data=POINTS, dtype="f8", chunks=(300000, 3), **options)
    make(store, path=f"{BEADS}/none", shape=(0,), dtype="f4", chunks=(1,), **options)


def read_rhapso(folder: Path) -> dict[str, Any]:
    root = zarr.open(N5Store(str(folder / "rhapso.n5")), mode="r")
    return old.found_rhapso(root, zarr.Group)


def write_gunpowder(folder: Path) -> None:
    file = zarr.open_group(N5Store(str(folder / "gunpowder.n5")), mode="a")
    array = file.create_array(name="em/raw", shape=SHAPE, compressors=GzipCodec(), dtype="u2")
    old.fill_gunpowder(array, reverses=isinstance(file.store, N5Store))


def read_gunpowder(folder: Path) -> dict[str, Any]:
    file = zarr.open_group(N5Store(str(folder / "gunpowder.n5")), mode="r")
    found = old.placed(file["em/raw"], reverses=isinstance(file.store, N5Store))
    return {**found, "chunks": ()}  # each chooses its own


def write_cellmap_flow(folder: Path) -> None:
    root = zarr.open_group(N5FSStore(str(folder / "cellmap.n5")), mode="a")
    options: Any = {"chunks": BLOCK, "dtype": "u2", "compressors": GzipCodec(level=6)}
    array = root.require_array("em/s0", shape=(5, 11, 13), **options)
    array[:] = VALUES[:5]
    again = root.require_array("em/s0", shape=(5, 11, 13), **options)
    again.resize(SHAPE)
    again[5:] = VALUES[5:]
    again.attrs.update({"resolution": SCALE[::-1], "offset": OFFSET[::-1], "units": ["nm"] * 3})
    root["em"].attrs["of"] = "a test"


def read_cellmap_flow(folder: Path) -> dict[str, Any]:
    array: Any = zarr.open_group(N5FSStore(str(folder / "cellmap.n5")), mode="r")["em/s0"]
    assert (type(array), type(array.store)) == (zarr.Array, N5FSStore)
    parent: Any = zarr.open_group(array.store, path=array.path.rsplit("/", 1)[0], mode="r")
    assert parent.attrs.get("multiscales", None) is None
    found = n5zarr.geometry(array)  # instead of looking for attributes, and reversing them
    assert (found.scale, found.translation) == (SCALE, OFFSET)
    names = {"path": array.path, "parent": (parent.path, dict(parent.attrs))}
    return {**old.placed(array, reverses=True), **names}


def write_s3(url: str, server: str) -> None:
    root = zarr.open_group(N5FSStore(url, mode="a", **old.s3_options(server)), mode="a")
    gzip = GzipCodec()
    array = root.create_array("em/s0", shape=SHAPE, chunks=BLOCK, dtype="u2", compressors=gzip)
    array[:] = VALUES
    array.attrs["resolution"] = SCALE[::-1]


def read_s3(url: str, server: str) -> dict[str, Any]:
    root = zarr.open_group(N5FSStore(url, mode="r", **old.s3_options(server)), mode="r")
    mapped = s3fs.S3Map(url.removeprefix("s3://"), s3fs.S3FileSystem(**old.s3_options(server)))
    array: Any = zarr.open_group(N5Store(mapped), mode="r")["em/s0"]
    np.testing.assert_array_equal(array[1:5, 2:7], VALUES[1:5, 2:7])
    return old.known(root["em/s0"])


def decoded(block: bytes, dtype: str, shape: tuple[int, ...], name: str) -> np.ndarray:
    return np.asarray(N5Block(np.dtype(dtype), shape, {"type": name}).decode(block)).reshape(shape)


def encode_blocks(path: Path) -> None:
    blocks = []
    for dtype, shape, name in BLOCKS:
        block = old.block_of(dtype, shape)
        blocks.append(bytes(N5Block(np.dtype(dtype), shape, {"type": name}).encode(block)))
        again = n5zarr.encode_block(block, compression={"type": name})
        np.testing.assert_array_equal(decoded(again, dtype, shape, name), block)
    path.write_bytes(pickle.dumps(blocks))


def decode_blocks(path: Path) -> list[np.ndarray]:
    blocks = pickle.loads(path.read_bytes())
    return [decoded(block, *each) for each, block in zip(BLOCKS, blocks, strict=True)]


# ---------------------------------------------------------------------- both are run


def write_all(folder: Path, server: str) -> None:
    for write in (write_pybdv, write_rhapso, write_gunpowder, write_cellmap_flow):
        write(folder)
    write_s3(f"s3://lab/{folder.name}/s3.n5", server)
    encode_blocks(folder / "blocks.pickle")


def read_all(folder: Path, server: str) -> dict[str, Any]:
    readers = (read_pybdv, read_rhapso, read_gunpowder, read_cellmap_flow)
    found: dict[str, Any] = {r.__name__.removeprefix("read_"): r(folder) for r in readers}
    found["s3"] = read_s3(f"s3://lab/{folder.name}/s3.n5", server)
    found["blocks"] = decode_blocks(folder / "blocks.pickle")
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with servers.s3() as url:
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
        client.create_bucket(Bucket="lab")
        yield url


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


WHO = ["zarr 2", "n5zarr"]


@pytest.fixture(scope="module")
def found(folder: Path, server: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Write with either and read with both; return the results by writer and reader."""
    packages = ("zarr==2.18.7", "numcodecs<0.16", "dask[array]", "fsspec", "s3fs")
    python, script = environment(folder / "env", *packages), str(old.__file__)
    folders = {who: folder / who.replace(" ", "") for who in WHO}
    for each in folders.values():
        each.mkdir()
    run(python, script, "write", server, str(folders["zarr 2"]))
    write_all(folders["n5zarr"], server)
    run(python, script, "read", server, *map(str, folders.values()))
    read = {}
    for writer, each in folders.items():
        read[writer, "zarr 2"] = pickle.loads((each / "found.pickle").read_bytes())
        read[writer, "n5zarr"] = read_all(each, server)
    return read


PROGRAMS = ["pybdv", "rhapso", "gunpowder", "cellmap_flow", "s3", "blocks"]


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("reader", WHO)
@pytest.mark.parametrize("writer", WHO)
def test_both_read_what_either_wrote(
    found: dict[tuple[str, str], dict[str, Any]], writer: str, reader: str, program: str
) -> None:
    read, expected = found[writer, reader][program], found["zarr 2", "zarr 2"][program]
    if (writer, reader, program) == ("n5zarr", "zarr 2", "rhapso"):
        # it lists groups with a document only; of those above a new node, n5zarr makes some
        read, expected = ({**part, "nodes": None} for part in (read, expected))
    if (writer, reader) == ("n5zarr", "zarr 2"):
        read = without_record(read)
    same(read, expected)


def without_record(read: Any) -> Any:
    """Remove the record of what N5 cannot express, which n5zarr shows to nobody."""
    if not isinstance(read, dict):
        return read
    return {name: without_record(value) for name, value in read.items() if name != "zarr"}


def same(one: Any, other: Any) -> None:
    if isinstance(other, dict):
        assert one.keys() == other.keys()
        for key in other:
            same(one[key], other[key])
    elif isinstance(other, list) and any(isinstance(part, np.ndarray) for part in other):
        for left, right in zip(one, other, strict=True):
            same(left, right)
    elif isinstance(other, np.ndarray):
        np.testing.assert_array_equal(one, other)
        assert one.dtype.newbyteorder("=") == other.dtype.newbyteorder("=")
    else:
        assert one == other


@pytest.mark.long
@pytest.mark.parametrize("writer", WHO)
def test_the_values_are_those_written(
    found: dict[tuple[str, str], dict[str, Any]], writer: str
) -> None:
    read = found[writer, "n5zarr"]
    partly = np.zeros_like(VALUES)
    partly[2:7, :, 3:13] = VALUES[2:7, :, 3:13]
    written = {"pybdv": VALUES, "gunpowder": partly, "cellmap_flow": VALUES, "s3": VALUES}
    for name, values in written.items():
        np.testing.assert_array_equal(read[name]["values"], values)
    np.testing.assert_array_equal(read["rhapso"]["loc"]["values"], POINTS)
    np.testing.assert_array_equal(read["rhapso"]["id"]["values"], old.POINT_IDS)
    assert read["rhapso"]["none"] == (0,)
    for name in ("gunpowder", "cellmap_flow"):
        assert (read[name]["scale"], read[name]["offset"]) == (SCALE, OFFSET)
    for (dtype, shape, _), block in zip(BLOCKS, read["blocks"], strict=True):
        np.testing.assert_array_equal(block, old.block_of(dtype, shape))


@pytest.mark.long
@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    "path",
    [
        "pybdv.n5/setup0/timepoint0/s0", f"rhapso.n5/{BEADS}/id", f"rhapso.n5/{BEADS}/loc",
        "gunpowder.n5/em/raw", "cellmap.n5/em/s0",
    ],
)  # fmt: skip
def test_the_documents_say_the_same(folder: Path, path: str) -> None:
    """The documents agree, but for compression members, and gunpowder's block size."""
    theirs, ours = (
        json.loads((folder / who.replace(" ", "") / path / "attributes.json").read_text())
        for who in WHO
    )
    names = {"dimensions", "dataType", "resolution", "offset", "units"}
    if "gunpowder" not in path:
        names.add("blockSize")
    assert {n: ours.get(n) for n in names} == {n: theirs.get(n) for n in names}
    assert ours["compression"]["type"] == theirs["compression"]["type"] == "gzip"


@pytest.mark.long
@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("who", ["zarr2", "n5zarr"])
def test_the_version_that_rhapso_sets_is_in_the_root(folder: Path, who: str) -> None:
    assert json.loads((folder / who / "rhapso.n5/attributes.json").read_text())["n5"] == "4.0.0"


def test_options_that_zarr_2_ignored_are_refused(tmp_path: Path) -> None:
    """Options that zarr-python 2 ignored on local files, such as ``overwrite``, are refused."""
    options: Any = {"overwrite": False}
    with pytest.raises(TypeError, match="unexpected keyword argument 'overwrite'"):
        N5FSStore(str(tmp_path / "a.n5"), **options)
