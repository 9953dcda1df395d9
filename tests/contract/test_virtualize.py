"""References to the blocks of containers are read by programs that know nothing of N5."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import json
import shutil
import struct
import tempfile
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorstore as ts
import virtualizarr
import zarr
from fsspec.implementations.reference import LazyReferenceMapper
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore as ObstoreFiles
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Parser, N5Store
from n5zarr.errors import N5BlockError, N5UnrepresentableError, N5UnsupportedError, N5Warning
from n5zarr.tools.virtualize import parquet
from n5zarr.tools.virtualize.parquet import ParquetWriter
from n5zarr.tools.virtualize.references import Chunk
from n5zarr.tools.virtualize.writers import JsonWriter
from tests.command import printed
from tests.contract.stored import contents, strict
from tests.virtual import Read, reader, reference

JAVA = Path(__file__).parents[1] / "data" / "java"
MANIFEST = json.loads((JAVA / "manifest.json").read_text())
TRUTH = [json.loads(line) for line in (JAVA / "metadata.truth.jsonl").read_text().splitlines()]
ROOTS = sorted({dataset["root"] for dataset in MANIFEST["datasets"]})
SOME = ["blocks.n5", "root-dataset.n5", "sparse.n5"]  # Parquet takes longer


@pytest.fixture(scope="module")
def read() -> Iterator[Read]:
    with reader() as started:
        yield started


def of_root(root: str) -> list[dict[str, Any]]:
    return [dataset for dataset in MANIFEST["datasets"] if dataset["root"] == root]


def assert_right(found: dict[str, Any], root: str) -> None:
    for dataset in of_root(root):
        array = found[dataset["path"] or "data"]
        assert array["sha256"] == dataset["sha256"], dataset
        assert array["shape"] == dataset["dims"][::-1]
        assert array["dtype"] == dataset["dtype"]


@pytest.mark.each_of(3)
@pytest.mark.parametrize(("suffix", "roots"), [
    (".parq", SOME), (".json", ROOTS), (".icechunk", ROOTS),
])  # fmt: skip
def test_fixtures_of_all_writers_read_to_their_checksums(
    suffix: str, roots: list[str], read: Read, tmp_path: Path
) -> None:
    written = {
        root: n5zarr.virtualize(JAVA / root, tmp_path / f"{root}{suffix}", coords=False)
        for root in roots
    }
    for root, found in zip(roots, read([*map(reference, written.values())]), strict=True):
        assert_right(found, root)
        datasets = of_root(root)
        assert written[root].n_missing == sum(d["blocksMissing"] for d in datasets)
        n_chunks = written[root].n_referenced + written[root].n_inlined
        assert n_chunks == sum(d["blocksPresent"] for d in datasets)


def test_truncated_blocks_are_referred_to_where_the_reader_has_such_grids(
    read: Read, tmp_path: Path
) -> None:
    root = "sparse.n5"
    written = [
        n5zarr.virtualize(
            JAVA / root, tmp_path / f"a{suffix}", coords=False, chunk_grid="rectilinear"
        )
        for suffix in (".json", ".icechunk")
    ]
    for found in read([reference(each, rectilinear=True) for each in written]):
        assert_right(found, root)
    regular = n5zarr.virtualize(JAVA / root, tmp_path / "b.json", coords=False)
    of_lz4 = sum(d["blocksPresent"] for d in of_root(root) if d["compression"]["type"] == "lz4")
    assert written[0].n_inlined == written[1].n_inlined == of_lz4 < regular.n_inlined


def test_records_of_parquet_hold_neighbours(
    read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that grow in turns and not at once hold the same references."""
    monkeypatch.setattr(parquet, "_RECORD", 3)
    monkeypatch.setattr(parquet, "_TOGETHER", 2)
    written = [
        n5zarr.virtualize(JAVA / root, tmp_path / f"{root}.parq", coords=False) for root in SOME
    ]
    for root, found in zip(SOME, read([*map(reference, written)]), strict=True):
        assert_right(found, root)
    assert len(list((tmp_path / "blocks.n5.parq" / "full-edges").glob("refs.*.parq"))) > 1


@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine")  # of fsspec, which reads here
def test_the_memory_of_parquet_does_not_grow_with_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """References wait in files, as blocks come column by column and records hold rows."""
    monkeypatch.setattr(parquet, "_TOGETHER", 2**12)
    view = mock.Mock(ndim=2, grid=(60, 1000), axis_order="C")
    array = mock.Mock(path="a", source="a", view=view)
    array.view.grid_position = lambda coords: coords[::-1]
    writer = ParquetWriter("file:///data/a.n5", str(tmp_path / "r.parq"), None, 60_000)
    n_most = 0
    tracemalloc.start()
    for x in range(60):
        chunks = [Chunk((y, x), f"a/{x}/{y}", 20, 100 + x) for y in range(1000)]
        writer.refer(array, chunks)
        del chunks
        n_most = max(n_most, tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    writer.keep("a/.zarray", json.dumps({"zarr_format": 2, "shape": [1000, 60], "chunks": [1, 1]}))
    writer.finish()
    writer.close()
    assert n_most < 7e5  # 24 bytes each for 2**12 of 60000
    mapper = LazyReferenceMapper(str(tmp_path / "r.parq"))
    for y, x in [(0, 0), (999, 59), (417, 31)]:
        url, offset, length = mapper[f"a/{y}.{x}"]
        assert (url, offset, length) == (f"file:///data/a.n5/a/{x}/{y}", 20, 100 + x)


@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine")  # of fsspec, which reads here
def test_parquet_of_any_number_of_axes_and_of_most_chunks(tmp_path: Path) -> None:
    document: dict[str, Any] = {}
    for path, dimensions in {"axes": [1, 2, 3] + [1] * 61, "most": [3, 2**61]}.items():
        document = {
            "dimensions": dimensions, "blockSize": [1] * len(dimensions), "dataType": "uint8",
            "compression": {"type": "gzip"},
        }  # fmt: skip
        last = tmp_path.joinpath("a.n5", path, *(str(n - 1) for n in dimensions))
        last.parent.mkdir(parents=True)
        (tmp_path / "a.n5" / path / "attributes.json").write_text(json.dumps(document))
        sizes = [1] * len(dimensions)
        header = struct.pack(f">HH{len(sizes)}I", 0, len(sizes), *sizes)
        last.write_bytes(header + gzip.compress(b"7"))
        n5zarr.virtualize(tmp_path / "a.n5" / path, tmp_path / f"{path}.parq")
        mapper = LazyReferenceMapper(str(tmp_path / f"{path}.parq"))
        chunk = ".".join(str(n - 1) for n in dimensions[::-1])
        url, offset, _ = mapper[f"{path}/{chunk}"]
        assert (url, offset) == (f"file://{last}", len(header))
    document["dimensions"] = [4, 2**61]
    path = "most"
    (tmp_path / "a.n5" / path / "attributes.json").write_text(json.dumps(document))
    with pytest.raises(N5UnrepresentableError, match=r"less than 2\*\*63 chunks"):
        n5zarr.virtualize(tmp_path / "a.n5" / path, tmp_path / "more.parq")
    assert n5zarr.virtualize(tmp_path / "a.n5" / path, tmp_path / "more.json").n_referenced == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
def test_parquet_leaves_no_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    writer = ParquetWriter("file:///data/a.n5", str(tmp_path / "r.parq"), None, 1)
    assert any((tmp_path / "tmp").iterdir())
    changed: Any = writer
    changed._data.close()
    changed._data = Path("/dev/full").open("wb")  # noqa: SIM115 - closed by the writer
    writer._data.write(b"a copied chunk")
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    assert not any((tmp_path / "tmp").iterdir())


def test_text_and_labels_are_copied(read: Read, tmp_path: Path) -> None:
    ways: list[tuple[str, Any]] = [(".json", 2), (".json", 3), (".parq", 2), (".icechunk", 3)]
    found: dict[str, Any] = {}
    for root in ("labels.n5", "strings.n5"):
        written = [
            n5zarr.virtualize(JAVA / root, tmp_path / f"{root}{i}{suffix}", zarr_format=zarr_format)
            for i, (suffix, zarr_format) in enumerate(ways)
        ]
        each = read([*map(reference, written)])
        assert all(one == each[0] for one in each)
        # in a group of its own, where the datasets do not share their axes
        found |= {name.rpartition("/")[2]: array for name, array in each[0].items()}
    for dataset in MANIFEST["strings"]:
        # of "mode0" there is no list: two strings in a block of four
        written_strings = dataset["valuesN5Order"] or ["a", "b", "", ""]
        assert found[dataset["path"]]["values"] == written_strings
    sevens = hashlib.sha256(np.full(8, 7, ">u8").tobytes()).hexdigest()
    assert found["old-argmax"]["sha256"] == sevens


def test_references_point_at_payloads(tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    n5zarr.virtualize(JAVA / "blocks.n5", out, coords=False, zarr_format=3)
    references = json.loads(out.read_text())["refs"]
    url, offset, length = references["full-edges/c/0/1"]
    assert url == f"file://{JAVA}/blocks.n5/full-edges/1/0"
    block = Path(url.removeprefix("file://")).read_bytes()
    header = 4 + 4 * 2
    assert (offset, length) == (header, len(block) - header)
    # of mode 1, with a count of elements after the sizes
    assert references["mode1-exact/c/0/0"][1] == header + 4
    # raw elements are followed by others
    assert references["trailing-bytes/c/0/0"][1:] == [header, 12]


@pytest.mark.long
def test_xarray_finds_axes_with_units(read: Read, tmp_path: Path) -> None:
    root = JAVA / "metadata.n5"
    json_, icechunk_ = (
        n5zarr.virtualize(root, tmp_path / f"a{suffix}") for suffix in (".json", ".icechunk")
    )
    ways = [reference(json_, axes="kerchunk"), reference(icechunk_, axes="zarr")]
    n_axes = 0
    for found in read(ways):
        for truth in TRUTH:
            path = f"/{truth['path']}"
            axes = found.get(path) or found[f"{path}/{path.rpartition('/')[2]}"]
            for i, dim in enumerate(truth["axes"] if truth["unit"] else ()):
                first, second, unit = axes[dim]
                if labels := truth.get("labels", {}).get(dim):
                    assert [first, second] == labels
                    continue
                scale, start = truth["scale"][i], truth["translation"][i]
                np.testing.assert_allclose([first, second - first], [start, scale])
                units = truth["unit"]
                assert unit == (units if isinstance(units, str) else units[i])
                n_axes += 1
    assert n_axes == 2 * 80


def registry() -> ObjectStoreRegistry[Any]:
    return ObjectStoreRegistry({"file://": ObstoreFiles()})


def test_virtualizarr_writes_what_the_parser_finds(read: Read, tmp_path: Path) -> None:
    path = JAVA / "tensorstore.n5"
    names = [d["path"] for d in of_root("tensorstore.n5") if d["path"].endswith("u16")]
    references = []
    for i, name in enumerate(names):
        virtual = virtualizarr.open_virtual_dataset(
            f"file://{path}", registry=registry(), parser=N5Parser(name), loadable_variables=[]
        )
        out = tmp_path / f"{i}.json"
        virtual.vz.to_kerchunk(str(out), format="json", zarr_format=3)
        references.append({"path": str(out), "prefix": f"file://{path}/"})
    for name, found in zip(names, read(references), strict=True):
        (dataset,) = [d for d in of_root("tensorstore.n5") if d["path"] == name]
        assert [array["sha256"] for array in found.values()] == [dataset["sha256"]]
    assert len(names) > 3


def test_the_parsers_store_has_groups_and_reads_right() -> None:
    store = N5Parser(coords=False)(f"file://{JAVA}/sparse.n5", registry())
    for dataset in of_root("sparse.n5"):
        array = zarr.open_array(store, path=dataset["path"], mode="r", zarr_format=3)
        spec = {"driver": "file", "path": f"{JAVA}/sparse.n5/{dataset['path']}"}
        if dataset["compression"]["type"] == "lz4":
            continue  # which tensorstore lacks
        expected = ts.open({"driver": "n5", "kvstore": spec}).result().read().result()
        np.testing.assert_array_equal(np.asarray(array[...]), expected.T)
    tree = virtualizarr.open_virtual_datatree(
        f"file://{n5zarr.sample_path()}", registry=registry(), parser=N5Parser()
    )
    paths = {node.path for node in tree.subtree}
    assert paths == {"/", "/em", "/em/s0", "/em/s1", "/em/s2", "/labels"}
    assert tree["em/s2"].coords["x"].attrs["units"] == "nm"


def test_inlined_bytes_have_a_limit(tmp_path: Path) -> None:
    with pytest.raises(N5UnsupportedError, match="truncated at the end of axes; chunk_grid="):
        n5zarr.virtualize(n5zarr.sample_path(), tmp_path / "a.json", max_inlined=1000)
    with pytest.raises(N5UnsupportedError, match=r"no codec of zarr-python reads .* with lz4"):
        n5zarr.virtualize(JAVA / "v0.n5", tmp_path / "a.json", "lz4", max_inlined=10)
    with pytest.raises(N5UnsupportedError, match="at most 1000 bytes"):
        N5Parser(max_inlined=1000)(f"file://{n5zarr.sample_path()}", registry())
    assert not list(tmp_path.iterdir())


def test_existing_references_are_only_replaced_with_overwrite(read: Read, tmp_path: Path) -> None:
    sample = n5zarr.sample_path()
    for name in ("a.json", "a.parq"):
        n5zarr.virtualize(sample, tmp_path / name, "em/s1")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            n5zarr.virtualize(sample, tmp_path / name)
    out = tmp_path / "a.icechunk"
    n5zarr.virtualize(sample, out, "em/s1", message="first")
    with pytest.raises(N5UnrepresentableError, match="overwrite=True"):
        n5zarr.virtualize(sample, out)
    copy = tmp_path / "my copy.n5"
    shutil.copytree(sample, copy)
    second = n5zarr.virtualize(copy, out, overwrite=True, message="second")
    (found,) = read([reference(second)])
    assert "em/s1/s1" in found
    assert "s1" not in found  # of the first commit

    import icechunk  # noqa: PLC0415 - takes a second

    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(out)))
    messages = [commit.message for commit in repository.ancestry(branch="main")]
    assert messages[:2] == ["second", "first"]
    prefixes = {f"file://{sample}/", second.prefix}
    assert prefixes == set(repository.config.virtual_chunk_containers or ())


def test_overwrite_replaces_references_only(tmp_path: Path, monkeypatch: Any) -> None:
    copy = tmp_path / "c.n5"
    shutil.copytree(n5zarr.sample_path(), copy)
    before = contents(copy)
    for out in (copy, copy / "em", f"file://{copy}"):
        with pytest.raises(FileExistsError, match="got something else"):
            n5zarr.virtualize(copy, out, format="parquet", overwrite=True)
    for out in (copy / "attributes.json", copy):
        with pytest.raises(FileExistsError, match="got something else"):
            n5zarr.virtualize(copy, out, format="json", overwrite=True)
    assert contents(copy) == before
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.parq").mkdir()
    for _ in range(2):
        n5zarr.virtualize(copy, "~/a.parq", "em/s2", overwrite=True)
    assert (tmp_path / "a.parq" / ".zmetadata").exists()


def test_attributes_that_are_not_finite_become_text_in_strict_json(tmp_path: Path) -> None:
    with warnings.catch_warnings(action="ignore"):
        importlib.import_module("fastparquet")  # sets an option of pandas that is deprecated
    copy = tmp_path / "c.n5"
    shutil.copytree(Path(n5zarr.sample_path(), "em", "s2"), copy)
    document = json.loads((copy / "attributes.json").read_text()) | {"offset": [1.5, float("nan")]}
    (copy / "attributes.json").write_text(json.dumps(document))  # as Java writes it, too
    for name in ("a.json", "a.parq", "a.icechunk"):
        with pytest.warns(N5Warning, match="c.n5: NaN and infinities.*: data/offset/0$") as caught:
            written = n5zarr.virtualize(copy, tmp_path / name, coords=False)
        assert (written.n_arrays, len(caught)) == (1, 1)
    for name in ("a.json", "a.parq/.zmetadata"):
        references = strict((tmp_path / name).read_text())
        found = references.get("refs", references.get("metadata"))["data/.zattrs"]
        found = strict(found) if isinstance(found, str) else found
        assert found["offset"] == ["NaN", 1.5]  # z first


def test_errors_leave_nothing(tmp_path: Path) -> None:
    copy = tmp_path / "c.n5"
    shutil.copytree(JAVA / "sparse.n5", copy)
    damaged = next(p for p in sorted(copy.rglob("*")) if p.name.isdigit() and p.is_file())
    damaged.write_bytes(b"\0\0\0\3\0\0")
    out = tmp_path / "out"
    out.mkdir()
    dataset, block = damaged.parts[len(copy.parts)], damaged.relative_to(copy).as_posix()
    block = block.removeprefix(f"{dataset}/")
    with pytest.raises(N5BlockError, match=f"c.n5: {dataset}: block {block}: block header"):
        n5zarr.virtualize(copy, out / "a.json")
    with pytest.raises(N5UnrepresentableError, match=r"ends in \.json"):
        n5zarr.virtualize(copy, out / "a.txt")
    with pytest.raises(N5UnrepresentableError, match="zarr_format: expected 2 with parquet"):
        n5zarr.virtualize(copy, out / "a.parq", zarr_format=3)
    with pytest.raises(N5UnsupportedError, match="expected local files or a URL"):
        n5zarr.virtualize(N5Store(MemoryStore({})), out / "a.json")
    assert not list(out.iterdir())


def test_a_full_disk_leaves_no_unfinished_references(tmp_path: Path) -> None:
    writer = JsonWriter("file:///data/a.n5", 3, str(tmp_path / "a.json"), None)
    writer._file.close()
    writer._file = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115 - it is closed below
    writer.keep("a/c/0", ["file:///data/a.n5/a/0", 12, 34])
    with pytest.raises(OSError, match="No space left"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def test_the_command_counts_what_it_refers_to(tmp_path: Path) -> None:
    """Whole blocks are referred to, truncated ones copied, and one of six is missing."""
    array = n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(5, 7), chunks=(3, 3), dtype="u2", compression=None
    )
    array[:, :6] = 3
    array[3:, 6:] = 3
    out = tmp_path / "a.json"
    words = "virtualize", tmp_path / "c.n5", out, "--no-coords"
    assert printed(*words).splitlines() == [
        f"{out}: 1 array",
        "           2 chunks in blocks, 36 B",
        "           3 chunks copied, 54 B",
        "           1 chunks without block",
    ]
    assert "a.json: exists; overwrite=True (--overwrite)" in printed(*words, status=2)


def test_unsuitable_destinations_are_refused(tmp_path: Path) -> None:
    source = n5zarr.sample_path()
    with pytest.raises(FileNotFoundError, match="no: expected a directory, to put"):
        n5zarr.virtualize(source, tmp_path / "no" / "a.json")
    (tmp_path / "a.icechunk").write_bytes(b"x")
    with pytest.raises(FileExistsError):
        n5zarr.virtualize(source, tmp_path / "a.icechunk")
    with pytest.raises(N5UnsupportedError, match=r"expected a local path, s3:// or gs://"):
        n5zarr.virtualize(source, "memory://bucket/a.icechunk")
    assert [file.name for file in tmp_path.iterdir()] == ["a.icechunk"]


def test_an_axis_of_very_many_positions_gets_no_coordinate(tmp_path: Path) -> None:
    """Its positions would be copied; the array is referred to without them."""
    n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(5, 10**9 + 7), chunks=(5, 10**6), dtype="u1",
        attributes={"transform": {"axes": ["y", "x"], "scale": [2, 3]}},
    )  # fmt: skip
    with pytest.warns(N5Warning, match="'x' has 1000000007 positions: it gets no coordinate"):
        n5zarr.virtualize(tmp_path / "c.n5", tmp_path / "a.json", zarr_format=3)
    keys = json.loads((tmp_path / "a.json").read_text())["refs"]
    documents = [key for key in keys if key.endswith("zarr.json")]
    assert documents == ["zarr.json", "a/zarr.json", "y/zarr.json"]
