"""``convert`` from OME-Zarr with wrong documents says so, and loses no level in silence."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.ome_zarr.test_pyramid import write

if TYPE_CHECKING:
    from pathlib import Path

DAMAGES: dict[str, Any] = {
    "cut": lambda _: "{",
    "without a member": lambda text: json.dumps(
        {key: value for key, value in json.loads(text).items() if key != "fill_value"}
    ),
    "codec": lambda text: text.replace('"bytes"', '"nope"'),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write an image of two levels."""
    write(tmp_path / "a.zarr", 3)
    n5zarr.build_pyramid(tmp_path / "a.zarr", levels=1)
    return tmp_path / "a.zarr"


def test_a_damaged_level_is_an_error(path: Path, tmp_path: Path) -> None:
    document = path / "0" / "zarr.json"
    before = document.read_text()
    for damage in DAMAGES.values():
        document.write_text(damage(before))
        with pytest.raises(N5UnrepresentableError, match=r"a\.zarr.*: expected"):
            n5zarr.convert(path, tmp_path / "a.n5")
        with pytest.raises(N5UnrepresentableError, match="0: expected an array of Zarr"):
            n5zarr.build_pyramid(path, levels=1, overwrite=True)
        assert not (tmp_path / "a.n5").exists()


def test_a_missing_level_is_told(path: Path, tmp_path: Path) -> None:
    shutil.rmtree(path / "0")
    with pytest.warns(n5zarr.N5Warning, match="0: omitted, as multiscales lists it"):
        n5zarr.convert(path, tmp_path / "a.n5")
