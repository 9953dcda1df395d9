"""``|n5:`` in zarr's URL pipelines reads servers, with a stand-in of what zarr is to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import n5zarr
from tests import url_pipelines
from tests.remote.conftest import chosen_options

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("url", ["s3://lab/{}|n5:em/s1", "s3://lab/{}/em|n5:s1"])
def test_a_container_on_s3(
    monkeypatch: pytest.MonkeyPatch, s3_server: str, bucket: str, local: Path, url: str
) -> None:
    url_pipelines.install(monkeypatch)
    expected: Any = n5zarr.open_array(local, path="em/s1")
    array = url_pipelines.open_url(
        url.format(local.name), mode="r", storage_options=chosen_options(s3_server)
    )
    np.testing.assert_array_equal(array[...], expected[...])
    assert bucket == "lab"
