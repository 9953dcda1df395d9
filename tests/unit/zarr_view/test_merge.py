"""Merging keeps the members of other programs in their places and spelling."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from n5zarr.errors import N5AttributesError, N5Error
from n5zarr.format.compression import Gzip
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import AxisOrder, N5Tuple
from n5zarr.zarr_view.change import (
    Change,
    NewArray,
    NewAttributes,
    NewGroup,
    NewNames,
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
        "dimensions": N5Tuple((11, 7, 5)),
        "block_size": N5Tuple((4, 3, 2)),
        "element": Element(dtype=np.dtype("u2")),
        "compression": Gzip(),
        "record": Record(),
    }
    return Members(**defaults | options)


def with_attributes(attributes: bytes) -> bytes:
    return DATASET[:-1] + b"," + attributes + b"}"


def test_a_new_root_has_the_version_of_the_specification() -> None:
    # N5 spec, "File-system specification", item 3
    made = changed(
        None, Change(node=NodeContext(is_root=True), kind=NewGroup(), attributes=NewAttributes({}))
    )
    assert made == b'{"n5":"4.0.0"}'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b'{"n5":"2.5.1"}', b'{"n5":"2.5.1"}', id="older"),
        pytest.param(b"{}", b"{}", id="none"),
    ],
)
def test_the_version_of_a_root_that_is_there_stays(data: bytes, expected: bytes) -> None:
    assert (
        changed(
            data,
            Change(node=NodeContext(is_root=True), kind=NewGroup(), attributes=NewAttributes({})),
        )
        == expected
    )


def test_a_new_dataset_has_javas_keys() -> None:
    assert changed(None, Change(kind=NewArray(members()), attributes=NewAttributes({}))) == DATASET


def test_an_array_of_the_same_keys_keeps_their_spelling() -> None:
    data = b'{ "dimensions" : [11.0,7,5], "blockSize":[4,3,2], "dataType":"uint16",'
    data += b'"compression":{"level":6,"type":"gzip","useZlib":false}}'
    made = json.loads(changed(data, Change(kind=NewArray(members()))))
    assert list(made) == ["dimensions", "blockSize", "dataType", "compression"]
    assert b'"compression":{"level":6,"type":"gzip","useZlib":false}' in changed(
        data, Change(kind=NewArray(members()))
    )


def test_a_group_loses_the_keys_of_the_dataset_that_it_replaces() -> None:
    made = changed(
        with_attributes(b'"a":1'), Change(kind=NoArray(), attributes=NewAttributes({"a": 1}))
    )
    assert made == b'{"a":1}'


def test_only_the_extent_changes_when_an_array_is_resized() -> None:
    resized = members(dimensions=N5Tuple((13, 7, 5)))
    made = changed(with_attributes(b'"a":1.0E-12'), Change(kind=Resized(resized)))
    assert made == with_attributes(b'"a":1.0E-12').replace(b"[11,7,5]", b"[13,7,5]")


@pytest.mark.parametrize(
    ("data", "change"),
    [
        pytest.param(DATASET, Change(kind=NewGroup()), id="group-on-a-dataset"),
        pytest.param(DATASET.replace(b"uint16", b"uint8"), Change(kind=Resized(members())),
                     id="other-type"),
        pytest.param(DATASET.replace(b"[4,3", b"[4,4"), Change(kind=Resized(members())),
                     id="blocks"),
        pytest.param(b"{}", Change(kind=Resized(members())), id="resized-group"),
    ],
)  # fmt: skip
def test_a_node_that_another_program_has_made_is_not_replaced(data: bytes, change: Change) -> None:
    with pytest.raises(N5Error) as caught:
        changed(data, change)
    assert caught.value.kind == "changed"


def test_a_document_that_is_not_json_is_not_replaced() -> None:
    with pytest.raises(N5AttributesError) as caught:
        changed(b'{"a":', Change(attributes=NewAttributes({})))
    assert caught.value.kind == "json"


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


@pytest.mark.parametrize(
    ("data", "attributes", "recorded"),
    [
        pytest.param(DATASET, {"dimensions": "mine"}, {"dimensions": "mine"}, id="own-key"),
        pytest.param(DATASET, {"zarr": 1}, {"zarr": 1}, id="the-record's"),
        pytest.param(DATASET, {"axes": ["x"]}, {"axes": ["x"]}, id="axes-of-another-rank"),
        pytest.param(
            DATASET, {"resolution": [1, "2", 3]}, {"resolution": [1, "2", 3]}, id="no-number"
        ),
        pytest.param(b"{}", {"n5": "4.0.0"}, {"n5": "4.0.0"}, id="version-of-no-root"),
    ],
)
def test_names_that_n5_would_misunderstand_are_recorded(
    data: bytes, attributes: dict[str, JSON], recorded: dict[str, JSON]
) -> None:
    made = json.loads(changed(data, Change(attributes=NewAttributes(attributes, {}))))
    assert made.pop("zarr") == {"attributes": recorded}
    assert made == json.loads(data)


def test_a_value_without_json_is_null_and_recorded() -> None:
    attributes: dict[str, JSON] = {"a": [1, math.nan], "b": -math.inf, "c": None}
    made = json.loads(changed(b"{}", Change(attributes=NewAttributes(attributes))))
    record = made.pop("zarr")
    assert made == {"a": [1, None], "b": None, "c": None}
    assert record["nonfinite"] == {"/a/1": "NaN", "/b": "-Infinity"}
    assert "/c" in record["nulls"]


@pytest.mark.parametrize(
    ("names", "key", "value"),
    [
        pytest.param(["x", "y", "z"], "axes", ["x", "y", "z"], id="as-axes"),
        pytest.param(["x", None, "z"], "zarr", {"dimension_names": ["x", None, "z"]}, id="null"),
        pytest.param(["x", "x", "z"], "zarr", {"dimension_names": ["x", "x", "z"]}, id="twice"),
    ],
)
def test_names_of_axes(names: list[str | None], key: str, value: JSON) -> None:
    change = Change(names=NewNames(names=names, ndim=3, rank=3), attributes=NewAttributes({}))
    made = json.loads(changed(DATASET, change))
    assert made.pop(key) == value
    assert made == json.loads(DATASET)


def test_names_that_are_taken_away_are_removed() -> None:
    data = with_attributes(b'"axes":["x","y","z"]')
    assert (
        changed(
            data, Change(names=NewNames(names=None, ndim=3, rank=3), attributes=NewAttributes({}))
        )
        == DATASET
    )


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


def test_consolidated_metadata_and_other_members_of_a_group_are_recorded() -> None:
    made = json.loads(changed(b'{"a":1}', Change(consolidated=True, extra={"mine": 1})))
    assert made == {"a": 1, "zarr": {"consolidated": True, "extra": {"mine": 1}}}
    assert changed(json.dumps(made).encode(), Change(consolidated=False, extra={})) == b'{"a":1}'
