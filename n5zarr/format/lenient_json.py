"""Parse JSON as Java's N5 does, with Gson in lenient mode.

N5 spec, "File-system specification", item 2: attributes are JSON.

Java: beyond standard JSON, Gson takes comments (``/* */``, ``//``, ``#``), single quotes, unquoted
names and strings, ``NaN`` and ``Infinity``, ``=`` and ``=>`` for ``:``, ``;`` for ``,``, a byte
order mark, repeated names (the last one wins) and an empty file (``null``). Content after the
document, missing or surplus commas and more than 255 levels are errors, in Java and here. Where a
number or a boolean is expected, one in quotes is taken too.

:mod:`json` parses standard documents; the parser of this module parses those that :mod:`json`
refuses.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

from n5zarr.errors import N5AttributesError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

__all__ = ["JSON", "MAX_DEPTH", "as_boolean", "as_integer", "parse_json", "parse_members"]

type JSON = str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None

MAX_DEPTH = 255
"""Java: Gson's limit on nested arrays and objects."""

_QUOTED_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
# `++` and `*+` never go back, so that they need no memory for each character
_SKIP = re.compile(r"(?:[\s\ufeff]++|/\*.*?\*/|//[^\n]*+|#[^\n]*+)*+", re.DOTALL)
_BARE = re.compile(r"[^\s\x00-\x1f/\\;#=,:{}\[\]\"']+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_STRING = {
    quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in ('"', "'")
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, JSON] = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def _refuse(token: str) -> JSON:
    message = f"{token} is not standard JSON"
    raise ValueError(message)


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_STANDARD = json.JSONDecoder(strict=False)


def as_integer(value: JSON, low: int, high: int) -> int:
    """Convert a value to an integer as Java does: accept 4, 4.0 and "4", but not "4.0".

    Deviation: Java truncates 4.5 to 4, and numbers out of range to their last bits.

    Raises
    ------
    ValueError
        The value is not an integer, or not one from ``low`` to ``high``.
    """
    if type(value) is int and low <= value <= high:
        return value
    number: JSON = value
    if isinstance(value, str) and _QUOTED_INTEGER.fullmatch(value):
        number = int(value)
    is_integral = isinstance(number, int) or (isinstance(number, float) and number.is_integer())
    if isinstance(number, bool) or not is_integral or not low <= cast("float", number) <= high:
        message = f"expected an integer from {low} to {high}, got {value!r:.80}"
        raise ValueError(message)
    return int(cast("float", number))


def as_boolean(value: JSON) -> bool:
    """Convert a value to a boolean as Java does: accept true and "TRUE".

    Deviation: Java takes any other string as false.

    Raises
    ------
    ValueError
        The value is not a boolean.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    message = f"expected true or false, got {value!r:.80}"
    raise ValueError(message)


def parse_json(data: bytes) -> JSON:
    """Parse the bytes of an ``attributes.json``.

    Parameters
    ----------
    data : bytes
        UTF-8, with or without a byte order mark.

    Returns
    -------
    JSON
        The document; None for an empty file. Integers of any size stay exact.

    Raises
    ------
    N5AttributesError
        The bytes are not JSON, even in lenient mode (``kind="json"``).

    Examples
    --------
    >>> parse_json(b"{'a': [1, NaN,], }")
    Traceback (most recent call last):
    ...
    n5zarr.errors.N5AttributesError: not JSON: expected a value at line 1, column 15, got ']'
    >>> parse_json(b"/* by hand */ {a: 'x', b = 2}")
    {'a': 'x', 'b': 2}
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise _error(
            f"not JSON: expected UTF-8, got byte {data[err.start]:#04x} at {err.start}"
        ) from err
    try:
        document = cast("JSON", _STANDARD.decode(text))
    except json.JSONDecodeError:
        pass
    except (RecursionError, ValueError) as err:  # too deep; an integer of thousands of digits
        raise _error(f"not JSON: {str(err).lower()}") from err
    else:
        if text.count("[") + text.count("{") > MAX_DEPTH:  # fewer cannot be too deep
            _check_depth(document)
        return document
    try:
        return _Lenient(text).document()
    except (RecursionError, ValueError) as err:
        if isinstance(err, N5AttributesError):
            raise
        raise _error(f"not JSON: {str(err).lower()}") from err


def parse_members(data: bytes) -> dict[str, tuple[JSON, str | None]]:
    """Parse a document that is an object, and keep the text of its members.

    Parameters
    ----------
    data : bytes
        As for :func:`parse_json`.

    Returns
    -------
    dict
        Value and text of each member, in the order of the document; the text is None where it is
        not standard JSON. Empty for a document that is not an object.

    Raises
    ------
    N5AttributesError
        The bytes are not JSON, even in lenient mode (``kind="json"``).

    Examples
    --------
    >>> parse_members(b"{a: 1.0E-12, 'b': [1, NaN]} // by hand")
    {'a': (1e-12, '1.0E-12'), 'b': ([1, nan], None)}
    """
    document = parse_json(data)
    if not isinstance(document, dict):
        return {}
    texts = _Lenient(data.decode("utf-8-sig")).spelled()
    return {name: (value, texts[name]) for name, value in document.items()}


def _error(message: str) -> N5AttributesError:
    return N5AttributesError([Problem((), message, "json")])


def _check_depth(document: JSON) -> None:
    """Raise if a document has more levels than Java reads; do so without recursion."""
    level = _containers([document])
    for _ in range(MAX_DEPTH):
        level = _containers(child for value in level for child in _children(value))
        if not level:
            return
    raise _error(f"not JSON: expected at most {MAX_DEPTH} levels of nesting, got more")


def _containers(values: Iterable[JSON]) -> list[JSON]:
    return [value for value in values if isinstance(value, dict | list)]


def _children(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


class _Lenient:
    """Recursive descent parser of Gson's lenient grammar; ``pos`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.depth = 0

    def document(self) -> JSON:
        value = None if self.peek() == "" else self.value()
        if self.peek() != "":
            raise self.unexpected("the end of the document")
        return value

    def peek(self) -> str:
        """Skip space and comments; return the next character, ``""`` at the end."""
        skipped = _SKIP.match(self.text, self.pos)
        self.pos = skipped.end() if skipped else self.pos
        return self.text[self.pos : self.pos + 1]

    def take(self, *options: str) -> bool:
        """Consume the first option that the text continues with; return whether there is one."""
        self.peek()
        for option in options:
            if self.text.startswith(option, self.pos):
                self.pos += len(option)
                return True
        return False

    def unexpected(self, expected: str) -> N5AttributesError:
        got = repr(self.text[self.pos]) if self.pos < len(self.text) else "the end"
        line = self.text.count("\n", 0, self.pos) + 1
        column = self.pos - self.text.rfind("\n", 0, self.pos)
        return _error(f"not JSON: expected {expected} at line {line}, column {column}, got {got}")

    def value(self) -> JSON:
        match self.peek():
            case "{":
                return self.nested(self.object)
            case "[":
                return self.nested(self.array)
            case '"' | "'":
                return self.string()
            case _:
                return self.bare()

    def nested[T](self, parse: Callable[[], T]) -> T:
        self.pos += 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _error(f"not JSON: expected at most {MAX_DEPTH} levels of nesting, got more")
        parsed = parse()
        self.depth -= 1
        return parsed

    def object(self) -> dict[str, JSON]:
        return {name: self.value() for name in self.names()}

    def names(self) -> Iterator[str]:
        """Yield the names of an object; the caller parses each value before it asks for more."""
        if self.take("}"):
            return
        while True:
            name = self.string() if self.peek() in ('"', "'") else self.word("a name")
            if not self.take(":", "=>", "="):
                raise self.unexpected("':'")
            yield name
            if self.take("}"):
                return
            if not self.take(",", ";"):
                raise self.unexpected("',' or '}'")

    def spelled(self) -> dict[str, str | None]:
        """Return the text of each member of the document, None where it is not standard JSON."""
        texts: dict[str, str | None] = {}
        self.take("{")
        for name in self.names():
            texts[name] = self.strict()
            if texts[name] is None:
                self.value()
        return texts

    def strict(self) -> str | None:
        """Consume a value if it is standard JSON, and return its text; else None."""
        self.peek()
        start = self.pos
        try:
            _, self.pos = _STRICT.raw_decode(self.text, start)
        except ValueError:
            return None
        end = self.pos
        if self.peek() in (",", ";", "}"):
            return self.text[start:end]
        self.pos = start  # `12` of the unquoted string `12abc`
        return None

    def array(self) -> list[JSON]:
        items: list[JSON] = []
        if self.take("]"):
            return items
        while True:
            items.append(self.value())
            if self.take("]"):
                return items
            if not self.take(",", ";"):
                raise self.unexpected("',' or ']'")

    def string(self) -> str:
        match = _STRING[self.text[self.pos]].match(self.text, self.pos + 1)
        if match is None:
            raise self.unexpected("the end of a string that begins")
        self.pos = match.end()
        plain = _ESCAPE.sub(_unescape, match.group()[:-1])
        # a character beyond 16 bits is two escapes: \ud83d\ude00
        return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def word(self, expected: str) -> str:
        match = _BARE.match(self.text, self.pos)
        if match is None:
            raise self.unexpected(expected)
        self.pos = match.end()
        return match.group()

    def bare(self) -> JSON:
        word = self.word("a value")
        if word in _WORDS:
            return _WORDS[word]
        number = _NUMBER.fullmatch(word)
        if number is None:
            return word
        return float(word) if any(number.groups()) else int(word)


def _unescape(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)
