"""People see the pages in a browser, and Neuroglancer with a running server."""

from __future__ import annotations

import asyncio
import itertools
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import n5zarr
from n5zarr.viewing.serve import app
from tests.viewing import volumes
from tests.viewing.browser import chromium, complaints, pixels, resize
from tests.viewing.volumes import FIRST, LABELS, SHAPE, VOXEL, write_volumes

CENTRE = tuple(n // 2 for n in SHAPE)
# Neuroglancer's panels of slices: place in the window, axes to the right and down, their directions
PANELS = {
    "xy": ((0, 0), (2, 1), (1, 1)),
    "xz": ((1, 0), (2, 1), (0, 1)),
    "yz": ((1, 1), (0, -1), (1, 1)),
}
NOTE_TEXTS = """
window.texts = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.texts.push(text);
  return draw.call(this, text, ...rest);
};
"""
STATE = """
const shown = viewer.state.toJSON();
const panels = Array.from(viewer.display.panels, (panel) => panel.element.getBoundingClientRect())
  .map((rect) => [rect.left, rect.top, rect.right, rect.bottom]);
return {shown: JSON.parse(JSON.stringify(shown)), panels};
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        started.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": NOTE_TEXTS})
        yield started


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_volumes(tmp_path_factory.mktemp("volumes") / "boxes.n5")


def wait_for(browser: Any, script: str, seconds: float = 30) -> None:
    from selenium.webdriver.support.wait import WebDriverWait  # noqa: PLC0415 - may be missing

    WebDriverWait(browser, seconds, 0.05).until(lambda b: b.execute_script(f"return {script}"))


def wait_until_drawn(browser: Any) -> None:
    wait_for(browser, "window.viewer !== undefined && viewer.isReady()")
    browser.execute_script("viewer.display.draw()")


def hide(browser: Any, *names: str) -> None:
    """Hide what Neuroglancer draws over the data."""
    for name in ("AxisLines", "DefaultAnnotations", *names):
        browser.execute_script(f"viewer.show{name}.value = false")
    wait_until_drawn(browser)


class Shown(NamedTuple):
    """The state of Neuroglancer's panels: nm per pixel, their middle, their places."""

    per_pixel: float
    middle: npt.NDArray[np.float64]  # nm; z, y, x
    panels: dict[str, tuple[float, float, float, float]]

    @classmethod
    def of(cls, browser: Any) -> Shown:
        found = browser.execute_script(STATE)
        state = found["shown"]
        sizes = {name: size / 1e-9 for name, (size, _) in state["dimensions"].items()}
        places = zip(sizes, state["position"], strict=True)
        by_name = {name: at * sizes[name] for name, at in places}
        # each panel is a quarter of the window; the place of its corner tells which one
        panels = {(rect[0] > 300, rect[1] > 300): tuple(rect) for rect in found["panels"]}
        return cls(
            state["crossSectionScale"] * min(sizes.values()),
            np.array([by_name[name] for name in "zyx"]),
            {name: panels[place] for name, (place, _, _) in PANELS.items()},
        )

    def pixel(self, panel: str, point: npt.NDArray[np.float64]) -> tuple[int, int] | None:
        """Return row and column of a point in nm; None if the panel does not show it."""
        left, top, right, bottom = self.panels[panel]
        _, (across, sign), (down, _) = PANELS[panel]
        moved = (point - self.middle) / self.per_pixel
        column = (left + right) / 2 + sign * moved[across]
        row = (top + bottom) / 2 + moved[down]
        inside = left + 40 < column < right - 60 and top + 2 < row < bottom - 2
        return (int(row), int(column)) if inside else None


def points_of(panel: str) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.float64]]]:
    """Yield each voxel in the slice of a panel, with points near its four corners."""
    _, (across, _), (down, _) = PANELS[panel]
    for i, j in np.ndindex(SHAPE[across], SHAPE[down]):
        voxel = list(CENTRE)
        voxel[across], voxel[down] = int(i), int(j)
        for a, b in itertools.product((-0.3, 0.3), repeat=2):
            at = np.array(voxel, float)
            at[across] += a
            at[down] += b
            yield tuple(voxel), FIRST + at * VOXEL


def test_the_picture_is_the_data_at_its_place(browser: Any, container: Path) -> None:
    with n5zarr.view(container, dataset="em/s0") as shown:
        browser.get(shown.url)
        wait_until_drawn(browser)
        state = browser.execute_script(STATE)["shown"]
        assert [layer["name"] for layer in state["layers"]] == ["em"]  # a pyramid is one layer
        hide(browser, "ScaleBar")
        seen, place = pixels(browser), Shown.of(browser)
        browser.execute_script(
            "for (const layer of viewer.layerManager.managedLayers) layer.setVisible(false)"
        )
        wait_until_drawn(browser)
        empty = pixels(browser)
        problems = complaints(browser)
    assert np.allclose(place.middle, FIRST + np.array(CENTRE) * VOXEL, atol=1e-3)
    data = volumes.volume()
    expected = (data.astype(float) - volumes.DARK) / (volumes.BRIGHT - volumes.DARK) * 255
    for panel, (_, (across, _), (down, _)) in PANELS.items():
        compared = [
            (voxel, seen[pixel], empty[pixel])
            for voxel, point in points_of(panel)
            if (pixel := place.pixel(panel, point)) is not None
        ]
        assert len(compared) == 4 * SHAPE[across] * SHAPE[down]  # the panel shows all of the volume
        brightness = np.array([pixel for _, pixel, _ in compared], float)
        wanted = np.array([expected[voxel] for voxel, _, _ in compared])
        assert np.abs(brightness - wanted[:, None]).max() <= 2, panel
        assert {tuple(pixel) for _, _, pixel in compared} == {(128, 128, 128)}, panel
    assert not problems


def test_a_line_says_what_is_loaded(
    browser: Any, container: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, may_go_on = app._answer, threading.Event()

    async def held(view: Any, key: str, scope: Any) -> Any:
        while "/c/" in key and not may_go_on.is_set():
            await asyncio.sleep(0.05)
        return await answer(view, key, scope)

    monkeypatch.setattr(app, "_answer", held)
    line = "document.querySelector('#loading')"
    with n5zarr.view(container, dataset="em") as shown:
        browser.get(shown.url)
        wait_for(browser, f"/^0 of [1-9][0-9]* blocks loaded$/.test({line}.innerText)")
        may_go_on.set()
        wait_for(browser, f"{line}.hidden")
        wait_for(browser, f"/^([0-9]+) of \\1 blocks loaded$/.test({line}.textContent)")
        assert not complaints(browser)


def test_a_page_that_cannot_be_drawn_says_so(browser: Any, container: Path) -> None:
    without = "HTMLCanvasElement.prototype.getContext = () => null"
    command = "Page.addScriptToEvaluateOnNewDocument"
    added = browser.execute_cdp_cmd(command, {"source": without})
    try:
        with n5zarr.view(container) as shown:
            browser.get(shown.url)
            wait_for(browser, "document.querySelector('#loading').textContent.includes('WebGL 2')")
            line = browser.find_element("id", "loading")
            assert line.is_displayed()
            assert line.rect["y"] + line.rect["height"] < 850 / 2  # not below Neuroglancer's bar
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
        complaints(browser)  # of Neuroglancer, which are expected here


def test_the_scale_bar_is_right(browser: Any, container: Path) -> None:
    """The scale bar agrees with the bright box, whose size is known."""
    with n5zarr.view(container, dataset="em") as shown:
        browser.get(shown.url)
        wait_until_drawn(browser)
        hide(browser)
        seen, texts = pixels(browser), browser.execute_script("return texts")
        left, top, right, bottom = map(int, Shown.of(browser).panels["xy"])
    panel = seen[top:bottom, left:right].min(axis=2)
    bar = panel[-16]  # its middle, 16 pixels above the lower border
    n_bar = longest_run(bar[:200] > 250)
    box = panel[panel.shape[0] // 2]
    n_box = longest_run(box > 250)
    box_nm = (volumes.BOXES[0][2].stop - volumes.BOXES[0][2].start) * VOXEL[2]
    length = re.fullmatch(r"([0-9.]+) nm", texts[-1])
    assert length is not None, texts
    assert n_bar * box_nm / n_box == pytest.approx(float(length[1]), rel=0.03)


def longest_run(values: npt.NDArray[np.bool_]) -> int:
    return max((len(list(run)) for value, run in itertools.groupby(values) if value), default=0)


def test_labels_have_colours(browser: Any, container: Path) -> None:
    with n5zarr.view(container, dataset="cells", labels="cells/*") as shown:
        browser.get(shown.url)
        wait_until_drawn(browser)
        hide(browser, "ScaleBar")
        state = browser.execute_script(STATE)["shown"]
        seen, place = pixels(browser), Shown.of(browser)
    assert [layer["type"] for layer in state["layers"]] == ["segmentation"]
    labels = volumes.label_volume()
    colours: dict[int, set[tuple[int, ...]]] = {}
    for voxel, point in points_of("xy"):
        pixel = place.pixel("xy", point)
        assert pixel is not None
        colours.setdefault(int(labels[voxel]), set()).add(tuple(map(int, seen[pixel])))
    assert colours.keys() == {0, *LABELS}
    assert all(len(found) == 1 for found in colours.values())
    chosen = [next(iter(colours[label])) for label in LABELS]
    assert len(set(chosen)) == len(LABELS)
    assert all(max(colour) - min(colour) > 30 for colour in chosen)  # no grey
    assert len(set(next(iter(colours[0])))) == 1  # grey: nothing is there


HOSTILE = "<img src=x onerror='window.hacked=1'>\"'&"


@pytest.mark.each_of(2)
@pytest.mark.parametrize("size", [(360, 800), (1600, 1000)], ids=["narrow", "wide"])
def test_the_start_page_shows_the_container(
    browser: Any, tmp_path: Path, size: tuple[int, int]
) -> None:
    root = write_volumes(tmp_path / "a <script>window.hacked=1<.n5")
    (root / "cells").rename(root / HOSTILE.replace("/", ""))
    with n5zarr.serve(root) as server:
        resize(browser, *size)
        allowed = {"origin": server.url.rstrip("/"), "permissions": ["clipboardSanitizedWrite"]}
        browser.execute_cdp_cmd("Browser.grantPermissions", allowed)
        browser.get(server.url)
        pictures = "Array.from(document.images)"
        browser.execute_script(f"{pictures}.forEach((each) => {{ each.loading = 'eager' }})")
        wait_for(browser, f"{pictures}.every((each) => each.complete)")
        drawn = browser.execute_script(f"return {pictures}.map((each) => each.naturalWidth)")
        text = browser.execute_script("return document.body.innerText")
        browser.execute_script(
            "for (const each of document.querySelectorAll('details')) each.open = 1"
        )
        width = browser.execute_script("return document.documentElement.scrollWidth")
        browser.find_element("tag name", "button").click()
        wait_for(browser, "document.querySelector('button').textContent !== 'copy'")
        copied = browser.execute_script("return document.querySelector('button').textContent")
        hacked = browser.execute_script("return window.hacked")
        problems = complaints(browser)
        view = browser.execute_script("return document.querySelector('.card .view').href")
        browser.get(view)
        wait_until_drawn(browser)
    assert len(drawn) == 2
    assert min(drawn) > 50
    assert f"({', '.join(map(str, SHAPE))})" in text
    assert HOSTILE in text
    assert width <= size[0]
    assert copied == "copied"
    assert hacked is None
    assert not problems
