"""Label multisets in the drafts of Zarr extensions: nothing is lost on the way into Zarr and back.

The proposals https://github.com/zarr-developers/zarr-extensions/pull/54, 55 and 56, as of commits
3c51863, cf9eca3 and d69dff5. A reader of the draft is written out here.
"""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.codecs.label_multiset import multisets_of_draft
from n5zarr.errors import N5BlockError, N5Error, N5UnrepresentableError, N5UnsupportedError
from n5zarr.format.order import CTuple
from tests.command import printed
from tests.multisets import Voxels, random_voxels, signed, voxels_of

JAVA = Path(__file__).parents[1] / "data" / "java" / "labels.n5"
SHAPE, CHUNKS = (5, 7, 11), (2, 3, 4)


def chunk_of_draft(data: bytes, shape: tuple[int, ...]) -> Voxels:
    """Read a chunk as pull request 55 describes it; lists must be sorted and not repeat."""
    positions = list(itertools.product(*map(range, shape)))
    begin, seen = 4 * len(positions), set()
    voxels: Voxels = {}
    for number, position in enumerate(positions):
        (offset,) = struct.unpack_from("<I", data, 4 * number)
        (n,) = struct.unpack_from("<I", data, begin + offset)
        entries = [struct.unpack_from("<QI", data, begin + offset + 4 + 12 * k) for k in range(n)]
        assert entries == sorted(entries, key=lambda entry: signed(entry[0]))
        voxels[position] = dict(entries)
        seen.add((offset, n))
    assert sum(4 + 12 * n for _, n in seen) == len(data) - begin
    return voxels


@pytest.fixture
def source(tmp_path: Path) -> tuple[Path, Voxels]:
    """Make a container of multisets, one block of which is missing."""
    where = tmp_path / "source.n5"
    n5zarr.create_array(
        where / "neurons/s0", shape=SHAPE, chunks=CHUNKS, label_multiset=True, axes="zyx",
        units=["nm"] * 3, resolution=[40, 4, 4], attributes={"maxNumEntries": -1},
    )  # fmt: skip
    voxels = random_voxels(np.random.default_rng(9), SHAPE)
    each = [voxels[p] for p in sorted(voxels)]
    labels = np.array([label for one in each for label in one], "u8")
    counts = [count for one in each for count in one.values()]
    multisets = n5zarr.LabelMultisets.from_csr(
        np.cumsum([0, *map(len, each)]), labels, counts, SHAPE
    )
    n5zarr.write_label_multisets(where / "neurons/s0", multisets)
    (where / "neurons/s0/1/1/0").unlink()
    missing = itertools.product(range(2), range(3, 6), range(4, 8))
    n5zarr.create_array(where / "em", data=np.arange(6, dtype="u2").reshape(2, 3))
    return where, voxels | {p: {0: 1} for p in missing}


def files_of(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_nothing_is_lost_there_and_back(
    source: tuple[Path, Voxels], tmp_path: Path, scheduler: str
) -> None:
    where, voxels = source
    n5zarr.convert(where, tmp_path / "x.zarr", drafts=True, verify=True, scheduler=scheduler)
    document = json.loads((tmp_path / "x.zarr/neurons/s0/zarr.json").read_text())
    assert document["data_type"] == "label_multiset"
    assert document["fill_value"] == "0x0000000000000000"
    assert [codec["name"] for codec in document["codecs"]] == ["label_multiset", "gzip"]
    found: Voxels = {}
    for key in (tmp_path / "x.zarr/neurons/s0/c").rglob("*"):
        if key.is_file():
            place = [int(name) for name in key.parts[-3:]]
            corner = [p * n for p, n in zip(place, CHUNKS, strict=True)]
            chunk = chunk_of_draft(gzip.decompress(key.read_bytes()), CHUNKS)
            found |= {tuple(np.add(corner, p).tolist()): entries for p, entries in chunk.items()}
    inside = {p: found.get(p, {0: 1}) for p in voxels}
    assert inside == voxels
    assert {str(found[p]) for p in found.keys() - voxels.keys()} == {"{0: 1}"}  # padding

    shown: Any = zarr.open_array(tmp_path / "x.zarr", path="neurons/s0", mode="r")
    assert shown.dtype == np.uint64
    assert (shown[...] == n5zarr.open_array(where, path="neurons/s0")[...]).all()

    n5zarr.convert(tmp_path / "x.zarr", tmp_path / "y.n5", drafts=True, verify=True)
    assert voxels_of(n5zarr.read_label_multisets(tmp_path / "y.n5/neurons/s0")) == voxels
    blocks = [files_of(root / "neurons/s0") for root in (where, tmp_path / "y.n5")]
    documents = [json.loads(each.pop("attributes.json")) for each in blocks]
    assert documents[0] == documents[1]
    assert blocks[0].keys() == blocks[1].keys()
    for name, block in blocks[0].items():
        assert block[:20] == blocks[1][name][:20]
        assert gzip.decompress(block[20:]) == gzip.decompress(blocks[1][name][20:])


def test_blocks_of_java_come_back_as_they_are(tmp_path: Path) -> None:
    printed("convert", JAVA, tmp_path / "x.zarr", "--drafts")
    printed("convert", tmp_path / "x.zarr", tmp_path / "y.n5", "--drafts")
    for name in ("0/0/0", "1/0/0", "0/1/0", "1/1/0"):
        theirs, ours = ((r / "labels/s0" / name).read_bytes() for r in (JAVA, tmp_path / "y.n5"))
        assert ours[:20] == theirs[:20]
        assert gzip.decompress(ours[20:]) == gzip.decompress(theirs[20:])


def test_without_drafts_zarr_gets_the_most_frequent_labels(
    source: tuple[Path, Voxels], tmp_path: Path
) -> None:
    n5zarr.convert(source[0], tmp_path / "x.zarr")
    document = json.loads((tmp_path / "x.zarr/neurons/s0/zarr.json").read_text())
    assert document["data_type"] == "uint64"


def test_a_missing_chunk_holds_the_fill_value(source: tuple[Path, Voxels], tmp_path: Path) -> None:
    """The canonical fill value of the draft is INVALID, 2**64 - 2, once."""
    where, voxels = source
    n5zarr.convert(where, tmp_path / "x.zarr", drafts=True)
    file = tmp_path / "x.zarr/neurons/s0/zarr.json"
    file.write_text(file.read_text().replace("0x0000000000000000", "0xFFFFFFFFFFFFFFFE"))
    n5zarr.convert(tmp_path / "x.zarr", tmp_path / "y.n5", drafts=True, verify=True)
    found = voxels_of(n5zarr.read_label_multisets(tmp_path / "y.n5/neurons/s0"))
    missing = itertools.product(range(2), range(3, 6), range(4, 8))
    assert found == voxels | {p: {2**64 - 2: 1} for p in missing}


def test_other_counts_are_found(source: tuple[Path, Voxels], tmp_path: Path) -> None:
    where, _ = source
    n5zarr.convert(where, tmp_path / "x.zarr", drafts=True)
    n5zarr.convert(where, tmp_path / "x.zarr", drafts=True, resume=True)
    some = n5zarr.read_label_multisets(where / "neurons/s0", box=(0, slice(0, 1), slice(0, 4)))
    more = n5zarr.LabelMultisets(some.lists[None], some.offsets, some.labels, some.counts + 1)
    n5zarr.write_label_multisets(where / "neurons/s0", more)
    with pytest.raises(N5Error, match=r"neurons/s0.*chunk \(0, 0, 0\)") as caught:
        n5zarr.convert(where, tmp_path / "x.zarr", drafts=True, resume=True)
    assert caught.value.kind == "differs"


def test_zarr_only_reads_the_draft(source: tuple[Path, Voxels], tmp_path: Path) -> None:
    n5zarr.convert(source[0], tmp_path / "x.zarr", drafts=True)
    before = files_of(tmp_path / "x.zarr")
    array = zarr.open_array(tmp_path / "x.zarr", path="neurons/s0", mode="r+")
    with pytest.raises(N5UnsupportedError, match="labels alone would replace multisets"):
        array[0, 0, 0] = 5
    assert files_of(tmp_path / "x.zarr") == before
    assert zarr.create_array({}, shape=(3,), dtype="uint64").metadata.to_dict()["data_type"] == (
        "uint64"
    )


@pytest.mark.parametrize(
    "data",
    [b"", bytes(7), struct.pack("<2I", 0, 0), struct.pack("<4I", 0, 9, 0, 0), bytes(8) + b"\1"],
)
def test_damaged_chunks_are_an_error(data: bytes) -> None:
    with pytest.raises(N5BlockError, match=r"expected (a )?(label|list)") as caught:
        multisets_of_draft(data, CTuple((2,)))
    assert caught.value.kind == "payload"


def test_sidecars_describe_blocks_by_n5_varlen(tmp_path: Path) -> None:
    root = Path(shutil.copytree(JAVA, tmp_path / "labels.n5"))
    assert "labels/s0" in n5zarr.sidecar(root).left_out
    assert not n5zarr.sidecar(root, drafts=True).left_out
    document = json.loads((root / "labels/s0/zarr.json").read_text())
    inner = [{"name": "n5_label_multiset"}, {"name": "gzip", "configuration": {"level": 6}}]
    assert document["codecs"] == [
        {"name": "transpose", "configuration": {"order": [2, 1, 0]}},
        {"name": "n5_varlen", "configuration": {"codecs": inner}},
    ]
    assert document["data_type"] == "label_multiset"
    assert document["chunk_key_encoding"] == {"name": "v2", "configuration": {"separator": "/"}}
    assert document["fill_value"] == "0x0000000000000000"
    n5zarr.register_drafts()
    shown: Any = zarr.open_array(root, path="labels/s0", mode="r")
    assert np.array_equal(shown[...].T, n5zarr.open_array(root, path="labels/s0")[...])
    with pytest.raises(N5UnsupportedError, match="labels alone would replace multisets"):
        zarr.open_array(root, path="labels/s0", mode="r+")[0, 0, 0] = 5
    assert n5zarr.sidecar(root, remove=True).n_removed == 4


@pytest.mark.parametrize(
    ("name", "options"),
    [("x.zarr", {"to": "zarr2"}), ("x.zarr", {"ome": True}), ("x.zarr", {"coords": True})],
)
def test_the_draft_is_for_zarr_3_only(
    source: tuple[Path, Voxels], tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    with pytest.raises(N5UnrepresentableError, match="drafts=True"):
        n5zarr.convert(source[0], tmp_path / name, drafts=True, **options)
    assert not (tmp_path / name).exists()
