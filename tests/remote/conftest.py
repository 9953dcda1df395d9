"""Provide a container with unusual names, on every kind of server."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import boto3
import numpy as np
import pytest
from s3fs import S3FileSystem

import n5zarr
from n5zarr import N5Store
from n5zarr.servers import translated
from tests.remote import servers

ROOT = "my c%20#+ü.n5"
ODD = "odd n%41me/#x+ü"
VALUES = np.arange(35, dtype="u2").reshape(5, 7)
KEYS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
PATIENCE = 60.0  # seconds: a busy machine is not a fault


@dataclass
class Place:
    """A container on a server, and the way to open it."""

    name: str
    url: str
    proxy: servers.Proxy
    waiting: Callable[[float], dict[str, Any]]  # for so many seconds for an answer

    @cached_property
    def options(self) -> dict[str, Any]:
        # the same dicts each time: botocore adds to "retries", and fsspec compares them
        return self.waiting(PATIENCE)

    @property
    def has_lists(self) -> bool:
        return self.name in S3 or HTTP.get(self.name) is True

    def open(self, wait: float | None = None, **options: Any) -> N5Store:
        kept = self.options if wait is None else self.waiting(wait)
        return N5Store(self.url, **({"codecs": "n5"} | kept | options))


@pytest.fixture(scope="session", autouse=True)
def one_attempt() -> Iterator[None]:
    """Let obstore send each request once where it has the options of s3fs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        yield


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("served") / ROOT
    shutil.copytree(n5zarr.sample_path(), root)
    array: Any = n5zarr.create_array(root, path=ODD, shape=(5, 7), chunks=(2, 3), dtype="u2")
    array[...] = VALUES
    raw: Any = n5zarr.create_array(
        root, path="raw", shape=(50, 7), chunks=(20, 7), dtype="u2", compression=None
    )
    raw[...] = 7
    (root / "implicit" / "sub").mkdir(parents=True)
    (root / "implicit" / "sub" / "attributes.json").write_text("{}")
    (root / "readme.txt").write_text("nothing of N5")
    return root


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    with servers.s3() as url:
        yield url


def client(url: str) -> Any:
    return boto3.client("s3", endpoint_url=url, **KEYS)


def put(url: str, bucket: str, objects: dict[str, bytes], *, public: bool = False) -> None:
    """Make a bucket, and put objects into the memory of the server, which is in this process."""
    from moto.core.models import DEFAULT_ACCOUNT_ID  # noqa: PLC0415 - takes a second
    from moto.s3.models import get_canned_acl, s3_backends  # noqa: PLC0415 - likewise

    client(url).create_bucket(Bucket=bucket)
    stored = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for key, data in objects.items():
        made = stored.put_object(bucket, key, data)
        if public:
            made.set_acl(get_canned_acl("public-read"))
    if public:
        client(url).put_bucket_acl(Bucket=bucket, ACL="public-read")


def upload(url: str, bucket: str, local: Path, *, name: str = "", public: bool = False) -> None:
    """Copy a container to a server, with the markers of directories that Java leaves."""
    name = name or local.name
    objects = {f"{name}/empty/": b""}
    for path in local.rglob("*"):
        key = f"{name}/{path.relative_to(local).as_posix()}"
        objects[f"{key}/" if path.is_dir() else key] = b"" if path.is_dir() else path.read_bytes()
    put(url, bucket, objects, public=public)


@pytest.fixture(scope="session")
def bucket(s3_server: str, local: Path) -> str:
    upload(s3_server, "lab", local)
    return "lab"


def fsspec_options(url: str, wait: float = PATIENCE) -> dict[str, Any]:
    # one attempt each, so that faults are seen where they are tested
    config = {"retries": {"total_max_attempts": 1}, "read_timeout": wait, "connect_timeout": wait}
    return {"key": "a", "secret": "b", "endpoint_url": url, "config_kwargs": config}


def chosen_options(url: str, wait: float = PATIENCE) -> dict[str, Any]:
    """Return options of s3fs with which obstore reads; see also :func:`one_attempt`."""
    translated._SILENCE = wait  # as no option of s3fs that obstore can have
    S3FileSystem.connect_timeout = S3FileSystem.read_timeout = wait  # reads in forked processes
    return {"key": "a", "secret": "b", "endpoint_url": url}


def _obstore_client(wait: float) -> dict[str, Any]:
    return {
        "client_options": {"allow_http": True, "timeout": f"{wait:g}s"},
        "retry_config": {"max_retries": 0},
    }


def obstore_options(url: str, wait: float = PATIENCE) -> dict[str, Any]:
    keys = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
    return {"endpoint": url, **keys, **_obstore_client(wait)}


def options_of(library: str, url: str, wait: float = PATIENCE) -> dict[str, Any]:
    """Return the options for a server with S3, or a web server, as "s3 obstore" or "http"."""
    server, _, backend = library.partition(" ")
    by = {"fsspec": fsspec_options, "obstore": obstore_options, "": chosen_options}
    if server == "s3":
        storage = by[backend](url, wait)
    elif backend == "obstore":
        storage = _obstore_client(wait)
    else:
        storage = {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=wait)}}
    return {"backend": backend or None, "storage_options": storage}


# of places on S3; "chosen" is obstore, with the options of s3fs
S3 = {"obstore": "s3 obstore", "chosen": "s3", "fsspec": "s3 fsspec"}


def on_s3(name: str, url: str, proxy: servers.Proxy) -> Place:
    return Place(name, url, proxy, partial(options_of, S3[name], proxy.url))


HTTP: dict[str, Any] = {  # with the library that is chosen, but for the first two
    "fsspec, lists": True,
    "fsspec, no lists": False,
    "lists": True,
    "no lists": False,
    "forbidden lists": HTTPStatus.FORBIDDEN,
}


@pytest.fixture
def own_bucket(s3_server: str) -> str:
    """Make a bucket for one test."""
    name = f"b{uuid.uuid4().hex}"
    client(s3_server).create_bucket(Bucket=name)
    return name


@pytest.fixture
def proxied_s3(s3_server: str) -> Iterator[servers.Proxy]:
    with servers.Proxy(s3_server).running() as proxy:
        yield proxy


# each fourth has another library and another way to list
PLACES = [
    "obstore", "no lists", "http obstore", "chosen",
    "fsspec", "fsspec, no lists", "forbidden lists", "fsspec, lists",
    "lists",
]  # fmt: skip


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, local: Path) -> Iterator[Place]:
    name = request.param
    if name in S3:
        bucket = request.getfixturevalue("bucket")
        with servers.Proxy(request.getfixturevalue("s3_server")).running() as proxy:
            yield on_s3(name, f"s3://{bucket}/{ROOT}", proxy)
        return
    with (
        servers.static(local.parent, lists=HTTP.get(name, False)) as url,
        servers.Proxy(url).running() as proxy,
    ):
        library = "http fsspec" if name.startswith("fsspec") else name
        library = library if library.startswith("http") else "http"
        yield Place(name, f"{proxy.url}/{quote(ROOT)}", proxy, partial(options_of, library, ""))
