"""Faults of networks give an error or a retried success, never wrong numbers."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs
import zarr

from n5zarr import N5Store
from n5zarr.errors import N5FormatError
from tests.remote import servers
from tests.remote.conftest import (
    ROOT,
    S3,
    Place,
    chosen_options,
    fsspec_options,
    obstore_options,
    on_s3,
)

SPOILED = ["cut", "longer", "shorter"]  # an answer that is not all, or not right
FAILED = ["500", "503", "reset", "hang"]
CASES = [(fault, codecs) for fault in SPOILED for codecs in ("n5", "zarr")]
CASES += [(fault, "n5") for fault in FAILED]


@pytest.mark.each_of(11)
@pytest.mark.parametrize(("fault", "codecs"), CASES)
def test_a_request_that_fails_is_an_error(
    place: Place, fault: str, codecs: Any, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "no lists" in place.name or place.name == "forbidden lists":
        pytest.skip("as the server with lists")
    errors: tuple[type[Exception], ...] = (N5FormatError, OSError)
    monkeypatch.setattr(s3fs.core.S3FileSystem, "retries", 1)
    expected = zarr.open_array(N5Store(local), path="raw", mode="r")[...]
    for wanted in ("attributes.json", "/0/0"):
        store = place.open(1 if fault == "hang" else None, codecs=codecs)

        def spoil(method: str, asked: str, wanted: str = wanted) -> str | None:
            return fault if asked.partition("?")[0].endswith(wanted) else None

        place.proxy.fault = spoil
        try:
            found = zarr.open_array(store, path="raw", mode="r")[...]
        except FileNotFoundError as err:  # a failed request is not "not there"
            raise AssertionError(fault) from err
        except errors:
            continue
        np.testing.assert_array_equal(found, expected)  # retried


@pytest.mark.each_of(4)
@pytest.mark.parametrize("fault", ["500", "503", "reset"])
@pytest.mark.parametrize("name", list(S3))
def test_retries_of_the_backend_work(
    bucket: str,
    proxied_s3: servers.Proxy,
    name: str,
    fault: str,
    local: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "obstore":  # the options of s3fs name no waiting times
        backoff = {
            "init_backoff": timedelta(milliseconds=10),
            "max_backoff": timedelta(milliseconds=20),
            "base": 2,
        }
        retries = {"max_retries": 5, "backoff": backoff}
        storage = obstore_options(proxied_s3.url) | {"retry_config": retries}
    elif name == "chosen":
        storage = chosen_options(proxied_s3.url)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    else:
        storage = fsspec_options(proxied_s3.url)
        storage["config_kwargs"]["retries"] = {"total_max_attempts": 5}
    place = on_s3(name, f"s3://{bucket}/{ROOT}", proxied_s3)
    asked: dict[str, int] = {}

    def twice(method: str, path: str) -> str | None:
        asked[path] = asked.get(path, 0) + 1
        return fault if asked[path] <= 2 else None

    proxied_s3.fault = twice
    found = zarr.open_array(place.open(storage_options=storage), path="raw", mode="r")[...]
    np.testing.assert_array_equal(found, zarr.open_array(N5Store(local), path="raw", mode="r")[...])
    assert max(asked.values()) == 3
