"""Calls of users enter no more modules than they did, and climb no more often."""

from __future__ import annotations

import threading
from functools import partial

from n5zarr.arrays.box import rows_of
from n5zarr.fast.default import make_default
from n5zarr.storage.files import patiently
from n5zarr.storage.requests import drive
from n5zarr.store.info import read_version
from tests.outputs import python
from tests.structure import REPOSITORY
from tests.walks import CEILINGS, walk

PAIR = ("n5zarr.storage.files", "n5zarr.arrays.box")
HIGHER = partial(rows_of, 0, (3,))


def test_no_call_is_above_its_ceilings() -> None:
    """In a process of its own: what other tests have remembered does not matter."""
    assert python("-m", "tests.walks", cwd=REPOSITORY).count(" modules ") == len(CEILINGS)


def test_a_climb_is_noticed() -> None:
    found = walk(lambda: patiently(HIGHER))
    assert {*PAIR} <= found.modules
    assert found.climbs == {PAIR: {("patiently", "rows_of")}}
    assert not found.doors
    found = walk(HIGHER)
    assert PAIR[1] in found.modules
    assert not found.climbs


def test_a_climb_through_a_library_or_on_another_thread_is_noticed() -> None:
    assert walk(lambda: patiently(lambda: [HIGHER()])).climbs.keys() == {PAIR}

    def on_thread() -> None:
        thread = threading.Thread(target=patiently, args=(HIGHER,))
        thread.start()
        thread.join()

    assert walk(on_thread).climbs.keys() == {PAIR}


def test_a_flow_is_a_climb() -> None:
    found = walk(lambda: drive(read_version(), lambda _: None))
    assert found.climbs == {
        ("n5zarr.storage.requests", "n5zarr.store.info"): {("drive", "read_version (a flow)")}
    }


def test_what_rooms_add_is_called_through_a_door() -> None:
    found = walk(partial(patiently, make_default))
    assert found.doors.keys() == {("n5zarr.storage.files", "n5zarr.fast.default")}
    assert not found.climbs
