"""The site builds without a warning, needs no other host, and has every page and public name."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
import yaml

from n5zarr import N5Store
from n5zarr.xarray.accessor import N5Accessor
from tests.public_api import members, names_of
from tests.viewing.browser import chromium, complaints, resize

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ENGINE, ACCESSOR = "n5zarr.xarray.backend.N5BackendEntrypoint", "n5zarr.xarray.accessor.N5Accessor"
MODULES_OF_THEIR_OWN = ("n5zarr.hdmf", "n5zarr.format", "n5zarr.errors")
TOP = {f"n5zarr.{name}" for name in {*names_of("n5zarr")} - {*names_of("n5zarr.errors")}}
PUBLIC = {
    *TOP,
    *(f"{module}.{name}" for module in MODULES_OF_THEIR_OWN for name in names_of(module)),
    ENGINE,
    ACCESSOR,
}
ON_PHONES = (
    "",
    "cookbook/",
    "cheat-sheet/",
    "gallery/",
    "support/",
    "performance/",
    "migration/zarr-2/",
    "api/containers/",
    "notebooks/01-open-n5/",
    "notebooks/06-a-bigstitcher-project/",
)
TOO_WIDE = """
const width = document.documentElement.clientWidth;
const scrolls = (e) => e && e !== document.body &&
  (/auto|scroll|hidden/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
return [...document.querySelectorAll(".md-content *")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > width + 1 && !scrolls(e);
}).map((e) => e.outerHTML.slice(0, 80));
"""

BROKEN_WORDS = """
return [...document.querySelectorAll("td code, th code")]
  .filter((e) => e.innerText.length < 12 && e.getClientRects().length > 1).map((e) => e.innerText);
"""
FOUND = """
const links = (item) => [...item.querySelectorAll(".md-search-result__link")].map((e) => e.href);
return [...document.querySelectorAll(".md-search-result__item")].map(links);
"""
FIT = {
    390: (
        "",
        "cookbook/",
        "cheat-sheet/",
        "support/",
        "other-programs/",
        "errors/",
        "convert/",
        "pyramids/",
    ),
    1280: ("performance/", "design/results/"),
}
SCROLLING = """
return [...document.querySelectorAll(".md-typeset__scrollwrap")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText.slice(0, 80));
"""


class Page(HTMLParser):
    """The files that a page loads, its links, and the links to it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values.get("id", "")} | ({values.get("name", "")} if tag == "a" else set())
        if tag == "a":
            self.links.append(values.get("href", ""))
        elif tag == "link" and values["rel"] not in {"canonical", "next", "prev"}:
            self.loads.append(values["href"])
        elif tag != "link":
            self.loads += [values[name] for name in ("src", "srcset", "data") if values.get(name)]


pytestmark = pytest.mark.long  # the site is built, which takes half of the time


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, as ``mkdocs build --strict`` does."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Return all pages by their addresses below the root."""
    found = sorted(site.rglob("index.html"))
    return {
        f"{file.parent.relative_to(site).as_posix()}/".removeprefix("./"): Page(file.read_text())
        for file in found
    }


def in_navigation(entry: Any) -> Iterator[str]:
    """List the files of the navigation, or of a part of it."""
    if isinstance(entry, str):
        yield entry
    else:
        for each in entry.values() if isinstance(entry, dict) else entry:
            yield from in_navigation(each)


def test_each_page_is_in_the_navigation_once() -> None:
    listed = sorted(in_navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    pages = [p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")]
    outside = [f"../{p.name}" for p in ROOT.glob("*.md")]
    notebooks = [f"../notebooks/{p.stem}.md" for p in ROOT.glob("notebooks/*.ipynb")]
    assert listed == sorted({*pages, *outside, *notebooks})


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[str, Page]) -> None:
    for address, page in pages.items():
        assert any(each.endswith(".css") for each in page.loads), address
        assert any(each.endswith(".js") for each in page.loads), address
        for each in page.loads:
            assert not re.match(r"(\w+:)?//", each), (address, each)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet
    # Material's script loads this library from another host for such blocks
    assert not any('class="mermaid"' in p.read_text() for p in site.rglob("index.html"))


def test_links_and_files_of_the_built_pages_exist(site: Path, pages: dict[str, Page]) -> None:
    for address, page in pages.items():
        assert page.links, address
        for link in {*page.links, *page.loads}:
            parts = urlsplit(urljoin(f"/{address}", link))
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path).removeprefix("/")
            if path in pages:
                assert unquote(parts.fragment) in pages[path].anchors, (address, link)
            else:
                assert (site / path).is_file(), (address, link)


def test_the_search_index_has_every_page(site: Path, pages: dict[str, Page]) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    assert {each["location"].partition("#")[0] for each in index} == set(pages)
    assert {each["location"].partition("#")[2] for each in index} >= TOP


def test_each_public_name_is_on_one_page(site: Path) -> None:
    named = [
        name
        for page in (DOCS / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    ]
    assert sorted(named) == sorted(PUBLIC)
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1])
    objects = {line.split()[0] for line in inventory.decode().splitlines()}
    assert objects >= PUBLIC
    for owner, cls in {"n5zarr.N5Store": N5Store, ACCESSOR: N5Accessor}.items():
        public = {member.partition("(")[0] for member in members(cls)}
        shown = {name.removeprefix(f"{owner}.") for name in objects if name.startswith(f"{owner}.")}
        assert shown
        assert shown <= public


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Print nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def test_pages_fit_phones_and_their_pictures_load(address: str, browser: Any) -> None:
    resize(browser, 390, 800)
    for path in ON_PHONES:
        browser.get(address + path)
        assert browser.execute_script(TOO_WIDE) == [], path
        broken = "return [...document.images].filter((i) => !i.naturalWidth).map((i) => i.src)"
        assert browser.execute_script(broken) == [], path
    assert complaints(browser) == []


def test_the_cheat_sheet_prints_on_one_page(address: str, browser: Any) -> None:
    from selenium.webdriver.common.print_page_options import PrintOptions  # noqa: PLC0415

    browser.get(address + "cheat-sheet/")
    a4 = PrintOptions()
    a4.page_width, a4.page_height = 21.0, 29.7
    printed = base64.b64decode(browser.print_page(a4))
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1


@pytest.mark.parametrize("width", FIT)
def test_tables_fit(address: str, browser: Any, width: int) -> None:
    resize(browser, width, 800)
    for path in FIT[width]:
        browser.get(address + path)
        assert browser.execute_script(SCROLLING) == [], path
        assert browser.execute_script(BROKEN_WORDS) == [], path


def searched(address: str, browser: Any, words: str, expected: str) -> list[list[str]]:
    """Search for words, wait for a page, and return the links to each page and its sections."""
    from selenium.webdriver.common.by import By  # noqa: PLC0415 - chromium() skips without it
    from selenium.webdriver.support import expected_conditions  # noqa: PLC0415
    from selenium.webdriver.support.ui import WebDriverWait  # noqa: PLC0415

    browser.get(address)
    box = browser.find_element(By.CSS_SELECTOR, ".md-search__input")
    # one search, not one for each key: the page replaces the results of each
    browser.execute_script("arguments[0].value = arguments[1]", box, words[:-1])
    box.send_keys(words[-1])
    page = (By.CSS_SELECTOR, f".md-search-result__link[href*='{expected}']")
    WebDriverWait(browser, 30).until(expected_conditions.presence_of_element_located(page))
    found: list[list[str]] = browser.execute_script(FOUND)
    return found


def test_search_finds_pages_and_names(address: str, browser: Any) -> None:
    resize(browser, 1300, 850)
    for words, expected in (
        ("durability", "safety/"),
        ("open_bdv", "api/xarray/"),
        ("axis order", "axis-order/"),
        ("resize", "zarr/"),
        ("coordinates", "xarray/"),
        ("slow", "performance/"),
        ("s3", "remote/"),
        ("anonymous", "remote/"),
        ("parallel", "safety/"),
        ("corrupt", "validate/"),
        ("fill value", "what-n5-cannot-say/"),
        ("voxel size", "xarray/"),
        ("delete", "zarr/"),
        ("lz4", "support/"),
        ("BigStitcher", "bigstitcher/"),
        ("Paintera", "other-programs/"),
    ):
        found = searched(address, browser, words, expected)
        first = [urlsplit(links[0]).path for links in found[:3]]
        assert f"/{expected}" in first, (words, first)
        assert "/design/" not in first[0], words


def test_search_finds_recipes_by_the_words_of_users(address: str, browser: Any) -> None:
    resize(browser, 1300, 850)
    for words, recipe in (
        ("SLURM", "slurm"),
        ("TIFF stack", "tiff-stack-to-n5"),
        ("tiff bigstitcher", "tiff-stack-to-n5-for-bigstitcher"),
        ("bucket", "bucket"),
        ("voxel size", "voxel-size"),
        ("pixel size", "pixel-size"),
        ("wrong axis order", "axis-order-is-wrong"),
        ("x and y swapped", "x-and-y-are-swapped"),
        ("out of memory", "out-of-memory"),
        ("MemoryError", "out-of-memory"),
        ("disk full", "disk-full"),
        ("quota exceeded", "disk-full"),
        ("lost blocks", "lost-blocks"),
        ("Fiji", "fiji"),
        ("napari", "napari"),
        ("torch", "torch"),
        ("crop online", "crop-of-a-dataset-online"),
        ("copy original", "a-copy-with-its-original"),
        ("max projection", "a-maximum-projection"),
        ("colleague", "a-colleague"),
        ("crop subvolume", "crop-cut-out"),
        ("upload s3", "upload-a-container"),
        ("recompress smaller", "recompress"),
        ("too many files quota", "too-many-files"),
        ("restore from backup", "from-a-backup"),
        ("resume killed job", "resume-a-conversion"),
        ("overlapping tiles", "overlapping-tiles"),
        ("size on disk", "how-big"),
        ("bigstitcher dataset.xml python", "datasetxml-in-python"),
    ):
        found = searched(address, browser, words, "cookbook/")
        listed = [links for links in found[:4] if "/cookbook/" in links[0]]
        assert listed, (words, found)
        sections = [urlsplit(link).fragment for link in listed[0][:4]]
        assert any(recipe in section for section in sections), (words, sections)


def test_search_answers_questions_in_the_first_two(address: str, browser: Any) -> None:
    """Words of readers who are new to N5 find the page that answers them."""
    resize(browser, 1300, 850)
    for words, expected in (
        ("split tiles", "bigstitcher/"),
        ("bigstitcher xml", "bigstitcher/"),
        ("compare N5 with OME-Zarr", "cookbook/"),
        ("crops of several channels", "machine-learning/"),
        ("append a time point", "cookbook/"),
        ("no space left on device", "cookbook/"),
        ("hdf5 to n5", "cookbook/"),
        ("transposed", "axis-order/"),
        ("F order", "axis-order/"),
        ("missing chunk", "blocks/"),
        ("NaN", "blocks/"),
        ("big endian", "blocks/"),
        ("truncated", "blocks/"),
        ("dask", "xarray/"),
        ("offset", "xarray/"),
        ("resolution", "xarray/"),
        ("label", "label-multisets/"),
        ("convert without copying", "virtual/"),
        ("anon", "remote/"),
        ("NoCredentialsError", "remote/"),
        ("timeout", "remote/"),
        ("module zarr has no attribute N5Store", "migration/zarr-2/"),
        ("z5py", "migration/z5py/"),
        ("tensorstore n5 driver", "migration/tensorstore/"),
        ("untrusted data", "safety/"),
        ("multiple processes writing", "safety/"),
        ("file lock", "safety/"),
        ("wrong numbers z5py", "suites/"),
        ("which viewers", "support/"),
        ("unsupported compression", "support/"),
        ("downsample", "pyramids/"),
        ("rename dataset", "zarr/"),
    ):
        found = searched(address, browser, words, expected)
        first = [urlsplit(links[0]).path for links in found[:2]]
        assert f"/{expected}" in first, (words, first)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_those_of_the_system(address: str, browser: Any, *, dark: bool) -> None:
    resize(browser, 1300, 850, dark=dark)
    browser.get(address)
    colour = "return getComputedStyle(document.body).backgroundColor"
    red = int(re.findall(r"\d+", browser.execute_script(colour))[0])
    assert (red < 100) == dark
