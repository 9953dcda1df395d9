"""Each defect is found with its kind and place, and sound containers have none."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import os
import shutil
import struct
import sys
import time
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
import pytest
import xxhash
from numcodecs.blosc import compress as blosc_compress
from numcodecs.zstd import Zstd
from zarr.buffer import cpu
from zarr.storage import LocalStore, MemoryStore, WrapperStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5UnrepresentableError, N5UnsupportedError
from n5zarr.fast import kernel, many_files
from n5zarr.storage.requests import Ends
from n5zarr.tools.validate import batches
from n5zarr.tools.validate.findings import KINDS, Finding
from n5zarr.tools.validate.state import open_state
from tests.contract.stored import by_tensorstore, contents, in_memory

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from collections.abc import AsyncIterator, Callable

from n5zarr.tools.validate.findings import KindOfFinding

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
JAVA = DATA / "java"
UNSOUND = {"10.0.0.n5", "5.0.0.n5", "codecs.n5", "zarr2_types.n5"}
SOUND = sorted(
    {p for p in DATA.rglob("*.n5") if p.is_dir() and p.name not in UNSOUND}
    | {Path(n5zarr.sample_path())}
)
PARTIAL = f"2.{'ab' * 16}.partial"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy the sample: `em/s0` to `s2` of truncated blocks, grid 3 x 3 x 3, 2 x 2 x 2, 1."""
    return Path(shutil.copytree(n5zarr.sample_path(), tmp_path / "c.n5"))


@pytest.fixture(params=["together", "one by one"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read small blocks that are older than a moment together by the kernel, or without it."""
    if request.param == "one by one":
        monkeypatch.setattr(many_files, "_kernel", None)


def serious(result: n5zarr.Validation) -> set[tuple[str, str]]:
    """Return kind and place of each finding that is no note."""
    return {(f.kind, f.where) for f in result.findings if f.severity != "note"}


def found(root: Path, **options: Any) -> set[tuple[str, str]]:
    return serious(n5zarr.validate(root, **options))


@pytest.mark.parametrize("deep", [False, True], ids=["ends", "deep"])
@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_nothing_is_found_in_sound_containers(path: Path, deep: bool) -> None:
    result = n5zarr.validate(path, deep=deep)
    assert [str(f) for f in result.findings if f.severity != "note"] == []
    assert result.ok


def test_nothing_is_found_in_documents_of_the_field(tmp_path: Path) -> None:
    """Nothing is found in documents of public containers, but for their missing levels."""
    documents = sorted((DATA / "attributes").glob("[0-9]*"))
    for file in documents:
        write(tmp_path / "c.n5", f"{file.stem}/s0/attributes.json", file.read_bytes())
    result = n5zarr.validate(tmp_path / "c.n5")
    assert result.n_datasets >= 8
    assert [str(f) for f in result.findings if f.kind != "levels"] == []


def test_checked_nodes_blocks_and_bytes_are_counted() -> None:
    result = n5zarr.validate(n5zarr.sample_path())
    blocks = [p for p in Path(n5zarr.sample_path()).rglob("*") if p.is_file() and not p.suffix]
    assert (result.n_groups, result.n_datasets) == (3, 4)
    assert result.n_blocks == len(blocks)
    assert result.n_bytes == sum(p.stat().st_size for p in blocks)


def rewrite(root: Path, path: str, **changes: Any) -> None:
    """Change members of a document, and remove those that become None."""
    file = root / path / "attributes.json"
    document = {**(json.loads(file.read_text()) if file.exists() else {}), **changes}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({k: v for k, v in document.items() if v is not None}))


def copy(root: Path, source: str, target: str) -> None:
    (root / target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / source, root / target)


def write(root: Path, target: str, data: bytes) -> Path:
    (root / target).parent.mkdir(parents=True, exist_ok=True)
    (root / target).write_bytes(data)
    os.utime(root / target, (1_000_000_000,) * 2)  # nobody is writing it now
    return root / target


def change(root: Path, target: str, by: Callable[[bytes], bytes]) -> None:
    write(root, target, by((root / target).read_bytes()))


LEVELS = [{"path": f"s{k}"} for k in range(3)]


def transform_of(scale: Any, translate: Any) -> dict[str, Any]:
    """Describe the axes z, y, x by COSEM's convention."""
    axes = {"axes": ["z", "y", "x"], "units": ["nm"] * 3}
    return {**axes, "scale": scale, "translate": translate}


def mirror(root: Path) -> None:
    """Turn the positions of all levels along y around."""
    for k in range(3):
        by, start = 2**k, (2**k - 1) / 2
        transform = transform_of([20 * by, -8 * by, 8 * by], [20 * start, -8 * start, 8 * start])
        rewrite(root, f"em/s{k}", transform=transform)


EMPTY = ("em/s0/0/0/0", b"")
DATASET = {"dimensions": [5, 7], "dataType": "uint8", "compression": {"type": "raw"}}
DEFECTS: dict[str, tuple[Callable[[Path], object], set[tuple[str, str]]]] = {
    "empty": (lambda r: write(r, "em/s0/1/2/0", b""), {("empty-block", "em/s0: block 1/2/0")}),
    "cut": (lambda r: change(r, "em/s0/2/2/2", lambda b: b[: len(b) // 2]),
            {("payload", "em/s0: block 2/2/2")}),
    "one byte lost": (lambda r: change(r, "labels/s0/0/2/1", lambda b: b[:-1]),
                      {("payload", "labels/s0: block 0/2/1")}),
    "mode": (lambda r: change(r, "em/s0/1/0/0", lambda b: b"\0\7" + b[2:]),
             {("header", "em/s0: block 1/0/0")}),
    "a full block at the end": (lambda r: copy(r, "em/s0/1/1/1", "em/s0/2/1/0"),
                                {("misplaced-block", "em/s0: block 2/1/0")}),
    "a block of the end inside": (lambda r: copy(r, "em/s0/2/0/0", "em/s0/1/0/0"),
                                  {("misplaced-block", "em/s0: block 1/0/0")}),
    "a block of one end at another": (lambda r: copy(r, "em/s0/2/0/0", "em/s0/0/2/0"),
                                      {("misplaced-block", "em/s0: block 0/2/0")}),
    "outside of the grid": (
        lambda r: copy(r, "em/s0/0/0/0", "em/s0/3/0/0"), {("outside-grid", "em/s0: em/s0/3/0/0")}),
    "leading zero": (
        lambda r: copy(r, "em/s0/0/0/0", "em/s0/1/01/0"), {("leading-zero", "em/s0: em/s0/1/01")}),
    "leading zero of a block": (lambda r: copy(r, "em/s0/0/0/0", "em/s0/1/1/00"),
                                {("leading-zero", "em/s0: em/s0/1/1/00")}),
    "stray file": (lambda r: write(r, "em/s0/1/notes.txt", b"x"),
                   {("stray-file", "em/s0: em/s0/1/notes.txt")}),
    "unfinished": (lambda r: write(r, f"em/s0/0/0/{PARTIAL}", b"x"),
                   {("unfinished-file", f"em/s0: em/s0/0/0/{PARTIAL}")}),
    "unfinished document": (
        lambda r: write(r, f"em/{PARTIAL}", b"x"), {("unfinished-file", f"em: em/{PARTIAL}")}),
    "lock file": (lambda r: write(r, "em/s0/0/0/1.__lock", b""),
                  {("lock-file", "em/s0: em/s0/0/0/1.__lock")}),
    "interrupted run": (lambda r: write(r, "em/n5zarr-incomplete.json", b"{}"),
                        {("incomplete", "em: em/n5zarr-incomplete.json")}),
    "no document": (
        lambda r: (r / "em/s2/attributes.json").unlink(), {("orphan-block", "em/s2: em/s2/0/0/0")}),
    "document cut": (
        lambda r: change(r, "em/s1/attributes.json", lambda b: b[:30]), {("json", "em/s1")}),
    "group cut, with datasets below": (
        lambda r: [write(r, *each) for each in (("em/attributes.json", b"{"), EMPTY)],
        {("json", "em"), ("empty-block", "em/s0: block 0/0/0")},
    ),
    "root cut": (lambda r: [write(r, *each) for each in (("attributes.json", b"{"), EMPTY)],
                 {("json", "/"), ("empty-block", "em/s0: block 0/0/0")}),
    "no block size": (lambda r: rewrite(r, "a", **DATASET), {("no-block-size", "a")}),
    "blocksize": (lambda r: rewrite(r, "a", **DATASET, blocksize=[2, 3]), {("near-miss", "a")}),
    "datatype": (lambda r: rewrite(r, "a", **{**DATASET, "dataType": None}, datatype="uint8"),
                 {("near-miss", "a")}),
    "no compression": (
        lambda r: rewrite(r, "a", **{**DATASET, "compression": None}, blockSize=[2, 3]),
        {("near-miss", "a")},
    ),
    "version in two parts": (lambda r: rewrite(r, "", n5="4.0"), {("version", "/")}),
    "version as a number": (lambda r: rewrite(r, "", n5=4), {("version", "/")}),
    "later version": (lambda r: rewrite(r, "", n5="5.0.0"), {("version", "/")}),
    "levels that do not exist": (
        lambda r: rewrite(r, "em", multiscales=[{"datasets": [{"path": "s0"}, {"path": "s9"}]}]),
        {("levels", "em")},
    ),
    "factors of levels that do not exist": (
        lambda r: rewrite(r, "em", downsamplingFactors=[[2**k] * 3 for k in range(4)]),
        {("levels", "em")},
    ),
    "two voxel sizes": (
        lambda r: rewrite(r, "em/s0", pixelResolution={"unit": "nm", "dimensions": [8, 8, 30]}),
        {("contradiction", "em/s0")},
    ),
    "scale of a level": (
        lambda r: rewrite(r, "em/s2", transform=transform_of([40, 16, 16], [10, 4, 4])),
        {("axes", "em/s2"), ("contradiction", "em/s2")},  # its other attributes are right
    ),
    "type of a level": (lambda r: rewrite(r, "em/s2", dataType="int8"), {("axes", "em/s2")}),
    "units for unit": (
        lambda r: rewrite(
            r, "em", multiscales=[{"axes": [{"name": "x", "units": "nm"}], "datasets": LEVELS}]
        ),
        {("axes", f"em/s{k}") for k in range(3)},
    ),
    "levels in each other": (
        lambda r: rewrite(r, "em", multiscales=[{"datasets": [*LEVELS, {"path": "s1/s0"}]}]),
        {("levels", "em")},
    ),
    "a level listed twice": (
        lambda r: rewrite(r, "em", multiscales=[{"datasets": [*LEVELS, {"path": "./s0"}]}]),
        {("levels", "em")},
    ),
    "axes that cannot be meant": (
        lambda r: rewrite(r, "em/s0", transform={"axes": ["z", "y", "x"], "scale": ["4", 4, 4]}),
        {("axes", "em/s0")},
    ),
}  # fmt: skip


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize(("plant", "expected"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_found_where_it_is(
    root: Path, plant: Callable[[Path], object], expected: set[tuple[str, str]]
) -> None:
    plant(root)
    result = n5zarr.validate(root)
    assert serious(result) == expected
    assert not result.ok


def test_a_mirrored_image_is_noted(root: Path) -> None:
    """A negative scale beside the voxel size of another convention is no contradiction."""
    mirror(root)
    rewrite(root, "em/s0", pixelResolution={"unit": "nm", "dimensions": [8, 8, 20]})
    assert found(root) == set()
    notes = [f for f in n5zarr.validate(root).findings if "a scale below 0" in f.message]
    assert [(f.severity, f.kind, f.path) for f in notes] == [
        ("note", "axes", f"em/s{k}") for k in range(3)
    ]


def test_a_block_that_is_flipped_inside_is_found_by_decoding(root: Path) -> None:
    file = root / "em/s0/0/1/0"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert found(root) == set()
    assert found(root, deep=True) == {("payload", "em/s0: block 0/1/0")}


def test_padded_blocks_with_values_are_odd_only_among_others(tmp_path: Path) -> None:
    shutil.copytree(JAVA / "tensorstore.n5" / "gzip", tmp_path / "t.n5")
    path = next(p.parent for p in (tmp_path / "t.n5").rglob("attributes.json"))
    document = json.loads((path / "attributes.json").read_text())
    assert document["dimensions"][0] % document["blockSize"][0]
    last = -(-document["dimensions"][0] // document["blockSize"][0]) - 1
    zeros = ["0"] * (len(document["dimensions"]) - 1)
    shutil.copyfile(path.joinpath("0", *zeros), path.joinpath(str(last), *zeros))
    where = path.relative_to(tmp_path / "t.n5").as_posix()
    block = "/".join([str(last), *zeros])
    assert found(tmp_path / "t.n5", deep=True) == {("misplaced-block", f"{where}: block {block}")}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("blocks.n5/larger-block", "larger-block"), ("blocks.n5/smaller-block", "short-block"),
        ("blocks.n5/trailing-bytes", "trailing-bytes"), ("varlen.n5/u16", "varlength"),
        ("varlen.n5/object", "unsupported"), ("tree.n5/array-root", "not-an-object"),
        ("tree.n5/a", "stray-file"),
    ],
)  # fmt: skip
def test_unusual_but_legal_data_give_a_note(path: str, kind: str) -> None:
    result = n5zarr.validate(JAVA / path)
    assert result.ok
    assert {(f.kind, f.severity) for f in result.findings} == {(kind, "note")}


def test_a_zarr_hierarchy_in_a_container_is_a_note(root: Path) -> None:
    write(root, "z/zarr.json", b'{"zarr_format":3,"node_type":"group"}')
    (each,) = n5zarr.validate(root).findings
    assert (each.kind, each.severity, each.path) == ("foreign", "note", "z")


def test_each_finding_tells_how_it_is_repaired() -> None:
    repairs = {kind for kind, rule in KINDS.items() if rule.repair}
    damaged = {"empty-block", "header", "payload"}
    assert repairs == damaged | {"unfinished-file", "lock-file"}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_in_the_page(kind: KindOfFinding) -> None:
    rule = KINDS[kind]
    repair = f"; `--{rule.repair}`" if rule.repair else ""
    row = f"`{kind}` | {rule.meaning}; *{rule.way_out}{repair}*"
    page = (ROOT / "docs" / "validate.md").read_text()
    table = page.partition(f"\n### {rule.severity.capitalize()}s\n")[2].partition("\n#")[0]
    assert row in table.splitlines()


def test_only_the_ends_of_blocks_are_read(
    root: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_files, "_kernel", None)  # which would read them together
    asked.clear()
    assert n5zarr.validate(root).n_blocks == 63
    files = [p for p in root.rglob("*") if p.is_file() and not p.suffix]
    blocks = {p.relative_to(root).as_posix() for p in files}
    of_blocks = [request for request in asked if getattr(request, "key", None) in blocks]
    assert {request.key for request in of_blocks} == blocks
    assert {(type(each), each.first, each.last) for each in of_blocks} == {(Ends, 4096, 4096)}


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
def test_small_blocks_are_read_together(root: Path, asked: list[Any]) -> None:
    written = write(root, "em/s0/1/1/1", (root / "em/s0/1/1/1").read_bytes())
    os.utime(written)  # as if it were just written
    asked.clear()
    assert n5zarr.validate(root).ok
    assert {r.key for r in asked if isinstance(r, Ends)} <= {"em/s0/1/1/1"}


@pytest.mark.parametrize("deep", [False, True])
def test_a_block_that_is_removed_meanwhile_is_omitted(
    root: Path, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = batches._ends_of

    def after_removal(*arguments: Any, **options: Any) -> Any:
        (root / "em/s0/1/1/1").unlink(missing_ok=True)
        return read(*arguments, **options)

    monkeypatch.setattr(batches, "_ends_of", after_removal)
    result = n5zarr.validate(root, deep=deep)
    assert (result.findings, result.n_blocks) == ((), 62)


@pytest.mark.skipif(not kernel.is_compiled(), reason="no compiled kernel")
@pytest.mark.parametrize("compression", ["raw", "gzip", "blosc", "xz"])
def test_blocks_at_the_ends_are_recognised(
    tmp_path: Path, compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a dataset thinner than its blocks: all blocks are at its end, two of them padded."""
    array: Any = n5zarr.create_array(
        tmp_path, path="x", shape=(3, 7, 11), chunks=(5, 2, 3), dtype="u2", compression=compression
    )
    array[...] = np.arange(1, 232).reshape(3, 7, 11)
    odd = np.pad(array[:, :2, :3], ((0, 2), (0, 0), (0, 0)), constant_values=6)
    odd[4, 1, 1] = 9
    n5zarr.write_block(tmp_path, "x", (0, 0, 0), odd)
    n5zarr.write_block(tmp_path, "x", (1, 2, 0), np.ones((5, 2, 3), "u2"))
    for file in (tmp_path / "x").rglob("*"):
        os.utime(file, (1e9, 1e9))
    monkeypatch.setattr(batches, "check_block", None)
    result = n5zarr.validate(tmp_path)
    assert [(f.kind, f.where) for f in result.findings] == [("misplaced-block", "x: block 0/0/0")]
    assert result.n_blocks == 16


@pytest.mark.parametrize("is_together", [True, False])
def test_label_multisets_have_no_padding(
    tmp_path: Path, is_together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mode 0, one block truncated and one of the full size: of numbers, this one is suspicious."""
    if not is_together:
        monkeypatch.setattr(kernel, "_kernel", None)
    document = {**DATASET, "dimensions": [2, 2], "blockSize": [4, 1]}
    write(tmp_path, "x/0/0", struct.pack(">HHII", 0, 2, 2, 1) + b"\1\2")
    write(tmp_path, "x/0/1", struct.pack(">HHII", 0, 2, 4, 1) + b"\1\2\3\4")
    expected: dict[bool, set[str]] = {False: {"misplaced-block"}, True: set()}
    for is_multiset, kinds in expected.items():
        rewrite(tmp_path, "x", **document, isLabelMultiset=is_multiset)
        assert {f.kind for f in n5zarr.validate(tmp_path).findings} == kinds


@pytest.mark.usefixtures("_way")
def test_a_far_longer_file_is_not_read(tmp_path: Path) -> None:
    """Blocks so small that both ends are read before the whole; this one is no block by itself."""
    options: Any = {"dtype": "u1", "compression": "raw"}
    n5zarr.create_array(tmp_path, path="x", shape=(7,), chunks=(5,), **options)[...] = 1
    os.truncate(tmp_path / "x/0", 70 * 2**20)
    os.utime(tmp_path / "x/0", (1e9, 1e9))
    result = n5zarr.validate(tmp_path, deep=True)
    assert [(f.kind, f.where) for f in result.findings] == [("payload", "x: block 0")]
    assert "bytes of (5,), got 73400320" in result.findings[0].message
    assert (result.n_blocks, result.n_bytes) == (1, 4 + 4 + 2)


def _zstd_without_middle() -> bytes:
    """Make a frame of 6000 bytes whose blocks in the middle are damaged, where zeros would fit."""
    begin = b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 6000)
    first = (5000 << 3).to_bytes(3, "little") + b"a" * 5000
    last = (1000 << 3 | 1).to_bytes(3, "little") + b"a" * 1000
    return begin + first + b"\xff" * 5907 + bytes(3093) + last


MODE_0 = struct.pack(">HHI", 0, 1, 5)
LONG = struct.pack(">HHII", 0, 2, 50, 100) + b"\xff" * 5000
ODD: dict[str, tuple[dict[str, Any], bytes, set[str]]] = {
    "text without a header": ({"dataType": "string"}, b"\0\7abc", {"header"}),
    "text, damaged inside": (
        {"dataType": "string", "compression": {"type": "bzip2"}},
        MODE_0 + bz2.compress(b"abcde")[:20] + b"?" + bz2.compress(b"abcde")[21:],
        {"payload"},
    ),
    "an object in mode 0": (
        {"dataType": "object", "compression": {"type": "bzip2"}},
        MODE_0 + bz2.compress(b"abcde"),
        {"header", "unsupported"},
    ),
    "zstd": (
        {"compression": {"type": "zstd"}, "dimensions": [6000], "blockSize": [6000]},
        struct.pack(">HHI", 0, 1, 6000) + _zstd_without_middle(),
        {"payload"},
    ),
    "a far longer file": (
        {"dimensions": [50, 100], "blockSize": [50, 100]},
        LONG + b"\xff" * 5000 + bytes(70 * 2**20),
        {"payload"},
    ),
}


@pytest.mark.parametrize(("document", "block", "kinds"), ODD.values(), ids=ODD)
@pytest.mark.usefixtures("_way")
def test_ends_that_look_usual(
    tmp_path: Path, document: dict[str, Any], block: bytes, kinds: set[str]
) -> None:
    """Blocks that have to be read, though their ends are those of usual ones."""
    rewrite(tmp_path, "x", **{**DATASET, "dimensions": [5], "blockSize": [5], **document})
    write(tmp_path, "x" + "/0" * len(document.get("blockSize", [5])), block)
    result = n5zarr.validate(tmp_path)
    assert {f.kind for f in result.findings} == kinds
    assert result.n_blocks == 1


def test_small_blocks_are_decoded_if_asked(tmp_path: Path) -> None:
    rewrite(tmp_path, "x", **{**DATASET, "compression": {"type": "bzip2"}}, blockSize=[5, 7])
    data = bytearray(bz2.compress(bytes(35)))
    data[20] ^= 1
    write(tmp_path, "x/0/0", struct.pack(">HHII", 0, 2, 5, 7) + data)
    assert found(tmp_path) == set()
    assert found(tmp_path, deep=True) == {("payload", "x: block 0/0")}


def test_more_axes_than_arrays_have(tmp_path: Path) -> None:
    """Only the document and the header are refused."""
    rewrite(tmp_path, "x", **{**DATASET, "dimensions": [2] * 65}, blockSize=[1] * 65)
    block = write(tmp_path, "x" + "/1" * 65, struct.pack(">HH65I", 0, 65, *[1] * 65) + b"\1")
    result = n5zarr.validate(tmp_path)
    assert [f.kind for f in result.findings] == ["header", "unsupported"]
    assert result.n_bytes == block.stat().st_size


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_workers_find_the_same(root: Path, scheduler: str) -> None:
    DEFECTS["empty"][0](root)
    DEFECTS["a full block at the end"][0](root)
    expected = DEFECTS["empty"][1] | DEFECTS["a full block at the end"][1]
    assert found(root, scheduler=scheduler, n_workers=1) == expected


def test_a_container_in_another_store_is_checked(root: Path) -> None:
    DEFECTS["empty"][0](root)
    DEFECTS["cut"][0](root)
    result = n5zarr.validate(in_memory(root))
    assert result.n_blocks == 63
    assert {(f.kind, f.where) for f in result.findings} == DEFECTS["empty"][1] | DEFECTS["cut"][1]


def test_a_part_of_a_container_is_checked(root: Path) -> None:
    DEFECTS["empty"][0](root)
    assert n5zarr.validate(root, "labels").ok
    assert {f.where for f in n5zarr.find_problems(root / "em" / "s0")} == {"em/s0: block 1/2/0"}
    with pytest.raises(FileNotFoundError):
        n5zarr.validate(root, "nothing")


class StoppedError(Exception):
    pass


def test_an_interrupted_check_goes_on(root: Path, tmp_path: Path) -> None:
    array = n5zarr.create_array(root, path="many", shape=(7 * 300,), chunks=(7,), dtype="u1")
    array[:] = 1
    for name in ("3", "299"):
        write(root, f"many/{name}", b"")
    state = tmp_path / "state"
    calls: list[int] = []

    def stop(*_: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        n5zarr.validate(root, state=state, progress=stop, n_workers=1)
    with state.open("a") as lines:
        lines.write('{"key": "cut')  # as a killed process leaves it
    everything = found(root)
    assert found(root, state=state) == everything
    assert everything == {("empty-block", f"many: block {name}") for name in ("3", "299")}
    assert not state.exists()


def test_done_blocks_are_not_checked_again(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"

    def stop(*_: object) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        n5zarr.validate(root, "labels", state=state, progress=stop)
    write(root, "labels/s0/0/0/0", b"")  # after it was checked: it is not looked at again
    assert found(root, path="labels", state=state) == set()
    assert found(root, path="labels") == {("empty-block", "labels/s0: block 0/0/0")}


def test_the_state_of_another_check_is_refused(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.raises(StoppedError), open_state(state, {"container": "other"}):
        raise StoppedError
    before = state.read_text()
    with pytest.raises(N5UnrepresentableError, match="expected the state of this check"):
        n5zarr.validate(root, state=state)
    assert state.read_text() == before


def test_a_state_that_is_no_text_is_refused(root: Path) -> None:
    image = write(root.parent, "image.png", b"\x89PNG\r\n\x1a\n\xff")
    with pytest.raises(N5UnrepresentableError, match="expected the state of this check"):
        n5zarr.validate(root, state=image)
    assert image.read_bytes() == b"\x89PNG\r\n\x1a\n\xff"


def test_two_runs_of_a_check_may_share_a_state(tmp_path: Path) -> None:
    state, job = tmp_path / "state", {"container": "c"}
    with open_state(state, job), open_state(state, job):
        pass
    assert not (tmp_path / "state").exists()


def test_findings_survive_json() -> None:
    each = Finding(severity="error", kind="payload", path="a", message="m", block=(1, 2))
    assert Finding.from_json(json.loads(json.dumps(each.to_json()))) == each


def age(root: Path, seconds: float) -> None:
    for file in root.rglob("*"):
        if file.suffix in (".partial", ".__lock"):
            os.utime(file, (time.time() - seconds,) * 2)


def test_old_leftovers_are_removed_and_young_ones_kept(root: Path) -> None:
    for name in ("unfinished", "lock file"):
        DEFECTS[name][0](root)
    age(root, 600)
    result = n5zarr.validate(root)
    kept = n5zarr.clean_leftovers(root, result.findings)
    assert (kept.removed, len(kept.kept)) == ((), 2)
    age(root, 7200)
    cleaned = n5zarr.clean_leftovers(root, result.findings)
    assert sorted(cleaned.removed) == ["em/s0/0/0/1.__lock", f"em/s0/0/0/{PARTIAL}"]
    assert n5zarr.validate(root).findings == ()


def test_damaged_blocks_go_beside_the_container_and_back(root: Path) -> None:
    before = contents(root)
    for name in ("empty", "cut", "mode"):
        DEFECTS[name][0](root)
    damaged = contents(root)
    result = n5zarr.validate(root)
    moved = n5zarr.quarantine_blocks(root, result.findings)
    assert sorted(moved.moved) == ["em/s0/1/0/0", "em/s0/1/2/0", "em/s0/2/2/2"]
    assert Path(moved.quarantine).parent == root.with_name("c.n5.quarantine")
    assert n5zarr.validate(root).findings == ()
    n5zarr.write_block(root, "em/s0", (1, 0, 0), np.full((16, 40, 50), 7))  # written again
    back = n5zarr.restore_blocks(moved.quarantine, root)
    assert sorted(back.moved) == ["em/s0/1/2/0", "em/s0/2/2/2"]
    assert list(back.kept) == ["em/s0/1/0/0"]
    after = contents(root)
    assert after.keys() == before.keys()
    del after["em/s0/1/0/0"]
    assert after.items() <= damaged.items()


def test_a_place_in_the_container_is_no_quarantine(root: Path) -> None:
    DEFECTS["empty"][0](root)
    findings = n5zarr.validate(root).findings
    with pytest.raises(N5UnrepresentableError, match="outside the container"):
        n5zarr.quarantine_blocks(root, findings, to=root / "em" / "s0")
    assert n5zarr.validate(root).findings == findings


@pytest.mark.parametrize("listed", [b"{", b"[]", b"{}", b'{"blocks": [1]}'])
def test_another_list_is_not_restored(listed: bytes, root: Path, tmp_path: Path) -> None:
    write(tmp_path, "q/quarantine.json", listed)
    with pytest.raises(N5UnrepresentableError, match="got another file of this name"):
        n5zarr.restore_blocks(tmp_path / "q", root)


@pytest.mark.parametrize("key", ["../1", "em/../../1", "em/s0/attributes.json"])
def test_only_blocks_are_restored(key: str, root: Path) -> None:
    place = write(root.parent, "deep/q/quarantine.json", json.dumps({"blocks": {key: {}}}).encode())
    files = [write(root.parent, "deep/1", b"mine"), write(place.parent, f"{key}", b"mine")]
    with pytest.raises(N5UnrepresentableError, match="expected paths of blocks"):
        n5zarr.restore_blocks(place.parent, root)
    assert [file.read_bytes() for file in files] == [b"mine"] * 2


@pytest.mark.parametrize(
    ("target", "data"),
    [("em/s0/1/2/0", b""), ("em/s0/attributes.json", b"{}")],
    ids=["a block that was written again", "a block of a dataset that is gone"],
)
def test_what_is_damaged_no_more_stays_where_it_is(root: Path, target: str, data: bytes) -> None:
    sound = (root / "em/s0/1/2/0").read_bytes()
    DEFECTS["empty"][0](root)
    findings = n5zarr.validate(root).findings
    write(root, target, data or sound)
    before = contents(root)
    moved = n5zarr.quarantine_blocks(root, findings)
    assert (moved.moved, list(moved.kept)) == ((), ["em/s0/1/2/0"])
    assert contents(root) == before


def sizes_of(path: Path) -> set[tuple[int, ...]]:
    """Return the sizes in the headers of all blocks, by the specification."""
    blocks = [p.read_bytes() for p in path.rglob("*") if p.is_file() and not p.suffix]
    return {tuple(np.frombuffer(b, ">u4", int(b[3]), 4).tolist()) for b in blocks}


@pytest.mark.parametrize(
    "path",
    [
        "dtypes.n5/uint16/3d",
        "dtypes.n5/float64/4d",
        "zarr2.n5/blosc/uint16",
        "tensorstore.n5/xz/u16",
    ],
)
def test_edges_are_padded_and_truncated_without_loss(tmp_path: Path, path: str) -> None:
    dataset = Path(shutil.copytree(JAVA / path, tmp_path / "c.n5"))
    document = json.loads((dataset / "attributes.json").read_text())
    full = tuple(document["blockSize"])
    pairs = list(zip(document["dimensions"], full, strict=True))
    assert any(d % b for d, b in pairs)
    expected = by_tensorstore(dataset)
    n5zarr.repair_edges(dataset, to="pad")
    assert sizes_of(dataset) == {full}
    np.testing.assert_array_equal(by_tensorstore(dataset), expected)
    done = n5zarr.repair_edges(dataset, to="truncate")
    assert (done.n_with_values, done.skipped) == (0, {})
    np.testing.assert_array_equal(by_tensorstore(dataset), expected)
    lengths = [{min(b, d - k) for k in range(0, d, b)} for d, b in pairs]
    assert sizes_of(dataset) == set(itertools.product(*lengths))
    assert n5zarr.repair_edges(dataset, to="truncate").n_rewritten == 0


def test_truncating_says_what_it_drops_and_leaves_alone(root: Path) -> None:
    DEFECTS["a full block at the end"][0](root)
    DEFECTS["cut"][0](root)
    DEFECTS["a block of one end at another"][0](root)
    done = n5zarr.repair_edges(root, "em", to="truncate")
    assert (done.n_rewritten, done.n_with_values) == (1, 1)
    assert list(done.skipped) == ["em/s0/0/2/0"]


@pytest.mark.parametrize(
    "repair",
    [n5zarr.clean_leftovers, n5zarr.quarantine_blocks,
     lambda store, _: n5zarr.repair_edges(store, to="pad")],
    ids=["clean", "quarantine", "pad"],
)  # fmt: skip
def test_a_store_that_is_read_only_is_not_repaired(
    root: Path, repair: Callable[..., object]
) -> None:
    write(root, "em/s0/0/0/0", b"")
    os.utime(write(root, f"em/s0/{PARTIAL}", b"x"), (1, 1))
    before = contents(root.parent)
    store = LocalStore(root, read_only=True)
    findings = n5zarr.validate(store).findings
    assert {f.repair for f in findings} >= {"clean", "quarantine"}
    with pytest.raises(N5UnsupportedError, match="read-only"):
        repair(store, findings)
    assert contents(root.parent) == before


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("/nowhere/s1", "got a link to /nowhere/s1, which does not", id="nowhere"),
        pytest.param("s1", "Too many levels of symbolic links", id="itself"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(target: str, message: str, tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a/s0", shape=(3,), dtype="u1")
    (tmp_path / "c.n5/a/s1").symlink_to(target)
    (tmp_path / "c.n5/a/notes.txt").touch()
    findings = n5zarr.validate(tmp_path / "c.n5").findings
    file, link = sorted(findings, key=lambda f: str(f.kind))
    assert (link.severity, link.kind, link.file) == ("error", "unreadable", "a/s1")
    assert message in link.message
    assert (file.severity, file.kind, file.file) == ("note", "stray-file", "a/notes.txt")


class Refusing(WrapperStore[LocalStore]):
    """A store that refuses some keys and listings."""

    _supports_sync_io = False

    def __init__(self, root: Path, keys: set[str], error: Exception) -> None:
        super().__init__(LocalStore(root))
        self.keys, self.error = keys, error

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        if key in self.keys:
            raise self.error
        return await super().get(key, *args, **kwargs)

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        if prefix.strip("/") in self.keys:
            raise self.error
        async for name in super().list_dir(prefix):
            yield name


@pytest.mark.parametrize("deep", [False, True], ids=["ends", "deep"])
@pytest.mark.parametrize(
    "error",
    [PermissionError(13, "no"), OSError(5, "bad disk"), BadZipFile("Bad CRC-32"), zlib.error("-3")],
    ids=str,
)
def test_a_key_that_storage_refuses_is_a_finding_and_the_rest_is_checked(
    root: Path, error: Exception, deep: bool
) -> None:
    n_blocks = n5zarr.validate(root).n_blocks
    write(root, "g/attributes.json", b"{}")
    write(root, "g/7", b"")
    write(root, "em/s0/1/1/1", b"no block")
    keys = {"em/s0/2", "em/s1/1/1/1", "em/s2/attributes.json", "g/7"}
    result = n5zarr.validate(Refusing(root, keys, error), deep=deep)
    refused = [f for f in result.findings if f.kind == "unreadable"]
    assert sorted(f.path for f in refused) == ["em/s0", "em/s1", "em/s2", "g", "g/7"]
    assert all(f"{type(error).__name__}: {error}" in f.message for f in refused)
    assert ("em/s0", (1, 1, 1)) in {(f.path, f.block) for f in result.findings}
    assert result.n_blocks == n_blocks - 9 - 1 - 1  # of a directory of s0, of s1 and of s2


def test_edges_are_not_repaired_where_storage_refuses_to_list(root: Path) -> None:
    with pytest.raises(PermissionError):
        n5zarr.repair_edges(Refusing(root, {"em/s0/2"}, PermissionError(13, "no")), to="pad")


def test_a_lost_connection_ends_the_check(root: Path) -> None:
    with pytest.raises(ConnectionError, match="lost"):
        n5zarr.validate(Refusing(root, {"em/s1/1/1/1"}, ConnectionError("lost")))


def lz4_block_stream(data: bytes) -> bytes:
    """Compress as lz4-java's ``LZ4BlockOutputStream``: two stored pieces, and the end."""
    frames = b""
    for piece in (data[: len(data) // 2], data[len(data) // 2 :], b""):
        check = xxhash.xxh32_intdigest(piece, 0x9747B28C) & 0x0FFFFFFF if piece else 0
        frames += struct.pack("<8sBIII", b"LZ4Block", 0x16, len(piece), len(piece), check) + piece
    return frames


def zstd_without_size(data: bytes) -> bytes:
    """Compress as n5-zstandard 1.0.1 does."""
    options: dict[int, int] = {zstd.CompressionParameter.content_size_flag: 0}
    return zstd.compress(data, options=options)


CODECS: dict[str, tuple[dict[str, Any], Callable[[bytes], bytes]]] = {
    "raw": ({"type": "raw"}, bytes),
    "gzip": ({"type": "gzip", "useZlib": False}, gzip.compress),
    "zlib": ({"type": "gzip", "useZlib": True}, zlib.compress),
    "bzip2": ({"type": "bzip2"}, bz2.compress),
    "xz": ({"type": "xz"}, lzma.compress),
    "lz4": ({"type": "lz4"}, lz4_block_stream),
    "lz4 frame": ({"type": "lz4"}, import_module("lz4.frame").compress),
    "zstd": ({"type": "zstd"}, Zstd().encode),
    "zstd without size": ({"type": "zstd"}, zstd_without_size),
    "blosc": ({"type": "blosc", "cname": "lz4"}, lambda data: blosc_compress(data, b"lz4", 5)),
}
FOUR_BYTES = "uint32 or int32 or float32"
FIRST = "n5zarr and Java read the first 30"
TELLS_WITHOUT_DECODING = set(CODECS) - {"zlib", "bzip2", "zstd without size"}


def plant(path: Path, codec: str, payload: bytes, **changes: Any) -> Path:
    """Write a container with the dataset `a` of uint16, one block of 3 x 5, and its payload."""
    compression = CODECS[codec][0]
    document = {"dimensions": [3, 5], "blockSize": [3, 5], "dataType": "uint16"} | changes
    rewrite(path, "a", **document, compression=compression)
    mode = {"object": struct.pack(">HI", 2, 15), "string": struct.pack(">HHIII", 1, 2, 3, 5, 15)}
    header = mode.get(document["dataType"], struct.pack(">HHII", 0, 2, 3, 5))
    write(path, "a/0/0", header + payload)
    return path


def kinds_of(path: Path, *, deep: bool) -> dict[str, tuple[str, str]]:
    return {f.kind: (f.severity, f.message) for f in n5zarr.validate(path, deep=deep).findings}


PAYLOADS: dict[str, tuple[np.ndarray, dict[str, Any], tuple[str, str] | None]] = {
    "right": (np.arange(15, dtype=">u2"), {}, None),
    "of another data type": (
        np.arange(15, dtype=">u4"), {}, ("error", f"got 60: as many as {FOUR_BYTES} has")),
    "a full block with the header of a truncated one": (
        np.arange(7 * 11, dtype=">u2"), {"blockSize": [7, 11]},
        ("error", "got 154: as many as (7, 11) has, not (3, 5)")),
    "that fits nothing": (np.arange(23, dtype=">u2"), {}, ("warning", "got 46")),
}  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("elements", "changes", "said"), PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_with_another_number_of_elements_is_found(
    tmp_path: Path, codec: str, elements: Any, changes: Any, said: tuple[str, str] | None
) -> None:
    root = plant(tmp_path / "c.n5", codec, CODECS[codec][1](elements.tobytes()), **changes)
    expected = {}
    if said is not None:
        expected["longer-payload"] = said[0], f"expected 30 bytes, {said[1]}; {FIRST}"
    assert kinds_of(root, deep=True) == expected
    if elements.itemsize == 4:
        assert kinds_of(root, deep=False) == (expected if codec in TELLS_WITHOUT_DECODING else {})
        values: Any = n5zarr.open_array(root, path="a", mode="r")[...]
        assert values[0].tolist() == [0, 0, 0]  # as Java reads it


@pytest.mark.parametrize("document", ["no JSON", '{"zarr_format": 3, "node_type": "group"}'])
def test_a_document_of_zarr_beside_n5_is_named(tmp_path: Path, document: str) -> None:
    root = plant(tmp_path / "c.n5", "raw", np.arange(15, dtype=">u2").tobytes())
    for path in (root, root / "a"):
        path.joinpath("zarr.json").write_text(document)
    result = n5zarr.validate(root)
    assert [(f.file, f.kind, f.severity) for f in result.findings] == [
        ("zarr.json", "stray-file", "note"), ("a/zarr.json", "stray-file", "note"),
    ]  # fmt: skip
    assert all("a document of Zarr beside N5" in each.message for each in result.findings)
    assert result.n_blocks == 1
    assert n5zarr.open_array(root, path="a", mode="r")[0, 1] == 1
    assert repr(result).endswith(f"c.n5 /: {result}>")
    assert str(result).startswith("2 notes: 1 group, 1 dataset, 1 block of 42 B checked in ")


def test_blocks_of_lz4_by_several_programs_are_found(tmp_path: Path) -> None:
    """One program's are fine, also those of rust-n5, whose document is like Java's."""
    elements = np.arange(15, dtype=">u2").tobytes()
    root = plant(tmp_path / "c.n5", "lz4", lz4_block_stream(elements), dimensions=[9, 5])
    header = struct.pack(">HHII", 0, 2, 3, 5)
    write(root, "a/1/0", header + lz4_block_stream(elements))
    assert kinds_of(root, deep=False) == {}
    write(root, "a/2/0", header + CODECS["lz4 frame"][1](elements))
    found = "expected all blocks in the format of one program, got 2 of Java and 1 of rust-n5"
    assert kinds_of(root, deep=False) == {"framing": ("warning", found)}


TWO_STREAMS = sorted(set(CODECS) - {"raw", "lz4", "lz4 frame"})


@pytest.mark.parametrize(
    ("codec", "is_stream"), [*((c, False) for c in CODECS), *((c, True) for c in TWO_STREAMS)]
)
def test_bytes_after_the_stream_are_a_note(tmp_path: Path, codec: str, is_stream: bool) -> None:
    stream = CODECS[codec][1](np.arange(15, dtype=">u2").tobytes())
    more = stream if is_stream else b"surplus"
    root = plant(tmp_path / "c.n5", codec, stream + more)
    if (codec, is_stream) == ("gzip", False):  # Java refuses such a block
        assert kinds_of(root, deep=True)["payload"][0] == "error"
    else:
        message = f"expected the end of the block, got {len(more)} bytes more"
        assert kinds_of(root, deep=True) == {"trailing-bytes": ("note", message)}


def test_a_skippable_frame_of_zstd_belongs_to_the_payload(tmp_path: Path) -> None:
    """RFC 8878, section 3.1.2."""
    stream = CODECS["zstd"][1](np.arange(15, dtype=">u2").tobytes())
    skipped = struct.pack("<II", 0x184D2A53, 5) + b"notes"
    root = plant(tmp_path / "c.n5", "zstd", stream + skipped)
    assert kinds_of(root, deep=True) == {}


@pytest.mark.parametrize("codec", sorted(set(CODECS) - {"gzip"}))
@pytest.mark.parametrize(
    ("data_type", "content"), [("object", b"0123456789abcde"), ("string", b"\0" * 15)]
)
def test_blocks_of_bytes_and_text_are_checked(
    tmp_path: Path, codec: str, data_type: str, content: bytes
) -> None:
    pack = CODECS[codec][1]
    sound = plant(tmp_path / "c.n5", codec, pack(content), dataType=data_type)
    before = kinds_of(sound, deep=True)
    assert set(before) <= {"unsupported"}
    plant(tmp_path / "c.n5", codec, pack(content) + b"surplus", dataType=data_type)
    kind = {"bzip2": "payload", "xz": "payload", "raw": "payload"}.get(codec, "trailing-bytes")
    if data_type == "object":
        kind = "trailing-bytes"
    assert set(kinds_of(sound, deep=True)) - set(before) == {kind}
    if data_type == "object":
        plant(tmp_path / "c.n5", codec, pack(content * 2), dataType=data_type)
        assert kinds_of(sound, deep=True)["longer-payload"][0] == "warning"


@pytest.mark.parametrize("shown", [Path, in_memory], ids=["files", "memory"])
def test_files_that_are_no_blocks_are_found_in_every_store(tmp_path: Path, shown: Any) -> None:
    """A store in memory lists keys, and local files directories; the findings are the same."""
    n5zarr.create_array(tmp_path / "c.n5", path="g/a", data=np.ones((7, 5), "u1"), chunks=(3, 2))
    block = (tmp_path / "c.n5/g/a/0/0").read_bytes()
    for name in ("g/a/0/9", "g/a/01/0", "g/a/notes.md", "g/a/0/x/y", "g/4/2"):
        write(tmp_path / "c.n5", name, block)
    write(tmp_path / "c.n5", "g/3", b"123")  # no block
    findings = n5zarr.validate(shown(tmp_path / "c.n5")).findings
    assert {(each.kind, each.file, each.severity) for each in findings} == {
        ("outside-grid", "g/a/0/9", "warning"),
        ("leading-zero", "g/a/01", "warning"),
        ("stray-file", "g/a/notes.md", "note"),
        ("stray-file", "g/a/0/x", "warning"),
        ("orphan-block", "g/4/2", "warning"),
    }


def test_a_block_that_left_quarantine_is_told(root: Path) -> None:
    DEFECTS["empty"][0](root)
    moved = n5zarr.quarantine_blocks(root, n5zarr.validate(root).findings)
    (Path(moved.quarantine) / "em/s0/1/2/0").unlink()
    back = n5zarr.restore_blocks(moved.quarantine, root)
    assert back.moved == ()
    assert back.kept == {"em/s0/1/2/0": "it is not in quarantine"}
    assert (Path(moved.quarantine) / "quarantine.json").exists()


def test_quarantine_of_a_store_without_a_place_beside_it_must_be_given() -> None:
    """A URL has one; a store in memory has none."""
    store = N5Store(f"memory://{uuid4().hex}/c.n5")
    for where in (store, N5Store(MemoryStore())):
        n5zarr.create_array(where, path="a", data=np.ones((7, 5), "u1"), chunks=(7, 5))
        sync(where.store.set("a/0/0", cpu.Buffer.from_bytes(b"")))
        findings = n5zarr.validate(where).findings
        assert [(each.kind, each.path, each.block) for each in findings] == [
            ("empty-block", "a", (0, 0))
        ]
        if where is store:
            moved = n5zarr.quarantine_blocks(where, findings)
            assert moved.moved == ("a/0/0",)
            assert ".n5.quarantine/" in moved.quarantine
            assert n5zarr.validate(where).ok
        else:
            with pytest.raises(N5UnsupportedError, match=r"got none: pass one \(to=\)"):
                n5zarr.quarantine_blocks(where, findings)


def test_edges_that_cannot_be_written_are_skipped(tmp_path: Path) -> None:
    """Text has no parts outside, and jpeg is only read."""
    shutil.copytree(JAVA / "strings.n5", tmp_path / "c.n5")
    n5zarr.create_array(tmp_path / "c.n5", path="j", data=np.ones((7, 5), "u1"), chunks=(3, 2))
    file = tmp_path / "c.n5/j/attributes.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"compression": {"type": "jpeg"}}))
    before = contents(tmp_path / "c.n5")
    done = n5zarr.repair_edges(tmp_path / "c.n5", to="pad")
    assert (done.n_rewritten, done.n_as_wanted) == (0, 0)
    assert "jpeg can only be read" in done.skipped["j"]
    assert {reason for path, reason in done.skipped.items() if path != "j"} == {"holds strings"}
    assert contents(tmp_path / "c.n5") == before
