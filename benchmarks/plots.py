"""Draw the plots of ``docs/performance.md`` from its own tables.

``uv run --group bench python -m benchmarks.plots``
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

DOCS = Path(__file__).parents[1] / "docs"
COLOURS = ("#0072b2", "#e69f00", "#009e73")  # told apart by those who are colour-blind, too


class Plot(NamedTuple):
    """Bars of ratios: a group for each label, a bar in it for each series."""

    labels: list[str]
    series: dict[str, list[float]]
    xlabel: str


def table(page: str, first_cells: str) -> list[list[str]]:
    """Return the rows of the table whose head begins with these cells."""
    found = re.search(
        rf"^\| {re.escape(first_cells)}.*\n\|[-| ]+\n((?:\|.*\n?)+)", page, re.MULTILINE
    )
    assert found, first_cells
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


def plots(page: str) -> dict[str, Plot]:
    """Return what each picture shows, by name."""
    peers = [row for row in table(page, "task | blocks | `n5zarr.open`") if row[1] == "64"]
    convert = table(page, "| n5zarr, s")
    return {
        "reading-beside-peers": Plot(
            [row[0] for row in peers],
            {
                "n5zarr.open": [float(row[3]) for row in peers],
                "zarr.open_array": [float(row[5]) for row in peers],
            },
            "times as fast as the fastest peer; above 1: n5zarr is faster",
        ),
        "converting": Plot(
            [row[0] for row in convert],
            {
                "tensorstore": [float(row[2]) for row in convert],
                "dask by hand": [float(row[3]) for row in convert],
            },
            "time / time of n5zarr; above 1: n5zarr is faster",
        ),
    }


def draw(plot: Plot, path: Path) -> None:
    """Draw bars, readable at the width of a telephone, with the numbers in the file."""
    n, bar = len(plot.labels), 0.8 / len(plot.series)
    figure = Figure(figsize=(5.2, 1 + 0.44 * n), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for k, (name, values) in enumerate(plot.series.items()):
        places = [i + (k - (len(plot.series) - 1) / 2) * bar for i in range(n)]
        widths = [value - 1 for value in values]
        axes.barh(places, widths, bar * 0.9, left=1, color=COLOURS[k], label=name)
        for value, place in zip(values, places, strict=True):
            after = value >= 1
            axes.annotate(
                f"{value:.2f}",
                (value, place),
                xytext=(3 if after else -3, 0),
                textcoords="offset points",
                ha="left" if after else "right",
                va="center",
                fontsize=8,
            )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.17)
    axes.set_yticks(range(n), [label.replace(" in ", "\nin ") for label in plot.labels])
    axes.invert_yaxis()
    figure.supxlabel(plot.xlabel, fontsize=10)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, metadata={"Software": None, "Description": json.dumps(plot)})


def main() -> None:
    """Write the pictures."""
    for name, plot in plots((DOCS / "performance.md").read_text(encoding="utf-8")).items():
        draw(plot, DOCS / "images" / f"{name}.png")


if __name__ == "__main__":
    main()
