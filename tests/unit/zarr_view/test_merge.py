"""Merging keeps the members of other programs in their places and spelling."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from n5zarr.format.compression import Gzip
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, N5Tuple
from n5zarr.zarr_view.change import (
    Change,
    NewArray,
    NewAttributes,
    NewGroup,
    NoArray,
    NodeContext,
    Resized,
)
from n5zarr.zarr_view.element import Element
from n5zarr.zarr_view.from_zarr import Members
from n5zarr.zarr_view.merge import changed, names_n5
from n5zarr.zarr_view.record import Record

# the keys in Java's order
DATASET = (
    b'{"dataType":"uint16","compression":{"type":"gzip","useZlib":false,"level":6},'
    b'"blockSize":[4,3,2],"dimensions":[11,7,5]}'
)


def members(**options: Any) -> Members:
    defaults: dict[str, Any] = {
        "dimensions": N5Tuple((11, 7, 5)), "block_size": N5Tuple((4, 3, 2)),
        "element": Element(dtype=np.dtype("u2")), "compression": Gzip(), "record": Record(),
    }  # fmt: skip
    return Members(**defaults | options)


def with_attributes(attributes: bytes) -> bytes:
    return DATASET[:-1] + b"," + attributes + b"}"


NONE = NewAttributes({})
NEW_ROOT = Change(node=NodeContext(is_root=True), kind=NewGroup(), attributes=NONE)
RESIZED = members(dimensions=N5Tuple((13, 7, 5)))
SMALL = with_attributes(b'"a":1.0E-12')
CHANGED: dict[str, tuple[bytes | None, Change, bytes]] = {
    # N5 spec, "File-system specification", item 3
    "a-new-root-has-the-version": (None, NEW_ROOT, b'{"n5":"4.0.0"}'),
    "the-version-of-a-root-stays": (b'{"n5":"2.5.1"}', NEW_ROOT, b'{"n5":"2.5.1"}'),
    "a-root-without-version-stays": (b"{}", NEW_ROOT, b"{}"),
    "a-new-dataset-has-javas-keys": (
        None, Change(kind=NewArray(members()), attributes=NONE), DATASET),
    "a-group-loses-the-keys-of-a-dataset": (
        with_attributes(b'"a":1'), Change(kind=NoArray(), attributes=NewAttributes({"a": 1})),
        b'{"a":1}'),
    "only-the-extent-is-resized": (
        SMALL, Change(kind=Resized(RESIZED)), SMALL.replace(b"[11,7,5]", b"[13,7,5]")),
    "consolidated-and-other-members-go": (
        b'{"a":1,"zarr":{"consolidated":true,"extra":{"mine":1}}}',
        Change(consolidated=False, extra={}), b'{"a":1}'),
    "consolidated-and-other-members-are-recorded": (
        b'{"a":1}', Change(consolidated=True, extra={"mine": 1}),
        b'{"a":1,"zarr":{"consolidated":true,"extra":{"mine":1}}}'),
}  # fmt: skip


@pytest.mark.parametrize(("data", "change", "expected"), CHANGED.values(), ids=CHANGED)
def test_a_document_after_a_change(data: bytes | None, change: Change, expected: bytes) -> None:
    assert changed(data, change) == expected


def test_an_array_of_the_same_keys_keeps_their_spelling() -> None:
    data = b'{ "dimensions" : [11.0,7,5], "blockSize":[4,3,2], "dataType":"uint16",'
    data += b'"compression":{"level":6,"type":"gzip","useZlib":false}}'
    made = changed(data, Change(kind=NewArray(members())))
    assert list(json.loads(made)) == ["dimensions", "blockSize", "dataType", "compression"]
    assert b'"compression":{"level":6,"type":"gzip","useZlib":false}' in made


# base is what Zarr started from; the document on disk has changed since
@pytest.mark.parametrize(
    ("data", "base", "attributes", "expected"),
    [
        pytest.param(b'{"a":1}', {"a": 1}, {"a": 2}, b'{"a":2}', id="changed"),
        pytest.param(b'{"a":1}', {"a": 1}, {"a": 1, "b": 2}, b'{"a":1,"b":2}', id="added"),
        pytest.param(b'{"a":1,"b":2}', {"a": 1, "b": 2}, {"b": 2}, b'{"b":2}', id="removed"),
        pytest.param(b'{"a":1,"new":3}', {"a": 1}, {"a": 2}, b'{"a":2,"new":3}', id="others-new"),
        pytest.param(b'{"a":5}', {"a": 1}, {"a": 1, "b": 2}, b'{"a":5,"b":2}', id="others-change"),
        pytest.param(b"{}", {"a": 1}, {"a": 1}, b"{}", id="others-removal"),
        pytest.param(b'{"a":5}', {"a": 1}, {"a": 2}, b'{"a":2}', id="both-the-last-one-wins"),
        pytest.param(b'{"a":1}', None, {"b": 2}, b'{"b":2}', id="no-base-is-the-document"),
        pytest.param(b'{"a":1.50}', {"a": 1.5}, {"a": 1.5}, b'{"a":1.50}', id="spelling-stays"),
        pytest.param(b'{"a":1}', {"a": 1}, {"a": 1.0}, b'{"a":1.0}', id="an-integer-is-no-float"),
        pytest.param(b'{"a":1}', {"a": 1}, {"a": True}, b'{"a":true}', id="nor-a-boolean"),
    ],
)
def test_attributes_are_merged_key_by_key(
    data: bytes, base: dict[str, JSON] | None, attributes: dict[str, JSON], expected: bytes
) -> None:
    assert changed(data, Change(attributes=NewAttributes(attributes, base))) == expected


def test_a_value_without_json_is_null_and_recorded() -> None:
    attributes: dict[str, JSON] = {"a": [1, math.nan], "b": -math.inf, "c": None}
    made = json.loads(changed(b"{}", Change(attributes=NewAttributes(attributes))))
    record = made.pop("zarr")
    assert made == {"a": [1, None], "b": None, "c": None}
    assert record["nonfinite"] == {"/a/1": "NaN", "/b": "-Infinity"}
    assert "/c" in record["nulls"]


@pytest.mark.parametrize(
    ("names", "axis_order", "expected"),
    [
        pytest.param(["z", "y", None], "C", [None, "y", "z"], id="C"),
        pytest.param(["x", "y"], "F", ["x", "y"], id="F"),
        pytest.param(None, "C", None, id="none"),
        pytest.param("zyx", "C", None, id="no-list"),
        pytest.param([1, "x"], "C", ["x", None], id="no-string"),
    ],
)
def test_dimension_names_become_n5_order(
    names: JSON, axis_order: AxisOrder, expected: list[str | None] | None
) -> None:
    assert names_n5(names, axis_order) == expected
