"""The reader returns layers for napari, and napari shows them.

napari is in an environment of its own: it brings plugins of pytest, which every run would load.
"""

from __future__ import annotations

import json
import pickle
import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import tensorstore as ts
import zarr

import n5zarr
from n5zarr.errors import N5BlockError, N5UnrepresentableError
from n5zarr.format.lenient_json import JSON
from n5zarr.images.find import find_images
from n5zarr.viewing.napari import get_reader, napari_layers
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS, elements, world, write_project
from tests.peers.environments import environment, run
from tests.remote import servers
from tests.viewing.volumes import write_unit

REPOSITORY = Path(__file__).parents[2]
JAVA = REPOSITORY / "tests/data/java"
TRUTH = [json.loads(line) for line in (JAVA / "metadata.truth.jsonl").read_text().splitlines()]
UNITS = {"um": "micrometer", "nm": "nanometer", None: "pixel"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a pyramid without limits, one with limits, channels, many channels, and labels."""
    root = tmp_path_factory.mktemp("container") / "some.n5"
    rng = np.random.default_rng(1)
    shapes = {
        "plain/s0": ("zyx", (13, 29, 23)), "plain/s1": ("zyx", (7, 15, 12)),
        "stained/s0": ("czyx", (3, 5, 11, 7)), "spectrum": ("cyx", (17, 3, 5)),
        "labels/cells": ("zyx", (13, 29, 23)),
    }  # fmt: skip
    for path, (axes, shape) in shapes.items():
        chunks = [min(5, n) for n in shape]
        array: Any = n5zarr.create_array(
            root, path=path, shape=shape, dtype="u4", chunks=chunks, axes=[*axes]
        )
        array[...] = rng.integers(0, 60000, shape)
    shutil.copytree(root / "plain", root / "limited")
    n5zarr.set_attribute(root, "limited", "contrastLimits", [100, 5000])
    window: dict[str, JSON] = {"min": 0, "max": 9, "start": 1, "end": 8}
    stains = zip("abc", ["FF0000", "00FF00", "0000FF"], strict=True)
    shown: list[JSON] = [{"label": n, "color": color, "window": window} for n, color in stains]
    n5zarr.set_attribute(root, "stained", "omero", {"channels": shown})
    return root


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, project: Path, container: Path) -> Any:
    """Return the layers that napari made."""
    folder = tmp_path_factory.mktemp("napari")
    python = environment(folder / "env", f"{REPOSITORY}[napari]", "napari>=0.6")
    locations = [JAVA / "metadata.n5", project, container, JAVA / "labels.n5"]
    script, result = Path(__file__).with_name("in_napari.py"), folder / "found.pickle"
    run(python, "-W", "ignore", str(script), str(result), *map(str, locations))
    return pickle.loads(result.read_bytes())


def of(found: dict[str, Any], location: Path) -> dict[str, Any]:
    layers: dict[str, Any] = found["layers"][str(location)]
    return layers


# --------------------------------------------------------------------------- what napari makes


@pytest.mark.long
def test_npe2_finds_the_manifest_valid(found: dict[str, Any]) -> None:
    assert not found["exit_code"]


@pytest.mark.long
def test_napari_asks_the_reader_by_the_name(found: dict[str, Any]) -> None:
    refused = {name for name, is_asked in found["asked"].items() if not is_asked}
    assert refused == {"https://server/data.zarr", "/somewhere/image.tif"}
    assert len(found["asked"]) == 10


@pytest.mark.long
def test_the_sample_opens(found: dict[str, Any]) -> None:
    layers = [(layer["type"], layer["name"], len(layer["levels"])) for layer in found["sample"]]
    assert layers == [("Image", "sample.n5: em", 3), ("Labels", "sample.n5: labels", 1)]


@pytest.mark.long
@pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["path"])
def test_layers_are_where_java_says(truth: dict[str, Any], found: dict[str, Any]) -> None:
    """The first and the last element of the finest level lie where Java puts them."""
    layers = of(found, JAVA / "metadata.n5")
    group, _, level = truth["path"].rpartition("/")
    name = truth["path"] if level not in ("s0", "s1") else group
    of_channel = " GFP" if "c" in truth["axes"] else ""
    layer = layers[f"metadata.n5: {name}{of_channel}"]
    spatial = [i for i, axis in enumerate(truth["axes"]) if axis != "c"][::-1]
    assert [*layer["axes"]] == [truth["axes"][i] for i in spatial]
    unit = truth["unit"][0] if isinstance(truth["unit"], list) else truth["unit"]
    assert layer["units"] == [UNITS.get(unit, unit)] * len(spatial)
    number = int(level == "s1")
    assert len(layer["levels"]) > number
    if not number:
        scale = np.array([truth["scale"][i] for i in spatial])
        first = np.array([truth["translation"][i] for i in spatial])
        for index, position in layer["world"].items():
            np.testing.assert_allclose(position, first + scale * index)


def by_tensorstore(path: Path) -> np.ndarray[Any, Any] | None:
    """Return the elements in C order; None if tensorstore refuses the attributes."""
    try:
        array = ts.open({"driver": "n5", "kvstore": f"file://{path}/"}, read=True).result()
    except ValueError:
        return None
    values: np.ndarray[Any, Any] = array.read().result().T
    return values


@pytest.mark.long
def test_values_are_those_of_tensorstore(found: dict[str, Any], container: Path) -> None:
    compared = set()
    for root in (JAVA / "metadata.n5", container):
        for name, layer in of(found, root).items():
            image = root / layer["metadata"]["path"]
            assert layer["metadata"]["container"] == str(root)
            for number, level in enumerate(layer["levels"]):
                path = image / f"s{number}" if (image / "s0").exists() else image
                if (expected := by_tensorstore(path)) is None:
                    continue
                if expected.ndim > level.ndim:
                    expected = expected[["a", "b", "c", "DAPI", "GFP"].index(name.split()[-1]) % 3]
                assert level.dtype == expected.dtype
                np.testing.assert_array_equal(level, expected)
                compared.add((name, number))
    assert len(compared) > 25


@pytest.mark.long
def test_channels_are_layers(found: dict[str, Any], container: Path) -> None:
    layers = of(found, container)
    for name, color in zip("abc", ([1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]), strict=True):
        layer = layers[f"some.n5: stained {name}"]
        assert [*layer["limits"]] == [1, 8]
        np.testing.assert_array_equal(layer["color"], color)
        assert layer["axes"] == ("z", "y", "x")
    spectrum = layers["some.n5: spectrum"]  # too many channels for layers
    assert (spectrum["axes"], spectrum["levels"][0].shape) == (("c", "y", "x"), (17, 3, 5))


@pytest.mark.long
def test_labels_are_layers_of_integers(found: dict[str, Any], container: Path) -> None:
    cells = of(found, container)["some.n5: labels/cells"]
    assert (cells["type"], cells["levels"][0].dtype) == ("Labels", np.dtype("u4"))
    of_paintera = of(found, JAVA / "labels.n5")
    assert {layer["type"] for layer in of_paintera.values()} == {"Labels"}


@pytest.mark.long
def test_views_of_bigstitcher_are_where_the_project_puts_them(
    found: dict[str, Any], project: Path
) -> None:
    layers = of(found, project)
    assert len(layers) == len(SETUPS)
    for number, setup in SETUPS.items():
        layer = layers[f"dataset.xml: {setup.name.replace(' ', '_')}"]
        assert layer["axes"] == ("t", "z", "y", "x")
        assert layer["units"] == ["pixel", *["micrometer"] * 3]
        is_turned = bool(setup.angle)
        for shown in combinations(range(4), 2):  # napari inverts it for planes along axes
            assert np.linalg.matrix_rank(layer["affine"][np.ix_(shown, shown)]) == 2
        for (t, *index), position in layer["world"].items():
            z, y, x = index[::-1] if is_turned else index
            np.testing.assert_allclose(position, [t, *world(setup, x, y, z)[::-1]], atol=1e-12)
        for level, values in enumerate(layer["levels"]):
            for index, timepoint in enumerate(TIMEPOINTS):
                expected = elements(number, timepoint, level)
                expected = expected.T if is_turned else expected
                is_missing = (number, timepoint) == MISSING
                np.testing.assert_array_equal(values[index], 0 if is_missing else expected)


# ------------------------------------------------------------------------ what the reader gives


def test_other_folders_and_files_are_left_to_others(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/a.tif").write_bytes(b"II*\0")
    (tmp_path / "a.xml").write_text("<OME></OME>")
    zarr.create_group(tmp_path / "z.n5")
    for other in ("photos", "a.xml", "z.n5", "photos/a.tif", "missing.n5"):
        assert get_reader(str(tmp_path / other)) is None, other
    assert get_reader([n5zarr.sample_path()] * 2) is None
    assert get_reader("https://host.n5.org/data.zarr") is None
    for url in ("s3://bucket/data.n5/em", "https://host/data.n5?token=1", "s3://bucket/data|n5:"):
        assert get_reader(url) is not None, url
    xml = write_project(tmp_path, (0,))
    for ours in (xml, tmp_path / "dataset.n5", f"{n5zarr.sample_path()}/em/s0/"):
        assert get_reader(str(ours)) is not None, ours


def test_a_container_without_images_says_so() -> None:
    read = get_reader(str(JAVA / "strings.n5"))
    assert read is not None
    with pytest.raises(N5UnrepresentableError, match=r"strings\.n5: .*expected an image"):
        read(str(JAVA / "strings.n5"))


def test_opening_reads_documents_and_some_blocks_of_the_coarsest_level(container: Path) -> None:
    with servers.static(container.parent) as url, servers.Proxy(url).running() as proxy:

        def blocks_of(inner: str) -> list[str]:
            proxy.requests.clear()
            location = f"{proxy.url}/some.n5/{inner}"
            read = get_reader(location)
            assert read is not None
            ((data, options, _),) = read(location)
            assert isinstance((data if options.get("multiscale") else [data])[0], da.Array)
            paths = {path for method, path in proxy.requests if method == "GET"}
            return sorted(p for p in paths if p.rpartition("/")[2].isdigit())

        assert blocks_of("limited") == []
        assert blocks_of("labels/cells") == []
        read = blocks_of("plain")
        assert read
        assert all(path.startswith("/some.n5/plain/s1/") for path in read)


def test_a_dataset_opens_from_a_server_that_lists_nothing(container: Path) -> None:
    with servers.static(container.parent, lists=False) as url:
        ((data, options, _),) = napari_layers(f"{url}/some.n5/plain/s1")
        np.testing.assert_array_equal(data, by_tensorstore(container / "plain/s1"))
    assert options["name"] == "some.n5: plain/s1"


def test_limits_are_those_of_the_container_or_of_the_data(container: Path) -> None:
    ((_, limited, _),) = napari_layers(container / "limited")
    assert limited["contrast_limits"] == (100, 5000)
    coarsest = by_tensorstore(container / "plain/s1")
    assert coarsest is not None
    ((_, plain, _),) = napari_layers(container / "plain")
    low, high = plain["contrast_limits"]
    assert coarsest.min() <= low < 500
    assert 59500 < high <= coarsest.max()


def test_damaged_and_empty_images_do_not_hide_the_others() -> None:
    damaged = {options["name"]: data for data, options, _ in napari_layers(JAVA / "varlen.n5")}
    with pytest.raises(N5BlockError, match=r"u16: block \d/\d: .*varlength"):
        damaged["varlen.n5: u16"].compute()
    codecs = napari_layers(JAVA.with_name("java4") / "codecs.n5")
    names = {options["name"] for _, options, _ in codecs}
    assert names > {"codecs.n5: plain", "codecs.n5: gzip-zstd"}  # its compression is not gzip
    shapes = [data.shape for data, _, _ in napari_layers(JAVA / "sparse.n5")]
    assert {0 in shape for shape in shapes} == {False}  # those without elements are left out


@pytest.mark.parametrize(
    "index",
    [
        np.s_[2], np.s_[1, ..., 0], np.s_[::-2, 3:9, ::3], np.s_[:, None, -1], np.s_[0:0],
        np.s_[[0, 2], 1], np.s_[:, ::-1, ..., 4],
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*the registration turns or shears:n5zarr.N5Warning")
def test_selections_are_as_in_numpy(index: Any, container: Path, project: Path) -> None:
    for location, path in ((container, "plain"), (project, "left_green_turned")):
        image = next(i for i in find_images(location) if i.path == path)
        lazy = image.levels[0].lazy()
        np.testing.assert_array_equal(lazy[index], np.asarray(lazy)[index])


def test_dask_is_given_few_chunks_that_are_whole_blocks(tmp_path: Path) -> None:
    """dask gets few chunks of whole blocks, as it visits all of them for each slice."""
    shape = (3, 14009, 14009, 14009)
    n5zarr.create_array(
        tmp_path / "a.n5", path="a", shape=shape, chunks=(1, 64, 64, 32), dtype="u2",
        axes=["c", "z", "y", "x"],
    )  # fmt: skip
    ((data, _, _),) = napari_layers(tmp_path / "a.n5")
    assert data.npartitions <= 2**17
    assert all(n % block == 0 for n, block in zip(data.chunksize, (1, 64, 64, 32), strict=True))
    assert data.chunksize[0] == 1
    assert max(data.chunksize) <= 512
    assert int(data[1, 14008, 14000:, 5:7].sum().compute()) == 0


@pytest.mark.parametrize("unit", ["<b>", "2**3"])
def test_a_unit_that_is_no_name_is_none(unit: str, tmp_path: Path) -> None:
    write_unit(tmp_path / "x.n5", unit)
    with pytest.warns(n5zarr.N5Warning, match="unit: expected"):
        ((_, options, _),) = napari_layers(tmp_path / "x.n5")
    assert options["units"] == ("pixel",) * 3


def test_an_attribute_of_users_is_no_registration(tmp_path: Path) -> None:
    array: Any = n5zarr.create_array(tmp_path / "x.n5/a", shape=(3, 5, 7), dtype="u1")
    array.attrs["registration"] = [["elastix", 3], "rigid"]
    ((_, options, _),) = napari_layers(tmp_path / "x.n5")
    assert "affine" not in options
    assert options["metadata"]["attributes"]["registration"] == [["elastix", 3], "rigid"]
