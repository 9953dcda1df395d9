"""Damaged containers give a typed error with the place, and never wrong numbers."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr
from zarr.abc.buffer import Buffer
from zarr.abc.store import Store
from zarr.storage import LocalStore, WrapperStore
from zarr.types import AnyArray

import n5zarr
from n5zarr import N5Error, N5Store
from n5zarr.errors import N5AttributesError, N5BlockError, N5UnsupportedError
from n5zarr.format import DatasetAttributes, parse_attributes
from n5zarr.format.lenient_json import JSON
from n5zarr.format.order import N5Tuple
from n5zarr.tools.validate.blocks import check_block, whole

DIMENSIONS, BLOCK_SIZE = (5, 7, 11), (2, 3, 4)  # x, y, z
SHAPE = DIMENSIONS[::-1]
VALUES = np.random.default_rng(5).integers(0, 40, SHAPE, "uint16") + 1000
PATH = "em/raw"
BATCHED = "zarr.core.codec_pipeline.BatchedCodecPipeline"
FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
OURS = "n5zarr.arrays.pipeline.N5CodecPipeline"

COMPRESSIONS: dict[str, dict[str, JSON]] = {
    "raw": {"type": "raw"},
    "gzip": {"type": "gzip", "useZlib": False, "level": 6},
    "zlib": {"type": "gzip", "useZlib": True, "level": 6},
    "bzip2": {"type": "bzip2"},
    "xz": {"type": "xz"},
    "lz4": {"type": "lz4"},
    "zstd": {"type": "zstd"},
    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 1},
    "blosc-copied": {"type": "blosc", "cname": "lz4", "clevel": 0, "shuffle": 0},
}
CHECKED = ("gzip", "zlib", "bzip2", "xz", "lz4")
"""Compressions whose streams carry a checksum that the codecs compare."""
OF_DAMAGED_STREAMS = (N5BlockError, ValueError, OSError, EOFError, zlib.error, lzma.LZMAError)
"""What zarr's codecs raise, which are handed the streams in the default presentation, and we."""

BROKEN_AND_OTHERS = np.s_[:5, :4, :2]
"""The region of the block that is broken, and of three others."""
SOUND = np.s_[4:, 3:, 2:]

EACH_BIT = 1 if os.environ.get("N5ZARR_ALL") else 3
"""How many bits are passed over where each bit of a block is flipped."""

END_MARK = 21  # bytes of lz4's last frame, which Java does without
LONG_AGO = 1e9, 1e9
"""When files are changed that may be empty: readers wait a second for the writer of a new one."""

type Corruption = Callable[[bytes], bytes]


def part(position: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the region of a block, C order."""
    return tuple(
        slice(p * b, min((p + 1) * b, d))
        for p, b, d in zip(position[::-1], BLOCK_SIZE[::-1], SHAPE, strict=True)
    )


def block_file(root: Path, position: tuple[int, ...] = (0, 0, 0)) -> Path:
    return root.joinpath(PATH, *map(str, position))


def describe(compression: dict[str, JSON], **changes: JSON) -> dict[str, JSON]:
    return {
        "dimensions": list(DIMENSIONS),
        "blockSize": list(BLOCK_SIZE),
        "dataType": "uint16",
        "compression": compression,
        **changes,
    }


def write_container(root: Path, compression: dict[str, JSON]) -> Path:
    """Write a container with the dataset `em/raw` of truncated blocks."""
    for position in np.ndindex(3, 3):
        block_file(root, position).mkdir(parents=True)
    (root / "attributes.json").write_text('{"n5":"4.0.0"}')
    (root / PATH / "attributes.json").write_bytes(_json(describe(compression)))
    for position, block in encoded(_json(compression)).items():
        block_file(root, position).write_bytes(block)
    return root


@cache
def encoded(compression: bytes) -> dict[tuple[int, ...], bytes]:
    """Encode all blocks with a compression, which is given as JSON."""
    how = json.loads(compression)
    return {
        position: n5zarr.encode_block(VALUES[part(position)], compression=how)
        for position in np.ndindex(3, 3, 3)
    }


def _json(document: JSON) -> bytes:
    return json.dumps(document).encode()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "c.n5"


def open_array(
    root: Path | Store, codecs: Literal["n5", "zarr", "portable"], **options: Any
) -> AnyArray:
    return zarr.open_array(N5Store(root, codecs=codecs, **options), path=PATH, mode="r")


def assert_located(error: N5Error, root: Path, block: str = "0/0/0") -> None:
    """Check that a message names container, dataset and block, and the expected content."""
    message = str(error)
    assert message.startswith(f"{root}: {PATH}: block {block}: block "), message
    assert isinstance(error, N5BlockError)


# ---------------------------------------------------------------------- blocks


def header(mode: int, sizes: tuple[int, ...], count: int | None = None) -> bytes:
    counts = () if count is None else (count,)
    n = len(sizes) + len(counts)
    return struct.pack(f">HH{n}I", mode, len(sizes), *sizes, *counts)


def with_header(*args: Any) -> Corruption:
    return lambda block: header(*args) + block[16:]


HEADERS: dict[str, Corruption] = {
    "no-bytes": lambda _: b"",
    "one-byte": lambda block: block[:1],
    "cut-in-the-sizes": lambda block: block[:11],
    "ndim-0": with_header(0, ()),
    "ndim-2": with_header(0, (2, 12)),
    "ndim-2-swapped": with_header(0, (2, 3)),
    "ndim-5": with_header(0, (2, 3, 4, 1, 1)),
    "ndim-65535": lambda block: b"\0\0\xff\xff" + block[4:],
    "ndim-65535-complete": with_header(0, (1,) * 65535),
    "mode-2": lambda block: b"\0\2" + struct.pack(">I", 48) + block[16:],
    "mode-3": with_header(3, (2, 3, 4)),
    "mode-255": with_header(255, (2, 3, 4)),
    "mode-65535": with_header(65535, (2, 3, 4)),
    "little-endian": lambda block: struct.pack("<HHIII", 0, 3, 2, 3, 4) + block[16:],
    "size-0": with_header(0, (2, 0, 4)),
    "sizes-0": with_header(0, (0, 0, 0)),
    "size-absurd": with_header(0, (2**32 - 1, 1, 1)),
    "sizes-absurd": with_header(0, (2**32 - 1,) * 3),
    "count-too-low": with_header(1, (2, 3, 4), 23),
    "count-too-high": with_header(1, (2, 3, 4), 25),
    "count-zero": with_header(1, (2, 3, 4), 0),
    "count-absurd": with_header(1, (2, 3, 4), 2**32 - 1),
    "document": lambda _: b'{"dimensions":[5,7,11]}',
}
LARGER: dict[str, Corruption] = {
    "size-larger-than-the-payload": with_header(0, (2, 3, 5)),
    "sizes-of-a-gigabyte": with_header(0, (1024, 1024, 512)),
}
PAYLOADS: dict[str, Corruption] = {
    "empty": lambda block: block[:16],
    "one-byte": lambda block: block[:17],
    "half": lambda block: block[: 16 + (len(block) - 16) // 2],
    "one-byte-lost": lambda block: block[:-22] if b"LZ4Block" in block else block[:-1],
    "first-byte-lost": lambda block: block[:16] + block[17:],
    "zeros": lambda block: block[:16] + bytes(40),
    "ones": lambda block: block[:16] + b"\xff" * 40,
    "text": lambda block: block[:16] + b"<?xml version='1.0'?><Error>NoSuchKey</Error>"[:40],
}
OTHERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}

BROKEN = [
    *(
        pytest.param(name, corrupt, id=f"{name}-header-{case}")
        for name in COMPRESSIONS
        for case, corrupt in {**HEADERS, **LARGER}.items()
        if not (name == "raw" and case == "first-byte-lost")
    ),
    *(
        pytest.param(name, corrupt, id=f"{name}-payload-{case}")
        for name in COMPRESSIONS
        for case, corrupt in PAYLOADS.items()
    ),
    *(
        pytest.param(
            name,
            lambda block, pack=pack: block[:16] + pack(VALUES[:4, :3, :2].astype(">u2").tobytes()),
            id=f"{name}-payload-of-{other}",
        )
        for name in COMPRESSIONS
        for other, pack in OTHERS.items()
        if name not in (other, "raw")
    ),
    *(
        pytest.param(
            name,
            lambda block, at=at: block[:at] + bytes([block[at] ^ 1]) + block[at + 1 :],
            id=f"{name}-checksum-{-at}",
        )
        for name, ats in {
            "gzip": range(-8, -4),
            "zlib": range(-4, 0),
            "bzip2": (-3, -4),
            "xz": (-10, -12),
            "lz4": (-24, -30),
        }.items()
        for at in ats
    ),
]
# what the default presentation can see without decompressing
SEEN_EARLY = ("raw", "gzip", "zstd", "blosc", "blosc-copied")


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write one container for each compression, for the many tests that damage one block."""
    parent = tmp_path_factory.mktemp("containers")
    return {
        name: write_container(parent / f"{name}.n5", compression)
        for name, compression in COMPRESSIONS.items()
    }


@pytest.fixture
def spoilt(containers: dict[str, Path], compression: str, corrupt: Corruption) -> Iterator[Path]:
    """Damage the first block of a container for the time of a test; its file looks old."""
    file = block_file(containers[compression])
    whole = file.read_bytes()
    file.write_bytes(corrupt(whole))
    os.utime(file, LONG_AGO)
    yield containers[compression]
    file.write_bytes(whole)


@pytest.mark.each_of(11)
@pytest.mark.parametrize(("compression", "corrupt"), BROKEN)
def test_a_broken_block_is_an_error_that_names_it(spoilt: Path) -> None:
    for pipeline in (BATCHED, FUSED):
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            array = open_array(spoilt, "n5")
            with pytest.raises(N5Error) as caught:
                array[BROKEN_AND_OTHERS]
            assert_located(caught.value, spoilt)
            np.testing.assert_array_equal(array[SOUND], VALUES[SOUND])


@pytest.mark.each_of(7)
@pytest.mark.parametrize(("compression", "corrupt"), BROKEN)
def test_a_broken_block_is_never_shown_as_numbers(
    spoilt: Path, compression: str, request: pytest.FixtureRequest
) -> None:
    for codecs in ("zarr", "portable"):
        array = open_array(spoilt, codecs)
        with pytest.raises(OF_DAMAGED_STREAMS) as caught:
            array[BROKEN_AND_OTHERS]
        seen = "-header-" in request.node.callspec.id or (
            compression in SEEN_EARLY and "-payload-" in request.node.callspec.id
        )
        if seen:
            assert isinstance(caught.value, N5Error)
            assert_located(caught.value, spoilt)


@pytest.mark.each_of(2)
@pytest.mark.parametrize(("compression", "corrupt"), BROKEN)
def test_reading_or_checking_one_broken_block_finds_it(
    spoilt: Path, request: pytest.FixtureRequest
) -> None:
    findings = n5zarr.validate(spoilt, deep=True).findings
    assert {each.where for each in findings} == {f"{PATH}: block 0/0/0"}
    if "-count-" in request.node.callspec.id:  # the block may be what it says, but is no array
        assert {"varlength", "payload", "header"} & {each.kind for each in findings}
        return
    (finding,) = findings
    assert (finding.severity, finding.repair) == ("error", "quarantine")
    with pytest.raises(N5Error) as caught:
        n5zarr.read_block(spoilt, PATH, (0, 0, 0))
    assert_located(caught.value, spoilt)


@pytest.mark.parametrize("codecs", ["n5", "zarr"])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("axis_order", ["C", "F"])
@pytest.mark.parametrize("compression", ["raw", "gzip", "blosc"])
def test_an_edge_block_is_named_in_n5_order(
    root: Path, compression: str, axis_order: str, zarr_format: int, codecs: str
) -> None:
    write_container(root, COMPRESSIONS[compression])
    file = block_file(root, (2, 1, 0))
    file.write_bytes(file.read_bytes()[:18])
    array = open_array(root, codecs, axis_order=axis_order, zarr_format=zarr_format)  # type: ignore[arg-type]
    with pytest.raises(N5Error) as caught:
        array[...]
    if (codecs, zarr_format) == ("n5", 2):
        assert caught.value.kind == "payload"  # a numcodecs codec is never told the key
    else:
        assert_located(caught.value, root, "2/1/0")


BOTH_CODECS = pytest.mark.parametrize("codecs", ["n5", "zarr"])
BOTH_SIZES = pytest.mark.parametrize(
    "position", [(0, 0, 0), (2, 2, 2)], ids=["full-size", "truncated"]
)


def read_or_refused(array: Any, region: Any, codecs: str) -> Any:
    """Read a region; return None for an error that is right."""
    try:
        return array[region]
    except OF_DAMAGED_STREAMS as err:
        assert codecs == "zarr" or isinstance(err, N5BlockError)  # noqa: PT017
        return None


@pytest.mark.each_of(5)
@BOTH_CODECS
@pytest.mark.parametrize("compression", COMPRESSIONS)
@BOTH_SIZES
def test_a_block_cut_at_any_byte_is_never_shown_as_other_numbers(
    root: Path, compression: str, codecs: Any, position: tuple[int, ...]
) -> None:
    write_container(root, COMPRESSIONS[compression])
    file = block_file(root, position)
    whole = file.read_bytes()
    array = open_array(root, codecs)
    region = part(position)
    for length in reversed(range(len(whole))):
        os.truncate(file, length)
        os.utime(file, LONG_AGO)
        read = read_or_refused(array, region, codecs)
        if read is not None:
            np.testing.assert_array_equal(read, VALUES[region], f"cut at {length}")
            assert compression == "lz4"
            assert length >= len(whole) - END_MARK
    file.write_bytes(whole)
    np.testing.assert_array_equal(array[region], VALUES[region])


@pytest.mark.parametrize("compression", COMPRESSIONS)
@BOTH_SIZES
def test_a_block_cut_at_any_byte_is_found_by_its_ends(
    compression: str, position: tuple[int, ...]
) -> None:
    data = encoded(_json(COMPRESSIONS[compression]))[position]
    dataset = parse_attributes(describe(COMPRESSIONS[compression]))
    assert isinstance(dataset, DatasetAttributes)
    unseen = [
        length
        for length in range(len(data))
        if not any(
            each.severity == "error"
            for each in check_block(
                whole(data[:length]), dataset, PATH, N5Tuple(position), deep=False
            )
        )
    ]
    if compression == "lz4":
        assert min(unseen, default=len(data)) >= len(data) - END_MARK
    elif compression != "zlib":  # without a length at its end: only decoding shows that it is cut
        assert unseen == []


@pytest.mark.each_of(7)
@BOTH_CODECS
@pytest.mark.parametrize("compression", CHECKED)
@BOTH_SIZES
def test_a_flipped_bit_under_a_checksum_is_never_shown_as_other_numbers(
    root: Path, compression: str, codecs: Any, position: tuple[int, ...]
) -> None:
    write_container(root, COMPRESSIONS[compression])
    file = block_file(root, position)
    whole = file.read_bytes()
    array = open_array(root, codecs)
    region = part(position)
    wrong = []
    with file.open("r+b", buffering=0) as opened:  # a file that is emptied first goes to the disk
        for bit in range(8 * 16, 8 * len(whole), EACH_BIT):
            broken = bytearray(whole)
            broken[bit // 8] ^= 1 << bit % 8
            opened.seek(0)
            opened.write(broken)
            read = read_or_refused(array, region, codecs)
            if read is not None and not np.array_equal(read, VALUES[region]):
                wrong.append(bit)
    assert wrong == []


@BOTH_CODECS
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_trailing_bytes_do_no_harm_where_java_ignores_them(
    root: Path, compression: str, codecs: Literal["n5", "zarr"]
) -> None:
    write_container(root, COMPRESSIONS[compression])
    for position in ((0, 0, 0), (2, 2, 2)):
        file = block_file(root, position)
        file.write_bytes(file.read_bytes() + b"trailing")
    array = open_array(root, codecs)
    if compression == "gzip":
        with pytest.raises(N5BlockError, match="expected another gzip member or the end"):
            array[...]
    else:
        np.testing.assert_array_equal(array[...], VALUES)


@pytest.mark.each_of(4)
@pytest.mark.parametrize("codecs", ["n5", "zarr", "zarr's pipeline"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("surplus", [1, 48, 5000])
def test_surplus_elements_do_no_harm_as_in_java(
    root: Path, compression: str, codecs: str, surplus: int
) -> None:
    write_container(root, COMPRESSIONS[compression])
    elements = np.concatenate([VALUES[part((0, 0, 0))].ravel(), np.arange(surplus, dtype="u2")])
    longer = n5zarr.encode_block(elements, compression=COMPRESSIONS[compression])
    block_file(root).write_bytes(header(0, BLOCK_SIZE) + longer[8:])
    with zarr.config.set({"codec_pipeline.path": BATCHED if codecs == "zarr's pipeline" else OURS}):
        array = open_array(root, "n5" if codecs == "n5" else "zarr")
    np.testing.assert_array_equal(array[...], VALUES)


def test_a_header_of_strings_does_not_allocate_what_it_announces(root: Path) -> None:
    write_container(root, COMPRESSIONS["raw"])
    document = _json(describe(COMPRESSIONS["raw"], dataType="string"))
    (root / PATH / "attributes.json").write_bytes(document)
    block_file(root).write_bytes(header(1, (2**24, 1, 1), 2) + b"a\0")
    with pytest.raises(N5BlockError):
        n5zarr.read_block(root, PATH, (0, 0, 0))


def test_a_count_of_values_of_bytes_is_not_allocated(tmp_path: Path) -> None:
    """A block that announces very many values of bytes is an error before memory is allocated."""
    root, n = tmp_path / "c.n5", 2**31 - 1
    document: dict[str, Any] = {"dimensions": [n], "blockSize": [n], "dataType": "object"}
    document |= {"compression": {"type": "raw"}, "zarr": {"data_type": "variable_length_bytes"}}
    (root / "a").mkdir(parents=True)
    (root / "a" / "attributes.json").write_bytes(_json(document))
    (root / "a" / "0").write_bytes(struct.pack(">HI", 2, 4) + n.to_bytes(4, "little"))
    array = n5zarr.open_array(root, path="a", mode="r")
    with pytest.raises(N5BlockError, match=f"{root}: a: block 0: .*{n} values of bytes, got 4"):
        array[0]


# ---------------------------------------------------------------------- documents

DOCUMENT = describe({"type": "gzip"})


def without(key: str) -> dict[str, JSON]:
    return {name: value for name, value in DOCUMENT.items() if name != key}


def changed(**changes: JSON) -> bytes:
    return _json({**DOCUMENT, **changes})


BROKEN_DOCUMENTS = {
    "cut": (changed()[:40], "json", "not JSON"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0", "json", "got byte 0x89"),
    "utf-16": ("{}".encode("utf-16"), "json", "expected UTF-8"),
    "nul-bytes": (bytes(64), "json", "not JSON"),
    "trailing-garbage": (changed() + b"}", "json", "expected the end of the document"),
    "two-documents": (changed() * 2, "json", "expected the end of the document"),
    "nested": (b'{"a":' + b"[" * 300 + b"]" * 300 + b"}", "json", "255 levels"),
    "nested-lenient": (b"{a:" + b"[" * 300 + b"]" * 300 + b"}", "json", "255 levels"),
    "nested-abysmally": (b"[" * 100_000, "json", "not JSON"),
    "thousands-of-digits": (b'{"a":' + b"9" * 5000 + b"}", "json", "not JSON"),
    "thousands-of-digits-lenient": (b"{a:" + b"9" * 5000 + b"}", "json", "not JSON"),
    # others are in tests/unit/format
    "dimensions-empty": (changed(dimensions=[]), "member", "blockSize: expected 0 entries"),
    "dimension-negative": (changed(dimensions=[5, 7, -11]), "member", "dimensions[2]: expected"),
    "block-size-0": (changed(blockSize=[2, 0, 4]), "member", "blockSize[1]: expected"),
    "rank-lower": (changed(blockSize=[2, 3]), "member", "blockSize: expected 3 entries"),
    "data-type-unknown": (changed(dataType="uint128"), "data-type", "dataType: expected one of"),
    "compression-unknown": (changed(compression={"type": "lzo"}), "compression", "got 'lzo'"),
    "compression-null": (changed(compression=None), "compression", "expected an object"),
    "level-too-high": (
        changed(compression={"type": "gzip", "level": 10}),
        "compression",
        "compression.level: expected an integer from -1 to 9, got 10",
    ),
    "compression-type-unknown": (
        _json({**without("compression"), "compressionType": "lzo"}),
        "compression",
        "compressionType: expected one of",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("document", "kind", "message"), BROKEN_DOCUMENTS.values(), ids=BROKEN_DOCUMENTS
)
def test_a_broken_document_is_an_error_that_names_it(
    root: Path, document: bytes, kind: str, message: str
) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    (root / PATH / "attributes.json").write_bytes(document)
    attempts: list[Callable[[], object]] = [
        lambda: zarr.open(N5Store(root), path=PATH, mode="r"),
        lambda: zarr.open(N5Store(root, codecs="n5"), path=PATH, mode="r"),
        lambda: zarr.open(N5Store(root, zarr_format=2), path=PATH, mode="r", zarr_format=2),
        lambda: zarr.open_group(N5Store(root), mode="r")[PATH],
        lambda: n5zarr.open(root, path=PATH),
        lambda: n5zarr.read_block(root, PATH, (0, 0, 0)),
    ]
    for attempt in attempts:
        with pytest.raises(N5AttributesError) as caught:
            attempt()
        assert caught.value.kind == kind
        assert str(caught.value).startswith(f"{root}: {PATH}")
        assert "attributes.json: " in str(caught.value)
        assert message in str(caught.value)
    errors = [each for each in n5zarr.validate(root).findings if each.severity == "error"]
    assert {(each.kind, each.path) for each in errors} == {(kind, PATH)}


@pytest.mark.parametrize("name", ["cut", "binary", "nested", "trailing-garbage"])
def test_a_broken_document_of_the_root_is_an_error(root: Path, name: str) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    (root / "attributes.json").write_bytes(BROKEN_DOCUMENTS[name][0])
    for path in ("", PATH):
        with pytest.raises(N5AttributesError) as caught:
            zarr.open(N5Store(root), path=path, mode="r")
        assert caught.value.kind == "json"
        assert str(caught.value).startswith(f"{root}: attributes.json: ")


def test_a_container_of_a_later_version_is_unsupported(root: Path) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    (root / "attributes.json").write_text('{"n5":"5.0.0"}')
    for path in ("", PATH):
        with pytest.raises(N5UnsupportedError, match=r"up to 4\.x, got '5\.0\.0'") as caught:
            zarr.open(N5Store(root), path=path, mode="r")
        assert caught.value.kind == "version"
        assert str(root) in str(caught.value)


@pytest.mark.parametrize("document", [b"null", b"[]", b"[1,2]", b'"x"', b"3", b"{}"])
def test_a_document_that_is_no_object_is_a_group(root: Path, document: bytes) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    (root / PATH / "attributes.json").write_bytes(document)
    for zarr_format in (2, 3):
        group = zarr.open(
            N5Store(root, zarr_format=zarr_format), path=PATH, mode="r", zarr_format=zarr_format
        )
        assert isinstance(group, zarr.Group)
        assert dict(group.attrs) == {}
    with pytest.raises(FileNotFoundError, match=f"{PATH}: expected a dataset, got a group"):
        n5zarr.read_block(root, PATH, (0, 0, 0))


@pytest.mark.parametrize("codecs", ["n5", "zarr"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_numbers_in_quotes_are_numbers_as_in_java(
    root: Path, codecs: Literal["n5", "zarr"], zarr_format: Literal[2, 3]
) -> None:
    write_container(root, {"type": "gzip", "useZlib": True})
    quoted: dict[str, JSON] = {"type": "gzip", "useZlib": "true", "level": "5"}
    document = describe(quoted, dimensions=["5", 7.0, 11], blockSize=[2, "3", "+4"])
    (root / PATH / "attributes.json").write_bytes(_json(document))
    store = N5Store(root, codecs=codecs, zarr_format=zarr_format)
    array = zarr.open_array(store, path=PATH, mode="r+")
    np.testing.assert_array_equal(array[...], VALUES)
    array.attrs["unit"] = "nm"
    array[:2, 0] = 7
    written = json.loads((root / PATH / "attributes.json").read_bytes())
    assert written == {**document, "unit": "nm"}
    expected = VALUES.copy()
    expected[:2, 0] = 7
    np.testing.assert_array_equal(open_array(root, codecs)[...], expected)


def test_without_block_size_a_dataset_is_one_block(root: Path) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    document = without("blockSize")
    (root / PATH / "attributes.json").write_bytes(_json(document))
    whole = n5zarr.encode_block(VALUES, compression=COMPRESSIONS["gzip"])
    block_file(root).write_bytes(whole)
    np.testing.assert_array_equal(open_array(root, "zarr")[...], VALUES)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        pytest.param({"compression": {"type": "jpeg"}}, "compression", id="jpeg-of-uint16"),
        pytest.param(
            {"compression": {"type": "jpeg"}, "dataType": "int16"},
            "compression",
            id="jpeg-of-int16",
        ),
        pytest.param({"dataType": "object"}, "data-type", id="object"),
    ],
)
@pytest.mark.parametrize("codecs", ["n5", "zarr", "portable"])
def test_valid_n5_that_is_no_array_is_unsupported_at_opening(
    root: Path, codecs: Literal["n5", "zarr", "portable"], changes: dict[str, JSON], kind: str
) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    (root / PATH / "attributes.json").write_bytes(changed(**changes))
    with pytest.raises(N5UnsupportedError) as caught:
        open_array(root, codecs)
    assert caught.value.kind == kind
    assert str(caught.value).startswith(f"{root}: {PATH}")


# ---------------------------------------------------------------------- the wrapped store


class FaultyStore(WrapperStore[Any]):
    """A store that fails on keys with a certain end."""

    def __init__(self, store: Store, ends: str = "", error: Exception | None = None) -> None:
        super().__init__(store)
        self.ends = ends
        self.error = error or PermissionError(13, "Permission denied")

    def fail(self, key: str) -> None:
        if self.ends and key.endswith(self.ends):
            raise self.error

    async def get(self, key: str, *args: Any, **options: Any) -> Buffer | None:
        self.fail(key)
        return await super().get(key, *args, **options)

    def get_sync(self, key: str, **options: Any) -> Buffer | None:
        self.fail(key)
        return super().get_sync(key, **options)


ERRORS = [
    PermissionError(13, "Permission denied"),
    TimeoutError("timed out"),
    ConnectionResetError(104, "reset"),
    OSError(5, "Input/output error"),
]


@pytest.mark.parametrize("codecs", ["n5", "zarr"])
@pytest.mark.parametrize("pipeline", [BATCHED, FUSED], ids=["batched", "fused"])
@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_of_the_wrapped_store_pass_through(
    root: Path, codecs: Literal["n5", "zarr"], pipeline: str, error: Exception
) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    faulty = FaultyStore(LocalStore(root, read_only=True), f"{PATH}/1/0/2", error)
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        array = open_array(faulty, codecs)
        np.testing.assert_array_equal(array[:4], VALUES[:4])
        with pytest.raises(OSError) as caught:  # noqa: PT011 - compared below
            array[...]
    # zarr remakes a TimeoutError that crosses its event loop on Python 3.12
    assert (type(caught.value), caught.value.args) == (type(error), error.args)


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_while_reading_documents_pass_through(root: Path, error: Exception) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    faulty = FaultyStore(LocalStore(root, read_only=True), f"{PATH}/attributes.json", error)
    attempts: list[Callable[[], object]] = [
        lambda: open_array(faulty, "zarr"),
        lambda: n5zarr.read_block(faulty, PATH, (0, 0, 0)),
        lambda: list(zarr.open_group(N5Store(faulty), path="em", mode="r").members()),
    ]
    for attempt in attempts:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - compared below
            attempt()
        assert caught.value is error


def test_errors_of_the_root_document_are_raised_again_after_they_are_mended(root: Path) -> None:
    write_container(root, COMPRESSIONS["gzip"])
    faulty = FaultyStore(LocalStore(root, read_only=True), "attributes.json")
    store = N5Store(faulty)
    with pytest.raises(PermissionError):
        zarr.open(store, mode="r")
    faulty.ends = ""
    (root / "attributes.json").write_text('{"n5":"9.0.0"}')
    with pytest.raises(N5UnsupportedError, match=r"'9\.0\.0'"):
        zarr.open(store, mode="r")
