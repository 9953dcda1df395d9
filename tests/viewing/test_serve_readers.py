"""Programs without n5zarr read served containers over HTTP, of each compression."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
import zarr

import n5zarr
from n5zarr import Server
from n5zarr.images.find import find_images
from tests.contract.bigstitcher import write_project

JAVA = Path(__file__).parents[1] / "data/java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text())
WANTED = ("compressions.n5", [23, 17, 5])
DATASETS = [each for each in MANIFEST["datasets"] if (each["root"], each["dims"]) == WANTED]
ZARRS_OWN = "zarr.core.codec_pipeline.BatchedCodecPipeline"
PORTABLE = {"bytes", "gzip", "zstd", "blosc"}  # of the specification of Zarr v3
ZARRITA = os.environ.get("N5ZARR_ZARRITA", "")  # a folder in which npm installed zarrita

SHAPE = (5, 17, 23)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with n5zarr.serve(JAVA / "compressions.n5") as running:
        yield running


def checksum(values: np.ndarray) -> str:
    """Return SHA-256 of the elements as big-endian bytes in C order, as in the manifest."""
    return hashlib.sha256(np.ascontiguousarray(values, ">u2").tobytes()).hexdigest()


def codecs_of(array: Any) -> set[str]:
    metadata = array.metadata.to_dict()
    if metadata["zarr_format"] == 3:
        return {codec["name"] for codec in metadata["codecs"]}
    compressor = metadata["compressor"]
    assert not metadata["filters"]
    return set() if compressor is None else {compressor["id"]}


def test_each_compression_of_java_is_here() -> None:
    kinds = {each["compression"]["type"] for each in DATASETS}
    assert kinds == {"raw", "gzip", "bzip2", "xz", "lz4", "blosc", "zstd"}


@pytest.mark.each_of(2)
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_zarr_reads_the_right_values(server: Server, zarr_format: Any) -> None:
    for dataset in DATASETS:
        with zarr.config.set({"codec_pipeline.path": ZARRS_OWN}):
            url = f"{server.url}zarr/{dataset['path']}"
            array: Any = zarr.open_array(url, mode="r", zarr_format=zarr_format)
            values = array[...]
        assert codecs_of(array) <= PORTABLE, dataset["path"]
        assert array.shape == SHAPE
        assert checksum(values) == dataset["sha256"], dataset["path"]


@pytest.mark.each_of(2)
@pytest.mark.parametrize("view", ["ome", "ome04"])
def test_zarr_reads_the_right_values_as_ome_zarr(server: Server, view: str) -> None:
    for dataset in DATASETS:
        with zarr.config.set({"codec_pipeline.path": ZARRS_OWN}):
            group: Any = zarr.open_group(f"{server.url}{view}/{dataset['path']}", mode="r")
            (multiscale,) = group.attrs.get("ome", group.attrs)["multiscales"]
            array = group[multiscale["datasets"][0]["path"]]
            values = array[...]
        assert codecs_of(array) <= PORTABLE, dataset["path"]
        assert checksum(values) == dataset["sha256"], dataset["path"]


# tensorstore has no lz4 for N5, and refuses members that Java writes for blosc and zlib
@pytest.mark.each_of(2)
@pytest.mark.parametrize(("view", "driver"), [("n5", "n5"), ("zarr", "zarr3"), ("zarr", "zarr")])
def test_tensorstore_reads_the_right_values(server: Server, view: str, driver: str) -> None:
    for dataset in DATASETS:
        if view == "n5" and dataset["compression"]["type"] in ("lz4", "blosc"):
            continue
        kvstore = f"{server.url}{view}/{dataset['path']}/"
        values = ts.open({"driver": driver, "kvstore": kvstore}).result().read().result()
        ordered = values.T if view == "n5" else values
        assert ordered.shape == SHAPE
        assert checksum(ordered) == dataset["sha256"], dataset["path"]


def test_zarrita_reads_the_right_values(server: Server) -> None:
    node = shutil.which("node")
    if node is None or not Path(ZARRITA, "node_modules/zarrita").is_dir():
        pytest.skip("no node, or no zarrita in the folder that N5ZARR_ZARRITA names")
    script = Path(__file__).with_name("read_with_zarrita.mjs").read_text()
    urls = [f"{server.url}zarr/{dataset['path']}" for dataset in DATASETS]
    asked = json.dumps([*product(("v3", "v2"), urls)])
    done = subprocess.run(  # a module given as text finds packages in the working directory
        [node, "--input-type=module", "--eval", script, asked],
        cwd=ZARRITA, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["shape"] for each in found] == [list(SHAPE)] * len(urls) * 2
    assert [each["sha256"] for each in found] == [each["sha256"] for each in DATASETS] * 2


@pytest.mark.parametrize("path", ["", "em"])
def test_a_part_of_a_container_is_served_by_paths_in_it(path: str) -> None:
    with n5zarr.serve(Path(n5zarr.sample_path(), path)) as server:
        expected: Any = n5zarr.open(n5zarr.sample_path(), path="em/s2")
        inner = "s2" if path else "em/s2"
        array: Any = zarr.open_array(f"{server.url}zarr/{inner}", mode="r", zarr_format=3)
        np.testing.assert_array_equal(array[...], expected[...])
        image: Any = zarr.open_group(f"{server.url}ome{'' if path else '/em'}", mode="r")
        np.testing.assert_array_equal(image["s2"][...], expected[...])
        remote: Any = n5zarr.open(f"{server.url}n5", path=inner)
        np.testing.assert_array_equal(remote[...], expected[...])


def test_a_container_on_a_server_is_served() -> None:
    expected: Any = n5zarr.open(n5zarr.sample_path(), path="em/s2")
    with n5zarr.serve(n5zarr.sample_path()) as first, n5zarr.serve(f"{first.url}n5") as second:
        array: Any = zarr.open_array(f"{second.url}zarr/em/s2", mode="r", zarr_format=3)
        np.testing.assert_array_equal(array[...], expected[...])


@pytest.mark.parametrize("view", ["ome", "ome04"])
def test_a_project_of_bigstitcher_is_served_with_its_images(tmp_path: Path, view: str) -> None:
    write_project(tmp_path, (0, 1))
    with n5zarr.serve(tmp_path / "dataset.xml") as server:
        group: Any = zarr.open_group(f"{server.url}{view}", mode="r")
        images = find_images(tmp_path / "dataset.xml")
        assert len(images) > 1
        for image in images:
            level: Any = group[image.levels[0].path]
            np.testing.assert_array_equal(level[...], image.levels[0].lazy())
