"""Several writers and readers work at the same time; ``test_kills.py`` kills them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from n5zarr import N5Store
from tests.faults.test_other_programs import end, go_on, java_once
from tests.processes import CONTEXT
from tests.waiting import when_another_program_holds_a_lock


def in_processes(work: Callable[[Path, str], None], root: Path, names: str) -> list[Any]:
    """Start a process for each name, which does the work with a container."""
    processes = [CONTEXT.Process(target=work, args=(root, name)) for name in names]
    for process in processes:
        process.start()
    return processes


def wait(processes: list[Any]) -> None:
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * len(processes)


def set_attributes(root: Path, name: str) -> None:
    for path in ("", "a"):
        node = zarr.open(N5Store(root), path=path, mode="r+")
        for i in range(12):
            node.attrs[f"{name}-{i}"] = i


def test_no_attribute_of_four_processes_is_lost(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    array = zarr.create_array(N5Store(root), name="a", shape=(3,), dtype="u1")
    wait(in_processes(set_attributes, root, "pqrs"))
    expected = {f"{name}-{i}": i for name in "pqrs" for i in range(12)}
    assert zarr.open_group(N5Store(root)).attrs.asdict() == expected
    assert zarr.open_array(N5Store(root), path="a").attrs.asdict() == expected
    # an array that was opened before changes what it changes, no more
    array.attrs["late"] = True
    assert zarr.open_array(N5Store(root), path="a").attrs.asdict() == expected | {"late": True}


def test_changes_may_be_stored_in_another_order_than_they_were_asked_for(tmp_path: Path) -> None:
    store = N5Store(tmp_path / "c.n5")
    zarr.open_group(store, mode="a")
    documents = [
        {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        for attributes in ({"a": 1}, {"a": 1, "b": 2})
    ]
    first, second = (
        store.container.write("zarr.json", memoryview(json.dumps(document).encode()))
        for document in documents
    )

    store.run(second)
    store.run(first)

    assert dict(zarr.open_group(store, mode="r").attrs) == {"a": 1, "b": 2}


def create_nodes(root: Path, name: str) -> None:
    for i in range(8):
        group = zarr.open_group(N5Store(root), path=f"g/h{i % 4}", mode="r+")
        path = f"g/h{i % 4}/{name}{i}"
        array = zarr.create_array(N5Store(root), name=path, shape=(3,), dtype="u2")
        array[:] = i
        group.attrs[f"{name}{i}"] = i


def test_processes_that_create_nodes_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    # zarr's own making of one group by several processes fails on every store
    for i in range(4):
        zarr.create_group(N5Store(tmp_path / "c.n5"), path=f"g/h{i}")
    wait(in_processes(create_nodes, tmp_path / "c.n5", "pqrs"))
    root = zarr.open_group(N5Store(tmp_path / "c.n5"), mode="r")
    assert json.loads((tmp_path / "c.n5" / "attributes.json").read_text()) == {"n5": "4.0.0"}
    for name in "pqrs":
        for i in range(8):
            array, group = root[f"g/h{i % 4}/{name}{i}"], root[f"g/h{i % 4}"]
            assert isinstance(array, zarr.Array)
            np.testing.assert_array_equal(array[:], [i] * 3)
            assert group.attrs[f"{name}{i}"] == i


N_ROUNDS = 50


def write_rounds(root: Path, name: str) -> None:
    array = zarr.open_array(N5Store(root), path=name, mode="r+")
    for i in range(1, N_ROUNDS):
        array[:] = i
        array.attrs.put({"x": [i] * 50, "y": i})


def test_a_reader_never_sees_half_of_what_is_written(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    array = zarr.create_array(N5Store(root), name="a", shape=(5, 7), chunks=(5, 7), dtype="u2")
    array[:] = 0
    array.attrs.put({"x": [0] * 50, "y": 0})
    (writer,) = in_processes(write_rounds, root, "a")
    seen = set[int]()
    while writer.is_alive():
        values = np.asarray(zarr.open_array(N5Store(root), path="a", mode="r")[...])
        assert (values == values[0, 0]).all()
        attributes = zarr.open_array(N5Store(root), path="a", mode="r").attrs.asdict()
        assert attributes["x"] == [attributes["y"]] * 50
        seen.add(int(values[0, 0]))
    wait([writer])
    assert len(seen) > 3  # there was something to see
    assert zarr.open_array(N5Store(root), path="a")[0, 0] == N_ROUNDS - 1


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
@pytest.mark.skipif(
    sys.platform == "linux" and "tests.macos" in sys.modules,
    reason="on Linux, flock and record locks do not exclude each other",
)
def test_a_lock_of_another_program_is_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    zarr.create_group(N5Store(root))
    group = zarr.open_group(N5Store(root))
    java = java_once(root / "attributes.json", b'{"n5":"4.0.0","theirs":1}', "locked")
    with when_another_program_holds_a_lock(partial(go_on, java)):
        group.attrs["ours"] = 2
    end(java)
    found = json.loads((root / "attributes.json").read_text())
    assert found == {"n5": "4.0.0", "theirs": 1, "ours": 2}
