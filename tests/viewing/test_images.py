"""The images of a container, and their keys as OME-Zarr."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr.viewing.contrast import contrast_limits
from n5zarr.viewing.images import find_images, open_tree
from n5zarr.viewing.neuroglancer import fragment, neuroglancer_state
from n5zarr.viewing.ome_store import OmeStore

JAVA = Path(__file__).parents[1] / "data/java"


@pytest.mark.parametrize("source", ["sample", "metadata.n5", "blocks.n5", "labels.n5"])
def test_the_keys_are_those_that_a_conversion_writes(source: str, tmp_path: Path) -> None:
    location = Path(n5zarr.sample_path()) if source == "sample" else JAVA / source
    n5zarr.convert(location, tmp_path / "a.zarr", ome=True)
    store = OmeStore(open_tree(location))
    written = {
        str(file.relative_to(tmp_path / "a.zarr")): file.read_bytes()
        for file in (tmp_path / "a.zarr").rglob("*")
        if file.is_file()
    }

    async def found() -> dict[str, bytes]:
        keys = [key async for key in store.list()]
        values = [await store.get(key, cpu.buffer_prototype) for key in keys]
        return {k: v.to_bytes() for k, v in zip(keys, values, strict=True) if v is not None}

    assert asyncio.run(found()) == written


def test_axes_that_change_their_order_are_encoded_anew(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 2**16, (5, 7, 3, 11), "u2")
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=values.shape, chunks=(2, 3, 2, 5), dtype="u2"
    )
    array[...] = values
    n5zarr.set_geometry(tmp_path / "c.n5", "a", names=["z", "y", "c", "x"])
    (image,) = find_images(tmp_path / "c.n5")
    assert [axis.name for axis in image.axes] == ["c", "z", "y", "x"]
    assert (image.channel_axis, len(image.channels)) == (0, 3)
    read: Any = zarr.open(OmeStore(open_tree(tmp_path / "c.n5")), path="a/s0", mode="r")
    np.testing.assert_array_equal(read[...], values.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(image.levels[0].lazy(), values.transpose(2, 0, 1, 3))


def test_limits_are_those_of_the_data(tmp_path: Path) -> None:
    values = np.full((7, 11, 13), 900, "u2")
    values[2:5] = np.linspace(1000, 3000, 3 * 11 * 13).reshape(3, 11, 13)
    values[6] = 0  # as missing blocks are
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=values.shape, chunks=(3, 4, 5), dtype="u2"
    )
    array[...] = values
    low, high = contrast_limits(find_images(tmp_path / "c.n5")[0])
    assert low == 900
    assert 2950 < high <= 3000


def test_limits_of_large_data_are_those_of_a_sample_of_all_of_it(tmp_path: Path) -> None:
    """Nothing is at the borders: blocks at them are missing, and do not count."""
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(470, 430, 530), chunks=(50, 50, 50), dtype="u2"
    )
    array[100:400, 100:350, 100:450] = 1000
    array[100:400, 100:350, 250:450] = 3000
    assert contrast_limits(find_images(tmp_path / "c.n5")[0]) == (1000, 3000)


def test_limits_are_those_of_what_is_drawn_where_the_sample_is_empty(tmp_path: Path) -> None:
    for dtype, known in (("u2", (0.0, 1.0)), ("u1", (0.0, 255.0))):
        n5zarr.create_array(tmp_path / f"{dtype}.n5/a", shape=(7, 5), chunks=(2, 3), dtype=dtype)
        (image,) = find_images(tmp_path / f"{dtype}.n5")
        assert contrast_limits(image) == known
        drawn = [np.array([[0, 5, 9]], dtype), np.array([[7]], dtype)]
        low, high = contrast_limits(image, 0, drawn)
        assert 5 <= low < high <= 9


@pytest.mark.parametrize(
    ("color", "ends", "expected"),
    [("#00ff00", [20, 200], ("00FF00", (20, 200))), ("FF8000CC", [200, 20], ("FF8000", None)),
     ("green", [7, 7], (None, None)), ("F00", [float("nan"), 7], (None, None)),
     ("0000FF", [0, float("inf")], ("0000FF", None))],
)  # fmt: skip
def test_colours_and_limits_that_are_none_are_left_out(
    color: str, ends: list[float], expected: tuple[Any, Any], tmp_path: Path
) -> None:
    """Pictures and viewers would fail at them, also for all other images."""
    array: Any = n5zarr.create_array(tmp_path / "c.n5/a", shape=(7, 5), chunks=(3, 5), dtype="u1")
    array[...] = 40
    window = {"min": 0, "max": 255, "start": ends[0], "end": ends[1]}
    document: Any = {"channels": [{"color": color, "window": window}]}
    n5zarr.open(tmp_path / "c.n5", mode="r+").attrs["omero"] = document
    (image,) = find_images(tmp_path / "c.n5")
    assert (image.channels[0].color, image.channels[0].limits) == expected
    assert n5zarr.thumbnail(tmp_path / "c.n5", size=64).getcolors() is not None
    fragment(neuroglancer_state([image], "http://127.0.0.1/ome"))
