"""Keys follow the chunk key encodings of the Zarr v3 and v2 specifications."""

from __future__ import annotations

import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.keys import (
    DEFAULT_NAMES,
    ChunkKey,
    ChunkNames,
    MetadataKey,
    ZarrFormat,
    parse_key,
)
from tests.refusals import refused


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("zarr.json", MetadataKey("", "zarr.json"), id="root"),
        pytest.param("em/s0/zarr.json", MetadataKey("em/s0", "zarr.json"), id="node"),
        pytest.param("em/s0/c/2/1/0", ChunkKey("em/s0", (2, 1, 0)), id="chunk"),
        pytest.param("c/2", ChunkKey("", (2,)), id="chunk-of-the-root"),
        pytest.param("em/c", ChunkKey("em", ()), id="chunk-without-dimensions"),
        pytest.param("c/c/0", ChunkKey("c", (0,)), id="array-named-c"),
        pytest.param("1/c/0", ChunkKey("1", (0,)), id="array-named-like-an-index"),
        pytest.param("em/c/01", None, id="padded-index"),
        pytest.param("em/c/-1", None, id="negative-index"),
        pytest.param("em/2/1", None, id="no-prefix"),
        pytest.param("em/c/2.1", None, id="other-separator"),
        pytest.param("em/.zarray", None, id="document-of-v2"),
        pytest.param("em/attributes.json", None, id="document-of-n5"),
        pytest.param("em/c/" + "1" * 20, None, id="twenty-digits"),
    ],
)
def test_keys_of_v3(key: str, expected: MetadataKey | ChunkKey | None) -> None:
    assert parse_key(key, 3) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(".zgroup", MetadataKey("", ".zgroup"), id="root"),
        pytest.param("em/.zarray", MetadataKey("em", ".zarray"), id="array"),
        pytest.param("em/.zattrs", MetadataKey("em", ".zattrs"), id="attributes"),
        pytest.param(".zmetadata", MetadataKey("", ".zmetadata"), id="consolidated"),
        pytest.param("em/s0/2.1.0", ChunkKey("em/s0", (2, 1, 0), 2), id="chunk"),
        pytest.param("em/7", ChunkKey("em", (7,), 2), id="one-dimension"),
        pytest.param("em/c/2/1", ChunkKey("em/c/2", (1,), 2), id="slashes-are-the-path"),
        pytest.param("em/2.01", None, id="padded-index"),
        pytest.param("em/zarr.json", None, id="document-of-v3"),
        pytest.param("em/2.1.", None, id="trailing-separator"),
    ],
)
def test_keys_of_v2(key: str, expected: MetadataKey | ChunkKey | None) -> None:
    assert parse_key(key, 2) == expected


@pytest.mark.parametrize("key", ["../zarr.json", "/zarr.json", "a//zarr.json", "a\\zarr.json"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_key_that_leaves_the_container_is_refused(key: str, zarr_format: ZarrFormat) -> None:
    with refused(N5UnrepresentableError, "path"):
        parse_key(key, zarr_format)


# Zarr v3, "Chunk key encoding": default "c/1/23/45" or "c.1.23.45"; v2 "1.23.45" or "1/23/45"
NAMES = [
    pytest.param({"zarr_format": 3}, "c/1/23/45", "c", id="v3"),
    pytest.param({"zarr_format": 3, "chunk_key_encoding": "v2"}, "1.23.45", "0", id="v3-short"),
    pytest.param({"zarr_format": 3, "chunk_key_encoding": {"name": "default"}}, "c/1/23/45", "c",
                 id="default"),
    pytest.param({"zarr_format": 3,
                  "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}},
                 "c.1.23.45", "c", id="default-dots"),
    pytest.param({"zarr_format": 3,
                  "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}},
                 "1/23/45", "0", id="v2-slashes"),
    pytest.param({"zarr_format": 2}, "1.23.45", "0", id="v2"),
    pytest.param({"zarr_format": 2, "dimension_separator": "/"}, "1/23/45", "0", id="v2-nested"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "key", "scalar"), NAMES)
def test_chunks_are_named_as_the_document_says(
    document: dict[str, JSON], key: str, scalar: str
) -> None:
    names = ChunkNames.of(document)
    assert names.key("", (1, 23, 45)) == key
    assert names.key("em/s0", (1, 23, 45)) == f"em/s0/{key}"
    assert names.key("", ()) == scalar
    assert names.coords(key) == (1, 23, 45)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"zarr_format": 3, "chunk_key_encoding": "mine"}, id="name"),
        pytest.param({"zarr_format": 2, "dimension_separator": "-"}, id="separator"),
    ],
)
def test_another_encoding_is_refused(document: dict[str, JSON]) -> None:
    with pytest.raises(N5UnrepresentableError, match="chunk keys: expected the default or v2"):
        ChunkNames.of(document)


@pytest.mark.parametrize("name", ["c", "c/", "d/1/2", "c/1/02", "c/1/x", "1/2"])
def test_a_name_of_no_chunk_has_no_coordinates(name: str) -> None:
    expected = () if name == "c" else None
    assert DEFAULT_NAMES[3].coords(name) == expected
