"""``n5zarr.Crops`` reads what numpy says, in workers of each kind, and the page's loaders run.

``N5ZARR_TORCH=1 uv run --with torch pytest tests/unit/tools/test_crops.py`` also runs torch, which
is too large to be installed for one test.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from multiprocessing import get_all_start_methods, get_context
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from tests.remote import servers
from tests.remote.conftest import chosen_options, upload

PAGE = Path(__file__).parents[3] / "docs" / "machine-learning.md"
LOADERS = PAGE.read_text().partition("\n## GPUs\n")[0]
METHODS = sorted({"fork", "spawn", "forkserver"} & {*get_all_start_methods()})
HAS_TORCH = bool(os.environ.get("N5ZARR_TORCH")) or find_spec("torch") is not None
forks = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

# path: shape, voxel size and position of the first voxel in nm; the labels are of a part of raw
PLACED: dict[str, tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]] = {
    "raw": ((61, 83, 97), (12, 4, 4), (100, 50, 30)),
    "labels": ((19, 29, 31), (12, 8, 8), (112, 52, 32)),
    "context": ((31, 19, 23), (24, 16, 16), (106, 56, 36)),
    "mixed": ((19, 29, 31), (12, 8, 8), (112, 52, 32)),
}
PARTS = {
    "labels": ("labels", (6, 10, 14)), "raw": ("raw", (6, 20, 28)),
    "context": ("context", (8, 12, 10)), "channels": ("channels", (4, 6, 22)),
}  # fmt: skip
REFUSED = {"mixed": ("mixed", (6, 10, 14)), "large": ("labels", (20, 10, 14))}


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
            path / name, data=values(name), chunks=(1,) * n + (7, 11, 13), axes="czyx"[1 - n :],
            units=[None] * n + ["um" if name == "mixed" else "nm"] * 3,
            resolution=(1,) * n + scale, offset=(0,) * n + first,
        )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def s3(local: Path) -> Iterator[dict[str, Any]]:
    few = local.parent / "few.n5"  # as each block is a request, and no part of one is read here
    n5zarr.convert(local, few, chunks=40)
    with servers.s3() as url:
        upload(url, "loader", few)
        yield {"where": f"s3://loader/{few.name}", "storage_options": chosen_options(url)}


def crops(where: Path | str, n: Any, names: Any = tuple(PARTS), **options: Any) -> n5zarr.Crops:
    chosen = {name: (PARTS | REFUSED)[name] for name in names}
    parts = {name: (f"{where}/{path}", shape) for name, (path, shape) in chosen.items()}
    return n5zarr.Crops(parts, n, **({"pad": dict.fromkeys([*names][1:], 0)} | options))


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


def test_parts_have_one_centre_and_are_padded(local: Path) -> None:
    data = crops(local, 150)
    assert len(data) == 150
    padded = set()
    batches = data.read(data.centres)
    for i, centre in enumerate(data.centres):
        sample = data[i]
        for name in PARTS:
            np.testing.assert_array_equal(sample[name], expected(name, centre))
            np.testing.assert_array_equal(batches[name][i], sample[name])
            padded |= {name} if (sample[name] == 0).any() else set()
    assert "labels" not in padded
    assert "context" in padded
    np.testing.assert_array_equal(crops(local, 7).centres, data.centres[:7])
    assert (crops(local, 7, seed=1).centres != data.centres[:7]).any()


def test_without_padding_all_parts_are_whole_up_to_the_edges(local: Path) -> None:
    names = ("raw", "labels", "channels")
    data = crops(local, 3000, names, pad={})
    step = np.array([12, 8, 8])  # of the labels, which limit the positions
    least, most = np.array([112 - 6, 52 - 4, 32 - 4]), np.array([19, 29, 31]) * step
    half = np.array([6, 10, 14]) * step / 2
    np.testing.assert_array_equal(data.centres.min(axis=0), least + half)
    np.testing.assert_array_equal(data.centres.max(axis=0), least + most - half)
    for i in (0, -1):
        for name in names:
            np.testing.assert_array_equal(data[i][name], expected(name, data.centres[i]))
    with pytest.raises(IndexError):
        data[3000]


def test_any_position_is_read(local: Path) -> None:
    corner = np.array([106 - 12, 56 - 8, 36 - 8])  # of the context, which has others' corners
    edges = [corner, corner + np.array([24 * 31, 16 * 5, 16 * 23])]
    data = crops(local, edges, pad=dict.fromkeys(PARTS, 7))
    for edge, sample in zip(edges, (data[0], data[1]), strict=True):
        for name in PARTS:
            cut = expected(name, edge)
            np.testing.assert_array_equal(sample[name], np.where(cut == 0, 7, cut))
        assert 0 < (sample["raw"] == 7).mean() < 1  # the edge of raw is near
    far = data.read([[corner[0], y, corner[2]] for y in (-1e30, 1e30)])
    assert (far["labels"] == 7).all()
    assert far["channels"].shape == (2, 2, 4, 6, 22)


def test_a_batch_decodes_each_block_once(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def read_boxes(array: Any, starts: Any, shape: Any) -> Any:
        asked.append(len(starts))
        return n5zarr.read_boxes(array, starts, shape)

    monkeypatch.setattr("n5zarr.tools.crops.read_boxes", read_boxes)
    data = crops(local, 9, transform=lambda sample: sample["raw"].sum(dtype="u8"))
    found = fetch(data, [8, 0, 3])
    assert asked == [3] * len(PARTS)
    assert found == [expected("raw", data.centres[i]).sum(dtype="u8") for i in (8, 0, 3)]


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        ((), {}, "expected some parts"),
        (PARTS, {"pad": {"ra": 0}}, r"pad.*got .*\['ra'\]"),
        (PARTS, {"pad": {"raw": -1}}, "pad: expected a value of uint32 for 'raw', got -1"),
        (PARTS, {"pad": {"raw": 0.5}}, "pad: expected a value"),
        (PARTS, {"pad": dict.fromkeys(PARTS, 0)}, "expected a part without it"),
        (PARTS, {"axes": "czx"}, r"labels: expected the axes \['c', .*set_geometry"),
        (PARTS, {"n": -1}, "a number from 0 on, or positions, got -1"),
        (PARTS, {"axes": "yx"}, "expected 2 sizes above 0"),
        (PARTS, {"pad": 7}, "expected mappings by name"),
        (("raw", "large"), {"pad": {}}, "a position that has raw, large inside"),
        (PARTS, {"n": [[200, 150, 150]] * 2 + [[0, 0, 0]]},
         r"labels: .* from .* around \[0.0, 0.0, 0.0\]; pad="),
        (PARTS, {"n": [[0, 0]]}, r"centres: expected finite numbers of the shape \(samples, 3\)"),
        (PARTS, {"n": [[0, 0, np.nan]]}, "finite"),
        (("raw", "mixed"), {}, "expected one unit .*um"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(
    local: Path, names: Any, options: Any, message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message) as caught:
        crops(local, **{"n": 1, "names": names} | options)
    assert caught.value.kind == "option"


@pytest.mark.parametrize(
    "parts", [[("a", (1, 2, 3))], {"a": "b"}, {"a": ("b", 16)}, {"a": 7}], ids=repr
)
def test_parts_are_datasets_with_shapes(parts: Any) -> None:
    with pytest.raises(N5UnrepresentableError, match=r"expected (mappings|a dataset and the sh)"):
        n5zarr.Crops(parts, 1)


def fetch(data: Any, numbers: list[int]) -> list[Any]:
    """Return samples as a worker of torch 2: ``_MapDatasetFetcher`` of ``utils/data/_utils``."""
    if hasattr(data, "__getitems__") and data.__getitems__:
        return list(data.__getitems__(numbers))
    return [data[i] for i in numbers]


@forks
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("place", ["local", "s3"])
def test_workers_read_what_numpy_says(
    local: Path, request: pytest.FixtureRequest, place: str, method: Any
) -> None:
    options = request.getfixturevalue("s3") if place == "s3" else {"where": local}
    data = crops(n=5, seed=3, **options)
    data[0]  # the parent has read before its workers start
    with get_context(method).Pool(2) as pool:
        found = pool.starmap(fetch, [(data, [0, 1]), (data, [2, 3]), (data, [4])])
    for centre, sample in zip(data.centres, chain(*found), strict=True):
        for name in PARTS:
            np.testing.assert_array_equal(sample[name], expected(name, centre))


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
        pattern = r"(?ms)^```py\n(# training\.py\n.*?)^```\n\n```text\n(.*?)^```"
        ((script, said),) = re.findall(pattern, LOADERS)
        (tmp_path / "training.py").write_text(script)
        command = [sys.executable, "training.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == said

    @forks
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("place", ["local", "s3"])
    def test_workers_of_torch_read_what_numpy_says(
        local: Path, request: pytest.FixtureRequest, place: str, method: str
    ) -> None:
        options = request.getfixturevalue("s3") if place == "s3" else {"where": local}
        data = crops(n=5, seed=3, transform=as_int64, **options)
        torch: Any = import_module("torch.utils.data")
        found = list(torch.DataLoader(data, 2, num_workers=2, multiprocessing_context=method))
        for name in PARTS:
            each = np.concatenate([batch[name] for batch in found])
            for centre, sample in zip(data.centres, each, strict=True):
                np.testing.assert_array_equal(sample, expected(name, centre))

    def as_int64(sample: Any) -> Any:
        return {name: array.astype("int64") for name, array in sample.items()}
