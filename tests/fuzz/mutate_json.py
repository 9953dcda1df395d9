"""Damage documents as broken files, as typed by people, and as by an adversary."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["mutated_document"]

type Place = list[str | int]

TOKENS = (
    "1e999", "-1e999", "NaN", "-Infinity", "1" + "0" * 400, "-" + "9" * 4999, "0.1", "-0", "-1",
    "1e3", "7.0", "007", "0x7", "2147483648", "9223372036854775807", "9223372036854775808",
    "18446744073709551616", "4611686018427387904", "0", "null", "true", "false", '""', '"7"',
    '"\\u0000"', '"\\ud800"', '"a/b"', '".."', '"/etc/passwd"', "[]", "{}", "[[]]", '[""]',
    "[null]", "[1,2]", "[-1,0,0]", "[0,0,0]", "[1e308,1e308,1e308]", '["x","x","x"]', '{"":{}}',
    '{"type":"gzip"}', "undefined", "'single'", "bare", "1,", "[1,]", "/* */ 1", "#\n1", "\u2028",
)  # fmt: skip
"""Values, most of which are of another type, or not standard."""
NAMES = (
    "dimensions", "blockSize", "dataType", "compression", "compressionType", "codecs", "n5", "zarr",
    "axes", "units", "resolution", "offset", "pixelResolution", "downsamplingFactors", "scales",
    "transform", "multiscales", "ome", "spatialTransform", "painteraData", "isLabelMultiset",
    "_ARRAY_DIMENSIONS", "coordinateTransformations", "datasets", "path", "translate", "scale",
    "ordering", "unit", "name", "type", "", "/", "..", "a/b", "__class__", "\0", "é", "a" * 3000,
)  # fmt: skip
"""Names of members, of all conventions and none."""
LARGEST = 2**21  # bytes of a document
BLOWN = 2000  # how many levels, or members, make a document large


def mutated_document(rng: random.Random, document: bytes, others: Sequence[bytes]) -> bytes:
    """Change a document in one of many ways."""
    if rng.random() < 0.12:
        return _bytes(rng, document, rng.choice(others))
    value = json.loads(document)
    tokens: dict[str, str] = {}
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if sum(1 for _ in _places(value, [])) > LARGEST // 64:
            break
        value = _changed(rng, value, json.loads(rng.choice(others)), tokens)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    for mark, token in tokens.items():
        written = json.dumps(mark)
        text = text.replace(written, token, LARGEST // len(token or written))
    return _encoded(rng, _written(rng, text[:LARGEST]))[:LARGEST]


def _places(value: Any, place: Place) -> Iterator[Place]:
    yield place
    members = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else members
    for key, child in items:
        yield from _places(child, [*place, key])


def _at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


def _changed(  # noqa: C901 - one way in each case
    rng: random.Random, value: Any, other: Any, tokens: dict[str, str]
) -> Any:
    """Replace, remove, add, rename or repeat a random value."""
    place = rng.choice(list(_places(value, [])))
    new: Any = f"@{len(tokens)}@{rng.randrange(2**32)}"
    if not place:
        if not isinstance(value, dict) or rng.random() < 0.1:
            tokens[new] = rng.choice(TOKENS)
            return new
        value[rng.choice(NAMES)] = _new(rng, new, other, tokens)
        return value
    holder, key = _at(value, place[:-1]), place[-1]
    match rng.randrange(7):
        case 0 | 1 | 2:
            holder[key] = _new(rng, new, other, tokens)
        case 3:
            del holder[key]
        case 4 if isinstance(holder, dict):
            holder[rng.choice(NAMES)] = holder.pop(key)
        case 4:
            rng.shuffle(holder)
        case 5 if isinstance(holder, dict):
            holder[rng.choice(NAMES)] = _new(rng, new, other, tokens)
        case 5:
            holder.extend(holder[: rng.choice((1, 1, 70))])
        case _:
            n = rng.choice((1, 3, BLOWN))
            is_small = sum(1 for _ in _places(holder[key], [])) < 20
            holder[key] = [holder[key]] * (n if is_small else 3)
    return value


def _new(rng: random.Random, mark: str, other: Any, tokens: dict[str, str]) -> Any:
    """Make a value: a token, one of another document, or one that is very deep or long."""
    kind = rng.random()
    if kind < 0.6:
        tokens[mark] = rng.choice(TOKENS)
    elif kind < 0.9:
        return _at(other, rng.choice(list(_places(other, []))))
    else:
        n = rng.choice((200, 300, BLOWN, 50_000))
        tokens[mark] = rng.choice((
            "[" * n + "]" * n, '{"a":' * n + "1" + "}" * n, '"' + "x" * n + '"', "[" * n,
            "[" + "1," * n + "1]", "{" + ",".join(f'"k{k}":{k}' for k in range(n // 9)) + "}",
            "'" + "\\'" * n + "'", "/*" + "*" * n + "*/1",
            "[" + "a/*," * n, '"' + '\\"' * n, "'" + "\\'" * n,  # no comment, no string ends
        ))  # fmt: skip
    return mark


def _written(rng: random.Random, text: str) -> str:  # noqa: PLR0911 - one way in each case
    """Write a value as people do, and as Gson reads it."""
    match rng.randrange(12):
        case 0:
            return text.replace('"', "'")
        case 1:
            return text.replace(", ", ";\n").replace(":", "=>")
        case 2:
            return "// by hand\n" + text + " # end\n"
        case 3:  # members twice, the last one counts
            return text.replace("{", '{"dimensions": 3, "dataType": [], "axes": 1, ', 1)
        case 4:
            return text.rstrip("}") + ", " + text.lstrip("{")
        case 5:
            return text + rng.choice((text, "x", "}", "\0", " " * 9000, "\n" * 9000))
        case 6:
            return text.replace("]", ",]").replace("}", ",}")
        case _:
            return text


def _encoded(rng: random.Random, text: str) -> bytes:
    encoding = rng.choice(
        (*["utf-8"] * 12, "utf-8-sig", "utf-16", "utf-32-be", "latin-1", "utf-7", "cp037")
    )
    if len(text) > LARGEST:
        encoding = "utf-8"
    return text.encode(encoding, "replace" if encoding != "utf-8" else "surrogatepass")


def _bytes(rng: random.Random, document: bytes, other: bytes) -> bytes:
    """Change bytes at random."""
    data = bytearray(document)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = rng.randbytes(1)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = other[: rng.randrange(len(other) + 1)]
            case 3:
                del data[at : at + rng.choice((1, 2, 9))]
            case _:
                data[at:at] = rng.choice((b"\0", b"\xff", b'"', b"{", b"}", b"\\", b"[", b","))
    return bytes(data)
