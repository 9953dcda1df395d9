"""``n5zarr pyramid`` builds levels."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import n5zarr
from tests.command import printed


def run(*arguments: str, status: int = 0) -> list[str]:
    return [line.rstrip() for line in printed("pyramid", *arguments, status=status).splitlines()]


@pytest.fixture
def group(tmp_path: Path) -> str:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "c.n5")
    return str(tmp_path / "c.n5" / "em")


def test_the_plan_and_the_result_are_printed(group: str) -> None:
    options = ("--levels", "2", "--factors", "2,2,2", "--overwrite")
    assert run(group, *options, "--dry-run") == [
        f"{group.removesuffix('/em')}  /em",
        "to be removed: s1, s2",
        "would be made with mean, described as cosem:",
        "    shape         of s0      voxel size       blocks  size",
        "s1  (20, 48, 64)  (2, 2, 2)  (40, 16, 16) nm  8       60.0 KiB unpacked",
        "s2  (10, 24, 32)  (4, 4, 4)  (80, 32, 32) nm  1       7.5 KiB unpacked",
    ]
    assert n5zarr.open_array(group, path="s2").chunks == (10, 24, 32)  # the sample's
    done = run(group, *options)
    assert done[1:3] == ["removed: s1, s2", "were made with mean, described as cosem:"]
    assert [line.split("  ")[4] for line in done[4:]] == ["8 of 8", "1 of 1"]
    assert n5zarr.open_array(group, path="s2").chunks == (16, 40, 50)


def test_the_result_is_json(group: str) -> None:
    found = json.loads("\n".join(run(group, "--overwrite", "--method", "median", "--json")))
    assert found["method"] == "median"
    assert [level["factors"] for level in found["levels"]] == [[1, 2, 2]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "em: expected no levels beside s0, got s1, s2; overwrite=True (--overwrite) removes"),
        (("--factors", "a"), "expected whole numbers such as 2,2,2, got 'a'"),
        (("--overwrite", "--levels", "1,2"), "expected a number or auto, got '1,2'"),
        (("--overwrite", "--levels", "99"), "levels: expected at most 7, got 99"),
    ],
)
def test_mistakes_are_told_in_one_line(group: str, options: tuple[str, ...], message: str) -> None:
    assert message in " ".join(run(group, *options, status=2))


def test_a_small_dataset_needs_no_levels(tmp_path: Path) -> None:
    array = n5zarr.create_array(tmp_path / "c.n5", path="em/s0", shape=(7, 5, 3), dtype="u1")
    array[:] = 2
    assert run(str(tmp_path / "c.n5" / "em"))[1:] == ["s0 is small enough: no levels"]
    assert not (tmp_path / "c.n5" / "em" / "s1").exists()
