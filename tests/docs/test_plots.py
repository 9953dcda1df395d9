"""The plots of performance show the numbers of its tables, which are those of all cells."""

from __future__ import annotations

import json
import math
from statistics import fmean

import pytest
from PIL import Image

from benchmarks.plots import DOCS, plots, table

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
