"""Readers and writers work beside Java, which rewrites files in place under a lock.

``N5ZARR_STRESS=1`` lets each writer run for a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5AttributesError
from n5zarr.fast import kernel
from n5zarr.storage import files
from n5zarr.storage.writing import FileWriter
from tests.contract.test_kernel import python_only
from tests.waiting import PATIENCE, when_another_program_holds_a_lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks that exclude Java's")

SECONDS = 60 if os.environ.get("N5ZARR_STRESS") else 0.7
SHAPE = (37, 41, 43)

# FileSystemKeyValueAccess of N5 4.0.2 opens without truncating, locks, and truncates at the first
# write. It sleeps as slow writers do, at moments that readers do not know: no event may tell them.
WRITER = """
    import fcntl, itertools, os, select, sys, time

    def write(path, content, pause):
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.lockf(file, fcntl.LOCK_EX)
        os.ftruncate(file, 0)
        time.sleep(pause)
        half = len(content) // 2
        os.write(file, content[:half])
        time.sleep(pause)
        os.write(file, content[half:])
        os.close(file)

    path, pause, *contents = sys.argv[1:]
    contents = [open(name, "rb").read() for name in contents]
    print("ready", flush=True)
    for content in itertools.cycle(contents):
        write(path, content, float(pause))
        if select.select([sys.stdin], [], [], min(10 * float(pause), 0.03))[0]:
            break
    """


@contextmanager
def rewriting(path: Path, *contents: bytes, pause: float = 0.0) -> Iterator[None]:
    """Let another process write contents into a file, one after the other, as Java does."""
    files = []
    for number, content in enumerate(contents):
        files.append(path.parent.parent / f"content-{path.name}-{number}")
        files[-1].write_bytes(content)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), path, str(pause), *files],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        assert process.poll() is None
    finally:
        process.communicate(timeout=60)  # closes its input, which ends it after a whole file


def until_the_end() -> Iterator[int]:
    end = time.monotonic() + SECONDS
    number = 0
    while time.monotonic() < end or number <= 3:
        yield number
        number += 1


def dataset(root: Path, compression: Any = None, **options: Any) -> Any:
    return n5zarr.create_array(
        root, path="d", shape=SHAPE, chunks=SHAPE, dtype="u2",
        compression=compression or {"type": "gzip"}, **options,
    )  # fmt: skip


@pytest.mark.parametrize("pause", [0.0, 0.03], ids=["at-once", "with-pauses"])
def test_a_document_is_never_read_while_it_is_cut(tmp_path: Path, pause: float) -> None:
    root = tmp_path / "c.n5"
    dataset(root, attributes={"long": "x" * 9000})
    path = root / "d" / "attributes.json"
    with rewriting(path, path.read_bytes(), path.read_bytes() + b" ", pause=pause):
        for _ in until_the_end():
            assert shape_of(root) == SHAPE
            assert zarr.open_array(N5Store(root), path="d", mode="r").shape == SHAPE
            assert [type(m) for _, m in zarr.open_group(N5Store(root), mode="r").members()] == [
                zarr.Array
            ]


@pytest.mark.parametrize("kind", ["array", "group"])
def test_updates_beside_a_writer_lose_no_dataset(tmp_path: Path, kind: str) -> None:
    """Attributes set beside another writer lose no member that makes the dataset."""
    root = tmp_path / "c.n5"
    group = zarr.create_group(N5Store(root)).create_group("d")
    dataset(root, overwrite=True)
    path = root / "d" / "attributes.json"
    content = path.read_bytes()
    with rewriting(path, content[:-1] + b',"java":1}', content[:-1] + b',"java":2}', pause=0.002):
        for number in until_the_end():
            node = group if kind == "group" else n5zarr.open(root, mode="r+", path="d")
            node.attrs["python"] = number
            found = zarr.open(N5Store(root), path="d", mode="r")
            assert isinstance(found, zarr.Array), path.read_bytes()
            assert found.shape == SHAPE
    assert shape_of(root) == SHAPE


def shape_of(root: Path) -> tuple[int, ...]:
    found: Any = n5zarr.open(root, path="d")
    shape: tuple[int, ...] = found.shape
    return shape


COMPRESSIONS = [{"type": "raw"}, {"type": "blosc", "clevel": 0}, {"type": "gzip", "level": 1}]


@pytest.mark.each_of(5)
@pytest.mark.parametrize("compression", COMPRESSIONS, ids=lambda c: c["type"])
@pytest.mark.parametrize("how", ["kernel", "python", "n5", "zarr"])
def test_no_block_is_read_half_old_and_half_new(tmp_path: Path, compression: Any, how: str) -> None:
    root = tmp_path / "c.n5"
    array = dataset(root, compression)
    contents = []
    for value in (1, 2):
        array[:] = value
        contents.append((root / "d/0/0/0").read_bytes())
    array = opened(root, how)
    is_python = how == "python" or not kernel.is_compiled()
    with (
        python_only() if is_python else nullcontext(),
        rewriting(root / "d/0/0/0", *contents),
    ):
        for _ in until_the_end():
            for selection in (np.s_[:], np.s_[3:5, 1:, 2:], np.s_[:, :, 7]):
                found = np.unique(array[selection])
                assert found.tolist() in ([1], [2])


def opened(root: Path, how: str) -> Any:
    if how in ("n5", "zarr", "v2"):
        codecs: Any = "n5" if how == "n5" else "zarr"
        zarr_format: Any = 2 if how == "v2" else 3
        store = N5Store(root, codecs=codecs, zarr_format=zarr_format)
        return zarr.open_array(store, path="d", mode="r")
    return n5zarr.open(root, path="d")


@pytest.mark.each_of(4)
@pytest.mark.parametrize("how", ["n5zarr.open", "n5", "zarr", "v2"])
@pytest.mark.parametrize(
    "compression",
    [
        {"type": "gzip", "useZlib": True},
        *({"type": name} for name in ("gzip", "bzip2", "xz", "zstd", "blosc", "lz4", "raw")),
    ],
    ids=lambda c: "-".join(map(str, c.values())),
)
def test_a_writer_that_stalls_is_waited_for(tmp_path: Path, compression: Any, how: str) -> None:
    """A reader waits for a writer that stalls within a block, as Java does."""
    root = tmp_path / "c.n5"
    values = np.random.default_rng(1).integers(0, 60_000, SHAPE, "u2")
    dataset(root, compression)[:] = values
    content = (root / "d/0/0/0").read_bytes()
    array = opened(root, how)
    for stage in ("locked", "half"):
        java = java_once(root / "d/0/0/0", content, stage)
        with when_another_program_holds_a_lock(partial(go_on, java)):
            np.testing.assert_array_equal(array[:], values)
        end(java)


def test_an_empty_document_of_a_dataset_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    group = zarr.create_group(N5Store(root)).create_group("d")
    dataset(root, overwrite=True)[:] = 1
    path = root / "d" / "attributes.json"
    for content in (b"", b" \n"):
        path.write_bytes(content)
        for opening in (
            lambda: n5zarr.open(root, path="d"),
            lambda: zarr.open(N5Store(root), path="d", mode="r"),
            lambda: zarr.open(N5Store(root, zarr_format=2), path="d", mode="r", zarr_format=2),
            lambda: group.attrs.put({"x": 1}),
            lambda: n5zarr.read_block(root, "d", (0, 0, 0)),
        ):
            with pytest.raises(N5AttributesError, match="got an empty file"):
                opening()
        assert path.read_bytes() == content
        with pytest.warns(n5zarr.N5Warning, match="omitted from the listing"):
            assert list(zarr.open_group(N5Store(root), mode="r").members()) == []


def empty(path: Path) -> None:
    """Empty a file, long ago, so that nobody waits for its writer."""
    path.write_bytes(b"")
    os.utime(path, (1e9, 1e9))


def test_blocks_are_found_behind_empty_directories(tmp_path: Path) -> None:
    """Blocks are found behind empty directories, which removed blocks leave."""
    root = tmp_path / "c.n5"
    for left in range(3):
        array: Any = n5zarr.create_array(
            root, path="d", shape=(5, 7), chunks=(2, 3), dtype="u2", overwrite=True
        )
        array[:] = 5
        array[:, : 3 * left] = 0
        array[:, 3 * left + 3 :] = 0
        empty(root / "d" / "attributes.json")
        with pytest.raises(N5AttributesError, match="got an empty file"):
            n5zarr.open(root, path="d")


def test_an_empty_document_without_blocks_is_a_group(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    zarr.create_group(N5Store(root)).create_group("g/0/1")
    empty(root / "g" / "attributes.json")
    group: Any = zarr.open(N5Store(root), path="g", mode="r+")
    assert [name for name, _ in group.members(max_depth=None)] == ["0", "0/1"]
    group.attrs["x"] = 1
    assert (root / "g" / "attributes.json").read_bytes() == b'{"x":1}'


JAVA_ONCE = """
    import fcntl, os, sys

    def pause(stage):
        print(stage, flush=True)
        sys.stdin.readline()

    path, content = sys.argv[1], open(sys.argv[2], "rb").read()
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    pause("opened")
    fcntl.lockf(file, fcntl.LOCK_EX)
    os.ftruncate(file, 0)
    pause("locked")
    os.write(file, content[:len(content) // 2])
    pause("half")
    os.write(file, content[len(content) // 2:])
    os.close(file)
    """
STAGES = ("opened", "locked", "half")


def java_once(path: Path, content: bytes, until: str = "opened") -> subprocess.Popen[str]:
    """Start a process that writes a file once, as Java does, and wait for one of its stages."""
    source = path.parent.parent / "java-content"
    source.write_bytes(content)
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(JAVA_ONCE), path, source],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for stage in STAGES:
        assert process.stdout.readline() == f"{stage}\n"
        if stage == until:
            break
        process.stdin.write("go on\n")
        process.stdin.flush()
    return process


def go_on(process: subprocess.Popen[str]) -> None:
    """Let the process run to its end."""
    assert process.stdin is not None
    process.stdin.close()


def end(process: subprocess.Popen[str]) -> None:
    go_on(process)
    assert process.wait(PATIENCE) == 0
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("fast", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_a_part_is_written_into_what_java_has_written(
    tmp_path: Path, durability: Any, *, fast: bool
) -> None:
    """A part is written after Java has released its lock, and keeps the rest of Java's block."""
    root = tmp_path / "c.n5"
    array = dataset(root, {"type": "raw"}, durability=durability)
    array[:] = 2
    path = root / "d/0/0/0"
    content = path.read_bytes()
    array[:] = 1
    java = java_once(path, content, "locked")
    with (
        nullcontext() if fast else python_only(),
        when_another_program_holds_a_lock(partial(go_on, java)),
    ):
        array[3:5, 1:, 2:] = 3
    end(java)
    expected = np.full(SHAPE, 2)
    expected[3:5, 1:, 2:] = 3
    np.testing.assert_array_equal(array[:], expected)


@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_java_waits_while_a_part_is_written(tmp_path: Path, durability: Any) -> None:
    """Java waits during an update: then it overwrites the file, or a file that was replaced."""
    path = tmp_path / "d" / "0"
    path.parent.mkdir()
    path.write_bytes(b"before")
    processes = []

    def change(old: bytes | None) -> bytes:
        processes.append(java_once(path, b"of Java"))
        assert old == b"before"
        return b"after"

    with FileWriter(durability, pytest.fail) as writer:
        writer.update(str(path), change)
    (java,) = processes
    end(java)
    assert path.read_bytes() == (b"of Java" if durability == "overwrite" else b"after")


@pytest.mark.parametrize("durability", ["atomic", "durable", "overwrite"])
def test_a_file_that_another_writer_has_just_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: Any
) -> None:
    """A file that is empty until another writer has its lock is not taken for damaged."""
    path = tmp_path / "d" / "0"
    path.parent.mkdir()
    java = java_once(path, b"of Java")
    found: list[bytes | None] = []
    is_seen, is_coming = threading.Event(), files.is_coming

    def noted(status: os.stat_result) -> bool:
        is_seen.set()
        return is_coming(status)

    monkeypatch.setattr(files, "is_coming", noted)
    monkeypatch.setattr(files, "_COMING", int(PATIENCE * 1e9))  # however busy the machine is
    monkeypatch.setattr(files, "_RECENT", 0)  # its time tells nothing of an empty file
    thread = threading.Thread(target=lambda: found.append(files.read(path)))
    thread.start()
    assert is_seen.wait(PATIENCE)
    end(java)
    with FileWriter(durability, pytest.fail) as writer:
        assert writer.update(str(path), lambda old: (old or b"") + b", ours") == b"of Java, ours"
    thread.join()
    assert found[0] in (b"of Java", b"of Java, ours")
