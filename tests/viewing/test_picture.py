"""Pictures of images have the right places, brightness and level, and read little."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorstore
from PIL import Image as Pillow
from zarr.storage import LocalStore

import n5zarr
from n5zarr.cli.app import app
from n5zarr.errors import N5MissingDependencyError, N5UnrepresentableError
from n5zarr.images.find import find_images
from n5zarr.viewing import picture_slices
from n5zarr.viewing.picture import blend, label_colours, scale_bar_text, with_scale_bar
from n5zarr.viewing.picture_slices import list_stored, plan_slices
from n5zarr.viewing.thumbnail import chosen_channels, draw_images, read_slices, thumbnail_png
from tests.command import CliRunner
from tests.contract.bigstitcher import TIMEPOINTS, elements, write_project
from tests.unit.images.test_images import Recording

SAMPLE = Path(n5zarr.sample_path())
Z, Y, X = 7, 11, 13  # below, pictures have 10 pixels for each voxel
SIZE = 10 * (Y + Z) + 4 + 22  # with the gap and the strip of the scale bar


def written(path: Path, values: npt.NDArray[Any], **more: Any) -> Any:
    """Write values, given x first, with tensorstore, and return its array."""
    spec = {
        "driver": "n5",
        "kvstore": {"driver": "file", "path": str(path)},
        "metadata": {
            "dataType": values.dtype.name, "dimensions": values.shape,
            "blockSize": [min(5, n) for n in values.shape], "compression": {"type": "gzip"}, **more,
        },
    }  # fmt: skip
    opened = tensorstore.open(spec, create=True).result()
    opened.write(values).result()
    return opened


def pixels(picture: Pillow.Image) -> npt.NDArray[np.uint8]:
    return np.asarray(picture)


def by_voxel(slices: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return the pixel in the middle of each voxel; a voxel is a square of 10 pixels."""
    return slices[5::10, 5::10]


@pytest.fixture
def grey(tmp_path: Path) -> Any:
    values = np.random.default_rng(2).integers(0, 256, (X, Y, Z), np.uint8)
    return written(tmp_path / "c.n5" / "a", values)


def test_x_goes_right_and_y_down_and_the_values_are_those_that_tensorstore_reads(
    grey: Any, tmp_path: Path
) -> None:
    shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE))
    assert shown.shape[:2] == (SIZE, 10 * (X + Z) + 4)
    assert (shown[..., 0] == shown[..., 1]).all()
    xy, zy = shown[: 10 * Y, : 10 * X, 0], shown[: 10 * Y, 10 * X + 4 :, 0]
    xz = shown[10 * Y + 4 : -22, : 10 * X, 0]
    np.testing.assert_array_equal(by_voxel(xy), grey[:, :, Z // 2].read().result().T)
    np.testing.assert_array_equal(by_voxel(zy), grey[X // 2].read().result())
    np.testing.assert_array_equal(by_voxel(xz), grey[:, Y // 2].read().result().T)


def test_the_slices_go_through_the_position(grey: Any, tmp_path: Path) -> None:
    for position in ((1, 8, 12), {"z": 1, "y": 8, "x": 12}):
        n5zarr.set_geometry(tmp_path / "c.n5/a", names=["z", "y", "x"])
        shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE, position=position))
        xy, zy = shown[: 10 * Y, : 10 * X, 0], shown[: 10 * Y, 10 * X + 4 :, 0]
        np.testing.assert_array_equal(by_voxel(xy), grey[:, :, 1].read().result().T)
        np.testing.assert_array_equal(by_voxel(zy), grey[12].read().result())


def test_slices_too_large_for_memory_are_read_in_strips(
    grey: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE))
    for most in (1, 20, 50):
        monkeypatch.setattr(picture_slices, "_MOST_ELEMENTS", most)
        np.testing.assert_array_equal(pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE)), whole)


def test_voxels_have_their_physical_proportions(tmp_path: Path) -> None:
    """Voxels have their physical proportions, also if units differ."""
    units = {"resolution": [0.5, 0.5, 2500.0], "units": ["um", "um", "nm"], "axes": ["x", "y", "z"]}
    written(tmp_path / "c.n5/a", np.full((X, Y, Z), 200, np.uint8), **units)
    shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=5 * (Y + 5 * Z) + 26))
    drawn = shown[..., 0] == 200
    assert drawn[0].sum() == 5 * (X + 5 * Z)
    assert drawn[:, 0].sum() == 5 * (Y + 5 * Z)
    white = np.flatnonzero(shown[-11, :, 0] > 250)
    bar = int(np.argmax(np.diff(white) > 1)) + 1
    # a pixel is 0.1 um, and the bar at most a third of the width
    assert (bar, scale_bar_text(0.1 * shown.shape[1] / 3, "um")) == (50, (5.0, "5 um"))


def test_only_blocks_of_the_slices_are_read(tmp_path: Path) -> None:
    store = Recording(LocalStore(SAMPLE, read_only=True))
    labels = next(image for image in find_images(store) if image.is_labels)
    assert store.blocks == []
    thumbnail_png(labels)
    crossed = (position for position in np.ndindex(3, 3, 3) if 1 in position)
    expected = {f"labels/s0/{x}/{y}/{z}" for x, y, z in crossed}
    assert {key for key in store.blocks if "zarr" not in key} == expected


@pytest.mark.parametrize(("size", "level"), [(45, "s2"), (60, "s1"), (400, "s0")])
def test_the_level_is_read_that_fits(size: int, level: str) -> None:
    store = Recording(LocalStore(SAMPLE, read_only=True))
    thumbnail_png(find_images(store)[0], size=size)
    # the coarsest level shows that the limits are those of all bytes
    assert {key.rpartition("/s")[2][0] for key in store.blocks} == {level[1], "2"}
    assert all(key.startswith("em/") for key in store.blocks)


def test_the_scale_bar_has_the_length_that_it_says() -> None:
    shown = pixels(n5zarr.thumbnail(SAMPLE, size=512))
    nm_per_pixel = (128 * 8 + 40 * 20) / (shown.shape[1] - 4)
    bar = shown[-11, :, 0] > 250
    length = int(np.argmin(bar[2:]))
    assert abs(length * nm_per_pixel - 500) < nm_per_pixel


def test_labels_have_stable_distinct_colours() -> None:
    names = np.arange(1000)[None]
    colours = label_colours(names)
    assert (colours[0, 0] == 0).all()
    assert (colours[0, 1:].max(axis=1) > 150).all()
    assert len(np.unique(colours[0], axis=0)) > 850
    for dtype in ("u2", "u4", "u8", "i2", "i8"):
        np.testing.assert_array_equal(label_colours(names.astype(dtype)), colours)
    neighbours = colours[0, 1:-1].astype(int) - colours[0, 2:]
    assert (abs(neighbours).sum(axis=1) > 60).all()


def test_labels_are_found_by_a_pattern(tmp_path: Path) -> None:
    values = np.zeros((X, Y, Z), np.uint8)
    values[: X // 2] = 7
    written(tmp_path / "c.n5/a", values)
    shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE, labels=["a"]))
    assert shown[0, 0].tolist() == label_colours(np.array([[7]]))[0, 0].tolist()
    assert shown[0, 10 * X - 1].tolist() == [0, 0, 0]


def test_channels_are_added_up_in_their_colours(tmp_path: Path) -> None:
    values = np.zeros((X, Y, Z, 2), np.uint16)
    values[1:5, 1, :, 0] = 1000
    values[3:8, 1, :, 1] = 50
    written(tmp_path / "c.n5/a", values)
    n5zarr.set_geometry(tmp_path / "c.n5/a", names=["c", "z", "y", "x"])
    row = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE))[15, 5 : 10 * X : 10]
    red, green = [255, 0, 0], [0, 255, 0]
    assert row[[0, 1, 4, 7, 8]].tolist() == [[0] * 3, red, [255, 255, 0], green, [0] * 3]
    alone = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE, channel=[1]))
    assert alone[15, 5 : 10 * X : 10][[1, 4, 7]].tolist() == [[0] * 3, [255] * 3, [255] * 3]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int64", "float32", "float64"])
def test_brightness_follows_the_values(dtype: str, tmp_path: Path) -> None:
    low = 0 if dtype.startswith("u") else -120
    values = np.linspace(low, 120, X * Y * Z).reshape(X, Y, Z).astype(dtype)
    if dtype.startswith("f"):
        values[3, 4] = np.nan
        values[3, 5] = np.inf
    written(tmp_path / "c.n5/a", values)
    shown = by_voxel(pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE))[: 10 * Y, : 10 * X, 0])
    middle = values[:, :, Z // 2].T
    if dtype.startswith("f"):
        assert shown[4, 3] == 0
        assert shown[5, 3] == 255
    order = np.argsort(np.nan_to_num(middle.astype(float), nan=-1e9).ravel())
    assert (np.diff(shown.ravel()[order].astype(int)) >= 0).all()
    assert np.ptp(shown) > 100


def test_masks_are_not_black(tmp_path: Path) -> None:
    """Masks are shown with the values from 0 to 1, and not as nearly black."""
    values = np.zeros((X, Y, Z), np.uint8)
    values[:5] = 1
    written(tmp_path / "c.n5/a", values)
    shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE))
    assert shown[0, [0, 10 * X - 1], 0].tolist() == [255, 0]


@pytest.mark.parametrize(
    ("shape", "slices"),
    [((13, 11), (110, 130)), ((13, 11, 1), (110, 130)), ((13, 1, 11), (110, 130)),
     ((1, 1, 1), None)],
)  # fmt: skip
def test_thin_images_are_one_slice(
    shape: tuple[int, ...], slices: tuple[int, int] | None, tmp_path: Path
) -> None:
    written(tmp_path / "c.n5/a", np.full(shape, 200, np.uint8))
    shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=136))[:-22, :, 0]
    if slices is not None:
        assert np.abs(np.subtract(shown.shape, slices)).max() <= 4
    assert (shown == 200).all()


def test_an_image_without_blocks_is_black(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5/a", shape=(X, Y, Z), dtype="u2", chunks=(2, 3, 5))
    shown = pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=200))
    assert shown[:10, :10].max() == 0


@pytest.mark.parametrize("shape", [(0, 5), (7, 0, 3), (0, 0, 0)])
def test_an_image_without_elements_is_none(shape: tuple[int, ...], tmp_path: Path) -> None:
    n5zarr.create_array(
        tmp_path / "c.n5/a", shape=shape, dtype="u2", chunks=(2, 3, 5)[: len(shape)]
    )
    for draw in (n5zarr.thumbnail, n5zarr.plot):
        with pytest.raises(N5UnrepresentableError, match="a: expected elements, got"):
            draw(tmp_path / "c.n5")
    written(tmp_path / "c.n5" / "b", np.full((X, Y, Z), 200, np.uint8))
    assert [image.path for image in find_images(tmp_path / "c.n5")] == ["b"]
    assert pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE))[0, 0, 0] == 200


def test_all_images_of_a_project_are_on_one_sheet(tmp_path: Path) -> None:
    xml = write_project(tmp_path, (0, 1, 3, 4))
    one = n5zarr.thumbnail(xml, size=128)
    sheet = n5zarr.thumbnail(xml, size=128, all_images=True)
    assert (sheet.width // one.width, sheet.height // one.height) == (2, 2)
    for t in range(2):
        shown = pixels(n5zarr.thumbnail(xml, size=26 + 180, position={"t": t}))
        # 5 x 0.3 um + 3 x 1.5 um on 180 pixels: voxels are 6 pixels wide and 9 high
        xy = shown[4 : 5 * 9 : 9, 3 : 7 * 6 : 6, 0].ravel()
        order = np.argsort(elements(0, TIMEPOINTS[t], 0)[1].ravel(), stable=True)
        assert (np.diff(xy[order].astype(int)) >= 0).all()
        assert np.ptp(xy) > 50


def test_the_colours_of_a_channel_are_those_of_its_limits() -> None:
    drawn = blend([np.array([[-5.0, 0, 2.5, 10, np.nan]])], [(0.0, 10.0)], ["FFFFFF"])
    assert drawn[0, :, 0].tolist() == [0, 0, 64, 255, 0]


def test_the_command_writes_a_picture(tmp_path: Path) -> None:
    file = tmp_path / "out.png"
    words = ["thumbnail", str(SAMPLE), "-o", str(file), "--size", "300", "--position", "z=3"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    with Pillow.open(file) as made:
        assert made.format == "PNG"
        np.testing.assert_array_equal(
            pixels(made), pixels(n5zarr.thumbnail(SAMPLE, size=300, position={"z": 3}))
        )


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_leaves_the_picture_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "out.png"
    file.write_bytes(b"a picture")
    script = (
        "import resource, signal, sys; import n5zarr.cli.app, n5zarr.viewing.thumbnail\n"
        "sys.dont_write_bytecode = True\n"  # else a part of it, which others would import
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "n5zarr.cli.app.app()"
    )
    words = [sys.executable, "-c", script, "thumbnail", str(SAMPLE), "-o", str(file)]
    done = subprocess.run(words, capture_output=True, check=False, text=True)
    assert done.returncode != 0
    assert "File too large" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["out.png"]
    assert file.read_bytes() == b"a picture"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--level", "7"], "em: level: expected 0 to 2, got 7"),
        (["--position", "1,2"], "em: position: expected a number for each of z, y, x, got [1, 2]"),
        (["--position", "40,1,1"], "em: position: expected 0 to 39 along z, got 40"),
        (["--position", "q=1"], "em: position: expected names of z, y, x, got 'q'"),
        (["--channel", "red"], "em: channel: expected one of 0, got 'red'"),
        (["-o", "x.docx"], "output: x.docx: expected a name such as em.png"),
        (["-o", "no/a.png"], "output: no/a.png: expected a folder that exists, got no"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(
    words: list[str], said: str, tmp_path: Path
) -> None:
    command = ["thumbnail", str(SAMPLE), "-o", str(tmp_path / "a.png"), *words]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    assert said in result.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"channel": []}, r"em: channel: expected one of 0, got \[\]"),
        ({"channel": [0, 1.5]}, "em: channel: expected one of 0, got 1.5"),
        ({"level": "1"}, "level: expected a whole number, got '1'"),
        ({"level": 1.0}, "level: expected a whole number, got 1.0"),
        ({"position": 5}, "em: position: expected a number for each of z, y, x, got 5"),
        ({"position": "1,2,3"}, "em: position: expected a number for each of z, y, x, got '1,2,3'"),
        ({"position": {"z": "5"}}, "position: z: expected a whole number, got '5'"),
        ({"labels": [5]}, r"labels: expected a text or a sequence of texts, got \[5\]"),
        ({"size": "a"}, "size: expected a whole number from 32 to 8192, got 'a'"),
        ({"size": 31}, "size: expected a whole number from 32 to 8192, got 31"),
        ({"level": 3, "all_images": True}, "level: expected a whole number from 0 to 2, got 3"),
    ],
)
def test_a_wrong_argument_is_said(given: dict[str, Any], said: str) -> None:
    for draw in (n5zarr.thumbnail, n5zarr.plot):
        if draw is n5zarr.thumbnail or not {"size", "all_images"} & given.keys():
            with pytest.raises(N5UnrepresentableError, match=said) as raised:
                draw(SAMPLE, **given)
            assert raised.value.kind == "option"


def test_a_picture_is_never_larger_than_it_may_be() -> None:
    for size in (32, 40, 57):
        assert max(n5zarr.thumbnail(SAMPLE, size=size).size) == size
    narrow = find_images(SAMPLE)[0]
    assert with_scale_bar(np.zeros((9, 11, 3), np.uint8), 7, "5 um", 20).size == (11, 9 + 22)
    assert draw_images(narrow, size=80).size[0] > 66  # the text of the bar


def test_one_channel_and_one_pattern_need_no_list(tmp_path: Path) -> None:
    values = np.random.default_rng(3).integers(0, 256, (X, Y, Z, 2), np.uint8)
    written(tmp_path / "c.n5" / "a", values)
    n5zarr.set_geometry(tmp_path / "c.n5/a", names=["c", "z", "y", "x"])
    for alone, listed in (({"channel": 1}, {"channel": [1]}), ({"labels": "a"}, {"labels": ["a"]})):
        one, other = (
            pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=SIZE, **options))
            for options in (alone, listed)
        )
        np.testing.assert_array_equal(one, other)


def test_of_all_images_those_with_fewer_levels_are_drawn_of_their_coarsest() -> None:
    store = Recording(LocalStore(SAMPLE, read_only=True))
    n5zarr.thumbnail(store, size=400, level=1, all_images=True)
    levels = {key.rsplit("/", 3)[0] for key in store.blocks if "zarr" not in key}
    assert levels == {"em/s1", "em/s2", "labels/s0"}  # s2 for the contrast limits


def test_no_picture_is_made_of_very_many_bytes(tmp_path: Path) -> None:
    """The 257 blocks that are stored have more than 1 GiB."""
    n5zarr.create_array(
        tmp_path / "c.n5/em/s0", shape=(16_000,) * 3, chunks=(128,) * 3, dtype="u2",
        axes="zyx", units=["nm"] * 3, resolution=[2] * 3,
    )  # fmt: skip
    for n in range(257):  # blocks in the middle: x, y, and z
        block = tmp_path / f"c.n5/em/s0/{n % 125}/{n // 125}/62"
        block.parent.mkdir(parents=True, exist_ok=True)
        block.touch()
    for draw in (n5zarr.thumbnail, n5zarr.plot):
        said = r"em: expected .* at most 1.0 GiB, .* 183.1 GiB, in 46875 blocks .*n5zarr pyramid"
        with pytest.raises(N5UnrepresentableError, match=said):
            draw(tmp_path / "c.n5")
    image = find_images(tmp_path / "c.n5")[0]
    assert list_stored(plan_slices(image, (9, 9), level=0), [0]) == {}  # the user chose this level
    n5zarr.create_array(
        tmp_path / "c.n5/em/s1", shape=(1000,) * 3, chunks=(128,) * 3, dtype="u2",
        axes="zyx", units=["nm"] * 3, resolution=[32] * 3, offset=[15] * 3,
    )  # fmt: skip
    assert plan_slices(find_images(tmp_path / "c.n5")[0], (8192, 8192)).level == 1
    assert n5zarr.thumbnail(tmp_path / "c.n5", size=64).size[1] == 64


def test_the_command_says_that_there_are_more_images(tmp_path: Path) -> None:
    words = ["thumbnail", str(SAMPLE), "-o", str(tmp_path / "a.png"), "--size", "64"]
    said = "Drew em, the first of 2 images; --all draws all."
    assert said in CliRunner().invoke(app, words).output
    assert "Drew" not in CliRunner().invoke(app, [*words, "--all"]).output


def test_a_container_without_images_is_an_error_of_one_line(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5/trace", data=np.arange(7.0))
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr/zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    for name, expected in (("c.n5", "expected an image"), ("a.zarr", "expected N5, got a Zarr")):
        command = ["thumbnail", str(tmp_path / name), "-o", str(tmp_path / "a.png")]
        result = CliRunner().invoke(app, command)
        assert (result.exit_code, result.output.count("\n")) == (2, 1)
        assert expected in result.output
        assert "OME" not in result.output


def test_each_axis_is_cut_once(tmp_path: Path) -> None:
    command = ["thumbnail", str(SAMPLE), "-o", str(tmp_path / "a.png"), "--position", "z=1,z=2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "expected each axis once" in result.output


def test_a_file_stays_if_the_picture_cannot_be_written(tmp_path: Path) -> None:
    output = tmp_path / "measured.h5"  # a format that Pillow knows but does not write
    output.write_bytes(b"data")
    command = ["thumbnail", str(n5zarr.sample_path()), "-o", str(output)]
    assert CliRunner().invoke(app, command).exit_code == 2
    assert output.read_bytes() == b"data"


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(N5MissingDependencyError, match=r"n5zarr\[view\]"):
        n5zarr.thumbnail(SAMPLE)


def test_thumbnail_png_is_small() -> None:
    png = thumbnail_png(find_images(SAMPLE)[0])
    with Pillow.open(io.BytesIO(png)) as made:
        assert max(made.size) <= 256
    assert len(png) < 40_000


def test_a_number_is_the_index_of_a_channel_also_where_names_are_numbers(tmp_path: Path) -> None:
    n5zarr.create_array(
        tmp_path / "c.n5", path="a", data=np.ones((3, 7, 11), "u2"), axes=["c", "y", "x"],
        attributes={"coordinateArrays": {"c": ["1", "2", "3"]}},
    )  # fmt: skip
    (image,) = find_images(tmp_path / "c.n5")
    assert [channel.name for channel in image.channels] == ["1", "2", "3"]
    slices = plan_slices(image, (64, 64))
    for wanted, index in ((1, 1), ("1", 0), ("3", 2)):
        channels, _ = read_slices(slices, chosen_channels(image, wanted), [(64, 64)])
        assert [channel.index for channel in channels] == [index]


def test_a_level_without_elements_is_black(tmp_path: Path) -> None:
    """Programs that halve a single plane write such levels; the finest is drawn unless chosen."""
    n5zarr.create_array(tmp_path / "c.n5", path="em/s0", data=np.full((1, 9, 13), 200, "u1"))
    attributes: dict[str, Any] = {"downsamplingFactors": [2, 2, 2]}
    n5zarr.create_array(
        tmp_path / "c.n5", path="em/s1", shape=(0, 5, 7), dtype="u1", attributes=attributes
    )
    assert pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=100))[:9].min() == 200
    assert pixels(n5zarr.thumbnail(tmp_path / "c.n5", size=100, level=1))[:9].max() < 200
