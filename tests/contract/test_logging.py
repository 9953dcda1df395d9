"""n5zarr logs its work at DEBUG, which costs little where nothing listens."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import fsspec
import numpy as np
import pytest
import zarr

import n5zarr
from n5zarr import CacheOptions, N5Error, N5Store
from n5zarr.fast import batches, kernel
from n5zarr.storage import files
from n5zarr.storage.requests import Get, Remove, Steps
from n5zarr.storage.writing import FileWriter
from tests.contract.test_kernel import python_only
from tests.remote import servers
from tests.waiting import wait_until

JAVA = Path(__file__).parents[1] / "data" / "java"
has_kernel = pytest.mark.skipif(not kernel.is_compiled(), reason="the kernel is not built")


@pytest.fixture
def container(tmp_path: Path) -> Path:
    path = tmp_path / "c.n5"
    shutil.copytree(JAVA / "sparse.n5", path)  # skip2: [9, 7] in blocks of [2, 3], 8 of 15 stored
    return path


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[str], list[str]]]:
    """Return a function that returns the messages of a logger since the last call."""
    caplog.set_level(logging.DEBUG, "n5zarr")

    def say(name: str) -> list[str]:
        said = [r.getMessage() for r in caplog.records if r.name == f"n5zarr.{name}"]
        caplog.clear()
        return said

    yield say
    assert all(record.levelno == logging.DEBUG for record in caplog.records)


def test_nothing_is_printed_unless_a_program_asks_for_it(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("n5zarr")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
    n5zarr.open_array(JAVA / "sparse.n5", path="skip2")[::2]
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------------------------- requests


def test_requests_to_files_name_them_and_their_bytes(
    container: Path, heard: Callable[[str], list[str]]
) -> None:
    n5zarr.open(container, path="skip2")
    size = (container / "skip2" / "attributes.json").stat().st_size
    assert f"Get {container}/skip2/attributes.json: {size} bytes" in heard("storage.requests")


def test_requests_name_parts_and_what_is_not_there(heard: Callable[[str], list[str]]) -> None:
    fsspec.filesystem("memory").pipe("/told/c.n5/a/0", b"0123456789")
    store = N5Store("memory://told/c.n5")

    def steps() -> Steps[None]:
        yield [Get("a/0", part=(3, 4)), Get("a/1")]
        yield [Remove("a/0")]

    store.run(steps())
    said = heard("storage.requests")
    assert sorted(said[:2]) == [
        "Get memory:///told/c.n5/a/0, bytes 3 to 7: 4 bytes",
        "Get memory:///told/c.n5/a/1: nothing",
    ]
    assert said[2:] == ["Remove memory:///told/c.n5/a/0: done"]


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_each_request_that_a_server_gets_is_told_once_and_without_secrets(
    container: Path,
    backend: Any,
    heard: Callable[[str], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with servers.static(container.parent) as url, servers.Proxy(url).running() as proxy:
        place = f"{proxy.url}/c.n5".replace("http://", "http://user:word@")
        allowed = {"client_options": {"allow_http": True}} if backend == "obstore" else None
        query = "?X-Signature=word" if backend == "fsspec" else ""
        store = N5Store(place + query, backend=backend, storage_options=allowed)
        array = zarr.open_array(store, path="skip2", mode="r", zarr_format=3)
        values = np.asarray(array[:])
        sent = [unquote(path.partition("?")[0]) for _, path in proxy.requests]
        told = [line for line in caplog.messages if line.startswith("Get ")]
        assert sorted(line.split()[1].rstrip(":") for line in told) == sorted(
            proxy.url + path for path in sent
        )
        proxy.fault = lambda method, path: "403"
        with pytest.raises(PermissionError, match=r"skip2.*forbidden_is_missing"):
            store.node("skip2")
    assert values.shape == (7, 9)
    size = (container / "skip2" / "1" / "1").stat().st_size
    assert f"Get {proxy.url}/c.n5/skip2/1/1: {size} bytes" in told
    own = [record.getMessage() for record in caplog.records if record.name.startswith("n5zarr")]
    assert any("Error" in line for line in own)
    assert not [line for line in own if "word" in line or "user" in line]
    assert heard("storage.requests")


def test_answers_from_the_cache_are_logged_as_such(
    container: Path, heard: Callable[[str], list[str]]
) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(container), "/kept/c.n5", recursive=True)
    store = N5Store("memory://kept/c.n5", cache=CacheOptions(recheck=False))
    array = zarr.open_array(store, path="skip2", mode="r")
    assert heard("storage.cache") == []
    array[:2, :2]
    assert heard("storage.cache") == []
    array[:2, :2]
    assert "skip2/0/0: answered from memory" in heard("storage.cache")


# ------------------------------------------------------------------------------------- fallbacks


@has_kernel
def test_the_kernel_tells_boxes_and_what_it_leaves(
    container: Path, heard: Callable[[str], list[str]]
) -> None:
    block = container / "skip2" / "0" / "0"
    block.write_bytes(block.read_bytes()[:20])
    array = n5zarr.open_array(container, path="skip2")
    array[4, 5]
    where = f"{container}: /skip2"
    assert heard("fast.kernel") == [
        f"{where}: read from (4, 5), shape (1, 1): 1 blocks, 0 left to Python []"
    ]
    with pytest.raises(N5Error):
        array[:3, :5]
    assert heard("fast.kernel") == [
        f"{where}: read from (0, 0), shape (3, 5): 3 blocks, 1 left to Python [(0, 0)]"
    ]


def test_an_array_tells_why_it_goes_zarrs_way(
    container: Path, heard: Callable[[str], list[str]]
) -> None:
    array = n5zarr.open_array(container, "r+", path="skip2")
    where = f"{container}/skip2: left to zarr: "
    shape = "the selection is not of integers, slices and an ellipsis"
    array[:, 3]
    array[::2]
    array.oindex[np.array([1, 4]), :]
    assert heard("fast.array") == []
    array.oindex[np.array([1, 4]), ::2]
    array.oindex[np.array([1, 4])] = 7
    assert heard("fast.array") == [where + shape] * 2
    array[:2, 3] = np.ma.masked_array([5, 7])
    assert heard("fast.array") == [where + "the value is no array of the box's numbers"]
    array.with_config({"read_missing_chunks": False})[:3, :2]
    assert heard("fast.array") == [where + "missing blocks are errors"]
    shutil.rmtree(container / "skip2")
    with pytest.raises(N5Error, match="expected the dataset of an open array, got nothing"):
        array[0, 0]


def test_a_remote_array_and_text_tell_why_they_go_zarrs_way(
    heard: Callable[[str], list[str]],
) -> None:
    store = N5Store("memory://logged.n5", codecs="n5", zarr_format=3)
    array = n5zarr.create_array(store, path="a", shape=(5, 3), dtype="u1", overwrite=True)
    array[:]
    assert heard("fast.array")[-1].endswith("the container is not in local files")
    text = n5zarr.open_array(JAVA / "strings.n5", path="one")
    assert heard("arrays.group")[-1].endswith("/one: left to zarr: its codec is not n5zarr's own")
    text[:]
    assert heard("fast.batches")[-1].endswith("blocks hold other elements")


@has_kernel
def test_zarrs_own_arrays_tell_what_is_left_to_python(
    container: Path, heard: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    array = zarr.open_array(N5Store(container), path="skip2", mode="r")
    array[:3]
    array[::4]
    assert heard("fast.batches") == []
    with monkeypatch.context() as patch:
        patch.setattr(batches, "_LARGE", 0)
        array[::4]
    said = heard("fast.batches")
    assert said == [f"{container}: /skip2: 10 blocks left to Python: no box, nor small blocks"]
    monkeypatch.setattr(kernel, "_kernel", None)
    array[:3]
    assert heard("fast.kernel") == [f"{container}: /skip2: left to Python: the kernel is not built"]


# ------------------------------------------------------------------------------------- locks


def test_locks_are_told_when_taken_waited_for_and_released(
    tmp_path: Path, heard: Callable[[str], list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "attributes.json")
    Path(path).write_bytes(b"{}")
    is_held = threading.Event()

    def waits() -> bool:
        return f"exclusive lock waits for this process: {path}" in caplog.messages

    def update(change: Callable[[bytes | None], bytes]) -> None:
        with FileWriter("atomic", pytest.fail) as writer:
            writer.update(path, change)

    def slow(_: bytes | None) -> bytes:
        is_held.set()
        wait_until(waits)
        return b'{"a":1}'

    first = threading.Thread(target=update, args=[slow])
    first.start()
    assert is_held.wait(10)
    update(lambda old: (old or b"") + b"\n")
    first.join()
    said = heard("storage.locks")
    assert Path(path).read_bytes() == b'{"a":1}\n'
    assert said[:2] == [
        f"exclusive lock taken: {path}",
        f"exclusive lock waits for this process: {path}",
    ]
    assert said.count(f"exclusive lock waits for this process: {path}") == 1
    assert said[-1] == f"exclusive lock released: {path}"
    assert files.read(path, settled=True) == b'{"a":1}\n'
    assert heard("storage.locks") == [f"shared lock taken: {path}", f"shared lock released: {path}"]


# ------------------------------------------------------------------------------------- cost


@pytest.mark.parametrize("in_python", [False, True])
def test_the_log_is_asked_once_for_a_box_and_not_for_each_block(
    tmp_path: Path, in_python: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.n5"
    values = np.arange(11 * 13, dtype="u2").reshape(11, 13)
    n5zarr.create_array(path, path="a", chunks=(2, 3), data=values)
    for block in path.rglob("*"):
        os.utime(block, (0, 0))  # new files are read under a lock
    array = n5zarr.open_array(path, path="a")
    asked = []
    is_enabled = logging.Logger.isEnabledFor

    def count(logger: logging.Logger, level: int) -> bool:
        asked.append(logger.name)
        return is_enabled(logger, level)

    def n_asked(selection: Any) -> int:
        asked.clear()
        np.testing.assert_array_equal(array[selection], values[selection])
        return len([name for name in asked if name.startswith("n5zarr")])

    monkeypatch.setattr(logging.Logger, "isEnabledFor", count)
    with python_only() if in_python else nullcontext():
        few, many = n_asked(np.s_[:2, :3]), n_asked(np.s_[:, :])
    assert 0 < few == many <= 4  # of 1 block and of 30
