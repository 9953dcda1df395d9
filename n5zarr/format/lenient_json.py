"""Parse JSON as Java's N5 does, with Gson in lenient mode.

N5 spec, "File-system specification", item 2: attributes are JSON.

Java: beyond standard JSON, Gson takes comments (``/* */``, ``//``, ``#``), single quotes, unquoted
names and strings, ``NaN`` and ``Infinity``, ``=`` and ``=>`` for ``:``, ``;`` for ``,``, a byte
order mark, repeated names (the last one wins) and an empty file (``null``). Content after the
document, missing or surplus commas and more than 255 levels are errors, in Java and here.

:mod:`json` parses standard documents. If it refuses one, each token is rewritten in standard
JSON, and :mod:`json` parses the result: a parser in Python takes many seconds for megabytes.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

from n5zarr.errors import N5AttributesError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = [
    "JSON",
    "MAX_DEPTH",
    "DocumentText",
    "MemberText",
    "parse_json",
    "parse_members",
]

type JSON = str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None

MAX_DEPTH = 255
"""Java: Gson's limit on nested arrays and objects."""

_REMEMBERED = 2**23  # characters

# `++` and `*+` never go back, so that they need no memory for each character
_SKIP = re.compile(r"(?:[\s\ufeff]++|/\*.*?\*/|//[^\n]*+|#[^\n]*+)*+", re.DOTALL)
_BARE = re.compile(r"[^\s\x00-\x1f/\\;#=,:{}\[\]\"']++")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = {
    quote: re.compile(rf"(?:[^{quote}\\]++|\\.)*+{quote}", re.DOTALL) for quote in ('"', "'")
}
# `standard` comes first and matches as much as possible; `other` is the rest of the document after
# the last token: a search for the end of each further string or comment takes quadratic time
_TOKEN = re.compile(
    rf"""
    (?P<standard> (?: [\[\]{{}},:\ \t\r\n] | "[^"\\\x00-\x1f]*+"
                    | {_NUMBER.pattern} (?= [\ \t\r\n]*+ [,\]}}] ) )++ )
    | (?P<space> [\s\ufeff]++ | /\*.*?\*/ | //[^\n]*+ | \#[^\n]*+ )
    | (?P<string> "{_STRING['"'].pattern} | '{_STRING["'"].pattern} )
    | (?P<name> {_BARE.pattern} (?= {_SKIP.pattern.replace("#", "[#]")} [:=] ) )
    | (?P<word> {_BARE.pattern} )
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


def _refuse(token: str) -> JSON:
    raise ValueError(f"{token} is not standard JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)
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
    spelled = _spelled(text)
    if not spelled.strip():
        return None
    try:
        return cast("JSON", _STANDARD.decode(spelled))
    except json.JSONDecodeError as err:
        raise _refusal(text, spelled, err) from None


@_remembered
def _spelled(text: str) -> str:
    """Rewrite the tokens of a document in standard JSON."""
    return _TOKEN.sub(_standard, text)


def _standard(token: re.Match[str]) -> str:
    """Rewrite a token in standard JSON."""
    text, kind = token.group(), token.lastgroup
    if kind == "standard" or (kind == "word" and (text in _WORDS or _NUMBER.fullmatch(text))):
        return text
    if kind in ("name", "word"):
        return f'"{text}"'
    if kind == "string":
        is_plain = "\\" not in text and '"' not in text[1:-1]
        return f'"{text[1:-1]}"' if is_plain else json.dumps(_unquoted(text))
    return _SPELLED[kind or "other"]


class MemberText(NamedTuple):
    """What stands in a document for a member of an object.

    Parameters
    ----------
    value : str or None
        The text of the value; None if it is not standard JSON, apart from comments.
    before, colon, after : str
        Comments before the name, the colon with comments around it, comments after the value.
    """

    value: str | None = None
    before: str = ""
    colon: str = ":"
    after: str = ""


class DocumentText(NamedTuple):
    """A document that is an object, with the text of its parts.

    Parameters
    ----------
    values : dict
        The members; empty for a document that is not an object.
    texts : dict
        The text of each member.
    head, tail : str
        Comments before and after the object, and a byte order mark.
    """

    values: dict[str, JSON]
    texts: dict[str, MemberText]
    head: str = ""
    tail: str = ""


def parse_members(data: bytes) -> DocumentText:
    """Parse a document that is an object, and keep the text of its members and its comments.

    Parameters
    ----------
    data : bytes
        As for :func:`parse_json`.

    Returns
    -------
    DocumentText
        Members in the order of the document. Space alone is not kept.

    Raises
    ------
    N5AttributesError
        The bytes are not JSON, even in lenient mode (``kind="json"``).

    Examples
    --------
    >>> document = parse_members(b"{a: 1.0E-12, 'b': [1, NaN]} // by hand")
    >>> document.values, document.texts["a"].value, document.texts["b"].value, document.tail
    ({'a': 1e-12, 'b': [1, nan]}, '1.0E-12', None, ' // by hand')
    """
    document = parse_json(data)
    text = data.decode()
    if document is None and not _spelled(text).strip():
        return DocumentText({}, {}, head=_comments(text + "\n"))
    if not isinstance(document, dict):
        return DocumentText({}, {})
    head, texts, tail = _Members(text).spelled()
    return DocumentText(document, texts, head, tail)


def _comments(space: str) -> str:
    """Return what stands between tokens, unless it is only space."""
    return space if space.strip() else ""


def _error(message: str) -> N5AttributesError:
    return N5AttributesError([Problem((), message, "json")])


def _too_deep() -> N5AttributesError:
    return _error(f"not JSON: expected at most {MAX_DEPTH} levels of nesting, got more")


def _refusal(text: str, spelled: str, err: json.JSONDecodeError) -> N5AttributesError:
    """Make the error that says where a document is wrong, from that of its rewritten tokens."""
    at = err.pos
    if err.msg.startswith("Illegal trailing comma"):  # Python 3.13
        at += 1 + len(spelled[at + 1 :]) - len(spelled[at + 1 :].lstrip())
        expected = "a value" if spelled[at] == "]" else "a name"
    elif err.msg == "Expecting ',' delimiter":
        expected = f"',' or {_end_of_container(spelled[:at])!r}"
    else:
        expected = _EXPECTED[err.msg]
    pos = _source(text, at)
    if expected in ("a value", "a name") and text[pos : pos + 1] in ("'", '"'):
        expected = "the end of a string that begins"
    got = repr(text[pos]) if pos < len(text) else "the end"
    line, column = text.count("\n", 0, pos) + 1, pos - text.rfind("\n", 0, pos)
    return _error(f"not JSON: expected {expected} at line {line}, column {column}, got {got}")


def _end_of_container(spelled: str) -> str:
    """Return the bracket that ends the innermost array or object at the end of a part."""
    depth = 0
    for bracket in reversed(re.findall(r"[\[\]{}]", _STANDARD_STRING.sub("", spelled))):
        depth += 1 if bracket in "]}" else -1
        if depth < 0:
            return "]" if bracket == "[" else "}"
    raise AssertionError(spelled)


@_remembered
def _source(text: str, at: int) -> int:
    """Return the start, in the source, of the token at a position of the rewritten document."""
    for token in _TOKEN.finditer(text):
        length = len(_standard(token))
        if at < length:
            return token.start() + (at if token.lastgroup == "standard" else 0)
        at -= length
    return len(text)


def _check_depth(document: JSON) -> None:
    """Raise if a document has more levels than Java reads; works without recursion."""
    level = _containers([document])
    for _ in range(MAX_DEPTH):
        level = _containers(child for value in level for child in _children(value))
        if not level:
            return
    raise _too_deep()


def _containers(values: Iterable[JSON]) -> list[JSON]:
    return [value for value in values if isinstance(value, dict | list)]


def _children(value: JSON) -> list[JSON]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


class _Members:
    """Finds the members of a document that is an object; ``pos`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0

    def spelled(self) -> tuple[str, dict[str, MemberText], str]:
        """Return the text before the object, that of each member, and the text after it."""
        texts: dict[str, MemberText] = {}
        head = self.gap()
        self.take("{")
        before = self.gap()
        while not self.take("}"):
            name = self.name()
            colon = self.gap()
            self.take(":", "=>", "=")
            colon += ":" + self.gap()
            value = self.strict()
            texts[name] = MemberText(value, before, colon, self.gap())
            before = self.gap() if self.take(",", ";") else ""
        # the comments in an empty object come before it
        return head + before, texts, _comments(self.text[self.pos :])

    def gap(self) -> str:
        """Skip space and comments; return them if there are comments."""
        start = self.pos
        self.peek()
        return _comments(self.text[start : self.pos])

    def peek(self) -> str:
        """Skip space and comments; return the next character."""
        skipped = _SKIP.match(self.text, self.pos)
        self.pos = skipped.end() if skipped else self.pos
        return self.text[self.pos]

    def take(self, *options: str) -> bool:
        """Consume the first option that the text continues with; return whether there is one."""
        self.peek()
        for option in options:
            if self.text.startswith(option, self.pos):
                self.pos += len(option)
                return True
        return False

    def name(self) -> str:
        quote, start = self.peek(), self.pos
        if quote in _STRING:
            self.pos = _end(_STRING[quote].match(self.text, start + 1))
            return _unquoted(self.text[start : self.pos])
        self.pos = _end(_BARE.match(self.text, start))
        return self.text[start : self.pos]

    def strict(self) -> str | None:
        """Consume a value; return its text if that is standard JSON apart from comments."""
        start = self.pos
        try:
            _, end = _STRICT.raw_decode(self.text, start)
        except ValueError:
            pass
        else:
            self.pos = end
            if self.peek() in (",", ";", "}"):
                self.pos = end
                return self.text[start:end]
            self.pos = start  # `12` of the unquoted string `12abc`
        self.skip()
        text = self.text[start : self.pos]
        try:
            _STRICT.decode(_TOKEN.sub(_without_comment, text))
        except ValueError:
            return None
        return text

    def skip(self) -> None:
        """Consume a value."""
        depth, end = 0, self.pos
        while True:
            character = self.peek()
            if depth == 0 and character in (",", ";", "}"):
                self.pos = end
                return
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0)
            if character in _STRING or _BARE.match(character):
                self.name()
            else:
                self.pos += 1
            end = self.pos


def _without_comment(token: re.Match[str]) -> str:
    return " " if token.lastgroup == "space" else token.group()


def _end(found: re.Match[str] | None) -> int:
    assert found is not None  # noqa: S101 - the document has been parsed
    return found.end()


def _unquoted(quoted: str) -> str:
    """Return the value of a string in quotes."""
    plain = _ESCAPE.sub(_unescape, quoted[1:-1]) if "\\" in quoted else quoted[1:-1]
    # a character beyond 16 bits is two escapes: \ud83d\ude00
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _unescape(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)
