"""HTML of arrays and groups has descriptions and pictures, and never raises an error."""

from __future__ import annotations

import base64
import io
import re
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import zarr
from PIL import Image as Pillow
from zarr.storage import LocalStore

import n5zarr
from tests.unit.images.test_images import Recording

SAMPLE = Path(n5zarr.sample_path())
JAVA = Path(__file__).parents[1] / "data/java"


class Parser(HTMLParser):
    """A parser that collects text and pictures, and checks that all tags are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.pictures: list[bytes] = []
        self.tags: set[str] = set()
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            source = dict(attrs)["src"] or ""
            self.pictures.append(base64.b64decode(source.removeprefix("data:image/png;base64,")))
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def shown(node: Any) -> Parser:
    return Parser(node._repr_html_())


def test_an_array_is_shown_in_terms_of_n5_with_its_picture() -> None:
    found = shown(n5zarr.open(SAMPLE, path="em/s0"))
    shapes = ("(40, 96, 128) z, y, x", "[128, 96, 40]", "[50, 40, 16]")
    for text in (*shapes, "uint8", "27, 27 stored"):
        assert text in found.text
    assert re.search(r"x 8 nm, y 8 nm, z 20 nm", found.text)
    with Pillow.open(io.BytesIO(found.pictures[0])) as picture:
        assert picture.width == 256


def test_a_group_lists_what_is_below_it() -> None:
    found = shown(n5zarr.open(SAMPLE))
    assert re.findall(r"^(?:em|labels|s\d)$", found.text, re.MULTILINE) == [
        "em", "s0", "s1", "s2", "labels", "s0", "em",  # the last one is the caption of the picture
    ]  # fmt: skip
    assert "(10, 24, 32) z, y, x, uint8, gzip" in found.text
    assert len(found.pictures) == 1


def test_names_are_escaped(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>&amp;"
    n5zarr.create_array(
        tmp_path / "c.n5", path=f"{name.replace('/', '')}/a", shape=(3, 5), dtype="u1"
    )
    found = shown(n5zarr.open(tmp_path / "c.n5"))
    assert found.tags <= {"div", "table", "tr", "td", "b", "img"}
    assert name.replace("/", "") in found.text


@pytest.mark.parametrize("path", ["strings.n5", "tree.n5/nulls", "varlen.n5"])
def test_a_group_without_images_has_no_picture(path: str) -> None:
    found = shown(n5zarr.open(JAVA / path))
    assert found.pictures == []
    assert "N5Group" in found.text


def test_damaged_blocks_and_missing_packages_leave_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array: Any = n5zarr.create_array(tmp_path / "c.n5/a", shape=(5, 7, 3), dtype="u1")
    array[...] = 3
    assert len(shown(array).pictures) == 1
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert shown(array).pictures == []
    monkeypatch.undo()
    for block in (tmp_path / "c.n5/a").rglob("0"):
        if block.is_file():
            block.write_bytes(b"damaged")
    found = shown(array)
    assert found.pictures == []
    assert "(5, 7, 3)" in found.text


def test_a_node_that_is_gone_is_shown_as_text(tmp_path: Path) -> None:
    array = n5zarr.create_array(tmp_path / "c.n5/a", shape=(5, 7, 3), dtype="u1")
    (tmp_path / "c.n5/a/attributes.json").write_text("{")
    text = array._repr_html_()  # type: ignore[attr-defined]
    assert text.startswith("<pre>&lt;N5Array ")


def test_little_is_read_of_what_is_large(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """HTML of a group on a server reads little of 2000 arrays, and of one of 10**6 blocks."""
    array: Any = n5zarr.create_array(
        tmp_path / "c.n5/large/s0", shape=(10**4,) * 3, chunks=(100,) * 3, dtype="u2"
    )
    array[5000:5001, :200, :200] = 3
    for i in range(2000):
        folder = tmp_path / f"c.n5/many/a{i}"
        folder.mkdir(parents=True)
        (folder / "attributes.json").write_bytes(
            b'{"dimensions":[3,5],"blockSize":[3,5],"dataType":"uint8","compression":{"type":"raw"}}'
        )
    for place in ("", "large", "large/s0", "many"):
        caplog.clear()
        with caplog.at_level("DEBUG", "n5zarr.storage.requests"):
            local = shown(n5zarr.open(tmp_path / "c.n5", path=place))
        assert 0 < len(caplog.records) < 600  # a batch of documents, and a few
        assert local.pictures == []
        server = Recording(LocalStore(tmp_path / "c.n5", read_only=True))
        remote = shown(n5zarr.open(server, path=place))
        assert len(server.blocks) <= 8
        assert len(remote.text) < 3000


def test_a_picture_of_a_server_is_read_from_a_few_blocks() -> None:
    server = Recording(LocalStore(SAMPLE, read_only=True))
    found = shown(n5zarr.open(server, path="em/s2"))
    assert len(found.pictures) == 1
    assert set(server.blocks) == {"em/s2/0/0/0"}
    server.blocks.clear()
    # s0 would fit, but has 19 blocks in the slices
    assert len(shown(n5zarr.open(server, path="em")).pictures) == 1
    assert set(server.blocks) == {"em/s2/0/0/0"}
    server.blocks.clear()
    assert shown(n5zarr.open(server, path="labels/s0")).pictures == []
    assert server.blocks == []


def test_arrays_that_zarr_opens_are_left_alone() -> None:
    for path in ("", "em/s0"):
        assert not hasattr(zarr.open(n5zarr.N5Store(SAMPLE), path=path), "_repr_html_")


def test_where_axes_are_arrays_the_text_is_shown() -> None:
    store = n5zarr.N5Store(SAMPLE, coords=True, read_only=True)
    text = n5zarr.open(store, path="em/s0")._repr_html_()  # type: ignore[union-attr]
    assert text.startswith("<pre>")


def test_a_long_list_of_groups_has_no_picture(tmp_path: Path) -> None:
    """It is cut before any image; the one after it is not searched for."""
    for number in range(90):
        (tmp_path / "c.n5" / f"g{number:02}").mkdir(parents=True)
        (tmp_path / "c.n5" / f"g{number:02}" / "attributes.json").write_text("{}")
    n5zarr.create_array(tmp_path / "c.n5/z", shape=(7, 5), dtype="u1")
    found = shown(n5zarr.open(tmp_path / "c.n5"))
    assert found.pictures == []
    assert "g00" in found.text
    assert "..." in found.text
    assert "g89" not in found.text
