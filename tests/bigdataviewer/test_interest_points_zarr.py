"""BigStitcher's interest points in Zarr are read by the rules of its source code.

multiview-reconstruction ``InterestPointsZarrStore`` and ``InterestPointsZarr`` (version 1.0.0 of
the format, commits 0311000c and 238f96ed, of 2026): layout, order of rows, columns, and which lists
come from N5. n5-zarr ``ZarrV3DatasetAttributes``: shapes are reversed, names of dimensions.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pytest
import zarr
from zarr.codecs import Crc32cCodec

import n5zarr
from n5zarr.errors import N5UnsupportedError
from tests.bigdataviewer.test_interest_points import rows, table
from tests.contract import bigstitcher as project

CHUNK, SHARD = 2, 6  # points
LABELS = ["beads", "a, b/µ", "split"]

# of each list, by time point, setup and label: id, x, y, z, and the values of two columns
POINTS: dict[tuple[int, int, str], list[tuple[int, float, float, float, float, float]]] = {
    (0, 0, "beads"): [(0, 1.5, 2.25, 1e-300, 7.5, -1), (2, 3, 4, 5, -1, -1), (5, 6, 7, 8, 0, -1)],
    (0, 4, "split"): [],
    (2, 1, "a, b/µ"): [(2_000_000_000, 0.1, 0.2, 0.3, -1, 3), (13, -4, 1 / 3, 99, -1, 4)],
    (11, 3, "beads"): [(n, n / 7, n, -n, -1, -1) for n in range(1, 14, 2)],
}
COLUMNS = ["intensity", "width_2.5"]
# of each pair of lists, the smaller one first: id, id of the other, consensus set
PAIRS = {
    ((0, 0, "beads"), (2, 1, "a, b/µ")): [(0, 13, -1), (5, 2_000_000_000, 7)],
    ((0, 0, "beads"), (11, 3, "beads")): [(2, 1, 0), (5, 3, 0), (0, 9, 1)],
}


def write_array(root: Path, path: str, values: np.ndarray[Any, Any], *, shards: bool) -> None:
    """Write an array as n5-zarr does: raw with a checksum, in shards or as one chunk."""
    width = values.shape[1]
    zarr.create_array(
        str(root), name=path, data=values, compressors=[Crc32cCodec()], fill_value=0,
        chunks=(CHUNK, width) if shards else (max(1, len(values)), width),
        shards=(SHARD, width) if shards else None, dimension_names=["dim_1", "dim_0"],
    )  # fmt: skip


def write_store(
    folder: Path, points: Any = POINTS, pairs: Any = PAIRS, generation: int = 3
) -> Path:
    """Write ``interestpoints.zarr`` in its third generation, whose points start at the fifth."""
    root = folder / "interestpoints.zarr"
    number = {label: n for n, label in enumerate(LABELS)}

    def key(of: tuple[int, int, str]) -> list[int]:
        return [of[0], of[1], number[of[2]]]

    stored: list[Any] = [(99, 9, 9, 9, 9, 9)] * 5  # no list uses them any more
    entries = []
    for of in sorted(points, reverse=True):  # appended in another order
        entries.append([*key(of), len(stored), len(points[of])])
        stored += points[of]
    data: list[tuple[int, int, int]] = []
    others: dict[tuple[int, int, str], list[Any]] = {of: [] for of in sorted(points)}
    for (one, other), each in pairs.items():
        others[one].append([*key(other), len(data), len(each), 0])
        others[other].append([*key(one), len(data), len(each), 1])
        data += each
    views: list[list[int]] = []
    listed: list[list[int]] = []
    for of, with_of in others.items():
        views.append([*key(of), len(listed), len(with_of)])
        listed += with_of
    attributes = {
        "interestpoints": "1.0.0", "generation": generation, "labels": LABELS,
        "pointsData": "points/g2", "corrData": "correspondences/g3", "chunkPoints": CHUNK,
        "shardPoints": SHARD, "pointAttributes": COLUMNS,
    }  # fmt: skip
    zarr.create_group(str(root), attributes=attributes)
    index = f"index/g{generation}"
    for name, cells, width in (("entries", entries, 5), ("views", views, 5), ("pairs", listed, 6)):
        table = np.array(cells, "i8").reshape(-1, width)
        write_array(root, f"{index}/{name}", table, shards=False)
    values = np.array(stored, "f8")
    write_array(root, "points/g2/id", values[:, :1].astype("i4"), shards=True)
    write_array(root, "points/g2/loc", values[:, 1:], shards=True)
    write_array(root, "correspondences/g3/data", np.array(data, "i4").reshape(-1, 3), shards=True)
    return root


def write_xml(folder: Path, lists: Iterable[tuple[int, int, str]]) -> Path:
    entries = "".join(
        f'<ViewInterestPointsFile timepoint="{t}" setup="{s}" label="{label}" params="DOG">'
        f"tpId_{t}_viewSetupId_{s}/{label}</ViewInterestPointsFile>"
        for t, s, label in lists
    )
    xml = folder / "dataset.xml"
    xml.write_text(project.project_xml(f"<ViewInterestPoints>{entries}</ViewInterestPoints>"))
    return xml


def test_lists_are_read_from_zarr(tmp_path: Path) -> None:
    write_store(tmp_path)
    found = n5zarr.read_interest_points(write_xml(tmp_path, POINTS))
    assert list(found.points) == ["timepoint", "setup", "label", "id", "x", "y", "z", *COLUMNS]
    places = [row[:7] for row in rows(found.points)]
    assert places == [(*of, *p[:4]) for of, points in POINTS.items() for p in points]
    dtypes = {"id": "int64", "x": "float64", "intensity": "float64"}
    assert {name: str(found.points[name].dtype) for name in dtypes} == dtypes
    by_list = found.points.set_index(["timepoint", "setup"])
    assert by_list.loc[(0, 0), "intensity"].tolist() == [7.5, -1, 0]
    assert by_list.loc[(0, 0), "width_2.5"].isna().all()  # the list has no such column
    assert by_list.loc[(2, 1), "width_2.5"].tolist() == [3, 4]
    assert by_list.loc[(11, 3), COLUMNS].isna().all(axis=None)
    assert list(rows(found.lists)) == [(*of, "DOG") for of in POINTS]
    assert list(rows(found.correspondences)) == [
        (0, 0, "beads", 0, 2, 1, "a, b/µ", 13, -1),
        (0, 0, "beads", 5, 2, 1, "a, b/µ", 2_000_000_000, 7),
        (0, 0, "beads", 2, 11, 3, "beads", 1, 0),
        (0, 0, "beads", 5, 11, 3, "beads", 3, 0),
        (0, 0, "beads", 0, 11, 3, "beads", 9, 1),
        (2, 1, "a, b/µ", 13, 0, 0, "beads", 0, -1),
        (2, 1, "a, b/µ", 2_000_000_000, 0, 0, "beads", 5, 7),
        (11, 3, "beads", 1, 0, 0, "beads", 2, 0),
        (11, 3, "beads", 3, 0, 0, "beads", 5, 0),
        (11, 3, "beads", 9, 0, 0, "beads", 0, 1),
    ]


def test_the_container_lists_itself(tmp_path: Path) -> None:
    root = write_store(tmp_path)
    every = n5zarr.read_interest_points(root)
    assert list(rows(every.lists)) == [(*of, "") for of in POINTS]
    named = n5zarr.read_interest_points(write_xml(tmp_path, POINTS))
    pd.testing.assert_frame_equal(every.points, named.points)
    pd.testing.assert_frame_equal(every.correspondences, named.correspondences)
    one = n5zarr.read_interest_points(root, label="a, b/µ")
    assert len(one.points) == len(one.correspondences) == 2
    shutil.copytree(root, tmp_path / "unnamed")
    assert len(n5zarr.read_interest_points(tmp_path / "unnamed").lists) == len(POINTS)


def test_a_server_has_them(tmp_path: Path) -> None:
    write_store(tmp_path)
    write_xml(tmp_path, POINTS)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/interest-points-zarr", recursive=True)
    found = n5zarr.read_interest_points("memory://interest-points-zarr/dataset.xml")
    here = n5zarr.read_interest_points(tmp_path / "dataset.xml")
    pd.testing.assert_frame_equal(found.points, here.points)


def test_other_lists_are_read_from_n5(tmp_path: Path) -> None:
    """``InterestPointsZarr.loadInterestPoints``: from the store, else from the legacy group."""
    in_n5 = {0: (1.0, 2.0, 3.0)}
    container = tmp_path / "interestpoints.n5"
    project.write_list(container, "tpId_0_viewSetupId_0/beads", in_n5)  # an old version
    project.write_list(container, "tpId_5_viewSetupId_1/beads", in_n5, [(0, 2, "0,0,beads", 4)])
    write_store(tmp_path)
    xml = write_xml(tmp_path, [(0, 0, "beads"), (5, 1, "beads")])
    found = n5zarr.read_interest_points(xml)
    assert found.points["id"].tolist() == [0, 2, 5, 0]
    assert list(rows(found.correspondences))[-1] == (5, 1, "beads", 0, 0, 0, "beads", 2, 4)
    xml = write_xml(tmp_path, [(0, 0, "beads"), (5, 2, "beads")])
    places = r"interestpoints\.zarr or .*interestpoints\.n5: expected .* at tpId_5_viewSetupId_2"
    with pytest.raises(FileNotFoundError, match=places):
        n5zarr.read_interest_points(xml)


def test_new_lists_are_written_where_bigstitcher_looks(tmp_path: Path) -> None:
    root = write_store(tmp_path)
    xml = write_xml(tmp_path, POINTS)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(n5zarr.N5Error, match=r"BigStitcher reads .*tpId_0.*/beads.* from there"):
        n5zarr.write_interest_points(xml, table(0, 0, "beads", {3: (1, 2, 3)}), overwrite=True)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    n5zarr.write_interest_points(xml, table(0, 0, "mine", {3: (1, 2, 3)}))
    found = n5zarr.read_interest_points(xml)
    assert len(found.points) == sum(map(len, POINTS.values())) + 1
    assert len(n5zarr.read_interest_points(root).lists) == len(POINTS)


def test_what_is_not_in_the_arrays_yet_is_refused(tmp_path: Path) -> None:
    """``writeStagingFile``: a magic number, a version and entries; newer than the arrays."""
    root = write_store(tmp_path)
    xml = write_xml(tmp_path, POINTS)
    staging = root / "staging"
    staging.mkdir()
    assert len(n5zarr.read_interest_points(xml).lists) == len(POINTS)
    name = "0001790000000_0000000000000001_00000001.stage"
    (staging / name).write_bytes(struct.pack(">iii", 0x49505354, 2, 0))
    with pytest.raises(N5UnsupportedError, match="not moved into its arrays yet; open the"):
        n5zarr.read_interest_points(xml)


def change_attributes(root: Path, **change: Any) -> None:
    document = json.loads((root / "zarr.json").read_text())
    document["attributes"] |= change
    (root / "zarr.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interestpoints": "2.0.0"}, "interestpoints: expected BigStitcher's version 1, got '2.0"),
        ({"generation": None}, "generation: expected a whole number, got None"),
        ({"generation": 4}, "index/g4/entries: expected an array that the attributes of the root"),
        ({"pointsData": "../g2"}, "expected paths of groups, got '../g2'"),
        ({"labels": ["beads"]}, "expected the number of one of 1 labels"),
        ({"labels": ["a", "a", "b"]}, "labels: expected a list of different names"),
        ({"pointAttributes": ["intensity"]}, r"points/g2/loc: expected N x 4 of f8, got .17, 5"),
    ],
)
def test_damage_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    root = write_store(tmp_path)
    change_attributes(root, **change)
    with pytest.raises(n5zarr.N5Error, match=message):
        n5zarr.read_interest_points(root)
    with pytest.raises(n5zarr.N5Error, match=message):
        n5zarr.read_interest_points(write_xml(tmp_path, POINTS))


def test_rows_that_are_not_there_are_named(tmp_path: Path) -> None:
    root = write_store(tmp_path)
    zarr.open_array(str(root), path="index/g3/entries")[1, 4] = 10_000
    with pytest.raises(n5zarr.N5Error, match="expected some of 17 rows, got '10000 from"):
        n5zarr.read_interest_points(root)


def test_a_store_without_pairs_or_points(tmp_path: Path) -> None:
    root = write_store(tmp_path, {(0, 0, "beads"): []}, {})
    found = n5zarr.read_interest_points(root)
    assert (len(found.points), len(found.correspondences), len(found.lists)) == (0, 0, 1)


def test_a_hierarchy_of_other_data_is_none(tmp_path: Path) -> None:
    zarr.create_group(str(tmp_path / "interestpoints.zarr"))
    with pytest.raises(FileNotFoundError, match="expected a list of interest points at tpId_0"):
        n5zarr.read_interest_points(write_xml(tmp_path, POINTS))
