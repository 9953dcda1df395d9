"""Name the locations of blocks as URLs, for readers of other libraries."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING
from urllib.parse import quote

from n5zarr.errors import N5UnsupportedError
from n5zarr.storage.url import is_chain

if TYPE_CHECKING:
    from n5zarr.store.n5_store import N5Store

__all__ = ["plain_prefix", "scheme_of", "url_of_block", "url_of_container"]

_NOT_REACHED = ("memory", "zip")  # schemes of places that other programs cannot read in parts
_ALIASES = {"gcs": "gs", "s3a": "s3"}


def scheme_of(url: str) -> str:
    """Return the scheme of a URL, in lower case; ``""`` for a path.

    Examples
    --------
    >>> scheme_of("S3://bucket/a.n5"), scheme_of("/data/a.n5")
    ('s3', '')
    """
    scheme, separator, _ = url.partition("://")
    return scheme.lower() if separator else ""


def url_of_container(store: N5Store) -> str:
    """Return the URL of a container, without secrets; its parts are not quoted, unless it is HTTP.

    Raises
    ------
    N5UnsupportedError
        Other programs cannot read it: it is in memory or in an archive (``kind="option"``).
    """
    root = store.storage.root
    if root is not None:
        path = root.as_posix()
        return f"file://{path}" if path.startswith("/") else f"file:///{path}"
    url = str(store.storage)
    scheme = scheme_of(url)
    if not scheme or scheme in _NOT_REACHED or is_chain(url):
        raise N5UnsupportedError(
            f"{url}: expected local files or a URL, to which references can point; url= (--url) "
            "names the place where readers find the container",
            kind="option",
        )
    return f"{_ALIASES.get(scheme, scheme)}{url[len(scheme) :]}".rstrip("/")


def plain_prefix(url: str) -> str:
    """Return the part of a URL before the first name with signs that are quoted, with a slash.

    Icechunk quotes the URLs of chunks, but compares them with unquoted prefixes.

    Examples
    --------
    >>> plain_prefix("s3://bucket/a.n5"), plain_prefix("s3://bucket/my data/a.n5")
    ('s3://bucket/a.n5/', 's3://bucket/')
    """
    scheme, separator, place = url.partition("://")
    names = takewhile(lambda name: quote(name) == name, place.split("/"))
    return f"{scheme}{separator}{'/'.join(names)}/"


def url_of_block(container: str, key: str) -> str:
    """Return the URL of a block from the URL of the container and the key of the block.

    Examples
    --------
    >>> url_of_block("https://host/a.n5", "em #1/0/0"), url_of_block("s3://b/a.n5", "em #1/0/0")
    ('https://host/a.n5/em%20%231/0/0', 's3://b/a.n5/em #1/0/0')
    """
    is_http = scheme_of(container) in ("http", "https")
    return f"{container}/{quote(key, safe='/') if is_http else key}"
