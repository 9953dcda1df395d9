"""Volumes of 10^12 positions with few blocks are handled without a walk over the grid.

Positions of blocks, values and counts come from the lists below.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from zarr.codecs import GzipCodec
from zarr.storage import LocalStore, MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.arrays.stored_chunks import stored_chunks
from n5zarr.errors import N5Error, N5Warning
from n5zarr.images.contrast import contrast_limits
from n5zarr.images.find import find_images, open_images
from n5zarr.images.from_n5 import n5_tree
from n5zarr.images.zarr_documents import OmeZarrKeys
from n5zarr.storage.place import place_of
from n5zarr.storage.requests import List, Remove
from n5zarr.tools.convert.copies import TaskSize
from n5zarr.tools.convert.places import open_destination
from n5zarr.tools.convert.target import Layout
from n5zarr.tools.convert.writing import plan_copies, verify_copies
from n5zarr.tools.jobs.run import RunOptions

SHAPE, BLOCK = (100_019, 99_991, 100_003), (7, 5, 11)  # C order, all primes
POSITIONS = [(0, 0, 0), (7144, 9999, 4545), (7144, 9999, 4546), (14_288, 3, 9091), (9, 19_998, 2)]


def box_of(position: tuple[int, ...]) -> tuple[slice, ...]:
    each = zip(position, BLOCK, SHAPE, strict=True)
    return tuple(slice(p * b, min((p + 1) * b, n)) for p, b, n in each)


def values_of(number: int) -> np.ndarray:
    box = box_of(POSITIONS[number])
    shape = [part.stop - part.start for part in box]
    return np.random.default_rng(number).integers(1, 200, shape, "u1")


def make(path: Path) -> Any:
    """Write the blocks; those at the end of an axis are truncated."""
    array = n5zarr.create_array(path, path="v/s0", shape=SHAPE, chunks=BLOCK, dtype="u1")
    for number, position in enumerate(POSITIONS):
        array[box_of(position)] = values_of(number)
    return array


def blocks_in(path: Path) -> set[tuple[int, ...]]:
    """Return the grid positions of the files of a dataset, C order."""
    files = (f.relative_to(path).parts for f in path.rglob("*") if f.is_file())
    return {tuple(map(int, parts[::-1])) for parts in files if parts[-1] != "attributes.json"}


def assert_copied(array: Any) -> None:
    for number, position in enumerate(POSITIONS):
        np.testing.assert_array_equal(array[box_of(position)], values_of(number))
    assert not array[50_000:50_020, 60_000:60_020, 70_000:70_020].any()


@pytest.mark.each_of(4)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.zarr", {}), ("a.zarr", {"to": "zarr2"}), ("a.zarr", {"compression": "zstd"}),
        ("a.zarr", {"chunks": (13, 17, 19)}), ("a.zarr", {"shards": (14, 20, 33)}),
        ("a.zarr", {"coords": True}), ("a.n5", {}), ("a.n5", {"compression": "raw"}),
        ("a.n5", {"chunks": (3, 23, 5)}),
    ],
)  # fmt: skip
def test_a_copy_is_made_verified_compared_and_resumed(
    tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    source = make(tmp_path / "v.n5")
    out = tmp_path / name
    n5zarr.convert(tmp_path / "v.n5/v/s0", out / "d", verify=True, **options)
    copy: Any = n5zarr.open(out / "d") if name == "a.n5" else zarr.open(out / "d", mode="r")
    copy = copy if isinstance(copy, zarr.Array) else copy["s0"]
    assert_copied(copy)
    assert n5zarr.compare_arrays(source, copy) is None
    again = n5zarr.convert(tmp_path / "v.n5/v/s0", out / "d", resume=True, **options)
    assert again.verified


@pytest.mark.parametrize(
    ("way", "options"),
    [("chunks", {}), ("shards", {"shards": (14, 20, 33)}), ("values", {"compression": "zstd"})],
)
def test_a_finished_copy_with_a_changed_element_is_no_copy(
    tmp_path: Path, way: str, options: dict[str, Any]
) -> None:
    source, out = make(tmp_path / "v.n5"), tmp_path / "a.zarr"
    (made,) = n5zarr.convert(tmp_path / "v.n5/v/s0", out, **options).arrays
    assert made.way == way
    copy: Any = zarr.open_array(out, mode="r+")
    for place in ((100_018, 99_990, 100_002), (50_009, 49_997, 50_003)):  # missing, and stored
        copy[place] ^= 255
        with pytest.raises(N5Error, match="expected the values") as caught:
            n5zarr.convert(tmp_path / "v.n5/v/s0", out, resume=True, **options)
        assert caught.value.kind == "differs"
        copy[place] ^= 255
    # the chunks that were written again may have other bytes, but they have the same values
    assert n5zarr.convert(tmp_path / "v.n5/v/s0", out, resume=True, **options).verified
    assert n5zarr.compare_arrays(source, copy) is None


def test_a_finished_copy_of_zarr_with_a_changed_element_is_no_copy(tmp_path: Path) -> None:
    values = np.arange(1, 5 * 7 * 11 + 1).reshape(5, 7, 11).astype("u1")
    zarr.create_array(tmp_path / "a.zarr", data=values, chunks=(2, 3, 5), compressors=GzipCodec())
    (made,) = n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5/d", verify=True).arrays
    assert made.way == "chunks"
    copy: Any = n5zarr.open_array(tmp_path / "a.n5/d", "r+")
    copy[4, 6, 10] ^= 255
    with pytest.raises(N5Error, match="expected the values"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5/d", resume=True)
    copy[4, 6, 10] = values[4, 6, 10]
    assert n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5/d", resume=True).verified


def test_differences_are_counted_where_only_one_side_has_a_chunk(tmp_path: Path) -> None:
    source = make(tmp_path / "v.n5")
    n5zarr.convert(tmp_path / "v.n5", tmp_path / "a.zarr", chunks=(13, 17, 19))
    copy: Any = zarr.open_array(tmp_path / "a.zarr", path="v/s0", mode="r+")
    copy[100_018, 99_990, 100_002] = 255  # a chunk that the source lacks
    copy[50_009, 49_997, 50_003] = 0 if source[50_009, 49_997, 50_003] else 250
    changed = int(source[50_009, 49_997, 50_003])
    (difference,) = n5zarr.compare(tmp_path / "v.n5", tmp_path / "a.zarr").differences
    found: Any = difference.values
    assert (found.n_differing, found.n_elements) == (2, math.prod(SHAPE))
    assert [e.position for e in found.elements] == [
        (50_009, 49_997, 50_003), (100_018, 99_990, 100_002),
    ]  # fmt: skip
    assert (found.elements[1].first, found.elements[1].second) == (0, 255)
    assert found.largest == 255
    assert changed
    with pytest.raises(n5zarr.N5Error, match="expected the values"):
        n5zarr.convert(tmp_path / "v.n5", tmp_path / "a.zarr", resume=True, chunks=(13, 17, 19))


@dataclass
class Counted:
    """An array that counts the elements that are read."""

    array: Any
    n_read: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __getitem__(self, box: Any) -> Any:
        values = self.array[box]
        self.n_read += values.size
        return values

    def stored_chunks(self, within: Any = None) -> Any:
        return stored_chunks(self.array, within)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("chunks", [(13, 17, 19), (31, 3, 37), (2, 3, 5), (7, 5, 101)])
def test_few_elements_are_read_of_copies_in_other_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: tuple[int, ...]
) -> None:
    """Boxes follow the chunks of both sides, so that they cover little else."""
    random = np.random.default_rng(7)
    grid = [n // b for n, b in zip(SHAPE, BLOCK, strict=True)]
    places = random.integers(0, grid, (83, 3))
    corners = places * BLOCK
    for name, sizes in (("a.n5", BLOCK), ("b.n5", chunks)):
        array: Any = n5zarr.create_array(tmp_path / name, shape=SHAPE, chunks=sizes, dtype="u1")
        for corner in corners.tolist():
            box = tuple(slice(c, c + b) for c, b in zip(corner, BLOCK, strict=True))
            array[box] = 1 + corner[0] % 251
    ends = corners + BLOCK - 1
    each = np.prod(ends // chunks - corners // chunks + 1, axis=1)
    n_stored = len(places) * math.prod(BLOCK) + int(each.sum()) * math.prod(chunks)
    for names in (("a.n5", "b.n5"), ("b.n5", "a.n5")):
        one, other = (Counted(n5zarr.open_array(tmp_path / name)) for name in names)
        assert n5zarr.compare_arrays(one, other, n_workers=1) is None
        assert max(one.n_read, other.n_read) < 4 * n_stored


def planned(source: Path, out: Path, layout: Layout, size: TaskSize) -> Any:
    destination = open_destination(place_of(out), None)
    (copy,) = plan_copies(n5_tree(place_of(source)), destination, layout, size)
    return copy


def test_verification_reads_few_elements_of_copies_in_other_chunks(tmp_path: Path) -> None:
    big, small = (31, 37, 41), (17, 19, 23)
    array: Any = n5zarr.create_array(tmp_path / "a.n5", shape=SHAPE, chunks=big, dtype="u1")
    for number in range(83):
        starts = zip(np.multiply(big, 29 * number), big, strict=True)
        array[tuple(slice(p, p + b) for p, b in starts)] = 1
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.n5", chunks=small)
    layout, size = Layout.of(small, None, None), TaskSize(2**23, 2**25)
    copy = planned(tmp_path / "a.n5", tmp_path / "b.n5", layout, size)
    per_chunk = math.prod(-(-b // s) + 1 for b, s in zip(big, small, strict=True))
    n_stored = 83 * (math.prod(big) + per_chunk * math.prod(small))
    assert sum(task.n_bytes for task in copy.comparisons()) < 4 * n_stored


def test_other_fill_values_differ_everywhere_else(tmp_path: Path) -> None:
    source = make(tmp_path / "v.n5")
    n5zarr.convert(tmp_path / "v.n5", tmp_path / "a.zarr")
    document = tmp_path / "a.zarr/v/s0/zarr.json"
    members = json.loads(document.read_text())
    document.write_text(json.dumps(members | {"fill_value": 5}))
    copy: Any = zarr.open_array(tmp_path / "a.zarr", path="v/s0", mode="r")
    found: Any = n5zarr.compare_arrays(source, copy)
    n_stored = sum(math.prod(values_of(n).shape) for n in range(len(POSITIONS)))
    assert found.n_differing == math.prod(SHAPE) - n_stored
    # the first block covers the first 11 elements
    assert [e.position for e in found.elements] == [(0, 0, n) for n in range(11, 16)]
    assert {(e.first, e.second) for e in found.elements} == {(0, 5)}
    assert found.largest == 5
    assert n5zarr.compare_arrays(source, copy, tolerance=5) is None


def test_a_finished_copy_with_another_fill_value_is_no_copy(tmp_path: Path) -> None:
    """Verification notices another fill value by one element that neither side stores."""
    make(tmp_path / "v.n5")
    n5zarr.convert(tmp_path / "v.n5", tmp_path / "a.zarr", compression="zstd")
    layout, size = Layout.of(None, None, "zstd"), TaskSize(2**14, 2**20)
    copy = planned(tmp_path / "v.n5", tmp_path / "a.zarr", layout, size)
    verify_copies([copy], RunOptions(n_workers=1))
    other = zarr.create_array(MemoryStore(), shape=SHAPE, chunks=BLOCK, dtype="u1", fill_value=5)
    for number, position in enumerate(POSITIONS):
        other[box_of(position)] = values_of(number)
    object.__setattr__(copy, "target", replace(copy.target, array=other))
    with pytest.raises(n5zarr.N5Error, match="expected the values"):
        verify_copies([copy], RunOptions(n_workers=1))


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_smaller_shape_removes_stored_blocks_only(
    tmp_path: Path, zarr_format: int, asked: list[Any]
) -> None:
    make(tmp_path / "v.n5")
    store = N5Store(tmp_path / "v.n5", zarr_format=zarr_format)  # type: ignore[arg-type]
    array: Any = n5zarr.open(store, "r+", path="v/s0")
    assert array.nchunks_initialized == len(POSITIONS)
    array.resize((50_009, 99_991, 50_006))
    kept = {p for p in POSITIONS if p[0] <= 50_008 // 7 and p[2] <= 50_005 // 11}
    assert blocks_in(tmp_path / "v.n5/v/s0") == kept
    n_removed = sum(isinstance(request, Remove) for request in asked)
    assert n_removed == len(POSITIONS) - len(kept)
    assert array.shape == (50_009, 99_991, 50_006)
    assert array.nchunks_initialized == len(kept)
    array.resize(SHAPE)
    assert not array[box_of(POSITIONS[3])].any()


def test_tools_for_one_dataset(tmp_path: Path) -> None:
    array = make(tmp_path / "v.n5")
    path = tmp_path / "v.n5/v/s0"
    data = [values_of(n) for n in range(len(POSITIONS))]
    found = n5zarr.block_statistics(path, n_blocks=None)
    assert (found.n_stored, found.n_read) == (5, 5)
    assert found.n_elements == sum(d.size for d in data)
    assert n5zarr.block_statistics(path, n_blocks=2).n_read == 2
    assert array.info_complete()["n_blocks_stored"] == 5
    assert n5zarr.remove_empty_blocks(path, dry_run=True).n_blocks == 5
    assert n5zarr.validate(path).n_blocks == 5
    assert n5zarr.virtualize(path, tmp_path / "r.json").n_referenced == 3  # others are truncated
    box = (slice(0, 60_000), slice(0, SHAPE[1]), slice(0, SHAPE[2]))
    assert n5zarr.download(path, tmp_path / "b.n5", box=box).n_blocks == 4
    assert n5zarr.repair_edges(path, to="pad").n_rewritten == 2
    n5zarr.rechunk(path, chunks=(14, 10, 22))
    assert_copied(n5zarr.open(path))


def test_a_pyramid_has_the_blocks_below_stored_ones(tmp_path: Path) -> None:
    make(tmp_path / "v.n5")
    n5zarr.build_pyramid(tmp_path / "v.n5/v", levels=1)
    level: Any = n5zarr.open(tmp_path / "v.n5/v/s1")
    for number, position in enumerate(POSITIONS[:3]):
        starts = [part.start for part in box_of(position)]
        whole = tuple(slice(s + s % 2, s + s % 2 + 4) for s in starts)
        inner = tuple(slice(s % 2, s % 2 + 4) for s in starts)
        expected = values_of(number)[inner].reshape(2, 2, 2, 2, 2, 2).mean((1, 3, 5))
        at = tuple(slice(part.start // 2, part.stop // 2) for part in whole)
        assert np.abs(level[at] - expected).max() <= 0.5
    assert len(blocks_in(tmp_path / "v.n5/v/s1")) <= 8 * len(POSITIONS)


def test_a_picture_shows_the_stored_blocks_of_its_slices(tmp_path: Path) -> None:
    make(tmp_path / "v.n5")
    store = N5Store(LocalStore(tmp_path / "v.n5"))
    position = tuple(part.start for part in box_of(POSITIONS[1]))
    drawn = n5zarr.thumbnail(store, position=position, size=300)
    black = n5zarr.thumbnail(store, position=[n // 3 for n in SHAPE], size=300)
    assert np.asarray(drawn).astype(int).sum() > np.asarray(black).astype(int).sum()


def test_contrast_is_that_of_stored_chunks(tmp_path: Path) -> None:
    """Contrast limits come from stored chunks, where a sample of the grid would find none."""
    array = n5zarr.create_array(tmp_path / "w.n5/w", shape=SHAPE, chunks=BLOCK, dtype="u2")
    array[box_of(POSITIONS[1])] = 300 + values_of(1).astype("u2")
    (image,) = find_images(tmp_path / "w.n5")
    low, high = contrast_limits(image)
    assert 300 < low < high <= 500


def test_ome_zarr_on_request_has_stored_chunks(tmp_path: Path) -> None:
    make(tmp_path / "v.n5")
    n5zarr.set_geometry(tmp_path / "v.n5", "v/s0", names=["z", "y", "x"])
    ome = OmeZarrKeys(open_images(tmp_path / "v.n5"))
    (path,) = {key.removesuffix("/s0/zarr.json") for key in ome.documents if "s0" in key}
    near = {tuple(n + 1 for n in position) for position in POSITIONS}
    found = {p for p in near | set(POSITIONS)
             if ome.read("/".join([path, "s0/c", *map(str, p)])) is not None}  # fmt: skip
    assert found == set(POSITIONS)


def test_chunks_of_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", SHAPE, "u1", chunks=BLOCK, fillvalue=3)
        for number, position in enumerate(POSITIONS):
            made[box_of(position)] = values_of(number)
    with pytest.warns(N5Warning, match="fill value other than 0"):
        n5zarr.convert(tmp_path / "a.h5", tmp_path / "a.n5", verify=True)
    copy: Any = n5zarr.open(tmp_path / "a.n5/v")
    np.testing.assert_array_equal(copy[box_of(POSITIONS[2])], values_of(2))
    assert copy[99, 99, 99] == 3


def test_axes_in_another_order(tmp_path: Path) -> None:
    """A sparse dataset with channels last becomes OME-Zarr with channels first."""
    array = n5zarr.create_array(
        tmp_path / "v.n5/v", shape=(*SHAPE[:2], 3), chunks=(7, 5, 2), dtype="u1", axes="yxc"
    )
    values = np.random.default_rng(1).integers(1, 200, (7, 5, 2), "u1")
    array[50_008:50_015, 49_995:50_000, :2] = values
    n5zarr.convert(tmp_path / "v.n5", tmp_path / "o.zarr", ome=True, verify=True)
    (chunks,) = (tmp_path / "o.zarr").rglob("c")
    turned: Any = zarr.open_array(chunks.parent, mode="r")
    assert turned.shape == (3, *SHAPE[:2])
    found = turned[:2, 50_008:50_015, 49_995:50_000]
    np.testing.assert_array_equal(found, values.transpose(2, 0, 1))


def test_listing_asks_once_for_each_directory(tmp_path: Path, asked: list[Any]) -> None:
    array = make(tmp_path / "v.n5")
    asked.clear()
    assert n5zarr.compare_arrays(array, array) is None
    n_directories = 1 + len({p[2] for p in POSITIONS}) + len({p[1:] for p in POSITIONS})
    assert sum(isinstance(request, List) for request in asked) == 2 * n_directories


def test_time_points_of_bigdataviewer(tmp_path: Path) -> None:
    """One image has them along its first axis; each has its own blocks, or none."""
    for time, position in ((0, POSITIONS[1]), (2, POSITIONS[3])):
        array = n5zarr.create_array(
            tmp_path / "v.n5", path=f"setup0/timepoint{time}/s0", shape=SHAPE, chunks=BLOCK,
            dtype="u2",
        )  # fmt: skip
        array[box_of(position)] = 300 + 1000 * time
    xml, size = tmp_path / "v.xml", " ".join(map(str, SHAPE[::-1]))
    xml.write_text(f"""<SpimData version="0.2"><BasePath type="relative">.</BasePath>
        <SequenceDescription><ImageLoader format="bdv.n5" version="1.0"><n5>v.n5</n5></ImageLoader>
        <ViewSetups><ViewSetup><id>0</id><size>{size}</size></ViewSetup></ViewSetups>
        <Timepoints type="range"><first>0</first><last>2</last></Timepoints>
        <MissingViews><MissingView timepoint="1" setup="0" /></MissingViews>
        </SequenceDescription></SpimData>""")
    (image,) = find_images(xml)
    (level,) = image.levels
    t = image.axes.index(next(axis for axis in image.axes if axis.type == "time"))
    assert level.shape[t] == 3
    found = stored_chunks(level.values)
    assert found is not None
    assert found.unit[t] == 1
    units = [tuple(row) for rows in found.rows for row in rows.tolist()]
    assert units == [(0, *POSITIONS[1]), (2, *POSITIONS[3])]
    within = [slice(1, 3), *(slice(0, n) for n in SHAPE)]
    later = stored_chunks(level.values, within)
    assert later is not None
    z, y, x = box_of(POSITIONS[3])
    assert [*later.parts_of(within)] == [(slice(2, 3), z, y, x)]
    nothing = stored_chunks(level.values, [slice(1, 2), *within[1:]])
    assert nothing is not None
    assert [*nothing.rows] == []
    assert contrast_limits(image)[1] == pytest.approx(2300, rel=0.01)
