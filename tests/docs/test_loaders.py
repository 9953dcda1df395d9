"""The loader of the page on machine learning reads what numpy says, in workers of each kind.

``N5ZARR_TORCH=1 uv run --with torch pytest tests/docs/test_loaders.py`` also runs its script for
torch, which is too large to be installed for one test.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_all_start_methods, get_context
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import n5zarr
from tests.remote import servers
from tests.remote.conftest import chosen_options, upload

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "machine-learning.md"
LOADERS = PAGE.read_text().partition("\n## GPUs\n")[0]
SCRIPTS = {
    name: script
    for script, name in re.findall(r"(?ms)^```py(?:thon)?\n(# (\w+\.py)\n.*?)^```", LOADERS)
}
METHODS = [
    method for method in ("fork", "spawn", "forkserver") if method in get_all_start_methods()
]
HAS_TORCH = bool(os.environ.get("N5ZARR_TORCH")) or find_spec("torch") is not None
forks = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

# path: shape, voxel size and position of the first voxel in nm; the labels are of a part of raw
PLACED: dict[str, tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]] = {
    "raw": ((61, 83, 97), (12, 4, 4), (100, 50, 30)),
    "labels": ((19, 29, 31), (12, 8, 8), (112, 52, 32)),
    "context": ((31, 19, 23), (24, 16, 16), (106, 56, 36)),
}
PARTS = {
    "labels": ("labels", (6, 10, 14)),
    "raw": ("raw", (6, 20, 28)),
    "context": ("context", (8, 12, 10)),
    "channels": ("channels", (4, 6, 22)),
}


def values(name: str) -> Any:
    """Return the elements of a dataset: each differs from all others, and from 0."""
    if name == "channels":
        return np.stack([values("raw"), values("raw") + 10**6])
    shape = PLACED[name][0]
    return np.arange(1, 1 + np.prod(shape), dtype="u4").reshape(shape)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("loader") / "c.n5"
    for name in [*PLACED, "channels"]:
        _, scale, first = PLACED["raw" if name == "channels" else name]
        n = int(name == "channels")
        n5zarr.create_array(
            path / name,
            data=values(name),
            chunks=(1,) * n + (7, 11, 13),
            axes="czyx"[1 - n :],
            units=[None] * n + ["nm"] * 3,
            resolution=(1,) * n + scale,
            offset=(0,) * n + first,
        )
    return path


@pytest.fixture(scope="module")
def s3(local: Path) -> Iterator[dict[str, Any]]:
    few = local.parent / "few.n5"  # as each block is a request, and no part of one is read here
    n5zarr.convert(local, few, chunks=40)
    with servers.s3() as url:
        upload(url, "loader", few)
        yield {"container": f"s3://loader/{few.name}", "storage_options": chosen_options(url)}


@pytest.fixture
def loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the scripts of the page, from files that workers find, too."""
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(script)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield import_module("batches")
    for module in ("batches", "crops"):
        sys.modules.pop(module, None)


FAR = 80  # voxels: more than any position below lies outside


@cache
def padded_values(name: str) -> Any:
    """Return the elements of a dataset with zeros around them."""
    whole = values(name)
    return np.pad(whole, [(0, 0)] * (whole.ndim - 3) + [(FAR, FAR)] * 3)


def expected(name: str, centre: Any) -> Any:
    """Cut a part from its dataset, with zeros around it, by whole indices."""
    shape = np.array(PARTS[name][1])
    _, scale, first = map(np.array, PLACED["raw" if name == "channels" else name])
    start = (centre - first) / scale - (shape - 1) / 2
    np.testing.assert_allclose(start, np.round(start), atol=1e-9)  # the centre is exactly its own
    starts: Any = np.round(start).astype(int) + FAR
    box: Any = (slice(a, a + n) for a, n in zip(starts, shape, strict=True))
    return padded_values(name)[(..., *box)]


def test_parts_have_one_centre_and_are_padded(loader: Any, local: Path) -> None:
    data = loader.Crops(local, PARTS, n=150)
    assert len(data) == 150
    padded = set()
    for i in range(len(data)):
        centre, sample = data.centre(i), data[i]
        for name in PARTS:
            np.testing.assert_array_equal(sample[name], expected(name, centre))
            padded |= {name} if (sample[name] == 0).any() else set()
    assert "labels" not in padded
    assert "context" in padded
    with pytest.raises(IndexError):
        data[150]


def test_any_position_is_read(loader: Any, local: Path) -> None:
    data = loader.Crops(local, PARTS, n=0, pad=7)
    corner = np.array([106 - 12, 56 - 8, 36 - 8])  # of the context, which has others' corners
    for edge in (corner, corner + np.array([24 * 31, 16 * 5, 16 * 23])):
        sample = data.read(edge)
        for name in PARTS:
            cut = expected(name, edge)
            np.testing.assert_array_equal(sample[name], np.where(cut == 0, 7, cut))
        assert 0 < (sample["raw"] == 7).mean() < 1  # the edge of raw is near
    for far in (-1e6, 1e6):
        assert (data.read(np.array([corner[0], far, corner[2]]))["labels"] == 7).all()


def test_parts_of_other_units_are_refused(loader: Any, local: Path, tmp_path: Path) -> None:
    shutil.copytree(local, tmp_path / "mixed.n5")
    n5zarr.set_geometry(tmp_path / "mixed.n5", "labels", units=["um"] * 3)
    with pytest.raises(ValueError, match=r"different units: .*um"):
        loader.Crops(tmp_path / "mixed.n5", PARTS, n=1)


@forks
@pytest.mark.parametrize("method", [None, *METHODS])
@pytest.mark.parametrize("place", ["local", "s3"])
def test_workers_read_what_numpy_says(
    loader: Any, local: Path, request: pytest.FixtureRequest, place: str, method: str | None
) -> None:
    where = request.getfixturevalue("s3") if place == "s3" else {"container": local}
    data = loader.Crops(parts=PARTS, n=5, seed=3, **where)
    data[0]  # the parent has read before its workers start
    found = list(loader.batches(data, size=2, n_workers=2, method=method))
    assert [len(batch["raw"]) for batch in found] == [2, 2, 1]
    for name in PARTS:
        for i, sample in enumerate(np.concatenate([batch[name] for batch in found])):
            np.testing.assert_array_equal(sample, expected(name, data.centre(i)))


@forks
@pytest.mark.parametrize("method", METHODS)
def test_a_worker_reads_what_its_parent_has_opened(method: Any) -> None:
    array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")
    whole = array[...]
    with get_context(method).Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(getitem, (array, ...)), whole)


def test_a_pickled_array_is_small() -> None:
    array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")
    sent = pickle.dumps(array)
    assert len(sent) < 4096 < array.nbytes
    np.testing.assert_array_equal(pickle.loads(sent)[...], array[...])


if HAS_TORCH:

    def test_loaders_of_torch(tmp_path: Path) -> None:
        shutil.copytree(n5zarr.sample_path(), tmp_path / "sample.n5")
        for name, script in SCRIPTS.items():
            (tmp_path / name).write_text(script)
        (said,) = re.findall(
            r"^```py\n.*?^```\n\n```text\n(.*?)^```", LOADERS, re.MULTILINE | re.DOTALL
        )
        command = [sys.executable, "training.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == said

    @forks
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("place", ["local", "s3"])
    def test_workers_of_torch_read_what_numpy_says(
        loader: Any, local: Path, request: pytest.FixtureRequest, place: str, method: str
    ) -> None:
        where = request.getfixturevalue("s3") if place == "s3" else {"container": local}
        data = loader.Crops(parts=PARTS, n=5, seed=3, transform=as_int64, **where)
        torch: Any = import_module("torch.utils.data")
        found = list(torch.DataLoader(data, 2, num_workers=2, multiprocessing_context=method))
        for name in PARTS:
            for i, sample in enumerate(np.concatenate([batch[name] for batch in found])):
                np.testing.assert_array_equal(sample, expected(name, data.centre(i)))

    def as_int64(sample: Any) -> Any:
        return {name: array.astype("int64") for name, array in sample.items()}
