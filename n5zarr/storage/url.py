"""Recognise URLs and their parts, and errors that concern one key only."""

from __future__ import annotations

import os
import re
import zlib
from pathlib import Path
from typing import Literal
from urllib.parse import unquote
from zipfile import BadZipFile

type Backend = Literal["fsspec", "obstore"]
"""The libraries that read and write URLs."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)")
_ON_SERVERS = re.compile("(https?|s3a?|gc?s|az|abfss?)://", re.IGNORECASE)
_IPV6 = re.compile(r"\[[0-9A-Fa-f:.]+\]")


def is_url(location: object) -> bool:
    """Whether a location is a URL or a chain of URLs, and not a local path."""
    if not isinstance(location, str) or _URL.match(location) is None:
        return False
    if "://" not in location:  # with "::": a chain to a local file, or a local path
        return not Path(location).exists()
    return not location.lower().startswith("file://")


def local_path(location: str) -> str:
    """Convert a path or ``file://`` URL, or Java's ``file:/``, into a local path.

    Examples
    --------
    >>> local_path("file:/data/we%20ird.n5"), local_path("we%20ird.n5")
    ('/data/we ird.n5', 'we%20ird.n5')
    """
    url = re.fullmatch(r"file:(?://(?:localhost)?)?(/.*)", location, re.DOTALL)
    if url is None:
        return location.removeprefix("file://")
    path = unquote(url.group(1))
    is_of_drive = os.name == "nt" and re.match("/[A-Za-z]:", path) is not None
    return path[1:] if is_of_drive else path


def split_query(url: str) -> tuple[str, str]:
    """Split a URL into its address and its query, which is sent with every request to a server.

    Examples
    --------
    >>> split_query("http://host/a.n5?token=1"), split_query("s3://bucket/what?.n5")
    (('http://host/a.n5', '?token=1'), ('s3://bucket/what?.n5', ''))
    """
    is_http = url.lower().startswith(("http://", "https://"))
    address, mark, query = url.partition("?") if is_http else (url, "", "")
    return address, mark + query


def is_chain(url: str) -> bool:
    """Whether a URL is a chain of fsspec's, such as ``simplecache::s3://...``."""
    return "::" in _IPV6.sub("", url)


def is_remote(url: str, like: str) -> bool:
    """Whether a URL names a place on a server: by its scheme, or by that of another such URL.

    Examples
    --------
    >>> is_remote("s3://a/b", "http://c"), is_remote("local:///a", "http://c")
    (True, False)
    """
    is_alike = not is_chain(like) and url.startswith(like.partition("://")[0] + "://")
    return (is_alike or _ON_SERVERS.match(url) is not None) and not is_chain(url)


def is_of_one_key(err: Exception) -> bool:
    """Whether an error of storage concerns one key only, so that others may be readable."""
    is_lost = isinstance(err, ConnectionError | TimeoutError)
    is_damaged = isinstance(err, BadZipFile | zlib.error | EOFError)  # damage in an archive
    is_forbidden = getattr(err, "status", None) in (401, 403)  # of libraries, in a user's store
    return is_damaged or is_forbidden or (isinstance(err, OSError) and not is_lost)
