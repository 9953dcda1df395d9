"""Parse JSON as Java's N5 does, with Gson in lenient mode.

N5 spec, "File-system specification", item 2: attributes are JSON.

Java: beyond standard JSON, Gson takes comments (``/* */``, ``//``, ``#``), single quotes, unquoted
names and strings, ``NaN`` and ``Infinity``, ``=`` and ``=>`` for ``:``, ``;`` for ``,``, a byte
order mark, repeated names (the last one wins) and an empty file (``null``). Content after the
document, missing or surplus commas and more than 255 levels are errors, in Java and here.

:mod:`json` parses standard documents. If it refuses one, each token is rewritten in standard
JSON, and :mod:`json` parses the result: a parser in Python takes many seconds for megabytes.

Java: where a number or a boolean is expected, Gson takes one in quotes, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import cast

from n5zarr.errors import N5AttributesError, Problem

type JSON = str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None

MAX_DEPTH = 255
"""Java: Gson's limit on nested arrays and objects."""

_REMEMBERED = 2**23  # characters
_QUOTED_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)

# `++` and `*+` never go back, so that they need no memory for each character
SKIP = re.compile(r"(?:[\s\ufeff]++|/\*.*?\*/|//[^\n]*+|#[^\n]*+)*+", re.DOTALL)
BARE = re.compile(r"[^\s\x00-\x1f/\\;#=,:{}\[\]\"']++")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
STRING = {quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in ('"', "'")}
# `standard` comes first and matches as much as possible; `other` is the rest of the document after
# the last token: a search for the end of each further string or comment takes quadratic time
TOKEN = re.compile(
    rf"""
    (?P<standard> (?: [\[\]{{}},:\ \t\r\n] | "[^"\\\x00-\x1f]*+"
                    | {_NUMBER.pattern} (?= [\ \t\r\n]*+ [,\]}}] ) )++ )
    | (?P<space> [\s\ufeff]++ | /\*.*?\*/ | //[^\n]*+ | \#[^\n]*+ )
    | (?P<string> "{STRING['"'].pattern} | '{STRING["'"].pattern} )
    | (?P<name> {BARE.pattern} (?= {SKIP.pattern.replace("#", "[#]")} [:=] ) )
    | (?P<word> {BARE.pattern} )
    | (?P<colon> =>? )
    | (?P<comma> ; )
    | (?P<other> .+ )
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"null", "true", "false", "NaN", "Infinity", "-Infinity"}
_SPELLED = {"space": " ", "colon": ":", "comma": ",", "other": "\0"}  # never in JSON
_STANDARD_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_EXPECTED = {
    "Expecting value": "a value",
    "Expecting property name enclosed in double quotes": "a name",
    "Expecting ':' delimiter": "':'",
    "Extra data": "the end of the document",
}
"""The expected text for each message of :mod:`json`."""


def _remembered[T](function: Callable[..., T]) -> Callable[..., T]:
    """Remember the results for a few documents: some are read a dozen times."""
    remembering = lru_cache(maxsize=4)(function)

    def call(text: str, *args: int) -> T:
        return (remembering if len(text) < _REMEMBERED else function)(text, *args)

    return call


_STANDARD = json.JSONDecoder(strict=False)


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
        document = _decoded(text)
    except RecursionError as err:
        raise _too_deep() from err
    except ValueError as err:
        if isinstance(err, N5AttributesError):
            raise
        raise _error(f"not JSON: {str(err).lower()}") from err  # an integer of thousands of digits
    if text.count("[") + text.count("{") > MAX_DEPTH:  # fewer cannot be too deep
        _check_depth(document)
    return document


def _decoded(text: str) -> JSON:
    try:
        return cast("JSON", _STANDARD.decode(text))
    except json.JSONDecodeError:
        pass
    standard = spelled(text)
    if not standard.strip():
        return None
    try:
        return cast("JSON", _STANDARD.decode(standard))
    except json.JSONDecodeError as err:
        raise _refusal(text, standard, err) from None


@_remembered
def spelled(text: str) -> str:
    """Rewrite the tokens of a document in standard JSON."""
    return TOKEN.sub(_standard, text)


def _standard(token: re.Match[str]) -> str:
    """Rewrite a token in standard JSON."""
    text, kind = token.group(), token.lastgroup
    if kind == "standard" or (kind == "word" and (text in _WORDS or _NUMBER.fullmatch(text))):
        return text
    if kind in ("name", "word"):
        return f'"{text}"'
    if kind == "string":
        is_plain = "\\" not in text and '"' not in text[1:-1]
        return f'"{text[1:-1]}"' if is_plain else json.dumps(unquoted(text))
    return _SPELLED[kind or "other"]


def _error(message: str) -> N5AttributesError:
    return N5AttributesError([Problem((), message, "json")])


def _too_deep() -> N5AttributesError:
    return _error(f"not JSON: expected at most {MAX_DEPTH} levels of nesting, got more")


def _refusal(text: str, standard: str, err: json.JSONDecodeError) -> N5AttributesError:
    """Make the error that says where a document is wrong, from that of its rewritten tokens."""
    at = err.pos
    if err.msg.startswith("Illegal trailing comma"):  # Python 3.13
        at += 1 + len(standard[at + 1 :]) - len(standard[at + 1 :].lstrip())
        expected = "a value" if standard[at] == "]" else "a name"
    elif err.msg == "Expecting ',' delimiter":
        expected = f"',' or {_end_of_container(standard[:at])!r}"
    else:
        expected = _EXPECTED[err.msg]
    pos = _source(text, at)
    if expected in ("a value", "a name") and text[pos : pos + 1] in ("'", '"'):
        expected = "the end of a string that begins"
    got = repr(text[pos]) if pos < len(text) else "the end"
    line, column = text.count("\n", 0, pos) + 1, pos - text.rfind("\n", 0, pos)
    return _error(f"not JSON: expected {expected} at line {line}, column {column}, got {got}")


def _end_of_container(standard: str) -> str:
    """Return the bracket that ends the innermost array or object at the end of a part."""
    depth = 0
    for bracket in reversed(re.findall(r"[\[\]{}]", _STANDARD_STRING.sub("", standard))):
        depth += 1 if bracket in "]}" else -1
        if depth < 0:
            return "]" if bracket == "[" else "}"
    raise AssertionError(standard)


@_remembered
def _source(text: str, at: int) -> int:
    """Return the start, in the source, of the token at a position of the rewritten document."""
    for token in TOKEN.finditer(text):
        length = len(_standard(token))
        if at < length:
            return token.start() + (at if token.lastgroup == "standard" else 0)
        at -= length
    return len(text)


def _check_depth(document: JSON) -> None:
    """Raise if a document has more levels than Java reads; works without recursion."""
    level = _containers([document])
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _containers(each)]
        if not level:
            return
    raise _too_deep()


def _containers(values: list[JSON] | dict[str, JSON]) -> list[list[JSON] | dict[str, JSON]]:
    """Return the lists and objects directly in a list or an object."""
    members = values.values() if isinstance(values, dict) else values
    return [member for member in members if isinstance(member, dict | list)]


def unquoted(quoted: str) -> str:
    """Return the value of a string in quotes."""
    plain = _ESCAPE.sub(_unescape, quoted[1:-1]) if "\\" in quoted else quoted[1:-1]
    # a character beyond 16 bits is two escapes: \ud83d\ude00
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _unescape(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


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
        raise ValueError(f"expected an integer from {low} to {high}, got {value!r:.80}")
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
    raise ValueError(f"expected true or false, got {value!r:.80}")
