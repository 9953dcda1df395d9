"""`attributes.json` tells datasets from groups, and errors name what is wrong."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from n5zarr.errors import N5AttributesError
from n5zarr.format.attributes import (
    DatasetAttributes,
    GroupAttributes,
    dataset_keys,
    is_dataset,
    missing_dataset_keys,
    parse_attributes,
)
from n5zarr.format.compression import Bzip2, Gzip, Raw, Xz
from n5zarr.format.data_type import DataType
from n5zarr.format.lenient_json import JSON, parse_json
from n5zarr.format.order import N5Tuple

DATA = Path(__file__).parents[2] / "data"
# numpy's, of which zarr-python 2 read nothing back, and one that is not the same everywhere
REFUSED_NAMES = ["complex64", "complex128", "float128", "str96", "bytes24", "void24", "datetime64"]
REFUSED_NAMES += ["datetime64[parsec]", "datetime64[99999999999s]", "timedelta64[]", "float64[s]"]
DATASET: dict[str, JSON] = {
    "dataType": "uint16", "compression": {"type": "gzip", "useZlib": False, "level": 6},
    "blockSize": [2, 3, 4], "dimensions": [5, 7, 11],
}  # fmt: skip


def parsed_dataset(document: JSON) -> DatasetAttributes:
    parsed = parse_attributes(document)
    assert isinstance(parsed, DatasetAttributes)
    return parsed


def dataset(**changes: JSON) -> DatasetAttributes:
    return parsed_dataset({**DATASET, **changes})


def without(*keys: str) -> dict[str, JSON]:
    return {key: value for key, value in DATASET.items() if key not in keys}


def test_a_document_of_java_is_read() -> None:
    text = (
        b'{"dataType":"uint16","compression":{"type":"gzip","useZlib":false,"level":6},'
        b'"blockSize":[2,4,3],"dimensions":[5,7,3]}'
    )
    parsed = parse_attributes(parse_json(text))
    assert parsed == DatasetAttributes(
        dimensions=N5Tuple((5, 7, 3)), block_size=N5Tuple((2, 4, 3)), data_type=DataType.UINT16,
        compression=Gzip(), attributes={},
    )  # fmt: skip
    assert isinstance(parsed, DatasetAttributes)
    assert (parsed.ndim, parsed.grid) == (3, (3, 2, 1))


@pytest.mark.parametrize(
    ("dimensions", "data_type", "block_size", "compression", "compression_type"),
    list(itertools.product([False, True], repeat=5)),
)
def test_a_dataset_needs_dimensions_data_type_and_a_compression(
    dimensions: bool, data_type: bool, block_size: bool, compression: bool, compression_type: bool
) -> None:
    document: dict[str, JSON] = {"user": 1}
    document |= {"dimensions": [5, 7]} if dimensions else {}
    document |= {"dataType": "uint8"} if data_type else {}
    document |= {"blockSize": [2, 3]} if block_size else {}
    document |= {"compression": {"type": "raw"}} if compression else {}
    document |= {"compressionType": "raw"} if compression_type else {}
    expected = dimensions and data_type and (compression or compression_type)
    assert is_dataset(document) is expected
    assert isinstance(parse_attributes(document), DatasetAttributes) is expected
    assert (missing_dataset_keys(document) == []) is expected


@pytest.mark.parametrize(
    "document", [None, [], [1], "x", 3, True, {}, {"n5": "4.0.0"}], ids=json.dumps
)
def test_any_other_document_is_a_group(document: JSON) -> None:
    assert not is_dataset(document)
    assert parse_attributes(document) == GroupAttributes(attributes={})


def test_missing_keys_are_named() -> None:
    assert missing_dataset_keys({}) == ["dimensions", "dataType", "compression"]
    assert missing_dataset_keys(None) == ["dimensions", "dataType", "compression"]
    assert missing_dataset_keys(without("dataType")) == ["dataType"]
    assert missing_dataset_keys({**without("compression"), "compressionType": "raw"}) == []
    assert dataset_keys({"x": 1, "dataType": "uint8", "dimensions": [1]}) == [
        "dimensions",
        "dataType",
    ]


def test_a_group_keeps_what_looks_like_a_dataset() -> None:
    setup: dict[str, JSON] = {"downsamplingFactors": [[1, 1, 1]], "dataType": "uint16"}
    parsed = parse_attributes({"n5": "4.0.0", "zarr": {"a": 1}, **setup})
    assert parsed == GroupAttributes(attributes=setup, record={"a": 1})


def test_user_attributes_keep_their_order_and_lose_the_keys_of_n5() -> None:
    parsed = parse_attributes({"z": 1, **DATASET, "n5": "4.0.0", "a": None, "zarr": {}, "m": [1]})
    assert list(parsed.attributes.items()) == [("z", 1), ("a", None), ("m", [1])]


@pytest.mark.parametrize("name", [d.value for d in DataType])
def test_every_data_type_is_read(name: str) -> None:
    assert dataset(dataType=name).data_type.value == name


@pytest.mark.parametrize(
    "value", ["UINT8", "uint128", *REFUSED_NAMES, "", None, 8, ["uint8"], True], ids=repr
)
def test_an_unknown_data_type_is_named(value: JSON) -> None:
    with pytest.raises(N5AttributesError) as caught:
        dataset(dataType=value)
    (problem,) = caught.value.problems
    assert (problem.loc, problem.kind, caught.value.kind) == (
        ("dataType",), "data-type", "data-type",
    )  # fmt: skip
    assert problem.message.startswith("expected one of uint8, uint16, ")
    assert problem.message.endswith(f"got {value!r}; convert it with the program that wrote it")


@pytest.mark.parametrize(
    ("name", "same_bytes"),
    [
        ("bool", DataType.UINT8),
        ("float16", DataType.UINT16),
        ("datetime64[s]", DataType.INT64),
        ("datetime64[10s]", DataType.INT64),
        ("timedelta64[ns]", DataType.INT64),
    ],
)
def test_numpy_names_of_zarr_python_2_are_read(name: str, same_bytes: DataType) -> None:
    parsed = dataset(dataType=name)
    assert (parsed.data_type, parsed.numpy_type) == (same_bytes, np.dtype(name))
    assert parsed.type_name == name


@pytest.mark.parametrize(
    ("dimensions", "block_size", "grid"),
    [
        ([5, 7, 11], (5, 7, 11), (1, 1, 1)),
        ([0, 7], (1, 7), (0, 1)),
        ([2**31 - 1, 7], (2**31 - 1, 7), (1, 1)),
    ],
    ids=["one-block", "an-empty-axis", "the-largest-block"],
)
def test_without_block_size_the_dataset_is_one_block(
    dimensions: JSON, block_size: tuple[int, ...], grid: tuple[int, ...]
) -> None:
    parsed = parsed_dataset({**without("blockSize"), "dimensions": dimensions})
    assert (parsed.block_size, parsed.grid) == (block_size, grid)


def test_without_block_size_the_dimensions_are_those_that_a_block_can_have() -> None:
    with pytest.raises(N5AttributesError) as caught:
        parse_attributes({**without("blockSize"), "dimensions": [7, 2**31]})
    assert str(caught.value) == (
        "blockSize: expected a list, as the dimension 2147483648 is more than the 2147483647 "
        "elements that a block can have, got none"
    )


def test_an_axis_may_have_no_extent() -> None:
    assert dataset(dimensions=[5, 0, 11]).grid == (3, 0, 3)


@pytest.mark.parametrize(
    ("compression_type", "expected"), [("raw", Raw()), ("bzip2", Bzip2()), ("xz", Xz())]
)
def test_version_0_names_its_compression(compression_type: str, expected: object) -> None:
    parsed = parsed_dataset({**without("compression"), "compressionType": compression_type})
    assert parsed.compression == expected


@pytest.mark.parametrize("unused", ["bzip2", 7], ids=["another", "nonsense"])
def test_compression_wins_over_compression_type(unused: JSON) -> None:
    assert dataset(compressionType=unused).compression == Gzip()


def test_an_unknown_compression_type_is_not_raw() -> None:
    with pytest.raises(N5AttributesError, match=r"^compressionType: expected one of .*'snappy'$"):
        parse_attributes({**without("compression"), "compressionType": "snappy"})


@pytest.mark.parametrize(
    ("key", "low", "high"), [("dimensions", 0, 2**63 - 1), ("blockSize", 1, 2**31 - 1)]
)
def test_sizes_have_the_limits_of_java(key: str, low: int, high: int) -> None:
    for value in (low, high, float(low), str(low), f"+{high}", f"0{low}"):
        parsed = dataset(**{key: [value, 7, 11]})
        sizes = parsed.dimensions if key == "dimensions" else parsed.block_size
        assert sizes == (int(value), 7, 11)
        assert all(type(size) is int for size in sizes)
    for value in (low - 1, high + 1, float(high + 1), str(high + 1)):
        with pytest.raises(N5AttributesError) as caught:
            dataset(**{key: [7, value, 11]})
        assert str(caught.value) == (
            f"{key}[1]: expected an integer from {low} to {high}, got {value!r}"
        )


@pytest.mark.parametrize("key", ["dimensions", "blockSize"], ids=repr)
@pytest.mark.parametrize(
    "value",
    [4.5, "4.0", " 4", "4e0", "0x4", "", None, True, False, [4], {}, float("nan"), float("inf")],
    ids=repr,
)
def test_a_size_that_is_no_integer_is_an_error(key: str, value: JSON) -> None:
    with pytest.raises(N5AttributesError) as caught:
        dataset(**{key: [5, value, 11]})
    (problem,) = caught.value.problems
    assert (problem.loc, problem.kind) == ((key, 1), "member")
    assert problem.message.endswith(f"got {value!r}")


@pytest.mark.parametrize("key", ["dimensions", "blockSize"], ids=repr)
@pytest.mark.parametrize("value", [None, 5, "5,7", {}, {"0": 5}, True], ids=repr)
def test_sizes_are_a_list(key: str, value: JSON) -> None:
    with pytest.raises(N5AttributesError) as caught:
        dataset(**{key: value})
    problem = caught.value.problems[0]
    assert problem.loc == (key,)
    assert problem.message.startswith("expected a list of at most 65535 integers, got ")


@pytest.mark.parametrize(
    ("block_size", "found"), [([2, 3], 2), ([2, 3, 4, 5], 4), ([2], 1), ([], 0)]
)
def test_another_rank_of_block_size_is_an_error(block_size: list[int], found: int) -> None:
    with pytest.raises(N5AttributesError) as caught:
        dataset(blockSize=block_size)
    assert str(caught.value) == f"blockSize: expected 3 entries, one per dimension, got {found}"


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(N5AttributesError) as caught:
        dataset(
            dimensions=[-1, 7, 1.5], blockSize=[0, 3, "4x"], dataType="complex64",
            compression={"type": "gzip", "level": 12, "useZlib": "no"},
        )  # fmt: skip
    error = caught.value
    assert [problem.loc for problem in error.problems] == [
        ("dimensions", 0), ("dimensions", 2), ("blockSize", 0), ("blockSize", 2), ("dataType",),
        ("compression", "useZlib"), ("compression", "level"),
    ]  # fmt: skip
    assert error.kind == "member"
    for field, got in [
        ("dimensions[0]", "-1"),
        ("blockSize[2]", "'4x'"),
        ("compression.level", "12"),
    ]:
        assert f"{field}: expected " in str(error)
        assert f"got {got}" in str(error)


def test_the_error_is_also_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"blockSize\[0\]: expected an integer from 1 to"):
        dataset(blockSize=[0, 3, 4])


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("uint8", True, True),
        ("uint8", False, False),
        ("uint8", 1, False),
        ("uint8", "true", False),
        ("uint16", True, False),
    ],
)
def test_label_multisets_are_bytes_with_a_flag(data_type: str, value: JSON, expected: bool) -> None:
    assert dataset(dataType=data_type, isLabelMultiset=value).is_label_multiset is expected


@pytest.mark.parametrize(
    ("factors", "expected"),
    [([[1, 1, 1], [2, 2, 2]], True), ([2, 2, 2], False), ([], False), (None, False), ("x", False)],
)
def test_only_lists_of_factors_make_a_dataset_suspect(factors: JSON, expected: bool) -> None:
    assert dataset(downsamplingFactors=factors).may_be_group is expected
    assert dataset().may_be_group is False


REAL = sorted((DATA / "attributes").glob("*.json"))


def test_there_are_real_documents() -> None:
    assert len(REAL) >= 15


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.stem)
def test_real_documents_are_read(path: Path) -> None:
    text = path.read_bytes()
    parsed = parse_attributes(parse_json(text))
    document = json.loads(text)
    four = ("dimensions", "dataType", "blockSize", "compression")
    complete = all(key in document for key in four) or "compressionType" in document
    assert isinstance(parsed, DatasetAttributes) is complete
    if isinstance(parsed, DatasetAttributes):
        assert list(parsed.dimensions) == document["dimensions"]
        assert list(parsed.block_size) == document["blockSize"]
        assert parsed.data_type == document["dataType"]
