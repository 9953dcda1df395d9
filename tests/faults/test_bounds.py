"""Small hostile files make no reader take more memory or time than about a block needs."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import itertools
import json
import lzma
import os
import resource
import sys
import warnings
import zlib
from contextlib import nullcontext
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr import N5Error, N5Store
from n5zarr.codecs.compress import codec_of, decompress
from n5zarr.errors import N5BlockError
from n5zarr.format.compression import Bzip2, Gzip, Xz
from n5zarr.format.lenient_json import parse_json
from tests.contract.test_kernel import python_only
from tests.processes import CONTEXT
from tests.property import outside

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from collections.abc import Callable
from pathlib import Path

SHAPE = (181, 181)
VALUES = np.arange(181 * 181, dtype="u2").reshape(SHAPE)
BLOCK = VALUES.astype(">u2").tobytes()
LARGE = 2**26  # bytes that a payload decodes to
ALLOWED = 2**25 + 4 * len(BLOCK)  # bytes of memory for reading it


def zstd_without_size() -> bytes:
    packer = zstd.ZstdCompressor()
    zeros = bytes(2**20)
    parts = [packer.compress(zeros) for _ in range(LARGE // len(zeros))]
    return b"".join([*parts, packer.flush()])


@cache
def large_bzip2() -> bytes:
    return bz2.compress(bytes(LARGE), 1)


@cache
def large_gzip() -> bytes:
    return gzip.compress(bytes(LARGE))


def gzip_that_lies() -> bytes:
    return large_gzip()[:-4] + len(BLOCK).to_bytes(4, "little")


PAYLOADS: dict[str, tuple[dict[str, Any], Callable[[], bytes]]] = {
    "bzip2": ({"type": "bzip2"}, large_bzip2),
    "bzip2, two": ({"type": "bzip2"}, lambda: bz2.compress(BLOCK) + large_bzip2()),
    "zstd without size": ({"type": "zstd"}, zstd_without_size),
    "gzip that lies": ({"type": "gzip"}, gzip_that_lies),
    "gzip, two": ({"type": "gzip"}, lambda: large_gzip() + gzip.compress(BLOCK)),
    "gzip, the second": ({"type": "gzip"}, lambda: gzip.compress(BLOCK) + gzip_that_lies()),
    "zlib": ({"type": "gzip", "useZlib": True}, lambda: zlib.compress(bytes(LARGE))),
    "xz, two": (
        {"type": "xz"},
        lambda: lzma.compress(bytes(LARGE), preset=0) + lzma.compress(BLOCK),
    ),
}


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bounds") / "c.n5"
    for name, (compression, make) in PAYLOADS.items():
        array = n5zarr.create_array(
            root, path=name, shape=SHAPE, chunks=SHAPE, dtype="u2", compression=compression
        )
        array[...] = VALUES
        file = root / name / "0" / "0"
        header = file.read_bytes()[:12]
        file.write_bytes(header + make())
    return root


def by_zarr(root: Path, name: str) -> Any:
    return zarr.open_array(N5Store(root), path=name, mode="r")


def by_zarr_2(root: Path, name: str) -> Any:
    return zarr.open_array(N5Store(root, zarr_format=2), path=name, mode="r")


def by_zarr_portable(root: Path, name: str) -> Any:
    return zarr.open_array(N5Store(root, codecs="portable"), path=name, mode="r")


def by_n5zarr(root: Path, name: str) -> Any:
    return n5zarr.open_array(root, path=name)


def read(opening: Callable[[Path, str], Any], root: Path, name: str, answers: Any) -> None:
    """Read an array in a new process; return the result, and the memory that it took."""
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        array = opening(root, name)
        before, found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "failed"
        try:
            found = "right" if np.array_equal(array[...], VALUES) else "wrong"
        except N5Error:
            found = "refused"
        finally:
            taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            answers.put((found, taken * 1024))


@pytest.mark.each_of(5)
@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("opening", [by_zarr, by_zarr_2, by_zarr_portable, by_n5zarr])
def test_a_payload_that_decodes_to_much_more(container: Path, name: str, opening: Any) -> None:
    answers = CONTEXT.Queue()
    process = CONTEXT.Process(target=read, args=(opening, container, name, answers))
    process.start()
    found, taken = answers.get(timeout=60)
    process.join()
    # what comes after the elements does not matter, as in Java, if it is no more than allowed
    assert found in ("refused", "right")
    assert found == "refused" or not name.endswith(("lies", "zlib", "size"))
    assert taken < ALLOWED


# ------------------------------------------------------------------ time and memory


def in_seconds(function: Callable[[], object], seconds: int, answers: Any) -> None:
    """Call a function in a process that is killed after so many seconds of computing."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    function()
    answers.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


def memory_taken(function: Callable[[], object], seconds: int = 20) -> int:
    answers = CONTEXT.Queue()
    process = CONTEXT.Process(target=in_seconds, args=(function, seconds, answers))
    process.start()
    process.join()
    assert process.exitcode == 0
    taken: int = answers.get(timeout=10)
    return taken


def judge_an_index_of_one_number() -> None:
    """Decode an index of one number of any length, whose plain sum would take quadratic time."""
    number = b"\xff" * 2**22 + b"\x00" * 3
    footer = b"0123" + (len(number) // 4).to_bytes(4, "little") + b"\0\1YZ"
    payload = b"\xfd7zXZ\x00" + bytes(6) + b"\x00" + number + b"crc " + footer
    assert codec_of(Xz()).usable(memoryview(payload), 64, Xz()) is None


def read_empty_streams() -> None:
    for compression, empty in (
        (Gzip(), gzip.compress(b"")),
        (Bzip2(), bz2.compress(b"")),
        (Xz(), lzma.compress(b"")),
    ):
        payload = empty * (2**22 // len(empty))
        with pytest.raises(N5BlockError, match="incomplete"):
            decompress(memoryview(payload), 64, compression)


def parse_a_long_string() -> None:
    text = "x" * 2**24
    assert parse_json(b"{'a': '%b'}" % text.encode()) == {"a": text}


def test_the_index_of_xz_is_read_in_linear_time() -> None:
    assert memory_taken(judge_an_index_of_one_number) < 2**26


def test_empty_streams_are_read_in_linear_time() -> None:
    assert memory_taken(read_empty_streams) < 2**26


def test_long_strings_take_little_memory() -> None:
    assert memory_taken(parse_a_long_string) < 12 * 2**24


# ------------------------------------------------------------------ files that are none


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Write a dataset of four blocks, three of which are stored."""
    array = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(7, 5), chunks=(4, 3), dtype="u2", compression=None
    )
    array[...] = 1 + np.arange(35).reshape(7, 5)
    (tmp_path / "c.n5" / "a" / "1" / "1").unlink()
    return tmp_path / "c.n5"


WAYS = [by_zarr, by_zarr_2, by_n5zarr]


@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("name", ["0/0", "0"])
@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_a_block_that_is_a_link_to_nothing(
    small: Path, name: str, durability: Any, *, fast: bool
) -> None:
    """A block that is a broken link, as of git-annex, is an error, and is not replaced."""
    block = small / "a" / name
    block.rename(small / "kept")
    block.symlink_to("../.git/annex/objects/SHA256E-s12")
    check_refused(small, durability, r"a link to \S*annex\S*, which", fast=fast)
    assert block.is_symlink()
    assert not block.exists()
    (found,) = (f for f in n5zarr.validate(small).findings if f.severity != "note")
    assert found.kind == ("unreadable" if name == "0/0" else "stray-file")


def check_refused(root: Path, durability: Any, message: str, *, fast: bool) -> None:
    """Read and write the first block in each way."""
    ours: Any = n5zarr.open_array(root, "r+", path="a", durability=durability)
    zarrs: Any = zarr.open_array(N5Store(root, durability=durability), path="a")
    with nullcontext() if fast else python_only():
        for array in (ours, zarrs, by_zarr_2(root, "a")):
            with pytest.raises(N5Error, match=message) as caught:
                array[0, 0]
            assert caught.value.kind == "file"
        for array in (ours, zarrs):
            for box in (np.s_[0, 0], np.s_[...]):
                with pytest.raises(N5Error, match=message) as caught:
                    array[box] = 9
                assert caught.value.kind == "file"
        with pytest.raises(N5Error, match=message):
            n5zarr.read_block(root, "a", (0, 0))


@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_pipes_are_refused(small: Path, durability: Any, *, fast: bool) -> None:
    (small / "a/0/0").unlink()
    os.mkfifo(small / "a/0/0")
    check_refused(small, durability, "got a pipe", fast=fast)


@pytest.mark.parametrize("message", ["a link to nowhere, which does not exist", "got a pipe"])
def test_a_document_that_is_no_file(small: Path, message: str) -> None:
    document = small / "a" / "attributes.json"
    document.unlink()
    document.symlink_to("nowhere") if "link" in message else os.mkfifo(document)
    for use in (
        lambda: n5zarr.open(small, path="a"),
        lambda: zarr.open(N5Store(small), path="a", mode="r"),
        lambda: n5zarr.set_attribute(small, "a", "b", 1),
    ):
        with pytest.raises(N5Error, match=message):
            use()
    assert document.is_symlink() or document.is_fifo()


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_far_longer_than_its_block_is_not_read(tmp_path: Path, compression: Any) -> None:
    array = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(7, 5), dtype="u2", compression=compression
    )
    array[...] = 1
    os.truncate(tmp_path / "c.n5/a/0/0", 3 * 2**30)  # takes no room on the disk
    for refuse in (refuse_a_long_file, refuse_to_update_a_long_file):
        for opening in WAYS:
            assert memory_taken(partial(refuse, opening, tmp_path / "c.n5")) < 2**26
    (found,) = n5zarr.validate(tmp_path / "c.n5", deep=True).findings
    assert (found.severity, found.block) == ("error", (0, 0))


def refuse_a_long_file(opening: Any, root: Path) -> None:
    with pytest.raises(N5Error, match=r"expected at most \d+ bytes of .* got 3221225472"):
        opening(root, "a")[0, 0]


def refuse_to_update_a_long_file(opening: Any, root: Path) -> None:
    array = opening(root, "a")
    writable = zarr.open_array(array.store.with_read_only(read_only=False), path="a", mode="r+")
    with pytest.raises(N5Error, match=r"expected at most \d+ bytes of .* got 3221225472"):
        writable[0, 0] = 3


@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_replacing_a_file_keeps_its_mode_and_its_link(
    small: Path, durability: Any, *, fast: bool
) -> None:
    elsewhere = small.parent / "elsewhere"
    block, document = small / "a/0/0", small / "a/attributes.json"
    (small / "a/1/0").chmod(0o664)
    document.chmod(0o660)
    block.rename(elsewhere)
    block.symlink_to(elsewhere)
    array = n5zarr.open_array(small, "r+", path="a", durability=durability)
    with nullcontext() if fast else python_only():
        array[...] = 8  # whole blocks
        array[:, 2:4] = 9  # parts of them
    n5zarr.set_attribute(small, "a", "b", 1)
    expected = np.full((7, 5), 8)
    expected[:, 2:4] = 9
    np.testing.assert_array_equal(by_n5zarr(small, "a")[...], expected)
    assert block.is_symlink()
    assert elsewhere.stat().st_size > 12
    assert (small / "a/1/0").stat().st_mode & 0o777 == 0o664
    assert document.stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("name", ["../../outside", "\0", "a/b", ".."])
def test_an_axis_whose_name_no_node_has(tmp_path: Path, name: str) -> None:
    """An axis with a name that no node can have reads no dataset outside of the container."""
    n5zarr.create_array(tmp_path / "outside", path="", data=np.arange(7) / 2)
    n5zarr.create_array(tmp_path / "c.n5", path="g/a", data=np.zeros((5, 7), "u1"))
    document = {"axes": [name, "y"], "units": ["nm", "nm"], "resolution": [4, 8]}
    outside.merge_document(tmp_path / "c.n5/g/a", document)
    assert "uint8" in str(n5zarr.open(tmp_path / "c.n5", path="g/a").info)
    assert n5zarr.geometry(tmp_path / "c.n5", "g/a").names == ("y", "dim_1")
    opened = xr.open_dataset(tmp_path / "c.n5", group="g", engine="n5")
    assert opened["a"]["dim_1"].values.tolist() == [4.0 * n for n in range(7)]


# ------------------------------------------------------------------ listings


def keys_of(root: Path) -> list[str]:
    async def listed() -> list[str]:
        return [key async for key in N5Store(root).list()]

    return asyncio.run(listed())


def test_links_to_each_other_are_followed_once(tmp_path: Path) -> None:
    """Links between groups are followed once, and not along every path."""
    root, n = tmp_path / "c.n5", 8
    for i in range(n):
        zarr.create_group(N5Store(root), path=f"g{i}")
    for i, j in itertools.permutations(range(n), 2):
        (root / f"g{i}" / f"l{j}").symlink_to(f"../g{j}")
    assert len(keys_of(root)) == 1 + n + n * (n - 1)
    assert len(zarr.open_group(N5Store(root), mode="r").members(max_depth=None)) == n * n
    assert n5zarr.validate(root).n_groups == 1 + n * n


def test_links_that_are_not_followed_are_named(small: Path, tmp_path: Path) -> None:
    """Links that are not followed are named in warnings, as data may be missing."""
    for name in "gh":
        zarr.create_group(N5Store(small), path=name)
    (small / "linked").symlink_to("a")
    (small / "g/gone").symlink_to("/a/disk/that/is/not/there")
    (small / "g/h").symlink_to("../h")
    (small / "h/g").symlink_to("../g")
    named = [
        f"{small}: /g/gone: omitted, as it is a link to nothing",
        f"{small}: /g/h/g: omitted, as it is a group behind a link that is behind another link",
        f"{small}: /h/g/gone: omitted, as it is a link to nothing",
        f"{small}: /h/g/h: omitted, as it is a group behind a link that is behind another link",
    ]
    target = str(tmp_path / "out.zarr")
    for run in (
        lambda: n5zarr.convert(small, target, dry_run=True),
        lambda: n5zarr.convert(small, target, dry_run=True, coords=True),
        lambda: n5zarr.download(small, tmp_path / "part.n5"),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
        assert sorted(str(each.message) for each in caught) == named


def test_groups_are_listed_to_a_depth(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    zarr.create_group(N5Store(root))
    deepest = "/".join("g" * 1100)  # more than Python calls itself
    for depth in range(1, len(deepest) + 1, 2):
        os.mkdir(f"{root}/{deepest[:depth]}")  # noqa: PTH102 - pathlib cannot go so deep
    with pytest.warns(n5zarr.N5Warning, match="at most 255 levels"):
        assert len(keys_of(root)) == 1 + 255
    with pytest.warns(n5zarr.N5Warning, match="at most 255 levels"):
        members = zarr.open_group(N5Store(root), mode="r").members(max_depth=None)
    assert len(members) == 255
    found = n5zarr.validate(root).findings
    assert any("at most 255 levels" in each.message for each in found)
    assert zarr.open_group(N5Store(root), path=deepest, mode="r").attrs.asdict() == {}


def test_the_engine_opens_huge_arrays_without_loading_them(tmp_path: Path) -> None:
    """The engine opens huge arrays of text, and huge axes, without loading them."""
    for name, data_type, dimensions in (("text", "string", [2**40]), ("long", "uint8", [2**62, 3])):
        (tmp_path / f"c.n5/{name}").mkdir(parents=True)
        document = {
            "dataType": data_type,
            "compression": {"type": "raw"},
            "blockSize": [2] * len(dimensions),
            "dimensions": dimensions,
            "axes": ["x", "y"][: len(dimensions)],
            "units": ["nm", "nm"][: len(dimensions)],
            "resolution": [1e308, 3][: len(dimensions)],
        }
        (tmp_path / f"c.n5/{name}/attributes.json").write_text(json.dumps(document))
    with pytest.warns(
        n5zarr.N5Warning, match="'x' gets no coordinate: its 4611686018427387904 positions"
    ):
        long = xr.open_dataset(tmp_path / "c.n5/long", engine="n5")
    assert long.sizes == {"y": 3, "x": 2**62}
    assert list(long.coords) == ["y"]
    with pytest.warns(
        n5zarr.N5Warning, match="'x' gets no coordinate: its 1099511627776 positions"
    ):
        text = xr.open_dataset(tmp_path / "c.n5/text", engine="n5")
    assert text["text"].dtype == object
    assert text["text"][5:8].values.tolist() == ["", "", ""]


def test_a_coordinate_gives_way_to_a_group_of_its_name(tmp_path: Path) -> None:
    axes: Any = {"axes": ["y", "x"], "units": ["nm", "nm"], "resolution": [2.0, 3.0]}
    n5zarr.create_array(tmp_path / "c.n5", path="a", data=np.ones((3, 5), "u1"), **axes)
    n5zarr.create_array(tmp_path / "c.n5", path="y/b", data=np.ones(7, "u1"))
    tree = xr.open_datatree(tmp_path / "c.n5", engine="n5")
    assert tree["y/b"].shape == (7,)
    assert tree["a"].dims == ("y", "x")
    assert list(tree.to_dataset().coords) == ["x"]
