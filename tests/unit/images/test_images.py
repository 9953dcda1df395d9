"""Images of a container are found, and shown with keys of OME-Zarr."""

from __future__ import annotations

import json
import warnings
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu
from zarr.storage import MemoryStore, WrapperStore

import n5zarr
from n5zarr.errors import N5Warning
from n5zarr.images import contrast
from n5zarr.images.contrast import contrast_limits, n_chunks_sampled
from n5zarr.images.find import find_images, images_in, open_images
from n5zarr.images.from_n5 import n5_tree
from n5zarr.images.image import Channel, Image
from n5zarr.images.ome import OME_FORMATS
from n5zarr.images.zarr_documents import OmeZarrKeys
from n5zarr.storage.place import place_of
from n5zarr.viewing.neuroglancer import fragment, neuroglancer_state

JAVA = Path(__file__).parents[2] / "data/java"


@pytest.mark.each_of(3)
@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("source", ["sample", "metadata.n5", "blocks.n5", "labels.n5"])
def test_the_keys_are_those_that_a_conversion_writes(
    source: str, version: Any, tmp_path: Path
) -> None:
    location = Path(n5zarr.sample_path()) if source == "sample" else JAVA / source
    said = "Zarr gets the most frequent label"
    with pytest.warns(N5Warning, match=said) if source == "labels.n5" else nullcontext():
        n5zarr.convert(location, tmp_path / "a.zarr", ome=True, ome_version=version)
    ome = OmeZarrKeys(images_in(n5_tree(place_of(location), OME_FORMATS[version])), version)
    written = {
        str(file.relative_to(tmp_path / "a.zarr")): file.read_bytes()
        for file in (tmp_path / "a.zarr").rglob("*")
        if file.is_file()
    }

    assert values_of(ome) == written
    for prefix in ("c/", ""):
        assert ome.read(f"em/s0/{prefix}0/0") is None
        assert ome.read(f"labels/s0/{prefix}0/0/1000000") is None


def test_tables_are_no_images(tmp_path: Path) -> None:
    root = tmp_path / "a.n5"
    n5zarr.create_array(root, path="seg/data", shape=(3, 5, 7), dtype="u8")
    for path, shape in {"seg/fragment-segment-assignment": (2, 111), "points": (113, 3)}.items():
        n5zarr.create_array(root, path=path, shape=shape, dtype="u8")
    n5zarr.create_array(root, path="line", shape=(2, 111), dtype="u1", resolution=[1, 2])
    n5zarr.create_array(root, path="small", shape=(3, 17), dtype="u1")
    assert {image.path for image in find_images(root)} == {"seg/data", "line", "small"}
    assert [image.path for image in find_images(root / "points")] == [""]  # what is asked for
    n5zarr.convert(root, tmp_path / "a.zarr", ome=True)
    table = zarr.open_array(tmp_path / "a.zarr", path="seg/fragment-segment-assignment", mode="r")
    assert table.shape == (2, 111)


def values_of(ome: OmeZarrKeys) -> dict[str, bytes]:
    """Read all documents and all chunks that an array may have."""
    keys = list(ome.documents)
    for key, data in ome.documents.items():
        array, _, name = key.rpartition("/")
        document = json.loads(data) if name in ("zarr.json", ".zarray") else {}
        if "shape" in document:
            is_v2 = name == ".zarray"
            chunks = document["chunks" if is_v2 else "chunk_grid"]
            chunks = chunks if is_v2 else chunks["configuration"]["chunk_shape"]
            grid = [range(-(-n // c)) for n, c in zip(document["shape"], chunks, strict=True)]
            start = [array] if is_v2 else [array, "c"]
            keys += ["/".join([*start, *map(str, position)]) for position in product(*grid)]
    values = ((key, ome.read(key)) for key in keys)
    return {key: bytes(value) for key, value in values if value is not None}


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
    keys = values_of(OmeZarrKeys(open_images(tmp_path / "c.n5"))).items()
    store = MemoryStore({key: cpu.Buffer.from_bytes(value) for key, value in keys})
    read: Any = zarr.open(store, path="a/s0", mode="r")
    np.testing.assert_array_equal(read[...], values.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(image.levels[0].lazy(), values.transpose(2, 0, 1, 3))


def test_limits_are_those_of_the_data(tmp_path: Path) -> None:
    values = np.full((7, 11, 13), 900, "u2")
    values[2:5] = np.linspace(1000, 3000, 3 * 11 * 13).reshape(3, 11, 13)
    values[6] = 0  # like missing blocks
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=values.shape, chunks=(3, 4, 5), dtype="u2"
    )
    array[...] = values
    low, high = contrast_limits(find_images(tmp_path / "c.n5")[0])
    assert low == 900
    assert 2950 < high <= 3000


def test_limits_of_large_data_are_those_of_a_sample_of_all_of_it(tmp_path: Path) -> None:
    """Contrast limits of large data ignore missing blocks at the borders."""
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
    """Invalid colours and limits are left out, so that viewers show the image."""
    array: Any = n5zarr.create_array(tmp_path / "c.n5/a", shape=(7, 5), chunks=(3, 5), dtype="u1")
    array[...] = 40
    window = {"min": 0, "max": 255, "start": ends[0], "end": ends[1]}
    document: Any = {"channels": [{"color": color, "window": window}]}
    n5zarr.open(tmp_path / "c.n5", mode="r+").attrs["omero"] = document
    (image,) = find_images(tmp_path / "c.n5")
    assert (image.channels[0].color, image.channels[0].limits) == expected
    assert n5zarr.thumbnail(tmp_path / "c.n5", size=64).getcolors() is not None
    fragment(neuroglancer_state([image], "http://127.0.0.1/ome"))


@pytest.mark.parametrize("extreme", [1.7e308, 3.3e38, np.inf, np.nan])
def test_limits_are_numbers_whatever_the_data_are(extreme: float, tmp_path: Path) -> None:
    dtype = "f4" if extreme == 3.3e38 else "f8"
    values = np.concatenate([np.full(500, -extreme), np.full(501, extreme)]).astype(dtype)
    n5zarr.create_array(tmp_path / "c.n5/a", data=values.reshape(7, 11, 13))
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        low, high = contrast_limits(find_images(tmp_path / "c.n5")[0])
    assert low < high
    assert np.isfinite(high - low)
    shown = np.asarray(n5zarr.thumbnail(tmp_path / "c.n5", size=300))
    if np.isfinite(extreme):
        assert (shown[5, 5, 0], shown[150, 150, 0]) == (0, 255)  # above and below, in the slice xy


@pytest.mark.parametrize("window", [(-1.7e308, 1.7e308), (5, 5), (9, 2), ("NaN", 3)])
def test_a_window_that_cannot_be_shown_is_none(window: tuple[Any, Any], tmp_path: Path) -> None:
    image = Image(
        path="a", name="a", axes=(), levels=find_images(_grey(tmp_path))[0].levels,
        channels=(Channel(limits=(float(window[0]), float(window[1]))),),
    )  # fmt: skip
    low, high = contrast_limits(image)
    assert low < high
    assert np.isfinite(high - low)


def _grey(folder: Path) -> Path:
    n5zarr.create_array(folder / "g.n5/a", data=np.arange(7.0 * 11).reshape(7, 11))
    return folder / "g.n5"


class Recording(WrapperStore[Any]):
    """A store that records the keys of the blocks that are read."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.blocks: list[str] = []

    async def get(self, key: str, *args: Any, **options: Any) -> cpu.Buffer | None:
        if not key.endswith(".json"):
            self.blocks.append(key)
        return await super().get(key, *args, **options)  # type: ignore[return-value]


def test_few_bytes_are_read_for_limits_where_blocks_are_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only one block is read for contrast limits if two have more than 1 GiB."""
    store = Recording(MemoryStore())
    n5zarr.create_array(store, path="a", shape=(5000,) * 3, chunks=(1023,) * 3, dtype="u2")
    n5zarr.create_array(store, path="b", shape=(500,) * 3, chunks=(102,) * 3, dtype="u2")
    large, small = find_images(store)
    assert n_chunks_sampled(large) == 1
    monkeypatch.setattr(contrast, "_MOST_BYTES", 2**20)  # so that the test needs little memory
    store.blocks.clear()
    assert contrast_limits(small) == (0, 1)  # no block is there
    assert n_chunks_sampled(small) == 1
    assert len(store.blocks) == 2  # with the one that tells whether files are shards


@pytest.mark.parametrize("place", ["g/em", "g", ""])
def test_an_image_has_the_name_of_its_group_wherever_it_is_opened(
    place: str, tmp_path: Path
) -> None:
    for level, n in (("s0", 8), ("s1", 4)):
        n5zarr.create_array(tmp_path / "c.n5/g/em" / level, data=np.ones((n, 3 * n), "u1"))
    assert [image.name for image in find_images(tmp_path / "c.n5" / place)] == ["em"]
    assert find_images(tmp_path / "c.n5/g/em/s1")[0].name == "s1"


def test_the_same_oddity_of_many_datasets_is_one_warning(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        n5zarr.create_array(tmp_path / "c.n5" / name, data=np.ones((5, 7, 3), "u1"))
        file = tmp_path / "c.n5" / name / "attributes.json"
        odd = {"axes": ["x", "y", "z"], "units": ["ell", "ell", "rod"], "resolution": [1, 1, 1]}
        file.write_text(json.dumps(json.loads(file.read_text()) | odd))
    with pytest.warns(n5zarr.N5Warning) as said:
        find_images(tmp_path / "c.n5")
    shown = sorted(str(each.message).partition(".n5: ")[2] for each in said)
    assert [text.partition(" and 2 others: ")[2] for text in shown] == [
        "axes 'x', 'y': unit: expected one that n5zarr knows, got 'ell'",
        "axis 'z': unit: expected one that n5zarr knows, got 'rod'",
    ]
