"""Projects that need zarr-python 2 do the same with n5zarr, after a patch of a few lines."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numcodecs.blosc import Blosc

import n5zarr
from tests.contract.stored import by_tensorstore, write_by_tensorstore
from tests.peers.environments import installs_projects, run
from tests.peers.stuck.programs import run_cellmap_data, run_navigate, run_rhapso
from tests.peers.stuck.projects import PROJECTS, Project, apply_patch

tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")

SHAPE, BLOCK = (7, 11, 13), (3, 4, 5)
VALUES = np.arange(7 * 11 * 13, dtype="u2").reshape(SHAPE)
SCALE, OFFSET = (40, 8, 4), (80, 16, 12)  # z, y, x
AXES: dict[str, dict[str, Any]] = {  # of four conventions
    "em": {"resolution": SCALE[::-1], "offset": OFFSET[::-1], "units": ["nm"] * 3},
    "cosem": {"transform": {"axes": ["z", "y", "x"], "scale": SCALE, "translate": OFFSET,
                            "units": ["nm"] * 3}},
    "viewer": {"pixelResolution": {"dimensions": SCALE[::-1], "unit": "nm"},
               "downsamplingFactors": [1, 1, 1], "offset": OFFSET[::-1]},
    "half": {"scale": SCALE[::-1], "offset": OFFSET[::-1], "units": ["um"] * 3},
}  # fmt: skip


def zarr_values(path: Path) -> np.ndarray:
    spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": str(path)}}
    return np.asarray(tensorstore.open(spec).result().read().result())


def document(path: Path) -> dict[str, Any]:
    return json.loads((path / "attributes.json").read_text())  # type: ignore[no-any-return]


def prepare(folder: Path, axes: dict[str, dict[str, Any]] = AXES) -> None:
    """Write datasets with axes of some conventions, by tensorstore."""
    for name, attributes in axes.items():
        path = folder / "data.n5" / name / "s0"
        write_by_tensorstore(path, VALUES, BLOCK)
        (path / "attributes.json").write_text(json.dumps(document(path) | attributes))
        (path.parent / "attributes.json").write_text("{}")  # zarr-python 2 opens no other groups
    (folder / "data.n5/attributes.json").write_text('{"n5": "2.0.0"}')


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # funlib reads a pyproject.toml


@dataclass
class Runs:
    """Two environments and two folders, before and after."""

    folder: Path
    pythons: dict[str, str]
    program: str

    def __call__(self, call: str, when: str, folder: str = "") -> Any:
        place = self.folder / (folder or when)
        result = self.folder / "found.pickle"
        result.unlink(missing_ok=True)
        run(self.pythons[when], "-W", "ignore", self.program, call, str(place), str(result))
        return pickle.loads(result.read_bytes()) if result.exists() else None


WHEN = ("before", "after")


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    (project,) = (p for p in PROJECTS if p.name == request.param)
    folder = tmp_path_factory.mktemp(project.name)
    for when in WHEN:
        (folder / when).mkdir()
        prepare(folder / when)
    pythons = {
        "before": project.python_before(folder / "old"),
        "after": project.python_after(folder / "new"),
    }
    return Runs(folder, pythons, project.program)


def of(name: str) -> pytest.MarkDecorator:
    marks = (pytest.mark.long, installs_projects)
    return pytest.mark.parametrize("runs", [pytest.param(name, marks=marks)], indirect=True)


@of("navigate")
def test_navigate_acquires_the_same(runs: Runs) -> None:
    """zarr-python 2 writes planes with headers of two dimensions, and cannot read them."""
    for when in WHEN:
        (runs.folder / when / "data.n5").rename(runs.folder / when / "other.n5")
        runs("write", when)
    for channel, frames in enumerate(run_navigate.FRAMES):
        for level, step in enumerate((1, 2)):
            path = f"data.n5/setup{channel}/timepoint0/s{level}"
            old, new = (document(runs.folder / when / path) for when in WHEN)
            assert old.pop("compression")["type"] == new.pop("compression")["type"] == "blosc"
            assert old == new
            expected = frames[::step, ::step, ::step]
            np.testing.assert_array_equal(by_tensorstore(runs.folder / "after" / path), expected)
            for z, plane in enumerate(expected):
                block = (runs.folder / "before" / path / f"0/0/{z}").read_bytes()
                assert block[:4] == bytes.fromhex("00000002")  # dimensions: others refuse it
                stored = np.frombuffer(Blosc().decode(block[12:]), ">u2")
                np.testing.assert_array_equal(stored.reshape(plane.shape), plane)
            for when in WHEN:
                image = runs.folder / when / f"data.zarr/p0_{level}"
                last = frames[step - 1 :: step, ::step, ::step]  # of the planes of a level
                np.testing.assert_array_equal(zarr_values(image)[0, channel], last)
    for name in ("data.n5/setup0/attributes.json", "data.zarr/.zattrs"):
        old, new = (json.loads((runs.folder / when / name).read_text()) for when in WHEN)
        old.pop("n5", None)  # zarr-python 2 writes the version into every group
        assert old == new
    old_xml, new_xml = ((runs.folder / when / "data.xml").read_text() for when in WHEN)
    assert old_xml == new_xml


@of("cellmap-flow")
def test_cellmap_flow_finds_and_reads_the_same(runs: Runs) -> None:
    old, new = (runs("read", when) for when in WHEN)
    assert old.keys() == new.keys() == AXES.keys()
    for name, expected in old.items():
        found = new[name]
        assert found["described"] == expected["described"]
        assert found["geometry"] == expected["geometry"]
        np.testing.assert_array_equal(found["read"], expected["read"])
    for name in ("em", "cosem", "viewer"):
        extent = tuple(n * s for n, s in zip(SHAPE, SCALE, strict=True))
        assert new[name]["geometry"] == (SCALE, OFFSET, extent)


@of("gunpowder")
def test_gunpowder_reads_and_writes_the_same(runs: Runs) -> None:
    for when in WHEN:
        found = runs("read", when)
        assert (found["scale"], found["offset"]) == (SCALE, OFFSET)
        np.testing.assert_array_equal(found["read"], VALUES)
        np.testing.assert_array_equal(by_tensorstore(runs.folder / when / "out.n5/out/raw"), VALUES)
    old, new = (document(runs.folder / when / "out.n5/out/raw") for when in WHEN)
    assert old == new


@of("rhapso")
def test_rhapso_saves_points_that_all_read(runs: Runs) -> None:
    """Rhapso 0.3.2 exchanges the dimensions of what it writes, and then reads nothing from it."""
    for when in WHEN:
        runs("write", when)
    for setup in (0, 1):
        points = run_rhapso.POINTS[: 5 - setup] + setup
        group = f"interestpoints.n5/tpId_0_viewSetupId_{setup}/beads"
        old, new = (document(runs.folder / w / f"{group}/interestpoints/loc") for w in WHEN)
        assert old["dimensions"] == new["dimensions"][::-1] == [5 - setup, 3]
        for name, expected in (
            ("interestpoints/loc", points),
            ("interestpoints/id", np.arange(5 - setup)[:, None]),
            ("interestpoints/intensities", np.full(5 - setup, 0.25)),
            ("correspondences/data", [[[1, 2, 0], [3, 0, 0]], [[2, 1, 0], [0, 3, 0]]][setup]),
        ):
            found = by_tensorstore(runs.folder / "after" / group / name)
            np.testing.assert_array_equal(found, expected)
        assert len(runs("read", "before")[str(setup)]) == 0
        for when in WHEN:  # zarr-python 2 reads what n5zarr wrote
            np.testing.assert_array_equal(runs("read", when, "after")[str(setup)], points)
    group = "interestpoints.n5/tpId_0_viewSetupId_0/beads/correspondences"
    theirs, ours = (document(runs.folder / when / group) for when in WHEN)
    assert ours["idMap"] == theirs["idMap"] == {"0,1,beads": 0}


@pytest.mark.skipif("N5ZARR_TORCH" not in os.environ, reason="torch takes 5 GB; N5ZARR_TORCH=1")
@of("cellmap-data")
def test_cellmap_data_writes_and_reads_the_same(runs: Runs) -> None:
    for when in WHEN:
        runs("write", when)
        stored = zarr_values(runs.folder / when / "data.zarr/mito/s0")
        np.testing.assert_array_equal(stored, run_cellmap_data.VALUES)
    old, new = (runs("read", when) for when in WHEN)
    assert old["box"] == new["box"]
    np.testing.assert_array_equal(old["read"], new["read"])
    shutil.rmtree(runs.folder / "after/data.n5")
    prepare(runs.folder / "after", {"mito": {}})
    described = (runs.folder / "after/data.zarr/mito/.zattrs").read_text()
    (runs.folder / "after/data.n5/mito/attributes.json").write_text(described)
    np.testing.assert_array_equal(runs("read_n5", "after")["read"], old["read"])


# ---------------------------------------------------------------------- always


PAGE = Path(__file__).parents[3] / "docs/migration/projects.md"


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_the_page_links_the_patch(project: Project) -> None:
    patch = Path(__file__).parent / f"patches/{project.name}.patch"
    links = re.findall(r"\]\((\S+\.patch)\)", PAGE.read_text())
    assert patch in [(PAGE.parent / link).resolve() for link in links]


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_the_names_of_n5zarr_in_a_patch_exist(project: Project) -> None:
    patch = (Path(__file__).parent / f"patches/{project.name}.patch").read_text()
    names = set(re.findall(r"\bn5zarr\.(\w+)", patch))
    assert "+import n5zarr\n" in patch
    assert {name for name in names if not hasattr(n5zarr, name)} == set()


def test_a_patch_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("a = 2\n")
    patch = tmp_path / "x.patch"
    patch.write_text("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a = 1\n+a = 3\n")
    with pytest.raises(AssertionError, match="patch does not apply"):
        apply_patch(patch, tmp_path)
    (tmp_path / "x.py").write_text("a = 1\r\n")
    apply_patch(patch, tmp_path)
    assert (tmp_path / "x.py").read_text().strip() == "a = 3"
