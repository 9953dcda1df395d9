"""``build_pyramid`` agrees with tensorstore and viewers, also after interruptions."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
from zarr.storage import MemoryStore, ZipStore

import n5zarr
from n5zarr.conventions.describe import WRITTEN
from n5zarr.tools.pyramid.methods import downsample
from tests.contract.bigstitcher import write_project
from tests.contract.dying import KilledError, dying_at, is_change_of_a_document
from tests.contract.stored import by_tensorstore
from tests.contract.viewers import bigdataviewer, n5_universe, neuroglancer
from tests.programs import Programs

# killed this often: many times with N5ZARR_KILLS=20
KILLS = int(os.environ.get("N5ZARR_KILLS", "2"))
SCALE, PLACE = (40.0, 8.0, 4.0), (3000.0, -200.0, 100.5)  # z, y, x
FACTORS = [(1, 2, 2), (1, 4, 4), (2, 8, 8)]  # of s0, as `auto` chooses them: y and x are not alike


def image(where: Path, data: np.ndarray, chunks: Sequence[int], **options: Any) -> Path:
    """Write s0 of a group; return the group."""
    n5zarr.create_array(where / "s0", data=data, chunks=chunks, **options)
    return where


def placed(where: Path, data: np.ndarray, chunks: Sequence[int] = (8, 16, 16)) -> Path:
    return image(where, data, chunks, axes="zyx", units=["nm"] * 3, resolution=SCALE, offset=PLACE)


def noise(shape: Sequence[int], dtype: str = "u2") -> np.ndarray:
    return np.random.default_rng(11).integers(0, 60000, shape).astype(dtype)


def files_of(group: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return inode, time and content of all files of a group, without temporary ones."""
    files = (p for p in group.rglob("*") if p.is_file() and p.suffix != ".partial")
    return {
        p.relative_to(group).as_posix(): (p.stat().st_ino, p.stat().st_mtime_ns, p.read_bytes())
        for p in files
    }


def content(group: Path) -> dict[str, bytes]:
    return {name: data for name, (_, _, data) in files_of(group).items()}


@pytest.mark.each_of(3)
@pytest.mark.parametrize("memory", [2**14, 2**28])
@pytest.mark.parametrize("method", ["mean", "mode", "median", "stride"])
def test_levels_are_what_tensorstore_makes_of_the_one_before(
    tmp_path: Path, method: Any, memory: int
) -> None:
    group = image(tmp_path / "c.n5" / "em", noise((29, 67, 83)) // 9000, (4, 8, 16))
    options: Any = {"method": method, "max_memory": 2 * memory, "n_workers": 2}
    made = n5zarr.build_pyramid(group, factors=(1, 2, 3), levels=3, **options)
    before = by_tensorstore(group / "s0")
    for level in made.levels:
        source = tensorstore.array(before)
        wanted = tensorstore.downsample(source, (1, 2, 3), method).read().result()
        before = by_tensorstore(tmp_path / "c.n5" / level.path)
        np.testing.assert_array_equal(before, wanted)
    assert made.levels[-1].shape == before.shape == (29, 9, 4)
    assert made.levels[-1].factors == (1, 8, 27)


@pytest.mark.parametrize("memory", [2**17, 2**28])
def test_regions_of_gaussian_meet_without_a_seam(tmp_path: Path, memory: int) -> None:
    data = noise((29, 67, 83))
    data[:, :24] = 0  # an element without its own blocks depends on those beside it
    group = image(tmp_path / "c.n5" / "em", data, (4, 8, 16))
    options: Any = {"method": "gaussian", "max_memory": 2 * memory, "n_workers": 2}
    n5zarr.build_pyramid(group, factors=(2, 3, 1), levels=2, **options)
    one = downsample(data, (2, 3, 1), "gaussian")
    two = downsample(one, (2, 3, 1), "gaussian")
    np.testing.assert_array_equal(by_tensorstore(group / "s1"), one)
    np.testing.assert_array_equal(by_tensorstore(group / "s2"), two)


@pytest.mark.parametrize("dtype", ["bool", "u1", "i8", "f4"])
def test_elements_keep_their_type_and_blocks_their_compression(tmp_path: Path, dtype: str) -> None:
    data = (noise((13, 31, 47)) % 2).astype(dtype)
    zstd = {"type": "zstd", "level": 2}
    group = image(tmp_path / "c.n5" / "em", data, (5, 7, 11), compression=zstd)
    made = n5zarr.build_pyramid(group, levels=2)
    assert made.method == ("mode" if dtype in ("bool", "i8") else "mean")
    level: Any = n5zarr.open(group / "s1")
    assert level.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(level[...], downsample(data, (2, 2, 2), made.method))
    documents = [json.loads((group / f"s{k}" / "attributes.json").read_text()) for k in range(2)]
    for key in ("dataType", "compression", "blockSize"):
        assert documents[1][key] == documents[0][key]


def test_blocks_and_compression_of_levels_can_be_others(tmp_path: Path) -> None:
    data = noise((23, 31, 47))
    group = image(tmp_path / "c.n5" / "em", data, (5, 7, 11))
    options: Any = {"compression": "raw", "max_memory": 2**14, "n_workers": 2}
    n5zarr.build_pyramid(group, levels=2, chunks=(6, 4, 10), **options)
    document = json.loads((group / "s2" / "attributes.json").read_text())
    assert (document["blockSize"], document["compression"]) == ([10, 4, 6], {"type": "raw"})
    one = downsample(data, (2, 2, 2), "mean")
    np.testing.assert_array_equal(by_tensorstore(group / "s2"), downsample(one, (2, 2, 2), "mean"))


@pytest.mark.each_of(2)
@pytest.mark.parametrize("convention", ["auto", *WRITTEN])
def test_viewers_see_a_gradient_at_the_same_place_in_all_levels(
    tmp_path: Path, convention: Any
) -> None:
    steps = (2, 8, 4)  # so that means are whole numbers
    grid = np.ogrid[:24, :64, :96]
    data = np.asarray(sum(a * n for a, n in zip(grid, steps, strict=True)), "f4")
    root = tmp_path / "c.n5"
    made = n5zarr.build_pyramid(placed(root / "em", data), convention=convention, levels=3)
    assert [level.factors for level in made.levels] == [(1, 1, 2), (1, 2, 4), (1, 4, 8)]
    seen = n5_universe(root / "em")
    viewer = n5_universe(root / "em", is_viewer=True)
    space = neuroglancer(root, root / "em")
    assert sorted(seen) == sorted(viewer) == ["s0", "s1", "s2", "s3"]
    for k in range(4):
        values = by_tensorstore(root / "em" / f"s{k}")
        level = seen[f"s{k}"]
        of_viewer = viewer[f"s{k}"] if convention != "ngff" else level  # it reverses NGFF's lists
        assert (of_viewer.scale, of_viewer.translation) == (level.scale, level.translation)
        # index in s0, by the place: the value there is that of the gradient
        axes = values.shape, level.scale[::-1], level.translation[::-1], SCALE, PLACE
        places = [(s * np.arange(n) + t - t0) / s0 for n, s, t, s0, t0 in zip(*axes, strict=True)]
        wanted = sum(a * n for a, n in zip(np.ix_(*places), steps, strict=True))
        np.testing.assert_allclose(values, wanted, rtol=1e-6)
        of_group = space.level(k, "nm", 1e-9)
        np.testing.assert_allclose(of_group.scale, level.scale)
        from_s0 = np.subtract(level.translation, PLACE[::-1])
        np.testing.assert_allclose(of_group.translation, from_s0)


def test_a_level_of_stride_is_where_its_elements_were(tmp_path: Path) -> None:
    group = placed(tmp_path / "c.n5" / "em", noise((9, 31, 47)))
    n5zarr.build_pyramid(group, method="stride", levels=2, factors=(2, 2, 2))
    for level in n5_universe(group).values():
        assert level.translation == PLACE[::-1]


def test_an_image_that_says_nothing_gets_places_that_fit(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    group = image(root / "em", noise((9, 31, 47)), (4, 8, 8))
    n5zarr.open(group / "s0", "r+").attrs["contrastLimits"] = [0, 255]
    n5zarr.build_pyramid(group, levels=1)
    seen = n5_universe(group)
    assert (seen["s0"].scale, seen["s1"].scale) == ((1.0,) * 3, (2.0,) * 3)
    assert (seen["s0"].translation, seen["s1"].translation) == ((0.0,) * 3, (0.5,) * 3)
    assert neuroglancer(root, group).factors == [[1.0] * 3, [2.0] * 3]
    documents = [json.loads((group / f"s{k}" / "attributes.json").read_text()) for k in range(2)]
    assert ["contrastLimits" in document for document in documents] == [True, False]


def test_a_setup_of_big_data_viewer_gets_levels_by_factors(tmp_path: Path) -> None:
    write_project(tmp_path, (1,))
    root = tmp_path / "dataset.n5"
    group = root / "setup1" / "timepoint0"
    before = (group / "s0" / "attributes.json").read_bytes()
    data_type, factors = bigdataviewer(root, 1)
    by = [int(f) for f in factors[1]][::-1]
    n5zarr.build_pyramid(group, factors=by, levels=2, overwrite=True)
    assert (group / "s0" / "attributes.json").read_bytes() == before
    two = [f * f for f in factors[1]]
    assert bigdataviewer(root, 1) == (data_type, [*factors[:2], two])
    assert json.loads((group / "s2" / "attributes.json").read_text())["downsamplingFactors"] == two
    with pytest.raises(n5zarr.N5Error, match="time points of the setup"):
        n5zarr.build_pyramid(group, factors=(5, 5, 5), levels=1, overwrite=True)


def test_levels_of_paintera_have_factors_and_no_shift(tmp_path: Path) -> None:
    group = image(tmp_path / "c.n5" / "vol" / "data", noise((9, 31, 67), "u8"), (4, 8, 8))
    attributes = {"multiScale": True, "resolution": [4.0, 4.0, 40.0], "offset": [1.0, 2.0, 3.0]}
    (group / "attributes.json").write_text(json.dumps(attributes))
    with pytest.warns(n5zarr.N5Warning, match="the convention paintera places it at"):
        n5zarr.build_pyramid(group, levels=1)
    assert json.loads((group / "attributes.json").read_text()) == attributes
    level = json.loads((group / "s1" / "attributes.json").read_text())
    assert level["downsamplingFactors"] == [2, 2, 1]
    assert n5zarr.geometry(group).levels[1].scale == (40.0, 8.0, 8.0)


def test_channels_and_time_are_never_downsampled(tmp_path: Path) -> None:
    group = image(
        tmp_path / "c.n5" / "im", noise((3, 5, 9, 70, 83)), (1, 1, 4, 16, 16),
        axes="tczyx", units=["s", "", "um", "um", "um"], resolution=[1, 1, 0.5, 0.5, 0.5],
    )  # fmt: skip
    made = n5zarr.build_pyramid(group, levels=2)
    assert [level.factors for level in made.levels] == [(1, 1, 2, 2, 2), (1, 1, 4, 4, 4)]


def test_empty_regions_stay_empty_and_are_not_read(tmp_path: Path) -> None:
    group = tmp_path / "c.n5" / "em"
    array: Any = n5zarr.create_array(
        group / "s0", shape=(47 * 64, 46 * 64, 47 * 64), dtype="u1", chunks=(64, 64, 64)
    )  # 101 614 blocks
    array[1101:1111, 200:203, 301:305] = 9
    array[20, 30, 40] = 1  # the mean of its cell is 0
    seen: list[int] = []
    made = n5zarr.build_pyramid(group, levels=2, progress=lambda *state: seen.append(state[2]))
    assert 0 < max(seen) < 0.05 * array.nbytes
    assert made.levels[0].n_blocks == 24 * 23 * 24
    assert [level.n_blocks_stored for level in made.levels] == [1, 1]
    (block,) = [path for path in (group / "s1").glob("*/*/*") if path.is_file()]
    assert made.levels[0].n_bytes_stored == block.stat().st_size
    level: Any = n5zarr.open_array(group / "s1")
    wanted = downsample(array[1100:1112, 200:210, 300:310], (2, 2, 2), "mean")
    np.testing.assert_array_equal(level[550:556, 100:105, 150:155], wanted)


def test_a_grid_may_have_more_places_than_64_bits_count(tmp_path: Path) -> None:
    group = tmp_path / "c.n5" / "em"
    array: Any = n5zarr.create_array(
        group / "s0", shape=(2**30, 2**30 + 1, 2**30 - 1), dtype="u1", chunks=(64, 64, 64)
    )
    last = tuple(n - 1 for n in array.shape)
    array[0, 0, 0] = array[last] = array[2**29, 3, 2**28] = 88
    made = n5zarr.build_pyramid(group, levels=2)
    assert [level.n_blocks_stored for level in made.levels] == [3, 3]
    level: Any = n5zarr.open_array(group / "s1")
    # the last element has no neighbour along y and x
    assert level[0, 0, 0] == level[2**28, 1, 2**27] == 11
    assert level[tuple(n - 1 for n in level.shape)] == 44


def test_missing_blocks_are_of_the_fill_value(tmp_path: Path) -> None:
    group = tmp_path / "c.n5" / "em"
    array: Any = n5zarr.create_array(
        group / "s0", shape=(37, 67), dtype="u1", chunks=(8, 8), fill_value=7
    )
    array[3:13, 11:40] = 200
    made = n5zarr.build_pyramid(group, levels=1)
    level: Any = n5zarr.open(group / "s1")
    np.testing.assert_array_equal(level[...], downsample(array[...], (2, 2), "mean"))
    assert level.fill_value == 7
    assert made.levels[0].n_blocks_stored == 3 < made.levels[0].n_blocks


CHILD = """
import os, signal, sys, n5zarr
left = int(sys.argv[2])
def progress(*_):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
print("ready", flush=True)
sys.stdin.readline()
options = {"levels": 3, "max_memory": 2**18, "n_workers": 2, "method": "mean"}
n5zarr.build_pyramid(sys.argv[1], progress=progress, **options)
"""


def kill(programs: Programs, group: Path, after: float | None) -> None:
    """Build in a process that is killed after some seconds, or with None after some tasks."""
    if after is None:
        assert programs.run(CHILD, str(group), "7").returncode == -signal.SIGKILL
        return
    command = [sys.executable, "-c", CHILD, str(group), "-1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        child.stdin.write(b"\n")
        child.stdin.flush()
        with suppress(subprocess.TimeoutExpired):  # killed at any moment, or done
            child.wait(after)
        child.send_signal(signal.SIGKILL)
        assert child.wait() in (-signal.SIGKILL, 0)


def blocks_of(files: dict[str, Any]) -> dict[str, Any]:
    return {name: file for name, file in files.items() if name.rpartition("/")[2].isdecimal()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[np.ndarray, Path, float]:
    """Return the elements of s0, the group of a complete pyramid, and the seconds it took."""
    data = np.repeat(noise((128, 128, 64), "u1"), 2, axis=2)
    group = placed(tmp_path_factory.mktemp("undisturbed") / "c.n5" / "em", data, (16, 16, 16))
    start = time.perf_counter()
    made = n5zarr.build_pyramid(group, levels=3, max_memory=2**18, n_workers=2, method="mean")
    assert [level.n_blocks_stored for level in made.levels] == [256, 64, 16]
    return data, group, time.perf_counter() - start


@pytest.mark.each_of(2)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
@pytest.mark.parametrize("turn", range(KILLS))
def test_a_killed_run_is_resumed_and_no_finished_block_is_touched(
    programs: Programs, tmp_path: Path, undisturbed: tuple[np.ndarray, Path, float], turn: int
) -> None:
    data, complete, took = undisturbed
    group = placed(tmp_path / "c.n5" / "em", data, (16, 16, 16))
    # the first one for certain in the middle of it
    kill(programs, group, random.Random().uniform(0, 2 * took) if turn else None)  # noqa: S311
    before = files_of(group)
    is_interrupted = "s1/n5zarr-incomplete.json" in before
    assert is_interrupted or turn > 0
    if is_interrupted:
        for level in ("s1", "s2", "s3"):  # no array that lacks blocks
            if f"{level}/attributes.json" in before:
                wanted = by_tensorstore(complete / level)
                np.testing.assert_array_equal(by_tensorstore(group / level), wanted)
        with pytest.raises(n5zarr.N5Error, match=r"interrupted run; resume=True \(--resume\)"):
            n5zarr.build_pyramid(group, levels=3, method="mean")
        with pytest.raises(n5zarr.N5Error, match="expected the options of the run"):
            n5zarr.build_pyramid(group, levels=3, method="median", resume=True)
    if is_interrupted or "s1/attributes.json" not in before:
        n5zarr.build_pyramid(group, levels=3, method="mean", resume=True)
    after = files_of(group)
    finished = blocks_of(before)
    assert {name: after[name] for name in finished} == finished
    assert not is_interrupted or not list(group.rglob("*.partial"))
    assert content(group) == content(complete)


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "gaussian"},
        {"method": "stride", "convention": "ngff"},
        {"convention": "n5viewer", "max_memory": 2**15, "n_workers": 2},
        {"convention": "neuroglancer", "dtype": "f4", "compression": "zstd"},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_placed", [True, False])
def test_a_finished_run_is_resumed_without_writing(
    tmp_path: Path, options: dict[str, Any], is_placed: bool
) -> None:
    options = dict(options)
    group, data = tmp_path / "c.n5" / "em", noise((9, 67, 83), options.pop("dtype", "u2"))
    placed(group, data) if is_placed else image(group, data, (5, 16, 16))
    first = n5zarr.build_pyramid(group, levels=2, **options)
    before = files_of(group)
    again = n5zarr.build_pyramid(group, levels=2, resume=True, **options)
    assert [level.path for level in again.levels] == [level.path for level in first.levels]
    assert files_of(group) == before


@pytest.mark.each_of(3)
@pytest.mark.parametrize("is_placed", [True, False])
@pytest.mark.parametrize("step", range(7))
def test_a_run_that_ends_among_its_documents_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, is_placed: bool
) -> None:
    group, data = tmp_path / "c.n5" / "em", noise((9, 67, 83))
    placed(group, data) if is_placed else image(group, data, (5, 16, 16))
    shutil.copytree(group, tmp_path / "wanted.n5" / "em")
    n5zarr.build_pyramid(tmp_path / "wanted.n5" / "em", levels=2)
    with monkeypatch.context() as patched:
        dying_at(step, patched, is_change_of_a_document)
        with pytest.raises(KilledError):
            n5zarr.build_pyramid(group, levels=2)
    n5zarr.build_pyramid(group, levels=2, resume=True)
    assert content(group) == content(tmp_path / "wanted.n5" / "em")


def test_levels_of_another_run_are_not_resumed(tmp_path: Path) -> None:
    group = placed(tmp_path / "c.n5" / "em", noise((9, 67, 83)))
    n5zarr.build_pyramid(group, levels=2, method="mean")
    before = files_of(group)
    for options in ({"levels": 1}, {"levels": 3}, {"chunks": (4, 4, 4)}, {"compression": "raw"}):
        with pytest.raises(n5zarr.N5Error, match="got s1, s2; overwrite=True"):
            n5zarr.build_pyramid(group, resume=True, **{"levels": 2, "method": "mean", **options})  # type: ignore[arg-type]
    with pytest.raises(n5zarr.N5Error, match="expected the elements that this run") as caught:
        n5zarr.build_pyramid(group, levels=2, method="median", resume=True)
    assert caught.value.kind == "differs"
    assert "--overwrite" in str(caught.value)
    n5zarr.open_array(group / "s0", "r+")[...] = 7
    with pytest.raises(n5zarr.N5Error, match="expected the elements that this run"):
        n5zarr.build_pyramid(group, levels=2, method="mean", resume=True)
    after, before = (
        {n: s for n, s in files.items() if not n.startswith("s0/")}
        for files in (files_of(group), before)
    )
    assert after == before


def test_levels_that_are_there_are_refused_or_removed(tmp_path: Path) -> None:
    group = placed(tmp_path / "c.n5" / "em", noise((9, 67, 83)))
    n5zarr.build_pyramid(group, levels=3)
    before = content(group)
    with pytest.raises(n5zarr.N5Error, match=r"got s1, s2, s3; overwrite=True") as caught:
        n5zarr.build_pyramid(group, levels=1, method="median", resume=True)
    assert caught.value.kind == "option"
    n5zarr.build_pyramid(group, levels=1, overwrite=True, dry_run=True)
    assert content(group) == before
    n5zarr.create_array(group.parent / "labels" / "s3", data=noise((5, 7)), chunks=(5, 7))
    made = n5zarr.build_pyramid(group, levels=1, method="median", overwrite=True)
    assert made.removed == ("s1", "s2", "s3")
    assert sorted(path.name for path in group.iterdir()) == ["attributes.json", "s0", "s1"]
    assert (group.parent / "labels" / "s3" / "0" / "0").exists()
    assert len(neuroglancer(group.parent, group).factors) == 2
    assert [level.path for level in n5zarr.geometry(group).levels] == ["em/s0", "em/s1"]


def stop(*_: object) -> None:
    raise KilledError


def test_nobody_resumes_what_is_half_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = placed(tmp_path / "c.n5" / "em", noise((9, 67, 83)))
    build = partial(n5zarr.build_pyramid, group, levels=1, max_memory=2**15, n_workers=2)
    with pytest.raises(KilledError):
        build(progress=stop)
    n5zarr.open_array(group / "s0", "r+")[...] = 7  # the blocks that are there are of old elements
    with monkeypatch.context() as patched:
        patched.setattr("n5zarr.tools.pyramid.n5_image.RemoveTree", stop)
        with pytest.raises(KilledError):
            build(overwrite=True)
    with pytest.raises(n5zarr.N5Error, match="expected no levels"):
        build(resume=True)


def test_a_run_ends_when_another_one_begins(tmp_path: Path) -> None:
    group = placed(tmp_path / "c.n5" / "em", noise((9, 67, 83)))

    def begin_another(_: str, done: int, total: int) -> None:
        if done == total:
            n5zarr.build_pyramid(group, levels=1, method="stride", overwrite=True)

    with pytest.raises(n5zarr.N5Error, match="one run at a time"):
        n5zarr.build_pyramid(group, levels=1, method="mean", progress=begin_another)
    assert not list(group.rglob("n5zarr-incomplete.json"))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("several") / "c.n5"
    placed(where / "em", noise((9, 31, 67)))
    n5zarr.create_array(where / "raw", data=noise((3, 5)))
    n5zarr.create_array(where / "text" / "s0", data=np.array(["a", "bc"], object), dtype="string")
    n5zarr.create_array(where / "empty" / "s0", shape=(0, 5), dtype="u1")
    return where


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("raw", {}, r"expected the dataset s0 of a group.* got raw: to='raw-pyramid' \(--to\)"),
        ("", {}, "expected the group of a dataset s0.* datasets in it: em/s0, empty/s0, raw"),
        ("nothing", {}, "/nothing: expected s0, or its group, got nothing"),
        ("text", {}, "expected a writable array of numbers"),
        ("em", {"method": "max"}, "method: expected one of auto, mean"),
        ("em", {"factors": (2, 2)}, "factors: expected 3"),
        ("em", {"factors": "2,2,2"}, "factors: expected a whole number for each axis, or 'auto'"),
        ("em", {"chunks": 8}, "chunks: expected a whole number for each axis, got 8"),
        ("em", {"max_num_entries": 3}, "max_num_entries .*: expected label multisets"),
        ("em", {"overwrite": True, "resume": True}, "expected either overwrite"),
        ("em", {"convention": "bdv"}, "convention: expected auto or one of cosem"),
        ("em", {"compression": "jpeg"}, "jpeg"),
        ("em", {"chunks": (1, 2)}, "chunks: expected 3"),
        ("em", {"chunks": (1, 2, 2**31)}, "chunks: expected 3"),
        ("em", {"factors": (9, 31, 67), "max_memory": 2**18, "n_workers": 1}, "elements that fit"),
        ("em", {"scheduler": "cluster"}, "scheduler"),
        ("empty", {}, r"empty/s0: expected an array with elements, got the shape \(0, 5\)"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(
    several: Path, path: str, options: Any, message: str
) -> None:
    before = content(several)
    with pytest.raises((n5zarr.N5Error, FileNotFoundError), match=message):
        n5zarr.build_pyramid(several, path, **options)
    assert content(several) == before


MEASURED = """
import sys, n5zarr
def peak():
    return int(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
n5zarr.build_pyramid(sys.argv[1] + "/small", levels=2)
open("/proc/self/clear_refs", "w").write("5")
before = peak()
n5zarr.build_pyramid(sys.argv[1] + "/large", max_memory=int(sys.argv[2]), n_workers=1)
print((peak() - before) * 1024)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_is_a_tenth_of_the_volume(tmp_path: Path) -> None:
    memory, edge = 2**24, 64
    small = noise((70, 71, 73), "u1")
    image(tmp_path / "c.n5" / "small", small, (64, 64, 64), compression="raw")
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5" / "large" / "s0", shape=(521, 641, 509), dtype="u1",
        chunks=(64, 64, 64), compression="raw",
    )  # fmt: skip
    assert array.nbytes > 10 * memory
    slab = noise((64, 641, 509), "u1")
    for z in range(0, 521, edge):
        array[z : z + edge] = slab[: min(edge, 521 - z)]
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "c.n5"), str(memory)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 0 < int(found.stdout) < 1.25 * memory  # 16.3 MB here
    level: Any = n5zarr.open(tmp_path / "c.n5" / "large" / "s1")
    np.testing.assert_array_equal(level[:32], downsample(slab, (2, 2, 2), "mean"))


def test_a_store_that_cannot_delete_is_refused(tmp_path: Path) -> None:
    with ZipStore(tmp_path / "c.zip", mode="w") as store:
        n5zarr.create_array(store, path="em/s0", data=noise((9, 31, 67)), chunks=(8, 8, 8))
        with pytest.raises(n5zarr.N5Error, match="a store that can delete, got a ZipStore"):
            n5zarr.build_pyramid(store, "em", levels=1)


def test_any_store_holds_a_pyramid(tmp_path: Path) -> None:
    store = n5zarr.N5Store(MemoryStore(), axis_order="F")
    data = noise((13, 67, 83))
    n5zarr.create_array(store, path="em/s0", data=data.T, chunks=(16, 16, 4))
    made = n5zarr.build_pyramid(store, "em", factors=np.array((2, 2, 1)), levels=1)  # type: ignore[arg-type]
    assert made.levels[0].shape == (42, 34, 13)
    level: Any = n5zarr.open(store, path="em/s1")
    np.testing.assert_array_equal(level[...], downsample(data.T, (2, 2, 1), "mean"))
