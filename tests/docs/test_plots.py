"""The plots of performance show the numbers of its tables, which are those of all cells."""

from __future__ import annotations

import json
import math
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from benchmarks import gains_report
from benchmarks.gains_report import FILES, IMAGES, MARK, SERVER, Gains
from benchmarks.plots import DOCS, plots, table
from tests.docs.migration.pages import with_tables

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (DOCS / "performance.md").read_text(encoding="utf-8")
CELLS = (DOCS.parent / "benchmarks" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", list(plots(PAGE)))
def test_a_picture_shows_the_numbers_of_its_table(name: str) -> None:
    with Image.open(DOCS / "images" / f"{name}.png") as picture:
        assert json.loads(picture.info["Description"]) == json.loads(json.dumps(plots(PAGE)[name]))
    assert f"](images/{name}.png)" in PAGE


def test_ratios_of_reading_are_those_of_all_cells() -> None:
    rows = table(CELLS, "task | dtype | block | compression | n5zarr, ms | n5zarr, plain")
    for task, block, *ratios in table(PAGE, "task | blocks | `n5zarr.open`"):
        cells = [[float(c) for c in row[4:9]] for row in rows if (row[0], row[2]) == (task, block)]
        assert len(cells) == 12
        for way in (0, 1):
            # stored to a tenth of a millisecond, so small ones are known to a part only
            least = [(min(c[2:]) - 0.05) / (c[way] + 0.05) for c in cells]
            most = [(min(c[2:]) + 0.05) / max(c[way] - 0.05, 0.01) for c in cells]
            given_least, given_mean = float(ratios[2 * way]), float(ratios[2 * way + 1])
            assert min(least) - 0.005 <= given_least <= min(most) + 0.005
            low, high = (math.exp(fmean(map(math.log, found))) for found in (least, most))
            assert low - 0.005 <= given_mean <= high + 0.005


@pytest.mark.parametrize("path", gains_report.PAGES, ids=lambda path: path.name)
def test_a_page_says_the_gains_that_the_plots_show(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert page == with_tables(page, gains_report.parts(gains_report.stored())[path], MARK)


def test_all_plots_of_gains_show_one_run() -> None:
    descriptions = set()
    for path in IMAGES.values():
        with Image.open(path) as picture:
            descriptions.add(picture.info["Description"])
    assert len(descriptions) == 1


@pytest.mark.parametrize(
    ("place", "ways", "first_cells"),
    [("files", FILES, "tensorstore, ms | z5py"), ("server", SERVER, "tensorstore, ms | Zarr v3")],
)
def test_gains_are_those_of_all_cells(place: str, ways: dict[str, str], first_cells: str) -> None:
    page = (DOCS.parent / "benchmarks" / "gains.md").read_text(encoding="utf-8")
    head = "task | dtype | block | compression | n5zarr, ms | n5zarr, plain, ms | "
    rows = table(page, head + first_cells)
    gains: Gains = getattr(gains_report.stored(), place)
    base = list(ways).index("Zarr v3")
    for task, found in gains.items():
        cells = [row[4:] for row in rows if row[0] == task]
        assert len(cells) == (16 if place == "files" else 4)
        for k, name in enumerate(ways.values()):
            if name in found:
                # stored to a tenth of a millisecond
                logs = [math.log(float(row[base]) / float(row[k])) for row in cells]
                assert found[name] == pytest.approx(math.exp(fmean(logs)), rel=0.02)
            else:
                assert {row[k] for row in cells} == {""}
