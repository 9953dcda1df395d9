"""Whole blocks have known bytes, and wrong headers and sizes are errors."""

from __future__ import annotations

import lzma
import struct
from pathlib import Path

import numpy as np
import pytest

from n5zarr.codecs.block import Block, check_header, decode_numeric, pad_or_truncate, parse_block
from n5zarr.codecs.single_block import decode_block, encode_block
from n5zarr.errors import N5AttributesError, N5BlockError, N5UnrepresentableError
from n5zarr.format.block import BlockHeader, BlockMode
from n5zarr.format.compression import Gzip, Raw
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import CTuple
from tests.refusals import refused
from tests.unit.codecs.streams import packed

REAL = Path(__file__).parents[2] / "data" / "real"
RUST, TENSORSTORE = REAL / "aschampion+rust-n5", REAL / "google+tensorstore" / "golden"
RAW: dict[str, JSON] = {"type": "raw"}
# the example of the specification: x=1, y=2, z=3 and 1..6 with x fastest
EXAMPLE = bytes.fromhex("0000 0003 00000001 00000002 00000003 0001 0002 0003 0004 0005 0006")
EXAMPLE_C = np.array([[[1], [2]], [[3], [4]], [[5], [6]]], "u2")


GOLDEN = {
    "rust-raw": (RUST / "TEST_BLOCK_I16_RAW.block", "raw"),
    "rust-gzip": (RUST / "TEST_BLOCK_I16_GZIP.block", "gzip"),
    "rust-bzip2": (RUST / "TEST_BLOCK_I16_BZIP2.block", "bzip2"),
    "rust-xz": (RUST / "TEST_BLOCK_I16_XZ.block", "xz"),
    "rust-lz4": (RUST / "TEST_BLOCK_I16_LZ4.block", "lz4"),
    "rust-lz4-pure": (RUST / "TEST_BLOCK_I16_LZ4_pure.block", "lz4"),
    "tensorstore-raw": (TENSORSTORE / "metadata_test_0_kData.block", "raw"),
    **{f"tensorstore-{type_}": (TENSORSTORE / f"{type_}_compressor_test_0_kData.block", type_)
       for type_ in ("gzip", "bzip2", "xz", "blosc")},
}  # fmt: skip


@pytest.mark.parametrize(("path", "type_"), GOLDEN.values(), ids=GOLDEN)
@pytest.mark.parametrize("data_type", ["uint16", "int16"])
def test_the_example_of_the_specification_is_read(path: Path, type_: str, data_type: str) -> None:
    array = decode_block(path.read_bytes(), data_type=data_type, compression={"type": type_})
    assert array.dtype == np.dtype(data_type)
    np.testing.assert_array_equal(array, EXAMPLE_C)


@pytest.mark.parametrize(("path", "type_"), GOLDEN.values(), ids=GOLDEN)
def test_axis_order_f_has_x_first(path: Path, type_: str) -> None:
    array = decode_block(
        path.read_bytes(), data_type="uint16", compression={"type": type_}, axis_order="F"
    )
    assert array.shape == (1, 2, 3)
    assert array.tolist() == [[[1, 3, 5], [2, 4, 6]]]


def test_the_partial_block_of_tensorstore_is_read() -> None:
    block = (TENSORSTORE / "metadata_test_1_kData.block").read_bytes()
    array = decode_block(block, data_type="uint16", compression=RAW, axis_order="F")
    assert array.tolist() == [[[1, 3], [2, 4]]]


@pytest.mark.parametrize("type_", ["raw", "xz"])
def test_the_example_of_the_specification_is_written(type_: str) -> None:
    golden = {"raw": "metadata_test_0", "xz": "xz_compressor_test_0"}
    expected = (TENSORSTORE / f"{golden[type_]}_kData.block").read_bytes()
    assert encode_block(EXAMPLE_C, compression={"type": type_}) == expected
    in_f = np.asfortranarray(EXAMPLE_C.transpose())
    assert encode_block(in_f, compression={"type": type_}, axis_order="F") == expected


@pytest.mark.parametrize("order", [">", "<"])
def test_any_byte_order_is_written_big_endian(order: str) -> None:
    array = EXAMPLE_C.astype(np.dtype("u2").newbyteorder(order))  # type: ignore[arg-type]
    assert encode_block(array, compression=RAW) == EXAMPLE


def test_views_are_written_by_their_elements() -> None:
    wide = np.zeros((3, 4, 2), "u2")
    wide[:, ::2, 1:] = EXAMPLE_C
    assert encode_block(wide[:, ::2, 1:], compression=RAW) == EXAMPLE


@pytest.mark.parametrize("data_type", [d.value for d in DataType if d.is_numeric])
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_every_data_type_comes_back(data_type: str, axis_order: str) -> None:
    dtype = np.dtype(data_type)
    if dtype.kind == "f":
        flat = np.array([0.0, -0.0, 1.5, -np.inf, np.nan, np.finfo(dtype).max], dtype)
    else:
        info = np.iinfo(dtype)
        flat = np.array([info.min, info.max, 0, 1, 2, 3], dtype)
    array = flat.reshape(2, 3)
    block = encode_block(array, compression=RAW, axis_order=axis_order)  # type: ignore[arg-type]
    decoded = decode_block(block, data_type=data_type, compression=RAW, axis_order=axis_order)  # type: ignore[arg-type]
    assert decoded.dtype == dtype
    assert decoded.tobytes() == array.tobytes()


def test_nan_payloads_are_kept() -> None:
    bits = bytes.fromhex("7fc00001 ffc12345 7f800001")
    block = bytes.fromhex("0000 0001 00000003") + bits
    decoded = decode_block(block, data_type="float32", compression=RAW)
    assert decoded.view("u4").astype(">u4").tobytes() == bits


def test_decoded_blocks_can_be_written_to() -> None:
    decoded = decode_block(EXAMPLE, data_type="uint16", compression=RAW)
    decoded[...] = 0
    assert decode_block(EXAMPLE, data_type="uint16", compression=RAW).max() == 6


VARLENGTH = bytes.fromhex("0001 0003 00000001 00000002 00000003 00000006")
SAME: dict[str, bytes | bytearray | memoryview] = {
    "bytes": EXAMPLE,
    "bytearray": bytearray(EXAMPLE),
    "memoryview": memoryview(EXAMPLE),
    "bytes-behind": EXAMPLE + b"trailing",
    "varlength-with-the-count-of-its-box": VARLENGTH + EXAMPLE[16:],
}


@pytest.mark.parametrize("block", SAME.values(), ids=SAME)
def test_any_buffer_with_the_block_is_read(block: bytes | bytearray | memoryview) -> None:
    decoded = decode_block(block, data_type="uint16", compression=RAW)
    np.testing.assert_array_equal(decoded, EXAMPLE_C)


@pytest.mark.parametrize("count", [0, 5, 7])
def test_another_count_than_the_box_is_named(count: int) -> None:
    head = bytes.fromhex("0001 0003 00000001 00000002 00000003") + struct.pack(">I", count)
    with refused(N5BlockError, "varlength") as caught:
        decode_block(head + EXAMPLE[16:] + b"\0\7", data_type="uint16", compression=RAW)
    expected = f"expected 6 elements for the box (1, 2, 3), got {count} (varlength)"
    assert expected in str(caught.value)


U2, STRING, OBJECT = DataType.UINT16, DataType.STRING, DataType.OBJECT
MISFITS = {
    "ndim-2": ("0000 0002 00000003 00000002", U2, "expected 3 dimensions, got 2"),
    "ndim-5": ("0000 0005" + "00000001" * 5, U2, "expected 3 dimensions, got 5"),
    "ndim-0": ("0000 0000 0001 0002", U2, "expected 3 dimensions, got 0"),
    "ndim-65535": ("0000 ffff" + "00000001" * 65535, U2, "expected 3 dimensions, got 65535"),
    "ndim-of-strings": ("0001 0002 00000003 00000002 00000006", STRING,
                        "expected 3 dimensions, got 2"),
    "size-0": ("0000 0003 00000001 00000000 00000003", U2,
               "expected sizes of at least 1, got (1, 0, 3)"),
    "size-absurd": ("0000 0003 ffffffff ffffffff ffffffff", U2,
                    "expected at most 2147483647 bytes"),
    "size-2-GiB": ("0000 0003 00000001 00000001 20000000", DataType.FLOAT32,
                   "expected at most 2147483647 bytes, got 2147483648"),
    "count-absurd": ("0001 0003 00000001 00000001 00000001 ffffffff", DataType.UINT8,
                     "expected at most 2147483647 bytes, got 4294967295"),
    "object-mode-for-numbers": ("0002 00000004", U2, "mode: expected 0 or 1 for uint16, got 2"),
    "object-mode-for-strings": ("0002 00000004", STRING, "mode: expected 0 or 1 for string, got 2"),
    "default-mode-for-objects": ("0000 0001 00000004", OBJECT,
                                 "mode: expected 2 for object, got 0"),
    "varlength-mode-for-objects": ("0001 0001 00000004 00000004", OBJECT,
                                   "mode: expected 2 for object, got 1"),
}  # fmt: skip


@pytest.mark.parametrize(("header", "data_type", "message"), MISFITS.values(), ids=MISFITS)
def test_a_header_that_does_not_fit_the_dataset_is_named(
    header: str, data_type: DataType, message: str
) -> None:
    parsed = BlockHeader.from_bytes(bytes.fromhex(header))
    with refused(N5BlockError, "header") as caught:
        check_header(parsed, 3, data_type)
    assert str(caught.value).startswith(f"block header: {message}")


FITS = {
    "just-below-2-GiB": ("0000 0001 1fffffff", DataType.FLOAT32),
    "no-elements": ("0001 0001 00000001 00000000", DataType.UINT8),
    "empty-object": ("0002 00000000", DataType.OBJECT),
    "strings-of-n5-3": ("0000 0001 00000004", DataType.STRING),
}


@pytest.mark.parametrize(("header", "data_type"), FITS.values(), ids=FITS)
def test_a_header_that_fits_passes(header: str, data_type: DataType) -> None:
    check_header(BlockHeader.from_bytes(bytes.fromhex(header)), 1, data_type)


@pytest.mark.parametrize("ndim", [0, 65, 500, 65535])
@pytest.mark.parametrize("size", [1, 2**32 - 1])
def test_a_block_of_no_or_too_many_dimensions_is_an_error(ndim: int, size: int) -> None:
    block = struct.pack(f">HH{ndim}I", 0, ndim, *[size] * ndim) + b"\0\1"
    with refused(N5BlockError, "header"):
        decode_block(block, data_type="uint16", compression=RAW)


@pytest.mark.parametrize("data_type", ["string", "uint16"])
def test_object_blocks_are_no_arrays(data_type: str) -> None:
    with pytest.raises(N5BlockError, match="mode: expected 0 or 1"):
        decode_block(bytes.fromhex("0002 00000002 0001"), data_type=data_type, compression=RAW)


def test_a_raw_block_cut_anywhere_is_an_error() -> None:
    for length in range(len(EXAMPLE)):
        with refused(N5BlockError, "header" if length < 16 else "payload"):
            decode_block(EXAMPLE[:length], data_type="uint16", compression=RAW)


def test_a_block_of_no_bytes_is_an_error() -> None:
    with pytest.raises(N5BlockError, match="expected 4 bytes for the shortest header, got 0"):
        decode_block(b"", data_type="uint16", compression=RAW)


def test_numbers_are_decoded_without_a_copy() -> None:
    view = memoryview(EXAMPLE)
    array = decode_numeric(view, 3, DataType.UINT16, Raw())
    assert array.dtype == np.dtype(">u2")
    assert np.shares_memory(array, np.frombuffer(EXAMPLE, "u1"))


@pytest.mark.parametrize("data_type", ["UINT8", "float16", "object", "bool", "", "complex64"])
def test_an_unknown_data_type_is_named(data_type: str) -> None:
    with refused(N5UnrepresentableError, "data-type", "data type: expected one of uint8") as caught:
        decode_block(EXAMPLE, data_type=data_type, compression=RAW)
    assert repr(data_type) in str(caught.value)


@pytest.mark.parametrize(
    "dtype", ["bool", "float16", "complex64", "datetime64[s]", "S3", [("a", "u1")], "V2"], ids=str
)
def test_a_dtype_that_n5_does_not_have_is_named(dtype: object) -> None:
    array = np.zeros(3, np.dtype(dtype))  # type: ignore[call-overload]
    with refused(N5UnrepresentableError, "data-type", "convert to one of these first"):
        encode_block(array, compression=RAW)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)], ids=str)
def test_an_array_without_elements_or_axes_is_no_block(shape: tuple[int, ...]) -> None:
    with refused(N5UnrepresentableError, "header", "expected at least one dimension") as caught:
        encode_block(np.zeros(shape, "u1"), compression=RAW)
    assert f"block of shape {shape} and " in str(caught.value)


@pytest.mark.parametrize(
    "compression", [{"type": "nonsense"}, {"type": "gzip", "level": 99}, {"level": 3}]
)
def test_an_unknown_compression_is_an_error_both_ways(compression: dict[str, JSON]) -> None:
    with refused(N5AttributesError, "compression"):
        decode_block(EXAMPLE, data_type="uint16", compression=compression)
    with pytest.raises(N5AttributesError):
        encode_block(EXAMPLE_C, compression=compression)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((2, 3), [[1, 2, 3], [4, 5, 6]]),
        ((3, 4), [[1, 2, 3, 9], [4, 5, 6, 9], [9, 9, 9, 9]]),
        ((1, 2), [[1, 2]]),
        ((3, 2), [[1, 2], [4, 5], [9, 9]]),
        ((1, 4), [[1, 2, 3, 9]]),
    ],
    ids=["same", "padded", "cropped", "rows-padded", "columns-padded"],
)
def test_a_block_is_brought_to_the_shape_of_its_cell(
    shape: CTuple, expected: list[list[int]]
) -> None:
    block = np.array([[1, 2, 3], [4, 5, 6]], ">u2")
    fitted = pad_or_truncate(block, shape, 9)
    assert fitted.dtype == block.dtype
    assert fitted.tolist() == expected
    assert (fitted is block) is (shape == block.shape)


def test_a_cell_of_two_gigabytes_is_not_allocated() -> None:
    with refused(N5BlockError, "header", r"blockSize \(2147483647, 2\) with 4294967294"):
        pad_or_truncate(np.zeros((1, 1), "u1"), CTuple((2, 2**31 - 1)), 0)


PARSED = {
    "fewer": ("0001 0002 00000002 00000002 00000003", [1, 2, 3]),
    "exact": ("0001 0002 00000002 00000002 00000004", [1, 2, 3, 4]),
    "more": ("0001 0002 00000002 00000002 00000007", [1, 2, 3, 4, 5, 6, 7]),
    "none": ("0001 0002 00000002 00000002 00000000", []),
    "default": ("0000 0002 00000002 00000002", [1, 2, 3, 4]),
}


@pytest.mark.parametrize(("header", "values"), PARSED.values(), ids=PARSED)
def test_a_block_of_numbers_is_parsed_as_it_is(header: str, values: list[int]) -> None:
    data = bytes.fromhex(header) + np.array(values, ">u2").tobytes()
    block = parse_block(data, 2, DataType.UINT16, Raw())
    assert isinstance(block, Block)
    assert block.header == BlockHeader.from_bytes(data)
    assert isinstance(block.data, np.ndarray)
    assert block.data.dtype == np.dtype("u2")
    assert block.data.tolist() == values


@pytest.mark.parametrize("content", [bytes.fromhex("deadbeef00ff"), b""], ids=["six", "none"])
@pytest.mark.parametrize("compression", [Raw(), Gzip()], ids=["raw", "gzip"])
def test_an_object_is_parsed_as_bytes(content: bytes, compression: Raw | Gzip) -> None:
    header = BlockHeader(mode=BlockMode.OBJECT, n_elements=len(content))
    data = header.to_bytes() + packed(content, compression)
    assert parse_block(data, 5, DataType.OBJECT, compression).data == content


def test_a_block_of_strings_is_parsed_as_a_list() -> None:
    data = bytes.fromhex("0001 0001 00000003 00000003") + b"a\0b"
    assert parse_block(data, 1, DataType.STRING, Raw()).data == ["a", "b", ""]


def test_options_outside_their_vocabulary_are_refused() -> None:
    array = np.zeros((2, 3), "u1")
    with pytest.raises(N5UnrepresentableError, match="axis_order: expected 'C' or 'F', got 'c'"):
        encode_block(array, compression={"type": "raw"}, axis_order="c")  # type: ignore[arg-type]
    block = encode_block(array, compression={"type": "raw"})
    with pytest.raises(N5UnrepresentableError, match="axis_order"):
        decode_block(block, data_type="uint8", compression={"type": "raw"}, axis_order="Z")  # type: ignore[arg-type]
    with pytest.raises(N5AttributesError, match="compression: expected an object, got 'raw'"):
        decode_block(block, data_type="uint8", compression="raw")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [1, 2])
def test_lzma_of_zarr_2_is_written_too(form: int) -> None:
    array = np.arange(15, dtype="uint16").reshape(5, 3)
    how: dict[str, JSON] = {"type": "lzma", "format": form}
    block = encode_block(array, compression=how)
    assert lzma.decompress(block[12:], {1: lzma.FORMAT_XZ, 2: lzma.FORMAT_ALONE}[form]) == (
        array.astype(">u2").tobytes()
    )
    np.testing.assert_array_equal(decode_block(block, data_type="uint16", compression=how), array)


def test_lists_are_encoded() -> None:
    block = encode_block([[1, 2, 3], [4, 5, 6]], compression=RAW)
    assert block == bytes.fromhex("0000 0002 00000003 00000002") + struct.pack(">6q", *range(1, 7))
