"""Descriptions become lines of text."""

from __future__ import annotations

from typing import Any

import pytest

from n5zarr import N5Store
from n5zarr.store.info import Info, bytes_text, counted, names_of_axes, ranges, read_version, rows
from tests.unit.store.made import memory

GROUP: dict[str, Any] = {"kind": "group", "n5": None, "children": [], "n_children": 0}
ARRAY: dict[str, Any] = {
    "kind": "array", "n5": "4.0.0", "shape_c": (5, 7), "dimensions_n5": (7, 5), "geometry": None,
    "axes_c": None, "shown_as": "uint16", "data_type": "uint16", "compression": {"type": "raw"},
    "chunk_shape_c": (2, 3), "block_size_n5": (3, 2), "n_blocks": 9, "grid_n5": (3, 3),
}  # fmt: skip
LINES = {
    "kind": "array", "N5 version": "4.0.0", "shape, C order": "(5, 7)",
    "dimensions, N5 order": "[7, 5]", "data type": "uint16", "compression": '{"type": "raw"}',
    "chunk shape, C order": "(2, 3)", "block size, N5 order": "[3, 2]",
    "blocks": "9; grid [3, 3] in N5 order",
}  # fmt: skip
STORED = {"n_blocks_stored": 9, "n_bytes": 2048, "n_bytes_stored": 512}
AXIS = {"name": "x", "scale": 0.5, "unit": "nm", "translation": 0}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {}),
        ({"axes_c": ("y", None)}, {"shape, C order": "(5, 7) y, ?"}),
        ({"shown_as": "bool"}, {"data type": "bool (stored as uint16)"}),
        (STORED, {"blocks": "9, 9 stored; grid [3, 3] in N5 order", "size as array": "2.0 KiB",
                  "size on disk": "512 B, 25.0%"}),
        ({**STORED, "n_blocks_stored": 8}, {"blocks": "9, 8 stored; grid [3, 3] in N5 order",
                                            "size as array": "2.0 KiB", "size on disk": "512 B"}),
        ({**STORED, "n_blocks": 0, "n_blocks_stored": 0},
         {"blocks": "0, 0 stored; grid [3, 3] in N5 order", "size as array": "2.0 KiB",
          "size on disk": "512 B"}),
        ({**STORED, "n_bytes": 0}, {"blocks": "9, 9 stored; grid [3, 3] in N5 order",
                                    "size as array": "0 B", "size on disk": "512 B"}),
        ({**STORED, "n_blocks": 1, "n_blocks_stored": 1},
         {"blocks": "1, 1 stored; grid [3, 3] in N5 order", "size as array": "2.0 KiB",
          "size on disk": "512 B, 25.0%"}),
        ({"geometry": {"axes_n5": [AXIS], "convention": "cellmap"}},
         {"axes, N5 order": "x 0.5 nm  (cellmap)"}),
        ({"geometry": {"axes_n5": [{**AXIS, "translation": 1.5, "unit": None},
                                   {**AXIS, "name": None, "unit": "s"}], "convention": "n"}},
         {"axes, N5 order": "x 0.5 from 1.5, ? 0.5 s  (n)"}),
        ({"axes_problems": ["bad"]}, {"axes, not understood": "bad"}),
        ({"damaged_blocks": [1, 2]}, {"damaged blocks": "2"}),
        ({"store_type": "A", "zarr_format": None, "codecs": "n5", "read_only": False},
         {"store type": "A", "Zarr format": "per node", "codecs": "n5", "read only": "False"}),
        ({"backend": "b", "axis_order": "C", "chunk_grid": "r", "coords": True, "durability": "d"},
         {"backend": "b", "axis order": "C", "chunk grid": "r", "coords": "True",
          "durability": "d"}),
    ],
)  # fmt: skip
def test_the_lines_of_an_array(changed: Any, expected: dict[str, str]) -> None:
    assert dict(rows({**ARRAY, **changed})) == {**LINES, **expected}


NAMES = [f"n{i:02}" for i in range(22)]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"children": "none", "by kind": "0 nodes, not read (--json reads all)"}),
        ({"children_by_kind": {}}, {"children": "none"}),
        ({"children": None}, {"children": "unknown: the server does not list them; open them by "
                                          "their paths"}),
        ({"children": ["a", "b"], "n_children": 2}, {"children": "a, b", "by kind": "2 nodes, not "
                                                     "read (--json reads all)"}),
        ({"children": NAMES[:20], "n_children": 20, "children_by_kind": {"array": 1, "group": 2,
                                                                          "broken": 17}},
         {"children": ", ".join(NAMES[:20]), "by kind": "1 array, 2 groups, 17 broken"}),
        ({"children": NAMES[:21], "n_children": 21, "children_by_kind": {"array": 21}},
         {"children": ", ".join(NAMES[:20]) + ", and 1 more", "by kind": "21 arrays"}),
    ],
)  # fmt: skip
def test_the_lines_of_a_group(changed: Any, expected: dict[str, str]) -> None:
    found = dict(rows({**GROUP, **changed}))
    assert found == {"kind": "group", "N5 version": "none", **expected}


def test_a_description_is_a_mapping_with_aligned_lines() -> None:
    members = {"container": "c.n5", "kind": "container", "n5": "4.0.0"}
    info = Info(members)
    members["kind"] = "changed"
    assert (info["kind"], len(info), list(info)) == ("container", 3, ["container", "kind", "n5"])
    assert repr(info).splitlines() == [
        "container  : c.n5", "kind       : container", "N5 version : 4.0.0",
    ]  # fmt: skip
    assert "path      " in repr(Info({**GROUP, "container": "c", "path": "/a"}))
    assert [*dict(rows(info))] == ["kind", "N5 version"]


def test_the_version_of_a_root() -> None:
    for text, version in [(b'{"n5":"2.1"}', "2.1"), (b"{}", None), (b"[]", None), (None, None)]:
        store = N5Store(memory({} if text is None else {"attributes.json": text}))
        assert store.run(read_version()) == version


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (2**20 - 1, "1024.0 KiB"),
     (2**20, "1.0 MiB"), (3 * 2**30, "3.0 GiB"), (2**40, "1.0 TiB"), (2**50, "1.0 PiB"),
     (2**61, "2048.0 PiB")],
)  # fmt: skip
def test_bytes_have_binary_units(count: int, text: str) -> None:
    assert bytes_text(count) == text


def test_numbers_and_names_as_text() -> None:
    assert [counted(n, "box") for n in (0, 1, 2)] == ["0 boxs", "1 box", "2 boxs"]
    assert [ranges(n) for n in ([], [5], [2, 1], [1, 3], [7, 1, 2, 3, 5, 8])] == [
        "", "5", "1-2", "1, 3", "1-3, 5, 7-8",
    ]  # fmt: skip
    assert [names_of_axes({"axes_c": n}) for n in (None, (), ("z", "", "x"))] == [
        "", "", " z, ?, x",
    ]  # fmt: skip
