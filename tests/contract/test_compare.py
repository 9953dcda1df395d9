"""``compare`` and ``n5zarr diff`` find copies equal, and find planted changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from tests.command import printed

SAMPLE = Path(n5zarr.sample_path())
JAVA = Path(__file__).parents[1] / "data" / "java"


@pytest.fixture(scope="module", params=[2, 3], ids=["v2", "v3"])
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the sample to plain Zarr with zarr."""
    path = tmp_path_factory.mktemp("copied") / "sample.zarr"
    source = zarr.open_group(N5Store(SAMPLE, zarr_format=request.param), mode="r")
    target = zarr.open_group(path, mode="w", zarr_format=request.param)
    for name, node in sorted(source.members(max_depth=None)):
        if isinstance(node, zarr.Array):
            attributes = node.attrs.asdict()
            zarr.from_array(
                target.store, name=name, data=node, zarr_format=request.param,
                chunks=(14, 22, 26), attributes=attributes,
            )  # fmt: skip
        else:
            target.create_group(name, attributes=node.attrs.asdict())
    return path


@pytest.mark.long
def test_copies_are_equal_in_either_order(copied: Path) -> None:
    for sides in ((SAMPLE, copied), (copied, SAMPLE), (copied, copied)):
        found = n5zarr.compare(*sides)
        assert found.is_equal, found
        assert (found.n_groups, found.n_arrays, found.n_elements) == (3, 4, 1052160)
    assert n5zarr.compare(SAMPLE / "em" / "s2", copied / "em" / "s2").n_elements == 7680
    opened = n5zarr.open(SAMPLE), zarr.open_group(copied, mode="r")
    assert n5zarr.compare(*opened, values=False).is_equal


@pytest.mark.each_of(2)
def test_each_kind_of_difference_is_found(copied: Path, tmp_path: Path) -> None:
    root = tmp_path / "a.zarr"
    shutil.copytree(copied, root)
    group = zarr.open_group(root, mode="r+")
    s0: Any = group["em/s0"]
    s0[1, 2, 3] = s0[1, 2, 3] + 1
    s0.attrs["transform"] = {**s0.attrs["transform"], "scale": [20.0, 8.0, 9.0]}
    group["em"].attrs["a/b"] = 1
    del group["em/s1"]
    group.create_group("em/s1")
    del group["labels"]
    data: Any = zarr.open_array(N5Store(SAMPLE), path="em/s2", mode="r")[...]
    del group["em/s2"]
    group.create_array("em/s2", data=data.astype("u2"))
    found = n5zarr.compare(SAMPLE, root)
    assert not found.is_equal
    seen = [(d.path, d.what, d.key, d.first, d.second) for d in found.differences]
    s2 = [entry for entry in seen if entry[0] == "em/s2"]
    assert [entry for entry in seen if entry[0] != "em/s2"] == [
        ("em", "attribute", "a\\/b", None, 1),
        ("em/s0", "attribute", "transform/scale", [20.0, 8.0, 8.0], [20.0, 8.0, 9.0]),
        ("em/s1", "kind", "", "array", "group"),
        ("labels", "missing", "", "group", None),
        ("em/s0", "values", "", None, None),
    ]
    # of s2 only the type and the attributes differ: its values are the same numbers
    assert ("em/s2", "data-type", "", "uint8", "uint16") in s2
    assert {entry[1] for entry in s2} == {"data-type", "attribute"}
    values = found.differences[-1].values
    assert values is not None
    assert (values.n_differing, values.largest) == (1, 1)
    assert values.elements[0].position == (1, 2, 3)
    no = n5zarr.compare(SAMPLE, root, attributes=False, values=False)
    assert {d.what for d in no.differences} == {"data-type", "kind", "missing"}
    within = n5zarr.compare(SAMPLE, root, attributes=False, tolerance=1)
    assert "values" not in {d.what for d in within.differences}


def test_axes_are_the_same_in_any_convention(tmp_path: Path) -> None:
    places = {"cosem": tmp_path / "a.n5", "ngff": tmp_path / "b.n5"}
    for place in places.values():
        for name, shape in {"s0": (7, 11, 13), "s1": (5, 7, 11)}.items():
            n5zarr.create_array(place, path=f"em/{name}", shape=shape, dtype="u1")
    geometry: dict[str, Any] = {"names": "zyx", "units": ["nm"] * 3, "scale": [4, 3, 2]}
    for convention, place in places.items():
        n5zarr.set_geometry(place, "em/s0", convention=convention, **geometry)
    assert n5zarr.compare(*places.values(), attributes=False).is_equal
    n5zarr.set_geometry(places["cosem"], "em/s0", convention="cosem", translation=[0, 0, 1])
    (moved,) = n5zarr.compare(*places.values(), attributes=False).differences
    assert (moved.what, moved.key, moved.second) == ("axes", "translation", [0.0, 0.0, 0.0])
    assert moved.first == [0.0, 0.0, 1.0]


def test_data_that_cannot_be_compared_is_a_problem() -> None:
    found = n5zarr.compare(JAVA / "varlen.n5", JAVA / "varlen.n5", values=False)
    assert not found.is_equal
    assert not found.differences
    assert "expected numbers or strings, got 'object'" in str(found.problems[0])
    with pytest.raises(FileNotFoundError, match=r"no\.n5 does not exist"):
        n5zarr.compare(JAVA / "varlen.n5", JAVA / "no.n5")


def test_the_command(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "a.n5")
    assert printed("diff", SAMPLE, tmp_path / "a.n5") == (
        "equal: 3 groups and 4 arrays compared, 1052160 elements\n"
    )
    array: Any = n5zarr.open(tmp_path / "a.n5", "r+", path="em/s2")
    value = int(array[9, 23, 31])
    array[9, 23, 31] = 255 - value
    assert printed("diff", SAMPLE, tmp_path / "a.n5", "--n-workers", 2, status=1).splitlines() == [
        f"/em/s2: values: 1 of 7680 differ (0.00013), by at most {abs(255 - 2 * value)}",
        f"  [9, 23, 31]: {value}, then {255 - value}",
        "1 difference: 3 groups and 4 arrays compared, 1052160 elements",
    ]
    assert not json.loads(printed("diff", SAMPLE, tmp_path / "a.n5", "--json", status=1))[
        "is_equal"
    ]
    assert "got 'object'" in printed(
        "diff", JAVA / "varlen.n5", JAVA / "varlen.n5", "--no-values", status=2
    )
    assert "did you mean" in printed("diff", SAMPLE, tmp_path / "b.n5", status=2)


def test_the_command_tells_how_documents_differ(tmp_path: Path) -> None:
    for name, shape, dtype in (("a.n5", (7, 5), "u1"), ("b.n5", (7, 3), "i2")):
        n5zarr.create_array(tmp_path / name, path="x", shape=shape, dtype=dtype)
    notes: dict[str, Any] = {"a.n5": "z" * 99, "b.n5": ["é", 1]}
    for name, note in notes.items():
        zarr.open_group(N5Store(tmp_path / name)).attrs["note"] = note
    lines = printed("diff", tmp_path / "a.n5", tmp_path / "b.n5", status=1).splitlines()
    assert f'/: attribute note: "{"z" * 56}..., then ["é", 1]' in lines
    assert "/x: shape: [7, 5], then [7, 3]" in lines
    assert '/x: data type: "uint8", then "int16"' in lines


def test_arrays_and_groups_of_zarr_are_sides_as_they_are(tmp_path: Path) -> None:
    """Opened by zarr, in memory; of equal numbers, true is not 1."""
    n5zarr.create_array(tmp_path / "a.n5", path="a", data=np.ones((7, 5), "u2"))
    other = zarr.open_group(MemoryStore(), mode="w")
    other.create_array("a", data=np.ones((7, 5), "u2"))
    assert n5zarr.compare(tmp_path / "a.n5", other).is_equal
    assert n5zarr.compare(tmp_path / "a.n5/a", other["a"]).is_equal
    other.attrs["flag"] = True
    n5zarr.set_attribute(tmp_path / "a.n5", "", "flag", 1)
    found = n5zarr.compare(tmp_path / "a.n5", other)
    assert [(each.what, each.key, each.first, each.second) for each in found.differences] == [
        ("attribute", "flag", 1, True)
    ]
