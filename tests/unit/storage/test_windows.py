"""Files behave right on Windows; elsewhere tested with ``pytest -p tests.windows``."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import n5zarr
from n5zarr.storage.store_locations import real_name
from n5zarr.storage.url import local_path
from tests.waiting import PATIENCE

pytestmark = pytest.mark.skipif(
    os.name != "nt" and "tests.windows" not in sys.modules, reason="the system is not Windows"
)


def test_a_file_is_replaced_when_its_reader_has_closed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = n5zarr.create_array(tmp_path / "c.n5/a", data=np.arange(35, dtype="u2").reshape(5, 7))
    opened, refused = threading.Event(), threading.Event()
    monkeypatch.setattr(time, "sleep", lambda _: refused.set())  # as n5zarr does to try again

    def hold() -> None:
        with Path(tmp_path, "c.n5/a/attributes.json").open(), Path(tmp_path, "c.n5/a/0/0").open():
            opened.set()
            refused.wait(PATIENCE)

    reader = threading.Thread(target=hold)
    reader.start()
    opened.wait()
    array.attrs["x"] = 1
    reader.join()
    assert refused.is_set()
    reader = threading.Thread(target=hold)
    opened.clear()
    refused.clear()
    reader.start()
    opened.wait()
    array[:] = 7
    reader.join()
    assert refused.is_set()
    again = n5zarr.open_array(tmp_path / "c.n5/a")
    assert dict(again.attrs) == {"x": 1}
    assert np.array_equal(again[:], np.full((5, 7), 7))


def test_a_file_that_stays_open_is_an_error_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("n5zarr.storage.files._PATIENCE", 0.1)
    array = n5zarr.create_array(tmp_path / "c.n5/a", shape=(5, 7), dtype="u2")
    document = tmp_path / "c.n5/a/attributes.json"
    before = document.read_bytes()
    with document.open(), pytest.raises(PermissionError):
        array.attrs["x"] = 1
    assert document.read_bytes() == before
    assert list(tmp_path.rglob("*.partial")) == []


def test_threads_that_write_one_document_wait_for_each_other(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5/a", shape=(5, 7), dtype="u2")

    def write(k: int) -> None:
        for n in range(5):
            n5zarr.set_attribute(tmp_path / "c.n5", "a", f"x{k}{n}", n)

    writers = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(n5zarr.open_array(tmp_path / "c.n5/a").attrs) == 20


def test_a_drive_in_a_url_is_no_directory() -> None:
    assert local_path("file:///C:/data/a.n5") == "C:/data/a.n5"
    assert local_path("file:///data/a%20b.n5") == "/data/a b.n5"


@pytest.mark.skipif(os.name != "nt", reason="the system is not Windows")
def test_places_are_compared_with_slashes(tmp_path: Path) -> None:
    assert "\\" not in real_name(str(tmp_path / "c.n5"))
