"""Containers on Google Cloud Storage work, tried with an emulator."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

# else gcsfs asks Google's own servers, by gRPC, what kind of bucket it is
os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"

import gcsfs
import numpy as np
import pytest
import zarr
from gcp_storage_emulator.server import create_server

import n5zarr
from n5zarr import N5Store
from tests.remote import servers
from tests.remote.conftest import ODD, ROOT, VALUES


@pytest.fixture
def proxy() -> Any:
    server = create_server(servers.HOST, 0, in_memory=True, default_bucket="lab")
    server.start()
    port = server._api._httpd.server_address[1]
    with servers.Proxy(f"http://{servers.HOST}:{port}").running() as proxy:
        yield proxy
    server.stop()


def options(proxy: servers.Proxy) -> dict[str, Any]:
    return {"endpoint_url": proxy.url, "token": "anon", "project": "p"}


def test_reading_and_writing(proxy: servers.Proxy, local: Path) -> None:
    fs = gcsfs.GCSFileSystem(**options(proxy), skip_instance_cache=True)
    for path in local.rglob("*"):
        if path.is_file():
            fs.pipe(f"lab/{ROOT}/{path.relative_to(local).as_posix()}", path.read_bytes())
    store = N5Store(f"gs://lab/{ROOT}", codecs="n5", storage_options=options(proxy))
    proxy.counts()
    array: Any = zarr.open_array(store, path=ODD, mode="r")
    assert proxy.counts() == {"GET": 1}
    np.testing.assert_array_equal(array[...], VALUES)
    assert proxy.counts() == {"GET": 9}
    group = zarr.open_group(store, mode="r+")
    assert sorted(group) == ["em", "implicit", "labels", "odd n%41me", "raw"]
    made: Any = n5zarr.create_array(store, path="new", shape=(5, 7), chunks=(2, 3), dtype="u2")
    made[...] = VALUES
    again: Any = zarr.open_array(
        N5Store(f"gs://lab/{ROOT}", storage_options=options(proxy)), path="new", mode="r"
    )
    np.testing.assert_array_equal(again[...], VALUES)
    proxy.fault = lambda method, path: "403" if "0%2F0" in path else None
    with pytest.raises(PermissionError, match=r"new/0/0: .*forbidden_is_missing=True"):
        again[...]
    proxy.fault = lambda method, path: "410" if "0%2F0" in path else None
    found = again[...]
    assert not found[:2, :3].any()
    np.testing.assert_array_equal(found[2:], VALUES[2:])
