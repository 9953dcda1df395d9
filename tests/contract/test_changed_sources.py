"""The source of an unfinished job changes: what was made of it is made anew, or it is an error."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr.errors import N5Error
from tests.contract.stored import by_zarr, write_by_tensorstore

SHAPE, BLOCKS = (29, 37, 43), (5, 7, 11)  # C order
INTERRUPTED_AFTER = 3


class StopError(Exception):
    """The user interrupts a run."""


def stop_after(n: int) -> Callable[..., None]:
    """Return a progress that interrupts a run after some tasks."""
    left = [n]

    def progress(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise StopError

    return progress


def values(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 60000, SHAPE).astype("u2")


def write_n5(path: Path, data: np.ndarray) -> None:
    """Write raw blocks, whose sizes do not tell other values, by tensorstore."""
    write_by_tensorstore(path, data, BLOCKS, "raw")


def write_zarr(path: Path, data: np.ndarray) -> None:
    if not path.exists():
        zarr.create_array(path, shape=SHAPE, chunks=BLOCKS, dtype="u2", compressors=None)
    zarr.open_array(path, mode="r+")[...] = data


WAYS: list[tuple[str, dict[str, Any]]] = [
    ("n5", {"to": "n5"}), ("n5", {"to": "n5", "compression": "gzip"}),
    ("n5", {"to": "n5", "chunks": (8, 9, 10)}), ("n5", {"to": "zarr"}),
    ("n5", {"to": "zarr", "shards": (10, 14, 22)}), ("n5", {"to": "zarr2", "chunks": (8, 9, 10)}),
    ("zarr", {"to": "zarr"}), ("zarr", {"to": "zarr", "chunks": (8, 9, 10)}),
    ("zarr", {"to": "n5"}),
]  # fmt: skip
WRITERS = {"n5": write_n5, "zarr": write_zarr}


@pytest.mark.each_of(5)
@pytest.mark.parametrize(("kind", "options"), WAYS, ids=str)
@pytest.mark.parametrize("change", ["all", "one block", "a block goes"])
def test_a_resumed_copy_is_one_of_the_source_as_it_is(
    change: str, kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    source, out, write = tmp_path / "in", tmp_path / "out", WRITERS[kind]
    after = values(1)
    write(source, after)
    options = {**options, "max_memory": 2**14, "n_workers": 1}
    with pytest.raises(StopError):
        n5zarr.convert(source, out, progress=stop_after(INTERRUPTED_AFTER), **options)
    if change == "a block goes":
        (source / ("0/0/0" if kind == "n5" else "c/0/0/0")).unlink()
        after[: BLOCKS[0], : BLOCKS[1], : BLOCKS[2]] = 0
    else:
        box = np.s_[:1, :1, :1] if change == "one block" else np.s_[...]
        after[box] = values(2)[box]
        write(source, after)
    n5zarr.convert(source, out, resume=True, **options)
    np.testing.assert_array_equal(by_zarr(out), after)
    assert not list(out.rglob("n5zarr-incomplete*"))


def in_parts(source: Path, out: Path, numbers: tuple[int, ...], options: dict[str, Any]) -> None:
    for number in numbers:
        n5zarr.convert(source, out, part=(number, len(numbers)), **options)


@pytest.mark.each_of(4)
@pytest.mark.parametrize(("kind", "options"), WAYS, ids=str)
def test_finish_names_the_parts_whose_source_has_changed(
    kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    source, out, write = tmp_path / "in", tmp_path / "out", WRITERS[kind]
    data = values(1)
    write(source, data)
    in_parts(source, out, (1, 2, 3), options)
    data[-1, -1, -1] += 1
    write(source, data)  # all blocks are written again
    with pytest.raises(N5Error, match=r"run part \(--part\) [123, ]+ again, then fin") as caught:
        n5zarr.convert(source, out, finish=True, **options)
    assert caught.value.kind == "changed"
    in_parts(source, out, (3, 1, 2), options)
    n5zarr.convert(source, out, finish=True, **options)
    np.testing.assert_array_equal(by_zarr(out), data)
    assert not list(out.rglob("n5zarr-incomplete*"))


@pytest.mark.each_of(5)
@pytest.mark.parametrize(("kind", "options"), WAYS, ids=str)
@pytest.mark.parametrize("others", ["the same", "changed"])
def test_finish_removes_what_the_source_has_lost(
    others: str, kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """Blocks that are gone belong to no part any more, whether parts run again or not."""
    source, out, write = tmp_path / "in", tmp_path / "out", WRITERS[kind]
    data = values(1)
    write(source, data)
    in_parts(source, out, (1, 2), options)
    if others == "changed":
        data[-1, -1, -1] += 1
        write(source, data)
    for k in range(3):
        (source / (f"{k}/0/0" if kind == "n5" else f"c/0/0/{k}")).unlink()
    data[: BLOCKS[0], : BLOCKS[1], : 3 * BLOCKS[2]] = 0
    with suppress(N5Error):  # which names parts
        n5zarr.convert(source, out, finish=True, **options)
    if list(out.rglob("n5zarr-incomplete*")):
        in_parts(source, out, (1, 2), options)
        n5zarr.convert(source, out, finish=True, **options)
    np.testing.assert_array_equal(by_zarr(out), data)
    assert not list(out.rglob("n5zarr-incomplete*"))


@pytest.mark.each_of(4)
@pytest.mark.parametrize(("kind", "options"), WAYS, ids=str)
def test_what_a_killed_run_has_not_noted_goes_with_chunks_of_the_source(
    kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """A killed run may have written no ledger: the time of a folder tells of lost chunks."""
    source, out = tmp_path / "in", tmp_path / "out"
    data = values(1)
    WRITERS[kind](source, data)
    options = {**options, "max_memory": 2**14, "n_workers": 1}
    with pytest.raises(StopError):
        n5zarr.convert(source, out, progress=stop_after(INTERRUPTED_AFTER), **options)
    for ledger in out.rglob("n5zarr-incomplete-made-*"):
        ledger.unlink()
    (source / ("1/0/0" if kind == "n5" else "c/0/0/1")).unlink()
    data[: BLOCKS[0], : BLOCKS[1], BLOCKS[2] : 2 * BLOCKS[2]] = 0
    n5zarr.convert(source, out, resume=True, **options)
    np.testing.assert_array_equal(by_zarr(out), data)


def test_blocks_that_change_while_a_part_runs_again(tmp_path: Path) -> None:
    """What was never made is not taken for made: another run of all parts is not asked for."""
    source, out = tmp_path / "in", tmp_path / "out"
    write_n5(source, values(1))
    options: dict[str, Any] = {"to": "n5", "part": "1/1", "n_workers": 1, "max_memory": 2**14}
    for n in (1, 2):
        with pytest.raises(StopError):
            n5zarr.convert(source, out, progress=stop_after(n), **options)
    os.utime(source / "3/5/5", ns=(1, 1))  # written before it is copied
    n5zarr.convert(source, out, **options)
    n5zarr.convert(source, out, to="n5", finish=True, max_memory=2**14)
    np.testing.assert_array_equal(by_zarr(out), values(1))


def test_a_resumed_copy_keeps_what_is_unchanged(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    write_n5(source, values(1))
    options: dict[str, Any] = {"to": "n5", "max_memory": 2**14, "n_workers": 1}
    with pytest.raises(StopError):
        n5zarr.convert(source, out, progress=stop_after(INTERRUPTED_AFTER), **options)
    there = {f: f.stat().st_mtime_ns for f in out.rglob("*") if f.name.isdigit() and f.is_file()}
    block = next(iter(sorted(there))).relative_to(out)
    (source / block).write_bytes((source / "1/1/1").read_bytes())
    n5zarr.convert(source, out, resume=True, **options)
    changed = {f for f, written in there.items() if f.stat().st_mtime_ns != written}
    # tasks that had begun when the run was interrupted are not noted
    assert out / block in changed
    assert len(there) - len(changed) >= INTERRUPTED_AFTER
    np.testing.assert_array_equal(by_zarr(out), by_zarr(source))


@pytest.mark.parametrize("keyword", [{"resume": True}, {"part": "1/1"}, {"finish": True}], ids=str)
def test_another_document_is_an_error_that_names_the_dataset(
    keyword: dict[str, Any], tmp_path: Path
) -> None:
    source, out = tmp_path / "in.n5", tmp_path / "out.zarr"
    write_n5(source / "a", values(1))
    if "resume" in keyword:
        with pytest.raises(StopError):
            n5zarr.convert(source, out, progress=stop_after(1), n_workers=1)
    else:
        n5zarr.convert(source, out, part="1/1")
    document = json.loads((source / "a/attributes.json").read_text())
    document["dimensions"] = [43, 37, 31]
    (source / "a/attributes.json").write_text(json.dumps(document))
    said = r"source /a: expected .*43, 37, 29.* got .*43, 37, 31"
    with pytest.raises(N5Error, match=said) as err:
        n5zarr.convert(source, out, **keyword)
    assert err.value.kind == "changed"
    n5zarr.convert(source, out, overwrite=True)


def test_a_changed_file_of_hdf5_is_an_error(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("a", data=values(1), chunks=BLOCKS)
    with pytest.raises(StopError):
        n5zarr.convert(tmp_path / "in.h5", tmp_path / "out.n5", progress=stop_after(1))
    with h5py.File(tmp_path / "in.h5", "r+") as file:
        file["a"][...] = values(2)
    os.utime(tmp_path / "in.h5", ns=(1, 1))
    with pytest.raises(N5Error, match=r"source .*in.h5: expected the array that it was"):
        n5zarr.convert(tmp_path / "in.h5", tmp_path / "out.n5", resume=True)


def test_a_changed_file_of_a_project_in_hdf5_is_an_error(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    data = values(1) // 2  # int16 stands for uint16
    xml = tmp_path / "p.xml"
    n5zarr.write_bdv({0: data}, xml, levels=0)
    loader = '<ImageLoader format="bdv.hdf5"><hdf5 type="relative">p.h5</hdf5></ImageLoader>'
    text = re.sub("<ImageLoader.*?</ImageLoader>", loader, xml.read_text(), flags=re.DOTALL)
    xml.write_text(text)
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["s00/resolutions"], file["s00/subdivisions"] = np.ones((1, 3)), [BLOCKS[::-1]]
        file.create_dataset("t00000/s00/0/cells", data=data.astype("i2"), chunks=BLOCKS)
    out = tmp_path / "out.n5"
    with pytest.raises(StopError):
        n5zarr.convert(xml, out, progress=stop_after(1), n_workers=1, max_memory=2**14)
    os.utime(tmp_path / "p.h5", ns=(1, 1))
    with pytest.raises(N5Error, match=r"source .*p.h5: expected the array that it was") as caught:
        n5zarr.convert(xml, out, resume=True, n_workers=1, max_memory=2**14)
    assert caught.value.kind == "changed"


def build(where: Path, **options: Any) -> None:
    how: Any = {"levels": 2, "factors": (2, 2, 2), "method": "stride", "n_workers": 1}
    n5zarr.build_pyramid(where, max_memory=2**17, **how, **options)


def check_levels(where: Path, data: np.ndarray) -> None:
    for name, step in (("s1", 2), ("s2", 4)):
        np.testing.assert_array_equal(by_zarr(where / name), data[::step, ::step, ::step])
    assert not list(where.rglob("n5zarr-incomplete*"))


@pytest.mark.each_of(3)
@pytest.mark.parametrize("n_tasks", [1, 2])
@pytest.mark.parametrize("change", ["all", "one block"])
@pytest.mark.parametrize("kind", ["n5", "ome"])
def test_levels_of_a_resumed_run_are_those_of_the_image_as_it_is(
    kind: str, change: str, n_tasks: int, tmp_path: Path
) -> None:
    where, write = image(kind, tmp_path)
    with pytest.raises(StopError):
        build(where, progress=stop_after(n_tasks))
    data = values(1)
    box = np.s_[:1, :1, :1] if change == "one block" else np.s_[...]
    data[box] = values(2)[box]
    write(data)
    build(where, resume=True)
    check_levels(where, data)


def image(kind: str, folder: Path) -> tuple[Path, Callable[[np.ndarray], None]]:
    """Write an image, and return where, and how to write it again."""
    write_n5(folder / "in.n5/s0", values(1))
    if kind == "n5":
        return folder / "in.n5", partial(write_n5, folder / "in.n5/s0")
    n5zarr.convert(folder / "in.n5", folder / "image.zarr", ome=True)
    return folder / "image.zarr", partial(write_zarr, folder / "image.zarr/s0")


@pytest.mark.each_of(2)
@pytest.mark.parametrize("kind", ["n5", "ome"])
def test_finish_of_a_pyramid_names_the_parts_whose_image_has_changed(
    kind: str, tmp_path: Path
) -> None:
    where, write = image(kind, tmp_path)
    for number in (1, 2):
        build(where, part=(number, 2))
    write(values(2))
    with pytest.raises(N5Error, match=r"run part \(--part\) [12, ]+ again, then fin") as caught:
        build(where, finish=True)
    assert caught.value.kind == "changed"
    for number in (1, 2):
        build(where, part=(number, 2))
    build(where, finish=True)
    check_levels(where, values(2))


def test_the_end_of_a_pyramid_removes_what_the_image_has_lost(tmp_path: Path) -> None:
    where, write = image("n5", tmp_path)
    for number in (1, 2):
        build(where, part=(number, 2))
    data = values(2)
    write(data)
    for block in (where / "s0").glob("0/*/*"):
        block.unlink()
    data[..., : BLOCKS[2]] = 0
    with pytest.raises(N5Error, match=r"run part \(--part\) [12, ]+ again, then fin"):
        build(where, finish=True)
    for number in (1, 2):
        build(where, part=(number, 2))
    build(where, finish=True)
    check_levels(where, data)


def test_a_pyramid_removes_what_a_killed_one_was_writing_first(tmp_path: Path) -> None:
    where, _ = image("n5", tmp_path)
    left = where / "s2" / "n5zarr-incomplete.0123456789abcdef0123456789abcdef.partial"
    left.parent.mkdir()
    left.touch()
    build(where, overwrite=True)
    assert not list(where.rglob("*.partial"))
    check_levels(where, values(1))


def test_the_end_of_a_pyramid_removes_what_a_killed_one_wrote(tmp_path: Path) -> None:
    where, _ = image("n5", tmp_path)
    build(where, part="1/1")
    hexadecimal = "0123456789abcdef" * 2
    for folder in (where / "s0", where):
        (folder / f"attributes.json.{hexadecimal}.partial").write_bytes(b"{")
    other = where / "s0" / f"other.json.{hexadecimal}.partial"  # not a document of this job
    other.write_bytes(b"{")
    build(where, finish=True)
    assert list(where.rglob("*.partial")) == [other]
    check_levels(where, values(1))


def test_parts_of_a_pyramid_with_other_memory_say_which(tmp_path: Path) -> None:
    where, _ = image("n5", tmp_path)
    n5zarr.build_pyramid(where, levels=1, part="1/2", max_memory=2**26)
    with pytest.raises(N5Error, match=r"max_memory=67108864 \(--max-memory 64\)$"):
        n5zarr.build_pyramid(where, levels=1, part="2/2")
