"""Documents keep their members through a change, whatever stands between these."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from n5zarr.format.raw_json import RawObject

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
    assert json.loads(changed(text.encode())) == {**document, "added": 1}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('// {"dimensions":[99,99]}\n{"dimensions":[7,5]}', '"dimensions":[7,5]'),
        ('/* {"a": 9} */ {"a": 1.0E-12 /* , "a": 2 */, "b": [1, 2]}', '"a":1.0E-12,"b":[1, 2]'),
        ('{"offset" # 2\n: [3, 4]}', '"offset":[3, 4]'),
        ('{"a" /* "b": 1 */ = 12345678901234567890}', '"a":12345678901234567890'),
        ("{a: 1.50; 'b' => {\"c\": 2.50}}", '"a":1.50,"b":{"c": 2.50}'),
        ("{a: 1x, b: 007, c: 1.50}", '"a":"1x","b":"007","c":1.50'),
        ('{"a": "one\ttwo", "b": 1.50}', r'"a":"one\ttwo","b":1.50'),
        ('{"a": 1.50, "a": 2.50}', '"a":2.50'),
        ('{"a": 1.50, "a": {b: 2.5}}', '"a":{"b":2.5}'),
        ('{"n5": NaN, "b": [1.50, -Infinity]}', '"n5":"NaN","b":[1.5,"-Infinity"]'),
        ("\ufeff{}", ""),
    ],
)
def test_standard_values_keep_their_spelling(text: str, kept: str) -> None:
    expected = f"{{{kept},".replace("{,", "{") + '"added":1}'
    assert changed(text.encode()).decode() == expected


@pytest.mark.parametrize("text", ["", "null", "[1]", "// {}\n", "'x'"])
def test_what_is_no_object_counts_as_empty(text: str) -> None:
    assert changed(text.encode()) == b'{"added":1}'


def test_a_name_with_half_of_a_character_is_kept() -> None:
    document = RawObject.parse(b'{"\\ufffd":1.0,"a\\udfff":2.50,"\\ud800":[3]}')
    document.set("b", 4)
    assert document.to_bytes() == b'{"\\ufffd":1.0,"a\\udfff":2.50,"\\ud800":[3],"b":4}'
