"""``download`` copies the same places of all levels, and refuses impossible parts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5UnrepresentableError, N5Warning
from tests.command import CliRunner

SAMPLE = Path(n5zarr.sample_path())
JAVA = Path(__file__).parents[1] / "data" / "java"


@pytest.mark.parametrize(
    "box",
    [
        (slice(3, 4), slice(41, 79), slice(50, 51)),
        (slice(31, 40), slice(None, 1), slice(127, None)),
        (slice(15, 17), slice(39, 41), slice(99, 101)),
    ],
)
def test_the_box_is_the_same_place_in_all_levels(box: Any, tmp_path: Path) -> None:
    done = n5zarr.download(SAMPLE, tmp_path / "d.n5", select="em/*", box=box)
    assert done.datasets == ("em/s0", "em/s1", "em/s2")
    ends = [part.indices(size)[:2] for part, size in zip(box, (40, 96, 128), strict=True)]
    for level, factor in enumerate((1, 2, 4)):
        # each voxel of a level covers `factor` voxels of the first along each axis
        inner = tuple(slice(start // factor, -(-stop // factor)) for start, stop in ends)
        read, whole = (
            np.asarray(n5zarr.open_array(root, path=f"em/s{level}"))
            for root in (tmp_path / "d.n5", SAMPLE)
        )
        np.testing.assert_array_equal(read[inner], whole[inner])
        assert whole[inner].any()
        # no block is there that touches nothing of it, along z, y and x
        stored = (SAMPLE / "em" / f"s{level}").rglob("*/*/*")
        names = {p.relative_to(SAMPLE).as_posix() for p in stored if p.is_file()}
        sizes = (16, 40, 50) if level < 2 else (10, 24, 32)
        touched = {
            name
            for name in names
            if all(
                part.start < (int(n) + 1) * size and int(n) * size < part.stop
                for n, size, part in zip(reversed(name.split("/")[2:]), sizes, inner, strict=True)
            )
        }
        there = {n for n in names if (tmp_path / "d.n5" / n).is_file()}
        assert there == touched


def test_another_box_is_added_and_missing_blocks_stay_missing(tmp_path: Path) -> None:
    source, target = JAVA / "sparse.n5", tmp_path / "d.n5"
    n5zarr.download(source, target)
    for file in source.rglob("*"):
        if file.is_file():
            assert (target / file.relative_to(source)).read_bytes() == file.read_bytes()
    first = n5zarr.download(SAMPLE, tmp_path / "e.n5", paths=["em/s0"], box=[slice(0, 3)] * 3)
    again = n5zarr.download(SAMPLE, tmp_path / "e.n5", paths=["em/s0"])
    assert (first.n_loaded, again.n_loaded, again.n_blocks) == (1, 26, 27)


def test_a_selection_keeps_the_paths_of_the_container(tmp_path: Path) -> None:
    # a location in a container: paths are below it, and stay those of the container
    n5zarr.download(SAMPLE / "em", tmp_path / "d.n5", paths=["s2"])
    assert (tmp_path / "d.n5" / "em" / "s2" / "0" / "0" / "0").is_file()
    assert json.loads((tmp_path / "d.n5" / "attributes.json").read_text()) == {"n5": "4.0.0"}
    with pytest.raises(N5UnrepresentableError, match=r"none like 'x\*'; in it: em/s0, em/s1"):
        n5zarr.download(SAMPLE, tmp_path / "d.n5", select="x*")
    with pytest.raises(FileNotFoundError, match="/em/t2: expected a group or dataset"):
        n5zarr.download(SAMPLE, tmp_path / "d.n5", paths=["em/t2"])


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ([slice(0, 3)], "expected 3 axes"),
        ([slice(0, 41), slice(0, 3), slice(0, 3)], "stop <= 40, got 0:41"),
        ([slice(3, 3), slice(0, 3), slice(0, 3)], "got 3:3"),
        ([slice(0, 3, 2), slice(0, 3), slice(0, 3)], "got 0:3"),
        ([slice(-3, None), slice(0, 3), slice(0, 3)], "got -3:40"),
    ],
)
def test_boxes_that_do_not_fit(box: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.download(SAMPLE, tmp_path / "d.n5", paths=["em/s0"], box=box)
    assert not (tmp_path / "d.n5").exists()


def test_a_box_in_datasets_that_do_not_say_where_they_are(tmp_path: Path) -> None:
    for name, shape in {"a": (7, 11), "b": (5, 3)}.items():
        n5zarr.create_array(tmp_path / "s.n5", path=name, shape=shape, dtype="u1")
    with pytest.raises(N5UnrepresentableError, match=r"got /b of shape .* beside /a of"):
        n5zarr.download(tmp_path / "s.n5", tmp_path / "d.n5", box=[slice(0, 3)] * 2)


def test_a_download_is_not_mixed_with_other_files(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    with pytest.raises(N5UnrepresentableError, match="got other files"):
        n5zarr.download(SAMPLE, other)
    source, target = tmp_path / "s.n5", tmp_path / "d.n5"
    shutil.copytree(SAMPLE, source)
    n5zarr.download(source, target, paths=["em/s2"])
    array: Any = n5zarr.create_array(
        source, path="em/s2", shape=(5, 7), chunks=(2, 3), dtype="i2", overwrite=True
    )
    array[...] = 3
    with pytest.raises(N5UnrepresentableError, match=r"--overwrite\) removes it first"):
        n5zarr.download(source, target, paths=["em/s2"])
    n5zarr.download(source, target, paths=["em/s2"], overwrite=True)
    assert n5zarr.compare(source / "em" / "s2", target / "em" / "s2").is_equal
    assert not (target / "em" / "s2" / "0" / "0" / "0").exists()  # of the old dataset


@pytest.mark.parametrize("place", [".", "em", "../link"])
def test_a_container_is_not_downloaded_into_itself(place: str, tmp_path: Path) -> None:
    source = Path(shutil.copytree(SAMPLE, tmp_path / "s.n5"))
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(N5UnrepresentableError, match="apart from the source"):
        n5zarr.download(source / "em", source / place, overwrite=True)
    assert n5zarr.compare(source, SAMPLE).is_equal


def test_a_container_behind_a_cache_is_not_downloaded_into_itself(tmp_path: Path) -> None:
    here = tmp_path / "part.n5"
    n5zarr.download(SAMPLE, here)
    with pytest.raises(N5UnrepresentableError, match="apart from the source"):
        n5zarr.download(f"simplecache::file://{here}", here, overwrite=True)
    assert n5zarr.compare(here, SAMPLE).is_equal


def test_axes_that_other_levels_describe_are_told(tmp_path: Path) -> None:
    with pytest.warns(N5Warning, match="/ngff-0.3/s1: its axes differ from those of"):
        n5zarr.download(JAVA / "metadata.n5", tmp_path / "d.n5", paths=["ngff-0.3/s1"])


def test_the_command(tmp_path: Path) -> None:
    def run(*words: object, status: int = 0) -> str:
        result = CliRunner().invoke(app, ["download", *map(str, words)])
        assert result.exit_code == status, result.output
        return result.output

    target = tmp_path / "d.n5"
    box = ("--path", "em/s0", "--path", "em/s2", "--box", "0:3,:,50:51")
    assert run(SAMPLE, target, *box, "--dry-run").startswith(
        f"{target}: 4 of 4 blocks would be loaded, "
    )
    assert not target.exists()
    assert ": 4 of 4 blocks loaded, " in run(SAMPLE, target, *box)
    assert "0 of 4 blocks loaded, 0 B, of 2 datasets; 4 were there" in run(SAMPLE, target, *box)
    for wrong in ("1", "1:2:3,:,:", "a:b,:,:", ""):
        assert "expected z0:z1,y0:y1,x0:x1" in run(SAMPLE, target, "--box", wrong, status=2)


def test_parts_of_two_containers_are_not_mixed(tmp_path: Path) -> None:
    for name, value in (("a.n5", 1), ("b.n5", 2)):
        data = np.full((5, 7), value, "u1")
        n5zarr.create_array(tmp_path / name, path="v", data=data, compression=None)
    n5zarr.download(tmp_path / "a.n5", tmp_path / "c.n5")
    with pytest.raises(N5UnrepresentableError, match=r"expected a part of .*b\.n5, got one of"):
        n5zarr.download(tmp_path / "b.n5", tmp_path / "c.n5")
    n5zarr.download(tmp_path / "b.n5", tmp_path / "c.n5", overwrite=True)
    assert n5zarr.open_array(tmp_path / "c.n5", path="v")[0, 0] == 2
