"""Containers of each release keep their values, types, fill values and attributes."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from tests.data.make_release import ATTRIBUTES, RELEASES, dataset, place, plain, through_zarr

FOLDERS = sorted(path for path in RELEASES.iterdir() if path.is_dir())
NODES = {**plain(), **through_zarr()}

each_release = pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.name)


def version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.name.split("."))


def test_there_are_containers_of_this_version() -> None:
    assert n5zarr.__version__ in [path.name for path in FOLDERS]


@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(path, name, id=f"{path.name}-{name}")
        for path in FOLDERS
        for name, node in NODES.items()
        if version(path) >= node.since
    ],
)
def test_an_array_reads_as_it_was_written(path: Path, name: str) -> None:
    node = NODES[name]
    path = place(path, node.container)
    for codecs in ("zarr", "n5"):
        array = zarr.open_array(n5zarr.N5Store(path, codecs=codecs), path=name, mode="r")
        assert array.dtype == node.values.dtype
        np.testing.assert_array_equal(array[...], node.values)
        np.testing.assert_array_equal(array.fill_value, node.fill_value)
    np.testing.assert_array_equal(n5zarr.open_array(path, path=name)[...], node.values)


@each_release
def test_attributes_read_as_they_were_written(path: Path) -> None:
    group = zarr.open_group(n5zarr.N5Store(place(path, "zarr3")), path="attributes", mode="r")
    assert dict(group.attrs) == ATTRIBUTES


@each_release
def test_a_dataset_reads_as_it_was_written(path: Path) -> None:
    xr.testing.assert_identical(
        xr.open_dataset(place(path, "zarr3"), engine="n5", group="dataset"), dataset()
    )


@each_release
def test_nothing_changes_by_being_read(path: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(path, tmp_path / "copy")
    for container in copy.iterdir():
        for _, node in n5zarr.open_group(container).members(max_depth=None):
            if isinstance(node, zarr.Array):
                _ = node[...]
    compared = [filecmp.dircmp(path, copy)]
    while compared:
        each = compared.pop()
        assert [*each.left_only, *each.right_only, *each.diff_files] == [], each.right
        compared += each.subdirs.values()


@each_release
def test_nothing_is_wrong_with_it(path: Path) -> None:
    assert [list(n5zarr.find_problems(container)) for container in path.iterdir()] == [[], []]
