"""Print the layers that napari makes of locations, without a window, if napari is installed.

``python in_napari.py RESULT LOCATION ...`` pickles the layers of each location as plain values.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

NAMES = [
    "DIRECTORY",  # replaced by the path of a directory
    "s3://bucket/data.n5",
    "https://server/data.n5?token=1",
    "s3://bucket/data.n5/em/s0",
    "s3://bucket/data.n5|n5:em/s0",
    "s3://bucket/data|n5:em/s0",
    "/somewhere/dataset.xml",
    "https://server/dataset.xml",
    "https://server/data.zarr",
    "/somewhere/image.tif",
]


def facts(layer: Any) -> dict[str, Any]:
    """Describe a layer: its values, and the corners of its array in the world."""
    levels = [*layer.data] if layer.multiscale else [layer.data]
    last = [n - 1 for n in levels[0].shape]
    corners = [
        np.where(np.unravel_index(i, (2,) * len(last)), last, 0) for i in range(2 ** len(last))
    ]
    is_image = hasattr(layer, "contrast_limits")
    return {
        "type": type(layer).__name__, "name": layer.name, "axes": layer.axis_labels,
        "scale": tuple(layer.scale), "translate": tuple(layer.translate),
        "units": [str(unit) for unit in layer.units],
        "world": {tuple(map(int, c)): tuple(layer.data_to_world(c)) for c in corners},
        "affine": layer.affine.linear_matrix, "limits": getattr(layer, "contrast_limits", None),
        "color": np.asarray(layer.colormap.colors[-1]) if is_image else None,
        "metadata": layer.metadata, "levels": [np.asarray(level) for level in levels],
    }  # fmt: skip


def main(result: str, *locations: str) -> None:
    from napari.components import ViewerModel  # noqa: PLC0415 - the tests look at this module, too
    from npe2 import PluginManager  # noqa: PLC0415
    from npe2.cli import app  # noqa: PLC0415

    exit_code = app(["validate", "--imports", "n5zarr"], standalone_mode=False)
    manager = PluginManager.instance()
    manager.discover()
    names = [locations[0] if name == "DIRECTORY" else name for name in NAMES]
    asked = {
        path: any(r.command == "n5zarr.get_reader" for r in manager.iter_compatible_readers([name]))
        for path, name in zip(NAMES, names, strict=True)
    }
    viewer = ViewerModel()
    sample = [facts(layer) for layer in viewer.open_sample("n5zarr", "em")]
    layers = {}
    for location in locations:
        opened = ViewerModel().open(location, plugin="n5zarr")
        layers[location] = {layer.name: facts(layer) for layer in opened}
    found = {"exit_code": exit_code, "asked": asked, "sample": sample, "layers": layers}
    Path(result).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
