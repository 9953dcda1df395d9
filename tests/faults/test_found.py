"""``validate`` finds the damage that other tests plant, with its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import n5zarr
from n5zarr.format import DatasetAttributes, parse_attributes
from n5zarr.format.order import N5Tuple
from n5zarr.tools.validate.blocks import check_block, whole
from tests.faults.test_corrupt import (
    BROKEN,
    BROKEN_DOCUMENTS,
    COMPRESSIONS,
    PATH,
    block_file,
    containers,
    describe,
    spoilt,
    write_container,
)

if TYPE_CHECKING:
    from pathlib import Path

    from n5zarr.tools.validate.findings import Finding

__all__ = ["containers", "spoilt"]  # fixtures

UNSEEN = {"zlib"}  # without a length at its end: only decoding shows that it is cut
END_MARK = 21  # bytes of lz4's last frame, which Java does without


def errors(root: Path, *, deep: bool) -> list[Finding]:
    return [f for f in n5zarr.validate(root, deep=deep).findings if f.severity == "error"]


# a file without bytes is waited for, as a writer may have just created it
WITH_BYTES = [each for each in BROKEN if not str(each.id).endswith("-header-no-bytes")]


@pytest.mark.each_of(3)
@pytest.mark.parametrize(("compression", "corrupt"), WITH_BYTES)
def test_a_broken_block_is_found(spoilt: Path, request: pytest.FixtureRequest) -> None:
    result = n5zarr.validate(spoilt, deep=True)
    assert {each.where for each in result.findings} == {f"{PATH}: block 0/0/0"}
    if "-count-" in request.node.callspec.id:  # the block may be what it says, but is no array
        kinds = {"varlength", "payload", "header"}
        assert kinds & {each.kind for each in result.findings}
    else:
        (each,) = result.findings
        assert (each.severity, each.repair) == ("error", "quarantine")


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("position", [(0, 0, 0), (2, 2, 2)], ids=["full-size", "truncated"])
def test_a_block_cut_at_any_byte_is_found_by_its_ends(
    tmp_path: Path, compression: str, position: tuple[int, ...]
) -> None:
    root = write_container(tmp_path / "c.n5", COMPRESSIONS[compression])
    file = block_file(root, position)
    data = file.read_bytes()
    dataset = parse_attributes(json.loads((root / PATH / "attributes.json").read_text()))
    assert isinstance(dataset, DatasetAttributes)
    at = N5Tuple(position)
    unseen = [
        length
        for length in range(len(data))
        if not any(
            each.severity == "error"
            for each in check_block(whole(data[:length]), dataset, PATH, at, deep=False)
        )
    ]
    if compression == "lz4":
        assert min(unseen, default=len(data)) >= len(data) - END_MARK
    elif compression not in UNSEEN:
        assert unseen == []


@pytest.mark.parametrize("name", BROKEN_DOCUMENTS)
def test_a_broken_document_is_found(tmp_path: Path, name: str) -> None:
    root = write_container(tmp_path / "c.n5", COMPRESSIONS["gzip"])
    document, kind, _ = BROKEN_DOCUMENTS[name]
    (root / PATH / "attributes.json").write_bytes(document)
    found = errors(root, deep=False)
    assert {(each.kind, each.path) for each in found} == {(kind, PATH)}


@pytest.mark.parametrize("document", [b"null", b"[]", b'"x"', b"3", b"{}"])
def test_blocks_without_a_dataset_are_found(tmp_path: Path, document: bytes) -> None:
    root = write_container(tmp_path / "c.n5", COMPRESSIONS["gzip"])
    (root / PATH / "attributes.json").write_bytes(document)
    result = n5zarr.validate(root)
    orphans = [each for each in result.findings if each.kind == "orphan-block"]
    assert len(orphans) == 27
    assert {each.path for each in orphans} == {PATH}
    kinds = result.by_kind.keys() - {"orphan-block"}
    assert kinds == ({"not-an-object"} if document not in (b"null", b"{}") else set())


@pytest.mark.parametrize("missing", ["dimensions", "blockSize", "dataType", "compression"])
def test_a_lost_key_is_found(tmp_path: Path, missing: str) -> None:
    root = write_container(tmp_path / "c.n5", COMPRESSIONS["gzip"])
    document = {k: v for k, v in describe({"type": "gzip"}).items() if k != missing}
    (root / PATH / "attributes.json").write_text(json.dumps(document))
    kinds = {each.kind for each in n5zarr.validate(root).findings if each.path == PATH}
    assert kinds >= {"no-block-size" if missing == "blockSize" else "near-miss"}
