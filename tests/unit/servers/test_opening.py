"""URLs are opened by a library, and stores of servers raise Python's errors."""

from __future__ import annotations

import asyncio
import socket
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fsspec")
pytest.importorskip("obstore")
pytest.importorskip("aiohttp")
pytest.importorskip("s3fs")

from pathlib import Path

import fsspec
import obstore
from obstore.store import HTTPStore, S3Store
from obstore.store import MemoryStore as Objects
from zarr.abc.store import RangeByteRequest
from zarr.buffer import cpu
from zarr.storage import FsspecStore, MemoryStore, ObjectStore, ZipStore

from n5zarr._zarr import sync
from n5zarr.errors import N5MissingDependencyError, N5UnrepresentableError, N5UnsupportedError
from n5zarr.servers import opening, web_store
from n5zarr.servers import served as module
from n5zarr.servers.opening import chosen_store, open_url, store_of_url
from n5zarr.servers.served import (
    ServedObjectStore,
    ServedUrlStore,
    ServedWebStore,
    of_objects,
    served,
)
from n5zarr.servers.translated import NotTranslatedError
from n5zarr.servers.url_store import UrlStore
from n5zarr.servers.web_store import WebStore
from n5zarr.storage.forks import FORKS
from n5zarr.storage.place import Place
from n5zarr.storage.requests import Entry, Update
from tests.remote.servers import Files, FilesWithoutLength, PackedFiles, serving, static
from tests.unit.servers.test_url_store import DATA, Fake
from tests.unit.servers.test_url_store import get as read

run: Any = asyncio.run
HERE = "http://127.0.0.1:1"
PROTOTYPE = cpu.buffer_prototype


def opened(
    url: str, options: Any = None, backend: Any = "fsspec", *, read_only: bool = False
) -> Any:
    return store_of_url(url, options, read_only=read_only, backend=backend)


# ----------------------------------------------------------------------------------- one library


def test_urls_of_fsspec(tmp_path: Path) -> None:
    store = opened("MEMORY://a/c.n5", read_only=True)
    assert (type(store), store.read_only, store.path) == (UrlStore, True, "/a/c.n5")
    s3 = opened("s3://lab/c.n5", {"anon": True})
    assert (s3.read_only, s3.fs.storage_options["use_listings_cache"]) == (False, False)
    assert opened("s3://lab", {"use_listings_cache": True}).fs.storage_options["use_listings_cache"]
    chain = opened("simplecache::memory://a/c.n5", {"simplecache": {"same_names": True}})
    assert (type(chain), chain.read_only) == (UrlStore, False)
    assert opened("simplecache::memory://a/c.n5", read_only=True).read_only
    assert (chain.path, chain.fs.sync_fs.storage_options["same_names"]) == ("/a/c.n5", True)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("k", b"1")
    local = opened(f"ZIP://{tmp_path}/a.zip")
    assert (type(local), local.path, local.read_only) == (ZipStore, tmp_path / "a.zip", True)
    inner = opened(f"zip://::file://{tmp_path}/a.zip")
    assert (type(inner), inner.read_only) == (UrlStore, True)
    new = opened(f"zip://::file://{tmp_path}/b.zip", {"zip": {"mode": "w"}})
    assert not new.read_only
    new.fs.sync_fs.close()


def test_a_web_server_gets_the_query_with_each_request() -> None:
    store = opened(f"{HERE}/a b.n5?sig=x%2F&flag=", {"headers": {"a": "b"}})
    assert (store.path, store.read_only) == (f"{HERE}/a%20b.n5", True)
    options = store.fs.storage_options
    assert options["params"] == [("sig", "x/"), ("flag", "")]
    assert (options["encoded"], options["headers"]) == (True, {"a": "b"})
    assert "params" not in opened(f"{HERE}/a.n5").fs.storage_options
    assert opened(f"{HERE}/a.n5?x=1", {"params": [1]}).fs.storage_options["params"] == [1]


@pytest.mark.parametrize(
    ("url", "options", "error", "match"),
    [
        ("zip://a.zip", {"x": 1}, N5UnrepresentableError, "none with a local zip file, got them"),
        ("nosuch://a", {}, N5UnsupportedError, "^nosuch://a: expected a URL, and storage_options"),
        ("simplecache::memory://a", {"memory": 1}, N5UnsupportedError, "expected a URL"),
        ("zip://::file:///no/such.zip", {}, FileNotFoundError, "such.zip"),
    ],
)
def test_urls_that_fsspec_does_not_open(url: str, options: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        opened(url, options)
    assert "word" not in str(caught.value)
    assert getattr(caught.value, "kind", "option") == "option"


@pytest.mark.parametrize(
    ("url", "err", "name", "purpose", "extra"),
    [
        ("s3://a", ImportError(name="s3fs.core"), "s3fs", "opening s3 URLs", "remote"),
        ("s3://a", ImportError(), "s3fs", "opening s3 URLs", "remote"),
        ("simplecache::gs://a", ImportError(), "gcsfs", "opening simplecache::gs URLs", "remote"),
        ("http://a", ImportError("x", name="aiohttp"), "aiohttp", "opening http URLs", "remote"),
        ("sftp://a", ImportError(name="paramiko"), "paramiko", "opening sftp URLs", ""),
        ("sftp://a", ImportError(), "fsspec", "opening sftp URLs", "remote"),
    ],
)
def test_a_missing_package_is_named(
    monkeypatch: Any, url: str, err: Any, name: str, purpose: str, extra: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise err

    for each in ("_chained", "_web"):
        monkeypatch.setattr(opening, each, fail)
    monkeypatch.setattr(UrlStore, "from_url", fail)
    with pytest.raises(N5MissingDependencyError) as caught:
        opened(url)
    message = str(N5MissingDependencyError(name, purpose, extra))
    assert (str(caught.value), caught.value.__cause__) == (message, err)


@pytest.mark.parametrize(
    ("url", "options", "kind", "expected"),
    [
        ("s3://lab/a/b/", {"region": "r", "endpoint": "https://h"}, "S3Store", {"bucket": "lab"}),
        ("S3://lab", {"endpoint": HERE}, "S3Store", {}),
        ("gs://lab/x", {"skip_signature": True}, "GCSStore", {}),
        (f"{HERE}/c.n5", {}, "HTTPStore", {}),
        ("memory:///", {}, "MemoryStore", {}),
    ],
)
def test_urls_of_obstore(url: str, options: Any, kind: str, expected: Any) -> None:
    store = opened(url, options, "obstore", read_only=True)
    assert (type(store), type(store.store).__name__, store.read_only) == (ObjectStore, kind, True)
    assert expected.items() <= dict(getattr(store.store, "config", {})).items()
    is_plain = url.startswith("http:") or "http:" in str(options)
    client = dict(getattr(store.store, "client_options", None) or {})
    assert (str(client.get("allow_http", "")).lower() == "true") is is_plain
    if url == "s3://lab/a/b/":
        assert store.store.prefix == "a/b"
    given: Any = {"endpoint": HERE, "client_options": {"allow_http": False}}
    kept = opened("s3://lab", given, "obstore").store.client_options
    assert str(kept["allow_http"]).lower() == "false"


@pytest.mark.parametrize(
    ("url", "options", "match"),
    [
        ("nosuch://a", {}, "^nosuch://a: backend='obstore': .*; backend='fsspec' opens other"),
        ("s3://lab", {"anon": True, "key": "word"},
         r"those of obstore's store \(access_key_id, .*\), client_options .*, got anon, key; "),
        ("gs://lab", {"anon": True}, "those of obstore's store, client_options and"),
    ],
)  # fmt: skip
def test_urls_that_obstore_does_not_open(url: str, options: Any, match: str) -> None:
    with pytest.raises(N5UnsupportedError, match=match) as caught:
        opened(url, options, "obstore")
    assert (caught.value.kind, "word" in str(caught.value)) == ("option", False)


# -------------------------------------------------------------------------------------- the choice


def test_open_url_serves_the_store() -> None:
    place = Place("memory://a/c.n5")
    for backend, given, expected in [
        (None, None, "fsspec; obstore is not used: it does not read such URLs (memory://)"),
        ("fsspec", None, "fsspec, as asked for"),
        ("obstore", "fsspec", "fsspec, as asked for"),
    ]:
        where = Place(place.location, backend=backend)  # type: ignore[arg-type]
        store: Any
        store, why = open_url(where, read_only=True, forbidden_is_missing=True, backend=given)  # type: ignore[arg-type]
        assert (type(store), why) == (ServedUrlStore, expected)
        assert (store.read_only, store.forbidden_is_missing) == (True, True)
    with pytest.raises(N5UnrepresentableError, match="in a password as %2F") as caught:
        open_url(Place("https://me:wo/rd@h/c"), read_only=True, forbidden_is_missing=False)
    assert (caught.value.kind, "rd@" in str(caught.value)) == ("option", False)


def test_the_faster_library_is_chosen(monkeypatch: Any) -> None:
    monkeypatch.setattr(fsspec.config, "conf", {"s3a": {"b": 1, "c": 1}, "s3": {"a": 1, "b": 2}})
    asked: list[Any] = []
    objects = Objects()

    def s3(url: str, options: Any) -> Any:
        asked.append((url, options))
        return objects

    monkeypatch.setitem(opening._OPENERS, "s3", s3)
    why = "obstore, which understands the URL and its options"
    for read_only in (True, False):
        store, found = chosen_store("S3://Lab/c", {"c": 3}, read_only=read_only)
        assert (store.store, store.read_only, found) == (objects, read_only, why)  # type: ignore[attr-defined]
    assert asked[0] == ("s3://Lab/c", {"a": 1, "b": 1, "c": 3})
    monkeypatch.setattr(FORKS, "has_lost_obstore", True)
    reason = chosen_store("s3://lab", {"anon": True}, read_only=True)[1]
    assert reason.endswith("this process was forked by one that had used it")
    monkeypatch.setattr(FORKS, "has_lost_obstore", False)
    for error, words in [
        (ImportError("x", name="botocore"), "botocore, which knows where credentials are, is"),
        (TypeError("token word"), "it refuses the options: token ***"),
        (OSError("x"), "it refuses the options: x"), (NotTranslatedError("why"), "why"),
        (obstore.exceptions.GenericError("x"), "it refuses the options: x"),
    ]:  # fmt: skip

        def fail(*_: Any, err: Exception = error) -> Any:
            raise err

        monkeypatch.setitem(opening._OPENERS, "s3", fail)
        store, found = chosen_store("s3://lab", {"token": "word"}, read_only=True)
        assert type(store) is UrlStore
        assert found.startswith(f"fsspec; obstore is not used: {words}")


# ------------------------------------------------------------------------------------ served stores


class Own(FsspecStore):
    """A class of a user's."""


def test_stores_of_servers_are_served() -> None:
    fs = Fake()
    urls = UrlStore(fs, path="c", read_only=True)
    made: Any = None
    store: Any = None
    web = opened(f"{HERE}/c")
    both = WebStore.of_both(web, HTTPStore(HERE, client_options={"allow_http": True}))
    known: list[tuple[Any, type]] = [
        (FsspecStore(fs, path="c", read_only=True), ServedUrlStore), (urls, ServedUrlStore),
        (both, ServedWebStore), (ObjectStore(Objects(), read_only=True), ServedObjectStore),
    ]  # fmt: skip
    for store, kind in known:
        made = served(store)
        assert (type(made), made.read_only, made.forbidden_is_missing) == (kind, True, False)
        tolerant: Any = served(made, forbidden_is_missing=True)
        assert (type(tolerant), tolerant.forbidden_is_missing) == (kind, True)
        assert served(tolerant) is tolerant
        assert served(tolerant, forbidden_is_missing=True) is tolerant
        assert served(made) is made
        again: Any = tolerant.with_read_only(True)
        assert (again.forbidden_is_missing, again.read_only) == (True, True)
    assert made.store is store.store
    of_both: Any = served(both)
    assert of_both.objects is both.objects
    own = Own(fs, path="c")
    assert served(own) is own
    assert type(served(own, forbidden_is_missing=True)) is ServedUrlStore
    memory = MemoryStore()
    assert served(memory) is memory
    with pytest.raises(N5UnrepresentableError, match="expected a URL or a store of") as caught:
        served(memory, forbidden_is_missing=True)
    assert caught.value.kind == "option"


def test_a_users_class_with_methods_of_its_own() -> None:
    class Plain(ObjectStore[Any]):
        pass

    class Other(ObjectStore[Any]):
        async def getsize(self, key: str) -> int:
            return 0

    inner = Objects()
    for read_only in (True, False):
        found: Any = of_objects(Plain(inner, read_only=read_only))
        assert (type(found), found.read_only) == (ServedObjectStore, read_only)
        assert found.store is inner
    assert of_objects(Other(inner)) is None


METHODS: list[tuple[str, tuple[Any, ...], bool, Any]] = [
    ("get", ("k", PROTOTYPE), True, None),
    ("exists", ("k",), True, False),
    ("getsize", ("k",), True, ...),
    ("ends", ("k", 1, 1), True, None),
    ("entries", ("k",), True, ...),
    ("sizes_below", ("k",), True, ...),
    ("take_keys", ("k", print), True, ...),
    ("set", ("k", cpu.Buffer.from_bytes(b"1")), False, ...),
    ("set_if_not_exists", ("k", cpu.Buffer.from_bytes(b"1")), False, ...),
    ("update", (Update("k", lambda _: b"new"),), False, ...),
    ("delete", ("k",), False, ...),
    ("delete_dir", ("k",), False, ...),
]


@pytest.mark.parametrize(("name", "arguments", "is_read", "missing"), METHODS)
@pytest.mark.parametrize("tolerant", [False, True])
def test_each_method_raises_pythons_errors(
    monkeypatch: Any, name: str, arguments: Any, is_read: bool, missing: Any, tolerant: bool
) -> None:
    """A forbidden answer is an error, which names store and key, or means a missing key."""
    fs = Fake({"c/k": DATA} if is_read else {}, "gs")

    async def refuse(*_: Any, **__: Any) -> Any:
        err = RuntimeError("no")
        err.status = 403  # type: ignore[attr-defined]
        raise err

    reading = ("_cat_file", "_info", "_ls", "_size")
    for each in ("_rm_file", "_find", "_pipe_file", *(reading if is_read else ())):
        setattr(fs, each, refuse)
    store: Any = served(UrlStore(fs, path="c"), forbidden_is_missing=tolerant)
    if tolerant and missing is not ...:
        assert run(getattr(store, name)(*arguments)) is missing
        return
    verb = "read" if is_read else "write"
    with pytest.raises(PermissionError, match=f"abc://c: k/?: expected to {verb} it, but .* 403"):
        run(getattr(store, name)(*arguments))


def test_listings_raise_pythons_errors() -> None:
    store: Any = served(
        UrlStore(
            Fake(
                {
                    "ls c/k": OSError(5, "torn"),
                    "find c": OSError(5, "x"),
                    "find c/": OSError(5, "x"),
                }
            ),
            path="c",
        )
    )

    async def all_of(keys: Any) -> list[str]:
        return [key async for key in keys]

    for keys, key in [
        (store.list_dir("k"), "k"),
        (store.list(), "/"),
        (store.list_prefix(""), "/"),
    ]:
        with pytest.raises(OSError, match=f"abc://c: {key}: "):
            run(all_of(keys))
    good: Any = served(UrlStore(Fake(), path="c"))
    part = RangeByteRequest(1, 3)
    found = run(good.get_partial_values(PROTOTYPE, [("k", part), ("k", None), ("x", None)]))
    assert [each and each.to_bytes() for each in found] == [b"12", DATA, None]
    assert run(good.exists(key="k"))


def test_reading_without_a_loop() -> None:
    inner = Objects()
    obstore.put(inner, "k", DATA)
    store: Any = served(ObjectStore(inner))
    assert bytes(store.get_waiting("k")) == DATA
    assert store.get_waiting("x") is None
    assert served(UrlStore(Fake(), path="c")).get_waiting is None  # type: ignore[attr-defined]
    broken: Any = served(ObjectStore(S3Store("b", endpoint="https://h", region="r")))
    broken.__dict__["_x"] = 1

    def fail(*_: Any) -> Any:
        raise OSError(5, "torn")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("n5zarr.servers.object_store.value_of_object", fail)
        with pytest.raises(OSError, match=r"s3://b.*: k: torn"):
            broken.get_waiting("k")


def test_an_option_that_a_library_does_not_know() -> None:
    fs: Any = Fake()
    fs.files["c/k"] = TypeError("__init__() got an unexpected keyword argument 'protocl'")
    fs.files["c/m"] = TypeError("other")
    fs.files["c/n"] = TypeError("unexpected keyword argument 'xyz'. Did you mean 'abcd'?")
    store: Any = served(UrlStore(fs, path="c"))
    message = (
        "^abc://c: storage_options: expected options of Fake, got 'protocl'; did you mean 'prot"
    )
    with pytest.raises(N5UnrepresentableError, match=message) as caught:
        run(store.get("k", PROTOTYPE))
    assert caught.value.kind == "option"
    with pytest.raises(TypeError, match="other"):
        run(store.get("m", PROTOTYPE))
    with pytest.raises(N5UnrepresentableError, match=r"got 'xyz'$"):
        run(store.get("n", PROTOTYPE))


# --------------------------------------------------------------------------------- no server there


def test_a_server_that_is_not_there_is_found_early(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "getproxies", dict)
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def never() -> Any:
            await asyncio.sleep(30)

        async def soon() -> str:
            return "answer"

        def at(endpoint: str, **config: Any) -> Any:
            fs = SimpleNamespace(endpoint_url=endpoint, config_kwargs=config)
            return SimpleNamespace(fs=fs)

        with pytest.raises(ConnectionError, match=f"Cannot connect to host {url[7:]}") as caught:
            run(module._first(at(url), never()))
        assert caught.value.errno == 5
        assert run(module._first(at(url), soon())) == "answer"
        asked: list[Any] = []

        async def connects(host: str, port: int) -> bool:
            asked.append((host, port))
            return False

        monkeypatch.setattr(module, "_connects", connects)
        for endpoint in ("https://h", "http://h"):
            with pytest.raises(ConnectionError):
                run(module._first(at(endpoint), never()))
        assert asked == [("h", 443), ("h", 80)]
        taken.listen()

        async def later() -> str:
            await asyncio.sleep(0.1)
            return "answer"

        monkeypatch.undo()
        monkeypatch.setattr(module, "getproxies", dict)
        monkeypatch.setattr(module, "_PATIENCE", 0.01)
        assert run(module._first(at(url), later())) == "answer"
        assert run(module._first(at(""), later())) == "answer"
        assert run(module._connects("127.0.0.1", taken.getsockname()[1]))


def test_the_address_of_a_server(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "getproxies", dict)
    s3: Any = {"endpoint": "https://h:1", "region": "r"}
    for inner, expected in [
        (S3Store("b", **s3), "https://h:1"),
        (S3Store("b", client_options={"proxy_url": "http://p"}, **s3), ""),
        (HTTPStore("https://h/c"), "https://h/c"),
        (Objects(), ""),
    ]:
        assert module._server_of(ObjectStore(inner)) == expected
    systems: list[tuple[dict[str, Any], str]] = [
        ({"endpoint_url": "http://h"}, "http://h"), ({"endpoint_url": None}, ""), ({}, ""),
        ({"endpoint_url": "http://h", "config_kwargs": {"proxies": 1}}, ""),
        ({"endpoint_url": "http://h", "config_kwargs": {"x": 1}}, "http://h"),
    ]  # fmt: skip
    for fs, expected in systems:
        assert module._server_of(SimpleNamespace(fs=SimpleNamespace(**fs))) == expected
    assert module._server_of(object()) == ""
    monkeypatch.setattr(module, "getproxies", lambda: {"http": "p"})
    assert module._server_of(ObjectStore(S3Store("b", **s3))) == ""


# ------------------------------------------------------------------------------ both libraries


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "c.n5").mkdir()
    (tmp_path / "c.n5/k").write_bytes(DATA)
    return tmp_path


@pytest.mark.parametrize(
    ("handler", "left"), [(Files, False), (PackedFiles, True), (FilesWithoutLength, True)]
)
def test_a_web_server_is_read_by_obstore_as_long_as_it_understands_it(
    files: Path, monkeypatch: Any, caplog: Any, handler: Any, left: bool
) -> None:
    caplog.set_level("DEBUG", "n5zarr.servers.web_store")
    with serving(lambda *a: handler(*a, directory=str(files))) as url:
        store: Any = chosen_store(f"{url}/c.n5", None, read_only=False)[0]
        asked: list[Any] = []
        whole, get = web_store._whole, store.objects.get

        async def noting(inner: Any, key: str) -> Any:
            asked.append(key)
            return await whole(inner, key)

        async def noting_parts(*given: Any) -> Any:
            asked.append(given[2])
            return await get(*given)

        monkeypatch.setattr(web_store, "_whole", noting)
        store.objects.get = noting_parts
        assert (store.read_only, store.objects.read_only) == (True, True)
        assert [read(store, "k"), read(store, "x")] == [DATA, None]
        assert asked == ["x"]  # the first tells whether the server keeps connections
        assert read(store, "k") == DATA
        assert asked[:2] == ["x", "k"]
        assert (store.objects is None) is left
        said = [line for line in caplog.messages if "fsspec reads it from now on" in line]
        assert len(said) == left
        if not left:
            obj: Any = chosen_store(f"{url}/c.n5", None, read_only=True)[0]
            assert obj.keeps_connections is None
            monkeypatch.setattr(FORKS, "has_lost_obstore", True)
            asked.clear()
            store.keeps_connections = True
            assert (read(store, "k"), asked) == (DATA, [])


def test_parts_of_a_web_server_that_has_no_ranges(files: Path) -> None:
    with static(files) as url:
        store: Any = chosen_store(f"{url}/c.n5", None, read_only=True)[0]
        assert read(store, "k", RangeByteRequest(2, 5)) == b"234"
        assert store.objects is None
        assert WebStore.of(store).objects is None
        assert read(store, "k") == DATA
        assert sync(store.entries("")) == [Entry("k", False)]


def test_an_error_of_obstore_is_no_reason_to_give_up(monkeypatch: Any, files: Path) -> None:
    async def fail(*_: Any) -> Any:
        raise ValueError("other")

    with static(files) as url:
        store: Any = chosen_store(f"{url}/c.n5", None, read_only=True)[0]
        store.keeps_connections = True
        monkeypatch.setattr(web_store, "_whole", fail)
        with pytest.raises(ValueError, match="other"):
            read(store, "k")
        assert store.objects is not None
        store.keeps_connections = None
        monkeypatch.setattr(store, "_read_from_web", fail)
        with pytest.raises(ValueError, match="other"):  # of the second, which obstore sends
            read(store, "k")
