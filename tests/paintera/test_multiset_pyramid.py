"""Levels of label multisets are those of Paintera.

SparkDownsampler and SparkDownsampleFunction of label-utilities-spark bb066da,
LabelMultisetTypeDownscaler of imglib2-label-multisets 0.15.1; the rule is written out in
``tests/multisets.py``.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5Error, N5UnrepresentableError, N5UnsupportedError
from tests.multisets import Voxels, downscaled, random_voxels, voxels_of
from tests.paintera.test_convert import attributes_of
from tests.unit.codecs.test_multisets import made

ELF = (
    Path(__file__).parents[1] / "data/real/constantinpape+elf/data/label_multiset/test_paintera.n5"
)


def written(where: Path, voxels: Voxels, chunks: tuple[int, ...]) -> None:
    """Write multisets as the level ``s0``."""
    shape = tuple(n + 1 for n in max(voxels))
    n5zarr.create_array(where, shape=shape, chunks=chunks, label_multiset=True)
    n5zarr.write_label_multisets(where, made(voxels, shape))


@pytest.mark.parametrize("name", ["range", "uniform"])
def test_levels_are_those_that_paintera_wrote(tmp_path: Path, name: str) -> None:
    """``s1`` of paintera-conversion; the labels of ``range/data/s0`` are 0, 1, 2, ..."""
    root = Path(shutil.copytree(ELF, tmp_path / "x.n5")) / name / "data"
    labels = np.full((32, 32, 32), 2) if name == "uniform" else np.arange(32**3).reshape((32,) * 3)
    shutil.rmtree(root / "s1")
    n5zarr.create_array(
        root / "s0", data=labels, chunks=(64,) * 3, label_multiset=True, overwrite=True
    )
    assert n5zarr.build_pyramid(root, levels=1).method == "multiset"
    found = n5zarr.read_label_multisets(root / "s1")
    expected = n5zarr.read_label_multisets(ELF, f"{name}/data/s1")
    assert voxels_of(found) == voxels_of(expected)
    theirs = attributes_of(ELF / name / "data/s1")
    ours = attributes_of(root / "s1")
    assert ours["maxNumEntries"] == theirs["maxNumEntries"] == -1
    assert ours.keys() == theirs.keys()
    for key in ("isLabelMultiset", "downsamplingFactors", "dataType", "dimensions", "blockSize"):
        assert ours[key] == theirs[key]
    block = (root / "s1/0/0/0").read_bytes()
    assert block[:4] == bytes.fromhex("0001 0003")
    assert block[4:16] == bytes.fromhex("00000010" * 3)  # theirs: 32, the extent of s0


@pytest.mark.parametrize("limit", [-1, 2])
@pytest.mark.parametrize(
    ("shape", "chunks", "blocks", "memory"),
    [
        ((5, 7, 11), (2, 3, 4), (3, 2, 5), 2**30),
        ((13, 6, 5), (4, 4, 4), (4, 4, 4), 2**30),
        ((13, 6, 5), (4, 4, 4), (8, 8, 8), 3000),
    ],
)
def test_each_level_sums_the_counts_of_the_previous_one(
    tmp_path: Path, shape: Any, chunks: Any, blocks: Any, memory: int, limit: int
) -> None:
    """Also where blocks of levels do not end together, and in parts of blocks."""
    voxels = random_voxels(np.random.default_rng(4), shape)
    written(tmp_path / "x.n5/data/s0", voxels, chunks)
    n5zarr.build_pyramid(
        tmp_path / "x.n5/data", factors=(2, 2, 3), levels=2, chunks=blocks,
        max_num_entries=limit, max_memory=memory,
    )  # fmt: skip
    for level in ("s1", "s2"):
        voxels = downscaled(voxels, (2, 2, 3), limit)
        where = tmp_path / "x.n5/data" / level
        assert voxels_of(n5zarr.read_label_multisets(where)) == voxels
        assert attributes_of(where)["maxNumEntries"] == limit


def test_missing_voxels_count_once_as_background(tmp_path: Path) -> None:
    """``N5LabelMultisetCacheLoader.constantNullReplacement(0)``: each has label 0 with count 1."""
    where = tmp_path / "x.n5/data"
    labels = np.zeros((8, 8), "u8")
    labels[:2, :2] = 5
    n5zarr.create_array(where / "s0", data=labels, chunks=(2, 2), label_multiset=True)
    n5zarr.build_pyramid(where, factors=(2, 2), levels=2)
    files = sorted(p.name for p in (where / "s1").rglob("*") if p.is_file())
    assert files == ["0", "attributes.json"]
    level = n5zarr.read_label_multisets(where / "s1")
    assert voxels_of(level) == {(0, 0): {5: 4}} | {
        p: {0: 1 if max(p) > 1 else 4} for p in itertools.product(range(4), range(4)) if any(p)
    }
    assert n5zarr.read_label_multisets(where / "s2")[0, 0] == {0: 12, 5: 4}


def test_the_group_says_what_paintera_looks_for(tmp_path: Path) -> None:
    where = tmp_path / "x.n5/neurons/data"
    n5zarr.create_array(
        where / "s0", data=np.arange(105).reshape(3, 5, 7), chunks=(2, 2, 2), label_multiset=True,
        attributes={"resolution": [4, 5, 40], "offset": [1, 2, 3]},
    )  # fmt: skip
    done = n5zarr.build_pyramid(where, factors=(1, 2, 2), levels=2, max_num_entries=3)
    group = attributes_of(where)
    assert group["multiScale"] is True
    assert group["isLabelMultiset"] is True
    assert group["maxId"] == 104
    assert group["resolution"] == [4, 5, 40]
    assert group["offset"] == [1, 2, 3]
    assert attributes_of(where / "s2")["downsamplingFactors"] == [4.0, 4.0, 1.0]
    assert [level.factors for level in done.levels] == [(1, 2, 2), (1, 4, 4)]
    found = n5zarr.geometry(where).levels
    assert [level.scale for level in found] == [(40, 5, 4), (40, 10, 8), (40, 20, 16)]
    assert n5zarr.validate(tmp_path / "x.n5", deep=True).findings == ()


def test_a_finished_run_is_compared(tmp_path: Path) -> None:
    where = tmp_path / "x.n5/data"
    written(where / "s0", random_voxels(np.random.default_rng(1), (5, 6, 7)), (2, 3, 4))
    n5zarr.build_pyramid(where, levels=2)
    n5zarr.build_pyramid(where, levels=2, resume=True)
    n5zarr.write_label_multisets(where / "s2", n5zarr.LabelMultisets.of([[[8]]]))
    with pytest.raises(N5Error, match="got others in 0/0/0") as caught:
        n5zarr.build_pyramid(where, levels=2, resume=True)
    assert caught.value.kind == "differs"
    n5zarr.build_pyramid(where, levels=2, overwrite=True)
    n5zarr.build_pyramid(where, levels=2, resume=True)


def test_an_interrupted_run_keeps_its_blocks(tmp_path: Path) -> None:
    where, told = tmp_path / "x.n5/data", "stop"
    voxels = random_voxels(np.random.default_rng(2), (9, 6, 7))
    written(where / "s0", voxels, (2, 2, 2))

    def stop(*_: object) -> None:
        raise KeyboardInterrupt(told)

    with pytest.raises(KeyboardInterrupt, match=told):
        n5zarr.build_pyramid(where, factors=(2, 2, 2), levels=2, progress=stop, n_workers=1)
    kept = next(p for p in (where / "s1").rglob("*") if p.is_file() and p.name.isdigit())
    before = kept.stat().st_mtime_ns
    n5zarr.build_pyramid(where, factors=(2, 2, 2), levels=2, resume=True)
    assert kept.stat().st_mtime_ns == before
    assert voxels_of(n5zarr.read_label_multisets(where / "s1")) == downscaled(voxels, (2, 2, 2))


def test_workers_make_the_same_levels(tmp_path: Path) -> None:
    where = tmp_path / "x.n5/data"
    voxels = random_voxels(np.random.default_rng(6), (5, 7, 11))
    written(where / "s0", voxels, (2, 3, 4))
    n5zarr.build_pyramid(where, factors=(2, 2, 2), levels=1, scheduler="threads", n_workers=2)
    assert voxels_of(n5zarr.read_label_multisets(where / "s1")) == downscaled(voxels, (2, 2, 2))


@pytest.mark.parametrize("scheduler", [None, "processes"])
def test_a_store_of_a_path_is_writable(tmp_path: Path, scheduler: Any) -> None:
    """Its inner store is read-only, as n5zarr writes the files itself."""
    voxels = random_voxels(np.random.default_rng(6), (5, 7))
    written(tmp_path / "x.n5/data/s0", voxels, (2, 3))
    store = n5zarr.N5Store(tmp_path / "x.n5", axis_order="F")
    n5zarr.build_pyramid(store, "data", factors=(2, 1), levels=1, scheduler=scheduler)
    made = voxels_of(n5zarr.read_label_multisets(tmp_path / "x.n5/data/s1"))
    assert made == downscaled(voxels, (1, 2))


def test_methods_are_those_of_the_elements(tmp_path: Path) -> None:
    where = tmp_path / "x.n5"
    written(where / "labels/s0", random_voxels(np.random.default_rng(0), (4, 5)), (2, 3))
    n5zarr.create_array(where / "em/s0", shape=(40, 50), chunks=(4, 5), dtype="u8")
    with pytest.raises(N5UnrepresentableError, match="auto or multiset for label multisets"):
        n5zarr.build_pyramid(where / "labels", method="mode")
    with pytest.raises(N5UnrepresentableError, match="method: expected one of auto, mean"):
        n5zarr.build_pyramid(where / "em", method="multiset")
    n5zarr.create_array(where / "text/s0", shape=(40,), chunks=(4,), dtype="string")
    with pytest.raises(N5UnsupportedError, match="expected a writable array of numbers"):
        n5zarr.build_pyramid(where / "text")


def test_sums_that_java_cannot_hold_are_told_with_their_block(tmp_path: Path) -> None:
    voxels: Voxels = {(z, x): {7: 2**31 - 1} for z in range(2) for x in range(3)}
    written(tmp_path / "x.n5/labels/s0", voxels, (2, 3))
    with pytest.raises(N5UnrepresentableError, match=r"labels/s1/0/0: counts: expected sums up to"):
        n5zarr.build_pyramid(tmp_path / "x.n5/labels", factors=(2, 2), levels=1)
