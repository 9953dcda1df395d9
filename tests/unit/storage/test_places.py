"""Locations, their names, what is there instead, and what messages hide of them."""

from __future__ import annotations

import errno
import os
import socket
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
import zarr
from obstore.store import AzureStore, HTTPStore, S3Store
from obstore.store import LocalStore as ObjectsInFiles
from obstore.store import MemoryStore as ObjectsInMemory
from zarr.storage import (
    FsspecStore,
    LocalStore,
    MemoryStore,
    ObjectStore,
    StorePath,
    WrapperStore,
    ZipStore,
)

from n5zarr import CacheOptions, N5Store
from n5zarr.errors import N5UnrepresentableError
from n5zarr.storage.confined import ConfinedStore, confined, is_confined
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.not_found import (
    NotFoundError,
    check_local_root,
    listed,
    local_root_message,
    meant,
    similar,
)
from n5zarr.storage.opening import open_storage
from n5zarr.storage.place import Place, place_of
from n5zarr.storage.secrets import named, secrets_in, secrets_of_store, shown, without_secrets
from n5zarr.storage.store_locations import (
    has_sync_methods,
    innermost,
    name_of_data,
    name_of_objects,
    overlap,
    overlap_with,
    places_behind,
    real_name,
)
from n5zarr.storage.url import is_chain, is_of_one_key, is_remote, is_url, local_path, split_query
from n5zarr.storage.zarr_store import ZarrStorage
from tests.refusals import refused
from tests.unit.storage.posix import posix

# ---------------------------------------------------------------------------------------- URLs


@pytest.mark.parametrize(
    ("text", "url", "chain"),
    [("s3://b/a", True, False), ("S3+x.y-1://b", True, False), ("1s://b", False, False),
     ("file:///a", False, False), ("FILE://a", False, False), ("a/b", False, False),
     (5, False, None),
     ("simplecache::s3://b", True, True), ("zip::no/such", True, True),
     ("http://[::1]:80/a", True, False), ("x::http://[fe80::1]/a", True, True)],
)  # fmt: skip
def test_urls_are_told_from_paths(text: Any, url: bool, chain: Any) -> None:
    assert is_url(text) is url
    assert chain is None or is_chain(text) is chain


@posix
def test_parts_of_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zip::a").touch()
    assert not is_url("zip::a")
    for url, path in [
        ("file:///a%20b", "/a b"), ("file://localhost/a", "/a"), ("file:/a", "/a"),
        ("a%20b", "a%20b"), ("file:a", "file:a"), ("file:///C:/a", "/C:/a"),
    ]:  # fmt: skip
        assert local_path(url) == path
    for url, parts in [
        ("HTTP://h/a?b=1?c", ("HTTP://h/a", "?b=1?c")), ("https://h/a", ("https://h/a", "")),
        ("s3://b/a?b", ("s3://b/a?b", "")),
    ]:  # fmt: skip
        assert split_query(url) == parts
    for url, like, expected in [
        ("s3://a", "", True), ("S3A://a", "", True), ("memory://a", "", False),
        ("memory://a", "memory://b", True), ("x::s3://a", "s3://a", False),
        ("abc://a", "x::abc://a", False), ("gs://a", "x::y", True), ("a", "b", False),
    ]:  # fmt: skip
        assert is_remote(url, like) is expected


@pytest.mark.parametrize(
    ("err", "expected"),
    [(OSError(), True), (FileNotFoundError(), True), (ConnectionError(), False),
     (TimeoutError(), False), (zipfile.BadZipFile(), True), (zlib.error(), True),
     (EOFError(), True),
     (ValueError(), False), (type("E", (Exception,), {"status": 403})(), True),
     (type("E", (Exception,), {"status": 401})(), True),
     (type("E", (Exception,), {"status": 402})(), False)],
)  # fmt: skip
def test_errors_of_one_key(err: Exception, expected: bool) -> None:
    assert is_of_one_key(err) is expected


# -------------------------------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("given", "location", "path"),
    [
        ("a/b", Path("a/b"), ""), ("n5://a", Path("a"), ""), ("n5://", Path(), ""),
        ("", Path(), ""), ("~/a", Path.home() / "a", ""), (Path("~/a"), Path.home() / "a", ""),
        ("file:///a%20b", Path("/a b"), ""), ("s3://b/a.n5", "s3://b/a.n5", ""),
        ("n5://s3://b/a", "s3://b/a", ""), ("s3://b/a.n5|n5:/em/s0/", "s3://b/a.n5", "em/s0"),
        ("a.n5|n5:", Path("a.n5"), ""),
        ("s3://b/a.zip|zip:/c.n5/|n5:d", "zip://c.n5::s3://b/a.zip", "d"),
        ("/x/a.zip|zip:|n5:d", "zip://::file:///x/a.zip", "d"),
    ],
)  # fmt: skip
def test_texts_are_parsed(given: Any, location: Any, path: str) -> None:
    assert place_of(given) == Place(location, path)


@pytest.mark.parametrize(
    ("given", "options", "match"),
    [
        ("a|tar:b|n5:c", {}, r"only '\|zip:' before '\|n5:', got '\|tar:' in 'a\|tar:b'"),
        ("a|zip:b|zip:c|n5:d", {}, r"got '\|zip\|zip:'"),
        (5, {}, "a path, a URL, a store of zarr's .*, got int"),
        ("a", {"backend": "x"}, "backend: expected one of 'fsspec', 'obstore', got 'x'"),
        ("a", {"backend": "obstore"}, "backend: expected only with a URL, got it with 'a'"),
        (ObjectsInMemory(), {"storage_options": {"a": 1}}, "storage_options: expected none with"),
        (StorePath(MemoryStore(), "a"), {"storage_options": {"a": 1}}, "which has its own options"),
        ("a", {"fs": 5}, "fs: expected a file system of fsspec's and a path, got 5 and 'a'"),
        (5, {"fs": fsspec.filesystem("memory")}, "fs: expected a file system"),
        ("a", {"fs": fsspec.filesystem("memory"), "storage_options": {"a": 1}},
         "expected none with"),
    ],
)  # fmt: skip
def test_what_is_no_location(given: Any, options: Any, match: str) -> None:
    with refused(N5UnrepresentableError, "option", match):
        place_of(given, **options)


def test_options_stay_with_a_place(tmp_path: Path) -> None:
    options = {"anon": True}
    place = place_of("s3://b", options, "fsspec")
    assert place == Place("s3://b", "", options, "fsspec")
    assert place_of(place, {"x": 1}, "obstore") is place
    two: dict[str, Any] = {"one_of_two": True}
    assert place_of(tmp_path, options, "fsspec", **two) == Place(tmp_path)
    assert place_of("s3://b", options, "fsspec", **two) == place
    assert place_of(tmp_path, options) == Place(tmp_path, "", options)
    store = MemoryStore()
    assert place_of(store, options) == Place(store, "", options)


def test_objects_that_name_a_location(tmp_path: Path) -> None:
    memory, local = MemoryStore(), LocalStore(tmp_path)
    array = zarr.create_array(local, name="em/s0", shape=(3,), dtype="u1")
    assert place_of(array) == Place(tmp_path / "em/s0")
    assert place_of(zarr.open_group(local)) == Place(tmp_path)
    assert place_of(StorePath(memory, "g")) == Place(memory, "g")
    inside = ConfinedStore(tmp_path)
    assert place_of(StorePath(inside, "g")) == Place(inside, "g")
    objects = ObjectsInMemory()
    found: Any = place_of(objects).location
    assert (type(found), found.store) == (ObjectStore, objects)
    assert place_of(ObjectsInFiles(tmp_path)) == Place(tmp_path)
    fs = fsspec.filesystem("memory", asynchronous=False)
    found = place_of("n5:///x/c.n5", fs=fs).location
    assert (type(found), found.path, found.fs.sync_fs) == (FsspecStore, "/x/c.n5", fs)
    assert place_of(str(tmp_path), fs=fsspec.filesystem("file")) == Place(tmp_path)
    folder = fsspec.filesystem("dir", path="/x/", fs=fs)
    found = place_of(folder.get_mapper("c.n5")).location
    assert (found.path, found.fs.sync_fs) == ("/x/c.n5", fs)
    inner = FsspecStore(found.fs, read_only=True, path="x", allowed_exceptions=(KeyError,))
    found = place_of(StorePath(inner, "y")).location
    kept = (found.fs, found.path, found.read_only, found.allowed_exceptions)
    assert kept == (inner.fs, "x/y", True, (KeyError,))


def test_objects_of_universal_pathlib(tmp_path: Path) -> None:
    upath = pytest.importorskip("upath").UPath
    assert place_of(upath(tmp_path)) == Place(tmp_path)
    assert place_of(upath(f"file://{tmp_path}")) == Place(tmp_path)
    found = place_of(upath("s3://b/c", anon=True, key="k"), {"anon": False})
    assert found == Place("s3://b/c", "", {"anon": False, "key": "k"})
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("c/k", b"1")
    inside = upath("zip://c", fo=str(tmp_path / "a.zip"))
    store: Any = place_of(inside).location
    assert (type(store), store.path) == (FsspecStore, "c")
    with pytest.raises(N5UnrepresentableError, match="expected none with"):
        place_of(inside, {"x": 1})


@pytest.mark.parametrize(
    ("location", "names", "form", "url"),
    [
        (Path("/a.n5/b.zarr"), ("/", "a.n5", "b.zarr"), "zarr", False),
        ("http://h/a.n5?x=.zarr", ["http:", "", "h", "a.n5"], "n5", True),
        (MemoryStore(), (), None, False), (Path("/a/b"), ("/", "a", "b"), None, False),
    ],
)  # fmt: skip
def test_names_of_a_place(location: Any, names: Any, form: Any, url: bool) -> None:
    place = Place(location)
    assert (place.names, place.format, place.is_url) == (names, form, url)
    assert place.is_named("n5") == any("n5" in name for name in names)


# ------------------------------------------------------------------------------------- opening


@pytest.mark.parametrize(
    ("place", "options", "match"),
    [
        (Place(Path("a"), "em"), {}, "the root of a container, got its node 'em'"),
        (Place(Path("a"), "", {}), {}, "storage_options: expected only with a URL, got it with"),
        (Place(MemoryStore()), {"durability": "durable"}, "'durable' only with local files"),
        (Place("s3://b"), {"durability": "overwrite"}, "only with local files, got 's3://b'"),
        (Place(Path("a")), {"cache": CacheOptions()}, "cache: expected a remote container"),
        (Place(Path("a")), {"forbidden_is_missing": True}, "forbidden_is_missing: expected a URL"),
    ],
)
def test_options_that_do_not_apply(place: Place, options: Any, match: str) -> None:
    with refused(N5UnrepresentableError, "option", match):
        open_storage(place, **options)


def test_storage_gets_its_options(tmp_path: Path) -> None:
    cases: list[tuple[Any, bool, bool]] = [
        (tmp_path, False, False), (LocalStore(tmp_path), False, True),
        (LocalStore(tmp_path, read_only=True), True, False),
    ]  # fmt: skip
    for given, read_only, writes in cases:
        found: Any = open_storage(Place(given), durability="durable")
        assert (found.root, found.durability) == (tmp_path, "durable")
        assert (found.read_only, found.store.read_only) == (read_only, not writes)
    inside = open_storage(Place(ConfinedStore(tmp_path)))
    assert (inside.root, inside.read_only, type(inside.store)) == (None, True, ConfinedStore)
    url: Any = open_storage(Place("memory://x/c.n5"), read_only=True, cache=CacheOptions())
    assert (url.store.read_only, url.has_cache, url.backend[:6]) == (True, True, "fsspec")
    tolerant: Any = open_storage(Place("memory://x/c.n5"), forbidden_is_missing=True)
    assert (tolerant.store.read_only, tolerant.store.forbidden_is_missing) == (False, True)
    again = tolerant._held.reopen(backend="fsspec")[0]
    assert (again.forbidden_is_missing, again.read_only) == (True, False)


# ----------------------------------------------------------------------------------- what is there


def test_what_is_at_a_path_instead(tmp_path: Path) -> None:
    for name, data in [("a.h5", b"\x89HDF\r\n\x1a\n"), ("b.zip", b"PK\3\4x"), ("f", b"x")]:
        (tmp_path / name).write_bytes(data)
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("k", b"")
    for name, member in [("d.zip", "x.n5/attributes.json"), ("e.zip", "attributes.json")]:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, b"{}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "many").mkdir()
    for i in range(7):
        (tmp_path / f"many/n{i}").touch()
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        for name, text in [
            ("a.h5", "got an HDF5 file; "), ("b.zip", "got a damaged zip file; check how it was"),
            ("f", "got a file; "), ("c.zip", "got a zip file without a container; it has no attri"),
            ("d.zip", f"got a zip file; open '{tmp_path}/d.zip|zip:x.n5|n5:'"),
            ("e.zip", f"got a zip file; open 'zip://{tmp_path}/e.zip'"),
            ("empty", "got an empty directory; the root"),
            ("many", "got a directory with only n0, n1, n2, n3, n4, ...; the root of a"),
            ("link", "got a link to nowhere, which does not exist"),
            ("pipe", "got a named pipe; a container is a directory"),
            ("socket", "got a socket; a container is a directory"),
        ]:  # fmt: skip
            found = local_root_message(tmp_path / name)
            assert found.startswith(f"{tmp_path / name}: expected an N5 container, {text}")
    assert "got a device; " in local_root_message(Path("/dev/null"))
    for name, text in [
        ("f/x", f"{tmp_path}/f is a file"),
        ("emty/x", f"is {tmp_path}; did you mean {tmp_path}/empty?"),
        ("zzz/x", f"the nearest existing directory is {tmp_path}"),
    ]:  # fmt: skip
        found = local_root_message(tmp_path / name)
        assert found.startswith(f"{tmp_path / name} does not exist; ")
        assert text in found


def test_a_root_is_checked(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    for name, needs, is_right in [
        ("", True, True), ("", False, True), ("x", False, True), ("x", True, False),
        ("f", False, False), ("f/x", False, True), ("f/x", True, False),
    ]:  # fmt: skip
        if is_right:
            check_local_root(tmp_path / name, needs_directory=needs)
        else:
            with pytest.raises(NotFoundError):
                check_local_root(tmp_path / name, needs_directory=needs)
    assert (similar("EMM", ["x", "Em"]), similar("q", ["x"])) == ("Em", None)
    assert (meant("q", ["x"]), meant("xx", iter(["xxx"]))) == ("", "; did you mean 'xxx'?")
    assert (listed(list("edcba")), listed(list("fedcba"))) == (
        "a, b, c, d, e",
        "a, b, c, d, e, ...",
    )


def test_links_out_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "c"
    (root / "d").mkdir(parents=True)
    (root / "d/f").touch()
    for link, to in [("in", "d"), ("up", ".."), ("self", "."), ("loop", "loop"), ("dead", "d/x"),
                     ("out", "../o"), ("deep", "d/f")]:  # fmt: skip
        (root / link).symlink_to(to)
    os.mkfifo(root / "pipe")
    expected = {
        "": True, "d": True, "d/f": True, "d/x/y": True, "d/f/x": True, "in/f": True, "up": False,
        "up/c/d": False, "self": False, "loop": False, "dead": True, "out": False, "pipe": False,
        "deep": True, "n" * 300: True,
    }  # fmt: skip
    assert {key: is_confined(str(root), key) for key in expected} == expected

    def refuse(path: str) -> Any:
        raise PermissionError(errno.EACCES, path)

    monkeypatch.setattr(os, "lstat", refuse)
    with pytest.raises(PermissionError):
        is_confined(str(root), "d")
    assert type(confined(LocalStore(root))) is ConfinedStore
    memory = MemoryStore()
    assert confined(memory) is memory


# ------------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("text", "secrets", "expected"),
    [
        ("https://me:word@h/a?x=1 b", [], "https://h/a b"), ("http://me@h", [], "http://h"),
        ("s3://me:word@b/a?x=1", [], "s3://b/a?x=1"), ("s3://me@b", [], "s3://me@b"),
        ("s3://me:wo/rd@b/a", [], "s3://b/a"), ("http://h:80/a@b", [], "http://h:80/a@b"),
        ("x?my_key=abc&b=1", [], "x?my_key=***&b=1"),
        ("x?b=1;token=abc d", [], "x?b=1;token=*** d"),
        ("?skip_signature=true", [], "?skip_signature=true"),
        ("a word, sword, words", ["word"], "a ***, sword, words"), ("a wor b", ["wor"], "a wor b"),
        ("wo%2Frd wo/rd d28vcmQ=", ["wo/rd"], "*** *** ***"), ("x%20word", ["word"], "x%20***"),
        ("wo rd", ["wo%20rd"], "***"),
    ],
)  # fmt: skip
def test_texts_without_secrets(text: str, secrets: Any, expected: str) -> None:
    assert without_secrets(text, iter(secrets)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("https://me:w:d@h/a?t=1&k=22", {"me", "w:d", "me:w:d", "t=1&k=22", "1", "22"}),
        ("https://me@h", {"me"}), ("s3://me@b", set()), ("s3://me:w@b", {"me:w", "me", "w"}),
        ("s3://b/a?my_token=x&b=1", {"x"}), ("x::https://me@h", {"me"}), ("a@b", set()),
        ({"key": "k", "anon": "x"}, {"k"}), ({"token": "anon"}, set()), ({"token": "Anon"}, set()),
        ({"auth": ["Bearer abc", b"def"]}, {"Bearer abc", "abc", "def"}),
        ({"headers": {"X": ("v",)}}, {"v"}), ({"connection_str": "A=b;C=d"}, {"A=b;C=d", "b", "d"}),
        ({"a": {"secret": {"x"}}, "key": 5}, {"x"}), (None, set()),
    ],
)  # fmt: skip
def test_secrets_of_options(source: Any, expected: set[str]) -> None:
    assert secrets_in(source) == expected
    assert secrets_in("s3://u:v@b", source) == expected | {"u:v", "u", "v"}


def test_secrets_of_stores() -> None:
    keys: Any = {"access_key_id": "akid", "secret_access_key": "word"}
    s3 = S3Store("buck", prefix="pre", region="r", **keys)
    found = secrets_of_store(ObjectStore(s3))
    assert {"akid", "word"} <= found
    assert not {"buck", "pre", "r"} & found
    fs = SimpleNamespace(storage_options={"key": "kkk", "secret": "folder"})
    inner = SimpleNamespace(sync_fs=fs, storage_options={"key": "other"})
    store = SimpleNamespace(fs=inner, path="a/folder")
    assert secrets_of_store(store) == {"kkk"}
    provider = SimpleNamespace(secret="hidden")  # noqa: S106 - of nobody
    objects = SimpleNamespace(credential_provider=provider, url="https://me:w0rd@h/c")
    assert secrets_of_store(SimpleNamespace(store=objects)) == {"hidden", "me", "w0rd", "me:w0rd"}
    assert secrets_of_store(5) == set()
    assert (named("https://me:w@h/me"), shown("s3://me:w@h")) == ("https://h/me", "'s3://h'")
    assert shown(5) == "5"


# ------------------------------------------------------------------------------- names of stores


def test_names_of_objects(tmp_path: Path) -> None:
    for inner, name in [
        (S3Store("b", prefix="p/q", region="r"), "s3://b/p/q"), (S3Store("b", region="r"), "s3://b"),
        (AzureStore("c", account_name="a", skip_signature=True), "az://c"),
        (HTTPStore("https://me:word@h/c?x=1"), "https://h/c"),
    ]:  # fmt: skip
        assert name_of_objects(ObjectStore(inner)).rstrip("/") == name
    assert name_of_objects(ObjectStore(ObjectsInMemory())).startswith("object_store://<obs")
    for store, names in [
        (ObjectStore(ObjectsInFiles(tmp_path)), [str(tmp_path / "g")]),
        (ObjectStore(ObjectsInFiles()), ["/g"]),
        (WrapperStore(LocalStore(tmp_path)), [str(tmp_path / "g")]),
        (ZipStore(tmp_path / "a.zip", mode="w"), [str(tmp_path / "a.zip")]),
    ]:  # fmt: skip
        found = places_behind(ZarrStorage(store), "g")
        assert found[-len(names) :] == names
    memory = MemoryStore()
    assert places_behind(ZarrStorage(memory), "g") == [f"{memory}/g"]
    (tmp_path / "link").symlink_to(tmp_path / "x")
    assert places_behind(LocalFiles(tmp_path / "link"), "g") == [str(tmp_path / "x/g")]
    assert name_of_data(N5Store(tmp_path / "link")) == str(tmp_path / "x")
    assert name_of_data(WrapperStore(memory)) == str(memory)
    assert innermost(WrapperStore(WrapperStore(memory))) is memory
    assert (real_name("s3://b/a/"), real_name("a/../b")) == ("s3://b/a", str(Path("b").absolute()))
    folder = fsspec.filesystem("dir", path="/x", fs=fsspec.filesystem("memory"))
    wrapped = fsspec.implementations.asyn_wrapper.AsyncFileSystemWrapper(folder, asynchronous=True)
    found = places_behind(ZarrStorage(FsspecStore(wrapped, path="c/")), "g")
    assert found[1:] == ["dir://c/g", "memory:///x/c/g"]


def test_places_that_overlap(tmp_path: Path) -> None:
    assert overlap(["/a", "/b"], ["/c", "/b/x"]) == ("/b", "/b/x")
    assert overlap(["/a/x"], ["/a"]) == ("/a/x", "/a")
    assert overlap(["/a"], ["/ab", "/b"]) is None
    storage = LocalFiles(tmp_path / "c.n5")
    assert overlap_with([f"{tmp_path}/x/../c.n5"], storage, "g") == (
        f"{tmp_path}/c.n5", f"{tmp_path}/c.n5/g",
    )  # fmt: skip
    assert overlap_with([f"{tmp_path}/c.n5/h"], storage, "g") is None


def test_synchronous_methods_are_those_of_the_class() -> None:
    class OwnGet(MemoryStore):
        async def get(self, *args: Any, **options: Any) -> Any: ...

    class Both(OwnGet):
        def get_sync(self, *args: Any, **options: Any) -> Any: ...

    stores = [MemoryStore(), OwnGet(), Both(), WrapperStore(MemoryStore()), WrapperStore(OwnGet()),
              ObjectStore(ObjectsInMemory())]  # fmt: skip
    assert [has_sync_methods(store) for store in stores] == [True, False, True, True, False, False]
