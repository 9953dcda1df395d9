"""Files are read, listed, written and removed; what is there afterwards, and what is refused."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.buffer import cpu
from zarr.storage import LocalStore, MemoryStore

from n5zarr.codecs.buffers import Scratch
from n5zarr.errors import N5BlockError, N5FormatError
from n5zarr.storage import files, locks, removing, writing
from n5zarr.storage.confined import ConfinedStore
from n5zarr.storage.files import read, read_ends, read_part, read_reused, scan, stamp
from n5zarr.storage.local import LocalFiles, may_take_long
from n5zarr.storage.requests import (
    Ends,
    Entry,
    Exists,
    FileThatNames,
    Get,
    KeysBelow,
    List,
    Put,
    Remove,
    RemoveTree,
    Stamp,
    Update,
    Warn,
    Work,
)
from n5zarr.storage.writing import FileWriter, sync_directories
from n5zarr.storage.zarr_store import ZarrStorage
from tests.unit.storage.posix import posix

DATA = b"0123456789"
OLD = time.time_ns() - 10**12
UNFINISHED = "k." + "0123456789abcdef" * 2 + ".partial"


@pytest.fixture(params=["old", "recent"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file; one that was written just now is read under a lock."""
    (tmp_path / "k").write_bytes(DATA)
    if request.param == "old":
        os.utime(tmp_path / "k", ns=(OLD, OLD))
    return tmp_path / "k"


# ----------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("settled", [False, True])
def test_a_file_and_its_parts_are_read(path: Path, settled: bool) -> None:
    assert read(path, settled=settled) == DATA
    for part, expected in [((2, 3), b"234"), ((8, 5), b"89"), ((0, 10), DATA), ((12, 3), b"")]:
        assert read(str(path), settled=settled, part=part) == expected
    memory = Scratch()
    found = read_reused(str(path), memory, settled=settled)
    assert found is not None
    assert bytes(found) == DATA
    for missing in (path.parent / "x", path / "x", path.parent / ("n" * 300), path.parent):
        assert read(missing, settled=settled) is None
        assert read(missing, settled=settled, part=(0, 1)) is None
        assert read_reused(str(missing), memory) is None
        assert read_ends(str(missing), 1, 1) is None


def test_the_ends_of_a_file(path: Path) -> None:
    for first, last, expected in [
        (3, 2, (10, b"012", b"89")), (5, 5, (10, DATA, b"")), (5, 4, (10, b"01234", b"6789")),
        (99, 0, (10, DATA, b"")), (3, 0, (10, b"012", b"")),
    ]:  # fmt: skip
        assert read_ends(str(path), first, last) == expected


@posix
def test_a_part_of_a_file_that_is_as_expected(path: Path) -> None:
    for start, offset, n, total, expected in [
        (b"012", 2, 3, 7, b"567"), (b"012", 0, 7, 7, b"3456789"), (b"", 0, 1, 10, b"0"),
        (b"013", 2, 3, 7, None), (b"012", 2, 3, 6, None), (b"012", 2, 3, 8, None),
        (b"012", 5, 3, 7, None),
    ]:  # fmt: skip
        assert read_part(str(path), start, offset, n, total) == expected
    assert read_part(str(path.parent / "x"), b"", 0, 1, 1) is None


def test_the_system_may_return_fewer_bytes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_some, readv = os.read, os.readv
    monkeypatch.setattr(os, "read", lambda file, n: read_some(file, min(n, 3)))
    monkeypatch.setattr(os, "readv", lambda file, b: readv(file, [memoryview(b[0])[:3]]))
    assert (read(path), read(path, part=(1, 7))) == (DATA, b"1234567")
    found = read_reused(str(path), Scratch())
    assert found is not None
    assert bytes(found) == DATA
    monkeypatch.setattr(files, "REUSED", 9)
    monkeypatch.setattr(os, "readv", None)
    assert bytes(read_reused(str(path), Scratch()) or b"") == DATA


@posix
def test_a_reused_memory_is_reused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Scratch()
    first, second = (np.frombuffer(read_reused(str(path), memory) or b"", "u1") for _ in range(2))
    assert np.shares_memory(first, second)
    monkeypatch.setattr(files, "REUSED", 9)
    third = np.frombuffer(read_reused(str(path), memory) or b"", "u1")
    assert not np.shares_memory(first, third)


def test_a_dangling_link_is_no_missing_file(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("link", "d/link"):
        (tmp_path / name).symlink_to("nowhere")
    (tmp_path / "good").symlink_to("d")
    for key, where in [("link", "link"), ("link/a", "link"), ("link/a/b", "link"),
                       ("d/link/a/b/c/d/e", "d/link"), ("good/link", "good/link")]:  # fmt: skip
        with pytest.raises(
            N5FormatError, match="a link to nowhere, which does not exist"
        ) as caught:
            read(tmp_path / key)
        assert (caught.value.kind, caught.value.where) == ("file", str(tmp_path / where))
    for key in ("good/x", "good/x/y/z/w", "x", "d/x/y/z/w/v"):
        assert read(tmp_path / key) is None


@posix
def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for part in (None, (0, 1)):
        with pytest.raises(N5FormatError, match="got a pipe, a socket or a device") as caught:
            read(tmp_path / "pipe", part=part)
        assert (caught.value.kind, caught.value.where) == ("file", str(tmp_path / "pipe"))
    (tmp_path / "0").write_bytes(struct.pack(">HHI", 0, 1, 1) + bytes(60))
    (tmp_path / "k").write_bytes(bytes(70))
    for large, is_checked in [(67, True), (68, False)]:
        asked: list[Any] = []
        monkeypatch.setattr(files, "_LARGE", large)
        monkeypatch.setattr(files, "check_stored_size", lambda n, r: asked.append((n, r(2, 2))))  # noqa: B023
        assert len(read(tmp_path / "0") or b"") == 68
        assert read(tmp_path / "k") == bytes(70)
        assert read(tmp_path / "0", part=(0, 4)) == b"\0\0\0\1"
        assert asked == [(68, b"\0\1")] * is_checked
    monkeypatch.setattr(files, "_LARGE", 67)

    def refuse(*_: Any) -> None:
        raise N5BlockError("too long", kind="payload")

    monkeypatch.setattr(files, "check_stored_size", refuse)
    with pytest.raises(N5BlockError) as block:
        read(tmp_path / "0")
    assert block.value.where == str(tmp_path / "0")


def test_a_file_that_keeps_changing_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PAUSE", 0)
    n_taken = [0]

    def take(file: int, size: int) -> bytes:
        n_taken[0] += 1
        with path.open("ab") as other:
            other.write(b"+")
        return os.pread(file, size, 0)

    with pytest.raises(BlockingIOError, match="keeps writing into the file") as caught:
        files._read_with(path, take)
    assert (caught.value.errno, caught.value.filename) == (errno.EBUSY, str(path))
    assert n_taken[0] in (100, 101)
    changes = iter([True, True, False])
    old = path.read_bytes()

    def twice(file: int, size: int) -> bytes:
        if next(changes):
            path.write_bytes(b"new" + old)
        return os.pread(file, size, 0)

    assert files._read_with(path, twice) == b"new" + old


def test_a_file_that_is_coming_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, times = tmp_path / "k", [0]
    path.touch()

    def sleep(_: float) -> None:
        times[0] += 1
        if times[0] == 150:
            path.write_bytes(b"late")

    monkeypatch.setattr(time, "sleep", sleep)
    assert read(path) == b"late"
    path.write_bytes(b"")
    os.utime(path, ns=(OLD, OLD))
    assert read(path) == b""
    for size, age, expected in [(0, 0, True), (1, 0, False), (0, 2 * 10**9, False),
                                (0, -2 * 10**9, False)]:  # fmt: skip
        path.write_bytes(bytes(size))
        at = time.time_ns() - age
        os.utime(path, ns=(at, at))
        assert files.is_coming(path.stat()) is expected


def test_a_stamp_changes_with_the_file(path: Path) -> None:
    first = stamp(path)
    assert first is not None
    is_old = path.stat().st_mtime_ns == OLD
    assert (stamp(path) == first) is is_old
    assert first[:3] == (path.stat().st_ino, path.stat().st_mtime_ns, 10)
    path.write_bytes(DATA)
    assert stamp(path) != first
    assert stamp(path.parent / "x") is None


def test_a_directory_is_listed(tmp_path: Path) -> None:
    (tmp_path / "c/d/e").mkdir(parents=True)
    for name in ("c/f", f"c/{UNFINISHED}", "c/x.partial"):
        (tmp_path / name).touch()
    links = {"c/up": ".", "c/top": "..", "c/in": "d", "c/dead": "x", "c/loop": "loop", "link": "c",
             "c/d/near": "e", "c/file": "f"}  # fmt: skip
    for link, to in links.items():
        (tmp_path / link).symlink_to(to)
    every = {"d": (True, False, False), "f": (False, False, False), "in": (True, False, False),
             "dead": (False, False, True), "x.partial": (False, False, False),
             "file": (False, False, False), "loop": (False, False, True)}  # fmt: skip
    found = scan(f"{tmp_path}/c/", "")
    assert found is not None
    assert {name: tuple(rest) for name, *rest in found} == every
    assert {name for name, *_ in scan(f"{tmp_path}/c/", "", unfinished=True) or ()} == {
        *every, UNFINISHED,
    }  # fmt: skip
    for path, nested in [("c/d", False), ("c/in", True), ("link/d", True)]:
        listed = {name: rest for name, *rest in scan(f"{tmp_path}/", path) or ()}
        assert listed == {"e": [True, False, False], "near": [True, nested, False]}
    assert [scan(f"{tmp_path}/", p) for p in ("x", "c/f", "n" * 300)] == [None, None, None]
    assert scan(f"{tmp_path}/c/d/", "e") == []


def test_names_of_unfinished_files() -> None:
    name = files.unfinished_name(f"/a/{'b' * 250}")
    assert name.startswith(f"/a/{'b' * 200}.")
    assert files.is_unfinished(Path(name).name)
    assert len(name) == len("/a/") + 200 + 1 + 32 + len(".partial")
    assert [files.is_unfinished(n) for n in (UNFINISHED, "k", "k.partial", UNFINISHED + "x")] == [
        True, False, False, False,
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------- writing


def noting(given: list[Any], new: bytes | None) -> Any:
    """Return a change that notes what it is given."""

    def change(old: bytes | None) -> bytes | None:
        given.append(old)
        return new

    return change


def names(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())


@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_files_are_written_updated_and_removed(tmp_path: Path, durability: Any) -> None:
    path, given = str(tmp_path / "a/b/k"), list[Any]()

    def check(size: int, read: Any) -> None:
        given.append((size, read(1, 2)))

    def fails(*_: Any) -> None:
        raise N5FormatError("no", kind="json")

    with FileWriter(durability, given.append) as writer:
        writer.write(path, b"ab", b"cdef", check=fails)  # of a new file nothing is checked
        assert Path(path).read_bytes() == b"abcdef"
        writer.write(path, b"xyz", check=check)
        assert (Path(path).read_bytes(), given) == (b"xyz", [(6, b"bc")])
        with pytest.raises(N5FormatError):
            writer.write(path, b"new", check=fails)
        with pytest.raises(N5FormatError):
            writer.remove(path, check=fails)
        assert Path(path).read_bytes() == b"xyz"
        given.clear()
        assert writer.update(path, noting(given, b"longer than before")) == b"longer than before"
        assert writer.update(path, noting(given, b"s")) == b"s"
        assert writer.update(path, noting(given, b"s")) == b"s"
        assert Path(path).read_bytes() == b"s"
        assert writer.update(path, noting(given, None)) is None
        assert writer.update(path, noting(given, None)) is None
        assert writer.update(path, noting(given, b"")) == b""
        os.utime(path, ns=(OLD, OLD))
        assert writer.update(path, noting(given, b"n")) == b"n"
        assert given == [b"xyz", b"longer than before", b"s", b"s", None, None, b""]
        given.clear()
        writer.remove(path, check=check)
        writer.remove(path)
        assert given == [(1, b"")]
        writer.remove(str(tmp_path / "a"))
    assert (names(tmp_path), (tmp_path / "a/b").is_dir()) == ([], True)


@posix
@pytest.mark.parametrize("durability", ["atomic", "overwrite"])
def test_links_lead_to_the_file_that_is_written(tmp_path: Path, durability: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/k").write_bytes(b"1")
    (tmp_path / "link").symlink_to("d/k")
    (tmp_path / "dead").symlink_to("x/y")
    (tmp_path / "d/k").chmod(0o640)
    with FileWriter(durability, print) as writer:
        writer.write(str(tmp_path / "link"), b"22")
        assert ((tmp_path / "d/k").read_bytes(), (tmp_path / "link").is_symlink()) == (b"22", True)
        assert writer.update(str(tmp_path / "link"), lambda old: (old or b"") + b"3") == b"223"
        assert stat.S_IMODE((tmp_path / "d/k").stat().st_mode) == 0o640
        writer.remove(str(tmp_path / "link"))
        assert (names(tmp_path), (tmp_path / "d/k").read_bytes()) == (["d/k", "dead"], b"223")
        for name in ("dead", "dead/k"):
            with pytest.raises(N5FormatError, match="a link to x/y, which"):
                writer.write(str(tmp_path / name), b"1")
        with pytest.raises((IsADirectoryError, NotADirectoryError)):
            writer.write(str(tmp_path / "d/k/x"), b"1")
        with pytest.raises(IsADirectoryError):
            writer.write(str(tmp_path / "d"), b"1")
    assert names(tmp_path) == ["d/k", "dead"]


@posix
def test_a_file_keeps_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(os, "chown", lambda _, *owner: given.append(owner))
    path, stat_of = tmp_path / "k", os.stat
    path.write_bytes(b"1")
    with FileWriter("atomic", print) as writer:
        writer.write(str(path), b"2")
        assert given == []

        def of_another(name: Any, **options: Any) -> os.stat_result:
            found = stat_of(name, **options)
            is_it = str(name) == str(path)
            return os.stat_result((*found[:4], 71, 73, *found[6:])) if is_it else found

        monkeypatch.setattr(os, "stat", of_another)
        (tmp_path / "new").write_bytes(b"3")
        writing._replace(str(tmp_path / "new"), str(path))
    assert (given, path.read_bytes()) == ([(71, 73)], b"3")


def test_directories_of_a_writer_that_fails_are_removed(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(ValueError, match="x"), FileWriter("atomic", print) as writer:  # noqa: PT012
        writer._make_directories(str(tmp_path / "old/a/b"))
        writer.write(str(tmp_path / "kept/k"), b"1")
        raise ValueError("x")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["k", "kept", "old"]


def test_a_writer_waits_for_a_file_that_is_coming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = tmp_path / "k", list[Any]()
    path.touch()
    monkeypatch.setattr(time, "sleep", lambda _: path.write_bytes(b"late"))
    with FileWriter("atomic", print) as writer:
        assert writer.update(str(path), noting(asked, b"new")) == b"new"
    assert asked == [b"late"]


def test_another_writer_may_be_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, asked, link = tmp_path / "k", list[Any](), os.link

    def late(source: str, target: str) -> None:
        assert target == str(path)
        if not path.exists():
            path.write_bytes(b"other")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    for durability in ("atomic", "overwrite"):
        path.unlink(missing_ok=True)
        with FileWriter(durability, print) as writer:
            writer.write(str(path), b"mine", check=lambda size, _: asked.append(size))
        assert (path.read_bytes(), asked.pop()) == (b"mine", 5)
    path.unlink()
    with FileWriter("atomic", print) as writer:
        assert writer.update(str(path), noting(asked, b"x")) == b"x"
    assert asked == [None, b"other"]

    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr(os, "link", refuse)
    with FileWriter("atomic", print) as writer:
        writer.write(str(tmp_path / "d/new"), b"1")
        writer.write(str(tmp_path / "d/new"), b"2")
        assert not writer._link(str(tmp_path / "zzz"), str(path))
        assert writer.update(str(tmp_path / "e"), lambda _: b"3") == b"3"
    assert ((tmp_path / "d/new").read_bytes(), names(tmp_path)) == (b"2", ["d/new", "e", "k"])


def test_files_that_this_user_may_not_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are replaced and removed without a lock, as the directory permits it."""
    path, sizes, opened = tmp_path / "k", list[int](), locks.HeldFile.__init__

    def refuse(self: Any, name: Any, flags: int, mode: int = 0o666) -> None:
        if flags & os.O_RDWR and str(name) == str(path):
            raise PermissionError(errno.EACCES, "x")
        opened(self, name, flags, mode)

    monkeypatch.setattr(locks.HeldFile, "__init__", refuse)
    with FileWriter("atomic", print) as writer:
        path.write_bytes(DATA)
        writer.write(str(path), b"new", check=lambda size, _: sizes.append(size))
        assert path.read_bytes() == b"new"
        writer.remove(str(path), check=lambda size, _: sizes.append(size))
    assert (names(tmp_path), sizes) == ([], [10, 3])


@posix
def test_synced_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []

    def fsync(file: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{file}").readlink()))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(writing, "_named", set())
    (tmp_path / "a/b").mkdir(parents=True)
    sync_directories({f"{tmp_path}/a/b/", str(tmp_path / "missing/x")})
    above = [str(each) for each in (tmp_path / "a/b").parents]
    assert synced[0] == f"{tmp_path}/a/b"
    assert synced[1:3] == above[:2]
    synced.clear()
    sync_directories({f"{tmp_path}/a/b"})
    assert synced == [f"{tmp_path}/a/b"]  # the names above are on the disk
    monkeypatch.setattr(writing, "_MANY", len(writing._named))
    sync_directories(set())
    assert writing._named
    monkeypatch.setattr(writing, "_MANY", len(writing._named) - 1)
    sync_directories(set())
    assert not writing._named
    monkeypatch.setattr(writing, "_MANY", 10**5)
    synced.clear()
    with FileWriter("durable", print) as writer:
        writer.write(str(tmp_path / "a/c/d/k"), b"1")
    tail = [name for name in synced if not name.endswith(".partial")]
    assert {f"{tmp_path}/{name}" for name in ("a", "a/c", "a/c/d")} <= set(tail)
    synced.clear()
    with FileWriter("durable", print) as writer:
        writer.update(str(tmp_path / "a/c/d/k"), lambda old: old)
    assert synced == [f"{tmp_path}/a/c/d/k", f"{tmp_path}/a/c/d"]
    synced.clear()
    with FileWriter("atomic", print) as writer:
        writer.write(str(tmp_path / "a/c/d/l"), b"1")
    assert synced == []


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, n = os.write, [0]

    def some(file: int, data: Any) -> int:
        n[0] += 1
        return write(file, memoryview(data)[:2])  # the system may write fewer bytes

    monkeypatch.setattr(os, "write", some)
    for durability in ("atomic", "overwrite"):
        with FileWriter(durability, print) as writer:
            writer.write(str(tmp_path / "k"), b"01234", memoryview(b"56789").cast("b"))
            assert (tmp_path / "k").read_bytes() == DATA
            writer.write(str(tmp_path / "k"), DATA[::-1])
            assert (tmp_path / "k").read_bytes() == DATA[::-1]


def test_trees_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> Path:
        for name in ("t/a/attributes.json", "t/a/b/k", "t/f", "other/k"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        (tmp_path / "t/link").symlink_to("../other")
        return tmp_path / "t"

    synced: list[set[str]] = []
    removing.remove_tree(make(), sync=synced.append)
    assert (names(tmp_path), synced.pop()) == (["other/k"], {str(tmp_path)})
    assert not (tmp_path / "t").exists()
    removing.remove_tree(make(), keep_top=True, sync=synced.append)
    assert (names(tmp_path), [*(tmp_path / "t").iterdir()]) == (["other/k"], [])
    assert synced.pop() == {str(tmp_path / "t")}
    make()
    removing.remove_tree(tmp_path / "t/link")
    assert names(tmp_path) == ["other/k", "t/a/attributes.json", "t/a/b/k", "t/f"]
    removing.remove_tree(tmp_path / "t/f")  # no directory
    removing.remove_tree(tmp_path / "missing")
    removing.remove_tree(tmp_path / "missing", keep_top=True)
    assert (tmp_path / "t/f").exists()

    def refuse(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "rename", refuse)  # then documents are removed first
    removing.remove_tree(make(), sync=synced.append)
    assert (names(tmp_path), synced.pop()) == (["other/k"], {str(tmp_path / "t/a")})
    for name in (UNFINISHED, "k"):
        (tmp_path / name).mkdir()
        assert removing._hidden(tmp_path / name) == str(tmp_path / name)
    removing.remove(tmp_path / "other")
    removing.remove(tmp_path / "missing/x")
    assert (tmp_path / "other").is_dir()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "g" / "0").mkdir(parents=True)
    (tmp_path / "g" / "0" / "1").write_bytes(b"block")
    return tmp_path / "g"


def test_a_removal_that_cannot_be_synced_is_undone(top: Path) -> None:
    def sync(_: set[str]) -> None:
        raise OSError(errno.EIO, "no disk")

    with pytest.raises(OSError, match="no disk"):
        removing.remove_tree(top, sync=sync)
    assert [path.name for path in top.parent.iterdir()] == ["g"]
    assert (top / "0" / "1").read_bytes() == b"block"


def test_a_removal_that_fails_midway_is_tried_once_more(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    rmtree: Any = shutil.rmtree

    def fails_once(name: str) -> None:
        calls.append(name)
        if len(calls) == 1:
            raise OSError(errno.EMFILE, "too many files")
        rmtree(name)

    monkeypatch.setattr(shutil, "rmtree", fails_once)
    removing.remove_tree(top)
    assert list(top.parent.iterdir()) == []
    assert len(calls) == 2


@posix
def test_what_is_refused_is_not_tried_again() -> None:
    tried: list[str] = []

    def refuse(what: str) -> None:
        tried.append(what)
        raise PermissionError

    with pytest.raises(PermissionError):
        files.patiently(refuse, "k")
    assert (tried, files.patiently(max, 3, 5)) == (["k"], 5)


def test_empty_directories_are_pruned(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/d/k").touch()
    removing.prune(tmp_path / "a")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["a", "d", "e", "k"]
    removing.prune(tmp_path / "e", keep_top=True)
    assert (tmp_path / "e").is_dir()
    removing.prune(tmp_path / "e")
    assert not (tmp_path / "e").exists()


# ----------------------------------------------------------------------------------- the storage


def ask(storage: Any, *requests: Any) -> Any:
    return [storage.answer(request, print) for request in requests]


def test_requests_to_local_files(tmp_path: Path) -> None:
    root = tmp_path / "c"
    storage = LocalFiles(root)
    size, said = 10, list[str]()
    assert ask(
        storage, Put("g/k", DATA), Get("g/k"), Get("g/k", part=(1, 2)), Get("x"), Ends("g/k", 2, 1),
        Exists("g/k"), Exists("g"), List("g"), List("x"), KeysBelow("g", print), Work(lambda: 5),
        Update("g/k", lambda old: (old or b"") + b"!"), Update("g/k", lambda _: None), Get("g/k"),
    ) == [
        None, DATA, b"12", None, (size, b"01", b"9"), True, False, [Entry("k", False)], None, None,
        5, DATA + b"!", None, None,
    ]  # fmt: skip
    storage.answer(Warn("careful"), said.append)
    assert said == ["careful"]
    checked: list[int] = []
    ask(storage, Put("k", b"1"), Put("k", b"22", lambda n, _: checked.append(n)),
        Remove("k", check=lambda n, _: checked.append(n)))  # fmt: skip
    assert checked == [1, 2]
    (root / f"g/{UNFINISHED}").touch()
    assert ask(storage, List("g"), List("g", unfinished=True)) == [[], [Entry(UNFINISHED, False)]]
    ask(
        storage, Put("a/b/k", b""), Remove("a/b/k", prune=True), Put("x/y/k", b""),
        RemoveTree("x/y"),
    )  # fmt: skip
    assert sorted(p.name for p in root.iterdir()) == ["a", "g", "x"]
    assert [*(root / "x").iterdir()] == []
    ask(storage, Put("k", b""), RemoveTree(""))
    assert (root.is_dir(), [*root.iterdir()]) == (True, [])
    assert (storage.root, storage.has_stamps, storage.is_shared) == (root, True, True)
    assert ask(storage, Stamp("k"), Put("k", b"1"))[0] is None
    assert ask(storage, Stamp("k"))[0][2] == 1


def test_a_removal_in_durable_storage_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[set[str]] = []
    monkeypatch.setattr(writing, "sync_directories", lambda d: synced.append(set(d)))
    monkeypatch.setattr("n5zarr.storage.local.sync_directories", lambda d: synced.append(set(d)))
    storage = LocalFiles(tmp_path, durability="durable")
    ask(storage, Put("a/b/c/k", b""))
    synced.clear()
    ask(storage, Remove("a/b/c/k", prune=True))
    assert synced.pop() == {str(tmp_path / "a/b/c"), str(tmp_path / "a/b")}
    ask(storage, Put("a/b/k", b""))
    synced.clear()
    ask(storage, RemoveTree("a/b"))
    assert synced == [{str(tmp_path / "a")}, {str(tmp_path / "a")}]
    synced.clear()
    ask(storage, RemoveTree(""))
    assert synced == [{str(tmp_path)}, {str(tmp_path)}]


@pytest.mark.parametrize(("durability", "same"), [("atomic", False), ("overwrite", True)])
def test_documents_are_replaced_and_blocks_may_be_overwritten(
    tmp_path: Path, durability: Any, same: bool
) -> None:
    storage = LocalFiles(tmp_path, durability=durability)
    for key, is_same in [("g/attributes.json", False), ("g/0", same)]:
        ask(storage, Put(key, b"1"))
        (tmp_path / key).with_suffix(".kept").hardlink_to(tmp_path / key)
        ask(storage, Update(key, lambda _: b"2"))
        assert ((tmp_path / key).stat().st_nlink == 2) is is_same


def test_what_leads_out_of_a_confined_directory_is_missing(tmp_path: Path) -> None:
    root = tmp_path / "c"
    (root / "d").mkdir(parents=True)
    (tmp_path / "k").write_bytes(DATA)
    (root / "d/k").write_bytes(DATA)
    for link, target in (("in", "d/k"), ("out", "../k"), ("above", "..")):
        (root / link).symlink_to(target)
    (root / os.fsdecode(b"\xff")).touch()
    storage, prototype = LocalFiles(root, confined=True), cpu.buffer_prototype
    store = ConfinedStore(root)
    for key, expected in [("d/k", DATA), ("in", DATA), ("out", None), ("above/k", None)]:
        is_there = expected is not None
        assert ask(storage, Get(key), Exists(key)) == [expected, is_there]
        assert [a is not None for a in ask(storage, Ends(key, 1, 1), Stamp(key))] == [is_there] * 2
        read = [
            asyncio.run(store.get(key, prototype)), store.get_sync(key, prototype=prototype),
            *asyncio.run(store.get_partial_values(prototype, [(key, None)])),
        ]  # fmt: skip
        assert [each and each.to_bytes() for each in read] == [expected] * 3
    listed, worked = ask(storage, List(""), Work(lambda: 3))
    assert (sorted(listed), worked) == ([Entry("d", True), Entry("in", False)], 3)
    assert (storage.root, storage.read_only, type(storage.store)) == (None, True, ConfinedStore)
    again = storage.with_read_only(read_only=False)
    assert (again.root, again.read_only, str(again)) == (None, True, str(root))


def test_copies_and_names_of_local_storage(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    storage = LocalFiles(tmp_path / "link", store_writes=True, durability="durable")
    assert (str(storage), storage.given) == (str(tmp_path / "real"), tmp_path / "link")
    for read_only in (True, False):
        made = storage.with_read_only(read_only=read_only)
        kept = (made.read_only, made.durability, made.given, made.store.read_only)
        assert kept == (read_only, "durable", tmp_path / "link", False)
    store: Any = LocalFiles(tmp_path / "link").store
    assert (type(store), store.read_only, store.root) == (LocalStore, True, tmp_path / "real")
    assert storage.store is storage.store
    assert storage.is_same_place(LocalFiles(tmp_path / "real"))
    assert not storage.is_same_place(LocalFiles(tmp_path))
    assert not storage.is_same_place(ZarrStorage(MemoryStore()))
    asyncio.run(storage.open(read_only=True))
    storage.close()
    flows: Any = ([], [Get("k")], [Get("k"), Get("k", settled=True)], [Stamp("k"), Work(print)])
    assert [*map(may_take_long, flows)] == [False, False, True, True]


def test_the_file_that_names_a_directory(tmp_path: Path) -> None:
    storage = LocalFiles(tmp_path / "p/c.n5")
    (tmp_path / "p/c.n5/g").mkdir(parents=True)
    (tmp_path / "far.xml").write_bytes(b"p/c.n5/g")  # above the directory of the container

    def named(path: str = "g") -> Any:
        def decoded(data: bytes) -> str | None:
            return None if data == b"none" else data.decode()

        return ask(storage, FileThatNames(path, "*.xml", decoded))[0]

    assert named() is None
    (tmp_path / "p/c.xml").write_bytes(b"file:" + bytes(tmp_path / "p/c.n5/g"))
    (tmp_path / "p/a.xml").write_bytes(b"none")
    (tmp_path / "p/0.xml").mkdir()
    assert str(named()).endswith("c.n5/g'")
    (tmp_path / "p/b.xml").write_bytes(b"c.n5/g")
    (tmp_path / "p/b2.xml").write_bytes(b"c.n5")
    assert (named(), named("")) == (b"c.n5/g", b"c.n5")
    for near, data in (("d.xml", b"g/"), ("g/e.xml", b".")):
        (tmp_path / "p/c.n5" / near).write_bytes(data)
        assert named() == data
