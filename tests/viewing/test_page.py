"""Pages of the server, and links to Neuroglancer, are right without a browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, override
from urllib.parse import quote, unquote

import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from n5zarr.images.find import find_images
from n5zarr.viewing.neuroglancer import neuroglancer_state
from tests.contract.bigstitcher import write_dataset
from tests.remote.servers import static
from tests.viewing.volumes import SHAPE, volume, write_volumes

JAVA = Path(__file__).parents[1] / "data/java"


class Reader(HTMLParser):
    """A parser that collects the links, the code and the names of attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.code: list[str] = []
        self.attributes: set[str] = set()
        self._in_code = False
        self.feed(page)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href" and value]
        self._in_code = tag == "pre"

    @override
    def handle_data(self, data: str) -> None:
        if self._in_code:
            self.code.append(data)
        self._in_code = False


def get(url: str) -> tuple[int, str, Any]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as err:
        with err:
            return err.code, err.read().decode(), err.headers


@pytest.mark.filterwarnings("ignore:Endian.big is deprecated:DeprecationWarning")  # of zarr-n5
def test_the_code_on_the_pages_runs(tmp_path: Path) -> None:
    root = write_volumes(tmp_path / "boxes.n5")
    (root / "em").rename(root / "a b%20c'\"#")
    data = volume()
    with n5zarr.serve(root) as server:
        pages = [get(f"{server.url}{at}")[1] for at in ("", "tree/a%20b%2520c'%22%23/s0")]
        codes = [code for page in pages for code in Reader(page).code]
        assert len(codes) == 12
        for code in codes:
            found: dict[str, Any] = {}
            exec(compile(code, "page", "exec"), found)  # noqa: S102 - our own page
            array = found.get("array")
            if array is not None and array.shape == SHAPE and array.dtype.name == "uint16":
                assert np.array_equal(np.asarray(array[...]), data)
            if "dataset" in found:
                (variable,) = found["dataset"].data_vars.values()
                assert np.array_equal(variable.values, data)
            if "group" in found:  # the server does not list
                assert found["group"]["cells/seg"].shape == SHAPE


@pytest.mark.parametrize(
    ("container", "paths", "names"),
    [("tree.n5", ["", "tree/a/b"], [{"zarr", "n5zarr"}, {"zarr"}]),
     ("no-root-attrs.n5", [""], [{"zarr"}]),
     ("strings.n5", ["tree/simple"], [{"zarr", "xarray", "n5zarr"}])],
)  # fmt: skip
def test_code_is_shown_where_it_can_run(
    container: str, paths: list[str], names: list[set[str]]
) -> None:
    with n5zarr.serve(JAVA / container) as server:
        pages = [Reader(get(server.url + path)[1]) for path in paths]
        codes = [[code for code in page.code if "/ome/" not in code] for page in pages]
        found = [{re.findall("^import ([a-z0-9]+)", each)[0] for each in own} for own in codes]
        assert found == names
        for code in (each for own in codes for each in own):
            exec(compile(code, "page", "exec"), {})  # noqa: S102 - our own page


def test_names_and_errors_are_escaped_and_nothing_foreign_may_run(tmp_path: Path) -> None:
    name = "<script>alert(1)<"
    root = write_volumes(tmp_path / "boxes.n5")
    (root / "em").rename(root / name)
    (root / "broken").mkdir()
    document = '{"dimensions": [3], "blockSize": [3], "dataType": "<script>x", "compression": {}}'
    (root / "broken" / "attributes.json").write_text(document)
    with n5zarr.serve(root) as server:
        places = ("", "tree/%3Cscript%3E", "tree/broken", "view?dataset=%3Cscript%3E")
        pages = [get(server.url + at) for at in places]
    assert [status for status, _, _ in pages] == [200, 404, 500, 404]
    for _, page, headers in pages:
        assert page.count("<script") == 1
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_names_units_and_attributes_of_a_dataset_are_escaped(tmp_path: Path) -> None:
    script = "<script>alert(1)</script>"
    root = write_volumes(tmp_path / f"{script[:8]}.n5")
    path = f"\" onclick='x' {script.replace('/', '')}"
    (root / "em").rename(root / path)
    file = root / path / "s0" / "attributes.json"
    document = json.loads(file.read_text())
    units = [script, f'" onload="{script}', "nm"]
    document["transform"] |= {"units": units, "axes": [script, "b", "c"]}
    document["compression"]["note"] = script
    document[script] = {script: script}
    file.write_text(json.dumps(document))
    with n5zarr.serve(root) as server:
        places = ("", f"tree/{quote(path)}", f"tree/{quote(path)}/s0")
        pages = [get(server.url + at) for at in places]
    assert [status for status, _, _ in pages] == [200] * 3
    for _, page, _ in pages:
        assert page.count("<script") == 1
        assert not {name for name in Reader(page).attributes if name.startswith("on")}
    assert script in html.unescape(pages[-1][1])


@pytest.mark.skipif(sys.platform != "linux", reason="names are text")
def test_a_name_that_is_no_text_stops_no_page(tmp_path: Path) -> None:
    root = write_volumes(tmp_path / "boxes.n5")
    shutil.copytree(root / "em", root / "half\udc80")
    with n5zarr.view(root) as shown:
        url = shown.server.url
        (start, page, _), view = get(url), get(shown.url)
        assert (start, view[0]) == (200, 200)
        assert "half" not in page
        assert [link for link in Reader(page).links if link == f"{url}tree/em"]


def test_large_groups_have_several_pages(tmp_path: Path) -> None:
    root = tmp_path / "many.n5"
    root.mkdir()
    (root / "attributes.json").write_text('{"n5":"4.0.0"}')
    for number in range(97):
        (root / f"n{number:02}").mkdir()
    seen: list[str] = []
    with n5zarr.serve(root) as server:
        url, n_pages = server.url, 0
        while url and n_pages < 97:
            links = Reader(get(url)[1]).links
            seen += [link for link in links if re.search("/tree/n[0-9]+$", link)]
            after = [link for link in links if "skip=" in link]
            url, n_pages = (after[0] if after else ""), n_pages + 1
    assert [link.rpartition("/")[2] for link in seen] == [f"n{i:02}" for i in range(97)]
    assert n_pages > 1


def test_the_way_to_the_viewer_leads_to_the_chosen_images(tmp_path: Path) -> None:
    root = write_volumes(tmp_path / "boxes.n5")
    with n5zarr.view(root, dataset=["em/s1", "cells"], labels="cells/*") as shown:
        page, state = way_to_viewer(shown.url)
        status, text, headers = get(page)
        sources = [layer["source"].removesuffix("|zarr3:") for layer in state["layers"]]
        documents = [json.loads(get(f"{source}zarr.json")[1]) for source in sources]
    assert status == 200
    assert 'src="main' in text
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert [(layer["type"], layer["name"]) for layer in state["layers"]] == [
        ("image", "em"), ("segmentation", "seg"),
    ]  # fmt: skip
    assert all("multiscales" in document["attributes"]["ome"] for document in documents)


def way_to_viewer(url: str) -> tuple[str, Any]:
    """Return the page to which an address redirects, and the state for Neuroglancer."""
    with pytest.raises(urllib.error.HTTPError) as redirect:
        urllib.request.build_opener(NoRedirect).open(url)
    redirect.value.close()
    page, _, fragment = redirect.value.headers["Location"].partition("#!")
    return page, json.loads(unquote(fragment))


class NoRedirect(urllib.request.HTTPRedirectHandler):
    @override
    def redirect_request(self, *_: Any) -> None:
        return None


def state_of(location: Any, **options: Any) -> Any:
    """Return the state of Neuroglancer for the images of a location."""
    return neuroglancer_state(find_images(location), "http://127.0.0.1:1/ome", **options)


def test_many_images_are_not_all_seen_at_once(tmp_path: Path) -> None:
    root = tmp_path / "tiles.n5"
    document = {"blockSize": [7, 5, 3], "dataType": "uint16", "compression": {"type": "gzip"}}
    for number in range(150):
        data = np.full((3, 5, 7), number + 1, "u2")
        write_dataset(root / f"tile{number:03}", data, document)
    asked = []

    def limits(image: Any, channel: int) -> tuple[float, float]:
        asked.append((image.path, channel))
        return 3.5, 1000.25

    state = state_of(root, limits=limits)
    seen = [layer["name"] for layer in state["layers"] if layer.get("visible", True)]
    assert seen == ["tile000", "tile001", "tile002", "tile003"]
    assert asked == [(name, 0) for name in seen]  # no other data are read
    assert len(state["layers"]) == 100
    assert sum("archived" not in layer for layer in state["layers"]) == 12
    # rounded outwards to integers
    assert state["layers"][-1]["shaderControls"] == {"normalized": {"range": [3, 1001]}}


def test_of_a_project_all_tiles_of_the_first_channel_are_seen() -> None:
    asked = []

    def limits(image: Any, channel: int) -> tuple[float, float]:
        asked.append((image.name, channel))
        return {"GFP top left": (9, 300), "GFP bottom right": (7, 200)}.get(image.name, (8, 250))

    state = state_of(n5zarr.sample_path("bigstitcher"), limits=limits)
    tiles = ["top left", "top right", "bottom left", "bottom right"]
    names = [f"{channel} {tile}" for channel in ("GFP", "RFP") for tile in tiles]
    assert [layer["name"] for layer in state["layers"]] == names
    assert [layer.get("visible", True) for layer in state["layers"]] == [True] * 4 + [False] * 4
    assert asked == [(name, 0) for name in names[:4]]
    colors = [layer["shaderControls"]["color"] for layer in state["layers"]]
    assert colors == ["#00FF00"] * 4 + ["#FF00FF"] * 4
    assert {layer["blend"] for layer in state["layers"]} == {"additive"}
    # tiles look alike: the widest limits
    ranges = [layer["shaderControls"]["normalized"] for layer in state["layers"]]
    assert ranges == [{"range": [7, 300]}] * 8
    place = dict(zip(state["dimensions"], state["position"], strict=True))
    # the tiles of 61 x 53 x 11 begin at (0, 0, 0), (45, 3, 0), (3, 38, 1) and (51, 42, -1)
    assert place == {"x": 56, "y": 47, "z": 5, "t": 0}


def test_an_image_over_the_first_has_a_colour(tmp_path: Path) -> None:
    """White on white, as of a prediction over its image, shows neither; one beside it does."""
    root, data = tmp_path / "a.n5", np.ones((3, 5, 7), "f4")
    places: dict[str, Any] = {"axes": "zyx", "units": ["nm"] * 3, "resolution": [2, 1, 1]}
    offsets = {"a": (0, 0, 0), "beside": (0, 0, 7), "over": (4, 4, 6.0), "twice": (0, 0, 0)}
    for name, offset in offsets.items():
        n5zarr.create_array(root, path=name, data=data, offset=offset, **places)
    colours = np.ones((2, 3, 5, 7), "f4")
    n5zarr.create_array(root, path="zwei", data=colours, axes="czyx")

    def colours_of_layers() -> dict[str, Any]:
        layers = state_of(root, show_all=True)["layers"]
        return {layer["name"]: layer["shaderControls"].get("color") for layer in layers}

    found = colours_of_layers()
    n5zarr.create_array(root, path="raw", data=data.astype("u1"), **places)
    over_raw = colours_of_layers()
    assert (over_raw["a"], over_raw["raw"]) == ("#00FF00", None)
    own = [found.pop(f"zwei channel {number}") for number in (0, 1)]
    assert found == {"a": None, "beside": None, "over": "#00FF00", "twice": "#FF00FF"}
    assert len({*own}) == 2


def test_of_a_large_project_one_time_point_is_seen_and_few_tiles_are_read(tmp_path: Path) -> None:
    """The setups move, so each time point is an image."""
    moves = {
        (setup, time): np.array([[1, 0, 0, 5.0 * setup + time], [0, 1, 0, 0], [0, 0, 1, 0]])
        for setup in range(14)
        for time in (3, 4)
    }
    setups = {
        setup: {"name": f"s{setup:02}", "channel": "ba"[setup % 2], "tile": f"{setup // 2}"}
        for setup in range(14)
    }
    views = {view: np.ones((3, 5, 7), "u2") for view in moves}
    n5zarr.write_bdv(views, tmp_path / "a.xml", setups=setups, registrations=moves, levels=0)
    asked = []

    def limits(image: Any, channel: int) -> tuple[float, float]:
        asked.append(image.path)
        return 3, 8

    state = state_of(tmp_path / "a.xml", limits=limits)
    seen = [layer["name"] for layer in state["layers"] if layer.get("visible", True)]
    assert seen == [f"s{setup:02}, time point 3" for setup in range(0, 14, 2)]  # channel b
    assert state["layers"][7]["name"] == "s01, time point 3"
    assert [layer["shaderControls"]["color"] for layer in state["layers"][6:8]] == [
        "#00FF00", "#FF00FF",
    ]  # fmt: skip
    assert asked == [f"s{setup:02}/timepoint3" for setup in (0, 4, 8, 12)]
    assert len(state["layers"]) == 28
    shown = state_of(tmp_path / "a.xml", show_all=True, limits=limits)
    assert all(layer.get("visible", True) for layer in shown["layers"])


def test_data_that_cannot_be_shown_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "float.n5"
    document = {"blockSize": [7, 5, 3], "dataType": "float64", "compression": {"type": "gzip"}}
    write_dataset(root / "heights", np.ones((3, 5, 7)), document)
    said = r"float\.n5: Neuroglancer: .* got only float64"
    with pytest.raises(N5UnrepresentableError, match=said):
        n5zarr.view(root)
    with pytest.raises(N5UnrepresentableError, match=r"'nothing': .* there are heights"):
        n5zarr.view(root, dataset="nothing")


def test_links_to_each_other_hide_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "v.n5"
    write_volumes(path)
    (path / "loop").symlink_to("loop")
    with n5zarr.serve(path) as server:
        status, page, _ = get(server.url)
        assert (status, "em" in page, "loop" in page) == (200, True, False)
        assert get(f"{server.url}tree/{'x' * 300}")[0] == 404
        assert "to the start page" in get(f"{server.url}tree/{'x' * 300}")[1]
        assert get(f"{server.url}tree/%2e%2e/secret")[0] == 404


def test_hidden_nodes_are_on_no_page(tmp_path: Path) -> None:
    path = write_volumes(tmp_path / "v.n5")
    for hidden in (".trash", "em/.old"):
        shutil.copytree(path / "em/s1", path / hidden / "s0")
    with n5zarr.serve(path) as server:
        for at in ("", "tree/em"):
            status, page, _ = get(server.url + at)
            assert (status, "s1" in page) == (200, True)
            assert ".trash" not in page
            assert ".old" not in page
        assert get(f"{server.url}tree/.trash/s0")[0] == 404
        assert ".trash" not in str(way_to_viewer(f"{server.url}view"))


def test_groups_are_shown_where_a_server_does_not_list() -> None:
    with static(Path(n5zarr.sample_path()), lists=False) as url, n5zarr.serve(url) as server:
        for at in ("", "tree/em"):
            status, page, _ = get(server.url + at)
            assert (status, "does not list" in page, "zarr3" in page) == (200, True, True)
        status, page, _ = get(f"{server.url}tree/em/s0")
        assert (status, "(40, 96, 128)" in page) == (200, True)


def test_an_image_of_too_many_blocks_has_no_picture(tmp_path: Path) -> None:
    """Drawing it would take hours."""
    path = tmp_path / "v.n5"
    write_volumes(path)
    (path / "huge").mkdir()
    huge = {"dimensions": [10**7, 10**7, 7], "blockSize": [64, 64, 64], "dataType": "uint8"}
    document = json.dumps(huge | {"compression": {"type": "raw"}})
    (path / "huge" / "attributes.json").write_text(document)
    with n5zarr.serve(path) as server:
        assert get(f"{server.url}thumbnail/huge.png")[0] == 404


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dataset": [5]}, r"dataset: expected a text or a sequence of texts, got \[5\]"),
        ({"labels": 5}, "labels: expected a text or a sequence of texts, got 5"),
        ({"allow_hosts": 5}, "allow_hosts: expected a text or a sequence of texts, got 5"),
        ({"host": 5}, "host: expected an address such as '127.0.0.1', got 5"),
        ({"port": 70000}, "port: expected a whole number from 0 to 65535, got 70000"),
        ({"port": "80"}, "port: expected a whole number from 0 to 65535, got '80'"),
        ({"height": '1" onload="'}, "height: expected a whole number of at least 1, got "),
    ],
)
def test_a_wrong_argument_of_a_view_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(N5UnrepresentableError, match=said) as raised:
        n5zarr.view(n5zarr.sample_path(), **given)
    assert raised.value.kind == "option"


def test_each_channel_is_a_layer_and_a_view_is_in_the_middle(tmp_path: Path) -> None:
    """Channels are chosen by an axis of the layer; the position is the middle of the image."""
    n5zarr.create_array(
        tmp_path / "c.n5", path="a", data=np.ones((2, 3, 7, 5, 11), "u2"),
        axes=["t", "c", "z", "y", "x"],
    )  # fmt: skip
    state = state_of(tmp_path / "c.n5")
    names = [layer["name"] for layer in state["layers"]]
    assert names == ["a channel 0", "a channel 1", "a channel 2"]
    assert [layer["localPosition"] for layer in state["layers"]] == [[0], [1], [2]]
    assert {str(layer["localDimensions"]) for layer in state["layers"]} == {"{\"c'\": [1, '']}"}
    assert "c" not in state["dimensions"]
    place = dict(zip(state["dimensions"], state["position"], strict=True))
    # positions of corners begin half an element before the first one; of t the first
    assert place == {"x": 5, "y": 2, "z": 3, "t": 0}


def test_images_that_are_far_apart_are_looked_at_one_first(tmp_path: Path) -> None:
    """The middle of both is in neither."""
    for name, offset in (("a", 0), ("b", 900)):
        n5zarr.create_array(
            tmp_path / "c.n5", path=name, data=np.ones((7, 5, 11), "u2"), axes=["z", "y", "x"],
            units=["nm"] * 3, resolution=[2, 2, 2], offset=[offset, offset, offset],
        )  # fmt: skip
    state = state_of(tmp_path / "c.n5")
    place = dict(zip(state["dimensions"], state["position"], strict=True))
    assert place == {"x": 5, "y": 2, "z": 3}


def test_views_and_servers_say_where_they_are(tmp_path: Path) -> None:
    """In a notebook, a view is a frame with Neuroglancer."""
    root = write_volumes(tmp_path / "boxes.n5")
    with n5zarr.view(root, dataset="em", height=345) as shown:
        address = shown.server.url
        assert repr(shown) == f"<NeuroglancerView {shown.url}>"
        assert repr(shown.server) == f"<Server {address}>"
        frame = Reader(shown._repr_html_())
        assert {"src", "height"} <= frame.attributes
        assert 'height="345"' in shown._repr_html_()
        assert html.escape(shown.url) in shown._repr_html_()
    assert repr(shown.server) == f"<Server {address}, closed>"


def test_a_picture_that_cannot_be_made_is_missing(tmp_path: Path) -> None:
    """The page of an image with a damaged block is shown without it."""
    for name in ("a", "b"):
        n5zarr.create_array(tmp_path / "c.n5", path=name, data=np.ones((7, 5), "u2"))
    (tmp_path / "c.n5/a/0/0").write_bytes(b"damaged")
    with n5zarr.serve(tmp_path / "c.n5") as server:
        status, page, _ = get(f"{server.url}tree/a")
        assert status == 200
        assert "thumbnail/a.png" in page
        assert get(f"{server.url}thumbnail/a.png")[0] == 404
        with urllib.request.urlopen(f"{server.url}thumbnail/b.png", timeout=30) as answer:  # noqa: S310 - our own
            assert answer.headers["Content-Type"] == "image/png"
