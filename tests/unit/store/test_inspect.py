"""The results of commands are available as plain data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import n5zarr
from n5zarr.errors import N5Warning
from n5zarr.metadata.inspect import describe, describe_each, describe_tree
from n5zarr.storage import files

JAVA = Path(__file__).parents[2] / "data" / "java"


def test_an_array_is_described_in_both_orders() -> None:
    found: Any = describe(n5zarr.sample_path(), "em/s0")
    expected: dict[str, Any] = {
        "kind": "array", "path": "/em/s0", "n5": "4.0.0", "shape_c": (40, 96, 128),
        "dimensions_n5": (128, 96, 40), "chunk_shape_c": (16, 40, 50),
        "block_size_n5": (50, 40, 16), "grid_n5": (3, 3, 3), "axes_c": ("z", "y", "x"),
        "n_blocks": 27, "n_blocks_stored": 27, "n_bytes": 40 * 96 * 128,
        "compression": {"type": "gzip", "useZlib": False, "level": 6},
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    folder = Path(n5zarr.sample_path()) / "em" / "s0"
    assert found["n_bytes_stored"] == sum(
        f.stat().st_size for f in folder.rglob("*") if f.is_file() and f.suffix != ".json"
    )
    assert list(found["attributes"]) == ["axes", "units", "resolution", "transform"]
    json.dumps(found)


def test_size_is_found_only_when_asked_for() -> None:
    assert "n_blocks_stored" not in describe(n5zarr.sample_path(), "em/s0", size=False)


def test_missing_blocks_are_not_counted_as_stored() -> None:
    found = describe(JAVA / "sparse.n5", "skip2")
    assert (found["n_blocks"], found["n_blocks_stored"]) == (15, 8)


def test_a_group_is_described_from_the_middle_of_a_container() -> None:
    found = describe(Path(n5zarr.sample_path()) / "em")
    assert (found["kind"], found["path"], found["children"]) == ("group", "/em", ["s0", "s1", "s2"])
    assert str(found["container"]).endswith("sample.n5")


@pytest.mark.parametrize("path", ["nothing", "em/s0/0", "em/s9"])
def test_a_missing_node_is_not_found(path: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"/{path}: expected a group or dataset"):
        describe(n5zarr.sample_path(), path)


def test_a_tree_has_sound_broken_and_object_children(tmp_path: Path) -> None:
    shutil.copytree(JAVA / "varlen.n5", tmp_path / "c.n5")
    (tmp_path / "c.n5" / "bad").mkdir()
    (tmp_path / "c.n5" / "bad" / "attributes.json").write_text("{")
    found: Any = describe_tree(tmp_path / "c.n5", size=True)
    children = {child["name"]: child for child in found["children"]}
    assert list(children) == ["bad", "object", "u16"]
    assert [child["kind"] for child in children.values()] == ["broken", "object", "array"]
    assert "bad/attributes.json: not JSON" in children["bad"]["error"]
    assert children["u16"]["n_blocks_stored"] == 4


def test_a_tree_can_be_cut() -> None:
    found: Any = describe_tree(n5zarr.sample_path(), depth=1)
    assert [child["name"] for child in found["children"]] == ["em", "labels"]
    assert all("children" not in child for child in found["children"])


def shapes_with_axes(node: Any, path: str = "") -> dict[str, tuple[str, ...] | None]:
    """Return the names of the axes of each array of a tree."""
    if node["kind"] == "array":
        return {path: node["axes_c"]}
    below = (shapes_with_axes(n, f"{path}/{n['name']}") for n in node.get("children", ()))
    return {key: value for each in below for key, value in each.items()}


def test_a_tree_shows_the_axes_of_each_convention() -> None:
    """Those that n5-universe reads, of the documents that it wrote."""
    found = shapes_with_axes(describe_tree(JAVA / "metadata.n5", geometry=True))
    assert len(found) >= 20
    channels = "/neuroglancer/channels"
    assert found.pop(channels) == ("c", "y", "x")
    assert found == dict.fromkeys(found, ("z", "y", "x"))


def test_a_document_above_that_cannot_be_read_leaves_the_axes_out(tmp_path: Path) -> None:
    root = Path(shutil.copytree(JAVA / "metadata.n5", tmp_path / "c.n5"))
    (root / "paintera/attributes.json").write_text("{")
    with pytest.warns(N5Warning, match="axes in paintera/attributes.json ignored"):
        found: Any = describe_tree(root, "paintera/data", geometry=True)
    assert [child["name"] for child in found["children"]] == ["s0", "s1"]


def cells(root: Path, n: int) -> Path:
    """Make a group with many datasets, and files beside them."""
    document = {"dimensions": [5, 7], "blockSize": [3, 4], "dataType": "uint8"}
    for i in range(n):
        folder = root / "g" / f"cell_{i:03}"
        folder.mkdir(parents=True)
        text = json.dumps({**document, "compression": {"type": "raw"}})
        (folder / "attributes.json").write_text(text)
    (root / "attributes.json").write_text('{"n5":"4.0.0"}')
    (root / "g" / "notes.txt").write_text("no node")
    return root


def test_a_limit_leaves_nodes_out_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = cells(tmp_path / "c.n5", 200)
    read: list[str] = []
    read_file = files.read

    def note(path: str, **options: Any) -> bytes | None:
        read.append(path)
        return read_file(path, **options)

    monkeypatch.setattr(files, "read", note)
    found: Any = describe_tree(root, limit=3)
    (group,) = found["children"]
    assert [child["name"] for child in group["children"]] == ["cell_000", "cell_001", "cell_002"]
    assert group["n_more"] == 197
    assert "n_more" not in found
    lines = [(level, is_last, d["kind"]) for level, is_last, d in describe_each(root, limit=3)]
    assert lines[-2:] == [(2, False, "array"), (2, True, "more")]
    assert len({path for path in read if "cell_" in path}) == 3


@pytest.mark.parametrize(
    ("match", "names"),
    [
        ("g/cell_01?", [f"cell_01{i}" for i in range(10)]),
        ("*/cell_1[13]7", ["cell_117", "cell_137"]),
        ("g/nothing", []),
        ("h", None),
    ],
)
def test_a_pattern_selects_paths_name_by_name(
    tmp_path: Path, match: str, names: list[str] | None
) -> None:
    found: Any = describe_tree(cells(tmp_path / "c.n5", 150), match=match)
    groups = found["children"]
    shown = [child["name"] for group in groups for child in group["children"]]
    assert (shown if groups else None) == names


def test_nodes_below_a_match_are_shown() -> None:
    found: Any = describe_tree(n5zarr.sample_path(), match="e*")
    (em,) = found["children"]
    assert [child["name"] for child in em["children"]] == ["s0", "s1", "s2"]


def test_of_a_large_group_only_names_and_their_number_are_read(tmp_path: Path) -> None:
    root = cells(tmp_path / "c.n5", 30)
    few: Any = describe(root, "g", limit=4)
    assert (few["n_children"], few["children"]) == (30, [f"cell_00{i}" for i in range(4)])
    assert "children_by_kind" not in few
    every: Any = describe(root, "g")
    assert (every["n_children"], len(every["children"])) == (30, 30)
    assert every["children_by_kind"] == {"array": 30}


def test_a_tree_reads_no_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree has no positions, so it looks for no datasets named like axes, which hold them."""
    asked: list[str] = []
    read = files.read

    def recorded(path: str, **options: Any) -> Any:
        asked.append(path)
        return read(path, **options)

    monkeypatch.setattr(files, "read", recorded)
    found: Any = describe_tree(n5zarr.sample_path(), "em", geometry=True)
    assert [each["axes_c"] for each in found["children"]] == [("z", "y", "x")] * 3
    assert any(path.endswith("em/s1/attributes.json") for path in asked)
    assert not any(Path(path).parent.name in ("x", "y", "z") for path in asked)
