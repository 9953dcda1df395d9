"""Any request to S3 may fail, be cut, be made twice, or lose its answer.

Those who use the library see an error or the right result; each object is old or new.
``N5ZARR_STRESS=1`` does it at each request of each operation; else at a few.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from urllib.parse import urlsplit

import pytest
import s3fs

import n5zarr
from n5zarr import N5Store
from n5zarr.storage.requests import Get, Steps, Update
from tests.faults.operations import OPERATIONS, Case
from tests.remote import servers
from tests.remote.conftest import S3, client, obstore_options, options_of

IS_LONG = bool(os.environ.get("N5ZARR_STRESS"))
N_SHORT = 2  # faults of each operation
FAULTS = ["500", "503", "reset", "lost", "lost, 500", "twice", "cut"]
SHORT = ["append to an attribute", "delete a node"]  # servers are slow


class Bucket:
    """Two containers in a bucket; see :class:`tests.faults.operations.Place`."""

    def __init__(self, server: str, proxy: servers.Proxy, backend: str) -> None:
        self.s3, self.proxy = client(server), proxy
        self.name = f"b{uuid.uuid4().hex}"
        self.s3.create_bucket(Bucket=self.name)
        self.options = options_of(S3[backend], proxy.url)

    def open(self, name: str = "c.n5") -> N5Store:
        return N5Store(f"s3://{self.name}/{name}", codecs="n5", **self.options)

    def objects(self) -> dict[str, bytes]:
        while True:
            listed = self.s3.list_objects_v2(Bucket=self.name).get("Contents", [])
            try:
                return {o["Key"]: self._get(o["Key"]) for o in listed}
            except self.s3.exceptions.NoSuchKey:  # a request that was under way has removed it
                continue

    def _get(self, key: str) -> bytes:
        data: bytes = self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()
        return data

    def fill(self, objects: dict[str, bytes]) -> None:
        now = self.objects()
        for key in now.keys() - objects.keys():
            self.s3.delete_object(Bucket=self.name, Key=key)
        for key, data in objects.items():
            if now.get(key) != data:
                self.s3.put_object(Bucket=self.name, Key=key, Body=data)


class Requests:
    """A counter of requests, with a fault at the n-th one."""

    def __init__(self, proxy: servers.Proxy) -> None:
        self.proxy, self.n, self.done = proxy, 0, ""

    @contextmanager
    def armed(self, at: int, kind: str) -> Iterator[None]:
        self.n, self.done = 0, ""

        def fault(method: str, path: str) -> str | None:
            self.n += 1
            if self.n != at or (kind == "cut" and method != "GET"):
                return None
            self.done = f"{method} {path}"
            return kind

        self.proxy.fault = fault
        yield
        self.proxy.fault = lambda method, path: None


# zarr leaves coroutines where one of several requests fails
@pytest.mark.each_of(2)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize("backend", list(S3) if IS_LONG else ["obstore"])
@pytest.mark.parametrize("name", list(OPERATIONS) if IS_LONG else SHORT)
def test_any_request_may_fail(
    name: str,
    backend: str,
    s3_server: str,
    proxied_s3: servers.Proxy,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(s3fs.core.S3FileSystem, "retries", 1)
    requests = Requests(proxied_s3)
    place = Bucket(s3_server, proxied_s3, backend)
    case = Case.of(OPERATIONS[name], place, requests.armed(0, ""))
    cases = list(product(range(1, requests.n + 1), FAULTS))
    if not IS_LONG:
        cases = [cases[k * len(cases) // N_SHORT + k] for k in range(N_SHORT)]
    outcomes = Counter[str]()
    for at, kind in cases:
        error, result = case.run(requests.armed(at, kind))
        where = f"{kind}, {requests.done}: {error!r}"
        outcome = case.judged(error, result, where)
        if outcome == "False":
            assert kind == "500", where
            outcome = "finding"  # of validate
        if error is not None:
            case.check_repeated(where)
        outcomes[f"{kind}: {outcome}"] += 1
    record_property(f"S3 through {backend}", dict(outcomes))


# --------------------------------------------------------------------- answers that are lost


def through(url: str, name: str, max_retries: int) -> N5Store:
    backoff = {
        "init_backoff": timedelta(milliseconds=5),
        "max_backoff": timedelta(milliseconds=9),
        "base": 2,
    }
    retries = {"max_retries": max_retries, "backoff": backoff}
    options = obstore_options(url) | {"retry_config": retries}
    return N5Store(f"s3://{name}/c.n5", backend="obstore", storage_options=options)


def append(letter: bytes) -> Steps[bytes]:
    """Append a letter to an object; appending twice gives two."""
    yield [Update("a/0", lambda old: (old or b"") + letter)]
    (found,) = yield [Get("a/0")]
    return bytes(found)


@pytest.mark.each_of(5)
@pytest.mark.parametrize("max_retries", [0, 3])
@pytest.mark.parametrize("fault", ["lost", "lost, 500", "twice"])
def test_an_update_whose_answer_is_lost_is_made_once(
    proxied_s3: servers.Proxy, own_bucket: str, fault: str, max_retries: int
) -> None:
    n_puts = 0

    def lose(method: str, path: str) -> str | None:
        nonlocal n_puts
        n_puts += method == "PUT"
        return fault if method == "PUT" and n_puts == 1 else None

    for letters in (b"x", b"xx", b"xxx"):
        n_puts = 0
        proxied_s3.fault = lose
        assert through(proxied_s3.url, own_bucket, max_retries).run(append(b"x")) == letters
    n_puts = 0
    made = n5zarr.create_array(
        through(proxied_s3.url, own_bucket, max_retries), path="d", shape=(5, 7), dtype="u1",
        attributes={"list": [1, 2, 3]},
    )  # fmt: skip
    assert made.shape == (5, 7)  # and nobody says that it exists
    n_puts = 0
    store = through(proxied_s3.url, own_bucket, max_retries)
    n5zarr.remove_attribute(store, "d", "list[0]")
    assert n5zarr.get_attribute(store, "d", "list") == [2, 3]


def test_an_update_is_made_once_if_others_have_replaced_it_since(
    s3_server: str, proxied_s3: servers.Proxy, own_bucket: str
) -> None:
    other, n_puts = through(s3_server, own_bucket, 0), 0

    def lose(method: str, path: str) -> str | None:
        nonlocal n_puts
        n_puts += method == "PUT"
        if method == "PUT" and n_puts == 2:  # the first one is sent again
            other.run(append(b"y"))
            other.run(append(b"y"))
        return "lost, 500" if method == "PUT" and n_puts == 1 else None

    proxied_s3.fault = lose
    assert through(proxied_s3.url, own_bucket, 3).run(append(b"x")) == b"xyy"
    assert n_puts == 2


def test_another_writer_with_the_same_bytes_is_another_writer(
    s3_server: str, proxied_s3: servers.Proxy, own_bucket: str
) -> None:
    """An update is made again if another writer has just made the same object."""
    other, n_puts = through(s3_server, own_bucket, 0), 0

    def overtake(method: str, path: str) -> str | None:
        nonlocal n_puts
        n_puts += method == "PUT"
        if method == "PUT" and n_puts == 1:
            other.run(append(b"x"))
        return None

    proxied_s3.fault = overtake
    assert through(proxied_s3.url, own_bucket, 3).run(append(b"x")) == b"xx"


def test_a_client_that_sends_half_of_its_object_holds_up_nobody(
    s3_server: str, proxied_s3: servers.Proxy, own_bucket: str
) -> None:
    """A client that sends half of its object does not hold up others."""
    head = f"PUT /{own_bucket}/half HTTP/1.1\r\nHost: s3\r\nContent-Length: 100\r\n\r\nhalf"
    address = urlsplit(proxied_s3.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode())
    assert client(s3_server).list_objects_v2(Bucket=own_bucket)["KeyCount"] == 0
