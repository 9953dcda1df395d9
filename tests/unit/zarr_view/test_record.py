"""The record is parsed as its module describes, with JSON pointers as in RFC 6901."""

from __future__ import annotations

import math

import pytest

from n5zarr.errors import N5AttributesError
from n5zarr.format.lenient_json import JSON
from n5zarr.format.raw_json import json_pointers
from n5zarr.zarr_view.record import Record, restore_attributes


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({}, id="empty"),
        pytest.param({"data_type": "bool", "fill_value": True}, id="elements"),
        pytest.param({"shape": []}, id="no-dimensions"),
        pytest.param({"codecs": ["bytes", {"name": "crc32c"}], "axis_order": "F"}, id="codecs"),
        pytest.param({"v2": {"compressor": None, "filters": None, "order": "C"}}, id="v2"),
        pytest.param({"dimension_names": ["x", None]}, id="names"),
        pytest.param({"attributes": {"axes": 1}, "nulls": ["/a"]}, id="attributes"),
        pytest.param({"nonfinite": {"/a/0": "NaN", "/b": "-Infinity"}}, id="nonfinite"),
        pytest.param({"consolidated": True, "extra": {"x": 1}}, id="group"),
    ],
)
def test_a_record_is_written_as_it_was_read(value: dict[str, JSON]) -> None:
    assert Record.from_json(value).to_json() == value


def test_no_record_is_an_empty_one() -> None:
    assert Record.from_json(None) == Record()
    assert Record().to_json() == {}


def test_members_of_later_versions_are_ignored() -> None:
    assert Record.from_json({"later": 1, "shape": []}) == Record(shape=[])


@pytest.mark.parametrize(
    ("value", "loc"),
    [
        pytest.param([], ("zarr",), id="no-object"),
        pytest.param({"data_type": 1}, ("zarr", "data_type"), id="data-type"),
        pytest.param({"shape": [1]}, ("zarr", "shape"), id="shape"),
        pytest.param({"codecs": "bytes"}, ("zarr", "codecs"), id="codecs"),
        pytest.param({"v2": []}, ("zarr", "v2"), id="v2"),
        pytest.param({"axis_order": "A"}, ("zarr", "axis_order"), id="axis-order"),
        pytest.param({"dimension_names": [1]}, ("zarr", "dimension_names"), id="names"),
        pytest.param({"attributes": []}, ("zarr", "attributes"), id="attributes"),
        pytest.param({"nonfinite": {"/a": "nan"}}, ("zarr", "nonfinite"), id="nonfinite"),
        pytest.param({"nulls": [0]}, ("zarr", "nulls"), id="nulls"),
        pytest.param({"consolidated": 1}, ("zarr", "consolidated"), id="consolidated"),
        pytest.param({"extra": None}, ("zarr", "extra"), id="extra"),
    ],
)
def test_a_member_of_another_type_is_an_error(value: JSON, loc: tuple[str, ...]) -> None:
    with pytest.raises(N5AttributesError) as caught:
        Record.from_json(value)
    assert [problem.loc for problem in caught.value.problems] == [loc]


def test_without_elements_only_what_is_of_no_array_stays() -> None:
    record = Record(data_type="bool", shape=[], codecs=[], attributes={"a": 1}, nulls=["/b"])
    assert record.without_elements() == Record(attributes={"a": 1}, nulls=["/b"])


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        pytest.param({"foo": ["bar", "baz"]}, "/foo/0", id="item"),
        pytest.param({"": 0}, "/", id="empty-name"),
        pytest.param({"a/b": 1}, "/a~1b", id="slash"),
        pytest.param({"m~n": 8}, "/m~0n", id="tilde"),
        pytest.param({"c%d": 2}, "/c%d", id="percent"),
        pytest.param({"~1": 2}, "/~01", id="tilde-one"),
        pytest.param(3, "", id="whole-document"),
    ],
)
def test_pointers_are_spelled_as_in_rfc_6901(document: JSON, pointer: str) -> None:
    assert next(json_pointers(document))[0] == pointer


@pytest.mark.parametrize(
    ("attributes", "record", "expected"),
    [
        pytest.param({"a": 1}, Record(), {"a": 1}, id="nothing-recorded"),
        pytest.param({"a": 1}, Record(attributes={"dimensions": "x"}), {"a": 1, "dimensions": "x"},
                     id="name"),
        pytest.param({"a": 2}, Record(attributes={"a": 1}), {"a": 2}, id="newer-on-disk"),
        pytest.param({}, Record(nulls=["/a"]), {"a": None}, id="null-that-java-dropped"),
        pytest.param({"a": 1}, Record(nulls=["/a"]), {"a": 1}, id="null-replaced-since"),
        pytest.param({"a": {"b": [None]}}, Record(nonfinite={"/a/b/0": "Infinity"}),
                     {"a": {"b": [math.inf]}}, id="infinity"),
        pytest.param({"a": {"b": [7]}}, Record(nonfinite={"/a/b/0": "Infinity"}), {"a": {"b": [7]}},
                     id="number-replaced-since"),
        pytest.param({"a": [1, [None]]}, Record(nonfinite={"/a/1/0": "-Infinity"}),
                     {"a": [1, [-math.inf]]}, id="in-a-nested-list"),
        pytest.param({}, Record(nulls=["/b", "/c/d"]), {"b": None}, id="null-in-an-object-gone"),
        pytest.param({"c": {}}, Record(nulls=["/c/d"]), {"c": {"d": None}}, id="null-in-an-object"),
        pytest.param({"a": []}, Record(nonfinite={"/a/5": "NaN"}), {"a": []}, id="item-gone"),
        pytest.param({"a": [1]}, Record(nonfinite={"/a/1": "NaN", "/a/x": "NaN"}), {"a": [1]},
                     id="last-item-gone-and-no-index"),
        pytest.param({"a": 3}, Record(nonfinite={"/a/0/0": "Infinity"}), {"a": 3}, id="no-list"),
        pytest.param({}, Record(nonfinite={"/a/b": "NaN"}), {}, id="object-gone"),
    ],
)  # fmt: skip
def test_attributes_are_as_they_were_written(
    attributes: dict[str, JSON], record: Record, expected: dict[str, JSON]
) -> None:
    before = repr(attributes)
    assert restore_attributes(attributes, record) == expected
    assert repr(attributes) == before
