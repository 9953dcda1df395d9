"""Read the image loader of BigDataViewer's XML: the container that it names.

bigdataviewer-core ``XmlIoN5ImageLoader`` (``bdv.n5``), MoBIE's ``XmlIoN5S3ImageLoader``
(``bdv.n5.s3``) and Mastodon's ``XmlIoN5UniverseImgLoader`` (``bdv.n5.universe``).
"""

from __future__ import annotations

import re
from posixpath import join
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["Loader", "parse_loader"]

# elements that each loader needs
_ELEMENTS = {
    "bdv.n5": ("n5",),
    "bdv.n5.s3": ("BucketName", "Key"),
    "bdv.n5.universe": ("Url",),
}


class Loader(NamedTuple):
    """The location of a container, as an image loader names it.

    Parameters
    ----------
    location : str
        A path, relative to the XML or absolute, or a URL.
    group : str, optional
        Path of the group of the setups in the container.
    endpoint : str, optional
        Address of the S3 service; empty for that of Amazon.
    region : str, optional
        Region of the S3 service.
    """

    location: str
    group: str = ""
    endpoint: str = ""
    region: str = ""


def parse_loader(root: Element) -> Loader | str:
    """Parse the image loader below the root of the XML; return a description of any problem.

    Examples
    --------
    >>> from xml.etree.ElementTree import fromstring
    >>> def parse(loader):
    ...     sequence = f"<SequenceDescription>{loader}</SequenceDescription>"
    ...     return parse_loader(fromstring(f"<SpimData>{sequence}</SpimData>"))
    >>> parse('<ImageLoader format="bdv.n5"><n5 type="relative">my%20data.n5</n5></ImageLoader>')
    Loader(location='my data.n5', group='', endpoint='', region='')
    >>> parse('<ImageLoader format="bdv.n5.s3"><BucketName>b</BucketName></ImageLoader>')
    'the format bdv.n5.s3 without the element Key'
    """
    # top level only: BigStitcher's loader of split views contains another loader with other setups
    loader = root.find("SequenceDescription/ImageLoader")
    if loader is None:
        return "none"
    kind = loader.get("format") or "bdv.n5"
    # other loaders with this element, such as bdv.n5.cloud, mean the same by it
    missing = [name for name in _ELEMENTS.get(kind, ("n5",)) if not _text(loader, name)]
    if missing and kind not in _ELEMENTS:
        hint = "; save the project as N5 with BigStitcher" if kind == "bdv.hdf5" else ""
        return f"the format {kind}{hint}; n5zarr reads {', '.join(_ELEMENTS)}"
    if missing:
        return f"the format {kind} without the element {' and '.join(missing)}"
    base = _text(root, "BasePath")
    match kind:
        case "bdv.n5.s3":
            return _s3_loader(loader)
        case "bdv.n5.universe":
            return Loader(
                _join_base(base, _text(loader, "Url")), _text(loader, "Dataset").strip("/")
            )
        case _:
            location = _text(loader, "n5")
            return Loader(_join_base(base, unquote(location) if _is_encoded(loader) else location))


def _s3_loader(loader: Element) -> Loader | str:
    endpoint = _text(loader, "ServiceEndpoint")
    if endpoint and not re.match("https?://[^/]", endpoint):
        return f"the format bdv.n5.s3 with a ServiceEndpoint that is no web address, {endpoint!r}"
    return Loader(
        f"s3://{_text(loader, 'BucketName')}/{_text(loader, 'Key').strip('/')}",
        endpoint=endpoint,
        region=_text(loader, "SigningRegion"),
    )


def _is_encoded(loader: Element) -> bool:
    """Whether the path is a part of a URI: version 1.0 wrote paths of files as they are."""
    element = loader.find("n5")
    is_relative = element is not None and element.get("type") == "relative"
    return is_relative and loader.get("version") != "1.0"


def _join_base(base: str, location: str) -> str:
    return location if base in ("", ".") or ":" in location else join(base, location)


def _text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
