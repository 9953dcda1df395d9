"""Make the pictures of the gallery from its own blocks: ``uv run python -m tests.docs.gallery``."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter

import n5zarr
from tests.command import printed

PAGE = Path(__file__).parents[2] / "docs/gallery.md"
FOLDER = PAGE.parent / "images/gallery"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"\w+\.png")

# Voxels of 20 x 8 x 8 nm, as programs write them; in N5 order but for COSEM, Funlib and ilastik.
OME_AXES = [{"name": name, "type": "space", "unit": "nanometer"} for name in "zyx"]
OF_DATASETS: dict[str, dict[str, Any]] = {
    "canonical": {
        "spatialTransform": {
            "transform": {"type": "scale", "scale": [8.0, 8.0, 20.0]}, "unit": "nm",
        },
    },
    "cosem/s0": {
        "transform": {
            "axes": ["z", "y", "x"], "units": ["nm"] * 3, "scale": [20.0, 8.0, 8.0],
            "translate": [0.0] * 3,
        },
    },
    "funlib": {
        "voxel_size": [20, 8, 8], "offset": [0, 0, 0], "axis_names": ["z", "y", "x"],
        "units": ["nm"] * 3,
    },
    "ilastik": {
        "axistags": json.dumps({"axes": [
            {"key": k, "typeFlags": 2, "resolution": 20 if k == "z" else 8} for k in "zyx"
        ]}),
        "axis_units": {"z": "nm", "y": "nm", "x": "nm"},
    },
    "n5-viewer/s0": {
        "pixelResolution": {"unit": "nm", "dimensions": [8.0, 8.0, 20.0]},
        "downsamplingFactors": [1, 1, 1],
    },
    "neuroglancer": {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [8.0, 8.0, 20.0]},
}  # fmt: skip
PLACED = [{"type": "scale", "scale": [20.0, 8.0, 8.0]}]
LEVELS = [{"path": "s0", "coordinateTransformations": PLACED}]
OF_GROUPS: dict[str, dict[str, Any]] = {
    "ome-ngff": {"multiscales": [{"version": "0.4", "axes": OME_AXES, "datasets": LEVELS}]},
    "paintera": {"painteraData": {"type": "raw"}},
    "paintera/data": {"multiScale": True, "resolution": [8.0, 8.0, 20.0], "offset": [0.0] * 3},
}


def cells(shape: tuple[int, int, int], seed: int, n_cells: int = 24) -> Any:
    """Return nuclei, and the membranes around them, as two channels."""
    rng = np.random.default_rng(seed)
    grid = np.indices(shape) * np.array([2.0, 1, 1])[:, None, None, None]
    centres = rng.uniform(0, np.array(shape) * [2, 1, 1], (n_cells, 3))
    apart = [np.sqrt(((grid - c[:, None, None, None]) ** 2).sum(0)) for c in centres]
    near, second = np.sort(apart, axis=0)[:2]
    nuclei = (near < 9) * (110 + 40 * gaussian_filter(rng.normal(size=shape), 2) * 8)
    membranes = np.exp(-(((second - near) / 4) ** 2)) * 190
    noise = rng.normal(0, 6, (2, *shape))
    smooth = np.stack([gaussian_filter(part, 1) for part in (nuclei, membranes)])
    return np.clip(smooth + noise + 14, 0, 255).astype("uint8")


def prepare() -> None:
    """Write the containers of the page into the current directory."""
    shutil.copytree(n5zarr.sample_path(), "sample.n5")
    image = n5zarr.open_array("sample.n5/em/s0")[:]
    for path, attributes in OF_DATASETS.items():
        n5zarr.create_array(f"conventions.n5/{path}", data=image, attributes=attributes)
    for group in ("ome-ngff", "paintera/data"):
        n5zarr.create_array(f"conventions.n5/{group}/s0", data=image)
    for group, attributes in OF_GROUPS.items():
        place = Path("conventions.n5", group, "attributes.json")
        place.write_text(json.dumps(attributes), encoding="utf-8")
    both = cells((30, 100, 140), 3)
    placed: Any = {"units": [None, "um", "um", "um"], "resolution": [1, 0.5, 0.25, 0.25]}
    n5zarr.create_array("cells.n5/cells/s0", data=both, axes="czyx", **placed)
    series = np.stack([np.roll(both[0, 15], 6 * t, 1) for t in range(5)])
    how: Any = {"units": ["s", "um", "um"], "resolution": [30, 0.25, 0.25]}
    n5zarr.create_array("movie.n5/cells/s0", data=series, axes="tyx", **how)
    wide = cells((20, 128, 280), 5)[0]
    tiles = np.stack([wide[:, :, :150], np.roll(wide, -10, 1)[:, :, 120:270]])
    steps = zip("zyx", tiles.shape[1:], (0.2, 0.05, 0.05), strict=True)
    sizes = {name: np.arange(n) * s for name, n, s in steps}
    left, right = (xr.DataArray(tile, dims=("z", "y", "x"), coords=sizes) for tile in tiles)
    right = right.assign_coords(x=right.x + 120 * 0.05, y=right.y + 10 * 0.05)
    setups = {0: {"name": "left"}, 1: {"name": "right"}}
    n5zarr.write_bdv({0: left, 1: right}, "tiles.xml", unit="um", levels=0, setups=setups)


def pictures() -> list[str]:
    """Run the blocks of the page in the current directory, and return the pictures they name."""
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, PAGE, "exec"), {})  # noqa: S102 - our own page
        else:
            printed(*block.split()[1:])
    return PICTURE.findall("".join(block for _, block in blocks))


def main() -> None:
    os.environ.setdefault("MPLBACKEND", "agg")  # before the blocks import pyplot
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepare()
        for name in pictures():
            shutil.copy(name, FOLDER / name)
            print(f"{name}: {Path(name).stat().st_size} B")  # noqa: T201


if __name__ == "__main__":
    main()
