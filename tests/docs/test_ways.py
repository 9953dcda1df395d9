"""The ways of a chunk, a document and a location: functions in the order of their pages.

``uv run python -m tests.docs.test_ways`` writes the functions of the way of a location again, and
keeps what the page says of each that is still there.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Store
from tests.structure import LAYERS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

DOCS = Path(__file__).parents[2] / "docs" / "design"
PACKAGE = str(Path(n5zarr.__file__).parent) + os.sep
RANK = {name: rank for rank, name in enumerate(LAYERS)}
# what runs the flow; all below it is called by its packages or is a helper of what they call
FLOW = ("store", "storage", "container")
# helpers for names, orders and sizes, and the dispatch and log of requests, which each passes
EVERYWHERE = re.compile(
    r"n5zarr\.(format\.(path|order|grid|data_type|attributes)\..*"
    r"|storage\.local\.LocalFiles\.(answer|_write)|storage\.locks\..*|storage\.requests\.logs_requests"
    r"|storage\.files\.(_.*|check_.*|is_unfinished|is_coming|patiently|unfinished_name|HeldFile\..*)"
    r"|storage\.writing\.(_.*|sync_directories|FileWriter\.(_.*|note_directory)))"
)


class Call(NamedTuple):
    """A function that was entered, and the package of its caller."""

    name: str
    caller: str

    @property
    def package(self) -> str:
        return self.name.split(".")[1]


def name_of(frame: FrameType) -> str | None:
    """Name a function of n5zarr; None for any other, and for properties."""
    file, code = frame.f_code.co_filename, frame.f_code
    if not file.startswith(PACKAGE) or "<" in code.co_qualname.replace("<locals>", ""):
        return None
    module = "n5zarr." + file.removeprefix(PACKAGE).removesuffix(".py").replace(os.sep, ".")
    owner: Any = import_module(module)
    *outer, last = code.co_qualname.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
    if isinstance(inspect.getattr_static(owner, last, None), property | cached_property):
        return None
    return f"{module}.{code.co_qualname}"


def calls_of(function: Callable[[], object]) -> list[Call]:
    """Run a function, and list the functions of n5zarr that it enters, in order."""
    entered: list[FrameType] = []
    calls: list[Call] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        # a generator is entered again after each request: only the first time counts
        if event != "call" or any(frame is known for known in entered):
            return
        name = name_of(frame)
        if name is None:
            return
        entered.append(frame)
        back = frame.f_back
        while back is not None and name_of(back) is None:
            back = back.f_back
        caller = None if back is None else name_of(back)
        calls.append(Call(name, "" if caller is None else caller.split(".")[1]))

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def main_calls(calls: list[Call]) -> list[Call]:
    """Keep the functions of the flow, and those that it calls directly."""
    return [
        call
        for call in calls
        if (call.package in FLOW or call.caller in FLOW) and not EVERYWHERE.fullmatch(call.name)
    ]


def steps_of(page: str, heading: str) -> list[str]:
    """Read the numbered functions below a heading of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return ["n5zarr." + name for name in re.findall(r"^\d+\. `([\w.<>]+)`", section, re.MULTILINE)]


def upward(calls: list[Call]) -> list[str]:
    """Name the functions that a lower package calls in a higher one."""
    return [call.name for call in calls if call.caller and RANK[call.caller] < RANK[call.package]]


@pytest.fixture
def store(tmp_path: Path) -> N5Store:
    n5zarr.create_array(
        tmp_path / "c.n5", path="a", shape=(5, 7, 11), chunks=(2, 3, 4), dtype="uint16",
        compression={"type": "raw"},
    )[:] = 3  # fmt: skip
    for file in tmp_path.rglob("*"):
        os.utime(file, (1e9, 1e9))  # written long ago: no lock is needed to read it
    store = N5Store(tmp_path / "c.n5", zarr_format=3)
    array = zarr.open_array(store, path="a")
    assert np.array_equal(array[:], np.full((5, 7, 11), 3))
    return store


def check(calls: list[Call], page: str, heading: str, ups: list[str]) -> None:
    main = [call.name for call in main_calls(calls)]
    assert main == steps_of(page, heading), "\n".join(
        f"{i}. `{name.removeprefix('n5zarr.')}`" for i, name in enumerate(main, 1)
    )
    assert len(set(main)) == len(main)
    assert upward(calls) == ups


FLOW_BEGINS = "n5zarr.container.container.Container."


def test_a_full_size_chunk_is_read_as_its_page_says(store: N5Store) -> None:
    calls = calls_of(lambda: store.get_sync("a/c/1/1/1"))
    check(calls, "the-way-of-a-chunk.md", "Reading a full-size chunk", [FLOW_BEGINS + "read"])


def test_a_chunk_at_the_edge_is_read_as_its_page_says(store: N5Store) -> None:
    calls = calls_of(lambda: store.get_sync("a/c/2/2/2"))
    made = "n5zarr.container.chunks.Chunks._make_chunk"
    check(calls, "the-way-of-a-chunk.md", "Reading a truncated block", [FLOW_BEGINS + "read", made])


def test_a_chunk_is_written_as_its_page_says(store: N5Store) -> None:
    chunk = store.get_sync("a/c/1/1/1")
    assert chunk is not None
    calls = calls_of(lambda: store.set_sync("a/c/1/1/1", chunk))
    made = "n5zarr.container.chunks.Chunks._make_block"
    looked = "n5zarr.storage.writing._check.<locals>.read"  # begin and end of the replaced file
    ups = [FLOW_BEGINS + "_locating", made, looked, looked]
    check(calls, "the-way-of-a-chunk.md", "Writing a chunk", ups)


def test_a_document_is_read_as_its_page_says(store: N5Store) -> None:
    calls = calls_of(lambda: store.get_sync("a/zarr.json"))
    check(calls, "the-way-of-a-document.md", "Reading a document", [FLOW_BEGINS + "read"])


def test_a_document_is_written_as_its_page_says(store: N5Store) -> None:
    served = store.get_sync("a/zarr.json")
    assert served is not None
    document = json.loads(served.to_bytes())
    document["attributes"] = {"note": "what Zarr changed"}
    value = cpu.Buffer.from_bytes(json.dumps(document).encode())
    calls = calls_of(lambda: store.set_sync("a/zarr.json", value))
    applied = "n5zarr.container.updates.write_document.<locals>.apply"
    check(
        calls,
        "the-way-of-a-document.md",
        "Writing a document",
        [FLOW_BEGINS + "_locating", applied],
    )
    assert '"note"' in (store.root / "a" / "attributes.json").read_text(encoding="utf-8")
