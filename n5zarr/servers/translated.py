"""Open obstore's stores with the options of s3fs, gcsfs, adlfs and fsspec's HTTP that it can have.

Each function here takes all options of a URL, and raises :class:`NotTranslatedError` unless it
knows what all of them mean for obstore, so that fsspec opens the URL with its own libraries.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies

if TYPE_CHECKING:
    from obstore.store import (
        AzureStore,
        ClientConfig,
        GCSCredential,
        GCSStore,
        HTTPStore,
        S3Credential,
        S3Store,
    )

_OF_S3 = {
    "anon", "client_kwargs", "endpoint_url", "key", "profile", "requester_pays", "secret", "token",
}  # fmt: skip
_OF_CLIENT = {"endpoint_url", "region_name"}
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_NO_LIMIT = "1h"  # of a whole request; obstore's own 30 s are short for a large block
_SILENCE = 60.0  # seconds without a byte, botocore's default
# obstore asks for credentials again five minutes before they expire
_ASK_AGAIN = timedelta(minutes=6)
# characters left unquoted in the path of a URL; "%" begins one that is quoted already
_QUOTED = "/:@!$&'()*+,;=~-._%[]"


class NotTranslatedError(Exception):
    """Says why obstore cannot open a URL with its options as fsspec does."""


def _refuse_if(why: str, *, when: object) -> None:
    if when:
        raise NotTranslatedError(why)


def _check_names(options: Mapping[str, object], known: set[str], of: str = "") -> None:
    unknown = sorted(f"{of}{name}" for name in options.keys() - known)
    _refuse_if(f"it has no equivalent of {', '.join(unknown)}", when=unknown)


def split_bucket(url: str) -> tuple[str, str | None]:
    """Split a URL into its bucket and the prefix in it; ``%`` and ``?`` mean nothing there.

    Examples
    --------
    >>> split_bucket("s3://lab/what?/a%20b.n5/"), split_bucket("gs://lab")
    (('lab', 'what?/a%20b.n5'), ('lab', None))
    """
    bucket, _, prefix = url.partition("://")[2].partition("/")
    return bucket, prefix.strip("/") or None


def quoted(address: str) -> str:
    """Return the address of a web server, without query, as it is requested.

    Examples
    --------
    >>> quoted("http://host/my c%20#+.n5/")
    'http://host/my%20c%20%23+.n5'
    """
    return quote(address, safe=_QUOTED).rstrip("/")


# ------------------------------------------------------------------ S3


def s3_store(url: str, options: Mapping[str, Any]) -> S3Store:
    """Open obstore's store for S3 with options of s3fs.

    botocore, which s3fs uses too, says which endpoint, region and credentials the options, the
    environment and configuration files mean. On Amazon's S3, one request for each bucket and
    process asks for the region of the bucket.
    """
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - optional
    from obstore.store import S3Store  # noqa: PLC0415 - optional

    _check_names(options, _OF_S3)
    of_client = options.get("client_kwargs") or {}
    _check_names(of_client, _OF_CLIENT, "client_kwargs.")
    endpoint = options.get("endpoint_url")
    is_twice = endpoint and of_client.get("endpoint_url")
    _refuse_if("endpoint_url is given twice", when=is_twice)
    keys = _Keys(*map(options.get, ("profile", "key", "secret", "token")))
    is_half = bool(keys.key) != bool(keys.secret) or (keys.token and not keys.key)
    _refuse_if("key and secret are not given together", when=is_half)
    bucket, prefix = split_bucket(url)
    signing: dict[str, Any] = {"skip_signature": True}
    try:
        settings = _settings(keys.session, bucket, {"endpoint_url": endpoint, **of_client})
        if not options.get("anon"):
            signing = {"skip_signature": False, "credential_provider": keys}
            _refuse_if(
                "there are no credentials; anon=True reads public buckets",
                when=keys.found is None,
            )
    except (BotoCoreError, ValueError) as err:
        # without the text, which may contain a password
        message = f"botocore refuses the options ({type(err).__name__})"
        raise NotTranslatedError(message) from err
    return S3Store(
        bucket,
        prefix=prefix,
        request_payer=bool(options.get("requester_pays")),
        **signing,
        **settings,
    )


def _settings(session: Any, bucket: str, given: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - botocore has no types
    """Return the settings of obstore that botocore finds for a bucket."""

    def client() -> Any:  # noqa: ANN401 - sends no requests, whatever its keys
        no_keys = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "-")
        return session.create_client("s3", **given, **no_keys).meta

    found = client()
    host = urlsplit(found.endpoint_url).hostname or ""
    if host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        given["region_name"] = _region_of_bucket(bucket, found.region_name)
        found = client()
    endpoint = found.endpoint_url.rstrip("/")
    _refuse_if(
        "the configuration of AWS has settings of S3, such as addressing_style",
        when=found.config.s3,
    )
    is_other = os.environ.get("AWS_ENDPOINT_URL_S3", endpoint).rstrip("/") != endpoint
    _refuse_if("AWS_ENDPOINT_URL_S3 is another address, which obstore prefers", when=is_other)
    to_server = _client_options(endpoint, _SILENCE)
    certificates = session.get_config_variable("ca_bundle")
    if certificates and endpoint.startswith("https:"):
        to_server["root_certificate"] = Path(certificates).read_text()
    n_attempts = found.config.retries.get("total_max_attempts")
    return {
        "endpoint": endpoint,
        "region": found.region_name or "us-east-1",
        # botocore puts the bucket before the host of some addresses; all understand it in the path
        "virtual_hosted_style_request": False,
        "client_options": to_server,
        "retry_config": {"max_retries": n_attempts - 1} if n_attempts else None,
    }


@functools.cache
def _region_of_bucket(bucket: str, region: str | None) -> str | None:
    """Ask Amazon for the region of a bucket, which it tells everybody; None if there is none.

    Requests to another region are refused; botocore repeats them for each client.
    """
    from botocore import UNSIGNED  # noqa: PLC0415 - optional
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import ClientError  # noqa: PLC0415
    from botocore.session import Session  # noqa: PLC0415

    config = Config(
        signature_version=UNSIGNED,
        connect_timeout=5,
        read_timeout=5,
        retries={"total_max_attempts": 2},
    )
    client = Session().create_client("s3", region_name=region, config=config)
    try:
        answer = client.head_bucket(Bucket=bucket)
    except ClientError as err:
        answer = err.response
    found: str | None = answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region")
    return found or region


@dataclass(frozen=True)
class _Keys:
    """Given credentials of S3, or those that botocore finds for a profile, and renews."""

    profile: str | None
    key: str | None
    secret: str | None = field(repr=False)
    token: str | None = field(repr=False)

    @functools.cached_property
    def session(self) -> Any:  # noqa: ANN401 - botocore has no types
        """Of botocore; it has given keys without a token of the environment, which is of others."""
        from botocore.session import Session  # noqa: PLC0415 - optional

        made = Session(profile=self.profile)
        if self.key:
            made.set_credentials(self.key, self.secret, self.token)
        return made

    @functools.cached_property
    def found(self) -> Any:  # noqa: ANN401 - as above
        """The credentials of botocore, or None."""
        return self.session.get_credentials()

    def __reduce__(self) -> tuple[object, ...]:
        # another process finds its own
        return type(self), (self.profile, self.key, self.secret, self.token)

    def __call__(self) -> S3Credential:
        keys = self.found.get_frozen_credentials()
        is_renewed = keys.token and not self.key
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            "expires_at": datetime.now(UTC) + _ASK_AGAIN if is_renewed else None,
        }


# ------------------------------------------------------------------ Google, Azure


def google_store(url: str, options: Mapping[str, Any]) -> GCSStore:
    """Open obstore's store for Google Cloud Storage with options of gcsfs."""
    from obstore.store import GCSStore  # noqa: PLC0415 - optional

    _check_names(options, {"token"})
    # obstore speaks the service's XML, gcsfs its JSON, and emulators often only the second
    _refuse_if(
        "STORAGE_EMULATOR_HOST is set, and may know JSON only",
        when="STORAGE_EMULATOR_HOST" in os.environ,
    )
    signing: dict[str, Any] = {"skip_signature": True}
    if options.get("token") != "anon":
        is_other = options.get("token") not in (None, "google_default")
        _refuse_if("only gcsfs understands the token", when=is_other)
        signing = {"credential_provider": _GoogleTokens()}
        _ = signing["credential_provider"].credentials  # raises here if there are none
    bucket, prefix = split_bucket(url)
    return GCSStore(
        bucket, prefix=prefix, client_options=_client_options("https:", _SILENCE), **signing
    )


@dataclass(frozen=True)
class _GoogleTokens:
    """The tokens that google-auth makes with the user's own credentials, and renews."""

    @functools.cached_property
    def credentials(self) -> Any:  # noqa: ANN401 - of many classes
        """Of google-auth; NotTranslatedError if there are none."""
        import google.auth  # noqa: PLC0415 - optional
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

        try:
            return google.auth.default(scopes=[_GOOGLE_SCOPE])[0]
        except (GoogleAuthError, ValueError, OSError):
            # without the cause, which may contain a token
            message = "google-auth finds no credentials; token='anon' reads public buckets"
            raise NotTranslatedError(message) from None

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), ()  # another process loads its own

    def __call__(self) -> GCSCredential:
        from google.auth.transport.requests import Request  # noqa: PLC0415 - optional

        if not self.credentials.valid:
            self.credentials.refresh(Request())
        expiry = self.credentials.expiry
        expires_at = None if expiry is None else expiry.replace(tzinfo=UTC)
        return {"token": self.credentials.token, "expires_at": expires_at}


def azure_store(url: str, options: Mapping[str, Any]) -> AzureStore:
    """Open obstore's store for a public container of Azure with options of adlfs."""
    from obstore.store import AzureStore  # noqa: PLC0415 - optional

    _check_names(options, {"account_name", "anon"})
    variables = sorted(name for name in os.environ if name.startswith("AZURE_"))
    # both libraries read some, and not the same ones
    _refuse_if(f"{', '.join(variables)} is set", when=variables)
    _refuse_if("account_name is not given", when=not options.get("account_name"))
    # adlfs's default is to read public containers
    _refuse_if("there are no credentials; adlfs looks further", when=options.get("anon") is False)
    container, prefix = split_bucket(url)
    _refuse_if("the URL names the account", when="@" in container)
    return AzureStore(
        container,
        prefix=prefix,
        account_name=options["account_name"],
        skip_signature=True,
        client_options=_client_options("https:", _SILENCE),
    )


# ------------------------------------------------------------------ web servers


def web_store(url: str, options: Mapping[str, Any]) -> HTTPStore:
    """Open obstore's store for a web server with options of fsspec's HTTP file system."""
    from obstore.store import HTTPStore  # noqa: PLC0415 - optional

    host = url.partition("://")[2].partition("/")[0]
    _refuse_if("the URL has a query, which goes with every request", when="?" in url)
    _refuse_if("the URL has a user", when="@" in host)
    _refuse_if(
        "the environment names a proxy, which only obstore would use",
        when=getproxies().keys() - {"no"},
    )
    _check_names(options, {"headers", "client_kwargs"})
    client_kwargs = dict(options.get("client_kwargs") or {})
    _check_names(client_kwargs, {"headers", "timeout"}, "client_kwargs.")
    headers = {**(client_kwargs.get("headers") or {}), **(options.get("headers") or {})}
    timeout = getattr(client_kwargs.get("timeout"), "total", _SILENCE)  # aiohttp's
    client = _client_options(url, timeout)
    client["default_headers"] = headers
    return HTTPStore(quoted(url), client_options=client)


def _client_options(endpoint: str, silence: float | None) -> ClientConfig:
    """Return options of obstore's HTTP client, which waits for so many seconds for a byte."""
    is_plain = urlsplit(endpoint).scheme == "http"
    options: ClientConfig = {"timeout": _NO_LIMIT, "allow_http": is_plain}
    if silence is not None:
        options["read_timeout"] = timedelta(seconds=silence)
    return options
