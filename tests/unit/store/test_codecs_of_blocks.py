"""Codecs of whole blocks, for zarr and for numcodecs, compared with bytes of the specification."""

from __future__ import annotations

import asyncio
import gzip
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu, default_buffer_prototype
from zarr.storage import MemoryStore

from n5zarr import N5Store
from n5zarr._zarr import chunk_spec
from n5zarr.errors import N5BlockError, N5Error, N5UnrepresentableError
from n5zarr.format.compression import Bzip2, Gzip, Raw, Zstd
from n5zarr.store.block_codec import N5Block, N5BlockCodec
from n5zarr.store.n5_default import N5DefaultCodec
from tests.refusals import refused
from tests.unit.store.made import EDGE, FULL, block, memory

NAME = "n5zarr.block"
VALUES = np.array(FULL, "u2")
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}


def spec(shape: tuple[int, ...] = (2, 3), dtype: str = "u2", fill: Any = 0) -> Any:
    array = zarr.create_array(MemoryStore(), shape=shape, dtype=dtype, fill_value=fill)
    return chunk_spec(array, shape, default_buffer_prototype())


def run(codec: N5BlockCodec, how: str, given: Any, made: Any, *more: Any) -> Any:
    """Call a method of zarr's, with and without await."""
    if how == "await":
        return asyncio.run(getattr(codec, f"_{more[0]}_single")(given, *more[1:], made))
    return getattr(codec, f"_{more[0]}_sync")(given, *more[1:], made)


@pytest.mark.parametrize("how", ["await", "sync"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_block_of_the_specification_is_decoded_and_encoded(how: str, order: Any) -> None:
    codec = N5BlockCodec(Raw(), order)
    values = VALUES if order == "C" else VALUES.T
    made = spec(values.shape)
    stored = cpu.Buffer.from_bytes(block(FULL))
    decoded = run(codec, how, stored, made, "decode").as_numpy_array()
    np.testing.assert_array_equal(decoded, values)
    encoded = run(codec, how, cpu.NDBuffer.from_numpy_array(values), made, "encode")
    assert encoded.to_bytes() == block(FULL)


@pytest.mark.parametrize(("fill", "expected"), [(None, 0), (9, 9)])
def test_a_short_block_is_padded_with_the_fill_value(fill: Any, expected: int) -> None:
    made = spec((3, 5))
    object.__setattr__(made, "fill_value", fill)
    stored = cpu.Buffer.from_array_like(np.frombuffer(block(FULL), "u1"))
    decoded = N5BlockCodec(Raw())._decode_sync(stored, made).as_numpy_array()
    padded = np.full((3, 5), expected)
    padded[:2, :3] = FULL
    np.testing.assert_array_equal(decoded, padded)


class Getter:
    """A source of bytes, as zarr gives codecs."""

    def __init__(self, data: bytes | None, **named: object) -> None:
        self.data = data
        self.__dict__.update(named)

    async def get(self, prototype: Any) -> Any:
        return self.get_sync(prototype=prototype)

    def get_sync(self, *, prototype: Any) -> Any:
        return None if self.data is None else prototype.buffer.from_bytes(self.data)

    def __str__(self) -> str:
        return "the source"


@pytest.mark.parametrize("how", ["await", "sync"])
def test_a_part_is_decoded_and_an_error_names_the_block(how: str) -> None:
    codec, selection = N5BlockCodec(Raw()), (slice(1, 2), slice(None))

    def part(getter: Getter) -> Any:
        return run(codec, how, getter, spec(), "decode_partial", selection)

    assert part(Getter(None)) is None
    np.testing.assert_array_equal(part(Getter(block(FULL))).as_numpy_array(), [[4, 5, 65535]])
    store = N5Store(memory())
    store.node("g/a")
    for getter, where in [
        (Getter(b"\0"), "a block in a shard: "),
        (Getter(b"\0", store=MemoryStore()), "the source: "),
        (Getter(b"\0", store=store, path="g/a/c/1/2"), f"{store}: g/a: block 2/1: "),
        (Getter(b"\0", store=SimpleNamespace(locate=len)), "0: "),
    ]:
        with pytest.raises(N5BlockError) as caught:
            part(getter)
        assert str(caught.value).startswith(where)


def test_the_size_of_a_block_is_not_known_before() -> None:
    with pytest.raises(NotImplementedError):
        N5BlockCodec().compute_encoded_size(12, spec())


@pytest.mark.parametrize(
    ("given", "codec"),
    [
        ({"name": NAME}, N5BlockCodec(Gzip(), "C")),
        ({"name": NAME, "configuration": {"axis_order": "F", "compression": {"type": "raw"}}},
         N5BlockCodec(Raw(), "F")),
        ({"configuration": {"compression": {"type": "bzip2", "blockSize": 5}}},
         N5BlockCodec(Bzip2(block_size=5))),
    ],
)  # fmt: skip
def test_a_configuration_is_parsed_and_written_back(given: Any, codec: N5BlockCodec) -> None:
    assert N5BlockCodec.from_dict(given) == codec
    written = codec.to_dict()
    assert N5BlockCodec.from_dict(written) == codec
    assert written["name"] == NAME
    assert written["configuration"]["axis_order"] == codec.axis_order


@pytest.mark.parametrize(
    ("configuration", "match"),
    [
        ([], "expected compression and axis_order, got \\[\\]"),
        ({"compresion": {}}, "expected compression and axis_order, got"),
        ({"axis_order": "c"}, "axis_order: expected 'C' or 'F', got 'c'"),
        ({"compression": {"type": "unknown"}}, "unknown"),
    ],
)
def test_a_wrong_configuration_is_refused(configuration: Any, match: str) -> None:
    with pytest.raises(N5Error, match=match):
        N5BlockCodec.from_dict({"name": NAME, "configuration": configuration})


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 5)])
def test_standard_codecs_have_the_bytes_of_the_payload(shape: Any, order: Any) -> None:
    """An array of plain zarr with these codecs holds the payload of the block."""
    values = np.arange(np.prod(shape), dtype="u2").reshape(shape)
    codec, made = N5BlockCodec(Raw(), order), spec(shape)
    standard: Any = codec.standard(len(shape), values.dtype)
    store = MemoryStore()
    array = zarr.create_array(
        store, shape=shape, chunks=shape, dtype="u2", compressors=None,
        filters=[zarr.codecs.TransposeCodec(**each["configuration"]) for each in standard[:-1]],
        serializer=zarr.codecs.BytesCodec(**standard[-1]["configuration"]),
    )  # fmt: skip
    array[...] = values
    (key,) = [key for key in store._store_dict if key.startswith("c")]
    payload = store._store_dict[key].to_bytes()
    encoded = codec._encode_sync(cpu.NDBuffer.from_numpy_array(values), made)
    assert encoded.to_bytes()[4 + 4 * len(shape) :] == payload
    with_gzip: Any = N5BlockCodec(Gzip()).standard(1, values.dtype)
    assert with_gzip[-1]["name"] == "gzip"


@pytest.mark.parametrize("codec", [N5BlockCodec(), N5DefaultCodec(codecs=(TRANSPOSE, BIG))])
def test_arrays_that_blocks_cannot_hold_are_refused(codec: N5BlockCodec) -> None:
    def validate(dtype: str, *shape: int) -> None:
        array: Any = zarr.create_array(MemoryStore(), shape=(3, 5), dtype=dtype)
        grid = array.metadata.chunk_grid
        codec.validate(shape=shape, dtype=array.metadata.dtype, chunk_grid=grid)

    for dtype in ("u1", "<i8", ">f4", "f8"):
        validate(dtype, 3, 5)
    for dtype, shape, kind, match in [
        ("c8", (3, 5), "data-type", "dtype complex64: expected"),
        ("bool", (3, 5), "data-type", "dtype bool: expected"),
        ("u1", (), "header", "at least one dimension"),
    ]:
        with refused(N5UnrepresentableError, kind, match):
            validate(dtype, *shape)


# ------------------------------------------------------------------------------------- n5_default


@pytest.mark.parametrize(
    ("last", "compression"),
    [
        ([], Raw()),
        ([{"name": "gzip", "configuration": {"level": 3}}], Gzip(level=3)),
        ([{"name": "zstd", "configuration": {"level": 5, "checksum": False}}], Zstd(level=5)),
        ([{"name": "numcodecs.bz2", "configuration": {"level": 4}}], Bzip2(block_size=4)),
        ([{"name": "numcodecs.zlib", "configuration": {"level": 2}}], Gzip(level=2, use_zlib=True)),
    ],
)
def test_the_registered_codec_is_parsed_and_written_back(last: Any, compression: Any) -> None:
    given: Any = {"name": "n5_default", "configuration": {"codecs": [TRANSPOSE, BIG, *last]}}
    codec = N5DefaultCodec.from_dict(given)
    assert (codec.compression, codec.axis_order) == (compression, "F")
    assert codec.to_dict() == given


def test_names_alone_are_codecs() -> None:
    codec = N5DefaultCodec.from_dict({"configuration": {"codecs": ["transpose", "bytes"]}})
    assert codec.codecs == ({"name": "transpose"}, {"name": "bytes"})


@pytest.mark.parametrize(
    ("codecs", "match"),
    [
        (None, "expected transpose, bytes in big endian and at most one compressor, got None"),
        ("transpose", "got 'transpose'"),
        ([], "got \\[\\]"),
        ([TRANSPOSE], "transpose, bytes in big endian"),
        ([BIG, TRANSPOSE], "transpose, bytes in big endian"),
        ([TRANSPOSE, {"name": "bytes", "configuration": {"endian": "little"}}], "big endian"),
        ([TRANSPOSE, BIG, "gzip", "gzip"], "at most one compressor"),
        ([TRANSPOSE, BIG, "crc32c"], "expected one compressor of gzip, blosc, zstd, .*'crc32c'"),
        ([TRANSPOSE, BIG, {"name": "crc32c"}], "expected one compressor"),
        ([TRANSPOSE, BIG, {"name": "numcodecs.lz4"}], "expected one compressor"),
        ([TRANSPOSE, BIG, 5], "expected one compressor"),
        ([TRANSPOSE, BIG, {"name": "blosc", "configuration": {"cname": "zzz"}}],
         "expected a compressor that zarr knows"),
        ([TRANSPOSE, BIG, {"name": "gzip", "configuration": {"level": 10}}],
         "expected a compressor that zarr knows"),
    ],
)  # fmt: skip
def test_other_codecs_than_those_of_n5_are_refused(codecs: Any, match: str) -> None:
    with refused(N5UnrepresentableError, "option", match) as caught:
        N5DefaultCodec.from_dict({"configuration": {"codecs": codecs}})
    assert str(caught.value).startswith("codec n5_default: ")


@pytest.mark.parametrize("order", [None, "10", [0, 1], [1, 0, 2], {"1": 0}])
def test_the_axes_are_all_transposed(order: Any) -> None:
    first = {"name": "transpose", "configuration": {"order": order}}
    codec = N5DefaultCodec(codecs=(first, BIG))
    array: Any = zarr.create_array(MemoryStore(), shape=(3, 5), dtype="u1")
    options = {"dtype": array.metadata.dtype, "chunk_grid": array.metadata.chunk_grid}
    with pytest.raises(N5UnrepresentableError, match=r"the order \[1, 0\] of transpose"):
        codec.validate(shape=(3, 5), **options)


# -------------------------------------------------------------------------------------- numcodecs


def stored_gzip(values: Any) -> bytes:
    raw = block(values)
    return raw[:12] + gzip.compress(raw[12:])


@pytest.mark.parametrize(
    "given",
    [VALUES, VALUES.T, np.asfortranarray(VALUES).T, VALUES.astype(">u2"), VALUES.tobytes(),
     VALUES[:, ::-1].ravel()[::-1].reshape(2, 3)[::-1]],
)  # fmt: skip
def test_elements_are_taken_in_the_order_of_memory(given: Any) -> None:
    elements = np.frombuffer(given, "u2") if isinstance(given, bytes) else given
    codec = N5Block(elements.dtype, iter((2, 3)), {"type": "raw"})
    assert codec.encode(given) == block(elements.ravel(order="K").reshape(2, 3))


def test_other_elements_are_reinterpreted() -> None:
    given = VALUES.view("u1").reshape(-1)
    assert N5Block("<u2", (2, 3), {"type": "raw"}).encode(given) == block(FULL)


def test_a_block_of_numcodecs_is_decoded() -> None:
    codec = N5Block("<u2", (2, 3))
    for given in (stored_gzip(FULL), memoryview(bytearray(stored_gzip(FULL)))):
        found = codec.decode(given)
        assert (found.dtype, found.tolist()) == (np.dtype("<u2"), [1, 2, 3, 4, 5, 65535])
    assert codec.decode(stored_gzip(EDGE)).tolist() == [7, 0, 0, 8, 0, 0]
    out = np.zeros((2, 3), "<u2")
    assert codec.decode(stored_gzip(FULL), out) is out
    np.testing.assert_array_equal(out, VALUES)
    as_bytes = bytearray(12)
    assert codec.decode(stored_gzip(FULL), np.frombuffer(as_bytes, "u1")) is not None
    assert bytes(as_bytes) == VALUES.astype("<u2").tobytes()
    with pytest.raises(N5BlockError, match="expected 2 dimensions, got 1"):
        codec.decode(block([1, 2]))


def test_the_configuration_of_numcodecs() -> None:
    codec = N5Block("<u2", (2, 3), {"type": "bzip2", "blockSize": 4})
    config: Any = codec.get_config()
    assert config == {
        "id": "n5zarr_block", "dtype": "<u2", "block_shape": [2, 3],
        "compression": {"type": "bzip2", "blockSize": 4},
    }  # fmt: skip
    again = N5Block(**{key: value for key, value in config.items() if key != "id"})
    assert again.encode(VALUES) == codec.encode(VALUES)
    with pytest.raises(N5UnrepresentableError, match="dtype complex64"):
        N5Block("c8", (2,))
