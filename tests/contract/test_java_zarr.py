"""Sharded Zarr v3 as Java's n5-zarr 2 writes it becomes N5, and what is made of N5 it reads.

Rules of n5-zarr at b1fb6dd and n5 at 7ba6b144, in our words; values are written and read by
tensorstore.
"""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.contract.stored import by_tensorstore

SHAPE, SHARDS, CHUNKS = (7, 11, 13), (4, 6, 8), (2, 3, 4)
TYPES = [
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64",
]  # fmt: skip

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}


def codec(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "configuration": members}


def blosc(**members: Any) -> dict[str, Any]:
    return codec("blosc", clevel=5, blocksize=0, cname="zstd", **members)


# as Java writes it, and as Zarr specifies it
COMPRESSIONS: dict[str, tuple[Any, Any]] = {
    "gzip": (codec("gzip", useZlib=False, level=5), codec("gzip", level=5)),
    "gzip-default": (codec("gzip", useZlib=False, level=-1), codec("gzip", level=6)),
    "gzip-of-n5": ({"type": "gzip", "useZlib": False, "level": 6}, codec("gzip", level=6)),
    "raw-of-n5": ({"type": "raw"}, None),
    "zlib-of-zarr": (codec("gzip", useZlib=True, level=4), codec("gzip", level=4)),
    "zstd": (codec("zstd", level=3, checksum=True),) * 2,
    "blosc": (blosc(typesize=0, nthreads=1, shuffle="shuffle"),
              blosc(typesize=2, shuffle="shuffle")),
    "blosc-of-n5": (blosc(typesize=1, nthreads=3, shuffle="bitshuffle"),
                    blosc(typesize=1, shuffle="bitshuffle")),
}  # fmt: skip


def sharded(
    compression: Any,
    *,
    elements: Any = LITTLE,
    index: tuple[Any, ...] = (LITTLE,),
    location: str = "end",
    chunks: tuple[int, ...] = CHUNKS,
) -> dict[str, Any]:
    codecs = [elements] + ([] if compression is None else [compression])
    shape, where = list(chunks), {"index_codecs": list(index), "index_location": location}
    return codec("sharding_indexed", chunk_shape=shape, codecs=codecs, **where)


def document(codecs: list[Any], data_type: str = "uint16", **others: Any) -> dict[str, Any]:
    """Return a ``zarr.json`` with Java's members, in its order."""
    grid = SHARDS if codecs[0]["name"] == "sharding_indexed" else CHUNKS
    return {
        "node_type": "array", "zarr_format": 3, "shape": list(SHAPE),
        "chunk_grid": codec("regular", chunk_shape=list(grid)),
        "chunk_key_encoding": codec("default", separator="/"), "data_type": data_type,
        "fill_value": 0, "dimension_names": ["dim_2", "dim_1", "dim_0"], "codecs": codecs,
        "attributes": {"resolution": [4.0, 4.0, 40.0]}, **others,
    }  # fmt: skip


def write(path: Path, java: dict[str, Any], specified: dict[str, Any]) -> np.ndarray:
    """Write values by tensorstore, then Java's document; the first chunks stay missing."""
    metadata = {k: v for k, v in specified.items() if k not in ("node_type", "zarr_format")}
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}
    values = np.arange(math.prod(SHAPE)).reshape(SHAPE) % 113 + 1
    values[:2, :3, :8] = 0
    values = values.astype(specified["data_type"])
    ts.open({**spec, "metadata": metadata}, create=True).result().write(values).result()
    (path / "zarr.json").write_text(json.dumps(java))
    return values


@pytest.mark.each_of(3)
@pytest.mark.parametrize("in_shards", [True, False], ids=["shards", "chunks"])
@pytest.mark.parametrize("name", COMPRESSIONS)
def test_compressions_of_java_become_n5(name: str, in_shards: bool, tmp_path: Path) -> None:
    java, specified = (
        [sharded(each)] if in_shards else [LITTLE, *([each] if each else [])]
        for each in COMPRESSIONS[name]
    )
    expected = write(tmp_path / "a.zarr", document(java), document(specified))
    done = n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5", verify=True)
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5"), expected)
    attributes = json.loads((tmp_path / "a.n5/attributes.json").read_text())
    assert attributes["blockSize"] == list(CHUNKS[::-1])
    assert attributes["resolution"] == [4.0, 4.0, 40.0]
    assert done.arrays[0].way == "values"  # as elements are little-endian


@pytest.mark.parametrize("name", ["bzip2", "xz"])
def test_compressions_that_zarr_does_not_have(name: str, tmp_path: Path) -> None:
    of_n5 = {"bzip2": {"blockSize": 9}, "xz": {"preset": 6}}[name]
    specified = {
        "bzip2": codec("numcodecs.bz2", level=9),
        "xz": codec("numcodecs.lzma", preset=6, format=1),
    }[name]
    path = tmp_path / "a.zarr"
    expected = write(path, document([LITTLE]), document([LITTLE]))
    for chunk in (path / "c").rglob("*"):  # tensorstore lacks these codecs
        if chunk.is_file():
            compress = __import__({"bzip2": "bz2", "xz": "lzma"}[name]).compress
            chunk.write_bytes(compress(chunk.read_bytes()))
    for java in (codec(name, **of_n5), {"type": name, **of_n5}, specified):
        (path / "zarr.json").write_text(json.dumps(document([LITTLE, java])))
        n5zarr.convert(path, tmp_path / "a.n5", overwrite=True)
        np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5"), expected)


def test_lz4_of_java_is_refused(tmp_path: Path) -> None:
    """Its framing is that of no codec of Zarr."""
    java = document([LITTLE, codec("lz4", blockSize=65536)])
    write(tmp_path / "a.zarr", java, document([LITTLE]))
    with pytest.raises(N5UnrepresentableError, match=r"a\.zarr: expected .* got .*'lz4'"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5")
    assert not (tmp_path / "a.n5").exists()


@pytest.mark.each_of(4)
@pytest.mark.parametrize("data_type", TYPES)
def test_data_types_and_indices_of_shards(data_type: str, tmp_path: Path) -> None:
    java, specified = COMPRESSIONS["blosc"]
    size = np.dtype(data_type).itemsize
    specified = blosc(typesize=size, shuffle="shuffle")
    for location in ("start", "end"):
        for order in (LITTLE, BIG):
            for index in ((order,), (order, CRC)):
                kw: dict[str, Any] = {"elements": order, "index": index, "location": location}
                path = tmp_path / f"{location}{len(index)}{order['configuration']}.zarr"
                both = (document([sharded(c, **kw)], data_type) for c in (java, specified))
                expected = write(path, *both)
                n5zarr.convert(path, path.with_suffix(".n5"))
                np.testing.assert_array_equal(by_tensorstore(path.with_suffix(".n5")), expected)


def test_shards_inside_of_shards_and_transposes(tmp_path: Path) -> None:
    java, specified = COMPRESSIONS["gzip-default"]
    order = codec("transpose", order=[2, 0, 1])
    nested = []
    for each in (java, specified):
        inner = sharded(each, index=(LITTLE, CRC), location="start", chunks=(2, 3, 2))
        outer = sharded(None, index=(LITTLE, CRC), chunks=(2, 6, 8))
        outer["configuration"]["codecs"] = [inner]
        nested.append(document([outer]))
    expected = write(tmp_path / "nested.zarr", *nested)
    n5zarr.convert(tmp_path / "nested.zarr", tmp_path / "nested.n5")
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "nested.n5"), expected)
    transposed = [document([order, LITTLE, each]) for each in (java, specified)]
    expected = write(tmp_path / "order.zarr", *transposed)
    n5zarr.convert(tmp_path / "order.zarr", tmp_path / "order.n5")
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "order.n5"), expected)


@pytest.mark.parametrize("fill", [5, "NaN", "Infinity", "-Infinity", 1.5, "0x7ff8000000000000"])
def test_fill_values_of_java(fill: Any, tmp_path: Path) -> None:
    java, specified = COMPRESSIONS["gzip"]
    given = document([sharded(java)], "float64", fill_value=fill)
    write(tmp_path / "a.zarr", given, document([sharded(specified)], "float64", fill_value=fill))
    with pytest.warns(n5zarr.N5Warning, match="fill value other than 0"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5")
    shutil.rmtree(tmp_path / "a.zarr/c")
    with pytest.warns(n5zarr.N5Warning, match="fill value other than 0"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "empty.n5")
    missing = float("nan") if isinstance(fill, str) and fill.startswith("0x") else float(fill)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "empty.n5")[...], missing)


def test_a_fill_value_that_java_has_rounded_is_refused(tmp_path: Path) -> None:
    given = document([sharded(None)], "uint64", fill_value=1.8446744073709552e19)
    write(tmp_path / "a.zarr", given, document([sharded(None)], "uint64"))
    with pytest.raises(N5UnrepresentableError, match=r"a\.zarr: expected valid documents"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5")


def test_a_hierarchy_of_java_and_its_resumption(tmp_path: Path) -> None:
    expected = {}
    for name, (java, specified) in COMPRESSIONS.items():
        path = tmp_path / "a.zarr" / name
        expected[name] = write(path, document([sharded(java)]), document([sharded(specified)]))
    group = {"zarr_format": 3, "node_type": "group"}
    (tmp_path / "a.zarr/zarr.json").write_text(json.dumps(group))
    for resume in (False, True):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5", resume=resume)
        for name, values in expected.items():
            np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5" / name), values)


def test_java_is_compared(tmp_path: Path) -> None:
    java, specified = COMPRESSIONS["gzip-default"]
    for path in (tmp_path / "a.zarr", tmp_path / "b.zarr"):
        write(path / "v", document([sharded(java)]), document([sharded(specified)]))
        (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5")
    assert n5zarr.compare(tmp_path / "a.zarr", tmp_path / "a.n5").is_equal
    next(each for each in (tmp_path / "b.zarr/v/c").rglob("*") if each.is_file()).unlink()
    assert not n5zarr.compare(tmp_path / "b.zarr", tmp_path / "a.n5").is_equal
    lz4 = document([LITTLE, codec("lz4", blockSize=65536)])
    (tmp_path / "b.zarr/v/zarr.json").write_text(json.dumps(lz4))
    with pytest.raises(N5UnrepresentableError, match=r"b\.zarr: expected .* got .*'lz4'"):
        n5zarr.compare(tmp_path / "b.zarr", tmp_path / "a.n5")


def test_images_of_java_open_as_they_are(tmp_path: Path) -> None:
    java, specified = COMPRESSIONS["blosc"]
    path = tmp_path / "image.zarr"
    expected = write(path / "0", document([sharded(java)]), document([sharded(specified)]))
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [40, 4, 4]}]}
    image = {"axes": [{"name": name, "type": "space"} for name in "zyx"], "datasets": [level]}
    ome = {"ome": {"version": "0.5", "multiscales": [image]}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": ome}
    (path / "zarr.json").write_text(json.dumps(group))
    np.testing.assert_array_equal(n5zarr.open_level(path, level=0)["s0"].values, expected)


PARAMETERS = {  # and whether n5-zarr needs them
    "bytes": {"endian": False},
    "gzip": {"level": True, "useZlib": False},
    "zstd": {"level": True, "checksum": True},
    "blosc": {
        "cname": True, "clevel": True, "shuffle": True, "blocksize": True, "typesize": True,
        "nthreads": False,
    },
    "crc32c": {},
    "transpose": {"order": True},
    "sharding_indexed": {
        "chunk_shape": True, "codecs": True, "index_codecs": True, "index_location": False,
    },
}  # fmt: skip


def check_codecs(codecs: list[dict[str, Any]]) -> None:
    """Check as ``NameConfigAdapter`` and ``CodecParser`` do, which know one codec for elements."""
    names = [each["name"] for each in codecs]
    for each in codecs:
        needed = {key for key, is_needed in PARAMETERS[each["name"]].items() if is_needed}
        assert needed <= each.get("configuration", {}).keys(), each
    (position,) = [n for n, name in enumerate(names) if name in ("bytes", "sharding_indexed")]
    assert set(names[:position]) <= {"transpose"}
    assert "transpose" not in names[position + 1 :]
    if names[position] == "sharding_indexed":
        inner = codecs[position]["configuration"]
        check_codecs(inner["codecs"])
        assert inner["index_codecs"][0]["name"] == "bytes"
        assert {each["name"] for each in inner["index_codecs"][1:]} <= {"crc32c"}
        assert inner.get("index_location", "end") in ("start", "end")


def check_readable(found: dict[str, Any]) -> None:
    """Check an array as ``ZarrV3DatasetAttributes.JsonAdapter`` does, which tells no errors."""
    assert (found["zarr_format"], found["node_type"]) == (3, "array")
    assert found["data_type"] in TYPES
    assert isinstance(found["fill_value"], int | float | str)  # null is no string for it
    assert found["chunk_grid"]["name"] == "regular"
    assert found["chunk_key_encoding"]["name"] == "default"
    assert found["chunk_key_encoding"]["configuration"]["separator"] in ("/", ".")
    check_codecs(found["codecs"])


@pytest.mark.each_of(7)
@pytest.mark.parametrize("compression", ["raw", "gzip", "zstd", "blosc", None])
@pytest.mark.parametrize("shards", [(4, 6, 8), None])
@pytest.mark.parametrize("stored", ["raw", "gzip", "bzip2", "xz", "zstd", "blosc", "lz4"])
def test_java_reads_what_is_made_of_n5(
    stored: str, shards: tuple[int, ...] | None, compression: str | None, tmp_path: Path
) -> None:
    values = np.arange(math.prod(SHAPE), dtype="i4").reshape(SHAPE)
    values[:2, :3] = 0
    n5zarr.create_array(tmp_path / "a.n5", data=values, chunks=CHUNKS, compression=stored)
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "a.zarr", shards=shards, compression=compression)
    found = json.loads((tmp_path / "a.zarr/zarr.json").read_text())
    check_readable(found)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "a.zarr")}}
    np.testing.assert_array_equal(ts.open(spec).result().read().result(), values)
