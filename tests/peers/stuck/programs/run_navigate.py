"""Acquire two channels of a stack with a pyramid into BDV's N5 and OME-Zarr with navigate."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

SHAPE = (6, 22, 26)  # z, y, x
FRAMES = np.arange(2 * 6 * 22 * 26, dtype="u2").reshape((2, *SHAPE))  # of two channels
CONFIGURATION: dict[str, Any] = {
    "experiment": {
        "MicroscopeState": {
            "microscope_name": "one", "zoom": "1x", "step_size": 0.5, "timepoint_interval": 0,
            "image_mode": "z-stack", "number_z_steps": SHAPE[0], "timepoints": 1,
            "channels": {f"channel_{n}": {"is_selected": True} for n in (1, 2)},
            "is_multiposition": False, "stack_cycling_mode": "per_stack",
        },
        "CameraParameters": {"one": {"img_x_pixels": SHAPE[2], "img_y_pixels": SHAPE[1]}},
        "BDVParameters": {
            "shear": {}, "rotate": {},
            "down_sample": {
                "down_sample": True, "lateral_down_sample": 2, "axial_down_sample": 2,
            },
        },
        "Saving": {},
    },
    "configuration": {
        "microscopes": {"one": {"zoom": {"pixel_size": {"1x": 0.25}}, "stage": {}}},
    },
    "multi_positions": [],
}  # fmt: skip


def write(folder: Path) -> None:
    sources = "navigate.model.data_sources"
    bdv = import_module(f"{sources}.bdv_data_source").BigDataViewerDataSource
    ome = import_module(f"{sources}.zarr_data_source").OMEZarrDataSource
    acquire(bdv(str(folder / "data.n5"), "w"))
    acquire(ome(str(folder / "data.zarr"), "w"))


def acquire(opened: Any) -> None:
    opened.set_metadata_from_configuration_experiment(CONFIGURATION, "one")
    for frame in FRAMES.reshape(-1, *SHAPE[1:]):
        opened.write(frame, x=0, y=0, z=0, theta=0, f=0)
    opened.close()


if __name__ == "__main__":
    {"write": write}[sys.argv[1]](Path(sys.argv[2]))
