"""obstore's stores mean what the options of s3fs, gcsfs, adlfs and fsspec's HTTP mean."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("obstore")
pytest.importorskip("botocore")
pytest.importorskip("google.auth")
pytest.importorskip("moto")

from collections.abc import Callable
from pathlib import Path

import aiohttp
import boto3
import certifi
import fsspec
import google.auth.credentials
from google.auth import exceptions
from moto import mock_aws

from n5zarr import N5Store
from n5zarr.servers import translated
from n5zarr.servers.opening import chosen_store
from n5zarr.servers.translated import (
    NotTranslatedError,
    azure_store,
    google_store,
    s3_store,
    web_store,
)
from n5zarr.servers.url_store import UrlStore
from n5zarr.servers.web_store import WebStore

HERE = "http://127.0.0.1:1"
VARIABLES = ("AWS_", "GOOGLE_", "AZURE_", "STORAGE_EMULATOR_HOST", "CLOUDSDK_", "REQUESTS_CA")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave no credentials and settings of this machine."""
    for name in [n for n in os.environ if n.startswith(VARIABLES) or n.upper() in PROXIES]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setattr(fsspec.config, "conf", {})
    return tmp_path


def config(store: Any) -> dict[str, Any]:
    return dict(store.config)


# ------------------------------------------------------------------ S3

S3_OPTIONS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"anon": True}, {"skip_signature": "true", "endpoint": HERE, "region": "us-east-1"}),
    ({"key": "k", "secret": "s"}, {"skip_signature": "false"}),
    ({"anon": True, "requester_pays": True}, {"request_payer": "true"}),
    ({"anon": True, "client_kwargs": {"region_name": "eu-west-3"}}, {"region": "eu-west-3"}),
    (
        {"anon": True, "endpoint_url": "https://oss.org:9000/deep/"},
        {"endpoint": "https://oss.org:9000/deep", "virtual_hosted_style_request": "false"},
    ),
    (
        {"anon": True, "endpoint_url": "", "client_kwargs": {"endpoint_url": "https://oss.org"}},
        {"endpoint": "https://oss.org", "virtual_hosted_style_request": "false"},
    ),
]


@pytest.mark.parametrize(("options", "expected"), S3_OPTIONS)
def test_options_of_s3fs(options: dict[str, Any], expected: dict[str, str]) -> None:
    store = s3_store("s3://lab/a%20b/c?.n5/", {"endpoint_url": HERE, **options})
    assert (store.prefix, config(store)["bucket"]) == ("a%20b/c?.n5", "lab")
    assert expected.items() <= config(store).items()
    assert pickle.loads(pickle.dumps(store)) == store


def test_keys_are_the_given_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token in the environment belongs to other keys."""
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of others")
    given: list[tuple[dict[str, Any], str | None]] = [
        ({"key": "k", "secret": "s"}, None),
        ({"key": "k", "secret": "s", "token": "t"}, "t"),
    ]
    for options, token in given:
        store = s3_store("s3://lab", {"endpoint_url": HERE, **options})
        for each in (store, pickle.loads(pickle.dumps(store))):
            provider: Any = each.credential_provider
            expected = {"access_key_id": "k", "secret_access_key": "s", "token": token}
            assert provider() == {**expected, "expires_at": None}
            assert "'s'" not in repr(provider)


def test_settings_of_botocore(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles, their endpoints and regions, and variables are those of every AWS program."""
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = k\naws_secret_access_key = s\n"
        "[other]\naws_access_key_id = k2\naws_secret_access_key = s2\naws_session_token = t2\n"
    )
    (home / ".aws" / "config").write_text(
        f"[default]\nendpoint_url = {HERE}\n"
        "[profile other]\nregion = eu-west-3\nendpoint_url = https://oss.org\n"
    )
    store = s3_store("s3://lab", {})
    assert {"endpoint": HERE, "region": "us-east-1"}.items() <= config(store).items()
    provider: Any = store.credential_provider
    assert provider()["access_key_id"] == "k"
    assert provider()["expires_at"] is None
    for options, variables in (({"profile": "other"}, {}), ({}, {"AWS_PROFILE": "other"})):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        store = s3_store("s3://lab", options)
        wanted = {"endpoint": "https://oss.org", "region": "eu-west-3"}
        assert wanted.items() <= config(store).items()
        provider = pickle.loads(pickle.dumps(store.credential_provider))
        found = provider()
        assert (found["access_key_id"], found["token"]) == ("k2", "t2")
        # what may be renewed is asked for again
        left = found["expires_at"] - datetime.now(UTC)
        assert timedelta(minutes=5) < left < timedelta(minutes=7)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://variable.org")
    with pytest.raises(NotTranslatedError, match="another address, which obstore prefers"):
        s3_store("s3://lab", {"endpoint_url": HERE, "profile": "other"})
    store = s3_store("s3://lab", {"profile": "other"})
    assert config(store)["endpoint"] == "https://variable.org"
    assert pickle.loads(pickle.dumps(store)) == store


def test_attempts_and_certificates_of_botocore(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"anon": True, "endpoint_url": HERE}
    store: Any = s3_store("s3://lab", options)
    assert store.retry_config is None
    found = dict(store.client_options)
    assert (found["read_timeout"], found["allow_http"]) == ("1m", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "3")
    assert s3_store("s3://lab", options).retry_config["max_retries"] == 2  # type: ignore[index]
    monkeypatch.setenv("AWS_CA_BUNDLE", certifi.where())
    for url, has in ((HERE, False), ("https://oss.org", True)):
        told: Any = s3_store("s3://lab", options | {"endpoint_url": url}).client_options
        assert ("root_certificate" in dict(told)) == has


def test_settings_of_s3_in_files_are_left_to_s3fs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    with pytest.raises(NotTranslatedError, match="settings of S3"):
        s3_store("s3://lab", {"anon": True, "endpoint_url": HERE})


def test_the_region_of_an_amazon_bucket_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the user's own region: botocore follows where Amazon sends it, obstore does not."""
    translated._region_of_bucket.cache_clear()
    with mock_aws():
        keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
        client: Any = boto3.client("s3", "eu-west-3", **keys)
        where: Any = {"LocationConstraint": "eu-west-3"}
        client.create_bucket(Bucket="lab", CreateBucketConfiguration=where)
        for options in ({}, {"client_kwargs": {"region_name": "us-west-2"}}):
            found = config(s3_store("s3://lab/c.n5", {"anon": True, **options}))
            assert found["region"] == "eu-west-3"
            assert found["endpoint"] == "https://s3.eu-west-3.amazonaws.com"
            assert found["virtual_hosted_style_request"] == "false"
        assert config(s3_store("s3://none", {"anon": True}))["region"] == "us-east-1"
    translated._region_of_bucket.cache_clear()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"anon": True, "version_aware": True}, "no equivalent of version_aware"),
        ({"anon": True, "client_kwargs": {"api_version": "x"}}, r"client_kwargs\.api_version"),
        ({"anon": True, "client_kwargs": {"verify": False}}, r"client_kwargs\.verify"),
        ({"anon": True, "config_kwargs": {"read_timeout": 1}}, "no equivalent of config_kwargs"),
        ({"key": "k"}, "not given together"),
        ({"profile": "none"}, r"botocore refuses the options \(ProfileNotFound\)"),
        ({"endpoint_url": "https://user:word@ho st"}, r"refuses the options \(ValueError\)$"),
        ({"client_kwargs": {"endpoint_url": HERE}}, "endpoint_url is given twice"),
        ({}, "no credentials"),
    ],
)
def test_what_only_s3fs_understands(options: dict[str, Any], why: str) -> None:
    with pytest.raises(NotTranslatedError, match=why):
        s3_store("s3://lab/c.n5", {"endpoint_url": HERE, **options})


# ------------------------------------------------------------------ Google, Azure, the web


class Token(google.auth.credentials.Credentials):
    """Credentials that google-auth has to renew."""

    def refresh(self, request: object) -> None:
        self.token = "new"  # noqa: S105 - of a test
        self.expiry = datetime(2040, 1, 2)  # noqa: DTZ001 - as google-auth's own


def test_options_of_gcsfs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = google_store("gs://lab/a%20b.n5", {"token": "anon"})
    assert config(store) == {"bucket": "lab", "skip_signature": "true"}
    assert store.prefix == "a%20b.n5"
    user = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}
    (home / "user.json").write_text(json.dumps(user))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(home / "user.json"))
    for options in ({}, {"token": "google_default"}):
        made: Any = google_store("gs://lab", options)
        again = pickle.loads(pickle.dumps(made))
        assert again == made
        for each in (made, again):
            assert each.credential_provider.credentials.client_id == "i"
    credentials = Token()  # type: ignore[no-untyped-call]
    monkeypatch.setattr(google.auth, "default", lambda **_: (credentials, "project"))
    renewed: Any = google_store("gs://lab", {})
    expected = {"token": "new", "expires_at": datetime(2040, 1, 2, tzinfo=UTC)}
    assert renewed.credential_provider() == expected


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"token": "anon", "project": "p"}, "no equivalent of project"),
        ({"token": "anon", "endpoint_url": HERE}, "no equivalent of endpoint_url"),
        ({"token": "browser"}, "only gcsfs understands"),
        ({"token": {"type": "wrong"}}, "only gcsfs understands"),
        ({"token": "/home/me/key.json"}, "only gcsfs understands"),
        ({}, "finds no credentials; token='anon'"),
    ],
)
def test_what_only_gcsfs_understands(
    options: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(**_: object) -> None:
        raise exceptions.DefaultCredentialsError

    monkeypatch.setattr(google.auth, "default", none)  # asks the network
    with pytest.raises(NotTranslatedError, match=why):
        google_store("gs://lab/c.n5", options)


def test_an_emulator_is_left_to_gcsfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", HERE)
    with pytest.raises(NotTranslatedError, match="may know JSON only"):
        google_store("gs://lab/c.n5", {"token": "anon"})


def test_options_of_adlfs(monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ({"account_name": "a"}, {"account_name": "a", "anon": True}):
        store = azure_store("az://lab/c.n5", options)
        wanted = {"container_name": "lab", "account_name": "a", "skip_signature": "true"}
        assert config(store) == wanted
        assert store.prefix == "c.n5"
    given: list[tuple[dict[str, Any], str, str]] = [
        ({"account_name": "a", "account_key": "a2V5"}, "az://lab", "no equivalent of account_key"),
        ({"connection_string": "x"}, "az://lab", "connection_string"),
        ({"account_name": "a", "anon": False}, "az://lab", "no credentials"),
        ({"account_name": "a"}, "az://lab@a.blob.core.windows.net", "names the account"),
        ({}, "az://lab", "account_name is not given"),
    ]
    for options, url, why in given:
        with pytest.raises(NotTranslatedError, match=why):
            azure_store(url, options)
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_TOKEN", "AZURE_CLIENT_ID"):
        monkeypatch.setenv(name, "x")
        with pytest.raises(NotTranslatedError, match=f"{name} is set"):
            azure_store("az://lab", {"account_name": "a"})
        monkeypatch.delenv(name)


def test_credentials_in_a_new_process(home: Path) -> None:
    """Nothing else has imported the parts of google-auth."""
    user = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}
    (home / "user.json").write_text(json.dumps(user))
    script = """from n5zarr.servers.translated import google_store
google_store("gs://lab", {})"""
    environment = os.environ | {"GOOGLE_APPLICATION_CREDENTIALS": str(home / "user.json")}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_a_proxy_leaves_web_servers_to_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "host")  # names no proxy
    assert web_store("https://host/a", {}).url == "https://host/a"
    monkeypatch.setenv("http_proxy", HERE)
    with pytest.raises(NotTranslatedError, match="the environment names a proxy"):
        web_store("https://host/a", {})


def test_options_of_a_web_server() -> None:
    options: dict[str, Any] = {
        "headers": {"Authorization": "Bearer x"},
        "client_kwargs": {"timeout": aiohttp.ClientTimeout(total=13)},
    }
    store: Any = web_store("http://127.0.0.1:1/a b", options)
    found = dict(store.client_options)
    assert found["default_headers"]["authorization"] == b"Bearer x"
    assert (found["read_timeout"], found["allow_http"]) == ("13s", "true")
    secure: Any = web_store("https://host/a", {})
    assert dict(secure.client_options)["allow_http"] == "false"
    for url, wrong, why in (
        ("https://host/a?sig=x", {}, "query"),
        ("https://user:word@host/a", {}, "user"),
        ("https://host/a", {"cookies": {}}, "no equivalent of cookies"),
        ("https://host/a", {"client_kwargs": {"auth": 1}}, r"client_kwargs\.auth"),
    ):
        with pytest.raises(NotTranslatedError, match=why):
            web_store(url, wrong)


# ------------------------------------------------------------------ the choice


def test_the_choice_and_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: Callable[..., Any] = lambda url, options=None: chosen_store(  # noqa: E731
        url, options, read_only=True
    )
    anon = {"anon": True, "endpoint_url": HERE}
    store, why = chosen("S3://lab/c.n5", anon)
    assert (type(store.store).__name__, why) == (
        "S3Store",
        "obstore, which understands the URL and its options",
    )
    store, why = chosen(f"{HERE}/c.n5")
    assert type(store) is WebStore
    assert why.endswith("; fsspec lists directories")
    for url, options, reason in (
        ("s3://lab/c.n5", anon | {"use_ssl": False}, "it has no equivalent of use_ssl"),
        (f"{HERE}/c.n5?sig=x", {}, "the URL has a query, which goes with every request"),
        ("memory://c.n5", {}, "it does not read such URLs (memory://)"),
        ("simplecache::memory://c.n5", {}, "it does not read chains of URLs"),
    ):
        store, why = chosen(url, options)
        assert type(store) is UrlStore
        assert why == f"fsspec; obstore is not used: {reason}"
    monkeypatch.setattr(fsspec.config, "conf", {"s3": anon})  # the user's own defaults
    assert config(chosen("s3://lab/c.n5")[0].store)["endpoint"] == HERE
    monkeypatch.setattr("n5zarr.servers.opening.find_spec", lambda name: None)
    assert chosen("s3://lab/c.n5", anon)[1] == "fsspec; obstore is not used: it is not installed"


def test_info_and_log_tell_the_choice(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "n5zarr.servers.opening")
    store = N5Store("memory://told.n5", mode="w")
    why = "fsspec; obstore is not used: it does not read such URLs (memory://)"
    assert caplog.messages == [f"memory://told.n5: backend: {why}"]
    assert store.info["backend"] == why
    assert "backend" in str(store.info)
    assert pickle.loads(pickle.dumps(store)).info["backend"] == why
    asked = N5Store("memory://told.n5", backend="fsspec")
    assert asked.info["backend"] == "fsspec, as asked for"
    assert "backend" not in N5Store("told.n5").info
