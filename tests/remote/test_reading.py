"""Reading from servers gives the same numbers as from files, with few requests."""

from __future__ import annotations

import json
import pickle
import tarfile
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
import pytest
import xarray as xr
import zarr
from zarr.experimental.cache_store import CacheStore
from zarr.storage import FsspecStore, MemoryStore, ZipStore

import n5zarr
from n5zarr import CacheOptions, N5Store
from n5zarr._zarr import sync
from n5zarr.arrays import stored_chunks
from n5zarr.cli.app import app
from n5zarr.errors import N5UnsupportedError
from n5zarr.metadata.inspect import describe, describe_tree
from n5zarr.storage.place import place_of
from n5zarr.store.location import root_of
from tests import url_pipelines
from tests.command import CliRunner
from tests.remote import servers
from tests.remote.conftest import (
    ODD,
    ROOT,
    S3,
    VALUES,
    Place,
    chosen_options,
    client,
    fsspec_options,
    on_s3,
    put,
    upload,
)


def array(store: N5Store, path: str, mode: Any = "r") -> Any:
    return zarr.open_array(store, path=path, mode=mode)


@pytest.mark.each_of(5)
def test_the_numbers_are_those_of_the_files(place: Place, local: Path) -> None:
    for codecs in ("n5", "zarr"):
        store = place.open(codecs=codecs)
        for path in ("em/s0", "em/s2", "labels/s0", "raw"):
            expected = array(N5Store(local), path)[...]
            np.testing.assert_array_equal(array(store, path)[...], expected)
        np.testing.assert_array_equal(array(store, ODD)[...], VALUES)


@pytest.mark.each_of(2)
def test_requests_for_arrays(place: Place) -> None:
    store = place.open()
    opened = array(store, "em/s0")
    assert place.proxy.counts() == {"GET": 1}
    opened[:10, :10, :10]
    assert place.proxy.counts() == {"GET": 1}
    opened[...]
    assert place.proxy.counts() == {"GET": 27}
    with pytest.raises(FileNotFoundError):
        array(store, "em/s9")
    counts = place.proxy.counts()
    if place.name in S3:
        assert counts == {"GET": 1, "LIST": 1}
    else:
        assert counts in ({"GET": 1}, {"GET": 2})  # the page of links is a GET, too


@pytest.mark.each_of(2)
def test_requests_for_groups(place: Place) -> None:
    store = place.open()
    group = zarr.open_group(store, path="em", mode="r")
    assert place.proxy.counts() == {"GET": 1}
    if place.name in S3:
        assert sorted(name for name, _ in group.members()) == ["s0", "s1", "s2"]
        assert place.proxy.counts() == {"LIST": 1, "GET": 3}
        zarr.open_group(place.open(), path="implicit", mode="r")
        assert place.proxy.counts() == {"GET": 1, "LIST": 1}
        root = zarr.open_group(place.open(), mode="r")
        assert sorted(root) == ["em", "empty", "implicit", "labels", "odd n%41me", "raw"]
    elif place.has_lists:
        assert sorted(group) == ["s0", "s1", "s2"]
        root = zarr.open_group(place.open(), mode="r")
        assert sorted(root) == ["em", "implicit", "labels", "odd n%41me", "raw"]
    else:
        with pytest.raises(N5UnsupportedError, match=r"listing: .* by their paths") as err:
            list(group)
        assert err.value.kind == "listing"
        with pytest.raises(FileNotFoundError):
            zarr.open_group(place.open(), path="implicit", mode="r")


@pytest.mark.parametrize("name", S3)
def test_groups_of_markers_are_listed(
    name: str, s3_server: str, proxied_s3: servers.Proxy, tmp_path: Path
) -> None:
    """n5-aws-s3 writes an empty object `a/b/` for a group, and for the groups above it."""
    bucket, s3 = f"markers-{name}", client(s3_server)
    s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=bucket, Key="c.n5/attributes.json", Body=b'{"n5": "4.0.0"}')
    for group in ("a", "a/b", "d/e"):
        s3.put_object(Bucket=bucket, Key=f"c.n5/{group}/", Body=b"")
    made = on_s3(name, f"s3://{bucket}/c.n5", proxied_s3)
    members = ["a", "a/b", "d", "d/e"]
    opened: Any = n5zarr.open(f"{made.url}/d", **made.options)
    assert sorted(opened) == ["e"]
    root = zarr.open_group(made.open(), mode="r")
    assert sorted(path for path, _ in root.members(max_depth=None)) == members
    proxied_s3.counts()
    assert n5zarr.validate(made.url, **made.options).n_groups == 5
    assert proxied_s3.counts() == {"GET": 5, "LIST": 5}
    found: Any = describe_tree(made.open())
    below = [[child["name"] for child in group["children"]] for group in found["children"]]
    assert below == [["b"], ["e"]]
    assert describe(made.open(), path="d/e")["kind"] == "group"
    with pytest.warns(n5zarr.N5Warning, match="expected arrays, got none"):
        n5zarr.convert(made.url, tmp_path / "copy.zarr", **made.options)
    copy = zarr.open_group(tmp_path / "copy.zarr", mode="r")
    assert sorted(path for path, _ in copy.members(max_depth=None)) == members
    with pytest.raises(FileNotFoundError):
        zarr.open_group(made.open(), path="missing", mode="r")
    writable = zarr.open_group(made.open(), mode="r+")
    with pytest.warns(n5zarr.N5Warning, match="remains") if name == "obstore" else nullcontext():
        del writable["a"]
    assert sorted(writable) == (["a", "d"] if name == "obstore" else ["d"])
    if name != "obstore":
        left = s3.list_objects_v2(Bucket=bucket)["Contents"]
        assert [each["Key"] for each in left] == ["c.n5/attributes.json", "c.n5/d/e/"]


@pytest.mark.each_of(2)
def test_exists_and_size(place: Place) -> None:
    store = place.open()
    assert sync(store.exists("em/s0/c/0/0/0"))
    assert not sync(store.exists("em/s0/c/9/9/9"))
    assert not sync(store.exists("em/s9/zarr.json"))
    assert sync(store.exists("em/zarr.json"))
    place.proxy.fault = lambda method, path: "500"
    with pytest.raises(OSError, match=r"500|Internal"):
        sync(store.exists("em/s0/c/0/0/0"))


HINT = "em/s0/2/.*forbidden; .*forbidden_is_missing=True"


@pytest.mark.each_of(2)
def test_a_forbidden_block_is_an_error_that_says_what_to_do(place: Place) -> None:
    place.proxy.fault = lambda method, path: "403" if "/em/s0/2/" in path else None
    for opened in (array(place.open(), "em/s0"), array(place.open(codecs="n5"), "em/s0")):
        with pytest.raises(PermissionError, match=HINT):
            opened[...]
    with pytest.raises(PermissionError, match=HINT):
        n5zarr.read_block(place.open(), "em/s0", (2, 0, 0))
    opened = array(place.open(forbidden_is_missing=True), "em/s0")
    assert not opened[..., 2 * opened.chunks[2] :].any()


@pytest.mark.each_of(2)
def test_a_forbidden_document_is_an_error_that_says_what_to_do(place: Place) -> None:
    place.proxy.fault = lambda method, path: "403" if "/em/s0/attributes.json" in path else None
    message = "em/s0/attributes.json: .*forbidden; .*forbidden_is_missing=True"
    with pytest.raises(PermissionError, match=message):
        array(place.open(), "em/s0")
    assert not is_array(place.open(forbidden_is_missing=True), "em/s0")


def is_array(store: N5Store, path: str) -> bool:
    """Return whether a node is an array; one without a document is a group if it can be listed."""
    document = sync(store.get(f"{path}/zarr.json"))
    return document is not None and b'"array"' in document.to_bytes()


@pytest.mark.each_of(4)
def test_a_key_that_is_gone_is_missing(place: Place) -> None:
    """A key with the status 410 Gone is missing."""
    place.proxy.fault = lambda method, path: (
        "410" if "/em/s0/2/" in path or "/em/s1/attributes.json" in path else None
    )
    for opened in (array(place.open(), "em/s0"), array(place.open(codecs="n5"), "em/s0")):
        edge = 2 * opened.chunks[2]
        found = opened[...]
        assert found[..., edge - 1].any()
        assert not found[..., edge:].any()
    assert not is_array(place.open(), "em/s1")
    assert n5zarr.read_block(place.open(), "em/s0", (2, 0, 0)) is None
    assert not sync(place.open().exists("em/s0/c/0/0/2"))


@pytest.mark.each_of(5)
@pytest.mark.parametrize("cache", [None, CacheOptions()])
@pytest.mark.parametrize("name", list(S3))
def test_buckets_that_may_not_be_listed(
    bucket: str, proxied_s3: servers.Proxy, name: str, cache: Any
) -> None:
    """Buckets that forbid listing are read with ``forbidden_is_missing``."""
    place = on_s3(name, f"s3://{bucket}/{ROOT}", proxied_s3)
    store = place.open(forbidden_is_missing=True, cache=cache)
    proxied_s3.code = "AccessDenied"
    proxied_s3.fault = lambda method, path: (
        "403" if "list-type" in path or "s9" in path or "/em/s0/2/" in path else None
    )
    assert array(store, "em/s0")[...].any()
    with pytest.raises(FileNotFoundError):
        array(store, "em/s9")
    assert not sync(store.exists("em/s0/c/0/0/2"))
    with pytest.raises(N5UnsupportedError, match="also to you") as caught:
        n5zarr.stored_blocks(f"{place.url}/em/s0", **place.options)
    assert caught.value.kind == "listing"


@pytest.mark.each_of(4)
@pytest.mark.parametrize("code", ["SignatureDoesNotMatch", "ExpiredToken", "InvalidAccessKeyId"])
@pytest.mark.parametrize("name", list(S3))
def test_wrong_keys_are_no_missing_blocks(
    bucket: str, proxied_s3: servers.Proxy, name: str, code: str
) -> None:
    place = on_s3(name, f"s3://{bucket}/{ROOT}", proxied_s3)
    proxied_s3.code = code
    proxied_s3.fault = lambda method, path: "403" if "/em/s0/2/" in path else None
    with pytest.raises(PermissionError, match=code):
        array(place.open(forbidden_is_missing=True), "em/s0")[...]


def test_a_failed_list_is_an_error(local: Path) -> None:
    with servers.static(local.parent) as url, servers.Proxy(url).running() as proxy:
        store = N5Store(f"{proxy.url}/{quote(ROOT)}")
        group = zarr.open_group(store, path="em", mode="r")
        proxy.fault = lambda method, path: "500" if path.endswith(("/em/", "/implicit/")) else None
        for ask in (lambda: list(group), lambda: zarr.open_group(store, path="implicit", mode="r")):
            with pytest.raises(OSError, match="500"):
                ask()


@pytest.mark.each_of(2)
def test_blocks_that_exist(place: Place) -> None:
    url, options = f"{place.url}/raw", place.options
    if place.has_lists:
        assert sorted(n5zarr.stored_blocks(url, **options)) == [(0, 0), (1, 0), (2, 0)]
        assert [*n5zarr.stored_blocks(url, missing=True, **options)] == []
    else:
        with pytest.raises(N5UnsupportedError, match=r"raw: listing: expected storage") as caught:
            n5zarr.stored_blocks(url, **options)
        assert caught.value.kind == "listing"


def test_blocks_come_before_others_are_listed(
    own_bucket: str, s3_server: str, proxied_s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_chunks, "_KEYS", 1000)
    kind = {"dataType": "uint8", "compression": {"type": "raw"}}
    document = json.dumps({"dimensions": [3000], "blockSize": [1], **kind}).encode()
    blocks = {f"c.n5/d/{n}": b"" for n in range(2500)}
    put(s3_server, own_bucket, {"c.n5/d/attributes.json": document, **blocks})
    place = on_s3("obstore", f"s3://{own_bucket}/c.n5/d", proxied_s3)
    found = n5zarr.stored_blocks(place.url, **place.options)
    proxied_s3.counts()
    assert len([next(found) for _ in range(700)]) == 700
    assert proxied_s3.counts()["LIST"] <= 2  # of a thousand keys each
    assert len([*found]) == 1800
    assert proxied_s3.counts()["LIST"] <= 2


def test_urls_are_understood() -> None:
    root = root_of(place_of("http://h/c.n5/my%20array?sig=a/b.n5"))
    assert (root.location, root.path) == ("http://h/c.n5?sig=a/b.n5", "my array")
    root = root_of(place_of("s3://b/c.n5/my%20array"))
    assert (root.location, root.path) == ("s3://b/c.n5", "my%20array")
    assert "secret" not in repr(N5Store("http://user:secret@127.0.0.1:1/c.n5"))
    assert str(N5Store("HTTP://[::1]:8000/c.n5")) == "http://[::1]:8000/c.n5"
    assert N5Store("http://127.0.0.1:1/c.n5").read_only


@pytest.fixture
def unnamed(tmp_path: Path) -> Path:
    """Serve a container that only documents show, in a directory without a suffix."""
    group = tmp_path / "lab" / "25 um"
    n5zarr.create_array(group / "s0", shape=(9, 7), dtype="u2")
    n5zarr.create_array(group / "s1", shape=(5, 4), dtype="u2")
    factors = {"downsamplingFactors": [[1, 1], [3, 2]]}
    placed = {"axes": ["x", "y"], "units": ["um", "um"], "resolution": [25, 10]}
    (group / "attributes.json").write_text(json.dumps(placed | factors))
    return tmp_path


def asked(proxy: servers.Proxy) -> list[str]:
    found = [unquote(path.partition("?")[0]) for method, path in proxy.requests if method == "GET"]
    proxy.requests.clear()
    return found


def test_the_root_is_asked_for_where_no_name_tells(unnamed: Path) -> None:
    s0, s1 = "/lab/25 um/s0/attributes.json", "/lab/25 um/s1/attributes.json"
    group, lab = "/lab/25 um/attributes.json", "/lab/attributes.json"
    with servers.static(unnamed) as url, servers.Proxy(url).running() as proxy:
        location = f"{proxy.url}/lab/25%20um/s1?sig=a"
        level: Any = n5zarr.open(location)
        assert level.shape == (5, 4)
        assert asked(proxy) == [s1, group, lab]
        found = xr.open_dataset(location, engine="n5")
        assert found["x"].values.tolist() == [25, 100, 175, 250]
        assert found["y"].values.tolist() == [5, 25, 45, 65, 85]
        asked(proxy)
        # what has no document is opened as it is
        first: Any = n5zarr.open(f"{proxy.url}/lab", path="25 um/s0")
        assert first.shape == (9, 7)
        assert asked(proxy) == [s0, lab]


def test_documents_above_that_may_not_be_seen_or_are_pages(unnamed: Path, s3_server: str) -> None:
    upload(s3_server, "unnamed", unnamed / "lab")
    with servers.Proxy(s3_server).running() as proxy:
        location = "s3://unnamed/lab/25 um/s1"
        options = chosen_options(proxy.url)
        found = xr.open_dataset(location, engine="n5", storage_options=options)
        assert found["x"].values.tolist() == [25, 100, 175, 250]
        proxy.fault = lambda method, path: "403" if path.endswith("/lab/attributes.json") else None
        assert "x" in xr.open_dataset(location, engine="n5", storage_options=options).coords
        proxy.fault = lambda method, path: "500" if path.endswith("/lab/attributes.json") else None
        with pytest.raises(OSError, match="Internal Server Error"):
            n5zarr.open(location, storage_options=options)
    (unnamed / "attributes.json").write_text("<!doctype html><title>welcome</title>")
    (unnamed / "lab" / "attributes.json").write_text("<html>")
    with servers.static(unnamed) as url:
        assert "x" in xr.open_dataset(f"{url}/lab/25%20um/s1", engine="n5").coords


def test_names_of_containers_on_web_servers(tmp_path: Path) -> None:
    """A name with a mark of URLs is not another name, which may exist too."""
    names = ("a", "a#b.n5", "a\\b.n5", "a%23b.n5", "a b+.n5")
    backends: tuple[Any, ...] = (None, "fsspec")
    for value, name in enumerate(names):
        n5zarr.create_array(tmp_path / name, path="d", data=np.full(5, value, "u1"))
    with servers.static(tmp_path) as url:
        for value, name in enumerate(names):
            for backend in backends:
                store = N5Store(f"{url}/{name.replace('%', '%25')}", backend=backend)
                np.testing.assert_array_equal(array(store, "d")[...], value, name)


def test_a_query_goes_with_every_request(local: Path) -> None:
    with servers.static(local.parent) as url, servers.Proxy(url).running() as proxy:
        store = N5Store(f"{proxy.url}/{ROOT.replace('%', '%25').replace('#', '%23')}?sig=a%2Fb")
        array(store, "em/s2")[...]
        assert all(path.endswith("?sig=a/b") for _, path in proxy.requests)
        assert proxy.requests


def test_other_stores(local: Path, tmp_path: Path, bucket: str, s3_server: str) -> None:
    expected = array(N5Store(local), "em/s2")[...]
    archive = tmp_path / "c.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in local.rglob("*"):
            if path.is_file():
                zipped.write(path, path.relative_to(local).as_posix())
    memory: dict[str, Any] = {}
    for path in local.rglob("*"):
        if path.is_file():
            value = zarr.buffer.cpu.Buffer.from_bytes(path.read_bytes())
            memory[path.relative_to(local).as_posix()] = value
    made = {
        "zip": N5Store(f"zip://{archive}"),
        "zip chain": N5Store(f"zip://::{archive}"),
        "ZipStore": N5Store(ZipStore(archive, mode="r")),
        "MemoryStore": N5Store(MemoryStore(memory)),
        "local": N5Store(FsspecStore.from_url(f"local://{local}")),
        "simplecache": N5Store(
            f"simplecache::s3://{bucket}/{ROOT}", storage_options={"s3": fsspec_options(s3_server)}
        ),
        "CacheStore": N5Store(CacheStore(MemoryStore(memory), cache_store=MemoryStore())),
    }
    for name, store in made.items():
        np.testing.assert_array_equal(array(store, "em/s2")[...], expected, err_msg=name)
        np.testing.assert_array_equal(array(store, ODD)[...], VALUES, err_msg=name)
        assert sorted(zarr.open_group(store, path="em", mode="r")) == ["s0", "s1", "s2"], name


@pytest.mark.each_of(2)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_threads_read_one_archive(tmp_path: Path, kind: str) -> None:
    """Threads read one archive at the same time without an error of Python's zipfile."""
    values = np.random.default_rng(3).integers(0, 2**16, (13, 21, 34), "u2")
    n5zarr.create_array(tmp_path / "c.n5", path="d", data=values, chunks=(2, 5, 7))
    archive = tmp_path / f"c.{kind}"
    if kind == "tar":
        with tarfile.open(archive, "w") as tar:
            tar.add(tmp_path / "c.n5", "c.n5")
    else:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
            for path in (tmp_path / "c.n5").rglob("*"):
                if path.is_file():
                    info = zipfile.ZipInfo(path.relative_to(tmp_path).as_posix())
                    info.extra = b"UT\x05\x00\x01\0\0\0\0"  # a time, as Info-ZIP writes it
                    zipped.writestr(info, path.read_bytes())
    store = N5Store(f"{kind}://c.n5::{archive}")
    for opened in (store, pickle.loads(pickle.dumps(store))):
        for _ in range(2):
            np.testing.assert_array_equal(array(opened, "d")[...], values)
            fast: Any = n5zarr.open(opened, path="d")
            np.testing.assert_array_equal(fast[...], values)
    n5zarr.convert(f"{kind}://c.n5::{archive}", tmp_path / "a.zarr", verify=True, n_workers=4)


@pytest.mark.parametrize("url", ["{}/x.n5", "nosuch://x"])
def test_the_command_line_tells_a_wrong_url_in_one_line(local: Path, url: str) -> None:
    with servers.static(local.parent, lists=False) as plain:
        failed = CliRunner().invoke(app, ["tree", url.format(plain)])
    assert (failed.exit_code, len(failed.stderr.splitlines())) == (2, 1)


@pytest.mark.each_of(4)
def test_everything_else_takes_urls(place: Place, local: Path) -> None:
    expected = np.asarray(array(N5Store(local), "em/s1")[...])
    opened: Any = n5zarr.open(f"{place.url}/em/s1", **place.options)
    ds = xr.open_dataset(f"{place.url}/em/s1", engine="n5", **place.options)
    np.testing.assert_array_equal(opened[...], expected)
    np.testing.assert_array_equal(ds["s1"], expected)
    assert ds["s1"].dims == ("z", "y", "x")
    if place.has_lists:
        for root in (place.open(), local):
            found: Any = describe_tree(root)
            empty = ["empty"] if root is not local and place.name in S3 else []
            assert [c["name"] for c in found["children"]] == [
                "em", *empty, "implicit", "labels", "odd n%41me", "raw",
            ]  # fmt: skip
    assert describe(place.open(), path="em/s1", size=False)["shape_c"] == (20, 48, 64)


@pytest.mark.each_of(8)
def test_validate_finds_what_it_finds_in_files(place: Place, local: Path) -> None:
    if not place.has_lists:
        with pytest.raises(N5UnsupportedError, match="listing: ") as refused:
            n5zarr.validate(place.open())
        assert refused.value.kind == "listing"
        return
    there, here = n5zarr.validate(place.open()), n5zarr.validate(local)
    assert there.ok
    assert there.findings == here.findings
    assert (there.n_groups, there.n_datasets, there.n_blocks, there.n_bytes) == (
        here.n_groups + (place.name in S3),  # the marker `empty/`
        here.n_datasets,
        here.n_blocks,
        here.n_bytes,
    )
    assert here.n_blocks > 0


@pytest.mark.parametrize("url", ["s3://lab/{}|n5:em/s1", "s3://lab/{}/em|n5:s1"])
def test_zarrs_url_pipelines_read_a_container_on_s3(
    monkeypatch: pytest.MonkeyPatch, s3_server: str, bucket: str, local: Path, url: str
) -> None:
    url_pipelines.install(monkeypatch)
    expected: Any = n5zarr.open_array(local, path="em/s1")
    found = url_pipelines.open_url(
        url.format(local.name), mode="r", storage_options=chosen_options(s3_server)
    )
    np.testing.assert_array_equal(found[...], expected[...])
    assert bucket == "lab"
