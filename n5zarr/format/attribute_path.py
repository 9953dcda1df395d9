r"""Attribute paths, with which Java names members inside an ``attributes.json``: ``a/b[2]``.

N5 spec, "File-system specification", item 2, says only that attributes are JSON; the paths are
those of N5 Java since 3.0.

Java: ``N5URI.normalizeAttributePath`` and ``getAttributePathTokens``, ``GsonUtils.getAttribute``,
``insertAttribute`` and ``removeAttribute``, ``LinkedAttributePathToken`` (saalfeldlab/n5 at
7ba6b144). ``/`` separates names, ``[2]`` is the third item of a list, ``\/`` and ``\[`` are these
characters themselves, ``.`` and ``..`` are resolved, and the empty path is the whole document.
"""

from __future__ import annotations

import re

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import JSON

type AttributePath = tuple[str | int, ...]
"""Names of members and indices of lists, from the outside inwards; empty for the document."""

_LONGEST = 1_000_000  # items of a list that a mistyped index may fill

# Java's own expressions; there `.` matches no line end, so a path with one is one name
_IS_MULTI_PART = re.compile(
    r"[^\n\r\x85\u2028\u2029]*(?<!\\)(?:/|\[[0-9]+\])[^\n\r\x85\u2028\u2029]*"
)
_INDEX_AT_START = re.compile(r"^(\[[0-9]+\])")
_INDEX_LATER = re.compile(r"(?<!^)(?<!\\)(\[[0-9]+\])")
_START = r"(?:(?<=/)|^)"
_REDUNDANT = re.compile(
    rf"(?<=/)/+|{_START}(?:\./)+|(?:/|(?<=/))\.$|(?<!^)(?<!\\)/$"
    rf"|(?:(?<=^/)|^|{_START}(?!\.\./)[^/]+/)\.\./?"
)
_SEPARATOR = re.compile(r"(?<!\\)/")
_INDEX = re.compile(r"\[([0-9]+)\]")


def parse_attribute_path(path: str) -> AttributePath:
    r"""Parse an attribute path.

    Raises
    ------
    N5UnrepresentableError
        An index is larger than any list should be (``kind="path"``).

    Examples
    --------
    >>> parse_attribute_path("/a[2]b/../c"), parse_attribute_path(r"m\/s")
    (('a', 2, 'c'), ('m/s',))
    """
    return tuple(map(_token, filter(None, _SEPARATOR.split(normalize_attribute_path(path)))))


def normalize_attribute_path(path: str) -> str:
    """Return a path without its redundant parts, as Java writes it.

    Examples
    --------
    >>> normalize_attribute_path("/a/./b//c[1]d/../")
    '/a/b/c/[1]'
    """
    if not _IS_MULTI_PART.fullmatch(path):
        return path
    path = _INDEX_LATER.sub(r"/\1/", _INDEX_AT_START.sub(r"\1/", path))
    before = None
    while path != before:
        path, before = _REDUNDANT.sub("", path), path
    return path


def _token(part: str) -> str | int:
    index = _INDEX.fullmatch(part)
    if index is None:
        return part.replace("\\/", "/").replace("\\[", "[")
    if len(index[1]) > 9 or int(index[1]) >= _LONGEST:
        message = f"attribute path: expected an index below {_LONGEST}, got {index[1]:.20}"
        raise N5UnrepresentableError(message, kind="path")
    return int(index[1])


def lookup(document: JSON, path: AttributePath, default: JSON = None) -> JSON:
    """Return the value at a path.

    Parameters
    ----------
    document : JSON
        The document, or a part of it.
    path : tuple of str and int
        See :func:`parse_attribute_path`.
    default : JSON, optional
        The result if the path has no value.

    Examples
    --------
    >>> lookup({"a": {"b": [1, 2]}}, ("a", "b", 1)), lookup({"a": 1}, ("a", "b"), "nothing")
    (2, 'nothing')
    """
    for token in path:
        # Java: an object may have a member named like an index
        name = f"[{token}]" if isinstance(token, int) else token
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and isinstance(token, int) and token < len(document):
            document = document[token]
        else:
            return default
    return document


def insert(document: JSON, path: AttributePath, value: JSON) -> JSON:
    """Return a document with a value at a path; the given one stays as it is.

    Java: values on the way that have the wrong kind for the path are replaced. A list that is too
    short is filled, with 0 before a number and with null before anything else.

    Examples
    --------
    >>> insert({"a": 1, "c": 2}, ("a", "b", 1), 5)
    {'a': {'b': [0, 5]}, 'c': 2}
    """
    if not path:
        return value
    token, *inner = path
    if isinstance(token, str):
        members = dict(document) if isinstance(document, dict) else {}
        members[token] = insert(members.get(token), tuple(inner), value)
        return members
    items = list(document) if isinstance(document, list) else []
    is_number = not inner and isinstance(value, int | float) and not isinstance(value, bool)
    items += [0 if is_number else None] * (token + 1 - len(items))
    items[token] = insert(items[token], tuple(inner), value)
    return items


def remove(document: JSON, path: AttributePath) -> JSON:
    """Return a document without a value that it has at a path; later items of its list move up.

    Examples
    --------
    >>> remove({"a": [1, 2, 3]}, ("a", 0))
    {'a': [2, 3]}
    """
    token, *inner = path
    if isinstance(document, list) and isinstance(token, int):
        items = list(document)
        items[token : token + 1] = [remove(items[token], tuple(inner))] if inner else []
        return items
    name = f"[{token}]" if isinstance(token, int) else token
    members = dict(document) if isinstance(document, dict) else {}
    if inner:
        members[name] = remove(members[name], tuple(inner))
    else:
        members.pop(name, None)
    return members
