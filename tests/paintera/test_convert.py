"""Arrays of integers become label sources of Paintera.

The groups and attributes are those of paintera-conversion-helper 4c10b82
(``DatasetConverterLabel``) and label-utilities-spark bb066da (``ConvertToLabelMultisetType``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5Error, N5UnrepresentableError, N5Warning
from tests.command import printed
from tests.multisets import random_voxels, voxels_of
from tests.unit.codecs.test_multisets import made

LABELS = np.random.default_rng(7).integers(0, 2**40, (5, 7, 11))
LABELS[:, :3] = 0


def attributes_of(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((path / "attributes.json").read_text())
    return document


@pytest.fixture
def source(tmp_path: Path) -> Path:
    where = tmp_path / "source.n5"
    n5zarr.create_array(
        where / "volumes/neurons", data=LABELS, chunks=(2, 3, 4), axes="zyx", units=["nm"] * 3,
        resolution=[40, 5, 4], offset=[3, 2, 1],
    )  # fmt: skip
    n5zarr.create_array(where / "em", data=LABELS.astype("f4"), chunks=(2, 3, 4))
    n5zarr.set_attribute(where, "volumes", "made by", "hand")
    return where


def check(where: Path, labels: np.ndarray) -> None:
    """Check a label source, whose voxels hold one label each."""
    top, data, s0 = map(attributes_of, (where, where / "data", where / "data/s0"))
    assert [each["maxId"] for each in (top, data, s0)] == [int(labels.max())] * 3
    assert top["painteraData"] == {"type": "label"}
    assert data["multiScale"] is data["isLabelMultiset"] is s0["isLabelMultiset"] is True
    assert (s0["dataType"], s0["dimensions"]) == ("uint8", [11, 7, 5])
    multisets = n5zarr.read_label_multisets(where / "data/s0")
    expected = {p: {int(labels[p]): 1} for p in np.ndindex(labels.shape)}
    assert voxels_of(multisets) == expected


def test_a_container_gets_a_label_source(source: Path, tmp_path: Path) -> None:
    done = n5zarr.convert(source, tmp_path / "x.n5", paintera_labels="volumes/neurons", verify=True)
    assert {array.path: array.way for array in done.arrays} == {
        "em": "blocks",
        "volumes/neurons/data/s0": "values",
    }
    check(tmp_path / "x.n5/volumes/neurons", LABELS)
    data = attributes_of(tmp_path / "x.n5/volumes/neurons/data")
    assert (data["resolution"], data["offset"]) == ([4.0, 5.0, 40.0], [1.0, 2.0, 3.0])
    assert attributes_of(tmp_path / "x.n5/volumes")["made by"] == "hand"
    found = n5zarr.geometry(tmp_path / "x.n5/volumes/neurons/data/s0")
    assert (found.scale, found.translation) == ((40, 5, 4), (3, 2, 1))
    assert n5zarr.validate(tmp_path / "x.n5", deep=True).findings == ()
    n5zarr.build_pyramid(tmp_path / "x.n5/volumes/neurons/data", levels=1, factors=(1, 2, 2))
    totals = n5zarr.read_label_multisets(tmp_path / "x.n5/volumes/neurons/data/s1").totals()
    assert totals.max() == 4


def test_an_array_of_zarr_becomes_a_label_source(tmp_path: Path) -> None:
    labels = (LABELS % 251).astype("u1")
    zarr.create_array(tmp_path / "x.zarr", name="labels", data=labels, chunks=(3, 4, 5))
    n5zarr.convert(
        tmp_path / "x.zarr/labels", tmp_path / "x.n5/neurons", paintera_labels="*", chunks=(2, 4, 4)
    )
    check(tmp_path / "x.n5/neurons", labels)


def test_the_finest_level_of_a_pyramid_becomes_the_label_source(
    source: Path, tmp_path: Path
) -> None:
    n5zarr.convert(source / "volumes/neurons", tmp_path / "y.n5/labels/s0")
    n5zarr.build_pyramid(tmp_path / "y.n5/labels", levels=1)
    with pytest.raises(N5UnrepresentableError, match="expected the finest level s0, got labels/s1"):
        n5zarr.convert(tmp_path / "y.n5", tmp_path / "x.n5", paintera_labels="labels")
    assert not (tmp_path / "x.n5").exists()
    n5zarr.convert(tmp_path / "y.n5", tmp_path / "x.n5", paintera_labels="labels", level=0)
    check(tmp_path / "x.n5/labels", LABELS)


@pytest.mark.parametrize("group", ["metadata", "data", "a/data", "a/data/b", "data/data"])
def test_the_label_source_has_the_name_of_the_group(tmp_path: Path, group: str) -> None:
    n5zarr.create_array(tmp_path / "y.n5", path=f"{group}/s0", data=LABELS)
    n5zarr.convert(tmp_path / "y.n5", tmp_path / "x.n5", paintera_labels="*")
    names = {"metadata": "metadata", "data": "", "a/data": "a", "data/data": "data"}
    check(tmp_path / "x.n5" / names.get(group, group), LABELS)


def test_the_command_has_the_option(source: Path, tmp_path: Path) -> None:
    printed("convert", source, tmp_path / "x.n5", "--paintera-labels", "volumes/*")
    check(tmp_path / "x.n5/volumes/neurons", LABELS)


def test_a_finished_conversion_is_resumed(source: Path, tmp_path: Path) -> None:
    n5zarr.convert(source, tmp_path / "x.n5", paintera_labels="volumes/neurons")
    options: Any = {"paintera_labels": "volumes/neurons", "resume": True}
    assert n5zarr.convert(source, tmp_path / "x.n5", **options).verified


def write_two_labels(where: Path) -> None:
    """Write voxels that hold label 9 more often than 7."""
    n5zarr.create_array(where, shape=(2, 3), chunks=(2, 3), label_multiset=True, axes="yx")
    two = n5zarr.LabelMultisets([[0, 0, 0]] * 2, [0, 2], [7, 9], [3, 5])
    n5zarr.write_label_multisets(where, two)


def test_multisets_stay_multisets(tmp_path: Path) -> None:
    write_two_labels(tmp_path / "y.n5/a")
    n5zarr.convert(tmp_path / "y.n5", tmp_path / "x.n5", paintera_labels="a")
    assert n5zarr.read_label_multisets(tmp_path / "x.n5/a/data/s0")[1, 2] == {7: 3, 9: 5}
    assert attributes_of(tmp_path / "x.n5/a")["maxId"] == 9


@pytest.mark.parametrize(
    ("destination", "pattern", "message"),
    [
        ("x.n5", "nothing", "expected patterns of arrays, such as em, volumes/neurons"),
        ("x.n5", "em", "expected integers with 0 as background, got float32"),
        ("x.zarr", "volumes/neurons", "expected N5 as destination"),
    ],
)
def test_what_does_not_fit_is_an_error(
    source: Path, tmp_path: Path, destination: str, pattern: str, message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.convert(source, tmp_path / destination, paintera_labels=pattern)
    assert not (tmp_path / destination).exists()


@pytest.mark.parametrize(
    ("others", "patterns"),
    [
        (["a/data/s0"], ["a/s0"]),  # not chosen
        (["a/data/s0"], ["a/s0", "a/data/s0"]),
        (["a/data"], ["a/s0"]),  # the copy would lie inside of it
    ],
)
def test_no_array_takes_the_place_of_another(
    tmp_path: Path, others: list[str], patterns: list[str]
) -> None:
    for path in ["a/s0", *others]:
        n5zarr.create_array(tmp_path / "y.n5", path=path, data=LABELS)
    with pytest.raises(N5UnrepresentableError, match="expected no other array at a/data/s0"):
        n5zarr.convert(tmp_path / "y.n5", tmp_path / "x.n5", paintera_labels=patterns)
    assert not (tmp_path / "x.n5").exists()


def test_other_blocks_keep_all_labels(tmp_path: Path) -> None:
    where, voxels = tmp_path / "y.n5/a", random_voxels(np.random.default_rng(3), (5, 7, 11))
    n5zarr.create_array(where, shape=(5, 7, 11), chunks=(2, 3, 4), label_multiset=True)
    n5zarr.write_label_multisets(where, made(voxels, (5, 7, 11)))
    n5zarr.convert(where, tmp_path / "x.n5/a", chunks=(3, 2, 5), verify=True)
    assert voxels_of(n5zarr.read_label_multisets(tmp_path / "x.n5/a")) == voxels
    n5zarr.convert(where, tmp_path / "x.n5/a", chunks=(3, 2, 5), resume=True)
    some = n5zarr.LabelMultisets([[[0]]], [0, 2], [7, 9], [2, 3])
    n5zarr.write_label_multisets(tmp_path / "x.n5/a", some, start=(4, 6, 10))
    with pytest.raises(N5Error, match="expected the values of"):
        n5zarr.convert(where, tmp_path / "x.n5/a", chunks=(3, 2, 5), resume=True)
    n5zarr.rechunk(where, chunks=(4, 4, 4))
    assert attributes_of(where)["blockSize"] == [4, 4, 4]
    assert voxels_of(n5zarr.read_label_multisets(where)) == voxels


@pytest.mark.parametrize("options", [{}, {"to": "zarr2"}, {"ome": True}, {"coords": True}], ids=str)
def test_zarr_gets_the_most_frequent_labels(tmp_path: Path, options: dict[str, Any]) -> None:
    where = tmp_path / "y.n5"
    write_two_labels(where / "a")
    with pytest.warns(N5Warning, match=r"/a: Zarr gets the most frequent label of each voxel; a"):
        n5zarr.convert(where, tmp_path / "x.zarr", verify=True, **options)
    members: Any = zarr.open_group(tmp_path / "x.zarr", mode="r").members(None)
    [labels] = [a for _, a in members if getattr(a, "ndim", 0) == 2]
    assert (labels.dtype.name, labels[...].tolist()) == ("uint64", [[9] * 3] * 2)


def test_the_command_says_that_zarr_gets_the_most_frequent_labels(tmp_path: Path) -> None:
    write_two_labels(tmp_path / "y.n5/a")
    said = printed("convert", tmp_path / "y.n5", tmp_path / "x.zarr")
    assert "Zarr gets the most frequent label" in " ".join(said.split())
    assert "most frequent" not in printed("convert", tmp_path / "y.n5", tmp_path / "x.n5")
