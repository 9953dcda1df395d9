"""Hostile containers and servers make a reader run, read or write nothing else."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numcodecs
import numpy as np
import pytest
import xarray as xr
import zarr

import n5zarr
from n5zarr.errors import N5AttributesError
from tests.property import outside
from tests.remote.servers import serving


class _Program:
    """An object that runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


PICKLE = {"id": "pickle", "protocol": 5}


@pytest.mark.parametrize("record", [{"filters": [PICKLE]}, {"compressor": PICKLE}], ids=str)
@pytest.mark.parametrize("data_type", ["uint8", "object", "string"])
def test_no_codec_runs_what_a_block_holds(tmp_path: Path, record: Any, data_type: str) -> None:
    """No codec of a record unpickles a block, though numcodecs has the codec ``pickle``."""
    assert "pickle" in numcodecs.registry.codec_registry
    root, ran = tmp_path / "c.n5", tmp_path / "ran"
    payload = pickle.dumps(_Program(ran)).ljust(211, b"\0")
    n5zarr.create_array(root, path="d", shape=(211,), chunks=(211,), dtype="u1", compression="raw")
    v2 = {"compressor": None, "filters": None, "order": "C"} | record
    changes = {"dataType": data_type, "zarr": {"zarr_format": 2, "v2": v2}}
    outside.merge_document(root / "d", changes)
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


def _numcodec(name: str, **configuration: Any) -> Any:
    chain = [{"name": f"numcodecs.{name}", "configuration": configuration}, {"name": "bytes"}]
    return {"codecs": chain}


SHUFFLED = {"name": "transpose", "configuration": {"order": [5, 7]}}
TWICE = {"name": "structured", "configuration": {"fields": [["a", "uint8"], ["a", "uint8"]]}}
NAMELESS = {"name": "structured", "configuration": {"fields": [["", "uint8"]]}}
OBJECTS = {"name": "structured", "configuration": {"fields": [["a", "variable_length_bytes"]]}}
LONG = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 2**40}}
FORGED: dict[str, Any] = {
    "an unknown codec": {"codecs": [{"name": "nosuch"}]},
    "a codec that is none of Zarr's": _numcodec("pickle"),
    "no codecs": {"codecs": []},
    "codecs without names": {"codecs": ["bytes", {"name": {}}]},
    "a transposition of other axes": {"codecs": [SHUFFLED, {"name": "bytes"}]},
    "elements without a byte order": _numcodec("astype", encode_dtype="<f8", decode_dtype="<u1"),
    "a filter of objects": _numcodec("delta", dtype="|O"),
    "an offset that is no number": _numcodec("fixedscaleoffset", dtype="<f8", scale=0, offset="x"),
    "very many digits": _numcodec("quantize", dtype="<f8", digits=10**9),
    "fields of the same name": {"data_type": TWICE},
    "a field without a name": {"data_type": NAMELESS},
    "a field of bytes of any length": {"data_type": OBJECTS},
    "texts of a terabyte": {"data_type": LONG},
    "members to be understood": {"extra": {"foo": {"must_understand": True}}},
    "v2, pickles": {"zarr_format": 2, "v2": {"filters": [{"id": "pickle"}]}},
    "v2, filters that are none": {"zarr_format": 2, "v2": {"compressor": 5, "filters": 7}},
    "v2, a fill value of text": {"zarr_format": 2, "v2": {"fill_value": "zzz"}},
    "v2, an unknown order": {"zarr_format": 2, "v2": {"order": 5}},
}


@pytest.mark.parametrize("record", FORGED.values(), ids=FORGED)
def test_a_forged_record_is_named_or_does_not_matter(tmp_path: Path, record: Any) -> None:
    """A forged record is an error that names the container, or changes no values."""
    root = tmp_path / "c.n5"
    values = np.arange(77, dtype="u1").reshape(11, 7)
    n5zarr.create_array(root, path="d", data=values, chunks=(8, 5), compression="raw")
    outside.merge_document(root / "d", {"zarr": record})
    stores = [partial(n5zarr.N5Store, root, zarr_format=each) for each in (None, 2, 3)]
    ways: list[Any] = [lambda: n5zarr.open(root, path="d")]
    ways += [partial(lambda make: zarr.open(make(), path="d", mode="r"), make) for make in stores]
    ways.append(lambda: xr.open_dataset(root, engine="n5", group="d")["d"])
    said = []
    for way in ways:
        try:
            found = np.asarray(way()[...])
        except n5zarr.N5Error as err:
            said.append(str(err))
        else:
            np.testing.assert_array_equal(found, values)
    assert said
    assert all(f"{root}: d" in message for message in said)


def _sharded(*inner: int) -> Any:
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    configuration = {"codecs": ["bytes"], "index_codecs": index, "index_location": "end"}
    shards = {"name": "sharding_indexed", "configuration": configuration | {"chunk_shape": inner}}
    return {"codecs": [shards]}


WIDER = {"id": "delta", "dtype": "<u1", "astype": "<u8"}  # takes each byte for a number
COSTLY: dict[str, Any] = {
    "a million chunks in a shard": _sharded(1),
    "a thousand codecs": {"codecs": ["bytes", *[_numcodec("gzip", level=9)["codecs"][0]] * 1000]},
    "filters that make more of what they made": {
        "zarr_format": 2,
        "v2": {"filters": [WIDER] * 5, "compressor": None, "order": "C"},
    },
}


@pytest.mark.parametrize("record", COSTLY.values(), ids=COSTLY)
def test_recorded_codecs_cost_no_more_than_their_block(tmp_path: Path, record: Any) -> None:
    """Recorded codecs that zarr would run on all elements of a block are refused."""
    root = tmp_path / "c.n5"
    values = np.zeros(2**20, "u1")
    n5zarr.create_array(root, path="d", data=values, chunks=(2**20,), compression="gzip")
    outside.merge_document(root / "d", {"zarr": record})
    with pytest.raises(N5AttributesError, match=f"{root}: d/attributes.json: .*codecs: expected"):
        zarr.open(n5zarr.N5Store(root), path="d", mode="r")
    np.testing.assert_array_equal(n5zarr.open_array(root, path="d", mode="r")[...], values)


def test_the_record_does_not_replace_what_n5_says(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    values = np.arange(77, dtype="u1").reshape(11, 7)
    n5zarr.create_array(root, path="d", data=values, chunks=(8, 5), compression="raw")
    grid = {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}
    extra = {"node_type": "group", "shape": [1], "data_type": "int8", "chunk_grid": grid}
    outside.merge_document(root / "d", {"zarr": {"extra": extra}})
    np.testing.assert_array_equal(n5zarr.open_array(root, path="d")[...], values)
    array: Any = zarr.open(n5zarr.N5Store(root), path="d", mode="r")
    assert (array.dtype, array.chunks) == (np.dtype("u1"), (8, 5))
    np.testing.assert_array_equal(array[...], values)


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
        """Log nothing."""


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
