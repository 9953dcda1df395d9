"""Write `n5zarr/data/bigstitcher`, the BigStitcher project that comes with the package.

A microscope records two channels of four overlapping tiles at two time points: beads around the
specimen (GFP), and in it a coil that runs through all tiles (RFP). The stage was off by a few
voxels; the last transform of each view corrects this. The specimen drifts between the time points,
and the last view is missing. Needs n5zarr, which writes the project.
Run from the checkout: ``uv run python tests/data/make_bigstitcher.py [TARGET]``.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import n5zarr

TARGET = Path(__file__).parents[2] / "n5zarr" / "data" / "bigstitcher"
SHAPE = (11, 53, 61)  # of a tile; all vectors are in the order z, y, x
VOXEL = np.array([2.0, 0.5, 0.5])  # in um
CHANNELS = ("GFP", "RFP")
TILES = ("top left", "top right", "bottom left", "bottom right")
# where the stage should have been, and how far off it was, in voxels
STAGE = np.array([(0, 0, 0), (0, 0, 47), (0, 40, 0), (0, 40, 47)])
ERRORS = np.array([(0, 0, 0), (0, 3, -2), (1, -2, 3), (-1, 2, 4)])
DRIFT = np.array([0.5, 1.5, -2.0])  # from one time point to the next, in um
TIMES = (0, 1)
MISSING = (7, 1)  # setup, time point
SPACE = np.array([22, 46, 54])  # of the beads, in um


def beads() -> np.ndarray[Any, Any]:
    """Return the centres of the beads in um."""
    return np.random.default_rng(8).uniform((0, 1, 1), SPACE, (80, 3))


def coil() -> np.ndarray[Any, Any]:
    """Return points along the coil in um."""
    turn = np.linspace(0, 4 * np.pi, 240)
    radius = 7 + turn
    along = (0.7 * (turn - turn.mean()), radius * np.sin(turn), radius * np.cos(turn))
    return np.asarray(SPACE / 2 + np.stack(along, axis=1))


def record(setup: int, time: int) -> np.ndarray[Any, Any]:
    """Record a tile where the stage really was."""
    channel, tile = divmod(setup, len(TILES))
    sources, width = ((beads(), 0.8), (coil(), 1.0))[channel]
    corner = (STAGE[tile] + ERRORS[tile]) * VOXEL
    near = np.zeros(SHAPE)
    for point in sources + time * DRIFT - corner:
        z, y, x = (
            np.exp(-(((np.arange(n) * size - at) / spread) ** 2))
            for n, size, at, spread in zip(SHAPE, VOXEL, point, (2, width, width), strict=True)
        )
        near = np.maximum(near, z[:, None, None] * y[:, None] * x)
    noise = np.random.default_rng([setup, time]).poisson(0.3, SHAPE)
    # in few steps: the project is small
    return (16 * np.round(60 * near + 6 + noise)).astype("u2")


def interest_points() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the beads in each view of GFP, and the pairs of the same bead in two views."""
    rows = []
    for tile, time in itertools.product(range(len(TILES)), TIMES):
        places = (beads() + time * DRIFT) / VOXEL - STAGE[tile] - ERRORS[tile]
        inside = ((places > 0) & (places < np.array(SHAPE) - 1)).all(axis=1)
        for number, bead in enumerate(np.flatnonzero(inside)):
            rows.append((time, tile, "beads", number, *places[bead][::-1].round(2), bead))
    points = pd.DataFrame(rows, columns=["timepoint", "setup", "label", "id", *"xyz", "bead"])
    both = points.merge(points, on=["timepoint", "label", "bead"], suffixes=("", "_other"))
    both = both[both["setup"] != both["setup_other"]]
    pairs = both[["timepoint", "setup", "label", "id"]].assign(
        corresponding_timepoint=both["timepoint"],
        corresponding_setup=both["setup_other"],
        corresponding_label=both["label"],
        corresponding_id=both["id_other"],
        consensus_set=-1,
    )
    return points.drop(columns="bead"), pairs


def transforms(setup: int) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Return the transforms of a view by BigStitcher's names, the one applied first last."""
    tile = setup % len(TILES)
    cubic = VOXEL / VOXEL.min()  # the unit is the finest voxel
    moved = [np.column_stack([np.eye(3), (each[tile] * cubic)[::-1]]) for each in (ERRORS, STAGE)]
    calibration = np.column_stack([np.diag(cubic[::-1]), np.zeros(3)])
    names = ("Stitching Transform", "Translation to Regular Grid", "calibration")
    return list(zip(names, (*moved, calibration), strict=True))


def main(target: Path = TARGET) -> None:
    target.mkdir(parents=True, exist_ok=True)
    names = {}
    for setup, (channel, tile) in enumerate(itertools.product(CHANNELS, TILES)):
        names[setup] = {"name": f"{channel} {tile}", "channel": channel, "tile": tile}
    views = {view: record(*view) for view in itertools.product(names, TIMES) if view != MISSING}
    registrations = {setup: transforms(setup) for setup in names}
    n5zarr.write_bdv(
        views, target / "dataset.xml", setups=names, voxel_size=VOXEL.tolist(), unit="um",
        registrations=registrations, chunks=(11, 32, 32), factors=(1, 2, 2), levels=1,
    )  # fmt: skip
    n5zarr.write_interest_points(target / "dataset.xml", *interest_points())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
