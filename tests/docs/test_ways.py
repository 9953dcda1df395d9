"""The pages list the functions of each way through the code in the right order.

``uv run python -m tests.docs.test_ways`` writes the functions of the ways that begin where users
begin again, and keeps what the pages say of each that is still there.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import sys
from collections import Counter
from concurrent.futures import Executor, Future
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.buffer import cpu

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.tools.jobs import run
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
# what users' functions are made of; all below it has pages of its own, or is a helper
EDGES = ("xarray", "images", "viewing", "tools")
RUN = "n5zarr.storage.interface.Storage.run"  # where these begin
# helpers for names, orders and sizes, checks of options, and the dispatch and log of requests
EVERYWHERE = re.compile(
    r"n5zarr\.(format\.(path|order|grid|data_type|attributes)\..*|codecs\.compress\.codec_of"
    r"|format\.foreign\.format_of_name|container\.options\.(check_.*|require|listed)|.*\.__str__"
    r"|errors\.ErrorsAt\..*|container\.memory\.Memory\.(?!keep$|take_listed$).*|container\.chunks\.Chunks\._errors_of"
    r"|storage\.interface\.Storage\.answer_with|storage\.local\.LocalFiles\.(answer|_write)|storage\.locks\..*|storage\.requests\.logs_requests"
    r"|storage\.files\.(_.*|check_.*|read_at|is_unfinished|is_coming|patiently|unfinished_name|HeldFile\..*)"
    r"|storage\.writing\.(_.*|sync_directories|FileWriter\.(_.*|note_directory)))"
)


# what parses, recognises and opens a location; the rest is done with what was opened
OPENS = re.compile(
    r"n5zarr\.(storage\.place\.place_of|storage\.opening\.open_storage|store\.location\.[a-z].*"
    r"|storage\.interface\.Storage\.run|container\.container\.Container\.node"
    r"|store\.bdv_xml\.(xml_file|project_or_container)|store\.locating\.(locate|open_container)"
    r"|store\.n5_store\.N5Store\.__init__"
    r"|tools\.convert\.(convert\.convert|places\.[a-z_].*)|images\.from_n5\..*"
    r"|xarray\.(bdv\.open_described|backend\.(N5BackendEntrypoint|_NodeReader)\..*)"
    r"|arrays\.(nodes\.as_zarr|group\.(values_of|with_fast_path))"
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
    """Return the name of a function of n5zarr; None for any other, and for properties.

    Waiting for zarr's event loop is no step: zarr's own functions wait, too.
    """
    file, code = frame.f_code.co_filename, frame.f_code
    if not file.startswith(PACKAGE) or "<" in code.co_qualname.replace("<locals>", ""):
        return None
    if code is sync.__code__:
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
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        # a generator is entered again after each request: only the first time counts
        if any(frame is known for known in entered):
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


def main_calls(calls: list[Call], packages: tuple[str, ...]) -> list[str]:
    """Return the names of the functions of some packages, and those that they call directly."""
    return [
        call.name
        for call in calls
        if (call.package in packages or call.caller in packages)
        and not EVERYWHERE.fullmatch(call.name)
    ]


def steps_of(page: str, heading: str) -> list[str]:
    """Return the numbered functions below a heading of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return ["n5zarr." + name for name in re.findall(r"^\d+\. `([\w.<> ]+)`", section, re.MULTILINE)]


def upward(calls: list[Call]) -> list[str]:
    """Return the names of the functions that a lower package calls in a higher one."""
    return [call.name for call in calls if call.caller and RANK[call.caller] < RANK[call.package]]


def make_container(folder: Path) -> Path:
    """Write a container with a dataset of many blocks, and one of one block."""
    root = folder / "c.n5"
    for path, chunks in {"a": (2, 3, 4), "one": (5, 7, 11)}.items():
        n5zarr.create_array(
            root, path=path, shape=(5, 7, 11), chunks=chunks, dtype="uint16",
            compression={"type": "raw"},
        )[:] = 3  # fmt: skip
    for file in root.rglob("*"):
        os.utime(file, (1e9, 1e9))  # written long ago: no lock is needed to read it
    return root


@pytest.fixture
def store(tmp_path: Path) -> N5Store:
    store = N5Store(make_container(tmp_path), zarr_format=3)
    array = zarr.open_array(store, path="a")
    assert np.array_equal(array[:], np.full((5, 7, 11), 3))
    return store


def check(calls: list[Call], page: str, heading: str, ups: list[str]) -> None:
    main = main_calls(calls, FLOW)
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
    looked = "n5zarr.storage.files.read_at"  # begin and end of the replaced file
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


def with_counts(calls: list[Call]) -> list[str]:
    """Return the functions that open a location, with a count if one runs more than once."""
    counts = Counter(call.name for call in calls if OPENS.fullmatch(call.name))
    return [name if n == 1 else f"{name} x{n}" for name, n in counts.items()]


def of_edges(calls: list[Call]) -> list[str]:
    """Return the functions of a way from the user's call to its end."""
    return [name for name in main_calls(calls, EDGES) if name != RUN]


def part(first: str, stop: str, calls: list[Call]) -> list[str]:
    """Return the functions of a part of a long way, from the last call of a function."""
    names = of_edges(calls)
    last = {name: n for n, name in enumerate(names)}
    return names[last[first] : last.get(stop)]


class InThisThread(Executor):
    """An executor that runs each task in this thread when it is submitted."""

    def __init__(self, *_: object) -> None:
        pass

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **kwargs))
        return done


def conversion(root: Path) -> Callable[[], object]:
    return lambda: n5zarr.convert(root / "a", root.parent / "o.zarr", dry_run=True)


def dataset(root: Path) -> Callable[[], object]:
    return lambda: xr.open_dataset(root / "a", engine="n5")


def server(root: Path) -> Callable[[], object]:
    return lambda: make_app(root / "a")


def copy(root: Path) -> Callable[[], object]:
    def copied() -> object:
        destination = Path(mkdtemp(dir=root.parent), "o.zarr")
        with patch.object(run, "ThreadPoolExecutor", InThisThread):
            return n5zarr.convert(root / "one", destination, n_workers=1)

    return copied


def serving(root: Path) -> Callable[[], object]:
    return lambda: n5zarr.serve(root / "a")


def request(path: str, root: Path) -> Callable[[], object]:
    """Ask the application for a path, without a server."""
    app = make_app(root / "a")
    scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"localhost")]}

    async def answered() -> bytes:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await app({**scope, "query_string": b""}, asyncio.Future, send)
        assert sent[0]["status"] == 200
        return b"".join(message.get("body", b"") for message in sent)

    return lambda: asyncio.run(answered())


class Way(NamedTuple):
    """A way from the call of a user, as a section of a page lists it."""

    page: str
    heading: str
    make: Callable[[Path], Callable[[], object]]
    listed: Callable[[list[Call]], list[str]]
    ups: tuple[str, ...]  # what storage calls: flows


LOCATIONS = "the-way-of-a-location.md"
READING = "n5zarr.xarray.backend._NodeReader._reading"
NODE = FLOW_BEGINS + "node"
VALUE = "n5zarr.viewing.serve.views.ZarrView._value"
REQUESTS = "the-way-of-a-request.md"
CONVERSION = "the-way-of-a-conversion.md"
STARTS = {
    "The destination": "n5zarr.tools.convert.convert.convert",
    "The source": "n5zarr.storage.asking_once.asking_once",
    "The plan": "n5zarr.tools.convert.copies.opaque_folders",
    "The copy": "n5zarr.tools.convert.writing._write",
    "": "",
}
KEYS = {  # which the ledger names, too
    "n5zarr.tools.convert.target.ZarrTarget.key",
    "n5zarr.zarr_view.dataset_view.DatasetView.grid_position",
    "n5zarr.zarr_view.keys.ChunkNames.key",
}
COPYING = (NODE, "n5zarr.tools.jobs.incomplete.confirm")
PARTS = tuple(
    Way(CONVERSION, heading, copy, partial(part, start, stop), COPYING)
    for (heading, start), stop in zip(STARTS.items(), [*STARTS.values()][1:], strict=False)
)
WAYS = (
    *PARTS,
    Way(LOCATIONS, "Converting a dataset", conversion, with_counts, (NODE,)),
    Way(LOCATIONS, "Opening a dataset with xarray", dataset, with_counts, (READING,)),
    Way(LOCATIONS, "Serving a dataset", server, with_counts, (NODE,)),
    Way("the-way-of-an-xarray-dataset.md", "Opening a dataset", dataset, of_edges, (READING,)),
    Way(REQUESTS, "From serve to the application", serving, of_edges, (NODE,)),
    Way(REQUESTS, "A chunk", partial(request, "/zarr3/c/1/1/1"), of_edges, (VALUE,)),
    Way(REQUESTS, "A document", partial(request, "/zarr3/zarr.json"), of_edges, (VALUE,)),
)


def traced(way: Way, root: Path) -> list[Call]:
    """Return the calls of a way that has run once before, so that modules are imported."""
    go, made = way.make(root), list[object]()
    made.append(go())
    calls = calls_of(lambda: made.append(go()))
    for each in made:
        if isinstance(each, n5zarr.Server):
            each.close()
    return calls


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.heading)
def test_a_way_from_a_user_is_as_its_page_says(store: N5Store, way: Way) -> None:
    calls = traced(way, store.root)
    listed = way.listed(calls)
    assert listed == steps_of(way.page, way.heading), "run python -m tests.docs.test_ways"
    # of the source and of the destination
    once = [name for name in listed if name not in {*KEYS, "n5zarr.storage.place.place_of"}]
    assert len(set(once)) == len(once)
    assert tuple(upward(calls)) == way.ups
    assert len(way.ups) <= 2


def test_a_conversion_parses_two_locations_and_does_all_else_once(store: N5Store) -> None:
    names = Counter(of_edges(traced(PARTS[0], store.root)))
    twice = {"n5zarr.storage.place.place_of"}
    assert {name: n for name, n in names.items() if n > 1} == dict.fromkeys(twice | KEYS, 2)


def _write_pages() -> None:
    """Write the functions of each way, with the description of its page."""
    with TemporaryDirectory() as folder:
        root = make_container(Path(folder))
        for way in WAYS:
            page = DOCS / way.page
            before, mark, rest = page.read_text(encoding="utf-8").partition(f"\n## {way.heading}\n")
            section, end, after = rest.partition("\n## ")
            said = dict(re.findall(r"^\d+\. `([\w.]+)[^`]*`(.*)$", section, re.MULTILINE))
            intro = re.split(r"^1\. ", section, maxsplit=1, flags=re.MULTILINE)[0]
            steps = [name.removeprefix("n5zarr.").split() for name in way.listed(traced(way, root))]
            lines = [
                f"{n}. `{' '.join(step)}`{said.get(step[0], '')}" for n, step in enumerate(steps, 1)
            ]
            outro = re.split(r"^\d+\. .*\n", section, flags=re.MULTILINE)[-1]
            page.write_text(
                before + mark + intro + "\n".join(lines) + "\n" + outro + end + after, "utf-8"
            )


if __name__ == "__main__":
    _write_pages()
