"""The site builds without a warning, needs no other host, and has every page and public name."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
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
from tests.remote.servers import static
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
    "", "cookbook/", "cheat-sheet/", "gallery/", "support/", "performance/", "migration/zarr-2/",
    "api/containers/", "notebooks/01-open-n5/", "notebooks/06-a-bigstitcher-project/",
)  # fmt: skip
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
        "", "cookbook/", "cheat-sheet/", "support/", "other-programs/", "errors/", "convert/",
        "pyramids/",
    ),
    1280: ("performance/", "design/results/"),
}  # fmt: skip
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


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with static(site) as url:
        yield f"{url}/"


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


DISK_FULL = "no space left on device"  # says the system
# what is searched for, by the page that is among the first three results, or two
FIRST = {
    3: {
        "safety/": ["durability", "parallel"],
        "api/xarray/": ["open_bdv"],
        "axis-order/": ["axis order"],
        "zarr/": ["resize", "delete"],
        "xarray/": ["coordinates", "voxel size"],
        "performance/": ["slow"],
        "remote/": ["s3", "anonymous"],
        "validate/": ["corrupt"],
        "what-n5-cannot-say/": ["fill value"],
        "support/": ["lz4"],
        "bigstitcher/": ["BigStitcher"],
        "other-programs/": ["Paintera"],
    },
    2: {  # questions of readers who are new to N5
        "bigstitcher/": ["split tiles", "bigstitcher xml"],
        "cookbook/": ["compare N5 with OME-Zarr", "append a time point", "hdf5 to n5", DISK_FULL],
        "machine-learning/": ["crops of several channels"],
        "axis-order/": ["transposed", "F order"],
        "blocks/": ["missing chunk", "NaN", "big endian", "truncated"],
        "xarray/": ["dask", "offset", "resolution"],
        "label-multisets/": ["label"],
        "virtual/": ["convert without copying"],
        "remote/": ["anon", "NoCredentialsError", "timeout"],
        "migration/zarr-2/": ["module zarr has no attribute N5Store"],
        "migration/z5py/": ["z5py"],
        "migration/tensorstore/": ["tensorstore n5 driver"],
        "safety/": ["untrusted data", "multiple processes writing", "file lock"],
        "suites/": ["wrong numbers z5py"],
        "support/": ["which viewers", "unsupported compression"],
        "pyramids/": ["downsample"],
        "zarr/": ["rename dataset"],
    },
}
SEARCHES = [
    (n, page, words)
    for n, pages in FIRST.items()
    for page, searches in pages.items()
    for words in searches
]
# the same, by a part of the address of a recipe
RECIPES = {
    "slurm": ["SLURM"],
    "tiff-stack-to-n5": ["TIFF stack"],
    "tiff-stack-to-n5-for-bigstitcher": ["tiff bigstitcher"],
    "bucket": ["bucket"],
    "voxel-size": ["voxel size"],
    "pixel-size": ["pixel size"],
    "axis-order-is-wrong": ["wrong axis order"],
    "x-and-y-are-swapped": ["x and y swapped"],
    "out-of-memory": ["out of memory", "MemoryError"],
    "disk-full": ["disk full", "quota exceeded"],
    "lost-blocks": ["lost blocks"],
    "fiji": ["Fiji"],
    "napari": ["napari"],
    "torch": ["torch"],
    "crop-of-a-dataset-online": ["crop online"],
    "a-copy-with-its-original": ["copy original"],
    "a-maximum-projection": ["max projection"],
    "a-colleague": ["colleague"],
    "crop-cut-out": ["crop subvolume"],
    "upload-a-container": ["upload s3"],
    "recompress": ["recompress smaller"],
    "too-many-files": ["too many files quota"],
    "from-a-backup": ["restore from backup"],
    "resume-a-conversion": ["resume killed job"],
    "overlapping-tiles": ["overlapping tiles"],
    "how-big": ["size on disk"],
    "datasetxml-in-python": ["bigstitcher dataset.xml python"],
}


@pytest.mark.parametrize(("n", "page", "words"), SEARCHES)
def test_search_finds_pages(address: str, browser: Any, n: int, page: str, words: str) -> None:
    resize(browser, 1300, 850)
    first = [urlsplit(links[0]).path for links in searched(address, browser, words, page)[:n]]
    assert f"/{page}" in first, first
    assert n == 2 or "/design/" not in first[0]


@pytest.mark.parametrize(
    ("recipe", "words"), [(recipe, each) for recipe, words in RECIPES.items() for each in words]
)
def test_search_finds_recipes_by_the_words_of_users(
    address: str, browser: Any, recipe: str, words: str
) -> None:
    resize(browser, 1300, 850)
    found = searched(address, browser, words, "cookbook/")
    listed = [links for links in found[:4] if "/cookbook/" in links[0]]
    assert listed, found
    sections = [urlsplit(link).fragment for link in listed[0][:4]]
    assert any(recipe in section for section in sections), sections


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_those_of_the_system(address: str, browser: Any, *, dark: bool) -> None:
    resize(browser, 1300, 850, dark=dark)
    browser.get(address)
    colour = "return getComputedStyle(document.body).backgroundColor"
    red = int(re.findall(r"\d+", browser.execute_script(colour))[0])
    assert (red < 100) == dark
