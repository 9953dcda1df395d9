"""What networks do: an error or a retried success, never wrong numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zarr

from n5zarr import N5Store
from tests.remote import servers
from tests.remote.conftest import ROOT, S3, Place, obstore_options

FAULTS = ["500", "503", "cut", "reset", "hang", "longer", "shorter"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("what", ["block", "document"])
@pytest.mark.parametrize("codecs", ["n5", "zarr"])
def test_a_request_that_fails_is_an_error(
    place: Place, fault: str, what: str, codecs: Any, local: Any
) -> None:
    if place.name in ("no lists", "forbidden lists"):
        pytest.skip("as the server with lists")
    options: dict[str, Any] = {}
    if place.name == "lists":
        import aiohttp  # noqa: PLC0415

        timeout = aiohttp.ClientTimeout(total=1)
        options = {"storage_options": {"client_kwargs": {"timeout": timeout}}}
    for path in ("raw", "em/s2"):
        store = place.open(codecs=codecs, **options)
        expected = zarr.open_array(N5Store(local), path=path, mode="r")[...]
        wanted = "attributes.json" if what == "document" else "/0/0"

        def spoil(method: str, asked: str, wanted: str = wanted) -> str | None:
            return fault if asked.partition("?")[0].endswith(wanted) else None

        place.proxy.fault = spoil
        try:
            found = zarr.open_array(store, path=path, mode="r")[...]
        except FileNotFoundError as err:  # a failed request is not "not there"
            raise AssertionError(fault) from err
        except Exception:  # noqa: S112 - whatever the backend or n5zarr says
            continue
        np.testing.assert_array_equal(found, expected)  # retried


@pytest.mark.parametrize("fault", ["500", "503", "reset"])
@pytest.mark.parametrize("name", list(S3))
def test_retries_of_the_backend_work(
    bucket: str, proxied_s3: servers.Proxy, name: str, fault: str, local: Any
) -> None:
    options = S3[name](proxied_s3.url)
    if name == "obstore":
        backoff = {"init_backoff": "10ms", "max_backoff": "20ms"}
        retries = {"max_retries": 5, "backoff": backoff}
        storage = obstore_options(proxied_s3.url) | {"retry_config": retries}
        options = {"backend": "obstore", "storage_options": storage}
    else:
        options["storage_options"]["config_kwargs"]["retries"] = {"max_attempts": 5}
    place = Place(name, f"s3://{bucket}/{ROOT}", proxied_s3, options)
    asked: dict[str, int] = {}

    def twice(method: str, path: str) -> str | None:
        asked[path] = asked.get(path, 0) + 1
        return fault if asked[path] <= 2 else None

    proxied_s3.fault = twice
    found = zarr.open_array(place.open(), path="raw", mode="r")[...]
    np.testing.assert_array_equal(found, zarr.open_array(N5Store(local), path="raw", mode="r")[...])
    assert max(asked.values()) == 3
