"""Each way of opening a location sends few requests to find the kind of its content.

The locations are those whose format no name tells: N5 without ``.n5``, Zarr with and without its
suffix, and BigDataViewer's XML. ``test_requests.py`` has those of containers with ``.n5``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import n5zarr
from n5zarr.viewing.arguments import is_n5
from tests.contract import bigstitcher
from tests.remote import servers
from tests.remote.conftest import chosen_options, put
from tests.remote.test_requests import TABLE as REQUESTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ways")
    for name in ("a.n5", "plain"):
        n5zarr.convert(f"{n5zarr.sample_path()}/em", folder / name / "em", to="n5")
    for name, form in (("a.zarr", "zarr"), ("b.zarr", "zarr2"), ("bare", "zarr")):
        n5zarr.convert(folder / "a.n5", folder / name, to=form)  # type: ignore[arg-type]
    bigstitcher.write_project(folder, (0, 1))
    return folder


@dataclass
class Way:
    """A folder on a server whose requests are counted."""

    proxy: servers.Proxy
    url: str
    local: Path
    options: dict[str, Any]

    def requests(self, call: Callable[[], object]) -> list[str]:
        call()  # the client connects
        self.proxy.requests.clear()
        call()
        return [" ".join(request) for request in self.proxy.requests]


@pytest.fixture(scope="module", params=["s3", "http"])
def way(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Way]:
    local = tmp_path_factory.mktemp("out")
    if request.param == "http":
        with servers.static(folder) as url, servers.Proxy(url).running() as proxy:
            yield Way(proxy, proxy.url, local, {})
        return
    server = request.getfixturevalue("s3_server")
    files = [path for path in folder.rglob("*") if path.is_file()]
    put(server, "ways", {file.relative_to(folder).as_posix(): file.read_bytes() for file in files})
    with servers.Proxy(server).running() as proxy:
        yield Way(proxy, "s3://ways", local, {"storage_options": chosen_options(proxy.url)})


def convert(way: Way, path: str) -> None:
    to = "o.n5" if "zarr" in path or "bare" in path else "o.zarr"
    n5zarr.convert(f"{way.url}/{path}", way.local / to, dry_run=True, **way.options)


CALLS: dict[str, Callable[[Any, str], object]] = {
    "convert": convert,
    **{
        name: lambda w, path, call=call: call(w, f"{w.url}/{path}")  # type: ignore[misc]
        for name, (call, _) in REQUESTS.items()
    },
    "open_bdv": lambda w, path: n5zarr.open_bdv(f"{w.url}/{path}", **w.options),
    "is_n5": lambda w, path: is_n5(f"{w.url}/{path}", **w.options),
    "compare": lambda w, path: n5zarr.compare(
        f"{w.url}/{path}", f"{w.url}/{path}", values=False, **w.options
    ),
}
# requests to S3, to a web server
TABLE: dict[tuple[str, str], tuple[int, int]] = {
    ("convert", "a.n5/em/s0"): (1, 1),
    ("convert", "plain/em/s0"): (3, 3),
    ("convert", "plain/em"): (6, 6),
    ("convert", "a.zarr"): (11, 12),
    ("convert", "a.zarr/em/s0"): (5, 5),
    ("convert", "b.zarr/em/s0"): (6, 6),
    ("convert", "bare/em/s0"): (5, 5),
    ("convert", "dataset.xml"): (39, 39),
    ("open", "a.n5/em/s0"): (1, 1),
    ("open", "a.n5|n5:em/s0"): (1, 1),
    ("open", "plain/em/s0"): (3, 3),
    ("open_dataset", "a.n5/em/s0"): (6, 6),
    ("open_dataset", "plain/em/s0"): (6, 6),
    ("open_datatree", "dataset.xml"): (47, 53),
    ("open_bdv", "dataset.xml"): (47, 53),
    ("open_bdv", "dataset.n5"): (46, 52),
    ("find_images", "plain/em"): (6, 6),
    ("find_images", "dataset.xml"): (40, 46),
    ("thumbnail", "plain/em"): (34, 34),
    ("thumbnail", "a.n5/em"): (34, 34),
    ("thumbnail", "dataset.xml"): (47, 53),
    ("make_app", "plain/em"): (2, 2),
    ("make_app", "dataset.xml"): (2, 2),
    ("describe", "plain/em/s0"): (6, 6),
    ("describe", "dataset.xml"): (6, 6),
    ("is_n5", "plain/em/s0"): (0, 0),
    ("is_n5", "dataset.xml"): (1, 1),
    ("compare", "plain/em/s0"): (6, 6),
    ("compare", "a.zarr/em/s0"): (14, 14),
}


@pytest.mark.each_of(11)
@pytest.mark.parametrize(("name", "path"), TABLE)
def test_no_way_asks_more_often(way: Way, name: str, path: str) -> None:
    asked = way.requests(lambda: CALLS[name](way, path))
    most = TABLE[name, path][way.url.startswith("http")]
    assert min(most, 1) <= len(asked) <= most, asked
