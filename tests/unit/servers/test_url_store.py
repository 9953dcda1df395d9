"""zarr's store over fsspec: what file systems are asked, and what becomes of their answers."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any, override

import pytest
from aiohttp import ClientResponseError

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

from pathlib import Path

import fsspec
from fsspec.asyn import AsyncFileSystem
from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.buffer import cpu
from zarr.storage import FsspecStore

from n5zarr._zarr import sync
from n5zarr.errors import N5UnsupportedError
from n5zarr.servers import url_store
from n5zarr.servers.opening import store_of_url
from n5zarr.servers.url_store import UrlStore
from n5zarr.storage.forks import FORKS
from n5zarr.storage.requests import Entry
from tests.remote.servers import Files, serving, static

run: Any = asyncio.run
PROTOTYPE = cpu.buffer_prototype
DATA = b"0123456789"


class Fake(AsyncFileSystem):  # type: ignore[misc] # fsspec has no types
    """A file system in a dictionary, which notes what it is asked."""

    cachable = False

    def __init__(self, files: dict[str, Any] | None = None, protocol: Any = "abc") -> None:
        super().__init__(asynchronous=True)
        self.files = {"c/k": DATA} if files is None else files
        self.protocol = protocol
        self.asked: list[Any] = []

    def _value(self, name: str) -> Any:
        value = self.files.get(name, FileNotFoundError(name))
        if isinstance(value, Exception):
            raise value
        return value

    async def _cat_file(self, name: str, start: Any = None, end: Any = None, **options: Any) -> Any:
        self.asked.append(("cat", name, start, end, options))
        return self._value(name)[start:end]

    async def _rm_file(self, name: str) -> None:
        self.asked.append(("rm", name))
        self._value(name)

    async def _info(self, name: str) -> Any:
        value = self._value(name)
        return value if isinstance(value, dict) else {"size": len(value)}

    async def _find(self, name: str, *, detail: bool = False, **options: Any) -> Any:
        self.asked.append(("find", name, options))
        found = self._value(f"find {name}")
        return {each["name"]: each for each in found} if detail else found

    async def _ls(self, name: str, *, detail: bool) -> Any:
        self.asked.append(("ls", name, detail))
        return self._value(f"ls {name}")

    def invalidate_cache(self, path: str | None = None) -> None:
        self.asked.append(("forget", path))

    def unstrip_protocol(self, name: str) -> str:
        return f"abc://{name}"


def store_of(fs: Any, path: str = "c", **options: Any) -> UrlStore:
    return UrlStore(fs, path=path, **options)


def read(store: UrlStore, key: str = "k", part: Any = None) -> bytes | None:
    value = run(store.get(key, PROTOTYPE, part))
    return None if value is None else value.to_bytes()


@pytest.mark.parametrize(
    ("protocol", "options"),
    [("abc", {}), (("x", "s3"), {"max_concurrency": 1}), (("gs", "x"), {"concurrency": 1})],
)
def test_a_value_is_read_in_one_request(protocol: Any, options: Any) -> None:
    fs = Fake(protocol=protocol)
    store = store_of(fs)
    assert (read(store), read(store, "x")) == (DATA, None)
    assert fs.asked[0] == ("cat", "c/k", None, None, options)


@pytest.mark.parametrize(
    ("part", "expected", "limits"),
    [
        (RangeByteRequest(2, 5), b"234", (2, 5)),
        (RangeByteRequest(8, 12), b"89", (8, 12)),
        (OffsetByteRequest(7), b"789", (7, None)),
        (SuffixByteRequest(3), b"789", (-3, None)),
        (RangeByteRequest(5, 5), b"", None),
        (SuffixByteRequest(0), b"", None),
    ],
)
def test_a_part_is_read_and_checked(part: Any, expected: bytes, limits: Any) -> None:
    fs = Fake()
    assert read(store_of(fs), part=part) == expected
    assert [each[2:4] for each in fs.asked] == ([] if limits is None else [limits])


@pytest.mark.parametrize("part", [None, RangeByteRequest(1, 2)])
@pytest.mark.parametrize(
    ("error", "protocol", "missing"),
    [(FileNotFoundError(), "abc", True), (IsADirectoryError(), "abc", True),
     (KeyError("k"), "zip", True), (KeyError("k"), "abc", False), (OSError("x"), "zip", False)],
)  # fmt: skip
def test_a_missing_value_and_a_failed_request(
    part: Any, error: Any, protocol: str, missing: bool
) -> None:
    store = store_of(Fake({"c/k": error}, protocol))
    if missing:
        assert read(store, part=part) is None
        run(store.delete("k"))
    else:
        with pytest.raises(type(error)):
            read(store, part=part)
        with pytest.raises(type(error)):
            run(store.delete("k"))


def test_a_part_behind_the_end_is_empty() -> None:
    store = store_of(Fake({"c/k": ValueError("Range Not Satisfiable")}))
    assert read(store, part=RangeByteRequest(12, 13)) == b""
    with pytest.raises(ValueError, match="Satisfiable"):
        read(store)


def test_parts_of_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """s3fs and gcsfs show no headers, so that they are asked in another way."""
    s3, asked = Fake(protocol="s3"), []

    async def part(*given: Any) -> bytes:
        asked.append(given)
        return b"12"

    monkeypatch.setattr(url_store, "part_in_s3", part)
    wanted = RangeByteRequest(1, 3)
    assert read(store_of(s3), part=wanted) == b"12"
    assert (asked, len(s3.asked)) == ([], 1)  # an older s3fs
    s3._call_s3 = None
    assert read(store_of(s3), part=wanted) == b"12"
    assert asked == [(s3, "c/k", wanted)]
    gs, header = Fake(protocol="gs"), "bytes 1-2/10"
    gs.url = lambda name: f"url of {name}"

    async def call(*given: Any, headers: Any) -> Any:
        asked.append((*given, headers))
        return {"Content-Range": header}, b"12"

    gs._call = call
    assert read(store_of(gs), part=wanted) == b"12"
    assert asked[-1] == ("GET", "url of c/k", {"Range": "bytes=1-2"})
    header = "bytes 2-3/10"
    with pytest.raises(OSError, match="expected the bytes 1 to 3"):
        read(store_of(gs), part=wanted)


def test_keys_are_removed_by_their_names() -> None:
    fs = Fake({"c/a*": b"", "c/d/x": b"", "c/d/y": FileNotFoundError(), "c/dx": b"",
               "find c/d": ["c/d/x", "c/dx", "c/d", "c/d/y"], "find c": ["c/a*", "c", "c/dx"],
               "find ": ["p", "q"], "p": b"", "q": b""})  # fmt: skip
    store = store_of(fs)

    def removed(action: Any) -> list[str]:
        fs.asked.clear()
        run(action)
        return sorted(each[1] for each in fs.asked if each[0] == "rm")

    assert removed(store.delete("a*")) == ["c/a*"]
    assert removed(store.delete("missing")) == ["c/missing"]
    assert removed(store.delete_dir("/d/")) == ["c/d/x", "c/d/y"]
    assert ("find", "c/d", {"withdirs": False}) in fs.asked
    assert removed(store.delete_dir("missing")) == []
    assert removed(store.clear()) == ["c/a*", "c/dx"]
    assert removed(store_of(fs, "").clear()) == ["p", "q"]
    for action in (store.with_read_only(True).delete, store.with_read_only(True).delete_dir):
        with pytest.raises(ValueError, match="read-only"):
            run(action("d"))


def test_a_value_exists_and_a_directory_does_not() -> None:
    store = store_of(Fake({"c/k": DATA, "c/d": {"type": "directory"}, "c/f": {"type": "file"}}))
    assert [run(store.exists(key)) for key in "kdfx"] == [True, False, True, False]
    assert run(store.getsize("k")) == 10


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ([], []),
        ([{"name": "c/d/b", "type": "file"}, {"name": "c/d/a", "type": "directory"}],
         [Entry("a", True), Entry("b", False)]),
        ([{"name": "c/d/", "type": "file"}], []),
        ([{"name": "c/d/a/"}, {"name": "c/d/a"}, {"name": "c/d/.."}, {"name": "c/d/a/b"}],
         [Entry("a", True)]),
        ([{"name": "c/d/a"}, {"name": "c/d/a/"}], [Entry("a", True)]),
        (FileNotFoundError(), None),
    ],
)  # fmt: skip
def test_a_directory_is_listed(listed: Any, expected: Any) -> None:
    fs = Fake({"ls c/d": listed})
    store = store_of(fs)
    found = run(store.entries("d"))
    assert found == (None if listed == [] or expected is None else expected)
    assert fs.asked == [("forget", "c/d"), ("ls", "c/d", True)]
    assert run(store.entries("d", few=True)) == found
    top = store_of(Fake({"ls ": [{"name": "a"}]}), "")
    assert run(top.entries("")) == [Entry("a", False)]


def missing_bucket() -> FileNotFoundError:
    err, cause = FileNotFoundError("gone"), ValueError()
    cause.response = {"Error": {"Code": "NoSuchBucket"}}  # type: ignore[attr-defined]
    err.__cause__ = cause
    return err


def test_a_missing_bucket_is_no_empty_directory() -> None:
    fs = Fake({"ls c": missing_bucket()}, "s3")
    store = store_of(fs)
    with pytest.raises(OSError, match="404, NoSuchBucket: gone"):
        run(store.entries(""))

    async def fail(*_: Any, **__: Any) -> Any:
        raise missing_bucket()

    fs._lsdir = fail
    with pytest.raises(OSError, match="404, NoSuchBucket: gone"):
        run(store.entries("", few=True))
    with pytest.raises(OSError, match="x"):
        run(store_of(Fake({"ls c": OSError("x")})).entries(""))


def test_some_entries_of_a_bucket() -> None:
    asked: list[Any] = []
    names: Any = ["c/d/a/x", "c/d/", "c/d/a/y"]

    async def some(directory: str, **options: Any) -> Any:
        asked.append((directory, options))
        if names is None:
            raise FileNotFoundError
        return [{"name": name} for name in names]

    fs = Fake({"ls c/d": [{"name": "c/d/z"}]}, "s3")
    fs._lsdir = some
    store = store_of(fs)
    assert run(store.entries("d", few=True)) == [Entry("a", None)]
    assert asked == [("c/d", {"refresh": True, "max_items": 1000, "delimiter": ""})]
    names = ["c/d/"]
    assert run(store.entries("d", few=True)) == []
    for names in ([], None):  # noqa: B007 - of `some`
        assert run(store.entries("d", few=True)) is None
    fs.protocol = "gs"
    assert run(store.entries("d", few=True)) == [Entry("z", False)]


def pages(store: UrlStore, path: str) -> Any:
    return run(store.take_keys(path, lambda keys, sizes: (keys, sizes)))


def test_all_keys_of_an_object_store() -> None:
    listed = [{"name": "c/d/a", "type": "file", "size": 3}, {"name": "c/d/b", "type": "directory"},
              {"name": "c/d/b/x", "type": "file", "size": 0}]  # fmt: skip
    fs = Fake({"find c/d": listed, "find ": [{"name": "a", "type": "file"}]}, "gs")
    assert pages(store_of(fs), "d") == [(["a", "b/x"], [3, 0])]
    assert fs.asked == [("forget", "c/d"), ("find", "c/d", {})]
    assert pages(store_of(fs, ""), "") == [(["a"], None)]
    assert pages(store_of(fs), "x") == []
    assert pages(store_of(Fake()), "d") is None
    flat = [store_of(Fake(protocol=p)).is_flat for p in ("s3", "s3a", "gs", "gcs", "abc", "http")]
    assert flat == [True, True, True, True, False, False]


def test_keys_of_a_bucket_come_in_pages() -> None:
    pytest.importorskip("s3fs")
    from botocore.exceptions import ClientError  # noqa: PLC0415 - of s3fs

    asked, n = [], 1001
    failure: Exception | None = None

    async def iterate(bucket: str, **options: Any) -> Any:
        asked.append((bucket, options))
        for i in range(n):
            yield {"name": f"lab/c/d/{i}", "type": "file", "size": i}
        if failure is not None:
            raise failure

    fs = Fake(protocol="s3")
    fs._iterdir = iterate
    fs.split_path = lambda name: (*name.partition("/")[::2], None)
    store = store_of(fs, "lab/c")
    found = pages(store, "d")
    assert [len(keys) for keys, _ in found] == [1000, 1]
    assert found[1] == (["1000"], [1000])
    assert asked == [("lab", {"delimiter": "", "prefix": "c/d/"})]
    n = 1000
    assert [len(keys) for keys, _ in pages(store, "d")] == [1000, 0]
    n = 0
    assert pages(store_of(fs, "lab"), "") == [([], [])]
    assert asked[-1] == ("lab", {"delimiter": "", "prefix": ""})
    failure = ClientError({"Error": {"Code": "AccessDenied"}}, "ListObjectsV2")
    with pytest.raises(PermissionError):
        pages(store, "d")


def test_names_and_places() -> None:
    fs = Fake()
    store = store_of(fs, "/c/", read_only=True)
    assert (str(store), repr(store)) == ("abc:///c/", "<UrlStore(Fake, abc:///c/)>")
    assert store.where("k") == ((id(fs), UrlStore, False), "/c/k")
    store.forbidden_is_missing = True  # type: ignore[attr-defined]
    assert store.where("k")[0] == (id(fs), UrlStore, True)
    assert [store.full_key(k) for k in ("a b", "")] == ["/c/a b", "/c"]
    assert [store_of(fs, "").full_key(k) for k in ("a", "")] == ["a", ""]
    assert (store.is_http, store.lists_all, store.has_to_learn) == (False, True, False)
    web = fsspec.filesystem("http", asynchronous=True)
    learns = [store_of(web, f"{scheme}://h").has_to_learn for scheme in ("http", "https")]
    assert learns == [True, False]
    made = UrlStore.of(FsspecStore(fs, path="p", read_only=True, allowed_exceptions=(ValueError,)))
    kept = (made.fs, made.path, made.read_only, made.allowed_exceptions)
    assert kept == (fs, "p", True, (ValueError,))
    assert str(store_of(fs, "me:word@h")) == "abc://h"


def test_a_forked_process_makes_a_file_system_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    monkeypatch.setattr(FORKS, "abandon", kept.append)
    fs = fsspec.filesystem("http", asynchronous=True, block_size=7)
    store = store_of(fs, "http://h")
    assert store.fs is fs
    fs._pid = 1
    fs.clear_instance_cache()
    made = store.fs
    assert (made is fs, kept, made.storage_options["block_size"]) == (False, [fs], 7)
    assert store.fs is made
    made.clear_instance_cache()


def test_an_archive_is_read_by_one_thread_at_a_time(tmp_path: Path) -> None:
    import zipfile  # noqa: PLC0415 - here only

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("k", DATA)
    store: Any = store_of_url(
        f"zip://::file://{tmp_path}/a.zip", {}, read_only=False, backend="fsspec"
    )
    lock = store.fs.sync_fs.n5zarr_lock
    assert (read(store), read(store, "x"), lock.locked(), store.read_only) == (
        DATA, None, False, True,
    )  # fmt: skip
    for each in (store, pickle.loads(pickle.dumps(store))):
        inner = each.fs.sync_fs
        found: list[bool] = []
        original = inner.cat_file

        def cat_file(*args: Any, **options: Any) -> Any:
            found.append(inner.n5zarr_lock.locked())  # noqa: B023
            return original(*args, **options)  # noqa: B023

        inner.cat_file = cat_file
        assert read(each, part=RangeByteRequest(1, 3)) == b"12"
        assert found == [True]


# ----------------------------------------------------------------------------------- web servers


class Noting(Files):
    """Files; notes requests, and fails where it is told."""

    asked: list[tuple[str, str, str | None]] = []  # noqa: RUF012 - cleared by each test
    fails: dict[str, int] = {}  # noqa: RUF012 - the same

    @override
    def do_GET(self) -> None:
        self.asked.append((self.command, self.path, self.headers.get("Range")))
        if self.path in self.fails:
            self.send_error(self.fails[self.path])
        else:
            super().do_GET()

    @override
    def do_HEAD(self) -> None:
        super().do_HEAD()


class Brief(Noting):
    protocol_version = "HTTP/1.0"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "c.n5/g/0").mkdir(parents=True)
    (tmp_path / "c.n5/g/a b%2F").write_bytes(DATA)
    (tmp_path / "c.n5/k").write_bytes(DATA)
    Noting.asked.clear()
    Noting.fails.clear()
    return tmp_path


def web(url: str, **options: Any) -> UrlStore:
    store = store_of_url(f"{url}/c.n5", options, read_only=True, backend="fsspec")
    assert isinstance(store, UrlStore)
    return store


def get(store: UrlStore, key: str, part: Any = None) -> bytes | None:
    value = sync(store.get(key, PROTOTYPE, part))
    return None if value is None else value.to_bytes()


@pytest.mark.parametrize("handler", [Noting, Brief])
def test_files_of_a_web_server(files: Path, handler: Any) -> None:
    with serving(lambda *a: handler(*a, directory=str(files))) as url:
        store = web(url, headers={"X-Own": "1"})
        assert (store.is_http, store.lists_all, store.has_to_learn) == (True, False, True)
        assert str(store) == f"{url}/c.n5"
        assert [get(store, k) for k in ("g/a b%2F", "x")] == [DATA, None]
        assert Noting.asked[0][:2] == ("GET", "/c.n5/g/a%20b%252F")
        assert (store.keeps_connections, store.has_to_learn) == (handler is Noting, False)
        assert get(store, "k", RangeByteRequest(2, 5)) == b"234"  # of the whole, which is sent
        assert Noting.asked[-1][2] == "bytes=2-4"
        assert [sync(store.exists(k)) for k in ("g/a b%2F", "x")] == [True, False]
        assert sync(store.getsize("g/a b%2F")) == 10
        Noting.fails.update({"/c.n5/k": 500, "/c.n5/y": 410})
        for action in (lambda: get(store, "k"), lambda: sync(store.exists("k"))):
            with pytest.raises(ClientResponseError, match="500"):
                action()
        assert not sync(store.exists("y"))
        assert sync(store.entries("g")) == [Entry("0", True), Entry("a b%2F", False)]
        assert sync(store.entries("g/0")) is None
        assert sync(listing(store, "g/a")) == ["g/a b%2F"]
        assert sorted(sync(listing(store, ""))) == ["g/a b%2F", "k"]


async def listing(store: UrlStore, prefix: str) -> list[str]:
    return [key async for key in store.list_prefix(prefix)]


@pytest.mark.parametrize("lists", [False, True])
def test_a_server_may_not_list(files: Path, lists: bool) -> None:
    with static(files, lists=lists) as url:
        store = web(url)
        if lists:
            assert sync(store.entries("")) == [Entry("g", True), Entry("k", False)]
            with pytest.raises(N5UnsupportedError, match="does not list"):
                sync(store.entries("missing"))
        else:
            with pytest.raises(N5UnsupportedError, match=f"listing: .* list {url}/c.n5/g/") as err:
                sync(store.entries("g"))
            assert err.value.kind == "listing"
            assert sync(store.entries("g", few=True)) is None


@pytest.mark.parametrize("status", [403, 405, 501, 500])
def test_statuses_of_servers_that_do_not_list(files: Path, status: int) -> None:
    with serving(lambda *a: Noting(*a, directory=str(files))) as url:
        Noting.fails["/c.n5/g/"] = status
        with pytest.raises(
            N5UnsupportedError if status != 500 else ClientResponseError, match=r"50|list"
        ):
            sync(web(url).entries("g"))


def test_few_requests_at_a_time_of_servers_with_brief_connections() -> None:
    store = store_of(fsspec.filesystem("http", asynchronous=True), "http://h:1/c")
    most, now = [0], [0]

    async def turn() -> None:
        async with store._turn():
            now[0] += 1
            most[0] = max(most[0], now[0])
            await asyncio.sleep(0.01)
            now[0] -= 1

    async def turns() -> None:
        await asyncio.gather(*(turn() for _ in range(9)))

    for keeps, expected in [(None, 9), (True, 9), (False, 4)]:
        store.keeps_connections, most[0] = keeps, 0
        run(turns())
        assert most[0] == expected
    assert "h:1" in url_store._brief
