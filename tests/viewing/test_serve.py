"""The server answers with right values, parts and conditions, and refuses hostile requests."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
import tensorstore
import zarr

import n5zarr
from n5zarr import Server
from n5zarr.errors import N5UnrepresentableError, N5Warning
from n5zarr.images.find import ome_tree
from n5zarr.viewing.serve.app import HeldValues, make_app
from n5zarr.viewing.serve.guard import PatientProtocol
from n5zarr.viewing.serve.views import N5View
from tests.waiting import PATIENCE, wait_until

SECRET = b"top secret"
JAVA = Path(__file__).parents[1] / "data/java"


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a container with links out of it and inside it, beside files that nobody may see."""
    folder = tmp_path_factory.mktemp("served")
    container = folder / "c.n5"
    shutil.copytree(n5zarr.sample_path(), container)
    other = folder / "c.n5-other"  # its name begins with the name of the container
    shutil.copytree(container / "em/s2", other / "s2")
    (other / "secret").write_bytes(SECRET)
    secret = (other / "s2/attributes.json").read_text().replace("uint8", 'uint8", "s": "top secret')
    (other / "s2/attributes.json").write_text(secret)
    (container / "away").symlink_to(other)
    (container / "absolute").symlink_to("/etc")
    (container / "within").symlink_to("em/s2")
    linked = container / "linked"  # a dataset with one block elsewhere
    shutil.copytree(container / "em/s0", linked)
    (linked / "0/0/0").unlink()
    (linked / "0/0/0").symlink_to(other / "secret")
    described = container / "described"
    described.mkdir()
    (described / "attributes.json").symlink_to(other / "s2/attributes.json")
    for name in (".git/config", ".env", f"em/.{'a' * 9}", f"em/s2/x.{'0' * 32}.partial"):
        (container / name).parent.mkdir(exist_ok=True)
        (container / name).write_bytes(SECRET)
    (container / "README.md").write_text("A file in a group")
    (container / "em/s2/notes.txt").write_bytes(SECRET)  # N5 has no such file in a dataset
    os.mkfifo(container / "em/s2/7")
    past = time.time() - 60  # like most files that are served
    for file in container.rglob("*"):
        if file.is_file():
            os.utime(file, (past, past), follow_symlinks=False)
    return container


@pytest.fixture(scope="module")
def server(container: Path) -> Iterator[Server]:
    with n5zarr.serve(container) as running:
        yield running


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> HTTPResponse:
    """Send a request; the body of the answer is in `body`."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    answer.body = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def send_raw(server: Server, request: bytes) -> bytes:
    """Send bytes, and return everything that the server sends back."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


# ------------------------------------------------------------------------------- values

BLOCK = "/n5/em/s2/0/0/0"


def test_files_are_served_as_they_are(server: Server, container: Path) -> None:
    for key in ("attributes.json", "em/s2/attributes.json", "em/s2/0/0/0", "README.md"):
        answer: Any = ask(server, f"/n5/{key}")
        assert (answer.status, answer.body) == (200, (container / key).read_bytes())
        kind = "application/json" if key.endswith("json") else "application/octet-stream"
        assert answer.getheader("Content-Type") == kind
        assert answer.getheader("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(
    ("wanted", "start", "stop"),
    [("0-0", 0, 1), ("7-18", 7, 19), ("5000-", 5000, None), ("-11", -11, None),
     ("0-999999999999999999", 0, None), ("-999999999999999999", 0, None)],
)  # fmt: skip
def test_a_byte_range_is_a_part(
    server: Server, container: Path, wanted: str, start: int, stop: int | None
) -> None:
    whole = (container / "em/s2/0/0/0").read_bytes()
    answer: Any = ask(server, BLOCK, Range=f"bytes={wanted}")
    assert (answer.status, answer.body) == (206, whole[start:stop])
    first = start % len(whole)
    expected = f"bytes {first}-{first + len(answer.body) - 1}/{len(whole)}"
    assert answer.getheader("Content-Range") == expected


@pytest.mark.parametrize("wanted", ["5352-", "999999999999999999-", "-0"])
def test_a_range_outside_of_the_value_is_refused(
    server: Server, container: Path, wanted: str
) -> None:
    size = (container / "em/s2/0/0/0").stat().st_size
    assert size == 5352
    answer = ask(server, BLOCK, Range=f"bytes={wanted}")
    assert (answer.status, answer.getheader("Content-Range")) == (416, f"bytes */{size}")


@pytest.mark.parametrize(
    "wanted",
    ["bytes=0-1,5-6", "bytes=" + ",".join(["0-"] * 1000), "lines=0-1", "bytes=9-3", "bytes=-",
     "bytes=0-" + "9" * 400, "bytes=a-b"],
)  # fmt: skip
def test_other_ranges_get_the_whole_once(server: Server, container: Path, wanted: str) -> None:
    answer: Any = ask(server, BLOCK, Range=wanted)
    assert (answer.status, answer.body) == (200, (container / "em/s2/0/0/0").read_bytes())


@pytest.mark.parametrize(
    "view", ["n5/em/s2/0/0/0", "zarr/em/s2/c/0/0/0", "ome/em/s2/c/0/0/0", "ome04/em/s2/0/0/0"]
)
def test_an_unchanged_value_is_not_sent_again(container: Path, view: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.n5"
    shutil.copytree(container / "em", mine / "em", ignore=lambda *_: ["7"])
    with n5zarr.serve(mine) as server:
        first: Any = ask(server, f"/{view}")
        tag = first.getheader("ETag")
        assert first.status == 200
        assert tag.startswith('"')
        again: Any = ask(server, f"/{view}", If_None_Match=f'"x", {tag}')
        assert (again.status, again.body, again.getheader("ETag")) == (304, b"", tag)
        part: Any = ask(server, f"/{view}", If_Range=tag, Range="bytes=0-2")
        assert (part.status, part.body) == (206, first.body[:3])
        block = mine / "em/s2/0/0/0"
        n5zarr.write_block(mine, "em/s2", (0, 0, 0), np.full((10, 24, 32), 7, "u1"))
        changed = block.read_bytes()
        new: Any = ask(server, f"/{view}", If_None_Match=tag)
        if not view.startswith("n5"):
            assert new.body == changed[16:]  # without the header of the block
        assert new.status == 200
        assert new.getheader("ETag") != tag
        whole: Any = ask(server, f"/{view}", If_Range=tag, Range="bytes=0-2")
        assert (whole.status, whole.body) == (200, new.body)


def test_views_of_one_file_have_tags_of_their_own(server: Server) -> None:
    keys = ("n5/em/s2/0/0/0", "zarr/em/s2/c/0/0/0", "zarr/em/s2/0.0.0", "ome/em/s2/c/0/0/0")
    assert len({ask(server, f"/{key}").getheader("ETag") for key in keys}) == len(keys)


def test_head_is_get_without_the_body(server: Server) -> None:
    for path in (BLOCK, "/zarr/em/zarr.json", "/ome/em/zarr.json", "/ome04/em/.zattrs"):
        got, head = ask(server, path), ask(server, path, "HEAD")
        assert head.body == b""  # type: ignore[attr-defined]
        for name in ("Content-Length", "Content-Type", "ETag"):
            assert head.getheader(name) == got.getheader(name)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "PROPFIND", "TRACE"])
def test_other_methods_are_refused(server: Server, container: Path, method: str) -> None:
    answer = ask(server, BLOCK, method)
    assert (answer.status, answer.getheader("Allow")) == (405, "GET, HEAD, OPTIONS")
    assert (container / "em/s2/0/0/0").exists()


def test_web_pages_may_read(server: Server) -> None:
    page = {"Origin": "https://neuroglancer-demo.appspot.com"}
    answer = ask(server, BLOCK, **page)
    assert answer.getheader("Access-Control-Allow-Origin") == "*"
    exposed = answer.getheader("Access-Control-Expose-Headers") or ""
    assert {"ETag", "Content-Range", "Accept-Ranges", "Content-Length"} <= set(exposed.split(", "))
    wanted = {
        "Access_Control_Request_Method": "GET",
        "Access_Control_Request_Headers": "range,if-none-match",
        "Access_Control_Request_Private_Network": "true",
    }
    preflight = ask(server, BLOCK, "OPTIONS", **page, **wanted)
    assert preflight.status == 200
    assert preflight.getheader("Access-Control-Allow-Private-Network") == "true"
    allowed = (preflight.getheader("Access-Control-Allow-Headers") or "").lower()
    assert {"range", "if-none-match"} <= set(allowed.split(", "))
    refused = ask(server, BLOCK, "OPTIONS", **page, Access_Control_Request_Method="PUT")
    assert refused.status == 400
    assert ask(server, BLOCK, "OPTIONS").status == 204


def test_documents_of_both_formats_are_those_of_one_array(server: Server) -> None:
    v3: Any = json.loads(ask(server, "/zarr/em/s2/zarr.json").body)  # type: ignore[attr-defined]
    v2: Any = json.loads(ask(server, "/zarr/em/s2/.zarray").body)  # type: ignore[attr-defined]
    assert (v3["shape"], v2["shape"]) == ([10, 24, 32], [10, 24, 32])
    assert ask(server, "/zarr/em/.zgroup").status == 200


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_view_of_one_format_needs_no_other_word(server: Server, zarr_format: int) -> None:
    """It has no key of the other, which would make zarr warn."""
    url = f"{server.url}zarr{zarr_format}/em/s2"
    array: Any = zarr.open(url, mode="r")
    expected: Any = zarr.open_array(n5zarr.N5Store(n5zarr.sample_path()), path="em/s2", mode="r")
    assert array.metadata.zarr_format == zarr_format
    np.testing.assert_array_equal(array[...], expected[...])
    found = tensorstore.open(f"{url}/|auto:", read=True).result()
    np.testing.assert_array_equal(found.read().result(), expected[...])


@pytest.mark.parametrize("path", ["em", "em/s2"])
def test_an_open_group_or_array_is_served(path: str) -> None:
    with n5zarr.serve(n5zarr.open(n5zarr.sample_path(), path=path)) as server:
        found: Any = zarr.open(f"{server.url}zarr3", mode="r")
        assert (found["s2"] if path == "em" else found).shape == (10, 24, 32)


def test_a_large_file_is_not_read_into_memory(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="d", shape=(3,), chunks=(3,), dtype="u1")
    with (tmp_path / "c.n5/large.tif").open("wb") as file:
        file.truncate(1 << 40)
    with n5zarr.serve(tmp_path / "c.n5") as server:
        answer: Any = ask(server, "/n5/large.tif")
    assert (answer.status, answer.body) == (500, b"large.tif: File too large\n")


@pytest.mark.parametrize(
    "path",
    ["/n5/em/s2/9/9/9", "/zarr/em/s2/c/9/9/9", "/zarr/em/s2/c/0/0", "/zarr/nothing/zarr.json",
     "/ome/em/s9/c/0", "/ome04/em/s9/0", "/ome04/em/s2/c/0/0/0", "/ome04/em/s2/0.0.0",
     "/ome04/em/zarr.json", "/ome/em/.zattrs", "/ome/em/s2/0/0/0",
     "/zarr/em/s2/attributes.json", "/n5/em/s2/zarr.json", "/n5/em", "/n5/em/",
     "/n5/", "/else", "/n5/em/s2/notes.txt", "/n5/em/s2/7"],
)  # fmt: skip
def test_a_missing_key_is_not_found(server: Server, path: str) -> None:
    assert ask(server, path).status == 404


def test_a_damaged_block_is_named(tmp_path: Path) -> None:
    shutil.copytree(JAVA / "compressions.n5/lz4", tmp_path / "c.n5/lz4")
    block = tmp_path / "c.n5/lz4/u16/1/0/0"
    block.write_bytes(block.read_bytes()[:40])
    with n5zarr.serve(tmp_path / "c.n5") as server:
        answer: Any = ask(server, "/zarr/lz4/u16/c/0/0/1")
    assert answer.status == 500
    assert f"{tmp_path}/c.n5: lz4/u16: block 1/0/0: ".encode() in answer.body


def test_a_container_without_images_has_the_other_views() -> None:
    with n5zarr.serve(JAVA / "strings.n5") as server:
        answer: Any = ask(server, "/ome/zarr.json")
        assert answer.status == 404
        assert b"strings.n5" in answer.body
        assert ask(server, "/zarr/zarr.json").status == 200


def test_nothing_is_looked_for_until_images_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []
    monkeypatch.setattr("n5zarr.viewing.serve.location.n5_tree", calls.append)
    with n5zarr.serve(n5zarr.sample_path()) as server:
        assert ask(server, "/zarr/em/s2/zarr.json").status == 200
    assert not calls


# -------------------------------------------------------------------------------- hostile requests

ESCAPES = [
    "..", "%2e%2e", "%2E.", ".%2e", "%252e%252e", "..%2f..", "..%5c..", "..\\..", "%c0%ae%c0%ae",
    "%u002e%u002e", "....", "..;", "em/..", "em/../..", "em/%2e%2e/%2e%2e", "./..", "em//..",
]  # fmt: skip
PATHS = [
    *(f"{escape}/c.n5-other/secret" for escape in ESCAPES),
    *(f"{escape}/{escape}/{escape}/{escape}/{escape}/{escape}/etc/passwd" for escape in ESCAPES),
    "/etc/passwd", "%2fetc%2fpasswd", "//etc/passwd", "file:///etc/passwd", "C:\\Windows\\win.ini",
    "em/s2/0/0/0%00.json", "%00", "secret%00", "attributes.json%00/../../secret",
    "away/secret", "away/s2/0/0/0", "away/s2/attributes.json", "away/s2/zarr.json",
    "away/s2/c/0/0/0", "away/s2/.zarray", "away/zarr.json", "absolute/passwd", "linked/0/0/0",
    "linked/c/0/0/0", "linked/0.0.0", "described/attributes.json", "described/zarr.json",
    "described/.zattrs", ".git/config", ".env", "em/.aaaaaaaaa",
    f"em/s2/x.{'0' * 32}.partial", "em/s2/notes.txt", "a" * 300, "a/" * 900 + "b", "é" * 200,
]  # fmt: skip


@pytest.mark.parametrize("view", ["n5", "zarr", "ome", "ome04"])
def test_nothing_outside_of_the_container_is_served(
    server: Server, container: Path, view: str
) -> None:
    passwords = Path("/etc/passwd").read_bytes()[:40]
    for path in PATHS:
        target = f"/{view}/{path}".encode()
        headers = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        found = send_raw(server, b"GET " + target + headers)
        status = found.split(b" ")[1]
        body = found.partition(b"\r\n\r\n")[2]
        assert SECRET not in body, path
        assert passwords not in body, path
        assert str(container).encode() not in found, path
        # a document behind a link is not read, so its node looks like a group without one
        is_of_group = path in ("described/zarr.json", "described/.zattrs")
        assert status in (b"400", b"404") or is_of_group, (path, found)


def test_the_images_hold_nothing_from_outside(server: Server) -> None:
    images: Any = zarr.open_group(f"{server.url}ome", mode="r")
    assert SECRET not in json.dumps(images.metadata.to_dict()).encode()
    tree = ome_tree(server.app.state.served.images())
    assert not any(path.startswith(("away", "absolute")) for path in [*tree.arrays, *tree.groups])
    linked: Any = tree.arrays["linked/s0"].values
    values = linked[...]
    assert not values[:16, :40, :50].any()  # the block behind the link counts as missing
    sample: Any = n5zarr.open(n5zarr.sample_path(), path="em/s0")
    np.testing.assert_array_equal(values[16:], sample[16:])


def test_links_inside_the_container_are_followed(server: Server, container: Path) -> None:
    for path in ("/n5/within/0/0/0", "/n5/within/attributes.json"):
        within: Any = ask(server, path)
        assert within.body == (container / path.removeprefix("/n5/")).read_bytes()


def test_a_container_that_is_itself_a_link_is_served(container: Path, tmp_path: Path) -> None:
    (tmp_path / "link.n5").symlink_to(container)
    with n5zarr.serve(tmp_path / "link.n5") as server:
        assert ask(server, BLOCK).status == 200
        assert ask(server, "/n5/away/secret").status == 404
    with pytest.raises(N5UnrepresentableError, match="no link out of the container"):
        n5zarr.serve(container / "away/s2")


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost", 200), ("LOCALHOST:80", 200), ("[::1]:9", 200),
     ("[0:0:0:0:0:0:0:1]:9", 200), ("[::2]", 421), ("[::1].evil.example", 400),
     ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("localhost.", 421), ("", 421),
     ("evil.example:127.0.0.1", 400), ("me.example:8080", 200),
     # RFC 9112, section 3.2, and RFC 3986, section 3.2
     ("localhost:80a", 400), ("me@localhost", 400), ("localhost/", 400), ("[::1", 400),
     ("localhost localhost", 400), ("localhost, localhost", 400),
     ("localhost\r\nHost: localhost", 400), ("evil.example\r\nHost: localhost", 400),
     ("localhost\r\nhOST: evil.example", 400)],
)  # fmt: skip
def test_names_of_other_hosts_are_refused(container: Path, host: str, status: int) -> None:
    with n5zarr.serve(container, allow_hosts=["me.example"]) as server:
        request = f"GET {BLOCK} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        assert send_raw(server, request.encode()).startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize(("version", "status"), [("1.1", b"400"), ("1.0", b"421")])
def test_a_request_names_its_host(server: Server, version: str, status: bytes) -> None:
    request = f"GET {BLOCK} HTTP/{version}\r\nConnection: close\r\n\r\n"
    assert send_raw(server, request.encode()).split(b" ")[1] == status


@pytest.mark.parametrize("host", ["0:0:0:0:0:0:0:1", "[::1]", "127.3.5.7"])
def test_every_spelling_of_this_machine_is_guarded(container: Path, host: str) -> None:
    with (
        n5zarr.serve(container, host=host) as server,
        socket.create_connection((host.strip("[]"), server.port), timeout=PATIENCE) as connection,
    ):
        connection.sendall(f"GET {BLOCK} HTTP/1.1\r\nHost: evil.example\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize(("host", "name"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_its_address_can_be_opened(container: Path, host: str, name: str) -> None:
    with n5zarr.Server(make_app(container), host) as server:
        assert server.url == f"http://{name}:{server.port}/"


def test_a_dataset_that_is_replaced_is_served_as_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "attributes.json").write_text('{"n5": "4.0.0"}')
    with n5zarr.serve(tmp_path) as server:
        for dtype, chunks in (("u1", (2, 3)), ("u2", (3, 3))):
            shutil.rmtree(tmp_path / "d", ignore_errors=True)
            data = np.arange(1, 36, dtype=dtype).reshape(5, 7)
            n5zarr.create_array(tmp_path, path="d", data=data, chunks=chunks, compression="raw")
            found: Any = ask(server, "/zarr3/d/c/0/0")
            expected = data[: chunks[0], :3].astype(data.dtype.newbyteorder(">")).tobytes()
            assert (found.status, found.body) == (200, expected)


def test_long_and_strange_requests_are_refused(server: Server) -> None:
    host = b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for request, status in (
        (b"GET /n5/" + b"a" * 5000 + host + b"\r\n", b"414"),
        (b"GET " + BLOCK.encode() + host + b"Content-Length: 999999999\r\n\r\n", b"413"),
        (b"GET " + BLOCK.encode() + host + b"Transfer-Encoding: chunked\r\n\r\n", b"413"),
        (b"\x16\x03\x01\x02\x00\x01\x00" * 30, b"400"),
    ):
        assert send_raw(server, request).split(b" ")[1] == status, request[:40]
    for endless in (b"GET /n5/", b"GET /n5/a" + host + b"X: "):
        with suppress(ConnectionError):  # closed while this sends
            assert send_raw(server, endless + b"a" * 10_000_000).startswith(b"HTTP/1.1 431 ")
    assert ask(server, BLOCK).status == 200


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, container: Path) -> Iterator[Server]:
    monkeypatch.setattr(PatientProtocol, "patience", 0.3)
    monkeypatch.setattr("n5zarr.viewing.serve.run.most_connections", lambda: 20)
    with n5zarr.serve(container) as running:
        yield running


def test_slow_clients_are_given_up(impatient: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []
    check = PatientProtocol._check

    def noted(protocol: PatientProtocol) -> None:
        checked.append(protocol.client)
        check(protocol)

    monkeypatch.setattr(PatientProtocol, "_check", noted)
    address = ("127.0.0.1", impatient.port)
    with socket.create_connection(address, timeout=PATIENCE) as silent:
        assert silent.recv(1) == b""
        assert checked.count(silent.getsockname()) == 1  # after 0.3 s by the server's clock
    with socket.create_connection(address, timeout=PATIENCE) as dripping:
        dripping.sendall(b"GET / HTTP/1.1\r\nX: ")
        n_sent = 0
        while not select.select([dripping], [], [], 0.05)[0]:  # until the server says something
            dripping.sendall(b"a")
            n_sent += 1
            assert n_sent < PATIENCE / 0.05
        assert n_sent > 0
        assert checked.count(dripping.getsockname()) == 1
    assert ask(impatient, BLOCK).status == 200


def test_a_client_that_takes_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[Any] = []
    lose = PatientProtocol.connection_lost

    def noted(protocol: PatientProtocol, exc: Exception | None) -> None:
        lose(protocol, exc)
        lost.append(protocol.client)

    monkeypatch.setattr(PatientProtocol, "patience", 0.3)
    monkeypatch.setattr(PatientProtocol, "connection_lost", noted)
    (tmp_path / "c.n5").mkdir()
    (tmp_path / "c.n5/attributes.json").write_text('{"n5": "4.0.0"}')
    (tmp_path / "c.n5/large").write_bytes(bytes(50_000_000))
    with n5zarr.serve(tmp_path / "c.n5") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as greedy:
            greedy.sendall(b"GET /n5/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            wait_until(lambda: greedy.getsockname() in lost)
            got = b"".join(iter(lambda: greedy.recv(1 << 20), b""))  # already on its way
            assert 0 < len(got) < 40_000_000
        taken: Any = ask(server, "/n5/large")
        assert len(taken.body) == 50_000_000


def take_all(connection: socket.socket) -> int:
    with connection:
        return sum(map(len, iter(partial(connection.recv, 1 << 20), b"")))


def test_values_wait_for_slow_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    reading = N5View.read

    async def counted(view: N5View, key: str, known: str | None) -> Any:
        read.append(key)
        return await reading(view, key, known)

    n_waiting, waiting = 0, HeldValues.wait_for_room

    async def counted_wait(held: HeldValues) -> None:
        nonlocal n_waiting
        n_waiting += 1
        await waiting(held)
        n_waiting -= 1

    monkeypatch.setattr(N5View, "read", counted)
    monkeypatch.setattr(HeldValues, "wait_for_room", counted_wait)
    monkeypatch.setattr(HeldValues, "most", 60_000_000)
    monkeypatch.setattr(HeldValues, "at_once", 2)
    (tmp_path / "attributes.json").write_text('{"n5": "4.0.0"}')
    (tmp_path / "large").write_bytes(bytes(25_000_000))
    with n5zarr.serve(tmp_path) as server:
        address = ("127.0.0.1", server.port)
        slow = [socket.create_connection(address, timeout=PATIENCE) for _ in range(10)]
        for each in slow:
            each.sendall(b"GET /n5/large HTTP/1.0\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: n_waiting == 2)  # nothing more is read then
        assert 3 <= len(read) <= 4  # values up to the bound, and one that was being read
        for each in slow[:5]:
            each.close()
        with ThreadPoolExecutor(5) as threads:
            got = threads.map(take_all, slow[5:])
            assert all(n_bytes > 25_000_000 for n_bytes in got)
    assert len(read) == 10


def test_requests_are_refused_while_too_many_connections_are_open(
    impatient: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PatientProtocol, "patience", PATIENCE)  # no connection is closed
    address = ("127.0.0.1", impatient.port)
    many = [socket.create_connection(address, timeout=PATIENCE) for _ in range(19)]
    wait_until(lambda: len(impatient._uvicorn.server_state.connections) == 19)
    assert ask(impatient, BLOCK).status == 200
    many += [socket.create_connection(address, timeout=PATIENCE) for _ in range(30)]
    wait_until(lambda: len(impatient._uvicorn.server_state.connections) == 49)
    assert ask(impatient, BLOCK).status == 503
    for each in many:
        each.close()
    wait_until(lambda: ask(impatient, BLOCK).status == 200)


def test_small_answers_are_sent_at_once(server: Server) -> None:
    """Without Nagle's algorithm."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", BLOCK)
    connection.getresponse().read()
    mine = connection.sock.getsockname()
    connections: Any = server._uvicorn.server_state.connections
    (protocol,) = [each for each in connections if each.client == mine]
    served = protocol.transport.get_extra_info("socket")
    assert served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    connection.close()


def test_many_requests_at_once_on_one_connection_are_bounded(server: Server) -> None:
    request = f"GET {BLOCK} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    found = send_raw(server, request * 1000)
    assert found.count(b"HTTP/1.1 200") < 30
    assert ask(server, BLOCK).status == 200


@pytest.mark.filterwarnings("always:.*NaN and infinities:n5zarr.errors.N5Warning")
def test_documents_are_json_that_browsers_take(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Documents are valid JSON for browsers, also if Java has written NaN into attributes."""
    root = tmp_path / "c.n5"
    shutil.copytree(n5zarr.sample_path(), root)
    for path, text in (("em", b'"fit": NaN'), ("em/s0", b'"ends": [-Infinity, "a NaN"]')):
        file = root / path / "attributes.json"
        file.write_bytes(file.read_bytes().replace(b"{", b"{" + text + b",", 1))

    def refuse(text: str) -> None:
        raise AssertionError(text)

    with n5zarr.serve(root) as server:
        found = {}
        for key in 2 * ("ome/em/zarr.json", "zarr/em/zarr.json", "zarr/em/s0/zarr.json",
                    "zarr/em/.zattrs", "zarr/em/s0/.zattrs", "ome04/em/.zattrs"):  # fmt: skip
            with urlopen(server.url + key, timeout=PATIENCE) as answer:  # noqa: S310 - our own server
                document = json.loads(answer.read(), parse_constant=refuse)
            found[key] = document.get("attributes", document)
        array: Any = zarr.open_array(f"{server.url}zarr/em/s0", mode="r", zarr_format=3)
        assert array[...].any()
        with urlopen(f"{server.url}n5/em/attributes.json", timeout=PATIENCE) as answer:  # noqa: S310
            assert answer.read() == (root / "em/attributes.json").read_bytes()
    said = [str(each.message) for each in recwarn if each.category is N5Warning]
    assert len({*said}) == 5  # of Zarr each document, of OME-Zarr all images
    assert len(said) <= 6  # although each was asked for twice
    assert all("NaN and infinities" in each for each in said)
    assert {found[key]["fit"] for key in found if "s0" not in key} == {"NaN"}
    assert [found[key]["ends"] for key in found if "s0" in key] == [["-Infinity", "a NaN"]] * 2
