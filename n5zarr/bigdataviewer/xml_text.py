"""Change elements in the bytes of an XML file, and keep every other byte."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

from n5zarr.errors import option_error

_TAG = re.compile(rb"""<[^"'>\0]*(?:"[^"]*"[^"'>\0]*|'[^']*'[^"'>\0]*)*>""")


class Span(NamedTuple):
    """The place of an element in the bytes of a file.

    Parameters
    ----------
    start, end : int
        The bytes from its first tag to its last.
    body, body_end : int
        The bytes between the tags; both are the end of an empty tag.
    attributes : mapping of str to str
        Its attributes.
    """

    start: int
    end: int
    body: int
    body_end: int
    attributes: Mapping[str, str]

    @property
    def is_empty_tag(self) -> bool:
        """Whether it is written as ``<a/>``."""
        return self.body == self.end


def parsed_xml(xml: bytes) -> ElementTree.Element | str:
    """Return the root element, or a description of the problem with the XML."""
    if b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        # entities can expand to any size; BigDataViewer writes none
        return "a DOCTYPE or entities, which n5zarr does not read; remove them"
    try:
        return ElementTree.fromstring(xml)  # noqa: S314 - without declarations, see above
    except (ElementTree.ParseError, LookupError, ValueError) as err:  # or unknown encoding
        return f"XML that is not well-formed: {err}"


def elements_at(xml: bytes, path: str) -> list[Span]:
    """Find the elements at a path of tags from the root, ``"SpimData/BasePath"``.

    Parameters
    ----------
    xml : bytes
        A file that :func:`parsed_xml` parses.
    path : str
        Names of the elements, separated by ``/``.

    Raises
    ------
    N5UnrepresentableError
        The encoding does not extend ASCII, so that its bytes cannot be changed one by one
        (``kind="option"``).

    Examples
    --------
    >>> xml = b"<a><b n='1'/><c><b/></c><b>text</b></a>"
    >>> [xml[span.start : span.end] for span in elements_at(xml, "a/b")]
    [b"<b n='1'/>", b'<b>text</b>']
    """
    wanted, parser = path.split("/"), expat.ParserCreate()
    above: list[str] = []
    opened: list[tuple[int, int, Mapping[str, str]]] = []
    found: list[Span] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        above.append(name)
        if above == wanted:
            start = parser.CurrentByteIndex
            tag = _TAG.match(xml, start)
            if tag is None:
                raise option_error("expected XML in UTF-8, got another encoding; save it in UTF-8")
            opened.append((start, tag.end(), attributes))

    def end(_: str) -> None:
        if above == wanted:
            start, body, attributes = opened.pop()
            is_empty = xml[body - 2 : body] == b"/>"
            last = body if is_empty else parser.CurrentByteIndex
            stop = body if is_empty else xml.index(b">", last) + 1
            found.append(Span(start, stop, body, last, attributes))
        above.pop()

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.Parse(xml, True)  # noqa: FBT003 - the last part
    return found


def replaced(xml: bytes, changes: Iterable[tuple[int, int, str]]) -> bytes:
    """Replace parts of the bytes, from the first to the second number, by texts.

    Characters beyond ASCII, which may be other bytes in this encoding, become references.
    """
    parts, done = [], 0
    for start, end, text in sorted(changes):
        parts += [xml[done:start], text.encode("ascii", "xmlcharrefreplace")]
        done = end
    return b"".join([*parts, xml[done:]])


def with_children(xml: bytes, path: str, children: Sequence[str]) -> bytes:
    r"""Add elements at the end of the element at a path, which is made if it is missing.

    Each child is on its own line, with the indent of the others.

    Examples
    --------
    >>> with_children(b"<a>\n  <b />\n</a>", "a/b", ["<c/>"]).decode()
    '<a>\n  <b>\n    <c/>\n  </b>\n</a>'
    >>> with_children(b"<a></a>", "a/b", ["<c/>"]).decode()
    '<a>\n  <b>\n    <c/>\n  </b>\n</a>'
    """
    found = elements_at(xml, path)
    if not found:
        above, _, name = path.rpartition("/")
        if not above:
            raise option_error(f"expected the root element {name}, got another one")
        indent = " " * (2 * path.count("/"))
        lines = [f"<{name}>", *(f"{indent}  {child}" for child in children), f"{indent}</{name}>"]
        return with_children(xml, above, ["\n".join(lines)])
    span = found[-1]
    line = xml.rfind(b"\n", 0, span.start) + 1
    before = xml[line : span.start]
    indent = before.decode("ascii") if not before.strip() else ""
    added = "".join(f"\n{indent}  {child}" for child in children)
    if span.is_empty_tag:
        kept = len(xml[: span.body - 2].rstrip())
        name = path.rpartition("/")[2]
        return replaced(xml, [(kept, span.end, f">{added}\n{indent}</{name}>")])
    kept = span.body + len(xml[span.body : span.body_end].rstrip())
    return replaced(xml, [(kept, span.body_end, f"{added}\n{indent}")])


def indented(element: ElementTree.Element, level: int) -> str:
    """Return the text of an element, whose own lines follow that of its first tag."""
    ElementTree.indent(element, level=level)
    return ElementTree.tostring(element, encoding="unicode")


def numbers_text(values: Iterable[float]) -> str:
    """Write numbers as Java's ``XmlHelpers`` reads them, and read back bit for bit."""
    return " ".join(repr(float(value)) for value in values)


def numbers_in(text: str) -> tuple[float, ...]:
    """Parse numbers; empty if one is none."""
    try:
        return tuple(map(float, text.split()))
    except ValueError:
        return ()


def whole_number(text: str | None) -> int | None:
    """Parse a whole number; None for any other text."""
    try:
        return int(text or "")
    except ValueError:
        return None
