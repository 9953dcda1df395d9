"""Documents of datasets follow the Zarr v3 and v2 specifications."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from n5zarr.errors import N5UnsupportedError
from n5zarr.format.attributes import DatasetAttributes, parse_attributes
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.dataset_view import DatasetView
from n5zarr.zarr_view.element import Content, Element
from n5zarr.zarr_view.record import Record
from tests.refusals import refused

GZIP: JSON = {"type": "gzip", "useZlib": False, "level": 6}


def dataset(**members: JSON) -> DatasetAttributes:
    document: dict[str, JSON] = {
        "dimensions": [11, 7, 5], "blockSize": [4, 3, 2], "dataType": "uint16", "compression": GZIP,
    }  # fmt: skip
    parsed = parse_attributes(document | members)
    assert isinstance(parsed, DatasetAttributes)
    return parsed


def view(attributes: DatasetAttributes | None = None, **options: Any) -> DatasetView:
    own = dataset() if attributes is None else attributes
    defaults: dict[str, Any] = {"dataset": own, "codecs": "zarr", "axis_order": "C"}
    return DatasetView(**defaults | options)


def codec(name: str, **configuration: JSON) -> dict[str, JSON]:
    return {"name": name, "configuration": configuration}


def test_the_zarr_json_of_plain_n5() -> None:
    assert view(dataset(author="me")).v3_document() == {
        "zarr_format": 3, "node_type": "array", "shape": (5, 7, 11), "data_type": "uint16",
        "chunk_grid": codec("regular", chunk_shape=(2, 3, 4)),
        "chunk_key_encoding": codec("default", separator="/"), "fill_value": 0,
        "codecs": [codec("bytes", endian="big"), codec("gzip", level=6)],
        "attributes": {"author": "me"},
    }  # fmt: skip


def test_the_zarray_of_plain_n5() -> None:
    assert view(zarr_format=2).document() == {
        "zarr_format": 2, "shape": (5, 7, 11), "chunks": (2, 3, 4), "dtype": ">u2",
        "compressor": {"id": "gzip", "level": 6}, "filters": None, "order": "C", "fill_value": None,
        "dimension_separator": ".",
    }  # fmt: skip


def test_axes_in_n5_order_are_transposed_back_by_a_codec() -> None:
    own = view(axis_order="F")
    assert (own.shape, own.chunk_shape) == ((11, 7, 5), (4, 3, 2))
    assert own.derived_codecs()[0] == codec("transpose", order=[2, 1, 0])
    assert own.derived_v2()["order"] == "F"


def test_one_axis_is_not_transposed() -> None:
    line = dataset(dimensions=[11], blockSize=[4])
    assert view(line, axis_order="F").derived_codecs()[0] == codec("bytes", endian="big")


RAW = [codec("bytes", endian="big")]


@pytest.mark.parametrize(
    ("compression", "codecs", "expected"),
    [
        pytest.param({"type": "raw"}, "zarr", RAW, id="raw"),
        pytest.param({"type": "zstd", "level": 5}, "zarr",
                     [*RAW, codec("zstd", level=5, checksum=False)], id="zstd"),
        pytest.param({"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1, "blocksize": 0},
                     "zarr",
                     [*RAW,
                      codec("blosc", typesize=2, cname="zstd", clevel=5, shuffle="shuffle",
                            blocksize=0)], id="blosc-has-the-size-of-an-item"),
        pytest.param({"type": "bzip2", "blockSize": 9}, "zarr",
                     [*RAW, codec("numcodecs.bz2", level=9)], id="bzip2"),
        pytest.param({"type": "bzip2"}, "portable", RAW, id="bzip2-portable"),
        pytest.param({"type": "lz4"}, "portable", RAW, id="lz4-portable"),
        pytest.param({"type": "gzip", "useZlib": True}, "portable", RAW, id="zlib-portable"),
        pytest.param(GZIP, "portable", [*RAW, codec("gzip", level=6)], id="gzip-portable"),
    ],
)  # fmt: skip
def test_codecs_follow_from_the_compression(
    compression: JSON, codecs: str, expected: list[JSON]
) -> None:
    assert view(dataset(compression=compression), codecs=codecs).derived_codecs() == expected


def test_the_codec_of_whole_blocks_has_n5s_compression() -> None:
    own = view(codecs="n5")
    assert own.derived_codecs() == [codec("n5zarr.block", compression=GZIP, axis_order="C")]
    assert own.whole_blocks
    assert own.transcoded is None


@pytest.mark.parametrize(
    ("members", "content", "data_type", "serializer"),
    [
        pytest.param({"dataType": "uint8"}, Content.NUMBERS, "uint8", codec("bytes"), id="byte"),
        pytest.param({"dataType": "string"}, Content.STRINGS, "string", {"name": "vlen-utf8"},
                     id="string"),
        pytest.param({"dataType": "uint8", "isLabelMultiset": True}, Content.LABELS, "uint64",
                     codec("bytes", endian="big"), id="labels"),
    ],
)  # fmt: skip
def test_contents(
    members: dict[str, JSON], content: Content, data_type: str, serializer: JSON
) -> None:
    own = view(dataset(**members))
    document = own.v3_document()
    assert (own.content, document["data_type"]) == (content, data_type)
    first: Any = own.derived_codecs()[0]
    assert {"configuration": {}} | first == {"configuration": {}} | dict(serializer)  # type: ignore[arg-type]
    assert document["fill_value"] == ("" if content is Content.STRINGS else 0)


# N5 spec, "File-system specification", item 5: the position in the chunk grid, x first
@pytest.mark.parametrize(
    ("axis_order", "coords"), [("C", (2, 1, 0)), ("F", (0, 1, 2))], ids=["C", "F"]
)
def test_chunks_become_grid_positions(axis_order: str, coords: tuple[int, ...]) -> None:
    own = view(axis_order=axis_order)
    assert own.grid_position(coords) == (0, 1, 2)
    assert own.presented(own.grid_position(coords)) == coords
    assert own.grid == (3, 3, 3)


def test_the_axis_of_parts_is_hidden() -> None:
    stored = dataset(dimensions=[2, 11, 7], blockSize=[2, 4, 3], dataType="float32")
    own = view(stored, element=Element(dtype=np.dtype("c8")))
    assert (own.shape, own.chunk_shape, own.ndim) == ((7, 11), (3, 4), 2)
    assert own.grid_position((1, 2)) == (0, 2, 1)


def test_an_array_without_dimensions_is_kept_as_one_element() -> None:
    own = view(dataset(dimensions=[1], blockSize=[1]), record=Record(shape=[]))
    assert (own.shape, own.chunk_shape, own.grid_position(())) == ((), (), (0,))


@pytest.mark.parametrize(
    ("attributes", "record", "names", "left"),
    [
        pytest.param({"axes": ["x", "y", "z"]}, Record(), ("z", "y", "x"), {}, id="tensorstore"),
        pytest.param({"_ARRAY_DIMENSIONS": ["z", "y", "x"]}, Record(), ("z", "y", "x"), {},
                     id="xarray"),
        pytest.param({"axes": ["x", "y"]}, Record(), None, {"axes": ["x", "y"]}, id="too-few"),
        pytest.param({}, Record(dimension_names=["a", None, "c"]), ("c", None, "a"), {}, id="null"),
        pytest.param({"axes": ["x", "y", "z"]}, Record(dimension_names=[]), None,
                     {"axes": ["x", "y", "z"]}, id="none-although-it-looks-like-it"),
    ],
)  # fmt: skip
def test_names_of_axes(
    attributes: dict[str, JSON],
    record: Record,
    names: tuple[str | None, ...] | None,
    left: dict[str, JSON],
) -> None:
    own = view(dataset(**attributes), record=record)
    assert own.dimension_names == names
    assert own.v3_document().get("dimension_names") == names
    assert own.attributes == left


SHUFFLED: list[JSON] = [
    codec("bytes", endian="little"), codec("numcodecs.shuffle", elementsize=2),
    codec("gzip", level=1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "is_recorded"),
    [
        pytest.param({}, True, id="as-recorded"),
        pytest.param({"axis_order": "F"}, False, id="for-another-order"),
        pytest.param({"codecs": "portable"}, False, id="not-portable"),
        pytest.param({"codecs": "n5"}, False, id="not-for-whole-blocks"),
    ],
)
def test_recorded_codecs(options: dict[str, Any], *, is_recorded: bool) -> None:
    own = view(record=Record(codecs=SHUFFLED), **options)
    assert (own.v3_codecs == SHUFFLED) is is_recorded
    assert (own.transcoded is not None) is is_recorded


@pytest.mark.parametrize(
    ("members", "options", "passes"),
    [
        pytest.param({}, {}, True, id="gzip"),
        pytest.param({}, {"codecs": "n5"}, False, id="whole-blocks"),
        pytest.param({"compression": {"type": "lz4"}}, {"codecs": "portable"}, False, id="raw"),
        pytest.param({"dataType": "string"}, {}, False, id="strings"),
        pytest.param({"dataType": "uint8", "isLabelMultiset": True}, {}, False, id="labels"),
        pytest.param({}, {"zarr_format": 2, "record": Record(v2={"dtype": "<u2"})}, False,
                     id="little-endian-of-v2"),
    ],
)  # fmt: skip
def test_whether_payloads_are_chunks(
    members: dict[str, JSON], options: dict[str, Any], *, passes: bool
) -> None:
    assert view(dataset(**members), **options).passes_payloads is passes


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        pytest.param({"dataType": "object"}, "data-type", id="object"),
        pytest.param({"dimensions": [1] * 65, "blockSize": [1] * 65}, "member", id="rank"),
        pytest.param({"compression": {"type": "jpeg"}}, "compression", id="jpeg-of-16-bits"),
    ],
)
def test_a_dataset_that_is_no_array_is_refused(members: dict[str, JSON], kind: str) -> None:
    with refused(N5UnsupportedError, kind):
        view(dataset(**members))
