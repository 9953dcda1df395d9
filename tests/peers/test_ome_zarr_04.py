"""zarr-python 2 and ome-zarr-py of its time open OME-Zarr 0.4, with the elements of the source.

``ome_zarr_04.py`` reads, in an environment of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import n5zarr
from n5zarr import Server
from tests.contract import bigstitcher
from tests.contract.stored import by_tensorstore
from tests.contract.viewers import validate_ome
from tests.peers import ome_zarr_04
from tests.peers.environments import environment, run

JAVA = Path(__file__).parents[1] / "data" / "java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text())["datasets"]
TRUTH = [json.loads(line) for line in (JAVA / "metadata.truth.jsonl").read_text().splitlines()]
ROOTS = ("compressions.n5", "dtypes.n5", "metadata.n5")
WANTED = {  # checksum by root and path; arrays of one axis are no images
    (each["root"], each["path"]): each["sha256"]
    for each in MANIFEST
    if each["root"] in ROOTS and 2 <= len(each["dims"]) <= 5
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:.*the registration turns or shears:n5zarr.N5Warning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ome04")


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    running = {root: n5zarr.serve(JAVA / root) for root in ROOTS}
    yield running
    for server in running.values():
        server.close()


@pytest.fixture(scope="module")
def project(folder: Path) -> Path:
    return bigstitcher.write_project(folder)


def images_in(root: Path) -> list[str]:
    documents = sorted(root.rglob(".zattrs"))
    found = [each.parent for each in documents if "multiscales" in json.loads(each.read_text())]
    return ["" if each == root else each.relative_to(root).as_posix() for each in found]


@pytest.fixture(scope="module")
def found(folder: Path, servers: dict[str, Server], project: Path) -> dict[str, Any]:
    """Convert and serve; return what the environment read, by folder or server and image."""
    python = environment(
        folder / "env", "zarr==2.18.7", "numcodecs<0.16", "ome-zarr==0.10.2", "aiohttp"
    )
    places = []
    for root in ROOTS:
        out = folder / root.replace(".n5", ".zarr")
        n5zarr.convert(JAVA / root, out, ome=True, ome_version="0.4")
        images = ",".join(images_in(out))
        places += [f"{out}={images}", f"{servers[root].url}ome04={images}"]
    for name, source in {"sample": Path(n5zarr.sample_path()), "project": project}.items():
        n5zarr.convert(source, folder / f"{name}.zarr", to="zarr2", ome=True)
        places.append(f"{folder / f'{name}.zarr'}={','.join(images_in(folder / f'{name}.zarr'))}")
    run(python, "-W", "ignore", ome_zarr_04.__file__, str(folder / "found.json"), *places)
    read: dict[str, Any] = json.loads((folder / "found.json").read_text())
    assert read["zarr"] == "2.18.7"
    by_place: dict[str, Any] = read["images"]
    return by_place


def below(found: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the images of one place by path."""
    return {
        key.removeprefix(place).strip("/"): image
        for key, image in found.items()
        if key == place or key.startswith(f"{place}/")
    }


@pytest.mark.parametrize("is_served", [False, True], ids=["converted", "served"])
@pytest.mark.parametrize("root", ROOTS)
def test_both_read_the_elements_of_java(
    found: dict[str, Any], folder: Path, servers: dict[str, Server], root: str, is_served: bool
) -> None:
    place = f"{servers[root].url}ome04" if is_served else str(folder / root.replace("n5", "zarr"))
    read: dict[tuple[str, str], str] = {}
    for path, image in below(found, place).items():
        assert (image["version"], image["separators"]) == ("0.4", ["/"]), path
        assert image["by zarr"] == image["by ome-zarr"]
        assert image["names"] == [[axis["name"] for axis in image["axes"]]] * len(image["names"])
        # a dataset that is no level becomes a group
        one = {} if (root, path) not in WANTED else {(root, path): image["by zarr"][0]}
        read |= one or {(root, f"{path}/s{i}"): s for i, s in enumerate(image["by zarr"])}
    wanted = {key: checksum for key, checksum in WANTED.items() if key[0] == root}
    if root == "metadata.n5":  # ImageJ's axes are put into another order
        wanted = {key: checksum for key, checksum in wanted.items() if "imagej" not in key[1]}
    assert len(wanted) >= 28
    assert {key: read.get(key) for key in wanted} == wanted


@pytest.mark.parametrize(
    "truth", [each for each in TRUTH if "imagej" not in each["path"]], ids=lambda t: t["path"]
)
def test_levels_are_where_the_conventions_place_them(
    found: dict[str, Any], folder: Path, truth: dict[str, Any]
) -> None:
    group, _, name = truth["path"].rpartition("/")
    images = below(found, str(folder / "metadata.zarr"))
    image = images.get(truth["path"]) or images[group]
    steps = image["steps"][0 if truth["path"] in images else int(name[1:])]
    by = {step["type"]: step[step["type"]] for step in steps}
    space = [i for i, axis in enumerate(image["axes"]) if axis["type"] == "space"]
    n = len(space)
    scale = [by["scale"][i] for i in space]
    offset = [by.get("translation", [0] * len(image["axes"]))[i] for i in space]
    assert scale == pytest.approx(truth["scale"][:n][::-1])
    assert offset == pytest.approx(truth["translation"][:n][::-1])


def test_the_sample_has_its_colours_and_levels(found: dict[str, Any], folder: Path) -> None:
    images = below(found, str(folder / "sample.zarr"))
    assert sorted(images) == ["em", "labels"]
    assert (len(images["em"]["by zarr"]), images["em"]["limits"]) == (3, [[0, 255]])
    levels = [by_tensorstore(Path(n5zarr.sample_path(), "em", f"s{i}")) for i in range(3)]
    assert images["em"]["by ome-zarr"] == [ome_zarr_04.checksum(level) for level in levels]


def test_time_points_of_a_project_are_an_axis(found: dict[str, Any], folder: Path) -> None:
    images = below(found, str(folder / "project.zarr"))
    names = {setup.name.replace(" ", "_"): number for number, setup in bigstitcher.SETUPS.items()}
    assert sorted(images) == sorted(names)
    for name, number in names.items():
        assert images[name]["names"][0] == ["t", "z", "y", "x"]
        assert images[name]["by zarr"] == images[name]["by ome-zarr"]
        for level, checksum in enumerate(images[name]["by zarr"]):
            there = [(number, t) != bigstitcher.MISSING for t in bigstitcher.TIMEPOINTS]
            each = [bigstitcher.elements(number, t, level) for t in bigstitcher.TIMEPOINTS]
            series = np.stack([e * is_there for e, is_there in zip(each, there, strict=True)])
            whole = series.astype(each[0].dtype)
            expected = hashlib.sha256(whole.astype(whole.dtype.newbyteorder(">")).tobytes())
            assert checksum == expected.hexdigest()


def test_yaozarrs_accepts_all_of_them(found: dict[str, Any], folder: Path) -> None:
    places = [Path(place) for place in found if not place.startswith("http")]
    assert len(places) >= 160
    for place in places:
        validate_ome(place)
    for name in (*ROOTS, "sample", "project"):
        validate_ome(folder / f"{name.removesuffix('.n5')}.zarr")
