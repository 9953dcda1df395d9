"""The `compression` object is read as peers write it, and wrong members are errors."""

from __future__ import annotations

import pytest

from n5zarr.errors import N5AttributesError
from n5zarr.format.compression import (
    COMPRESSIONS,
    Blosc,
    Bzip2,
    Compression,
    Gzip,
    Jpeg,
    Lz4,
    Lzma,
    Raw,
    Xz,
    Zstd,
    compression_to_json,
    parse_compression,
)
from n5zarr.format.lenient_json import JSON
from tests.refusals import refused

JAVA_BLOSC: dict[str, JSON] = {
    "type": "blosc", "clevel": 6, "blocksize": 0, "typesize": 1, "cname": "blosclz", "nthreads": 1,
    "shuffle": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({"type": "raw"}, Raw(), id="raw"),
        pytest.param({}, Raw(), id="an-empty-object-is-raw-in-java"),
        pytest.param({"type": "gzip", "useZlib": False, "level": 6}, Gzip(), id="gzip"),
        pytest.param({"type": "gzip", "level": -1}, Gzip(level=-1), id="gzip-before-4"),
        pytest.param({"type": "gzip", "useZlib": True}, Gzip(use_zlib=True), id="zlib"),
        pytest.param({"type": "bzip2", "blockSize": 9}, Bzip2(), id="bzip2"),
        pytest.param({"type": "xz", "preset": 6}, Xz(), id="xz"),
        pytest.param({"type": "lz4", "blockSize": 65536}, Lz4(), id="lz4"),
        pytest.param({"type": "lz4", "blockSize": 9}, Lz4(block_size=9), id="lz4-of-z5"),
        pytest.param({"type": "lz4", "id": "lz4", "acceleration": 1}, Lz4(acceleration=1),
                     id="lz4-of-zarr2"),
        pytest.param(JAVA_BLOSC, Blosc(), id="blosc"),
        pytest.param({"type": "blosc", "cname": "zstd", "clevel": 9, "shuffle": 2,
                      "blocksize": 4096}, Blosc(cname="zstd", clevel=9, shuffle=2, block_size=4096),
                     id="blosc-of-tensorstore"),
        pytest.param({"type": "blosc", "shuffle": -1}, Blosc(shuffle=-1), id="blosc-automatic"),
        pytest.param({"type": "zstd", "level": 3}, Zstd(), id="zstd"),
        pytest.param({"checksum": False, "id": "zstd", "level": 3, "type": "zstd"}, Zstd(),
                     id="zstd-of-zarr2"),
        pytest.param({"type": "zstd", "level": -5}, Zstd(level=-5), id="zstd-negative"),
        pytest.param({"type": "jpeg", "quality": 100, "dataType": "uint8"}, Jpeg(), id="jpeg"),
        pytest.param({"type": "lzma", "format": 2}, Lzma(format=2), id="lzma-of-zarr2"),
        pytest.param({"type": "lzma"}, Lzma(format=1), id="lzma-without-format"),
    ],
)  # fmt: skip
def test_compressions_of_other_writers_are_read(
    written: dict[str, JSON], expected: Compression
) -> None:
    assert parse_compression(written) == expected


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        pytest.param("raw", {"type": "raw"}, id="raw"),
        pytest.param("gzip", {"type": "gzip", "useZlib": False, "level": 6}, id="gzip"),
        pytest.param("bzip2", {"type": "bzip2", "blockSize": 9}, id="bzip2"),
        pytest.param("xz", {"type": "xz", "preset": 6}, id="xz"),
        pytest.param("lz4", {"type": "lz4", "blockSize": 65536}, id="lz4"),
        pytest.param("zstd", {"type": "zstd", "level": 3}, id="zstd"),
        pytest.param("blosc",
                     {"type": "blosc", "cname": "blosclz", "clevel": 6, "shuffle": 0,
                      "blocksize": 0}, id="blosc-without-what-tensorstore-refuses"),
    ],
)  # fmt: skip
def test_absent_members_take_the_defaults_of_java(type_: str, expected: dict[str, JSON]) -> None:
    assert compression_to_json(parse_compression({"type": type_})) == expected


@pytest.mark.parametrize("type_", sorted(COMPRESSIONS))
def test_a_written_compression_is_read_back(type_: str) -> None:
    compression = parse_compression({"type": type_})
    written = compression_to_json(compression)
    assert written["type"] == type_
    assert parse_compression(written) == compression


@pytest.mark.parametrize("level", [3.0, "3", "+3", "03"], ids=repr)
def test_numbers_and_text_are_read_as_integers_like_in_java(level: JSON) -> None:
    parsed = parse_compression({"type": "gzip", "level": level})
    assert parsed == Gzip(level=3)
    assert isinstance(parsed, Gzip)
    assert type(parsed.level) is int


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("TRUE", True), ("false", False), (True, True)]
)
def test_text_is_read_as_a_truth_value_like_in_java(value: JSON, expected: bool) -> None:
    parsed = parse_compression({"type": "gzip", "useZlib": value})
    assert parsed == Gzip(use_zlib=expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("raw", Raw()), ("gzip", Gzip()), ("bzip2", Bzip2()), ("lz4", Lz4()), ("xz", Xz())],
)
def test_the_names_of_version_0_take_default_parameters(name: str, expected: Compression) -> None:
    assert parse_compression(name, ("compressionType",)) == expected


@pytest.mark.parametrize(
    "value", ["zstd", "blosc", "jpeg", "GZIP", "", "nonsense", None, 3, {"type": "gzip"}], ids=repr
)
def test_an_unknown_name_of_version_0_is_an_error(value: JSON) -> None:
    with refused(N5AttributesError, "compression") as caught:
        parse_compression(value, ("compressionType",))
    assert caught.value.problems[0].loc == ("compressionType",)
    assert "expected one of bzip2, gzip, lz4, raw, xz, got " in str(caught.value)


@pytest.mark.parametrize(
    ("value", "loc", "got"),
    [
        pytest.param({"type": "zlib"}, ("compression", "type"), "'zlib'", id="no-type-zlib"),
        pytest.param({"type": "GZIP"}, ("compression", "type"), "'GZIP'", id="upper-case"),
        pytest.param({"type": None}, ("compression", "type"), "None", id="null-type"),
        pytest.param({"type": 7}, ("compression", "type"), "7", id="type-is-a-number"),
        pytest.param({"type": ["gzip"]}, ("compression", "type"), "['gzip']", id="type-is-a-list"),
        pytest.param({"level": 3}, ("compression", "type"), "None", id="members-without-type"),
        pytest.param(None, ("compression",), "None", id="null"),
        pytest.param(5, ("compression",), "5", id="number"),
        pytest.param(True, ("compression",), "True", id="bool"),
        pytest.param(["gzip"], ("compression",), "['gzip']", id="list"),
    ],
)
def test_an_unknown_type_names_what_was_found(value: JSON, loc: tuple[str, ...], got: str) -> None:
    with pytest.raises(N5AttributesError) as caught:
        parse_compression(value)
    (problem,) = caught.value.problems
    assert (problem.loc, problem.kind) == (loc, "compression")
    assert problem.message.endswith(f"got {got}")


def test_an_unknown_type_names_the_known_ones() -> None:
    with pytest.raises(
        N5AttributesError, match="blosc, bzip2, gzip, jpeg, lz4, lzma, raw, xz, zstd"
    ):
        parse_compression({"type": "nonsense"})


@pytest.mark.parametrize(
    ("type_", "member", "low", "high"),
    [
        pytest.param("gzip", "level", -1, 9, id="gzip"),
        pytest.param("bzip2", "blockSize", 1, 9, id="bzip2"),
        pytest.param("xz", "preset", 0, 9, id="xz"),
        pytest.param("blosc", "clevel", 0, 9, id="blosc-clevel"),
        pytest.param("blosc", "shuffle", -1, 2, id="blosc-shuffle"),
        pytest.param("blosc", "blocksize", 0, 2**31 - 1, id="blosc-blocksize"),
        pytest.param("jpeg", "quality", 1, 100, id="jpeg"),
        pytest.param("lzma", "format", 1, 2, id="lzma"),
        pytest.param("zstd", "level", -(2**31), 2**31 - 1, id="zstd"),
    ],
)
def test_parameters_have_the_limits_of_java(type_: str, member: str, low: int, high: int) -> None:
    for value in (low, high):
        parsed = parse_compression({"type": type_, member: value})
        if type_ != "jpeg":
            assert compression_to_json(parsed)[member] == value
    for value in (low - 1, high + 1):
        with refused(N5AttributesError, "compression") as caught:
            parse_compression({"type": type_, member: value})
        assert str(caught.value) == (
            f"compression.{member}: expected an integer from {low} to {high}, got {value}"
        )


@pytest.mark.parametrize(
    "value", [None, True, "3.0", 3.5, [3], {}, float("nan"), float("inf")], ids=repr
)
def test_a_level_that_is_no_integer_is_an_error(value: JSON) -> None:
    with pytest.raises(N5AttributesError) as caught:
        parse_compression({"type": "gzip", "level": value})
    assert caught.value.problems[0].loc == ("compression", "level")
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [None, 0, 1, "yes", "true ", []], ids=repr)
def test_use_zlib_is_a_bool(value: JSON) -> None:
    with refused(N5AttributesError, "compression", "useZlib: expected true or false, got"):
        parse_compression({"type": "gzip", "useZlib": value})


@pytest.mark.parametrize("value", ["ZSTD", "lz5", None, 3, ["zstd"]], ids=repr)
def test_an_unknown_cname_is_an_error(value: JSON) -> None:
    with pytest.raises(N5AttributesError, match="cname: expected one of blosclz, lz4") as caught:
        parse_compression({"type": "blosc", "cname": value})
    assert repr(value) in str(caught.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(N5AttributesError) as caught:
        parse_compression({"type": "blosc", "cname": "x", "clevel": 10, "shuffle": 3})
    assert [p.loc[-1] for p in caught.value.problems] == ["cname", "clevel", "shuffle"]


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(N5AttributesError) as caught:
        parse_compression({"type": "x" * 5000})
    assert len(str(caught.value)) < 300
