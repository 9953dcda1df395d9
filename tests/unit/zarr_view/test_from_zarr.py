"""Documents after the Zarr specifications become keys after the README of N5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.compression import Blosc, Bzip2, Compression, Gzip, Lz4, Raw, Xz, Zstd
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.element import Element
from n5zarr.zarr_view.from_zarr import (
    check_v3,
    members_of_v3,
    nearest_v2,
    nearest_v3,
    plain_dataset,
)
from tests.refusals import refused

UINT16 = Element(dtype=np.dtype("u2"))
COMPLEX = Element(dtype=np.dtype("c8"))


def codec(name: str, **configuration: JSON) -> dict[str, JSON]:
    return {"name": name, "configuration": configuration}


LITTLE = codec("bytes", endian="little")


def v3(**members: JSON) -> dict[str, Any]:
    return {
        "zarr_format": 3, "node_type": "array", "shape": [5, 7, 11], "data_type": "uint16",
        "chunk_grid": codec("regular", chunk_shape=[2, 3, 4]),
        "chunk_key_encoding": codec("default", separator="/"), "fill_value": 0,
        "codecs": [LITTLE, codec("zstd", level=5, checksum=False)], "attributes": {},
    } | members  # fmt: skip


@pytest.mark.parametrize(
    ("codecs", "expected"),
    [
        pytest.param([LITTLE], Raw(), id="none"),
        pytest.param([LITTLE, codec("gzip", level=5)], Gzip(level=5), id="gzip"),
        pytest.param(["bytes", "gzip"], Gzip(level=6), id="short-name"),
        pytest.param([LITTLE, codec("numcodecs.zlib", level=1)], Gzip(use_zlib=True, level=1),
                     id="zlib"),
        pytest.param([LITTLE, codec("zstd", level=-3, checksum=True)], Zstd(level=-3), id="zstd"),
        pytest.param([LITTLE,
                      codec("blosc", cname="lz4", clevel=5, shuffle="bitshuffle", blocksize=0)],
                     Blosc(cname="lz4", clevel=5, shuffle=2), id="blosc"),
        pytest.param([LITTLE, codec("numcodecs.bz2", level=3)], Bzip2(block_size=3), id="bz2"),
        pytest.param([LITTLE, codec("numcodecs.lzma", preset=None)], Xz(preset=6), id="lzma"),
        pytest.param([LITTLE, codec("numcodecs.lz4", acceleration=9)], Lz4(), id="lz4"),
        pytest.param([LITTLE, codec("gzip", level=4), "crc32c"], Gzip(level=4), id="checksum"),
        pytest.param([LITTLE, codec("gzip", level=99)], Gzip(level=6), id="level-out-of-range"),
        pytest.param([LITTLE, codec("numcodecs.zfpy")], Raw(), id="unknown"),
        pytest.param([codec("sharding_indexed", codecs=[LITTLE, codec("zstd", level=7)])],
                     Zstd(level=7), id="shards"),
        pytest.param([codec("n5zarr.block", compression={"type": "xz", "preset": 1})], Xz(preset=1),
                     id="whole-blocks"),
    ],
)  # fmt: skip
def test_the_nearest_compression_of_v3(codecs: list[JSON], expected: Compression) -> None:
    assert nearest_v3(codecs) == expected


@pytest.mark.parametrize(
    ("compressor", "filters", "expected"),
    [
        pytest.param(None, [], Raw(), id="none"),
        pytest.param({"id": "zlib", "level": 2}, [], Gzip(use_zlib=True, level=2), id="zlib"),
        pytest.param({"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": -1, "blocksize": 0},
                     [], Blosc(cname="zstd", clevel=3, shuffle=-1), id="blosc"),
        pytest.param(None, [{"id": "bz2", "level": 4}], Bzip2(block_size=4), id="filter"),
        pytest.param({"id": "n5zarr_block", "compression": {"type": "gzip", "level": 2}}, [],
                     Gzip(level=2), id="whole-blocks"),
    ],
)  # fmt: skip
def test_the_nearest_compression_of_v2(
    compressor: JSON, filters: list[JSON], expected: Compression
) -> None:
    assert nearest_v2(compressor, filters) == expected


def test_n5s_keys_of_a_zarr_json() -> None:
    members = members_of_v3(v3(), UINT16, "C")
    assert members.to_json() == {
        "dataType": "uint16", "compression": {"type": "zstd", "level": 5}, "blockSize": [4, 3, 2],
        "dimensions": [11, 7, 5],
    }  # fmt: skip
    assert members.record.to_json() == {}


def test_n5_order_keeps_the_order_of_the_shape() -> None:
    transposed = [
        codec("transpose", order=[2, 1, 0]), LITTLE, codec("zstd", level=5, checksum=False),
    ]  # fmt: skip
    members = members_of_v3(v3(codecs=transposed), UINT16, "F")
    assert (members.dimensions, members.block_size) == ((5, 7, 11), (2, 3, 4))
    assert members.record.to_json() == {}


@pytest.mark.parametrize(
    ("document", "element", "record"),
    [
        pytest.param(v3(fill_value=9), Element(dtype=np.dtype("u2"), fill_value=9),
                     {"fill_value": 9}, id="fill"),
        pytest.param(v3(codecs=[LITTLE, "crc32c"]), UINT16, {"codecs": [LITTLE, "crc32c"]},
                     id="checksum"),
        pytest.param(v3(data_type="complex64", fill_value=[0.0, 0.0]), COMPLEX,
                     {"data_type": "complex64", "fill_value": [0.0, 0.0]}, id="complex"),
        pytest.param(v3(extra={"must_understand": False}), UINT16,
                     {"extra": {"extra": {"must_understand": False}}}, id="extension"),
    ],
)  # fmt: skip
def test_only_what_does_not_follow_is_recorded(
    document: dict[str, Any], element: Element, record: dict[str, JSON]
) -> None:
    assert members_of_v3(document, element, "C").record.to_json() == record


def test_parts_are_the_fastest_axis() -> None:
    members = members_of_v3(v3(data_type="complex64", fill_value=[0.0, 0.0]), COMPLEX, "C")
    assert (members.dimensions, members.block_size) == ((2, 11, 7, 5), (2, 4, 3, 2))
    assert members.to_json()["dataType"] == "float32"


def test_an_array_without_dimensions_has_one_in_n5() -> None:
    scalar = v3(shape=[], chunk_grid=codec("regular", chunk_shape=[]))
    members = members_of_v3(scalar, UINT16, "C")
    assert (members.dimensions, members.block_size) == ((1,), (1,))
    assert members.record.to_json() == {"shape": []}


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"chunk_grid": codec("rectilinear")}, id="grid"),
        pytest.param({"chunk_key_encoding": "mine"}, id="keys"),
        pytest.param({"storage_transformers": [codec("mine")]}, id="transformers"),
    ],
)
def test_a_member_that_n5_cannot_keep_is_refused(members: dict[str, JSON]) -> None:
    check_v3(v3())
    with refused(N5UnrepresentableError, "member"):
        check_v3(v3(**members))


def test_a_compression_that_is_only_read_is_refused() -> None:
    with pytest.raises(N5UnsupportedError, match="snappy can only be read"):
        plain_dataset((5, 7), (2, 3), UINT16, Blosc(cname="snappy"), "C")
