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
from collections import Counter
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Store
from n5zarr.viewing.serve.app import make_app
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
    r"n5zarr\.(format\.(path|order|grid|data_type|attributes)\..*|codecs\.compress\.codec_of"
    r"|errors\.ErrorsAt\..*|container\.memory\.Memory\.(?!keep$|take_listed$).*|container\.chunks\.Chunks\._errors_of"
    r"|storage\.interface\.Storage\.answer_with|storage\.local\.LocalFiles\.(answer|_write)|storage\.locks\..*|storage\.requests\.logs_requests"
    r"|storage\.files\.(_.*|check_.*|is_unfinished|is_coming|patiently|unfinished_name|HeldFile\..*)"
    r"|storage\.writing\.(_.*|sync_directories|FileWriter\.(_.*|note_directory)))"
)


# what parses, recognises and opens a location; the rest is done with what was opened
OPENS = re.compile(
    r"n5zarr\.(storage\.place\.place_of|storage\.opening\.open_storage|store\.location\.[a-z].*"
    r"|storage\.interface\.Storage\.run|container\.container\.Container\.node"
    r"|store\.bdv_xml\.(xml_file|project_or_container)"
    r"|store\.n5_store\.N5Store\.__init__"
    r"|tools\.convert\.(convert\.(convert|_open)|places\.[a-z_].*)|images\.from_n5\..*"
    r"|xarray\.(bdv_engine\.open_described|backend\.(N5BackendEntrypoint|_NodeReader)\..*)"
    r"|arrays\.(nodes\.as_zarr|array\.with_fast_path)"
    r"|viewing\.serve\.(app\.make_app|location\..*))"
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
    return ["n5zarr." + name for name in re.findall(r"^\d+\. `([\w.<> ]+)`", section, re.MULTILINE)]


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


LOCATIONS = "the-way-of-a-location.md"


def with_counts(calls: list[Call]) -> list[str]:
    """Name the functions that open a location, with how often each runs if that is not once."""
    counts = Counter(call.name for call in calls if OPENS.fullmatch(call.name))
    return [name if n == 1 else f"{name} x{n}" for name, n in counts.items()]


def conversion(root: Path) -> object:
    return n5zarr.convert(root / "a", root.parent / "o.zarr", dry_run=True)


def dataset(root: Path) -> object:
    return xr.open_dataset(root / "a", engine="n5")


def server(root: Path) -> object:
    return make_app(root / "a")


# what a flow calls is called by storage: the only steps up
WAYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "Converting a dataset": (conversion, FLOW_BEGINS + "node"),
    "Opening a dataset with xarray": (dataset, "n5zarr.xarray.backend._NodeReader._reading"),
    "Serving a dataset": (server, FLOW_BEGINS + "node"),
}


@pytest.mark.parametrize("heading", WAYS)
def test_a_location_is_opened_as_its_page_says(store: N5Store, heading: str) -> None:
    way, flow = WAYS[heading]
    calls = calls_of(lambda: way(store.root))
    assert with_counts(calls) == steps_of(LOCATIONS, heading), "run python -m tests.docs.test_ways"
    assert upward(calls) == [flow]


def _write_page() -> None:
    """Write the functions of each way of a location, with what the page says of them."""
    page = DOCS / LOCATIONS
    with TemporaryDirectory() as folder:
        root = Path(folder, "c.n5")
        n5zarr.create_array(root, path="a", shape=(5, 7, 11), chunks=(2, 3, 4), dtype="uint16")
        for heading, (way, _) in WAYS.items():
            before, mark, rest = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
            section, end, after = rest.partition("\n## ")
            said = dict(re.findall(r"^\d+\. `([\w.]+)[^`]*`(.*)$", section, re.MULTILINE))
            intro = re.split(r"^1\. ", section, maxsplit=1, flags=re.MULTILINE)[0]
            steps = [
                name.removeprefix("n5zarr.").split()
                for name in with_counts(calls_of(partial(way, root)))
            ]
            lines = [
                f"{n}. `{' '.join(step)}`{said.get(step[0], '')}" for n, step in enumerate(steps, 1)
            ]
            page.write_text(before + mark + intro + "\n".join(lines) + "\n" + end + after, "utf-8")


if __name__ == "__main__":
    _write_page()
