"""References to a container on S3 are read from S3 without n5zarr."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
import zarr
from obspec_utils.registry import ObjectStoreRegistry

import n5zarr
from tests.remote.conftest import ODD, ROOT, VALUES, chosen_options, client, upload
from tests.virtual import reader, reference

JAVA = Path(__file__).parents[1] / "data" / "java" / "blocks.n5"
DATASETS = [
    dataset
    for dataset in json.loads((JAVA.parent / "manifest.json").read_text())["datasets"]
    if dataset["root"] == JAVA.name
]
KEYS = {"access_key_id": "a", "secret_access_key": "b"}


@pytest.fixture(scope="module")
def java(s3_server: str) -> str:
    upload(s3_server, "java", JAVA)
    return f"s3://java/{JAVA.name}"


def icechunk_options(url: str) -> dict[str, Any]:
    return {
        "region": "us-east-1",
        "endpoint_url": url,
        "allow_http": True,
        "force_path_style": True,
        **KEYS,
    }


def reader_options(url: str) -> dict[str, Any]:
    return {"key": "a", "secret": "b", "endpoint_url": url, "asynchronous": True}


@pytest.mark.long
def test_references_on_s3_and_to_odd_names_read_right(
    s3_server: str, java: str, bucket: str, tmp_path: Path
) -> None:
    options = chosen_options(s3_server)
    client(s3_server).create_bucket(Bucket="references")
    written = n5zarr.virtualize(
        java, "s3://references/c.json", coords=False,
        storage_options=options, destination_options=options,
    )  # fmt: skip
    repository = n5zarr.virtualize(
        java, "s3://references/c.icechunk", coords=False,
        storage_options=options, destination_options=icechunk_options(s3_server),
    )  # fmt: skip
    assert written.n_referenced == repository.n_referenced > 10
    odd = [
        n5zarr.virtualize(
            f"s3://{bucket}/{ROOT}", tmp_path / f"odd{suffix}", coords=False,
            storage_options=options,
        )
        for suffix in (".json", ".icechunk")
    ]  # fmt: skip
    remote = reader_options(s3_server)
    target = {name: value for name, value in remote.items() if name != "asynchronous"}
    place = {"bucket": "references", "prefix": "c.icechunk", **icechunk_options(s3_server)}
    with reader() as read:
        *of_java, odd_json, odd_icechunk = read(
            [
                reference(written, options={"remote_options": remote, "target_options": target}),
                reference(repository, keys=KEYS, place=place),
                reference(odd[0], options={"remote_options": remote}),
                reference(odd[1], keys=KEYS),
            ]
        )
    expected = {d["path"]: d["sha256"] for d in DATASETS}
    for found in of_java:
        assert {name: array["sha256"] for name, array in found.items()} == expected
    for found in (odd_json, odd_icechunk):
        assert found[ODD]["sha256"] == hashlib.sha256(VALUES.astype(">u2").tobytes()).hexdigest()
        assert found["raw"]["sha256"] == hashlib.sha256(b"\0\7" * 350).hexdigest()


def test_virtualizarr_reads_s3_through_obstore(s3_server: str, java: str) -> None:
    store = obstore.store.S3Store(
        "java", endpoint=s3_server, region="us-east-1", client_options={"allow_http": True},
        access_key_id="a", secret_access_key="b",  # noqa: S106
    )  # fmt: skip
    registry = ObjectStoreRegistry({"s3://java": store})
    manifests = n5zarr.N5Parser(coords=False)(java, registry)
    for dataset in DATASETS:
        array: Any = zarr.open_array(manifests, path=dataset["path"], mode="r", zarr_format=3)
        big = np.asarray(array[...]).astype(f">{array.dtype.str[1:]}")
        assert hashlib.sha256(big.tobytes()).hexdigest() == dataset["sha256"]


def test_few_requests_are_sent(proxied_s3: Any, java: str, tmp_path: Path) -> None:
    """Each directory is listed once, and each block costs one part, which tells its size."""
    options = chosen_options(proxied_s3.url)
    proxied_s3.counts()
    path = "full-edges-gzip"
    written = n5zarr.virtualize(java, tmp_path / "a.json", path, storage_options=options)
    counts = proxied_s3.counts()
    n_blocks = written.n_referenced + written.n_inlined
    assert "HEAD" not in counts
    # documents of the dataset, of those above and of `s0` beside it; truncated blocks are read
    assert counts["GET"] <= n_blocks + written.n_inlined + 12
    assert json.loads((tmp_path / "a.json").read_text())["version"] == 1
