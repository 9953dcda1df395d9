"""Make the screenshots of the pages: ``uv run python -m tests.viewing.screenshots``."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy import ndimage

import n5zarr
from tests.viewing.browser import chromium, resize
from tests.viewing.test_browser import wait_for, wait_until_drawn

FOLDER = Path(__file__).parents[2] / "docs" / "images"


def main() -> None:
    """Write the pictures into ``docs/images``."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.n5")
        shutil.copytree(n5zarr.sample_path(), sample)
        predicted = Path(folder, "predicted.n5")
        shutil.copytree(sample / "em", predicted / "em")
        write_prediction(sample, predicted)
        with (
            n5zarr.view(sample) as shown,
            n5zarr.view(n5zarr.sample_path("bigstitcher")) as project,
            n5zarr.view(predicted) as prediction,
            chromium(Path(folder, "chromium")) as browser,
        ):
            views = {"viewer": shown, "viewer-project": project, "viewer-prediction": prediction}
            for name, picture in pictures(browser, views):
                picture.save(FOLDER / f"{name}.png", optimize=True)
                print(f"{name}: {picture.size}, {(FOLDER / f'{name}.png').stat().st_size} B")  # noqa: T201


def write_prediction(sample: Path, into: Path) -> None:
    """Write what a network might say of every third cell: the chance that a voxel is in it."""
    labels = n5zarr.open_array(sample, path="labels/s0")[...]
    chance = ndimage.gaussian_filter((np.asarray(labels) % 3 == 1).astype("f4"), (1, 2, 2))
    places: dict[str, Any] = {"axes": "zyx", "units": ["nm"] * 3, "resolution": [20, 8, 8]}
    n5zarr.create_array(into, path="prediction", data=chance, chunks=(16, 40, 50), **places)


def pictures(
    browser: Any, views: Mapping[str, n5zarr.NeuroglancerView]
) -> Iterator[tuple[str, Image.Image]]:
    """Yield the name of each picture, and the picture."""
    for name, width, height, dark in (
        ("start-page", 1200, 1080, False),
        ("start-page-narrow", 360, 1080, False),
        ("start-page-dark", 1000, 700, True),
    ):
        resize(browser, width, height, dark=dark)
        browser.get(views["viewer"].server.url)
        wait_for(browser, "Array.from(document.images).every((each) => each.complete)")
        browser.execute_script("document.querySelector('.path').textContent = '/data/sample.n5'")
        yield name, taken(browser)
    resize(browser, 1200, 720)
    for name, view in views.items():
        browser.get(view.url)
        wait_until_drawn(browser)
        yield name, taken(browser)


def taken(browser: Any) -> Image.Image:
    """Take a picture of the page."""
    return Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")


if __name__ == "__main__":
    main()
