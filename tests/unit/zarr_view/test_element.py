"""Elements have the bytes of IEEE 754, numpy's documentation and the N5 specification."""

from __future__ import annotations

import numpy as np
import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.element import Element
from tests.refusals import refused

FIELDS = np.dtype([("a", "<i4"), ("b", "u1")])


def element(dtype: str | np.dtype[np.generic], fill_value: object = 0) -> Element:
    return Element(dtype=np.dtype(dtype), fill_value=fill_value)


@pytest.mark.parametrize(
    ("dtype", "stored", "n_parts"),
    [
        *(pytest.param(name, name, None,
                       id=name) for name in (*("uint8", "uint16", "uint32", "uint64"),
                                             *("int8", "int16", "int32", "int64", "float32",
                                               "float64"))),
        pytest.param("bool", "uint8", None, id="bool"),
        pytest.param("float16", "float32", None, id="float16"),
        pytest.param("complex64", "float32", 2, id="complex64"),
        pytest.param("complex128", "float64", 2, id="complex128"),
        pytest.param("datetime64[ns]", "int64", None, id="datetime64"),
        pytest.param("timedelta64[D]", "int64", None, id="timedelta64"),
        pytest.param("S3", "uint8", 3, id="fixed-bytes"),
        pytest.param("V5", "uint8", 5, id="raw-bytes"),
        pytest.param("U7", "uint32", 7, id="fixed-text"),
        pytest.param(FIELDS, "uint8", 5, id="struct"),
        pytest.param("O", "object", None, id="bytes-of-any-length"),
    ],
)  # fmt: skip
def test_each_type_is_kept_as_the_nearest_of_n5(
    dtype: str | np.dtype[np.generic], stored: str, n_parts: int | None
) -> None:
    own = element(dtype)
    assert (own.stored.value, own.n_parts) == (stored, n_parts)
    assert own.is_native == (dtype == stored)


def test_text_of_any_length_is_a_string() -> None:
    assert (Element.text().stored.value, Element.text().n_parts) == ("string", None)


@pytest.mark.parametrize("dtype", ["S0", "clongdouble", "longdouble"])
def test_a_type_that_n5_cannot_keep_is_refused(dtype: str) -> None:
    with refused(N5UnrepresentableError, "data-type"):
        _ = element(dtype).stored


# the stored numbers of some elements
STORED: list[object] = [
    pytest.param("bool", [True, False], "u1", [1, 0], id="bool"),
    pytest.param("complex64", [1 + 2j, 3 - 4j], "f4", [[1, 2], [3, -4]], id="complex64"),
    pytest.param("float16", [0.5, -65504], "f4", [0.5, -65504], id="float16"),
    pytest.param("datetime64[D]", [1, 365], "i8", [1, 365], id="days-since-1970"),
    pytest.param("S3", [b"ab", b"xyz"], "u1", [[97, 98, 0], [120, 121, 122]], id="fixed-bytes"),
    pytest.param("U2", ["a", "\u00fc\u20ac"], "u4", [[97, 0], [0xFC, 0x20AC]], id="code-points"),
    pytest.param(FIELDS, [(258, 7)], "u1", [[2, 1, 0, 0, 7]], id="struct-is-little-endian"),
]


@pytest.mark.parametrize(("dtype", "values", "stored_dtype", "stored"), STORED)
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_elements_are_stored_and_read_back(
    dtype: str | np.dtype[np.generic],
    values: list[object],
    stored_dtype: str,
    stored: list[object],
    byte_order: str,
) -> None:
    own = element(dtype)
    array = np.array(values, own.dtype).astype(own.dtype.newbyteorder(byte_order))  # type: ignore[arg-type]
    kept = own.to_stored(array)
    assert (kept.dtype.newbyteorder("="), kept.tolist()) == (np.dtype(stored_dtype), stored)
    big = np.array(stored, stored_dtype).astype(np.dtype(stored_dtype).newbyteorder(">"))
    read = own.from_stored(big)
    assert read.shape == array.shape
    assert read.tolist() == array.tolist()


def test_other_numbers_than_0_and_1_are_true() -> None:
    assert element("bool").from_stored(np.array([0, 1, 2, 255], "u1")).tolist() == [
        False, True, True, True,
    ]  # fmt: skip


# IEEE 754: sign, exponent of ones, payload; a half's payload of 10 bits stands above 13 zero bits
NANS = [(0x7E00, 0x7FC00000), (0x7C01, 0x7F802000), (0xFE03, 0xFFC06000)]


@pytest.mark.parametrize(("half", "single"), NANS, ids=["quiet", "signalling", "negative"])
def test_the_payload_of_a_nan_is_kept(half: int, single: int) -> None:
    own = element("float16")
    kept = own.to_stored(np.array([half], "u2").view("f2"))
    assert kept.view("u4").tolist() == [single]
    assert own.from_stored(kept).view("u2").tolist() == [half]


@pytest.mark.parametrize(
    ("dtype", "v2_dtype", "byte_order"),
    [
        pytest.param("uint16", ">u2", "big", id="number"),
        pytest.param("uint8", "|u1", "big", id="one-byte"),
        pytest.param("bool", "|b1", "big", id="bool"),
        pytest.param("datetime64[ns]", ">M8[ns]", "big", id="time"),
        pytest.param("U2", ">U2", "big", id="text"),
        pytest.param(FIELDS, [["a", "<i4"], ["b", "|u1"]], "little", id="struct"),
        pytest.param("O", "|O", "big", id="object"),
    ],
)
def test_the_v2_dtype_is_that_of_what_is_stored(
    dtype: str | np.dtype[np.generic], v2_dtype: JSON, byte_order: str
) -> None:
    assert element(dtype).v2_dtype == v2_dtype
    assert element(dtype).byte_order == byte_order
    assert element(dtype).matches_v2_dtype(v2_dtype)


@pytest.mark.parametrize(
    ("dtype", "spelled", "expected"),
    [
        pytest.param("uint16", "<u2", True, id="swapped"),
        pytest.param("uint16", "<i2", False, id="other-kind"),
        pytest.param("uint16", "no dtype", False, id="no-dtype"),
        pytest.param("float64", None, False, id="null-is-not-float64"),
        pytest.param("O", "|O", True, id="object"),
    ],
)
def test_a_spelling_is_recognized_in_any_byte_order(
    dtype: str, spelled: JSON, *, expected: bool
) -> None:
    assert element(dtype).matches_v2_dtype(spelled) is expected


@pytest.mark.parametrize(
    ("dtype", "fill_value", "expected"),
    [
        pytest.param("uint16", 0, True, id="zero"),
        pytest.param("uint16", 256, False, id="not-zero"),
        pytest.param("float32", -0.0, False, id="negative-zero-has-a-bit"),
        pytest.param("bool", False, True, id="false"),
        pytest.param("complex64", 1j, False, id="imaginary"),
        pytest.param("datetime64[s]", np.datetime64("NaT", "s"), False, id="not-a-time"),
        pytest.param("S3", b"", True, id="empty-bytes"),
        pytest.param("O", b"", True, id="empty-object"),
        pytest.param("O", b"x", False, id="object"),
    ],
)
def test_whether_missing_elements_read_as_zero(
    dtype: str, fill_value: object, *, expected: bool
) -> None:
    assert element(dtype, fill_value).fill_is_zero is expected


def test_a_fill_value_is_stored_in_parts() -> None:
    assert np.asarray(element("complex64", 3 - 4j).stored_fill).tolist() == [3, -4]
