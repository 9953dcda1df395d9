"""The page of errors has the texts of zarr and xarray, and lines that work instead."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import n5zarr
from n5zarr import N5Store

import_module("dask.array")  # which `dask` then has
PAGE = Path(__file__).parents[2] / "docs/errors.md"
NAMES: dict[str, Any] = {
    "n5zarr": n5zarr,
    "np": import_module("numpy"),
    "N5Store": N5Store,
    "zarr": import_module("zarr"),
    "xr": import_module("xarray"),
    "dask": import_module("dask"),
    "z5py": import_module("n5zarr.compat.z5py"),
}


def rows() -> list[tuple[str, str, str]]:
    """Return the name and text of each error, a line that raises it, and one that works."""
    found, text, way = [], "", ""
    for row in re.findall(r"^\| (`\w+Error: .*|the same .*) \|$", PAGE.read_text(), re.MULTILINE):
        said, lines, ways = (re.findall("`([^`]+)`", cell) for cell in row.split(" | "))
        text, way = said[0] if said else text, ways[0] if ways else way
        found += [(text, line, way) for line in lines]
    return found


@pytest.mark.parametrize(("text", "line", "way"), rows())
def test_the_texts_are_those_of_zarr_and_xarray(
    text: str, line: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "data.n5")
    monkeypatch.chdir(tmp_path)
    name, _, said = text.partition(": ")
    errors = (OSError, ImportError, AttributeError, TypeError, ValueError, RuntimeError)
    with pytest.raises(errors) as raised:
        exec(line, dict(NAMES))  # noqa: S102 - of the page
    assert type(raised.value).__name__ == name
    assert said in str(raised.value)
    exec(way, dict(NAMES))  # noqa: S102 - as above


def test_zarr_adds_a_group_to_a_container(tmp_path: Path) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "data.n5")
    NAMES["zarr"].open(str(tmp_path / "data.n5"))
    assert (tmp_path / "data.n5/zarr.json").exists()
