"""Documents keep their members through a change, whatever stands between these."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.lenient_json import parse_json
from n5zarr.format.raw_json import RawObject, from_numpy, nonfinite_note, strict

COMMENTS = (
    "", " ", "\n", "/**/", '/* {"dimensions": [99, 99]} */', '// {"a": 1}\n', '# "a": 2, }\n',
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(/\*.*?\*/|//[^\n]*|#[^\n]*)')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')


def changed(data: bytes) -> bytes:
    document = RawObject.parse(data)
    document.set("added", 1)
    return document.to_bytes()


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.data())
def test_comments_between_tokens_change_no_member(document: dict[str, Any], data: Any) -> None:
    tokens = _TOKEN.findall(json.dumps(document))
    between = [data.draw(st.sampled_from(COMMENTS)) for _ in range(len(tokens) + 1)]
    text = "".join(c + t for c, t in zip(between, tokens, strict=False)) + between[-1]
    new = changed(text.encode())
    assert parse_json(new) == {**document, "added": 1}
    comments = [comment.strip() for comment in between if comment.strip()]
    assert [found for found in _STRING_OR_COMMENT.findall(new.decode()) if found] == comments


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"a" = 12345678901234567890}', '"a":12345678901234567890'),
        ("{a: 1.50; 'b' => {\"c\": 2.50}}", '"a":1.50,"b":{"c": 2.50}'),
        ("{a: 1x, b: 007, c: 1.50}", '"a":"1x","b":"007","c":1.50'),
        ('{"a": "one\ttwo", "b": 1.50}', r'"a":"one\ttwo","b":1.50'),
        ('{"a": 1.50, "a": 2.50}', '"a":2.50'),
        ('{"a": 1.50, "a": {b: 2.5}}', '"a":{"b":2.5}'),
        ('{"n5": NaN, "b": [1.50, -Infinity]}', '"n5":"NaN","b":[1.5,"-Infinity"]'),
    ],
)
def test_standard_values_keep_their_spelling(text: str, kept: str) -> None:
    expected = f"{{{kept},".replace("{,", "{") + '"added":1}'
    assert changed(text.encode()).decode() == expected


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("// licence\n{}", '// licence\n{"added":1}'),
        ("/* a\n b */\n{'b' : 1}\n", '/* a\n b */\n{"b":1,"added":1}'),
        ("# by hand\n\n{b: 1.50}", '# by hand\n\n{"b":1.50,"added":1}'),
        ('\ufeff// BOM\n{"b":1}', '\ufeff// BOM\n{"b":1,"added":1}'),
        ("\ufeff{}", '\ufeff{"added":1}'),
        ('{"b":1} // the end', '{"b":1,"added":1} // the end'),
        ('{"b":1}\n/* } */\n', '{"b":1,"added":1}\n/* } */\n'),
        ('/* {"b": 9} */ {"b": 1 /* , "b": 2 */, "c": 3}',
         '/* {"b": 9} */ {"b":1 /* , "b": 2 */,"c":3,"added":1}'),
        ('{"b" # 2\n: [3, 4]}', '{"b" # 2\n:[3, 4],"added":1}'),
        ('{"b" /* "b": 1 */ => /* 2 */ 3}', '{"b" /* "b": 1 */ : /* 2 */ 3,"added":1}'),
        ('{"b": 1, // of b\n "c": 2 // of c\n}',
         '{"b":1, // of b\n "c":2 // of c\n,"added":1}'),
        ("{ /* nothing */ }", ' /* nothing */ {"added":1}'),
        ("{ // nothing\n}", ' // nothing\n{"added":1}'),
        ('{"b": [1, /* two */ 2.50]}', '{"b":[1, /* two */ 2.50],"added":1}'),
        ('{"b": {"c": 1 // nm\n}}', '{"b":{"c": 1 // nm\n},"added":1}'),
        ("{'b': [1, /* two */ NaN]}", '{"b":[1,"NaN"],"added":1}'),  # as the docstring says
        ("// {}", '// {}\n{"added":1}'),
        ("/* nothing yet */", '/* nothing yet */\n{"added":1}'),
        ('{"added": 0 /* to be set */}', '{"added":1 /* to be set */}'),
    ],
)  # fmt: skip
def test_comments_and_what_is_around_the_object_stay(text: str, new: str) -> None:
    assert changed(text.encode()).decode() == new
    assert changed(new.encode()).decode() == new


def test_the_comments_around_a_removed_member_are_removed() -> None:
    document = RawObject.parse(b'/* 1 */ {"a":1, /* b */ "b":2 // nm\n, /* c */ "c":3}')
    document.remove("b")
    assert document.to_bytes() == b'/* 1 */ {"a":1, /* c */ "c":3}'


@pytest.mark.parametrize("text", ["", "null", "[1]", "'x'", "// {}\n[1]"])
def test_a_document_that_is_no_object_counts_as_empty(text: str) -> None:
    assert changed(text.encode()) == b'{"added":1}'


def test_a_name_with_half_of_a_character_is_kept() -> None:
    document = RawObject.parse(b'{"\\ufffd":1.0,"a\\udfff":2.50,"\\ud800":[3]}')
    document.set("b", 4)
    assert document.to_bytes() == b'{"\\ufffd":1.0,"a\\udfff":2.50,"\\ud800":[3],"b":4}'


# ---------------------------------------------------------------------- what JSON lacks


def test_numbers_that_json_lacks_are_text_at_any_depth() -> None:
    value: Any = {"a": [1.5, math.nan, {"b": (math.inf, None)}], "c/d": -math.inf, "e": "NaN"}
    text = json.dumps(strict(value), allow_nan=False)
    assert json.loads(text) == {
        "a": [1.5, "NaN", {"b": ["Infinity", None]}], "c/d": "-Infinity", "e": "NaN",
    }  # fmt: skip
    note = nonfinite_note({"g": value, "": {"x": math.nan}, "h": {"y": 1}})
    assert note.endswith(": g/a/1, g/a/2/b/0, g/c~1d, x")
    assert nonfinite_note({"": [math.nan] * 11}).endswith("5, 6, 7 and 3 more")
    assert nonfinite_note({"g": strict(value)}) == ""


def test_numbers_of_numpy_are_those_of_json() -> None:
    attributes: dict[str, Any] = {
        "of each type": [np.dtype(t).type(3) for t in "bBhHiIlLqQefd"],
        "0-d": np.array(2.5, "f4"), "bool": np.bool_(False), "bools": np.arange(2) > 0,
        "text": np.str_("a"), "texts": np.array(["a", "bc"]), "list": [np.int8(-1), (np.uint8(2),)],
        "of objects": np.array([np.int64(1), None, "x"], object),
        "deep": {"matrix": np.arange(6).reshape(2, 3)}, np.str_("name"): np.float64(0.1),
    }  # fmt: skip
    found = from_numpy(attributes)
    assert json.loads(json.dumps(found)) == {
        "of each type": [3] * 13, "0-d": 2.5, "bool": False, "bools": [False, True],
        "text": "a", "texts": ["a", "bc"], "list": [-1, [2]], "of objects": [1, None, "x"],
        "deep": {"matrix": [[0, 1, 2], [3, 4, 5]]}, "name": 0.1,
    }  # fmt: skip
    assert not any(isinstance(leaf, np.generic) for leaf in (found["0-d"], *found["of each type"]))


@pytest.mark.parametrize(
    "value",
    [
        1j, np.complex64(1), np.array([1j]), b"x", np.bytes_(b"x"), np.datetime64("2026", "ns"),
        np.timedelta64(1, "s"), np.array("2026", "M8[D]"), np.longdouble(1), np.void(b"x"),
        np.zeros(2, "i4,f4"), {1, 2}, Ellipsis, {("a", 1): 2}, {np.int64(1): 2}, {b"a": 1},
    ],
    ids=repr,
)  # fmt: skip
def test_what_json_does_not_hold_is_refused_by_name(value: Any) -> None:
    for attributes in ({"x": 1, "a": value}, {"x": 1, "a": [0, {"b/c": value}]}):
        with pytest.raises(N5UnrepresentableError, match="expected what JSON holds") as caught:
            from_numpy(attributes)
        assert "attribute 'a': " in str(caught.value)
        assert caught.value.kind == "option"
