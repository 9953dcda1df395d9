"""Paintera's assignment of fragments to segments.

The layout is that of Paintera 26e8134: ``N5FragmentSegmentAssignmentPersister`` writes it,
``N5FragmentSegmentAssignmentInitialLut`` reads it.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import n5zarr
from n5zarr.errors import N5FormatError, N5UnrepresentableError

FRAGMENTS = [3, 2**64 - 2, 5, 11, 0]
SEGMENTS = [5, 7, 5, 2**63, 0]
COLUMNS = [("fragment", "u8"), ("segment", "u8")]


def written_by_java(where: Path, fragments: list[int], segments: list[int]) -> None:
    """Write the files of ``persist``: two blocks of N elements, big-endian, in gzip."""
    n = len(fragments)
    for row, values in enumerate([fragments, segments]):
        block = where / "fragment-segment-assignment" / "0" / str(row)
        block.parent.mkdir(parents=True, exist_ok=True)
        elements = b"".join(value.to_bytes(8) for value in values)
        block.write_bytes(
            bytes.fromhex("0000 0002") + n.to_bytes(4) + (1).to_bytes(4) + gzip.compress(elements)
        )
    document = {
        "dimensions": [n, 2], "blockSize": [max(n, 1), 1], "dataType": "uint64",
        "compression": {"type": "gzip", "useZlib": False, "level": 6},
    }  # fmt: skip
    (where / "fragment-segment-assignment/attributes.json").write_text(json.dumps(document))
    (where / "attributes.json").write_text(json.dumps({"painteraData": {"type": "label"}}))


def test_assignments_of_paintera_are_read(tmp_path: Path) -> None:
    where = tmp_path / "x.n5/neurons"
    written_by_java(where, FRAGMENTS, SEGMENTS)
    table = n5zarr.read_fragment_segments(where)
    assert table["fragment"].tolist() == FRAGMENTS
    assert table["segment"].tolist() == SEGMENTS
    frame = pd.DataFrame(table)
    assert list(frame.columns) == ["fragment", "segment"]
    same = n5zarr.read_fragment_segments(where, "fragment-segment-assignment")
    assert same.tolist() == table.tolist()
    store = n5zarr.N5Store(tmp_path / "x.n5", axis_order="F")
    assert n5zarr.read_fragment_segments(store, "neurons").tolist() == table.tolist()


@pytest.mark.parametrize("n", [5, 0])
def test_assignments_are_written_as_paintera_does(tmp_path: Path, n: int) -> None:
    written_by_java(tmp_path / "java.n5", FRAGMENTS[:n], SEGMENTS[:n])
    fragments, segments = (np.array(v[:n], "u8") for v in (FRAGMENTS, SEGMENTS))
    n5zarr.write_fragment_segments(tmp_path / "x.n5", fragments, segments, "neurons")
    both = [tmp_path / root / "fragment-segment-assignment" for root in ("x.n5/neurons", "java.n5")]
    read = [json.loads((p / "attributes.json").read_text()) for p in both]
    assert read[0] == read[1]
    for row in range(2 if n else 0):
        blocks = [(p / "0" / str(row)).read_bytes() for p in both]
        assert blocks[0][:12] == blocks[1][:12]
        assert gzip.decompress(blocks[0][12:]) == gzip.decompress(blocks[1][12:])
    assert len(n5zarr.read_fragment_segments(tmp_path / "x.n5", "neurons")) == n
    assert len(n5zarr.read_fragment_segments(tmp_path / "java.n5")) == n


@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_tables_are_written_again(tmp_path: Path, axis_order: Any) -> None:
    written_by_java(tmp_path / "x.n5", FRAGMENTS, SEGMENTS)
    table = n5zarr.read_fragment_segments(tmp_path / "x.n5")
    store = n5zarr.N5Store(tmp_path / "x.n5", axis_order=axis_order)
    with pytest.raises(N5UnrepresentableError, match="overwrite=True replaces them"):
        n5zarr.write_fragment_segments(store, table[:2])
    assert len(n5zarr.read_fragment_segments(tmp_path / "x.n5")) == 5
    n5zarr.write_fragment_segments(store, table[1:3], overwrite=True)
    assert n5zarr.read_fragment_segments(tmp_path / "x.n5").tolist() == table[1:3].tolist()


def test_segments_replace_fragments() -> None:
    table = np.array([*zip(FRAGMENTS, SEGMENTS, strict=True)], COLUMNS)
    labels = np.random.default_rng(2).choice(np.array([*FRAGMENTS, 4, 12, 2**40], "u8"), (3, 5, 7))
    known = dict(zip(FRAGMENTS, SEGMENTS, strict=True))
    expected = [known.get(label, label) for label in labels.ravel().tolist()]
    found = n5zarr.segments_of(labels, table)
    assert found.shape == labels.shape
    assert found.ravel().tolist() == expected
    assert n5zarr.segments_of([3, 4], table[:0]).tolist() == [3, 4]
    twice = np.array([(3, 5), (3, 8)], table.dtype)  # as in Java's map
    assert n5zarr.segments_of([3], twice).tolist() == [8]


def test_a_source_without_assignments_has_an_empty_table(tmp_path: Path) -> None:
    where = tmp_path / "x.n5"
    n5zarr.create_array(where / "a/data/s0", shape=(2, 3), dtype="u8")
    n5zarr.set_attribute(where, "a", "painteraData", {"type": "label"})
    assert len(n5zarr.read_fragment_segments(where, "a")) == 0
    with pytest.raises(FileNotFoundError, match="fragment-segment-assignment of a label source"):
        n5zarr.read_fragment_segments(where)
    for path, dtype, shape in [("b", "f4", (2, 3)), ("c", "u8", (3, 2))]:
        n5zarr.create_array(where, path=path, shape=shape, dtype=dtype)
        with pytest.raises(N5FormatError, match=r"expected integers of .* \[N, 2\]") as caught:
            n5zarr.read_fragment_segments(where, path)
        assert caught.value.kind == "member"


@pytest.mark.parametrize(
    ("fragments", "segments", "message"),
    [
        ([1, 2], [1], "expected one for each of 2 fragments"),
        ([1, 2, 1], [1, 1, 1], r"expected each once, got \[1\] repeatedly"),
        ([1.5], [1], "fragments: expected a row of integers, got float64"),
        ([[1]], [[1]], "fragments: expected a row of integers"),
        ([1], None, "segments: expected them, or a table"),
    ],
)
def test_assignments_that_do_not_fit_are_an_error(
    tmp_path: Path, fragments: Any, segments: Any, message: str
) -> None:
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.write_fragment_segments(tmp_path / "x.n5", fragments, segments)
    assert not (tmp_path / "x.n5").exists()


def test_other_labels_and_tables_are_an_error() -> None:
    table = np.zeros(1, COLUMNS)
    with pytest.raises(N5UnrepresentableError, match="labels: expected integers, got float64"):
        n5zarr.segments_of([1.5], table)
    with pytest.raises(N5UnrepresentableError, match="table: expected one of read_fragment"):
        n5zarr.segments_of([1], pd.DataFrame(table))  # type: ignore[arg-type]
