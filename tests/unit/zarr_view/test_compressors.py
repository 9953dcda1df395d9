"""Compressors are described as numcodecs and zarr-python write the same codec."""

from __future__ import annotations

from typing import Any

import pytest
import zarr.codecs
from zarr.codecs import numcodecs as zarr_numcodecs

from n5zarr.codecs.compress import codec_of, within_zarr_limits
from n5zarr.format.compression import Blosc, Bzip2, Compression, Gzip, Jpeg, Lz4, Raw, Xz, Zstd
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.compressors import (
    is_portable,
    numcodecs_compressor,
    same_codecs,
    zarr_compressors,
)
from tests.unit.codecs.streams import numcodecs


@pytest.mark.parametrize(
    ("compression", "expected"),
    [
        pytest.param(Gzip(level=5), numcodecs.GZip(5), id="gzip"),
        pytest.param(Gzip(use_zlib=True, level=5), numcodecs.Zlib(5), id="zlib"),
        pytest.param(Bzip2(block_size=7), numcodecs.BZ2(7), id="bzip2"),
        pytest.param(Xz(preset=3), numcodecs.LZMA(preset=3), id="xz"),
        pytest.param(Lz4(), numcodecs.LZ4(), id="lz4"),
        pytest.param(Blosc(cname="zstd", clevel=5, shuffle=2, block_size=0),
                     numcodecs.Blosc("zstd", 5, 2), id="blosc"),
    ],
)  # fmt: skip
def test_a_compressor_of_v2_is_numcodecs_own(compression: Compression, expected: Any) -> None:
    assert numcodecs_compressor(compression) == expected.get_config()


def test_zstd_of_v2_has_no_checksum() -> None:
    # numcodecs before 0.14 does not know the member
    made = numcodecs.get_codec(numcodecs_compressor(Zstd(level=5)))
    assert made.get_config() == numcodecs.Zstd(5).get_config()


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
@pytest.mark.parametrize(
    ("compression", "name", "parameters"),
    [
        pytest.param(Gzip(use_zlib=True, level=5), "Zlib", {"level": 5}, id="zlib"),
        pytest.param(Bzip2(block_size=7), "BZ2", {"level": 7}, id="bzip2"),
        pytest.param(Lz4(), "LZ4", {"acceleration": 1}, id="lz4"),
        pytest.param(
            Xz(preset=3), "LZMA", {"preset": 3, "format": 1, "check": -1, "filters": None}, id="xz"
        ),
    ],
)
def test_a_compression_outside_v3_uses_numcodecs(
    compression: Compression, name: str, parameters: dict[str, Any]
) -> None:
    expected = getattr(zarr_numcodecs, name)(**parameters).to_dict()
    assert zarr_compressors(compression) == [expected]
    assert not is_portable(compression)


@pytest.mark.parametrize(
    ("compression", "expected"),
    [
        pytest.param(Gzip(level=5), zarr.codecs.GzipCodec(level=5), id="gzip"),
        pytest.param(Zstd(level=5), zarr.codecs.ZstdCodec(level=5), id="zstd"),
    ],
)
def test_a_compression_of_v3_uses_its_codec(compression: Compression, expected: Any) -> None:
    assert zarr_compressors(compression) == [expected.to_dict()]
    assert is_portable(compression)


@pytest.mark.parametrize(
    ("shuffle", "name"), [(0, "noshuffle"), (1, "shuffle"), (2, "bitshuffle")], ids=str
)
def test_blosc_of_v3_names_its_shuffle(shuffle: int, name: str) -> None:
    own = Blosc(cname="zstd", clevel=5, shuffle=shuffle)
    theirs = zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle=name, typesize=2).to_dict()  # type: ignore[arg-type]
    found: Any = codec_of(own).zarr_codec(own)
    assert {"name": found[0], "configuration": {"typesize": 2, **found[1]}} == theirs
    assert is_portable(own)


@pytest.mark.parametrize("compression", [Raw(), Jpeg()], ids=["raw", "jpeg"])
def test_no_codec_is_no_compressor(compression: Compression) -> None:
    assert zarr_compressors(compression) == []
    assert numcodecs_compressor(compression) is None
    assert codec_of(compression).numcodec(compression) is None
    assert is_portable(compression)


@pytest.mark.parametrize(
    ("compression", "item_size", "expected"),
    [
        pytest.param(Gzip(level=-1), 2, Gzip(level=6), id="zlib's-default"),
        pytest.param(Gzip(level=0), 2, Gzip(level=0), id="stored"),
        pytest.param(Zstd(level=23), 2, Zstd(level=22), id="zstd-above"),
        pytest.param(Zstd(level=-131073), 2, Zstd(level=-131072), id="zstd-below"),
        pytest.param(Blosc(shuffle=-1), 1, Blosc(shuffle=2), id="auto-shuffle-of-bytes"),
        pytest.param(Zstd(level=22), 2, Zstd(level=22), id="zstd-highest"),
        pytest.param(Zstd(level=-131072), 2, Zstd(level=-131072), id="zstd-lowest"),
        pytest.param(Zstd(level=0), 2, Zstd(level=0), id="zstd-default"),
        pytest.param(Blosc(shuffle=-1), 2, Blosc(shuffle=1), id="auto-shuffle-of-words"),
        pytest.param(Blosc(shuffle=-1), 8, Blosc(shuffle=1), id="auto-shuffle-of-eight"),
        pytest.param(Blosc(cname="snappy"), 2, Blosc(cname="lz4"), id="snappy"),
        pytest.param(Lz4(block_size=9), 2, Lz4(block_size=9), id="others-stay"),
    ],
)
def test_parameters_are_brought_into_the_range_of_zarr(
    compression: Compression, item_size: int, expected: Compression
) -> None:
    assert within_zarr_limits(compression, item_size) == expected


BYTES: JSON = {"name": "bytes", "configuration": {"endian": "big"}}


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(["bytes"], [{"name": "bytes"}], True, id="short-name"),
        pytest.param([BYTES], [BYTES, "crc32c"], False, id="one-more"),
        pytest.param([BYTES], ["bytes"], False, id="other-configuration"),
        pytest.param([BYTES, "crc32c"], ["crc32c", BYTES], False, id="other-order"),
    ],
)
def test_chains_are_compared_however_they_are_spelled(
    first: list[JSON], second: list[JSON], *, expected: bool
) -> None:
    assert same_codecs(first, second) is expected
