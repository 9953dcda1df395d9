"""Write safe HTML: text and attributes are escaped when a page is written."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from xml.etree.ElementTree import Element, tostring

__all__ = ["Content", "content_hash", "element", "written"]

type Content = str | Element | Iterable[Content] | None


def element(tag: str, *content: Content, **attributes: str | None) -> Element:
    """Make an element.

    Parameters
    ----------
    tag : str
        Name of the element.
    *content : str, Element or iterable of them
        What is in it, in this order; None is left out.
    **attributes : str, optional
        Its attributes, an underscore for each hyphen; one at the end is for Python's own words.
        None is left out.
    """
    given = {
        name.rstrip("_").replace("_", "-"): value
        for name, value in attributes.items()
        if value is not None
    }
    made = Element(tag, given)
    _fill(made, content)
    return made


def _fill(parent: Element, content: Content) -> None:
    if content is None:
        return
    if isinstance(content, Element):
        parent.append(content)
    elif isinstance(content, str):
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + content
        else:
            parent.text = (parent.text or "") + content
    else:
        for each in content:
            _fill(parent, each)


def written(page: Element) -> bytes:
    """Write a page; half characters, which names of files may have, are replaced."""
    text = tostring(page, encoding="unicode", method="html")
    return b"<!doctype html>\n" + text.encode("utf-8", "replace")


def content_hash(text: str) -> str:
    """Return the Content-Security-Policy source of an inline script or stylesheet."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
