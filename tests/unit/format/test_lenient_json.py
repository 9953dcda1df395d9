"""`attributes.json` is read as by Gson's lenient mode, whose behaviour was observed."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import pytest

from n5zarr.errors import N5AttributesError
from n5zarr.format.lenient_json import MAX_DEPTH, parse_json
from tests.refusals import refused

BIG = 12345678901234567890123456789


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", None, id="an-empty-file-is-null"),
        pytest.param(" \r\n\t", None, id="only-space-is-null"),
        pytest.param("// nothing\n", None, id="only-a-comment-is-null"),
        pytest.param("null", None, id="null"),
        pytest.param("[]", [], id="array-root"),
        pytest.param('"x"', "x", id="string-root"),
        pytest.param("{}", {}, id="empty-object"),
        pytest.param('{"a":{"b":[1,-2,true,false,null,"s"]}}',
                     {"a": {"b": [1, -2, True, False, None, "s"]}}, id="standard"),
        pytest.param('/* by hand */ {"a": 1}', {"a": 1}, id="block-comment-in-front"),
        pytest.param('{"a": 1} /* bye */', {"a": 1}, id="block-comment-behind"),
        pytest.param('{"a": /* one\ntwo * / */ 1}', {"a": 1}, id="block-comment-inside"),
        pytest.param('{"a": 1, // one\n"b": 2}', {"a": 1, "b": 2}, id="line-comment"),
        pytest.param('# head\n{"a": 1}', {"a": 1}, id="hash-comment"),
        pytest.param('{"a": "/* text */ // #"}', {"a": "/* text */ // #"},
                     id="no-comment-in-string"),
        pytest.param("{a: '/* text */ // #'}", {"a": "/* text */ // #"}, id="no-comment-in-quotes"),
        pytest.param('\ufeff{"a": 1}', {"a": 1}, id="byte-order-mark"),
        pytest.param("\ufeff{a: 1}", {"a": 1}, id="byte-order-mark-lenient"),
        pytest.param("{'a': 'x\"y'}", {"a": 'x"y'}, id="single-quotes"),
        pytest.param("{'a': '\"x\"'}", {"a": '"x"'}, id="quotes-at-the-ends"),
        pytest.param("{a: b}", {"a": "b"}, id="unquoted"),
        pytest.param("{a_b.c: 1}", {"a_b.c": 1}, id="unquoted-name-with-dot"),
        pytest.param('{"a":1,"a":2}', {"a": 2}, id="the-last-of-two-names-wins"),
        pytest.param("{a:1,a:2}", {"a": 2}, id="the-last-of-two-unquoted-names-wins"),
        pytest.param("{a = 1; b => 2}", {"a": 1, "b": 2}, id="other-separators"),
        pytest.param("[1;2]", [1, 2], id="semicolon-in-array"),
        pytest.param("{a: [], b: {}, c: [[]]}", {"a": [], "b": {}, "c": [[]]}, id="empty-lenient"),
        pytest.param("{a: true, b: false, c: null}", {"a": True, "b": False, "c": None},
                     id="words"),
        pytest.param(f'{{"a": {BIG}}}', {"a": BIG}, id="big-integer-is-exact"),
        pytest.param(f"{{a: {BIG}}}", {"a": BIG}, id="big-integer-is-exact-lenient"),
        pytest.param(f'{{"a": -{BIG}}}', {"a": -BIG}, id="big-negative-integer-is-exact"),
        pytest.param('{"a": 1e5}', {"a": 1e5}, id="exponent"),
        pytest.param("{a: 1e5, b: 1E-2, c: -0.5}", {"a": 1e5, "b": 1e-2, "c": -0.5},
                     id="floats-lenient"),
        pytest.param("{a: 007, b: 1x, c: 1.}", {"a": "007", "b": "1x", "c": "1."}, id="no-numbers"),
        pytest.param(r'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}, id="surrogate-pair"),
        pytest.param(r"{a: '\ud83d\ude00'}", {"a": "\U0001f600"}, id="surrogate-pair-lenient"),
        pytest.param('{"a": "\U0001f600ü€"}', {"a": "\U0001f600ü€"}, id="raw-utf-8"),
        pytest.param(r"{a: 'b\n\t\\\'\"\u00fc\/'}", {"a": "b\n\t\\'\"ü/"}, id="escapes-lenient"),
        pytest.param("{'a': 'one\ntwo'}", {"a": "one\ntwo"}, id="newline-in-quotes"),
        pytest.param('{"a": "one\ttwo"}', {"a": "one\ttwo"}, id="control-character"),
        pytest.param("{'': 1}", {"": 1}, id="empty-name"),
    ],
)  # fmt: skip
def test_json_that_java_accepts_is_read(text: str, expected: object) -> None:
    parsed = parse_json(text.encode())
    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    "text", ['{"a": [NaN, Infinity, -Infinity]}', "{a: [NaN, Infinity, -Infinity]}"]
)
def test_numbers_that_are_not_finite_are_read(text: str) -> None:
    parsed = parse_json(text.encode())
    assert isinstance(parsed, dict)
    nan, infinity, negative = parsed["a"]
    assert math.isnan(nan)
    assert (infinity, negative) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        pytest.param("[1, 2,]", "a value at line 1, column 7", "']'", id="trailing-comma-in-array"),
        pytest.param('{"a": 1,}', "a name at line 1, column 9", "'}'",
                     id="trailing-comma-in-object"),
        pytest.param("[1,,2]", "a value", "','", id="two-commas"),
        pytest.param('{"a": 1} x', "the end of the document", "'x'", id="trailing-word"),
        pytest.param('{"a": 1}{"b": 2}', "the end of the document", "'{'", id="two-documents"),
        pytest.param('{"a": 1', "',' or '}'", "the end", id="cut-in-object"),
        pytest.param("[1, 2", "',' or ']'", "the end", id="cut-in-array"),
        pytest.param('{"a', "the end of a string", "'\"'", id="cut-in-string"),
        pytest.param('{"a"', "':'", "the end", id="cut-before-colon"),
        pytest.param('{"a":', "a value", "the end", id="cut-before-value"),
        pytest.param("{", "a name", "the end", id="cut-at-once"),
        pytest.param("}", "a value", "'}'", id="only-an-end"),
        pytest.param('{"a" 1}', "':'", "'1'", id="missing-colon"),
        pytest.param("[1 2]", "',' or ']'", "'2'", id="missing-comma"),
        pytest.param('{\n  "a": 1,\n  "b" 2}', "':' at line 3, column 7", "'2'",
                     id="line-is-named"),
        pytest.param("/* open", "a value", "'/'", id="comment-without-end"),
        pytest.param('{"a": [1 2]}', "',' or ']' at line 1, column 10", "'2'", id="in-a-list"),
        pytest.param('{"a": [1, {"b": 2}] "c": 3}', "',' or '}' at line 1, column 21", "'\"'",
                     id="behind-a-list"),
        pytest.param('[{"a": [1]} 2]', "',' or ']' at line 1, column 13", "'2'", id="behind-both"),
        pytest.param('\n{"a" 1}', "line 2, column 6", "'1'", id="second-line"),
        pytest.param('{"a":\n\n 1,', "line 3, column 4", "the end", id="end-of-the-third-line"),
    ],
)  # fmt: skip
def test_the_error_for_json_that_java_refuses_says_what_was_found(
    text: str, expected: str, found: str
) -> None:
    with refused(N5AttributesError, "json") as caught:
        parse_json(text.encode())
    message = str(caught.value)
    assert message.startswith("not JSON: expected ")
    assert expected in message
    assert message.endswith(f"got {found}")


@pytest.mark.each_of(4)
@pytest.mark.parametrize(
    "item", ["1,", "a,", "[],", "'',", "/**/1,", r"'\\',", "[2, {a: b}],"], ids=repr
)
@pytest.mark.parametrize("end", ["0] #", "", "] ]"], ids=["whole", "cut", "surplus"])
def test_large_documents_take_little_time(item: str, end: str) -> None:
    """No part is parsed again for each item, which would take a hundred times as long."""
    text = f"[{item * (10**5 // len(item))}{end}".encode()
    seconds = []
    for _ in range(14):
        start = time.process_time()
        if end == "0] #":
            parse_json(text)
        else:
            with pytest.raises(N5AttributesError, match="not JSON"):
                parse_json(text)
        seconds.append(time.process_time() - start)
    assert 14 * min(seconds) < 1  # other programs do not slow all of them


def test_cut_documents_are_errors_at_every_byte() -> None:
    document = b'{"dimensions":[5,7],"dataType":"uint8","blockSize":[2,3],"a":"x\\n"}'
    for length in range(1, len(document)):
        with pytest.raises(N5AttributesError, match="not JSON"):
            parse_json(document[:length])


@pytest.mark.parametrize(
    ("data", "byte", "at"),
    [
        pytest.param(b'{"a": "\xff"}', "0xff", 7, id="never-in-utf-8"),
        pytest.param(b'{"a": "\xc3"}', "0xc3", 7, id="cut-character"),
        pytest.param(b"\x89PNG\r\n\x1a\n", "0x89", 0, id="binary"),
    ],
)  # fmt: skip
def test_invalid_utf_8_names_the_byte(data: bytes, byte: str, at: int) -> None:
    with refused(N5AttributesError, "json") as caught:
        parse_json(data)
    assert f"got byte {byte} at {at}" in str(caught.value)


@pytest.mark.parametrize("open_close", ["[]", "{}"], ids=["arrays", "objects"])
@pytest.mark.parametrize("prefix", ["", "//\n"], ids=["standard", "lenient"])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 300, 100_000])
def test_deep_nesting_is_an_error(prefix: str, open_close: str, depth: int) -> None:
    one = "[" if open_close == "[]" else '{"a":'
    text = prefix + one * depth + "1" + open_close[1] * depth
    with refused(N5AttributesError, "json", "not JSON"):
        parse_json(text.encode())


@pytest.mark.parametrize("prefix", ["", "//\n"], ids=["standard", "lenient"])
def test_the_deepest_nesting_that_java_reads_is_read(prefix: str) -> None:
    parsed = parse_json(f"{prefix}{'[' * MAX_DEPTH}1{']' * MAX_DEPTH}".encode())
    for _ in range(MAX_DEPTH):
        assert isinstance(parsed, list)
        (parsed,) = parsed
    assert parsed == 1


@pytest.mark.parametrize("prefix", ["", "//\n"], ids=["standard", "lenient"])
def test_many_brackets_are_not_many_levels(prefix: str) -> None:
    wide: list[object] = [[] for _ in range(2 * MAX_DEPTH)]
    for value in (wide, ["[{" * MAX_DEPTH]):
        assert parse_json((prefix + json.dumps(value)).encode()) == value


@pytest.mark.parametrize("prefix", ["", "//\n"], ids=["standard", "lenient"])
def test_empty_arrays_count_as_levels(prefix: str) -> None:
    depth = MAX_DEPTH + 1
    with pytest.raises(N5AttributesError, match=f"at most {MAX_DEPTH} levels"):
        parse_json(f"{prefix}{'[' * depth}{']' * depth}".encode())


@pytest.mark.parametrize("text", ['{"a": %s}', "{a: %s}"], ids=["standard", "lenient"])
def test_an_integer_of_thousands_of_digits_is_an_error(text: str) -> None:
    with refused(N5AttributesError, "json", "5000 digits"):
        parse_json((text % ("1" * 5000)).encode())


@pytest.mark.parametrize("tail", [b"", b"]"])
def test_long_unquoted_runs_parse_in_linear_time(tail: bytes) -> None:
    # a backtracking pattern would take hours here
    with pytest.raises(N5AttributesError, match="not JSON"):
        parse_json(b"{a: '" + b"\\" * 200_001 + tail)


@pytest.mark.parametrize("pump", ["a/*,", r"\"", r"'\'"])
def test_ends_that_never_come_are_looked_for_once(pump: str) -> None:
    # to look for the end of each comment or string would take an hour here
    with pytest.raises(N5AttributesError, match="line 1, column"):
        parse_json(f"{{a: ['\\'', {pump * 300_000}".encode())


def test_a_real_document_with_a_comment_in_front_is_read() -> None:
    attributes = Path(__file__).parents[2] / "data" / "attributes"
    parsed = parse_json((attributes / "16-bdv-setup.json-with-comment-header.txt").read_bytes())
    assert isinstance(parsed, dict)
    assert "downsamplingFactors" in parsed
