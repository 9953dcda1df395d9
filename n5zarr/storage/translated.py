"""Open obstore's stores with the options that people pass to s3fs, gcsfs, adlfs and fsspec's HTTP.

Each function here takes all options of a URL, and raises :class:`NotTranslatedError` if obstore
has no equivalent for one of them, so that fsspec opens the URL with its own libraries.
"""

from __future__ import annotations

import functools
import json
import os
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from n5zarr.storage.url import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore.store import (
        AzureStore,
        ClientConfig,
        GCSCredential,
        GCSStore,
        HTTPStore,
        RetryConfig,
        S3Credential,
        S3Store,
    )

__all__ = ["NotTranslatedError", "azure_store", "google_store", "s3_store", "web_store"]

_KEYS = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
}
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
_NO_LIMIT = "1h"  # of a whole request; obstore's own 30 s are short for a large block
_SILENCE = 60.0  # seconds without a byte, botocore's default
# obstore asks for credentials again five minutes before they expire
_ASK_AGAIN = timedelta(minutes=6)


class NotTranslatedError(Exception):
    """Says why obstore cannot open a URL with its options as fsspec does."""


def _split(url: str) -> tuple[str, str | None]:
    """Split a URL into its bucket and the prefix in it; ``%`` and ``?`` mean nothing there."""
    bucket, _, prefix = url.partition("://")[2].partition("/")
    return bucket, prefix.strip("/") or None


def _check_names(options: Mapping[str, object], known: set[str], of: str = "") -> None:
    unknown = sorted(options.keys() - known)
    if unknown:
        message = f"it has no equivalent of {', '.join(f'{of}{name}' for name in unknown)}"
        raise NotTranslatedError(message)


# ------------------------------------------------------------------ S3


def s3_store(url: str, options: Mapping[str, Any]) -> S3Store:
    """Open obstore's store for S3 with options of s3fs.

    botocore, which s3fs uses too, says which endpoint, region and credentials the options, the
    environment and configuration files mean. On Amazon's S3, one request for each bucket and
    process asks for the region of the bucket.
    """
    try:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - optional
        from botocore.session import Session  # noqa: PLC0415
    except ImportError as err:
        raise NotTranslatedError("botocore, which knows where credentials are, is missing") from err
    from obstore.store import S3Store  # noqa: PLC0415 - optional

    given = _given_to_client(options)
    keys = [given.pop(name, None) for name in _KEYS.values()]
    bucket, prefix = _split(url)
    profile = options.get("profile")
    try:
        session = Session(profile=profile)
        client = _client(session, bucket, given, deepcopy(options.get("config_kwargs") or {}))
        # the address of an object shows what all settings for addresses mean together
        of_object = {"Bucket": bucket, "Key": "k"}
        address = client.generate_presigned_url("get_object", Params=of_object).partition("?")[0]
        signing = {} if options.get("anon") else _signing(session, profile, *keys)
    except (BotoCoreError, ValueError) as err:
        # without the text, which may contain a password
        message = f"botocore refuses the options ({type(err).__name__})"
        raise NotTranslatedError(message) from err
    endpoint = address.removesuffix("/k")
    is_virtual = not endpoint.endswith(f"/{bucket}")
    endpoint = endpoint if is_virtual else endpoint.removesuffix(f"/{bucket}")
    if os.environ.get("AWS_ENDPOINT_URL_S3", endpoint).rstrip("/") != endpoint:
        raise NotTranslatedError("AWS_ENDPOINT_URL_S3 is another address, which obstore prefers")
    config = client.meta.config
    return S3Store(
        bucket,
        prefix=prefix,
        endpoint=endpoint,
        region=client.meta.region_name or "us-east-1",
        skip_signature=not signing,
        virtual_hosted_style_request=is_virtual,
        request_payer=bool(options.get("requester_pays")),
        client_options=_client_options(
            endpoint,
            connect_timeout=config.connect_timeout,
            read_timeout=config.read_timeout,
            verify=given.get("verify", session.get_config_variable("ca_bundle")),
        ),
        retry_config=_retries(config.retries),
        **signing,
    )


def _given_to_client(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that s3fs gives to botocore's client."""
    own = {"anon", "endpoint_url", "client_kwargs", "config_kwargs", "profile", "requester_pays"}
    _check_names(options, own | _KEYS.keys())
    given = {name: options[ours] for ours, name in _KEYS.items() if options.get(ours)}
    given |= {"endpoint_url": options.get("endpoint_url")}
    of_client = options.get("client_kwargs") or {}
    twice = sorted(name for name in of_client if given.get(name))
    if twice:
        raise NotTranslatedError(f"{', '.join(twice)} is given twice")
    given |= of_client
    _check_names(
        given, {"endpoint_url", "region_name", "verify", *_KEYS.values()}, "client_kwargs."
    )
    return given


def _client(session: Any, bucket: str, given: dict[str, Any], config: dict[str, Any]) -> Any:  # noqa: ANN401 - botocore has no types
    """Make botocore's client for a bucket, to read its settings; it sends no requests."""
    from botocore.config import Config  # noqa: PLC0415 - optional

    known = {"connect_timeout", "read_timeout", "retries", "s3", "region_name"}
    _check_names(config, known, "config_kwargs.")
    # the addresses are those of requests that are signed in the usual way, with any keys
    given = given | dict.fromkeys(_KEYS.values(), "-")
    client = session.create_client("s3", **given, config=Config(signature_version="s3v4", **config))
    if not _is_amazons(client.meta.endpoint_url):
        return client
    given["region_name"] = _region_of_bucket(bucket, client.meta.region_name)
    # botocore makes addresses that begin with the bucket for all regions; obstore signs for one
    config["s3"] = {"addressing_style": "path", **(config.get("s3") or {})}
    return session.create_client("s3", **given, config=Config(signature_version="s3v4", **config))


def _is_amazons(endpoint: str) -> bool:
    return (urlsplit(endpoint).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))


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


def _signing(
    session: Any,  # noqa: ANN401 - botocore has no types
    profile: str | None,
    key: str | None,
    secret: str | None,
    token: str | None,
) -> dict[str, Any]:
    """Return the arguments of obstore's store that sign requests as s3fs does."""
    if key and secret:
        return {"credential_provider": _Keys(key, secret, token)}
    if key or secret or token:
        raise NotTranslatedError("key and secret are not given together")
    if session.get_credentials() is None:
        raise NotTranslatedError("there are no credentials; anon=True reads public buckets")
    return {"credential_provider": _KeysOfBotocore(profile)}


@dataclass(frozen=True)
class _Keys:
    """Given credentials of S3, and no others from the environment."""

    key: str
    secret: str = field(repr=False)
    token: str | None = field(repr=False)

    def __call__(self) -> S3Credential:
        return {
            "access_key_id": self.key,
            "secret_access_key": self.secret,
            "token": self.token,
            "expires_at": None,
        }


@dataclass(frozen=True)
class _KeysOfBotocore:
    """The credentials that botocore finds for a profile, and renews."""

    profile: str | None

    @functools.cached_property
    def _found(self) -> Any:  # noqa: ANN401 - botocore has no types
        from botocore.session import Session  # noqa: PLC0415 - optional

        return Session(profile=self.profile).get_credentials()

    def __getstate__(self) -> dict[str, object]:
        return {"profile": self.profile}  # another process finds its own

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def __call__(self) -> S3Credential:
        keys = self._found.get_frozen_credentials()
        return {
            "access_key_id": keys.access_key,
            "secret_access_key": keys.secret_key,
            "token": keys.token,
            "expires_at": datetime.now(UTC) + _ASK_AGAIN if keys.token else None,
        }


# ------------------------------------------------------------------ Google, Azure


def google_store(url: str, options: Mapping[str, Any]) -> GCSStore:
    """Open obstore's store for Google Cloud Storage with options of gcsfs."""
    from obstore.store import GCSStore  # noqa: PLC0415 - optional

    _check_names(options, {"token", "project", "requester_pays", "endpoint_url"})
    endpoint = options.get("endpoint_url") or os.environ.get("STORAGE_EMULATOR_HOST")
    if endpoint and not (urlsplit(endpoint).hostname or "").endswith(".googleapis.com"):
        # obstore speaks the service's XML, gcsfs its JSON, and emulators often only the second
        raise NotTranslatedError("the endpoint is not Google's own, and may know JSON only")
    headers: dict[str, str] = {}
    if options.get("requester_pays"):
        payer = options["requester_pays"]
        payer = options.get("project") if payer is True else payer
        if not isinstance(payer, str):
            raise NotTranslatedError("requester_pays needs the project that pays")
        headers["x-goog-user-project"] = payer
    bucket, prefix = _split(url)
    arguments: dict[str, Any] = {"base_url": endpoint.rstrip("/")} if endpoint else {}
    token = options.get("token")
    tokens = _GoogleTokens(json.dumps(token) if isinstance(token, dict) else token)
    if tokens.token == "anon":  # noqa: S105 - the name of a way
        arguments["skip_signature"] = True
    else:
        _ = tokens.credentials  # raises here if there are none
        arguments["credential_provider"] = tokens
    client = _client_options(endpoint or "https:", headers=headers)
    return GCSStore(bucket, prefix=prefix, client_options=client, **arguments)


@dataclass(frozen=True)
class _GoogleTokens:
    """The tokens that google-auth makes for gcsfs's option ``token``, and renews."""

    token: object = field(repr=False)  # as JSON if it is a dict

    @functools.cached_property
    def credentials(self) -> Any:  # noqa: ANN401 - of many classes
        """Of google-auth.

        Raises
        ------
        NotTranslatedError
            There are none, or gcsfs knows better where they are.
        """
        try:
            import google.auth.credentials  # noqa: PLC0415 - optional
            from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415
        except ImportError as err:
            message = "google-auth, which knows where credentials are, is missing"
            raise NotTranslatedError(message) from err
        try:
            if self.token in (None, "google_default"):
                return google.auth.default(scopes=[_GOOGLE_SCOPE])[0]
            if isinstance(self.token, google.auth.credentials.Credentials):
                return self.token
            if isinstance(self.token, str) and self.token not in ("cache", "cloud", "browser"):
                return _credentials_of(self.token)
        except (GoogleAuthError, ValueError, OSError):
            # without the cause, which may contain the token
            message = "google-auth finds no credentials; token='anon' reads public buckets"
            raise NotTranslatedError(message) from None
        raise NotTranslatedError("only gcsfs understands the token")

    def __getstate__(self) -> dict[str, object]:
        return {"token": self.token}  # another process loads its own

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def __call__(self) -> GCSCredential:
        from google.auth.transport.requests import Request  # noqa: PLC0415 - optional

        if not self.credentials.valid:
            self.credentials.refresh(Request())
        expiry = self.credentials.expiry
        expires_at = None if expiry is None else expiry.replace(tzinfo=UTC)
        return {"token": self.credentials.token, "expires_at": expires_at}


def _credentials_of(token: str) -> Any:  # noqa: ANN401 - of many classes
    """Load google-auth's credentials from JSON, a file of it, or a token of a session."""
    from google.oauth2 import credentials, service_account  # noqa: PLC0415 - optional

    is_file = os.path.isfile(token)  # noqa: PTH113 - a long token is an error for a Path
    text = Path(token).read_text() if is_file else token
    if not text.lstrip().startswith("{"):
        return credentials.Credentials(text)
    content = json.loads(text)
    if content.get("type") == "authorized_user":
        return credentials.Credentials.from_authorized_user_info(content)
    of_service = service_account.Credentials
    return of_service.from_service_account_info(content, scopes=[_GOOGLE_SCOPE])


def azure_store(url: str, options: Mapping[str, Any]) -> AzureStore:
    """Open obstore's store for Azure with options of adlfs."""
    from obstore.store import AzureStore  # noqa: PLC0415 - optional

    names = {
        "account_name": "account_name",
        "account_key": "account_key",
        "sas_token": "sas_key",
        "tenant_id": "tenant_id",
        "client_id": "client_id",
        "client_secret": "client_secret",
    }
    _check_names(options, names.keys() | {"anon"})
    # adlfs reads the same variables; "anon" is its default if there are no keys
    shared = ("account_name", "account_key", "sas_token")
    variables = {f"AZURE_STORAGE_{name.upper()}": name for name in shared}
    others = sorted(v for v in os.environ if v.startswith("AZURE_") and v not in variables)
    if others:  # obstore would prefer some of them to the options
        raise NotTranslatedError(f"{', '.join(others)} is set")
    found = {name: os.environ.get(variable) for variable, name in variables.items()}
    given = {name: options.get(name) or found.get(name) for name in names}
    if not given["account_name"]:
        raise NotTranslatedError("account_name is not given")
    container, prefix = _split(url)
    if "@" in container:
        raise NotTranslatedError("the URL names the account")
    secrets = {name: value for name, value in given.items() if value and name != "account_name"}
    if len(secrets.keys() & {"account_key", "sas_token", "client_secret"}) > 1:
        raise NotTranslatedError("there are credentials of several kinds")
    if not secrets and options.get("anon") is False:
        raise NotTranslatedError("there are no credentials; adlfs looks further")
    arguments: dict[str, Any] = {names[name]: value for name, value in given.items() if value}
    return AzureStore(
        container,
        prefix=prefix,
        skip_signature=not secrets,
        client_options=_client_options("https:"),
        **arguments,
    )


# ------------------------------------------------------------------ web servers


def web_store(url: str, options: Mapping[str, Any]) -> HTTPStore:
    """Open obstore's store for a web server with options of fsspec's HTTP file system."""
    from obstore.store import HTTPStore  # noqa: PLC0415 - optional

    if "?" in url:
        raise NotTranslatedError("the URL has a query, which goes with every request")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise NotTranslatedError("the URL has a user")
    if getproxies().keys() - {"no"}:
        raise NotTranslatedError("the environment names a proxy, which only obstore would use")
    _check_names(options, {"headers", "client_kwargs"})
    client_kwargs = dict(options.get("client_kwargs") or {})
    _check_names(client_kwargs, {"headers", "timeout"}, "client_kwargs.")
    headers = {**(client_kwargs.get("headers") or {}), **(options.get("headers") or {})}
    timeout = getattr(client_kwargs.get("timeout"), "total", _SILENCE)  # aiohttp's
    client = _client_options(url, read_timeout=timeout, headers=headers)
    return HTTPStore(quoted(url), client_options=client)


def _client_options(
    endpoint: str,
    *,
    connect_timeout: float | None = None,
    read_timeout: float | None = _SILENCE,
    verify: bool | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> ClientConfig:
    """Return options of obstore's HTTP client; timeouts are in seconds."""
    options: ClientConfig = {"timeout": _NO_LIMIT}
    is_plain = urlsplit(endpoint).scheme == "http"
    if is_plain:
        options["allow_http"] = True
    if connect_timeout is not None:
        options["connect_timeout"] = timedelta(seconds=connect_timeout)
    if read_timeout is not None:
        options["read_timeout"] = timedelta(seconds=read_timeout)
    if headers:
        options["default_headers"] = dict(headers)
    if verify is False:
        options["allow_invalid_certificates"] = True
    elif isinstance(verify, str) and not is_plain:
        options["root_certificate"] = Path(verify).read_text()
    return options


def _retries(retries: Mapping[str, Any]) -> RetryConfig | None:
    """Return how often to repeat a request, as botocore says it; None for obstore's default."""
    if "total_max_attempts" in retries:
        return {"max_retries": retries["total_max_attempts"] - 1}
    return {"max_retries": retries["max_attempts"]} if "max_attempts" in retries else None
