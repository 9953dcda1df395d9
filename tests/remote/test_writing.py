"""Writing to object stores takes one put for each block and document, and loses nothing."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import s3fs
import xarray as xr
import zarr
from zarr.buffer import cpu
from zarr.storage import FsspecStore

import n5zarr
from n5zarr import N5Store
from n5zarr._zarr import sync
from n5zarr.errors import N5UnsupportedError
from tests.processes import CONTEXT
from tests.remote import quarters, servers
from tests.remote.conftest import S3, Place, client, fsspec_options, on_s3


@pytest.fixture(params=list(S3))
def empty(request: pytest.FixtureRequest, own_bucket: str, proxied_s3: servers.Proxy) -> Place:
    return on_s3(request.param, f"s3://{own_bucket}/c.n5", proxied_s3)


def keys(place: Place, s3_server: str) -> list[str]:
    found = client(s3_server).list_objects_v2(Bucket=place.url.split("/")[2])["Contents"]
    return sorted(each["Key"].removeprefix("c.n5/") for each in found)


def document(place: Place, s3_server: str, key: str) -> Any:
    found = client(s3_server).get_object(Bucket=place.url.split("/")[2], Key=f"c.n5/{key}")
    return json.loads(found["Body"].read())


@pytest.mark.each_of(2)
def test_puts(empty: Place, s3_server: str) -> None:
    store = empty.open()
    array: Any = n5zarr.create_array(
        store, path="a b/#1", shape=(5, 7), chunks=(2, 3), dtype="u2", axes="yx", compression=None
    )
    empty.proxy.counts()
    values = np.arange(1, 36, dtype="u2").reshape(5, 7)
    array[:4, :6] = values[:4, :6]
    assert empty.proxy.counts() == {"PUT": 4}
    array[...] = values
    counts = empty.proxy.counts()  # truncated blocks: is the dataset still of this size?
    assert counts["PUT"] == 9
    assert set(counts) <= {"PUT", "GET"}
    array.attrs["x"] = 1
    assert empty.proxy.counts()["PUT"] == 1
    assert keys(empty, s3_server) == sorted(
        ["attributes.json", "a b/attributes.json", "a b/#1/attributes.json"]
        + [f"a b/#1/{x}/{y}" for x in range(3) for y in range(3)]
    )
    assert document(empty, s3_server, "a b/#1/attributes.json")["axes"] == ["x", "y"]
    again: Any = zarr.open_array(empty.open(), path="a b/#1", mode="r")
    np.testing.assert_array_equal(again[...], values)
    assert again.attrs["x"] == 1


@pytest.mark.each_of(2)
def test_removing(empty: Place, s3_server: str) -> None:
    root = zarr.open_group(empty.open(), mode="w")
    for name in ("a", "ab"):
        array: Any = root.create_array(f"{name}/b", shape=(4,), chunks=(2,), dtype="u1")
        array[...] = 1
    del root["a"]
    assert [k for k in keys(empty, s3_server) if not k.startswith("ab/")] == ["attributes.json"]
    array = root["ab/b"]
    array[...] = 0
    array.resize((2,))
    assert "ab/b/1" not in keys(empty, s3_server)


@pytest.mark.each_of(2)
def test_others_are_seen(empty: Place) -> None:
    """Lists and reads show the latest changes of others."""
    one, other = zarr.open_group(empty.open(), mode="w"), zarr.open_group(empty.open(), mode="r+")
    assert list(other) == []
    one.create_group("a")
    assert list(other) == ["a"]
    array: Any = one.create_array("b", shape=(4,), chunks=(2,), dtype="u1")
    assert sorted(other) == ["a", "b"]
    array[...] = 5
    again: Any = other["b"]
    assert again[...].tolist() == [5] * 4
    array.attrs["x"] = 1
    assert other["b"].attrs["x"] == 1


@pytest.mark.each_of(5)
@pytest.mark.parametrize("kind", ["given", "chain"])
def test_listings_are_made_anew_whoever_made_the_file_system(
    empty: Place, kind: str, proxied_s3: servers.Proxy
) -> None:
    options = fsspec_options(proxied_s3.url)
    if kind == "given":
        store = N5Store(FsspecStore.from_url(empty.url, storage_options=options))
    else:
        store = N5Store(f"simplecache::{empty.url}", storage_options={"s3": options})
    zarr.open_group(empty.open(), mode="w")
    group = zarr.open_group(store, mode="r")
    assert list(group) == []
    zarr.open_group(empty.open(), mode="r+").create_group("a")
    assert list(group) == ["a"]


@pytest.mark.parametrize("empty", ["obstore"], indirect=True)
def test_no_update_is_lost_where_the_store_can_tell(empty: Place) -> None:
    """obstore loses no update, as it writes only over the content that it has read."""
    zarr.open_group(empty.open(), mode="w")

    def add(k: int) -> None:
        zarr.open_group(empty.open(), mode="r+").attrs[f"k{k}"] = k

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(24)))
    assert dict(zarr.open_group(empty.open(), mode="r").attrs) == {f"k{k}": k for k in range(24)}


@pytest.mark.each_of(2)
def test_a_failed_put_is_an_error(empty: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3fs.core.S3FileSystem, "retries", 1)
    patient: Any = n5zarr.create_array(empty.open(), path="a", shape=(4,), chunks=(2,), dtype="u1")
    hurried: Any = n5zarr.open(empty.open(1), path="a", mode="r+")
    for fault in ("500", "503", "403", "reset", "hang"):
        array = hurried if fault == "hang" else patient

        def spoil(method: str, path: str, fault: str = fault) -> str | None:
            return fault if method == "PUT" else None

        empty.proxy.fault = spoil
        said = r"a/1|a/0|Internal|slow|Forbidden|Unavailable|timeout|closed|50[03]"
        with pytest.raises(OSError, match=f"(?i){said}"):
            array[...] = 1
    empty.proxy.fault = lambda method, path: None
    patient[...] = 2
    assert patient[...].tolist() == [2] * 4


@pytest.mark.long
def test_two_workers_read_and_write(empty: Place) -> None:
    from distributed import Client, LocalCluster  # noqa: PLC0415 - takes a second

    values = np.random.default_rng(1).integers(0, 99, (30, 40)).astype("u2")
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as cluster,
        Client(cluster),  # type: ignore[no-untyped-call]
    ):
        data = xr.DataArray(values, dims=("y", "x"), name="image").chunk({"y": 10, "x": 20})
        n5zarr.to_n5(data, empty.open(), group="em/image")
        store: Any = empty.open()
        opened = xr.open_dataset(store, engine="n5", group="em/image", chunks={})
        np.testing.assert_array_equal(opened["image"], values)
        assert int(opened["image"].sum()) == values.sum()


NAMES = ["a1", "a[1]", "ab", "a?", "a*", "{a,b}"]


@pytest.mark.each_of(2)
def test_names_are_no_patterns(empty: Place, s3_server: str) -> None:
    root = zarr.open_group(empty.open(), mode="w")
    for name in NAMES:
        array: Any = root.create_array(name, shape=(4,), chunks=(2,), dtype="u1")
        array[...] = 1
    for gone in ("a[1]", "a*", "{a,b}"):
        del root[gone]
    array = root["a?"]
    array[...] = 0
    assert keys(empty, s3_server) == [
        "a1/0", "a1/1", "a1/attributes.json", "a?/attributes.json",
        "ab/0", "ab/1", "ab/attributes.json", "attributes.json",
    ]  # fmt: skip


@pytest.mark.each_of(2)
def test_a_bucket_outlives_its_container(empty: Place, s3_server: str) -> None:
    bucket = empty.url.split("/")[2]
    client(s3_server).put_object(Bucket=bucket, Key="old/attributes.json", Body=b"{}")
    root = zarr.open_group(N5Store(f"s3://{bucket}", **empty.options), mode="w")
    root.create_group("new")
    found = client(s3_server).list_objects_v2(Bucket=bucket)["Contents"]
    assert sorted(o["Key"] for o in found) == ["attributes.json", "new/attributes.json"]
    assert list(root) == ["new"]


@pytest.mark.each_of(3)
def test_a_container_of_a_later_version_is_not_written(empty: Place, s3_server: str) -> None:
    bucket = empty.url.split("/")[2]
    body = b'{"n5":"9.0.0"}'
    client(s3_server).put_object(Bucket=bucket, Key="c.n5/attributes.json", Body=body)
    group = cpu.Buffer.from_bytes(b'{"zarr_format":3,"node_type":"group","attributes":{}}')
    with pytest.raises(N5UnsupportedError, match=r"9\.0\.0"):
        sync(empty.open().set("a/b/zarr.json", group))
    assert keys(empty, s3_server) == ["attributes.json"]
    assert document(empty, s3_server, "attributes.json") == {"n5": "9.0.0"}


@pytest.mark.parametrize("empty", ["obstore"], indirect=True)
def test_a_service_without_conditional_writing(empty: Place) -> None:
    """A service without conditional writing is reported, and the last writer wins."""
    zarr.open_group(empty.open(), mode="w").attrs["a"] = 1
    conditions = ("If-Match", "If-None-Match")
    empty.proxy.refused = lambda headers: any(name in headers for name in conditions)
    group = zarr.open_group(empty.open(), mode="r+")
    group.attrs["b"] = 2
    group.create_group("c")
    assert dict(zarr.open_group(empty.open(), mode="r").attrs) == {"a": 1, "b": 2}


@pytest.mark.each_of(2)
@pytest.mark.parametrize("empty", ["obstore"], indirect=True)
@pytest.mark.parametrize("codecs", ["zarr", "n5"])
def test_four_processes_write_quarters_of_one_block_of_an_array(empty: Place, codecs: str) -> None:
    n5zarr.create_array(empty.open(), path="a", shape=(5, 7), chunks=(5, 7), dtype="u2")[...] = 1
    place = empty.url, empty.options
    with ProcessPoolExecutor(4, mp_context=CONTEXT) as pool:
        list(pool.map(quarters.write, [place] * 4, range(4), [codecs] * 4))
    array: Any = zarr.open_array(empty.open(), path="a", mode="r")
    assert (array[...] == quarters.ROUNDS + 1).all()
