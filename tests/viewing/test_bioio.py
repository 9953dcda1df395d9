"""The reader for BioIO, by BioIO's own tests for readers."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
from bioio import BioImage
from bioio_base import test_utilities as suite
from bioio_base.exceptions import UnsupportedFileFormatError

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from n5zarr.viewing.bioio import Reader
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS, elements, write_project
from tests.remote import servers

METADATA = Path(__file__).parents[1] / "data/java/metadata.n5"
TRUTH = [
    json.loads(line) for line in METADATA.with_suffix(".truth.jsonl").read_text().splitlines()
]
MICROMETERS = {"um": 1, "micrometer": 1, "nm": 1e-3, None: 1}
SCENES = tuple(dict.fromkeys(t["path"].removesuffix("/s0").removesuffix("/s1") for t in TRUTH))
N_LEVELS = {scene: sum(t["path"].startswith(f"{scene}/") for t in TRUTH) or 1 for scene in SCENES}

pytestmark = pytest.mark.filterwarnings("ignore:The specified chunks separate:UserWarning:dask")


def document(truth: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((METADATA / truth["path"] / "attributes.json").read_text())
    return found


@pytest.mark.parametrize("container", [Reader, BioImage])
@pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["path"])
def test_each_level_of_each_convention(container: Any, truth: dict[str, Any]) -> None:
    """Shapes are those of the documents, sizes those that Java read."""
    scene = truth["path"].removesuffix("/s0").removesuffix("/s1")
    level = int(truth["path"].endswith("/s1"))
    order = "".join(truth["axes"][::-1]).upper()
    sizes = dict(zip(order, document(truth)["dimensions"][::-1], strict=True))
    unit = truth["unit"][0] if isinstance(truth["unit"], list) else truth["unit"]
    scale = dict(zip(order, truth["scale"][::-1], strict=True))
    expected = {d: scale[d] * MICROMETERS[unit] if d in scale else None for d in "ZYX"}
    if container is BioImage:
        order = "TCZYX"
    names = truth.get("labels", {}).get("c")
    if names is None and container is BioImage:
        names = [f"Channel:{scene}:0"]  # BioIO's
    suite.run_image_file_checks(
        container,
        METADATA,
        set_scene=scene,
        expected_scenes=SCENES,
        expected_current_scene=scene,
        expected_shape=tuple(sizes.get(d, 1) for d in order),
        expected_dtype=np.dtype("u1"),
        expected_dims_order=order,
        expected_channel_names=names,
        expected_physical_pixel_sizes=tuple(expected.values()),  # type: ignore[arg-type]
        expected_metadata_type=dict,
        set_resolution_level=level,
        expected_current_resolution_level=level,
        expected_resolution_levels=tuple(range(max(level + 1, N_LEVELS[scene]))),
        reader_kwargs={},
    )
