"""``n5zarr.sidecar`` writes ``zarr.json`` beside N5 blocks, which zarr-n5 and n5zarr read."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.errors import ZarrUserWarning

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import N5FormatError
from n5zarr.metadata import inspect
from tests.command import CliRunner

pytest.importorskip("zarr_n5", reason="peer: uv sync installs it")

OURS = "n5zarr.store.n5_default.N5DefaultCodec"
THEIRS = "zarr_n5.codec.default.N5DefaultCodec"
JAVA = Path(__file__).parents[1] / "data" / "java"
DATASETS = json.loads((JAVA / "manifest.json").read_text())["datasets"]
ROOTS = sorted({dataset["root"] for dataset in DATASETS} - {"dtypes.n5"})


def files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def described(root: Path) -> str:
    return json.dumps(inspect.describe_tree(root, size=False), default=str)


@pytest.mark.each_of(7)
@pytest.mark.parametrize("codec", [OURS, THEIRS], ids=["ours", "theirs"])
@pytest.mark.parametrize("root", ROOTS)
def test_zarr_opens_the_directory(root: str, codec: str, tmp_path: Path) -> None:
    copy = tmp_path / root
    shutil.copytree(JAVA / root, copy)
    before, shown = files(copy), described(copy)
    written = n5zarr.sidecar(copy)
    assert described(copy) == shown
    with zarr.config.set({"codecs.n5_default": codec}):
        for dataset in DATASETS:
            path = dataset["path"]
            if dataset["root"] != root:
                continue
            unsaid = dataset["compression"]["type"] in ("lz4", "xz") or "snappy" in path
            assert (path in written.left_out) == unsaid
            if unsaid or (codec == THEIRS and path == "trailing-bytes"):
                continue  # zarr-n5 takes all that follows the header
            array: Any = zarr.open_array(copy / path, mode="r")
            assert array.shape == tuple(dataset["dims"])
            elements = np.asarray(array[...]).T
            big = np.ascontiguousarray(elements, elements.dtype.newbyteorder(">"))
            assert hashlib.sha256(big.tobytes()).hexdigest() == dataset["sha256"], dataset
    again = n5zarr.sidecar(copy)
    assert (again.n_written, again.n_unchanged) == (0, written.n_written)
    assert n5zarr.sidecar(copy, remove=True).n_removed == written.n_written
    assert files(copy) == before


def test_groups_open_with_attributes_and_names_of_axes(tmp_path: Path) -> None:
    copy = tmp_path / "sample.n5"
    shutil.copytree(n5zarr.sample_path(), copy)
    n5zarr.sidecar(copy)
    # zarr says that it does not know attributes.json
    with zarr.config.set({"codecs.n5_default": OURS}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Object at attributes.json", ZarrUserWarning)
        group = zarr.open_group(copy, mode="r")
        assert {name for name, _ in group.members(max_depth=None)} == {
            "em", "em/s0", "em/s1", "em/s2", "labels", "labels/s0",
        }  # fmt: skip
        array: Any = group["em/s0"]
    assert array.metadata.dimension_names == ("x", "y", "z")
    assert array.attrs["resolution"] == [8, 8, 20]
    assert dict(group["em"].attrs) == dict(zarr.open_group(N5Store(copy), path="em").attrs)


def test_a_document_follows_that_of_n5(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(7, 5), chunks=(3, 2), dtype="u2")
    n5zarr.sidecar(tmp_path / "c.n5")
    array: Any = n5zarr.open(tmp_path / "c.n5", path="a", mode="r+")
    array.resize((11, 5))
    assert n5zarr.sidecar(tmp_path / "c.n5").n_written == 1
    with zarr.config.set({"codecs.n5_default": OURS}):
        assert zarr.open_array(tmp_path / "c.n5" / "a", mode="r").shape == (5, 11)
    # what the codec cannot say any more loses its document
    document = json.loads((tmp_path / "c.n5" / "a" / "attributes.json").read_text())
    document["compression"] = {"type": "lz4", "blockSize": 65536}
    (tmp_path / "c.n5" / "a" / "attributes.json").write_text(json.dumps(document))
    done = n5zarr.sidecar(tmp_path / "c.n5")
    assert (done.n_removed, list(done.left_out)) == (1, ["a"])
    assert not (tmp_path / "c.n5" / "a" / "zarr.json").exists()


def test_documents_of_others_stay(tmp_path: Path) -> None:
    copy = tmp_path / "c.n5"
    shutil.copytree(JAVA / "sparse.n5", copy)
    foreign = b'{"zarr_format": 3, "node_type": "group", "attributes": {"mine": 1}}'
    (copy / "zarr.json").write_bytes(foreign)
    before = files(copy)
    for remove in (False, True):
        with pytest.raises(N5FormatError, match=r"zarr\.json: expected no zarr") as err:
            n5zarr.sidecar(copy, remove=remove)
        assert err.value.kind == "foreign"
    assert files(copy) == before


def test_a_directory_without_document_is_still_a_group(tmp_path: Path) -> None:
    copy = tmp_path / "c.n5"
    shutil.copytree(JAVA / "sparse.n5", copy)
    (copy / "implicit" / "sub").mkdir(parents=True)
    n5zarr.sidecar(copy)
    assert (copy / "implicit" / "sub" / "zarr.json").is_file()
    group = zarr.open_group(N5Store(copy), path="implicit", mode="r")
    assert [*group.group_keys()] == ["sub"]


def test_the_command_names_what_has_no_document(tmp_path: Path) -> None:
    """Ten datasets of lz4, which the codec cannot say, are named, and the others counted."""
    for number in range(11):
        n5zarr.create_array(
            tmp_path / "c.n5", path=f"a{number:02}", shape=(7, 5), dtype="u1",
            compression={"type": "lz4"},
        )  # fmt: skip
    n5zarr.create_array(tmp_path / "c.n5", path="b", shape=(7, 5), dtype="u1")

    def run(*words: str) -> tuple[str, str]:
        result = CliRunner().invoke(app, ["sidecar", str(tmp_path / "c.n5"), *words])
        assert result.exit_code == 0, result.output
        return result.stdout, result.stderr

    out, err = run()
    assert out == f"{tmp_path / 'c.n5'}: 2 zarr.json written, 0 unchanged\n"
    assert len(err.splitlines()) == 11
    assert "a00: omitted: " in err
    assert "1 more omitted (--json names all)" in err
    out, err = run("--json")
    assert len(json.loads(out)["left_out"]) == 11
    assert not err
    assert run("--remove") == (f"{tmp_path / 'c.n5'}: 2 removed\n", "")


def test_a_document_that_is_no_json_stays(tmp_path: Path) -> None:
    """It is not one that was written here."""
    shutil.copytree(JAVA / "sparse.n5", tmp_path / "c.n5")
    (tmp_path / "c.n5" / "zarr.json").write_bytes(b"{")
    with pytest.raises(N5FormatError, match=r"zarr\.json: expected no zarr"):
        n5zarr.sidecar(tmp_path / "c.n5")
    assert (tmp_path / "c.n5" / "zarr.json").read_bytes() == b"{"


def test_a_broken_dataset_has_no_document(tmp_path: Path) -> None:
    """The others get theirs, and the reason is told."""
    n5zarr.create_array(tmp_path / "c.n5", path="a", shape=(7, 5), dtype="u1")
    n5zarr.create_array(tmp_path / "c.n5", path="b", shape=(7, 5), dtype="u1")
    (tmp_path / "c.n5" / "a" / "attributes.json").write_text('{"dimensions": [5')
    done = n5zarr.sidecar(tmp_path / "c.n5")
    assert (done.n_written, list(done.left_out)) == (2, ["a"])
    assert "not JSON" in done.left_out["a"]
    assert (tmp_path / "c.n5" / "b" / "zarr.json").exists()
    assert not (tmp_path / "c.n5" / "a" / "zarr.json").exists()


def test_label_multisets_have_no_document(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5/a", shape=(2, 3), chunks=(2, 3), label_multiset=True)
    done = n5zarr.sidecar(tmp_path / "c.n5")
    assert "expected numbers, got labels" in done.left_out["a"]
    assert not (tmp_path / "c.n5/a/zarr.json").exists()
