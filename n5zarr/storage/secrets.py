"""Keep users, passwords, keys and signatures out of messages and the log.

A mask of patterns knows URLs. Libraries and servers repeat parts of URLs and values of options in
texts of their own, so that the values themselves are masked, too.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

_USER = re.compile(r"(https?://|://(?=[^/?#@\s]*:))[^/?#\s\"'<>]*@", re.IGNORECASE)
ODD_USER = re.compile(r"://([^/?#@\s:\[]+:(?!:|\d*(?:[/?#\s]|$))[^/?#@\s]*[/?#][^\s\"'<>]*)@")
"""A user and a password that holds "/", "?" or "#" as such; not a host and a port."""
_QUERY = re.compile(r"(https?://[^?\"'<>]*?)\?[^\s\"'<>]*", re.IGNORECASE)
_NAME = (
    "(?<!skip_)(?:key|secret|token|passw|pwd|sas|sig|credential|auth|cookie|params|header|"
    "connection_str)"
)
_NAMES = re.compile(_NAME, re.IGNORECASE)
_PARAMETER = re.compile(rf"([?&;][\w-]*{_NAME}[\w-]*=)[^&;\s\"'<>)]+", re.IGNORECASE)
_PLAIN = {"true", "false", "none", "anon", "google_default", "cache", "cloud", "browser"}
_SHORTEST = 4  # characters; shorter values are parts of words


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a URL, or text with some, without user and password, and without web servers' queries.

    The query of a URL may be a signature, or hold an access token.

    Parameters
    ----------
    text : str
        The text.
    secrets : iterable of str, optional
        What else it must not contain, wherever it came from; see :func:`secrets_in`.

    Examples
    --------
    >>> without_secrets("https://user:secret@host/c.n5?token=secret")
    'https://host/c.n5'
    >>> without_secrets("abfs://container@account.dfs.core.windows.net/c.n5")
    'abfs://container@account.dfs.core.windows.net/c.n5'
    >>> without_secrets("GET https://host/c?list=1: 404 Not Found, in me:word's", ["me:word"])
    "GET https://host/c 404 Not Found, in ***'s"
    """
    text = _QUERY.sub(r"\1", ODD_USER.sub("://", _USER.sub(r"\1", text)))
    text = _PARAMETER.sub(r"\1***", text)
    forms = {
        form
        for s in secrets  # the last form is that of a header
        for form in (
            s,
            quote(s, safe=""),
            quote(s),
            unquote(s),
            b64encode(unquote(s).encode()).decode(),
        )
    }
    for form in sorted(forms, key=len, reverse=True):
        if len(form) >= _SHORTEST:
            begins = "(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2}))"  # in a quoted URL, too
            text = re.sub(rf"{begins}{re.escape(form)}(?![A-Za-z0-9])", "***", text)
    return text


def secrets_in(*sources: object) -> frozenset[str]:
    """Return the secrets in URLs and in the options of a library.

    Examples
    --------
    >>> sorted(secrets_in("s3://me:word@bucket/c.n5", {"anon": False, "token": "ticket"}))
    ['me', 'me:word', 'ticket', 'word']
    """
    return frozenset(secret for source in sources for secret in _each(source, is_secret=False))


def is_secret(name: str) -> bool:
    """Whether a value with such a name is one.

    Examples
    --------
    >>> is_secret("aws_secret_access_key"), is_secret("endpoint")
    (True, False)
    """
    return _NAMES.search(name) is not None


def _each(source: object, *, is_secret: bool) -> Iterator[str]:
    if isinstance(source, Mapping):
        for name, value in source.items():
            is_named = _NAMES.search(str(name)) is not None
            yield from _each(value, is_secret=is_named or is_secret)
    elif isinstance(source, list | tuple | set):
        for value in source:
            yield from _each(value, is_secret=is_secret)
    elif isinstance(source, str | bytes):
        text = source if isinstance(source, str) else source.decode(errors="replace")
        yield from _in_url(text)
        if is_secret and text.lower() not in _PLAIN:
            yield from (text, text.rpartition(" ")[2])  # "Bearer ..."
            yield from re.findall(r"(?<==)[^;]+", text)  # of a connection string


def _in_url(url: str) -> Iterator[str]:
    """Yield user and password in a URL, with or without its scheme, and a web server's query."""
    for each in url.split("::"):
        scheme, _, rest = each.rpartition("://")
        place, mark, query = rest.partition("?")
        user, at, _ = place.partition("/")[0].rpartition("@")
        if at and (":" in user or scheme.lower().startswith("http")):
            yield from (user, *user.split(":", 1))
        is_web = scheme.lower().startswith("http")
        if mark:
            yield from [query] * is_web
            yield from (value for name, value in parse_qsl(query) if is_web or is_secret(name))


def secrets_of_store(store: Any) -> frozenset[str]:  # noqa: ANN401 - of fsspec, obstore or others
    """Return the secrets with which a store of zarr's for a URL was opened.

    The name of a folder of the URL is none: each place has a name of its own.
    """
    fs, objects = getattr(store, "fs", None), getattr(store, "store", None)
    inner = getattr(fs, "sync_fs", fs)
    provider = getattr(objects, "credential_provider", None)
    names = ("config", "client_options", "url")
    opened = {name: _plain(getattr(objects, name, None)) for name in names}
    path, config = getattr(store, "path", None), opened["config"]
    prefix = getattr(objects, "prefix", None)
    found = secrets_in(
        path,
        str(prefix),
        dict(getattr(inner, "storage_options", None) or {}),
        opened,
        dict(getattr(provider, "__dict__", {})),
    )
    told = [path, prefix]
    told += [config.get("bucket")] if isinstance(config, dict) else []
    return found - {name for each in told for name in str(each).split("/")}


def _plain(value: Any) -> object:  # noqa: ANN401 - obstore's mappings
    return dict(value) if hasattr(value, "keys") else value


def named(url: str) -> str:
    """Return a user's URL or path for a message, without secrets."""
    return without_secrets(url, secrets_in(url))


def shown(location: object) -> str:
    """Return a user's location for a message, as ``repr`` has it, without secrets.

    Examples
    --------
    >>> shown("s3://me:word@bucket/c.n5")
    "'s3://bucket/c.n5'"
    """
    if isinstance(location, str):
        return repr(named(location))
    return without_secrets(repr(location), secrets_of_store(location))
