"""The reader for BioIO passes BioIO's own tests of readers."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bioio import BioImage
from bioio_base import test_utilities as suite
from bioio_base.exceptions import UnsupportedFileFormatError

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from n5zarr.viewing.bioio import Reader
from tests.contract.bigstitcher import MISSING, SETUPS, TIMEPOINTS, elements, write_project
from tests.contract.stored import by_tensorstore
from tests.remote import servers
from tests.viewing.volumes import write_unit

METADATA = Path(__file__).parents[1] / "data/java/metadata.n5"
TRUTH = [json.loads(line) for line in METADATA.with_suffix(".truth.jsonl").read_text().splitlines()]
MICROMETERS = {"um": 1, "micrometer": 1, "nm": 1e-3, None: 1}
SCENES = tuple(sorted({t["path"].removesuffix("/s0").removesuffix("/s1") for t in TRUTH}))
N_LEVELS = {scene: sum(t["path"].startswith(f"{scene}/") for t in TRUTH) or 1 for scene in SCENES}
VALUES = np.random.default_rng(1).integers(0, 999, (5, 7, 3, 11, 13), "u2")  # t, z, c, y, x


def document(truth: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((METADATA / truth["path"] / "attributes.json").read_text())
    return found


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    ("container", "truth"),
    [
        *((Reader, truth) for truth in TRUTH),
        *((BioImage, t) for t in TRUTH if t["path"] in ("cosem/s1", "neuroglancer/channels")),
    ],
    ids=lambda given: given["path"] if isinstance(given, dict) else given.__module__,
)
def test_each_level_of_each_convention(container: Any, truth: dict[str, Any]) -> None:
    """It has the shape of its document and the sizes of Java."""
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
        names = [f"Channel:{scene}:0"]  # the default of BioIO
    voxel: Any = tuple(expected.values())
    suite.run_image_file_checks(
        container, METADATA, set_scene=scene, expected_scenes=SCENES, expected_current_scene=scene,
        expected_shape=tuple(sizes.get(d, 1) for d in order), expected_dtype=np.dtype("u1"),
        expected_dims_order=order, expected_channel_names=names,
        expected_physical_pixel_sizes=voxel, expected_metadata_type=dict,
        set_resolution_level=level, expected_current_resolution_level=level,
        expected_resolution_levels=tuple(range(max(level + 1, N_LEVELS[scene]))), reader_kwargs={},
    )  # fmt: skip


def of_setup(project: Path, number: int) -> np.ndarray[Any, Any]:
    every = [elements(number, timepoint, 0) for timepoint in TIMEPOINTS]
    return np.stack([e * ((number, t) != MISSING) for e, t in zip(every, TIMEPOINTS, strict=True)])


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"), (0, 1, 3, 4))


def test_views_of_a_project_are_scenes_with_times(project: Path) -> None:
    for first, second in (("left_green", "right_red"), (0, 3)):
        suite.run_multi_scene_image_read_checks(
            BioImage, project, allow_same_scene_data=False, reader_kwargs={},
            first_scene_id=first, first_scene_shape=(4, 1, 3, 5, 7),
            first_scene_dtype=np.dtype("u2"),
            second_scene_id=second, second_scene_shape=(4, 1, 2, 5, 11),
            second_scene_dtype=np.dtype("u2"),
        )  # fmt: skip
    image = BioImage(project)
    for number, setup in SETUPS.items():
        if number != 7:
            image.set_scene(setup.name.replace(" ", "_"))
            np.testing.assert_array_equal(image.get_image_data("TZYX"), of_setup(project, number))
            assert image.metadata["bdv"]["setup"] == number
            x = setup.moved[0] * 0.2 + setup.voxel_size[0] * np.arange(setup.shape[2])
            np.testing.assert_allclose(image.xarray_dask_data["X"], x, atol=1e-12)
    assert image.time_interval is None


def test_scenes_without_names_are_taken_by_number(project: Path) -> None:
    suite.run_no_scene_name_image_read_checks(
        Reader, project,
        first_scene_id="left_green", first_scene_dtype=np.dtype("u2"),
        second_scene_id=1, second_scene_dtype=np.dtype("u2"),
        allow_same_scene_data=False, reader_kwargs={},
    )  # fmt: skip


def test_values_are_those_of_tensorstore() -> None:
    image = BioImage(METADATA)
    for path in ("cosem/s0", "cosem/s1", "imagej", "neuroglancer/channels"):
        expected = by_tensorstore(METADATA / path)
        image.set_scene(path.removesuffix("/s0").removesuffix("/s1"))
        image.set_resolution_level(int(path.endswith("/s1")))
        delayed = image.get_image_dask_data(image.reader.dims.order)
        np.testing.assert_array_equal(np.asarray(delayed), expected)


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """Write an image with all axes of BioIO, in ImageJ's order, in nanometers and minutes."""
    root = tmp_path / "timed.n5"
    n5zarr.create_array(
        root, path="a", data=VALUES, chunks=(1, 7, 1, 4, 4), axes=["t", "z", "c", "y", "x"],
        units=["min", "nm", "", "nm", "nm"], resolution=[2, 300, 1, 50, 40],
        offset=[0, 900, 0, 100, 0],
    )  # fmt: skip
    return root


def test_units_are_converted(timed: Path) -> None:
    image = BioImage(timed)
    assert image.dims.order == image.reader.dims.order == "TCZYX"
    assert image.physical_pixel_sizes == pytest.approx((0.3, 0.05, 0.04))
    assert image.time_interval == timedelta(minutes=2)
    assert image.scale.T == 120
    assert [str(p.unit) for p in image.dimension_properties] == [
        "second", "None", "micrometer", "micrometer", "micrometer",
    ]  # fmt: skip
    np.testing.assert_allclose(image.xarray_dask_data["Z"], 0.9 + 0.3 * np.arange(7))
    assert [*image.xarray_dask_data["T"].values] == [0, 120, 240, 360, 480]
    pixels = image.ome_metadata.images[0].pixels
    assert (pixels.size_c, pixels.physical_size_x_quantity.to("nm").magnitude) == (3, 40)
    assert image.standard_metadata.timelapse_interval == timedelta(minutes=2)
    assert image.standard_metadata.total_time_duration == timedelta(minutes=8)


@pytest.mark.parametrize(
    ("order", "chosen", "most"),
    [
        ("YX", {"T": 3, "C": 1, "Z": -1}, 12),
        ("ZX", {"T": -2, "C": 2, "Y": 4}, 4),
        ("CYX", {"T": 1, "Z": 5, "C": [0, 2]}, 36),
        ("TYX", {"C": 0, "Z": 5, "T": slice(1, 4), "Y": slice(2, 9, 3)}, 36),
    ],
)
def test_a_part_is_read_alone(timed: Path, order: str, chosen: dict[str, Any], most: int) -> None:
    """A request for a part reads few of the 180 blocks."""
    whole = BioImage(timed)
    np.testing.assert_array_equal(whole.data, VALUES.swapaxes(1, 2))
    with servers.static(timed.parent) as url, servers.Proxy(url).running() as proxy:
        image = BioImage(f"{proxy.url}/timed.n5/a")
        proxy.requests.clear()
        part = image.reader.get_image_data(order, **chosen)
        np.testing.assert_array_equal(part, whole.reader.get_image_data(order, **chosen))
        n_blocks = sum(path.rpartition("/")[2].isdigit() for _, path in proxy.requests)
    assert 0 < n_blocks <= most


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize(
    ("order", "chosen", "place"),
    [
        ("CZYX", {"T": 1, "C": [2, 0, 1]}, (1, range(7), [2, 0, 1], range(11), range(13))),
        ("ZX", {"T": 1, "C": 2, "Y": -2, "X": [0, 5, 4]}, (1, range(7), 2, 9, [0, 5, 4])),
        ("TZYX", {"T": [4, 0, 1], "C": 1, "Y": [9, 2, 5], "X": slice(3, 11, 5)},
         ([4, 0, 1], range(7), 1, [9, 2, 5], [3, 8])),
    ],
)  # fmt: skip
def test_lists_of_positions_select_along_their_axes(
    timed: Path, order: str, chosen: dict[str, Any], place: Any, is_loaded: bool
) -> None:
    """With numpy's rules, lists would select points, and bring their axis to the front."""
    expected = VALUES[np.ix_(*([p] if isinstance(p, int) else p for p in place))]
    axes = [axis for axis, letter in enumerate("TZCYX") if letter not in order]
    expected = expected.squeeze(tuple(axes))
    kept = [letter for letter in "TZCYX" if letter in order]
    expected = expected.transpose([*map(kept.index, order)])
    image = BioImage(timed)
    if is_loaded:
        assert image.reader.data.size == VALUES.size
    np.testing.assert_array_equal(image.reader.get_image_data(order, **chosen), expected)


def test_axes_of_space_with_other_names_have_bioios_letters(tmp_path: Path) -> None:
    """BioIO knows Z, Y and X only; the last axes of space get the last letters."""
    data = np.arange(7 * 5, dtype="u2").reshape(7, 5)
    n5zarr.create_array(
        tmp_path / "c.n5", path="a", data=data, axes=["row", "col"], units=["nm", "nm"]
    )
    image = BioImage(tmp_path / "c.n5")
    assert image.reader.dims.order == "YX"
    np.testing.assert_array_equal(image.reader.data, data)
    assert image.standard_metadata.timelapse_interval is None
    assert image.standard_metadata.total_time_duration is None


def test_what_is_not_named_by_a_path_is_not_supported() -> None:
    """BioIO asks with arrays, and with URLs of any file."""
    assert not Reader.is_supported_image(VALUES)
    assert not Reader.is_supported_image("memory://bucket/a.tif")
    assert Reader.is_supported_image(n5zarr.sample_path())


def test_bioio_finds_the_reader(tmp_path: Path, project: Path) -> None:
    inner = Path(n5zarr.sample_path()) / "em/s0"
    for location in (n5zarr.sample_path(), str(inner), inner, project):
        assert BioImage(location).reader.name == "n5zarr"
    assert BioImage(inner).scenes == ("em/s0",)
    (tmp_path / "ome.xml").write_text("<OME></OME>")
    (tmp_path / "photos").mkdir()
    for other in ("ome.xml", "photos"):
        with pytest.raises(UnsupportedFileFormatError, match=other):
            BioImage(tmp_path / other)
    with pytest.raises(FileNotFoundError, match="missing"):
        BioImage(tmp_path / "missing.n5")
    with pytest.raises(N5UnrepresentableError, match="expected an image"):
        BioImage(METADATA.with_name("strings.n5"))


def test_a_scene_with_fewer_levels_is_shown_at_its_finest() -> None:
    image = BioImage(n5zarr.sample_path())
    image.set_resolution_level(2)
    assert image.shape == (1, 1, 10, 24, 32)
    image.set_scene("labels")
    assert (image.current_resolution_level, image.shape) == (0, (1, 1, 40, 96, 128))
    with pytest.raises(NotImplementedError, match="data type"):
        _ = image.ome_metadata  # OME has no uint64


@pytest.mark.parametrize("unit", ["<b>", "2**3"])
def test_a_unit_that_is_no_name_is_none(unit: str, tmp_path: Path) -> None:
    write_unit(tmp_path / "x.n5", unit)
    with pytest.warns(n5zarr.N5Warning, match="unit: expected"):
        opened = Reader(tmp_path / "x.n5")
    assert opened.dimension_properties.X.unit is None
