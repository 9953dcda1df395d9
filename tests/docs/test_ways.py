"""The pages list the functions of each way through the code in the right order.

``uv run python -m tests.docs.test_ways`` writes the functions of all ways again, and keeps what
the pages say of each that is still there.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import sys
import time
from collections import Counter
from concurrent.futures import Executor, Future
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import compress, groupby
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
from n5zarr.container.nodes import _plain_dataset
from n5zarr.fast.default import _UntilZarrComes
from n5zarr.rooms import ADDED
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
FLOW = ("n5zarr.store.", "n5zarr.storage.", "n5zarr.container.")
# what users' functions are made of; all below it has pages of its own, or is a helper
ROOMS = ("n5zarr.paintera.", "n5zarr.other_sources.", "n5zarr.ome_zarr.", "n5zarr.bigdataviewer.")
EDGES = (
    "n5zarr.metadata.", "n5zarr.xarray.", "n5zarr.images.", "n5zarr.viewing.", "n5zarr.tools.",
    *ROOMS,
)  # fmt: skip
ROOMS_LIST = "n5zarr.rooms.Door.found"  # by which the core calls what rooms add
DOORS = {where.replace(":", ".") for names in ADDED.values() for where in names.values()}
RUN = "n5zarr.storage.interface.Storage.run"  # where these begin
# helpers for names, orders and sizes, checks of options, and the dispatch and log of requests
EVERYWHERE = re.compile(
    r"n5zarr\.(format\.(path|order|grid|data_type|attributes)\..*|codecs\.compress\.codec_of"
    r"|format\.foreign\.format_of_name|container\.options\.(check_.*|require|texts_of)|.*\.__str__"
    r"|bigdataviewer\.project\.xml_file|errors\.ErrorsAt\..*|container\.memory\.Memory\.(?!keep$|take_listed$).*|container\.chunks\.Chunks\._errors_of"
    r"|storage\.ending\..*|storage\.interface\.Storage\.answer_with|storage\.local\.LocalFiles\.(answer|_write)|storage\.locks\..*|storage\.requests\.logs_requests"
    r"|storage\.files\.(_.*|check_.*|read_at|is_unfinished|is_coming|patiently|unfinished_name|HeldFile\..*)"
    r"|storage\.writing\.(_.*|sync_directories|FileWriter\.(_.*|.*<locals>.*|note_directory)))"
)


# what parses, recognises and opens a location; the rest is done with what was opened
OPENS = re.compile(
    r"n5zarr\.(storage\.place\.place_of|storage\.opening\.open_storage|store\.location\.[a-z].*"
    r"|storage\.interface\.Storage\.run|container\.container\.Container\.node"
    r"|bigdataviewer\.project\.locate|ome_zarr\.location\.locate|rooms\.Door\.found"
    r"|store\.locating\.(locate|open_container|Located\.open)"
    r"|store\.n5_store\.N5Store\.__init__"
    r"|tools\.convert\.(convert\.convert|places\.[a-z_].*)|images\.from_n5\..*"
    r"|xarray\.(documents\.open_views|backend\.(N5BackendEntrypoint|_NodeReader)\..*)"
    r"|arrays\.(nodes\.as_zarr|group\.(values_of|with_fast_path))"
    r"|viewing\.serve\.(app\.make_app|location\..*))"
)


class Call(NamedTuple):
    """A function that was entered, and its caller; "" for none."""

    name: str
    by: str

    @property
    def package(self) -> str:
        return self.name.split(".")[1]

    @property
    def caller(self) -> str:
        return self.by and self.by.split(".")[1]


def name_of(frame: FrameType) -> str | None:
    """Return the name of a function of n5zarr; None for any other, and for properties.

    Waiting for zarr's event loop is no step: zarr's own functions wait, too. Nor is a search for a
    module, which asks for zarr if n5zarr came first.
    """
    file, code = frame.f_code.co_filename, frame.f_code
    if not file.startswith(PACKAGE) or "<" in code.co_qualname.replace("<locals>", ""):
        return None
    if code in (sync.__code__, _UntilZarrComes.find_spec.__code__):
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
    entered: dict[int, FrameType] = {}
    calls: list[Call] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        # a generator is entered again after each request: only the first time counts
        if id(frame) in entered:
            return
        name = name_of(frame)
        if name is None:
            return
        entered[id(frame)] = frame
        back = frame.f_back
        while back is not None and name_of(back) is None:
            back = back.f_back
        by = "" if back is None else name_of(back) or ""
        calls.append(Call(name, ROOMS_LIST if name in DOORS else by))

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def main_calls(packages: tuple[str, ...], calls: list[Call]) -> list[Call]:
    """Return the functions of some packages, and those that they call directly."""
    return [
        call
        for call in calls
        if (call.name.startswith(packages) or call.by.startswith(packages))
        and not EVERYWHERE.fullmatch(call.name)
    ]


def section_of(page: str, heading: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def steps_of(page: str, heading: str) -> list[str]:
    """Return the numbered functions below a heading of a page."""
    found = re.findall(r"^\d+\. `([\w.<> ]+)`", section_of(page, heading), re.MULTILINE)
    return ["n5zarr." + name for name in found]


def upward(calls: list[Call]) -> list[str]:
    """Return the functions that a lower package calls in a higher one, but for rooms' list."""
    return [
        call.name
        for call in calls
        if call.caller not in ("", "rooms")
        and call.package != "fast"  # which zarr calls, or rooms
        and RANK[call.caller] < RANK[call.package]
    ]


def entered_again(calls: list[Call]) -> set[str]:
    """Return the packages that others call again, after one of them has called another."""
    entered = [c.package for c in calls if c.package not in (c.caller, "rooms")]
    visits = Counter(package for package, _ in groupby(entered))
    return {package for package, n in visits.items() if n > 1}


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


@patch.object(run, "ThreadPoolExecutor", InThisThread)
def convert(source: Any, root: Path, name: str, **options: Any) -> object:
    """Convert into a new folder, in this thread."""
    return n5zarr.convert(source, Path(mkdtemp(dir=root.parent), name), n_workers=1, **options)


def copy(root: Path) -> Callable[[], object]:
    return lambda: convert(root / "one", root, "o.zarr")


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

    asyncio.run(answered())  # makes the view
    return lambda: asyncio.run(answered())


def opened(root: Path) -> N5Store:
    store = N5Store(root, zarr_format=3)
    array = zarr.open_array(store, path="a")
    assert np.array_equal(array[:], np.full((5, 7, 11), 3))
    return store


def read(key: str, root: Path) -> Callable[[], object]:
    store = opened(root)
    return lambda: store.get_sync(key)


def write_chunk(root: Path) -> Callable[[], object]:
    store = opened(root)
    chunk = store.get_sync("a/c/1/1/1")
    assert chunk is not None
    return lambda: store.set_sync("a/c/1/1/1", chunk)


def write_document(root: Path) -> Callable[[], object]:
    store = opened(root)
    served = store.get_sync("a/zarr.json")
    assert served is not None
    document = json.loads(served.to_bytes())
    document["attributes"] = {"note": time.time()}
    value = cpu.Buffer.from_bytes(json.dumps(document).encode())

    def written() -> None:
        store.set_sync("a/zarr.json", value)
        attributes = json.loads((store.root / "a" / "attributes.json").read_bytes())
        assert attributes["note"] == document["attributes"]["note"]

    return written


def pyramid(root: Path) -> Callable[[], object]:
    source = Path(mkdtemp(dir=root.parent), "p.n5", "s0")
    n5zarr.create_array(source, shape=(5, 7, 11), chunks=(5, 7, 11), dtype="uint16")[:] = 3

    build = patch.object(run, "ThreadPoolExecutor", InThisThread)(n5zarr.build_pyramid)
    return lambda: build(source, levels=1, n_workers=1)


PROJECT = n5zarr.sample_path("bigstitcher")


def project(_: Path) -> Callable[[], object]:
    return lambda: n5zarr.open_bdv(PROJECT)


def resaved(root: Path) -> Callable[[], object]:
    return lambda: convert(PROJECT, root, "new.xml", to="ome-zarr")


PROJECTS, LEVELS = "the-way-of-a-project.md", "the-way-of-a-pyramid.md"
LONG = (PROJECTS, LEVELS)  # what storage runs for each dataset is not listed
RESAVE = "n5zarr.bigdataviewer.resave."
AGAIN = "Packages that are entered again"
# of an image and of a project: helpers whose names tell what they do
# of axes, documents, boxes and names
HELPERS_OF_LEVELS = (
    r"conventions|format|zarr_view|codecs|arrays\.(boxes|placing)|fast\.kernel|store\.block_codec|metadata\.levels\.is"
    r"|tools\.(convert\.target_n5\.N5Target\.key|jobs\.run\.RunOptions\.(checked|memory)"
    r"|pyramid\.(build\._i|image\.(L|n|PyramidImage\.(axes|full|name))|methods\.(halo|choose)"
    r"|(model|schedule|n5_image\.N5Image|work\._Work)\._[a-z]|work\._moved))"
)
HELPERS_OF_XML = (
    r"conventions|zarr_view|storage\.(secrets|url)|bigdataviewer\.(description|views\._|stacked_views\.\w+\._"
    r"|opening\._(check|is_ours)|project\.(_[hip]|XmlFile\.(_|at|beside|options)))"
)


class Way(NamedTuple):
    """A way from the call of a user, as a section of a page lists it."""

    page: str
    heading: str
    make: Callable[[Path], Callable[[], object]]
    main: Callable[[list[Call]], list[Call]]
    ups: tuple[str, ...]  # what storage calls: flows
    first: str = ""  # of a part of a long way: the last call of a function
    stop: str = ""

    @property
    def is_counted(self) -> bool:
        """Whether functions are listed once, with a count if they run again."""
        return self.page in (LOCATIONS, *LONG)

    def walked(self, calls: list[Call]) -> list[Call]:
        """Return the calls that the page lists: of counted functions the first one."""
        main = self.main(calls)
        names = [call.name for call in main]
        is_listed = [not self.is_counted or name not in names[:n] for n, name in enumerate(names)]
        return list(compress(main, is_listed))

    def listed(self, calls: list[Call]) -> list[str]:
        names = [call.name for call in self.walked(calls)]
        if self.is_counted:
            counts = Counter(call.name for call in self.main(calls))
            return [name if counts[name] == 1 else f"{name} x{counts[name]}" for name in names]
        last = {name: n for n, name in enumerate(names)}
        return names[last.get(self.first, 0) : last.get(self.stop)]


def opening(calls: list[Call]) -> list[Call]:
    return [call for call in calls if OPENS.fullmatch(call.name)]


def flow(calls: list[Call]) -> list[Call]:
    return main_calls(FLOW, calls)


def edges(calls: list[Call]) -> list[Call]:
    return [call for call in main_calls(EDGES, calls) if call.name not in (RUN, ROOMS_LIST)]


def without(helpers: str, packages: tuple[str, ...], calls: list[Call]) -> list[Call]:
    return [c for c in main_calls(packages, calls) if not re.match(rf"n5zarr\.({helpers})", c.name)]


LOCATIONS = "the-way-of-a-location.md"
READING = "n5zarr.xarray.backend._NodeReader._reading"
FLOW_BEGINS = "n5zarr.container.container.Container."
NODE = FLOW_BEGINS + "node"
MADE = "n5zarr.container.chunks.Chunks."
LOOKED = "n5zarr.storage.files.read_at"  # begin and end of the replaced file
APPLIED = "n5zarr.container.updates.write_document.<locals>.apply"
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
    Way(CONVERSION, heading, copy, edges, COPYING, first=start, stop=stop)
    for (heading, start), stop in zip(STARTS.items(), [*STARTS.values()][1:], strict=False)
)
CHUNKS, DOCUMENTS = "the-way-of-a-chunk.md", "the-way-of-a-document.md"
READ, LOCATED = FLOW_BEGINS + "read", FLOW_BEGINS + "_locating"
FLOWS = (
    Way(CHUNKS, "Reading a full-size chunk", partial(read, "a/c/1/1/1"), flow, (READ,)),
    Way(
        CHUNKS, "Reading a truncated block", partial(read, "a/c/2/2/2"), flow,
        (READ, MADE + "_make_chunk"),
    ),
    Way(
        CHUNKS, "Writing a chunk", write_chunk, flow,
        (LOCATED, MADE + "_make_block", LOOKED, LOOKED),
    ),
    Way(DOCUMENTS, "Reading a document", partial(read, "a/zarr.json"), flow, (READ,)),
    Way(DOCUMENTS, "Writing a document", write_document, flow, (LOCATED, APPLIED)),
)  # fmt: skip
BUILDING = partial(without, HELPERS_OF_LEVELS, ("n5zarr.tools.pyramid.",))
IN_ROOM = partial(without, HELPERS_OF_XML, ("n5zarr.bigdataviewer.",))
RESAVING = partial(without, HELPERS_OF_XML, (RESAVE,))
STEPS = tuple(  # of what the room returned
    RESAVE + step
    for step in (
        "NewProject.check_free", "NewProject.resaving", "Resaving.tree", "Resaving.folders",
        "Resaving.write",
    )
)  # fmt: skip
WAYS = (
    *FLOWS,
    *PARTS,
    Way(LOCATIONS, "Converting a dataset", conversion, opening, (NODE,)),
    Way(LOCATIONS, "Opening a dataset with xarray", dataset, opening, (READING,)),
    Way(LOCATIONS, "Serving a dataset", server, opening, (NODE,)),
    Way("the-way-of-an-xarray-dataset.md", "Opening a dataset", dataset, edges, (READING,)),
    Way(REQUESTS, "From serve to the application", serving, edges, (NODE,)),
    Way(REQUESTS, "A chunk", partial(request, "/zarr3/c/1/1/1"), edges, (VALUE,)),
    Way(REQUESTS, "A document", partial(request, "/zarr3/zarr.json"), edges, (VALUE,)),
    Way(LEVELS, "Writing a level", pyramid, BUILDING, ()),
    Way(PROJECTS, "Opening a project", project, IN_ROOM, ()),
    Way(PROJECTS, "Converting a project", resaved, RESAVING, STEPS),
)


@cache
def traced(make: Callable[[Path], Callable[[], object]]) -> list[Call]:
    """Return the calls of a way that has run once before, so that modules are imported."""
    with TemporaryDirectory() as folder:
        root = make_container(Path(folder))
        made = [make(root)()]
        go = make(root)
        _plain_dataset.cache_clear()  # as for a document that is read for the first time
        calls = calls_of(lambda: made.append(go()))
        for each in made:
            if isinstance(each, n5zarr.Server):
                each.close()
    return calls


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.heading)
def test_a_way_is_as_its_page_says(way: Way) -> None:
    calls = traced(way.make)
    listed = way.listed(calls)
    assert listed == steps_of(way.page, way.heading), "run python -m tests.docs.test_ways"
    # of the source and of the destination
    two = {*KEYS, "n5zarr.storage.place.place_of"} if way in PARTS else set()
    once = [name for name in listed if name not in two]
    assert len(set(once)) == len(once)
    assert tuple(upward(way.walked(calls) if way.page in LONG else calls)) == way.ups
    assert len(way.ups) <= 2 or way in FLOWS or way.main is RESAVING


def test_a_conversion_parses_two_locations_and_does_all_else_once() -> None:
    names = Counter(call.name for call in edges(traced(copy)))
    # a report, if there is one, gets the source, and then the copy
    twice = {"n5zarr.storage.place.place_of", "n5zarr.tools.jobs.reports.report_of_run"}
    assert {name: n for name, n in names.items() if n > 1} == dict.fromkeys(twice | KEYS, 2)


@pytest.mark.parametrize("page", dict.fromkeys(way.page for way in WAYS))
def test_a_package_is_entered_again_only_for_a_reason(page: str) -> None:
    found = set[str]()
    for way in WAYS:
        if way.page == page:
            found |= entered_again(way.walked(traced(way.make)))
    reasons = re.findall(r"^- `(\w+)`: .", section_of(page, AGAIN), re.MULTILINE)
    assert reasons == sorted(found, key=RANK.__getitem__)


def _write_pages() -> None:
    """Write the functions of each way, with the description of its page."""
    for way in WAYS:
        page = DOCS / way.page
        before, mark, rest = page.read_text(encoding="utf-8").partition(f"\n## {way.heading}\n")
        section, end, after = rest.partition("\n## ")
        said: dict[str, list[str]] = {}
        for name, words in re.findall(r"^\d+\. `([\w.<>]+)[^`]*`(.*)$", section, re.MULTILINE):
            said.setdefault(name, []).append(words)
        intro = re.split(r"^1\. ", section, maxsplit=1, flags=re.MULTILINE)[0]
        steps = [name.removeprefix("n5zarr.").split() for name in way.listed(traced(way.make))]
        lines = [
            f"{n}. `{' '.join(step)}`{(said.get(step[0]) or ['']).pop(0)}"
            for n, step in enumerate(steps, 1)
        ]
        outro = re.split(r"^\d+\. .*\n", section, flags=re.MULTILINE)[-1]
        page.write_text(
            before + mark + intro + "\n".join(lines) + "\n" + outro + end + after, "utf-8"
        )


if __name__ == "__main__":
    _write_pages()
