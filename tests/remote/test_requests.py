"""Functions and commands send few requests: each key once, and none that is not needed.

The numbers are those of an object store that lists by prefix. Docs/remote.md has some of them.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest
import xarray as xr
import zarr
from typer.testing import CliRunner

import n5zarr
from n5zarr.cli.app import app
from n5zarr.images.find import find_images
from n5zarr.metadata.inspect import describe, describe_tree
from n5zarr.viewing.serve.app import make_app
from tests.remote import servers
from tests.remote.conftest import chosen_options, obstore_options, upload

URL = "s3://counted/c.n5"


class Counted:
    """A container on a server whose requests are counted.

    ``em`` holds a pyramid with axes, and beside it are ``plain`` (3 x 3 x 2 blocks, no axes), a
    deep group, and one without a document.
    """

    def __init__(self, proxy: servers.Proxy, local: Path) -> None:
        self.proxy, self.local = proxy, local
        self.options: dict[str, Any] = {"storage_options": chosen_options(proxy.url)}

    def of(self, call: Callable[[], object]) -> Counter[str]:
        """Return how often each key was asked for; a listing is the directory or prefix."""
        self.proxy.requests.clear()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "s3://counted/c.n5: em: its datasets do not share")
            call()
        return Counter(self._key(*request) for request in self.proxy.requests)

    def _key(self, method: str, path: str) -> str:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        if "list-type" in query:
            mark = "" if "delimiter" in query else "**"
            return "LIST " + query.get("prefix", [""])[0].removeprefix("c.n5/") + mark
        name = unquote(parts.path).removeprefix("/counted/c.n5/")
        return name if method == "GET" else f"{method} {name}"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("counted") / "c.n5"
    sample: Any = n5zarr.open(n5zarr.sample_path(), path="em")
    for level in range(3):
        made: Any = n5zarr.create_array(
            root,
            path=f"em/s{level}",
            shape=sample[f"s{level}"].shape,
            chunks=(16, 40, 50),
            dtype="u1",
            axes="zyx",
            units=["nm"] * 3,
            resolution=[20.0 * 2**level, 8.0 * 2**level, 8.0 * 2**level],
        )
        made[...] = sample[f"s{level}"][...]
    for path in ("plain", "other", "deep/a/b/f"):
        array: Any = n5zarr.create_array(
            root, path=path, shape=(7, 11, 13), chunks=(5, 5, 5), dtype="u2"
        )
        array[...] = np.arange(7 * 11 * 13).reshape(7, 11, 13) + 1
    (root / "bare" / "g").mkdir(parents=True)
    (root / "bare" / "g" / "attributes.json").write_text("{}")
    return root


@pytest.fixture(scope="module")
def counted(s3_server: str, local: Path) -> Iterator[Counted]:
    upload(s3_server, "counted", local)
    with servers.Proxy(s3_server).running() as proxy:
        found = Counted(proxy, local)
        n5zarr.open(f"{URL}/plain", **found.options)  # the client connects
        yield found


def command(counted: Counted, *arguments: str) -> None:
    options = [f"-o{k}={v}" for k, v in (("key", "a"), ("secret", "b"))]
    run = CliRunner().invoke(app, [*arguments, *options, f"-oendpoint_url={counted.proxy.url}"])
    assert run.exit_code == 0, run.output


# for a dataset without axes, a level, a group of levels, the root: documents and listings
TABLE: dict[str, tuple[Callable[[Counted, str], object], tuple[int | None, ...]]] = {
    "open": (lambda c, url: n5zarr.open(url, **c.options), (1, 1, 1, 1)),
    "attrs": (lambda c, url: command(c, "attrs", url), (1, 1, 1, 1)),
    "tree": (lambda c, url: command(c, "tree", url), (2, 6, 6, 22)),
    "info": (lambda c, url: command(c, "info", url), (3, 7, 6, 10)),
    "describe": (lambda c, url: describe(url, size=False, **c.options), (2, 6, 6, 10)),
    "describe_tree": (lambda c, url: describe_tree(url, size=True, **c.options), (2, 2, 8, 28)),
    "open_dataset": (lambda c, url: xr.open_dataset(url, engine="n5", **c.options), (2, 6, 6, 10)),
    "open_datatree": (
        lambda c, url: xr.open_datatree(url, engine="n5", **c.options),
        (2, 6, 6, 23),
    ),
    "geometry": (lambda c, url: n5zarr.geometry(url, **c.options), (2, 6, 6, None)),
    "pyramid_levels": (lambda c, url: n5zarr.pyramid_levels(url, **c.options), (None, 6, 6, None)),
    "open_level": (lambda c, url: n5zarr.open_level(url, level=1, **c.options), (None, 6, 6, None)),
    "find_images": (lambda c, url: find_images(url, **c.options), (2, 6, 6, 22)),
    "make_app": (lambda c, url: make_app(url, **c.options), (1, 1, 1, 1)),
    "napari": (lambda c, url: n5zarr.napari_layers(url, **c.options), (2, 6, 6, 22)),
    "thumbnail": (lambda c, url: n5zarr.thumbnail(url, **c.options), (2, 6, 6, 22)),
    "statistics": (lambda c, url: n5zarr.block_statistics(url, **c.options), (2, 2, None, None)),
    "rm-empty": (
        lambda c, url: n5zarr.remove_empty_blocks(url, dry_run=True, **c.options),
        (2, 2, 8, 28),
    ),
    "validate": (lambda c, url: n5zarr.validate(url, **c.options), (4, 8, 16, 42)),
}
PLACES = ("plain", "em/s0", "em", "")


def cases_of(number: int, name: str) -> Iterator[Any]:
    """List the places of a call; the short form has one, another for each call."""
    call, counts = TABLE[name]
    cases = [(place, most) for place, most in zip(PLACES, counts, strict=True) if most is not None]
    for k, (place, most) in enumerate(cases):
        marks: Any = [] if k == number % len(cases) else pytest.mark.long
        yield pytest.param(call, place, most, id=f"{name} {place or 'root'}", marks=marks)


CASES = [case for number, name in enumerate(TABLE) for case in cases_of(number, name)]
# the workers of a check read each document again: they may be on other machines
READ_TWICE = {"validate"}


def documents_and_listings(asked: Counter[str]) -> Counter[str]:
    return Counter(
        {k: n for k, n in asked.items() if k.startswith("LIST") or k.endswith("attributes.json")}
    )


@pytest.mark.parametrize(("call", "place", "most"), CASES)
def test_each_key_is_asked_for_once(
    counted: Counted,
    call: Callable[[Counted, str], object],
    place: str,
    most: int,
    request: pytest.FixtureRequest,
) -> None:
    asked = documents_and_listings(counted.of(lambda: call(counted, f"{URL}/{place}".rstrip("/"))))
    assert asked.total() <= most, sorted(asked.elements())
    if not READ_TWICE & set(request.node.callspec.id.split()):
        assert max(asked.values()) == 1, {k: n for k, n in asked.items() if n > 1}


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_blocks_are_listed_together(counted: Counted, backend: Any) -> None:
    options: Any = {"storage_options": obstore_options(counted.proxy.url), "backend": backend}
    options = counted.options if backend == "fsspec" else options
    asked = counted.of(lambda: n5zarr.block_statistics(f"{URL}/em/s0", n_blocks=0, **options))
    assert asked.total() == 2  # the document, and one listing
    for place, n_blocks in (("plain", 18), ("em/s0", 27)):
        found: Any = describe(f"{URL}/{place}", **options)
        files = [p for p in (counted.local / place).rglob("*") if p.is_file()]
        stored = [p for p in files if p.name != "attributes.json"]
        assert found["n_blocks_stored"] == len(stored) == n_blocks
        assert found["n_bytes_stored"] == sum(p.stat().st_size for p in stored)


SELECTED = {
    "plain": ({"attributes.json", "plain/attributes.json"}, ["plain"]),
    "em/s1": ({"attributes.json", "em/attributes.json", "em/s1/attributes.json"}, ["em/s1"]),
    "em/s[12]": (
        {
            "attributes.json",
            "LIST em/",
            *(f"{path}/attributes.json" for path in ("em", "em/s1", "em/s2")),
        },
        ["em/s1", "em/s2"],
    ),
    "deep": (
        {
            "attributes.json",
            *(f"LIST {p}/" for p in ("deep", "deep/a", "deep/a/b")),
            *(f"{p}/attributes.json" for p in ("deep", "deep/a", "deep/a/b", "deep/a/b/f")),
        },
        ["deep/a/b/f"],
    ),
}


@pytest.mark.parametrize("pattern", SELECTED)
def test_a_conversion_reads_only_what_is_selected(
    counted: Counted, tmp_path: Path, pattern: str
) -> None:
    keys, arrays = SELECTED[pattern]
    out = tmp_path / "out.zarr"

    def convert(**options: Any) -> Any:
        return n5zarr.convert(URL, out, select=[pattern], **counted.options, **options)

    asked = documents_and_listings(counted.of(lambda: convert(dry_run=True)))
    assert asked == Counter(keys)
    assert [array.path for array in convert().arrays] == arrays
    for path in arrays:
        np.testing.assert_array_equal(
            zarr.open_array(out, path=path, mode="r")[...],
            n5zarr.open_array(counted.local, path=path)[...],
        )


@pytest.mark.parametrize("options", [{"ome": True}, {"coords": True}, {"exclude": ["em/s0"]}])
def test_other_conversions_of_a_part_read_no_other_part(
    counted: Counted, tmp_path: Path, options: dict[str, Any]
) -> None:
    given = {"select": ["em/s1"], **options, **counted.options}
    asked = counted.of(lambda: n5zarr.convert(URL, tmp_path / "o.zarr", dry_run=True, **given))
    assert max(asked.values()) == 1
    assert not [key for key in asked if "deep/a/" in key or "bare/g" in key]


def test_a_conversion_of_what_is_not_there_says_so(counted: Counted, tmp_path: Path) -> None:
    with pytest.raises(n5zarr.N5Error, match="expected arrays like nothing/here, got none"):
        n5zarr.convert(URL, tmp_path / "o.zarr", select=["nothing/here"], **counted.options)


def test_a_download_reads_only_what_is_selected(counted: Counted, tmp_path: Path) -> None:
    def download(**options: Any) -> Any:
        return n5zarr.download(URL, tmp_path / "c.n5", **options, **counted.options)

    asked = documents_and_listings(counted.of(lambda: download(select="plain")))
    assert asked == Counter(["attributes.json", "plain/attributes.json", "LIST plain/**"])
    asked = documents_and_listings(counted.of(lambda: download(paths=["em/s1"])))
    documents = ["em/s0", "em/s1", "em", "em/z", "em/y", "em/x"]
    wanted = {f"{path}/attributes.json" for path in documents} | {"attributes.json"}
    assert asked == Counter([*wanted, "LIST em/s1/**"])
    with contextlib.suppress(FileNotFoundError):
        n5zarr.open(tmp_path / "c.n5", path="other")
        pytest.fail("a dataset was downloaded that is not selected")


def test_a_comparison_reads_each_document_once(counted: Counted) -> None:
    def compare() -> None:
        assert n5zarr.compare(
            f"{URL}/em", counted.local / "em", values=False, **counted.options
        ).is_equal

    asked = counted.of(compare)
    assert asked == Counter(
        ["LIST em/", "attributes.json", *(f"{p}/attributes.json" for p in ("em", *LEVELS))]
    )


LEVELS = ("em/s0", "em/s1", "em/s2")


def test_stored_coordinates_are_found_beside_a_dataset(counted: Counted, tmp_path: Path) -> None:
    """Stored coordinates are read beside a dataset, and made-up names are not requested."""
    uneven = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("q", "r"), name="v")
    uneven = uneven.assign_coords(q=[0.0, 5.0], r=[0.0, 1.0, 7.0])
    n5zarr.to_n5(uneven.to_dataset(), tmp_path / "u.n5", group="g")
    upload(counted.proxy.url, "uneven", tmp_path / "u.n5")
    found: list[xr.Dataset] = []
    asked = counted.of(
        lambda: found.append(
            xr.open_dataset("s3://uneven/u.n5/g/v", engine="n5", **counted.options)
        )
    )
    assert found[0]["r"].values.tolist() == [0.0, 1.0, 7.0]
    assert not [key for key in asked if "dim_" in key]


def test_the_plan_of_a_change_reads_each_document_and_listing_once(counted: Counted) -> None:
    first = xr.Dataset(
        {"v": (("q", "r"), np.ones((2, 3)))}, {"q": [0.0, 5.0], "r": [0.0, 1.0, 7.0]}
    )
    url, options = "s3://counted/w.n5/changed", counted.options
    n5zarr.to_n5(first, url, **options)
    more = first.assign_coords(q=[10.0, 15.0])
    asked = documents_and_listings(
        counted.of(lambda: n5zarr.to_n5(more, url, append_dim="q", **options))
    )
    # to plan, to open what grows, and twice to change its document
    assert max(asked.values()) <= 4, asked
    part = first.isel(q=[0]).drop_vars(["q", "r"])
    region = {"q": slice(0, 1)}
    asked = documents_and_listings(
        counted.of(lambda: n5zarr.to_n5(part, url, region=region, **options))
    )
    assert max(asked.values()) <= 3, asked
    assert sum(n for key, n in asked.items() if key.startswith("LIST")) == 1
