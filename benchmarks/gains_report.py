"""Say what ``benchmarks.gains`` measured: plots, a table and sentences, in README and docs.

A gain is how many times as fast a way is as zarr code on Zarr v3, by task and by the way's name.
"""

from __future__ import annotations

import json
import statistics
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.figure import Figure
from PIL import Image

from benchmarks.plots import COLOURS, DOCS
from tests.docs.migration.pages import with_tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

type Gains = Mapping[str, Mapping[str, float]]  # by task, and by the name of a way

COMMAND = "python -m benchmarks.gains --write"
MARK = f"<!-- made by `{COMMAND}` -->"
PAGES = README, PERFORMANCE = DOCS.parent / "README.md", DOCS / "performance.md"
OURS = "N5, zarr code with n5zarr"
WRITING = "writing a volume"
# the ways, by their name in tables: with files, and with a server
FILES = {
    "n5zarr": "N5, n5zarr.open",
    "n5zarr, plain": OURS,
    "tensorstore": "N5, tensorstore",
    "z5py": "N5, z5py",
    "Zarr v3": "Zarr, zarr code",
    "Zarr v3, fused": "Zarr, zarr code, fused pipeline",
    "Zarr v3, zarrs": "Zarr, zarr code with zarrs",
    "Zarr v3, tensorstore": "Zarr, tensorstore",
}
SERVER = {
    "n5zarr": FILES["n5zarr"],
    "n5zarr, plain": FILES["n5zarr, plain"],
    "tensorstore": FILES["tensorstore"],
    "Zarr v3": FILES["Zarr v3"],
    "Zarr v3, obstore": "Zarr, zarr code, obstore",
    "Zarr v3, tensorstore": FILES["Zarr v3, tensorstore"],
}
OTHERS = "#b0b0b0"  # the colour of their bars
BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
IMAGES = {name: DOCS / "images" / f"gains-{name}.png" for name in ("means", "files", "server")}


class Found(NamedTuple):
    """What one run has measured; ``ms`` is the latency of the server."""

    date: str
    ms: int
    files: Gains
    server: Gains

    @property
    def means(self) -> Gains:
        """The gains of those who do all tasks of a kind."""
        reading = {task: ways for task, ways in self.files.items() if task != WRITING}
        return {
            "reading files": means(reading),
            "writing files": self.files[WRITING],
            f"reading from a server {self.ms} ms away": means(self.server),
        }

    @property
    def titles(self) -> dict[str, str]:
        """What each plot says first."""
        files, _, server = (
            f"{ways[OURS]:.1f} times as fast as Zarr" for ways in self.means.values()
        )
        all_files = f"The same zarr code reads N5 with n5zarr\n{files}"
        far = f"From a server, zarr code reads N5 with n5zarr\n{server}"
        return {"means": all_files, "files": all_files, "server": far}


def means(gains: Gains) -> dict[str, float]:
    """Return the geometric means of tasks, of those who do them all."""
    first, *others = gains.values()
    able = [name for name in first if all(name in ways for ways in others)]
    return fastest_first(
        {name: statistics.geometric_mean(ways[name] for ways in gains.values()) for name in able}
    )


def fastest_first(ways: Mapping[str, float]) -> dict[str, float]:
    """Sort ways, with two decimals of their gains."""
    return {name: round(ways[name], 2) for name in sorted(ways, key=lambda name: -ways[name])}


def stored() -> Found:
    """Return what the plots show."""
    with Image.open(IMAGES["files"]) as picture:
        return Found(*json.loads(picture.info["Description"]))


def write(found: Found) -> None:
    """Draw the plots, and write the parts of the pages."""
    for name, path in IMAGES.items():
        draw(found.titles[name], getattr(found, name), json.dumps(found), path)
    for path, part in parts(found).items():
        path.write_text(with_tables(path.read_text(encoding="utf-8"), part, MARK), encoding="utf-8")


def parts(found: Found) -> dict[Path, str]:
    """Return what README and the page on performance say."""
    read, written, far = (f"{ways[OURS]:.1f} times as fast" for ways in found.means.values())
    said = (
        f"The same zarr code reads N5 with n5zarr **{read}** as Zarr with zarr's default pipeline,"
        f" and writes it {written}; from a server {found.ms} ms away it reads N5 {far}."
    )
    plots = "".join(f"{picture(found, name, 'images')}\n" for name in ("files", "server"))
    return {
        README: f"{said} Calls were repeated in a row; [Performance](docs/performance.md) has "
        "single ones, and more.\n\n"
        f"{picture(found, 'means', 'docs/images')}\n",
        PERFORMANCE: f"{said} Measured by `{COMMAND}` on {found.date}.\n\n"
        f"{summary(found)}\n{plots}",
    }


def picture(found: Found, name: str, folder: str) -> str:
    """Return a plot in Markdown, with what it shows."""
    of_tasks = (f"{task} {ways[OURS]:.1f}" for task, ways in getattr(found, name).items())
    title = found.titles[name].replace("\n", " ")
    return f"![Bars: {title}: {', '.join(of_tasks)}]({folder}/{IMAGES[name].name})"


def summary(found: Found) -> str:
    """Return the mean gains of all ways, where they do all tasks of a kind."""
    names = dict.fromkeys((*FILES.values(), *SERVER.values()))
    lines = [["times as fast", *found.means], ["---"] * (len(found.means) + 1)]
    lines += [
        [name, *(f"{ways[name]:.1f}" if name in ways else "-" for ways in found.means.values())]
        for name in names
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def draw(title: str, gains: Gains, description: str, path: Path) -> None:
    """Draw a bar for each way of each task, readable at the width of a telephone."""
    n_lines = sum(len(ways) + 1.6 for ways in gains.values())
    figure = Figure(figsize=(5.2, 1.1 + 0.17 * n_lines), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.axvline(1, color="black", linewidth=1)
    say = partial(axes.annotate, xytext=(3, 0), textcoords="offset points", va="center")
    place, names = 0.0, {}
    for task, ways in gains.items():
        say(task, (0, place - 0.15), weight="bold", bbox=BEHIND)
        for name, times in ways.items():
            place += 1
            ours = "n5zarr" in name
            axes.barh(place, times, 0.82, color=COLOURS[0] if ours else OTHERS)
            say(f"{times:.1f}", (times, place), weight="bold" if ours else "normal", fontsize=9)
            names[place] = name
        place += 1.6
    axes.set_yticks(list(names), list(names.values()), fontsize=9)
    for each in axes.get_yticklabels():
        each.set_fontweight("bold" if "n5zarr" in each.get_text() else "normal")
    axes.set_ylim(place - 0.9, -0.8)
    axes.margins(x=0.1)
    axes.tick_params(left=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("times as fast as zarr code on Zarr; longer is faster", fontsize=10)
    figure.suptitle(title, weight="bold", fontsize=11)
    figure.savefig(path, dpi=150, metadata={"Software": None, "Description": description})
