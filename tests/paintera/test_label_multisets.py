"""Label multisets in containers: read, written as labels and with all counts, created."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr.errors import N5BlockError, N5UnrepresentableError, N5UnsupportedError
from tests.contract.stored import contents
from tests.multisets import Voxels, parsed, random_voxels, voxels_of
from tests.unit.codecs.test_multisets import made

DATA = Path(__file__).parents[1] / "data"
JAVA = DATA / "java" / "labels.n5"
ELF = DATA / "real/constantinpape+elf/data/label_multiset/test_paintera.n5"
MANIFEST = json.loads((DATA / "java" / "manifest.json").read_text())["labelMultisets"][0]
SHAPE, CHUNKS = (5, 7, 11), (2, 3, 4)


def java_voxels() -> Voxels:
    """Return what the Java generator noted for each voxel of ``labels/s0``."""
    voxels: Voxels = {}
    for block in MANIFEST["blocks"]:
        x0, y0, z0 = (p * b for p, b in zip(block["pos"], MANIFEST["blockSize"], strict=True))
        nx, ny, nz = block["size"]
        noted = iter(block["voxelsN5Order"].split(";"))
        for z, y, x in itertools.product(range(nz), range(ny), range(nx)):
            entries = (entry.split(":") for entry in next(noted).split(","))
            voxels[z0 + z, y0 + y, x0 + x] = {int(k): int(v) for k, v in entries}
    return voxels


@pytest.fixture
def java(tmp_path: Path) -> Path:
    return Path(shutil.copytree(JAVA, tmp_path / "labels.n5"))


def filled(where: Path) -> Voxels:
    """Create a dataset of random multisets, some blocks missing; return its voxels."""
    n5zarr.create_array(where, shape=SHAPE, chunks=CHUNKS, label_multiset=True, compression="raw")
    voxels = random_voxels(np.random.default_rng(3), SHAPE)
    n5zarr.write_label_multisets(where, made(voxels, SHAPE))
    return voxels


def test_multisets_of_java_are_read() -> None:
    multisets = n5zarr.read_label_multisets(JAVA, "labels/s0")
    assert voxels_of(multisets) == java_voxels()
    labels = np.asarray(n5zarr.open_array(JAVA, path="labels/s0")[...])
    assert multisets.argmax().tolist() == labels.tolist()
    old = n5zarr.read_label_multisets(JAVA / "old-argmax")
    assert {str(entries) for entries in voxels_of(old).values()} == {"{7: 1}"}


def test_multisets_of_paintera_are_read() -> None:
    """Each voxel of ``range/data/s1`` holds the 8 labels of its 2 x 2 x 2 voxels once."""
    multisets = n5zarr.read_label_multisets(ELF, "range/data/s1")
    numbers = np.arange(32**3).reshape(32, 32, 32)
    for z, y, x in [(0, 0, 0), (3, 5, 7), (15, 13, 11)]:
        cell = numbers[2 * z : 2 * z + 2, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        assert multisets[z, y, x] == dict.fromkeys(cell.ravel().tolist(), 1)
    assert set(multisets.totals().ravel().tolist()) == {8}


@pytest.mark.parametrize(
    "box",
    [
        np.s_[0, 1:3, :], np.s_[0:2, 2, 1:4], np.s_[..., 3], np.s_[-1:, :, 2:3], 1, (1, 2, 3),
        np.s_[2:2], np.s_[1, 3:1, 1:3], np.s_[5:9, 0],
    ],
)  # fmt: skip
def test_a_box_is_selected_like_one_of_the_array(box: Any) -> None:
    numbers = np.arange(24).reshape(2, 3, 4)
    positions = list(np.ndindex(2, 3, 4))
    multisets, wanted = n5zarr.read_label_multisets(JAVA, "labels/s0", box), numbers[box]
    assert multisets.shape == np.shape(wanted)
    voxels = java_voxels()
    for position in np.ndindex(np.shape(wanted)):
        assert multisets[position] == voxels[positions[wanted[position]]]


@pytest.mark.parametrize(
    "box", [np.s_[0:0], np.s_[2:1], np.s_[0, 9:20], np.s_[..., 3:3], np.s_[1:1, 1, 2]]
)
def test_an_empty_box_is_selected_like_one_of_the_array(box: Any) -> None:
    wanted = np.zeros((2, 3, 4))[box]
    array: Any = n5zarr.open_array(JAVA, path="labels/s0")
    assert np.shape(array[box]) == wanted.shape
    multisets = n5zarr.read_label_multisets(JAVA, "labels/s0", box)
    assert multisets.shape == wanted.shape
    assert len(multisets.labels) == len(multisets.counts) == 0
    assert multisets.argmax().shape == wanted.shape


def test_a_store_in_the_order_of_n5_gives_multisets_in_that_order() -> None:
    store = n5zarr.N5Store(JAVA, axis_order="F")
    multisets = n5zarr.read_label_multisets(store, "labels/s0", (slice(1, 4), slice(None), 1))
    voxels = java_voxels()
    assert multisets.shape == (3, 3)
    assert multisets[2, 0] == voxels[1, 0, 3]
    assert multisets[0, 2] == voxels[1, 2, 1]


def test_missing_blocks_are_background(java: Path) -> None:
    (java / "labels/s0/1/0/0").unlink()
    multisets = n5zarr.read_label_multisets(java, "labels/s0")
    missing = {p: {0: 1} for p in java_voxels() if p[2] >= 2 and p[1] < 2}
    assert voxels_of(multisets) == java_voxels() | missing


@pytest.mark.parametrize("opened", ["n5zarr", "zarr", "zarr-v2", "f"])
def test_labels_that_are_read_and_written_again_change_nothing(java: Path, opened: str) -> None:
    options: Any = {"zarr": {}, "zarr-v2": {"zarr_format": 2}, "f": {"axis_order": "F"}}
    if opened == "n5zarr":
        array: Any = n5zarr.open_array(java, "r+", path="labels/s0")
    else:
        store = n5zarr.N5Store(java, **options[opened])
        array = zarr.open_array(store, path="labels/s0", mode="r+")
    before = contents(java)
    array[...] = array[...]
    array[0, 1:, 1] = array[0, 1:, 1]
    assert contents(java) == before
    array[(1, 2, 3) if opened != "f" else (3, 2, 1)] = 2**64 - 1
    expected = java_voxels() | {(1, 2, 3): {2**64 - 1: 1}}
    assert voxels_of(n5zarr.read_label_multisets(java, "labels/s0")) == expected


PIPELINES = pytest.mark.parametrize(
    "pipeline", ["n5zarr.arrays.pipeline.N5", "zarr.core.codec_pipeline.Batched"]
)


@PIPELINES
def test_a_part_of_a_block_keeps_the_other_voxels(tmp_path: Path, pipeline: str) -> None:
    where = tmp_path / "x.n5" / "labels"
    voxels = filled(where)
    with zarr.config.set({"codec_pipeline.path": f"{pipeline}CodecPipeline"}):
        array = zarr.open_array(n5zarr.N5Store(where.parent), path="labels", mode="r+")
        array[1:4, 2:6, 3:9] = 12
    assert array[2, 3, 4] == 12
    changed = itertools.product(range(1, 4), range(2, 6), range(3, 9))
    expected = voxels | {p: {12: 1} for p in changed}
    assert voxels_of(n5zarr.read_label_multisets(where)) == expected


@PIPELINES
def test_minorities_survive_background_of_the_whole_block(tmp_path: Path, pipeline: str) -> None:
    where = tmp_path / "x.n5"
    with zarr.config.set({"codec_pipeline.path": f"{pipeline}CodecPipeline"}):
        array = n5zarr.create_array(where, shape=(2, 3), chunks=(2, 3), label_multiset=True)
    n5zarr.write_label_multisets(where, n5zarr.LabelMultisets([[0]], [0, 2], [0, 9], [5, 2]))
    array[...] = array[...]
    array[1, 1:] = 0
    assert n5zarr.read_label_multisets(where)[0, 0] == {0: 5, 9: 2}
    array[0, 0] = 3
    array[0, 0] = 0
    assert not (where / "0").exists() or not any(p.is_file() for p in (where / "0").rglob("*"))


def test_background_keeps_its_counts(tmp_path: Path) -> None:
    """Voxels of a missing block hold the background once: a block of other ones is stored."""
    where = tmp_path / "x.n5" / "labels"
    n5zarr.create_array(where, shape=(2, 5), chunks=(2, 3), label_multiset=True)
    multisets = n5zarr.LabelMultisets([[0] * 4 + [1]] * 2, [0, 1, 1], [0], [8])
    n5zarr.write_label_multisets(where, multisets)
    n5zarr.open_array(where, "r+")[0] = 0
    expected = {(z, y): {0: 8} if y < 4 else {} for z in range(2) for y in range(5)}
    assert voxels_of(n5zarr.read_label_multisets(where)) == expected
    n5zarr.rechunk(where, chunks=(1, 2))
    assert voxels_of(n5zarr.read_label_multisets(where)) == expected
    n5zarr.write_label_multisets(where, n5zarr.LabelMultisets.of(np.zeros((2, 5), "u8")))
    assert not [p for p in where.rglob("*") if p.is_file() and p.name != "attributes.json"]


def test_blocks_of_labels_are_those_of_java(tmp_path: Path) -> None:
    """``N5LabelMultisets.saveLabelMultisetNonEmptyBlock`` of n5-imglib2 c9f4fe7.

    Mode 1, extent inside the dataset, number of bytes before compression; no block of background.
    """
    labels = np.zeros((3, 5), "u8")
    labels[:2, 4], labels[2] = [3, 2**40], 4
    labels[2, 0] = 2**64 - 2  # in Java a negative number, as those of its `Label` are
    where = tmp_path / "x.n5" / "labels"
    n5zarr.create_array(where, data=labels, chunks=(2, 4), label_multiset=True)
    document = json.loads((where / "attributes.json").read_text())
    assert document["dataType"] == "uint8"
    assert document["isLabelMultiset"] is True
    assert document["maxId"] == 2**40
    assert not (where / "0" / "0").exists()
    block = (where / "1" / "0").read_bytes()
    payload = gzip.decompress(block[16:])
    assert block[:16] == bytes.fromhex("0001 0002 00000001 00000002") + len(payload).to_bytes(4)
    assert parsed(payload, (2, 1)) == {(0, 0): {3: 1}, (1, 0): {2**40: 1}}
    assert np.asarray(n5zarr.open_array(where)[...]).tolist() == labels.tolist()


def test_multisets_are_written_at_a_place(tmp_path: Path) -> None:
    where = tmp_path / "x.n5" / "labels"
    voxels = filled(where)
    others = random_voxels(np.random.default_rng(8), (3, 4, 5))
    multisets = made(others, (3, 4, 5))
    n5zarr.write_label_multisets(tmp_path / "x.n5", multisets, "labels", (2, 1, 5))
    moved = {(z + 2, y + 1, x + 5): entries for (z, y, x), entries in others.items()}
    assert voxels_of(n5zarr.read_label_multisets(where)) == voxels | moved


def test_a_block_costs_the_same_in_any_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block looked at the lists of all voxels: the work grew with the square of the box."""
    where, n, seen, init = tmp_path / "x.n5", 32, [], n5zarr.LabelMultisets.__init__
    ones = np.ones(n * n, "i8")
    multisets = n5zarr.LabelMultisets.from_csr(np.arange(n * n + 1), ones, ones, (n, n))
    n5zarr.create_array(where, shape=(n, n), chunks=(2, 2), label_multiset=True)

    def counted(self: n5zarr.LabelMultisets, *arrays: Any) -> None:
        init(self, *arrays)
        seen.append(len(self.labels))

    monkeypatch.setattr(n5zarr.LabelMultisets, "__init__", counted)
    n5zarr.write_label_multisets(where, multisets)
    assert sum(seen) < 9 * n * n


def test_boxes_outside_are_an_error_and_nothing_is_written(java: Path) -> None:
    before = contents(java)
    one = n5zarr.LabelMultisets.of([[[7]]])
    for start in [(2, 0, 0), (-1, 0, 0), (0, 0)]:
        with pytest.raises(N5UnrepresentableError, match="start: expected a box inside"):
            n5zarr.write_label_multisets(java, one, "labels/s0", start)
    for box in [(0, 0, 4), (slice(2, 2, -1),), (slice(None, None, 2),), (0, 0, 0, 0)]:
        with pytest.raises(N5UnrepresentableError, match="box: expected integers and slices"):
            n5zarr.read_label_multisets(java, "labels/s0", box)
    assert contents(java) == before


def test_other_nodes_are_an_error(java: Path) -> None:
    n5zarr.create_array(java, path="numbers", shape=(3,), dtype="u1")
    with pytest.raises(N5UnsupportedError, match="got one of uint8 without isLabelMultiset"):
        n5zarr.read_label_multisets(java, "numbers")
    with pytest.raises(N5UnsupportedError, match="got a group; datasets in it: labels/s0"):
        n5zarr.read_label_multisets(java, "")
    with pytest.raises(FileNotFoundError, match="nothing"):
        n5zarr.read_label_multisets(java, "nothing")


def test_a_damaged_block_is_named_and_kept(java: Path) -> None:
    block = java / "labels/s0/0/0/0"
    damaged = block.read_bytes()[:-9]
    block.write_bytes(damaged)
    with pytest.raises(N5BlockError, match="labels/s0: block 0/0/0"):
        n5zarr.read_label_multisets(java, "labels/s0")
    array = n5zarr.open_array(java, "r+", path="labels/s0")
    with pytest.raises(N5BlockError, match="labels/s0: block 0/0/0"):
        array[0, 0, 0] = 5
    with pytest.raises(N5BlockError, match="labels/s0: block 0/0/0"):
        n5zarr.write_label_multisets(java, n5zarr.LabelMultisets.of([[[7]]]), "labels/s0")
    assert block.read_bytes() == damaged


def test_validation_finds_negative_counts(tmp_path: Path) -> None:
    where = tmp_path / "x.n5"
    n5zarr.create_array(
        where / "a", shape=(1,), chunks=(1,), label_multiset=True, compression="raw"
    )
    n5zarr.write_label_multisets(where / "a", n5zarr.LabelMultisets([0], [0, 1], [7], [1]))
    block = where / "a/0"
    block.write_bytes(block.read_bytes()[:-4] + (-1).to_bytes(4, "little", signed=True))
    (found,) = n5zarr.find_problems(where, deep=True)
    assert "expected counts from 0 on, got -1" in str(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "uint32"}, "dtype: expected uint64"),
        ({"data": np.zeros((2, 3))}, "data: expected integers"),
        ({"fill_value": 4}, "fill_value: expected 0"),
    ],
)
def test_label_multisets_hold_only_labels(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.create_array(tmp_path / "x.n5", **{"shape": (2, 3)} | options, label_multiset=True)
    assert not (tmp_path / "x.n5").exists()


def test_label_multisets_are_not_resized(java: Path) -> None:
    before = contents(java)
    array = n5zarr.open_array(java, "r+", path="labels/s0")
    with pytest.raises(N5UnsupportedError, match="got label multisets"):
        array.resize((4, 5, 6))
    assert contents(java) == before


@pytest.mark.parametrize("options", [{"axis_order": "F"}, {"zarr_format": 2}, {"codecs": "n5"}])
def test_every_presentation_creates_and_writes_them(options: dict[str, Any]) -> None:
    store = n5zarr.N5Store(MemoryStore(), **options)
    labels = np.arange(105, dtype="u8").reshape(3, 5, 7)
    for chunks in [(2, 2, 3), (2, 3, 2)]:
        n5zarr.create_array(
            store, path="a", data=labels, chunks=chunks, label_multiset=True, overwrite=True
        )
    assert n5zarr.read_label_multisets(store, "a")[1, 2, 3] == {int(labels[1, 2, 3]): 1}
    array: Any = zarr.open_array(store, path="a", mode="r+")
    array[0] = 7
    labels[0] = 7
    assert np.array_equal(array[...], labels)
