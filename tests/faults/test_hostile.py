"""What the writer of a container or a server wants a reader to do besides reading."""

from __future__ import annotations

import json
import os
import pickle
import struct
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numcodecs
import pytest
import zarr

import n5zarr
from tests.remote.servers import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Program:
    """What runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


PICKLE = {"id": "pickle", "protocol": 5}


@pytest.mark.parametrize("record", [{"filters": [PICKLE]}, {"compressor": PICKLE}], ids=str)
@pytest.mark.parametrize("data_type", ["uint8", "object", "string"])
def test_no_codec_runs_what_a_block_holds(tmp_path: Path, record: Any, data_type: str) -> None:
    """numcodecs knows the codec ``pickle``, which runs any function that its bytes name."""
    assert "pickle" in numcodecs.registry.codec_registry
    root, ran = tmp_path / "c.n5", tmp_path / "ran"
    payload = pickle.dumps(_Program(ran)).ljust(211, b"\0")
    n5zarr.create_array(root, path="d", shape=(211,), chunks=(211,), dtype="u1", compression="raw")
    file = root / "d/attributes.json"
    document = json.loads(file.read_text()) | {"dataType": data_type}
    v2 = {"compressor": None, "filters": None, "order": "C"} | record
    file.write_text(json.dumps(document | {"zarr": {"zarr_format": 2, "v2": v2}}))
    mode = {"uint8": 0, "object": 2, "string": 1}[data_type]
    header = struct.pack(">HHI", mode, 1, 211) + (struct.pack(">I", 211) if mode else b"")
    (root / "d/0").write_bytes(header + payload)
    stores = [partial(n5zarr.N5Store, root, zarr_format=each) for each in (None, 2, 3)]
    ways: list[Any] = [lambda: n5zarr.open(root, path="d")]
    ways += [partial(lambda make: zarr.open(make(), path="d"), make) for make in stores]
    for way in ways:
        with suppress(n5zarr.N5Error, ValueError, TypeError):  # zarr's own, too
            way()[...]
        assert not ran.exists()
    pickle.loads(payload)
    assert ran.exists()


DOCUMENT = {
    "dataType": "uint8",
    "compression": {"type": "raw"},
    "blockSize": [3],
    "dimensions": [3],
}
UP = ("..%2f..%2fescape/", "%2e%2e/%2e%2e/escape/", "/escape/", "http://127.0.0.1:1/escape/",
      "../escape/", "....//escape/")  # fmt: skip


class _Names(BaseHTTPRequestHandler):
    """A container with a dataset ``d``, and with lists whose names lead out of it."""

    def do_GET(self) -> None:
        path = self.path
        kind, body = "application/json", b""
        if path.endswith("attributes.json"):
            body = json.dumps(DOCUMENT if "/d/" in path else {"n5": "4.0.0"}).encode()
        elif path.endswith("/0"):
            body = struct.pack(">HHI", 0, 1, 3) + b"abc"
        elif path.endswith("/"):
            names = ["0", "attributes.json"] if "/d/" in path else ["d/"]
            kind = "text/html"
            links = [f'<a href="{name}">{unquote(name)}</a>' for name in (*names, *UP)]
            body = "\n".join(links).encode()
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name that the class asks for

    def log_message(self, *_: object) -> None:
        """Be quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(_Names) as address:
        yield f"{address}/c.n5"


def test_names_of_a_server_lead_nowhere_else(url: str, tmp_path: Path) -> None:
    assert [name for name, _ in n5zarr.open_group(url).members(max_depth=None)] == ["d"]
    folder = tmp_path / "a/b/c"
    folder.mkdir(parents=True)
    n5zarr.download(url, folder / "copy.n5")
    n5zarr.convert(url, folder / "copy.zarr")
    n5zarr.virtualize(url, folder / "references.json")
    written = [file.relative_to(folder).parts for file in tmp_path.rglob("*") if file.is_file()]
    assert {parts[0] for parts in written} == {"copy.n5", "copy.zarr", "references.json"}
    assert not [parts for parts in written if "escape" in "/".join(parts)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_of_xml_are_not_expanded(tmp_path: Path, encoding: str) -> None:
    laughs = "".join(f'<!ENTITY l{i + 1} "{f"&l{i};" * 10}">' for i in range(9))
    secret = tmp_path / "secret"
    secret.write_text("top secret")
    for declared in (f'<!ENTITY l0 "ha">{laughs}', f'<!ENTITY l9 SYSTEM "{secret.as_uri()}">'):
        file = tmp_path / "dataset.xml"
        text = f"<!DOCTYPE SpimData [{declared}]><SpimData><BasePath>&l9;</BasePath></SpimData>"
        file.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding))
        with pytest.raises(n5zarr.N5Error) as refused:
            n5zarr.open_bdv(file)
        assert "top secret" not in str(refused.value)
