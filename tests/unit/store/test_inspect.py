"""What the command line says, as plain data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import n5zarr
from n5zarr.store.inspect import describe, describe_tree, find_damage

JAVA = Path(__file__).parents[2] / "data" / "java"


def test_an_array_is_described_in_both_orders() -> None:
    found: Any = describe(n5zarr.sample_path(), "em/s0")
    assert found["kind"] == "array"
    assert found["path"] == "/em/s0"
    assert found["n5"] == "4.0.0"
    assert found["shape_c"] == (40, 96, 128)
    assert found["dimensions_n5"] == (128, 96, 40)
    assert found["chunk_shape_c"] == (16, 40, 50)
    assert found["block_size_n5"] == (50, 40, 16)
    assert found["grid_n5"] == (3, 3, 3)
    assert found["axes_c"] == ("z", "y", "x")
    assert (found["n_blocks"], found["n_blocks_stored"]) == (27, 27)
    assert found["n_bytes"] == 40 * 96 * 128
    folder = Path(n5zarr.sample_path()) / "em" / "s0"
    assert found["n_bytes_stored"] == sum(
        f.stat().st_size for f in folder.rglob("*") if f.is_file() and f.suffix != ".json"
    )
    assert found["compression"] == {"type": "gzip", "useZlib": False, "level": 6}
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


def test_damaged_blocks_are_found_and_named(tmp_path: Path) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "c.n5")
    assert list(find_damage(tmp_path / "c.n5", "em/s0")) == []
    block = tmp_path / "c.n5" / "em" / "s0" / "2" / "0" / "1"
    block.write_bytes(block.read_bytes()[:-20])
    (damage,) = find_damage(tmp_path / "c.n5", "em/s0")
    assert isinstance(damage, n5zarr.N5Error)
    assert damage.where == f"{tmp_path / 'c.n5'}: em/s0: block 2/0/1"
    assert damage.kind == "payload"
    for above in ("em", ""):
        assert [str(err) for err in find_damage(tmp_path / "c.n5", above)] == [str(damage)]
    assert list(find_damage(tmp_path / "c.n5", "labels")) == []
