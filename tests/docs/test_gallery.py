"""The pictures of the gallery are those that its blocks make."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import n5zarr
from tests.docs.gallery import FOLDER, OF_DATASETS, PAGE, pictures, prepare

if TYPE_CHECKING:
    from pathlib import Path

# its fonts differ
DRAWN_BY_MATPLOTLIB = {"stitched.png", "figure.png", "levels.png", "profile.png"}


@pytest.fixture(autouse=True)
def _beside_the_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare()


@pytest.mark.long
def test_the_blocks_of_the_page_make_its_pictures() -> None:
    made = pictures()
    text = PAGE.read_text(encoding="utf-8")
    assert made == re.findall(r"\]\(images/gallery/(.*?)\)", text)
    assert sorted(made) == sorted(file.name for file in FOLDER.iterdir())
    for name in made:
        with Image.open(name) as new, Image.open(FOLDER / name) as kept:
            assert new.size == kept.size, name
            difference = np.asarray(new, float) - np.asarray(kept, float)
            assert name in DRAWN_BY_MATPLOTLIB or np.abs(difference).mean() < 1, name


@pytest.mark.long
def test_each_convention_gives_the_same_picture() -> None:
    expected = np.asarray(n5zarr.thumbnail("sample.n5/em", size=170))
    paths = [*OF_DATASETS, "ome-ngff", "paintera"]
    assert len(paths) == 8
    for path in paths:
        found = np.asarray(n5zarr.thumbnail(f"conventions.n5/{path}", size=170))
        bar = 20 if path == "paintera" else 0  # which says no unit
        np.testing.assert_array_equal(found[: -bar or None], expected[: -bar or None], path)
