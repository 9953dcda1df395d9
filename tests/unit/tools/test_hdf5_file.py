"""A file of HDF5 stays open while it is read, and in nobody's way afterwards."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from n5zarr.errors import N5MissingDependencyError
from n5zarr.tools import hdf5_file as module
from n5zarr.tools.hdf5_file import Hdf5File, hdf5_file
from tests.waiting import wait_until

VALUES = np.arange(3 * 5 * 7).reshape(3, 5, 7)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(str(tmp_path / "a.h5"), VALUES)


def write(path: str, values: np.ndarray[Any, Any]) -> str:
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values, chunks=(2, 3, 4))
    return path


def read(file: Hdf5File) -> np.ndarray[Any, Any]:
    with file.opened() as opened:
        return np.asarray(opened["a"][...])


def n_open(path: str) -> int:
    """Count the open descriptors of a file in this process."""
    n = 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            n += str(link.readlink()) == path
    return n


pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux counts what is read"
)

not_on_windows = pytest.mark.skipif(
    vars(module)["os"].name == "nt", reason="Windows has no fork and replaces no open file"
)


def test_it_is_open_until_it_is_idle(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opens: list[str] = []
    original = h5py.File

    def counted(path: str, mode: str) -> Any:
        opens.append(path)
        return original(path, mode)

    monkeypatch.setattr(h5py, "File", counted)
    monkeypatch.setattr(module, "_IDLE", 60)
    file = hdf5_file(path)
    for _ in range(20):
        np.testing.assert_array_equal(read(file), VALUES)
    assert (len(opens), n_open(path)) == (1, 1)
    file.close()
    assert n_open(path) == 0
    monkeypatch.setattr(module, "_IDLE", 0.02)
    np.testing.assert_array_equal(read(file), VALUES)
    assert len(opens) == 2
    wait_until(lambda: n_open(path) == 0)
    np.testing.assert_array_equal(read(file), VALUES)
    wait_until(lambda: n_open(path) == 0)


def test_it_is_closed_with_its_last_user(path: str) -> None:
    file = hdf5_file(path)
    assert hdf5_file(path) is file
    read(file)
    del file
    assert n_open(path) == 0
    write(path, VALUES + 1)
    np.testing.assert_array_equal(read(hdf5_file(path)), VALUES + 1)


@not_on_windows
def test_a_changed_file_is_read_anew(path: str, tmp_path: Path) -> None:
    file = hdf5_file(path)
    read(file)
    Path(write(str(tmp_path / "b.h5"), VALUES + 1)).replace(path)
    np.testing.assert_array_equal(read(file), VALUES + 1)
    (tmp_path / "a.h5").write_text("no")
    with pytest.raises(OSError, match=r"a\.h5: expected a file of HDF5, got"):
        read(file)
    (tmp_path / "a.h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.h5"):
        read(file)


def test_a_failed_read_closes_it(path: str) -> None:
    file = hdf5_file(path)
    with pytest.raises(KeyError, match="none"), file.opened() as opened:
        opened["none"]
    assert n_open(path) == 0


def test_threads_read_it(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE", 60)
    file = hdf5_file(path)

    def work(number: int) -> bool:
        if number % 13 == 0:
            file.close()
        return bool((read(file) == VALUES).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(200)))
    assert n_open(path) <= 1
    file.close()


def in_child(file: Hdf5File, queue: Any) -> None:
    queue.put([read(file).sum(), read(hdf5_file(file.path)).sum()])


@not_on_windows
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_reads_it(path: str) -> None:
    file = hdf5_file(path)
    read(file)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with file.opened() as opened:  # the child has a locked lock
        child = context.Process(target=in_child, args=(file, queue))
        child.start()
        assert queue.get(timeout=60) == [VALUES.sum()] * 2
        child.join(60)
        assert child.exitcode == 0
        np.testing.assert_array_equal(opened["a"][...], VALUES)


def test_it_reaches_other_processes(path: str) -> None:
    file = hdf5_file(path)
    read(file)
    assert pickle.loads(pickle.dumps(file)) is file


def test_the_missing_library_is_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(N5MissingDependencyError, match=r"n5zarr\[hdf5\]"):
        read(hdf5_file(path))
