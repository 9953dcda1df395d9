"""Save interest points and matches with Rhapso's classes, and load the points again."""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

POINTS = np.arange(15).reshape(5, 3) * 0.5 - 2
VIEWS = {(0, 0): "(tpId=0, setupId=0)", (0, 1): "(tpId=0, setupId=1)"}
MATCHES = [(1, None, VIEWS[0, 0], "beads", 2, None, VIEWS[0, 1], "beads"),
           (3, None, VIEWS[0, 0], "beads", 0, None, VIEWS[0, 1], "beads")]  # fmt: skip


class Rows(list[dict[str, int]]):
    """The table of the views, with the one method that Rhapso calls."""

    def iterrows(self) -> Any:
        return enumerate(self)


def write(folder: Path) -> None:
    prefix = f"{folder}/"
    points = {
        f"timepoint: 0, setup: {setup}": [(point + setup, 0.25) for point in POINTS[: 5 - setup]]
        for _, setup in VIEWS
    }
    views = Rows({"timepoint": 0, "view_setup": setup} for _, setup in VIEWS)
    module = import_module("Rhapso.detection.save_interest_points")
    saving = module.SaveInterestPoints(
        {"image_loader": views}, points, "", "", prefix, 1, 1, 0, 1, 1.8, 0.1
    )
    saving.save_points()
    module = import_module("Rhapso.matching.save_matches")
    known = {"viewsInterestPoints": {view: {"label": ["beads"]} for view in VIEWS}}
    module.SaveMatches(MATCHES, prefix, known, "rigid").run()


def read(folder: Path) -> dict[str, Any]:
    sys.modules["ray"] = ModuleType("ray")  # imported, and not called here
    module = import_module("Rhapso.matching.load_and_transform_points")
    loading = module.LoadAndTransformPoints({}, "", f"{folder}/", "rigid")
    return {
        str(setup): loading.load_interest_points_from_path(
            f"{folder}/interestpoints.n5", f"tpId_0_viewSetupId_{setup}/beads/interestpoints/loc"
        )
        for _, setup in VIEWS
    }


if __name__ == "__main__":
    found = {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))
    Path(sys.argv[3]).write_bytes(pickle.dumps(found))
