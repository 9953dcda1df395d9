"""``convert`` and ``rechunk`` refuse what cannot be done, and lose nothing."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import obstore.store
import pytest
import tensorstore as ts
import tifffile
import zarr
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from numcodecs.lz4 import LZ4
from zarr.storage import LocalStore, MemoryStore, ObjectStore, StorePath, WrapperStore, ZipStore

import n5zarr
from n5zarr.errors import (
    N5Error,
    N5MissingDependencyError,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
)
from tests.contract.stored import by_tensorstore, contents
from tests.remote import servers

SAMPLE = Path(n5zarr.sample_path())
COOKBOOK = Path(__file__).parents[2] / "docs" / "cookbook.md"
VALUES = np.arange(1, 144, dtype="u2").reshape(11, 13)


def make_zarr(folder: Path) -> None:
    zarr.create_array(folder / "a.zarr", name="v", data=VALUES, chunks=(5, 7))


def make_hdf5(folder: Path) -> None:
    (folder / "a.zarr").mkdir()
    with h5py.File(folder / "a.zarr/x.h5", "w") as file:
        file["raw"] = VALUES


def make_tiff(folder: Path) -> None:
    (folder / "a.zarr").mkdir()
    for k in (1, 2):
        tifffile.imwrite(folder / f"a.zarr/{k}.tif", VALUES)


@pytest.mark.parametrize(
    ("make", "source", "destination"),
    [
        (make_zarr, "a.zarr", "a.zarr"), (make_zarr, "./a.zarr/v", "a.zarr"),
        (make_zarr, "a.zarr", "file://{here}/a.zarr"), (make_zarr, "link.zarr", "a.zarr"),
        (make_zarr, "{here}/link.zarr", "a.zarr/v/inner"), (make_hdf5, "a.zarr/x.h5/raw", "a.zarr"),
        (make_tiff, "a.zarr/1.tif", "a.zarr"), (make_tiff, "?.zarr/*.tif", "a.zarr"),
    ],
)  # fmt: skip
def test_a_source_is_never_overwritten_by_itself(
    make: Callable[[Path], None],
    source: str,
    destination: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    (tmp_path / "link.zarr").symlink_to("a.zarr")
    before = contents(tmp_path)
    one, other = (text.format(here=tmp_path) for text in (source, destination))
    with pytest.raises(N5UnrepresentableError, match="expected a location outside the source"):
        n5zarr.convert(one, other, chunks=4, overwrite=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "location",
    [
        lambda folder: folder / "a.n5",
        lambda folder: f"simplecache::file://{folder}/a.n5/em",
        lambda folder: WrapperStore(LocalStore(folder / "a.n5")),
        lambda folder: n5zarr.N5Store(WrapperStore(LocalStore(folder / "a.n5"))),
        lambda folder: n5zarr.N5Store("/", fs=DirFileSystem(folder / "a.n5", LocalFileSystem())),
        lambda folder: n5zarr.N5Store(ObjectStore(obstore.store.LocalStore(folder / "a.n5"))),
        lambda folder: StorePath(
            ObjectStore(obstore.store.LocalStore()), (folder / "a.n5").as_posix().lstrip("/")
        ),
    ],
    ids=["path", "simplecache", "wrapper", "n5-wrapper", "dirfs", "obstore", "obstore-root"],
)
@pytest.mark.parametrize("destination", ["a.n5", "a.n5/em/s0"])
def test_a_source_of_n5_in_any_store_is_never_overwritten_by_itself(
    location: Callable[[Path], Any], destination: str, tmp_path: Path
) -> None:
    shutil.copytree(SAMPLE, tmp_path / "a.n5")
    source = location(tmp_path)
    before = contents(tmp_path)
    with pytest.raises(N5UnrepresentableError, match="expected a location outside the source"):
        n5zarr.convert(source, tmp_path / destination, overwrite=True)
    assert contents(tmp_path) == before


def test_an_archive_in_the_destination_is_not_overwritten(tmp_path: Path) -> None:
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", SAMPLE)
    (tmp_path / "a.n5").mkdir()
    shutil.move(packed, tmp_path / "a.n5")
    with (
        ZipStore(tmp_path / "a.n5/packed.zip", mode="r") as source,
        pytest.raises(N5UnrepresentableError, match="expected a location outside the source"),
    ):
        n5zarr.convert(source, tmp_path / "a.n5", overwrite=True)
    assert (tmp_path / "a.n5/packed.zip").exists()


def test_a_source_in_memory_is_never_overwritten_by_itself() -> None:
    zarr.create_array("memory://itself.zarr", name="v", data=VALUES, chunks=(5, 7))
    with pytest.raises(N5UnrepresentableError, match="expected a location outside the source"):
        n5zarr.convert("memory://itself.zarr", "memory:///itself.zarr", chunks=4, overwrite=True)
    read: Any = zarr.open_array("memory://itself.zarr", path="v", mode="r")
    np.testing.assert_array_equal(read[...], VALUES)


def test_datasets_of_hdf5_are_copied_under_all_their_names(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["v"] = VALUES
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["raw"] = VALUES
        file["raw"].attrs["one"] = file["raw"].ref
        file["raw"].attrs["some"] = np.array([file["raw"].ref], h5py.ref_dtype)
        file["raw"].attrs["pairs"] = np.array([(1, b"x")], [("a", "i4"), ("b", "S1")])
        file["g/hard"] = file["raw"]
        file["g/soft"] = h5py.SoftLink("/raw")
        file["g/external"] = h5py.ExternalLink("other.h5", "/v")
        file["g/above"] = h5py.SoftLink("/")
        file["nothing"] = h5py.SoftLink("/nobody")
    with pytest.warns(N5Warning) as told:
        n5zarr.convert(tmp_path / "a.h5", tmp_path / "a.n5")
    assert [str(each.message).split(": ")[1] for each in told] == ["nothing", "g/above"]
    for name in ("raw", "g/hard", "g/soft", "g/external"):
        np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5" / name), VALUES)
    document = json.loads((tmp_path / "a.n5/raw/attributes.json").read_bytes())
    assert document["pairs"] == [[1, "x"]]
    assert not document.keys() & {"one", "some"}


def write_hdf5(file: Path, values: np.ndarray[Any, Any]) -> None:
    with h5py.File(file, "w") as opened:
        opened["v"] = values


@pytest.mark.parametrize(
    ("name", "inner", "write"), [("a.h5", "v", write_hdf5), ("a.tif", "", tifffile.imwrite)]
)
def test_a_file_that_has_changed_is_read_anew(
    name: str, inner: str, write: Callable[[Path, np.ndarray[Any, Any]], None], tmp_path: Path
) -> None:
    for values in (VALUES, VALUES[:7, :5] + 1):
        write(tmp_path / name, values)  # HDF5 refuses where the file is still open
        n5zarr.convert(tmp_path / name / inner, tmp_path / "a.n5", overwrite=True)
        np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5"), values)


@pytest.mark.parametrize("options", [{}, {"chunks": 4, "max_memory": 128}], ids=str)
def test_zarr_on_a_web_server_without_lists_is_not_taken_for_empty(
    options: dict[str, Any], tmp_path: Path
) -> None:
    zarr.create_array(tmp_path / "served/a.zarr", name="v", data=VALUES, chunks=(1, 2))
    with servers.static(tmp_path / "served", lists=False) as url:
        n5zarr.convert(f"{url}/a.zarr/v", tmp_path / "v.zarr", **options)
        read: Any = zarr.open_array(tmp_path / "v.zarr", mode="r")
        np.testing.assert_array_equal(read[...], VALUES)
        with pytest.raises(N5UnsupportedError, match="does not list"):
            n5zarr.convert(f"{url}/a.zarr", tmp_path / "group.zarr", **options)


def test_regions_without_blocks_cost_nothing(tmp_path: Path) -> None:
    shape = (2**14, 2**13, 2**13)
    spec: Any = {"driver": "n5", "kvstore": {"driver": "file", "path": str(tmp_path / "a.n5")}}
    layout = ts.ChunkLayout(chunk_shape=(16, 16, 16))
    made = ts.open(spec, shape=shape, dtype="uint8", create=True, chunk_layout=layout).result()
    made[5000:5020, 7000:7001, 100:130].write(7).result()
    n_tasks = []
    n5zarr.convert(
        tmp_path / "a.n5", tmp_path / "a.zarr", chunks=24, max_memory=2**22,
        progress=lambda *_: n_tasks.append(1),
    )  # fmt: skip
    assert len(n_tasks) < 20
    read: Any = zarr.open_array(tmp_path / "a.zarr", mode="r")
    around = read[90:140, 6990:7010, 4990:5030]
    assert around.sum() == 7 * 20 * 30
    assert (around[10:40, 10, 10:30] == 7).all()


def test_verifying_tells_how_much_of_all_is_done(tmp_path: Path) -> None:
    said: list[tuple[str, int, int]] = []
    done = n5zarr.convert(
        SAMPLE, tmp_path / "a.zarr", verify=True, progress=lambda *state: said.append(state)
    )
    told = [(n, total) for stage, n, total in said if stage == "verify"]
    assert {total for _, total in told} == {done.n_bytes}
    assert told == sorted(told)
    assert told[-1][0] == done.n_bytes


def test_fill_values_that_n5_does_not_have_are_told(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "a.zarr", name="v", shape=(5, 7), dtype="f4", fill_value=np.nan)
    with pytest.warns(N5Warning, match="such as /v with nan: programs other than n5zarr"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "jpeg"}, "compression: jpeg can only be read"),
        ({"scheduler": "nobody"}, "scheduler: expected .*, got 'nobody'"),
        ({"n_workers": 0}, r"n_workers .*: expected a number above 0, got 0"),
        ({"resume": True}, r"expected either overwrite .* or resume .*, got both"),
        ({"shards": 64}, r"shards .*: expected Zarr v3 as destination"),
        ({"labels": "labels/*"}, r"labels .*: expected only with ome=True"),
        ({"select": 5}, "select: expected a text, or a list of texts, got 5"),
        ({"exclude": ["a", 5]}, "exclude: expected a text, or a list of texts"),
        ({"level": 9}, "expected arrays to copy at level 9, got none"),
        ({"exclude": "*"}, "expected arrays to copy, got none"),
        ({"chunks": (16, 16)}, r"chunks: expected .* each of 3 axes, got \(16, 16\)"),
    ],
    ids=str,
)
def test_a_wrong_option_removes_nothing(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(SAMPLE, tmp_path / "out.n5"))
    before = contents(out)
    with pytest.raises(N5Error, match=message):
        n5zarr.convert(SAMPLE / "em", out, overwrite=True, **options)
    assert contents(out) == before


@pytest.mark.parametrize(
    ("destination", "options", "message"),
    [
        ("a.zarr/v/inner", {}, "expected groups of its format above it, got an array at /v"),
        ("a.zarr/inner", {"to": "zarr2"}, "above it, got a group of Zarr v3 at /"),
        ("a.zarr/inner.n5", {}, r"that ends in \.n5 or \.zarr, got inner\.n5 in it"),
        ("a.n5/em/s0/inner", {}, "above it, got a dataset at /em/s0"),
    ],
)
def test_nothing_is_written_where_no_program_finds_it(
    destination: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    make_zarr(tmp_path)
    shutil.copytree(SAMPLE, tmp_path / "a.n5")
    before = contents(tmp_path)
    with pytest.raises(N5UnrepresentableError, match=message):
        n5zarr.convert(SAMPLE / "em/s1", tmp_path / destination, **options)
    assert contents(tmp_path) == before


def test_a_run_does_not_finish_what_another_one_has_begun_anew(tmp_path: Path) -> None:
    out = tmp_path / "a.zarr"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    def begin_another(_: str, n_done: int, n_bytes: int) -> None:
        if n_done == n_bytes:
            with pytest.raises(KeyboardInterrupt):
                n5zarr.convert(SAMPLE / "em", out, chunks=16, overwrite=True, progress=stop)

    with pytest.raises(N5UnrepresentableError, match="expected one run at a time"):
        n5zarr.convert(SAMPLE / "em", out, chunks=20, progress=begin_another)
    assert not (out / "zarr.json").exists()
    n5zarr.convert(SAMPLE / "em", out, chunks=16, resume=True)
    read: Any = zarr.open_array(out, path="s0", mode="r")
    np.testing.assert_array_equal(read[...], by_tensorstore(SAMPLE / "em/s0"))


def test_a_read_only_destination_is_refused(tmp_path: Path) -> None:
    make_zarr(tmp_path)
    before = contents(tmp_path)
    kept = LocalStore(tmp_path / "a.zarr", read_only=True)
    with pytest.raises(N5UnsupportedError, match="got a read-only one"):
        n5zarr.convert(SAMPLE, kept, to="zarr", overwrite=True)
    assert contents(tmp_path) == before
    with pytest.raises(N5UnsupportedError, match="got an archive"):
        n5zarr.convert(SAMPLE, ZipStore(tmp_path / "a.zip", mode="w"), to="zarr")


@pytest.mark.parametrize("where", ["store", "url", "source"])
def test_processes_are_not_asked_for_what_they_cannot_see(where: str, tmp_path: Path) -> None:
    url = f"memory://hidden-{os.getpid()}-{where}.zarr"
    make_zarr(tmp_path)
    source: Any = tmp_path / "a.zarr"
    destination: Any = MemoryStore() if where == "store" else url
    if where == "source":
        n5zarr.convert(source, url)
        source, destination = url, tmp_path / "b.zarr"
    with pytest.raises(N5UnrepresentableError, match="other processes do not see"):
        n5zarr.convert(source, destination, to="zarr", scheduler="processes")


@pytest.mark.each_of(4)
@pytest.mark.parametrize(
    ("path", "options"),
    [("em", {"chunks": 8}), ("labels", {"chunks": 9, "resume": True}), ("none", {})],
    ids=str,
)
@pytest.mark.parametrize("n_renames", range(5))
def test_a_killed_rechunk_loses_nothing_and_is_finished_before_another_one(
    n_renames: int,
    path: str,
    options: dict[str, Any],
    mine: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rename, n_done = Path.rename, iter(range(99))

    def stop(self: Path, target: Path) -> Path:
        if next(n_done) >= n_renames:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", stop)
        with pytest.raises(KeyboardInterrupt):
            n5zarr.rechunk(mine, "em", chunks=9)
    if options:
        said = r"interrupted run in /em.*path='em', resume"
        with pytest.raises(N5UnrepresentableError, match=said):
            n5zarr.rechunk(mine, path, **options)
    n5zarr.rechunk(mine, "em", chunks=9, resume=True)
    for name in ("em/s0", "em/s1", "em/s2", "labels/s0"):
        assert n5zarr.open_array(mine, path=name).chunks == (9, 9, 9) or name == "labels/s0"
        np.testing.assert_array_equal(by_tensorstore(mine / name), by_tensorstore(SAMPLE / name))
    assert [file.name for file in mine.parent.iterdir()] == ["mine.n5"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_two_runs_of_rechunk_in_one_container_do_not_disturb_each_other(mine: Path) -> None:
    refused: list[str] = []

    def begin_another(*_: object) -> None:
        if not refused:
            with pytest.raises(N5UnrepresentableError, match="another run of rechunk") as caught:
                n5zarr.rechunk(mine, "labels", chunks=9)
            refused.append(caught.value.kind)

    done = n5zarr.rechunk(mine, "em", chunks=9, progress=begin_another)
    assert refused == ["option"]
    assert [array.chunks for array in done.arrays] == [(9, 9, 9)] * 3
    for name in ("em/s0", "em/s1", "em/s2", "labels/s0"):
        np.testing.assert_array_equal(by_tensorstore(mine / name), by_tensorstore(SAMPLE / name))
    assert [file.name for file in mine.parent.iterdir()] == ["mine.n5"]


def as_link(dataset: Path) -> None:
    dataset.symlink_to(dataset.rename(dataset.parents[2] / "elsewhere"))


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("em", lambda s0: (s0 / "notes.txt").touch(), "only blocks in a dataset, got 'notes.txt'"),
        ("em/s0", lambda s0: (s0 / "notes").mkdir(), "only blocks in a dataset, got 'notes'"),
        ("em", as_link, "a directory, got a link"),
    ],
    ids=["file", "node", "link"],
)
def test_a_dataset_that_is_more_than_blocks_is_not_replaced(
    path: str, change: Callable[[Path], None], message: str, mine: Path
) -> None:
    change(mine / "em/s0")
    before = contents(mine.parent)
    with pytest.raises(N5UnsupportedError, match=f"expected {message}"):
        n5zarr.rechunk(mine, path, chunks=9)
    assert contents(mine.parent) == before
    with pytest.raises(N5UnrepresentableError, match="expected chunks, a compression or both"):
        n5zarr.rechunk(mine, path)


def test_a_rechunked_dataset_does_not_say_that_it_is_a_container(mine: Path) -> None:
    n5zarr.rechunk(mine, "em/s1", chunks=9)
    before = json.loads((SAMPLE / "em/s1/attributes.json").read_bytes())
    after = json.loads((mine / "em/s1/attributes.json").read_bytes())
    assert after == before | {"blockSize": [9, 9, 9]}


def test_a_missing_package_is_told_before_anything_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n5zarr.create_array(tmp_path / "a.n5/x", data=np.arange(3))
    n5zarr.create_array(tmp_path / "b.n5/x", data=np.arange(5))
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    with pytest.raises(N5MissingDependencyError, match="lz4"):
        n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.n5", overwrite=True, compression="lz4")
    assert n5zarr.open_array(tmp_path / "b.n5/x").shape == (5,)


@pytest.mark.parametrize(
    ("source", "destination", "options"),
    [
        ("lz4.n5", "b.n5", {"chunks": 2}), ("lz4.n5", "b.n5", {"compression": "gzip"}),
        ("lz4.n5", "b.zarr", {}), ("lz4.n5", "b.zarr", {"ome": True}),
        ("lz4.n5", "b.zarr", {"coords": True}), ("a.zarr", "b.n5", {}),
    ],
    ids=str,
)  # fmt: skip
def test_a_missing_package_of_the_source_is_told_before_anything_is_removed(
    source: str,
    destination: str,
    options: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = np.arange(35, dtype="u2").reshape(5, 7)
    how: Any = {"data": data, "chunks": (4, 5)}
    n5zarr.create_array(tmp_path / "lz4.n5/x", compression="lz4", axes="yx", **how)
    zarr.create_array(tmp_path / "a.zarr", name="x", compressors=LZ4(), zarr_format=2, **how)
    n5zarr.convert(SAMPLE / "em/s2", tmp_path / destination)
    before = contents(tmp_path)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "lz4.block", None)
        with pytest.raises(N5MissingDependencyError, match="lz4"):
            n5zarr.convert(tmp_path / source, tmp_path / destination, overwrite=True, **options)
        assert contents(tmp_path) == before
        n5zarr.convert(tmp_path / "lz4.n5", tmp_path / "same.n5")  # blocks stay as they are
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "same.n5/x")[...], data)


@pytest.mark.parametrize(
    ("zarr_format", "to", "got"),
    [(2, "zarr", "got a group of Zarr v2 at /g"), (3, "zarr2", "got a group of Zarr v3 at /g")],
)
def test_a_group_of_the_other_format_takes_no_copy(
    zarr_format: Any, to: Any, got: str, tmp_path: Path
) -> None:
    """Programs that open the group would not see it."""
    zarr.open_group(tmp_path / "a.zarr", path="g", mode="w", zarr_format=zarr_format)
    (tmp_path / "a.zarr/.zgroup").unlink(missing_ok=True)
    (tmp_path / "a.zarr/zarr.json").unlink(missing_ok=True)
    before = contents(tmp_path)
    with pytest.raises(N5UnrepresentableError, match=f"groups of its format above it, {got}"):
        n5zarr.convert(SAMPLE / "em/s1", tmp_path / "a.zarr/g/inner", to=to)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["img.czi", "img.lif", "img.nd2", "img.jpg", "img"])
def test_a_file_of_another_format_is_told(tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.write_bytes(b"ZISRAWFILE")
    with pytest.raises(N5UnrepresentableError, match=r"HDF5 or TIFF, .* BioIO") as err:
        n5zarr.convert(source, tmp_path / "o.n5")
    assert str(err.value).startswith(f"{source}: expected ")
    assert "docs/cookbook.md#czi-lif-or-nd2-to-n5" in str(err.value)
    assert "\n### CZI, LIF or ND2 to N5\n" in COOKBOOK.read_text()
