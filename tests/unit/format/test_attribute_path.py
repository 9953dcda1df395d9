"""Attribute paths meet the expectations of Java N5's own tests (saalfeldlab/n5 at 7ba6b144)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.attribute_path import (
    insert,
    lookup,
    normalize_attribute_path,
    parse_attribute_path,
    remove,
)

# src/test/java/org/janelia/saalfeldlab/n5/N5URITest.java: testAttributePath and
# testEscapedAttributePaths
NORMALIZED = [
    ("/a/b/c/d/e", "/a/b/c/d/e"), ("/a/b/c/d/e/", "/a/b/c/d/e"), ("/", "/"), ("", ""),
    ("/a/..", "/"), ("/a/../b/../c/d/../..", "/"), ("/./././././", "/"), ("/./././././.", "/"),
    ("./././././", ""), ("./a././././", "a."), ("./a./../\\\\././.", "\\\\."),
    ("./a./\\\\././.", "a./\\\\."), ("/./a./\\\\././.", "/a./\\\\."),
    ("/a/[0]/b[0]/", "/a/[0]/b/[0]"), ("[0]", "[0]"), ("/[0]/", "/[0]"), ("/a[0]/", "/a/[0]"),
    ("/[0]b/", "/[0]/b"), ("[b]", "[b]"), ("a[b]c", "a[b]c"), ("a[bc", "a[bc"), ("ab]c", "ab]c"),
    ("a[b00]c", "a[b00]c"), ("[ ]", "[ ]"), ("[\n]", "[\n]"), ("[\t]", "[\t]"),
    ("[\r\n]", "[\r\n]"), ("[ ][\n][\t][ \t \n \r\n][\r\n]", "[ ][\n][\t][ \t \n \r\n][\r\n]"),
    ("[\\]", "[\\]"), ("let's/try/a/real/case/with spaces/", "let's/try/a/real/case/with spaces"),
    ("let's/try/a/real/////case////with spaces/", "let's/try/a/real/case/with spaces"),
    ("/../first/relative/test/../a/b/.././wd///.w/asd", "/first/relative/a/wd/.w/asd"),
    ("../first/relative/test/../a/b/.././wd///.w/asd", "first/relative/a/wd/.w/asd"),
    ("../result/../only/../single/..", ""), ("../result/../multiple/../..", ""),
    ("/../result/../multiple/../..", "/"), ("a/../b", "b"), ("/a/../b", "/b"), ("../a/../b", "b"),
    ("/../a/../b", "/b"), ("/../a/../../b", "/b"), ("\\/a\\/b\\/c\\/d\\/e", "\\/a\\/b\\/c\\/d\\/e"),
    ("/a\\\\/b/c", "/a\\\\/b/c"), ("a[b]\\[10]", "a[b]\\[10]"), ("\\[10]", "\\[10]"),
    ("a[0]\\[10]b", "a/[0]/\\[10]b"), ("[\\[10]\\[20]]", "[\\[10]\\[20]]"),
    ("[\\[10][20]]", "[\\[10]/[20]/]"), ("\\/", "\\/"),
]  # fmt: skip

# src/test/resources/url/urlAttributes.n5/attributes.json
DOCUMENT: Any = {
    "n5": "2.6.1",
    "foo": "bar",
    "f o o": "b a r",
    "list": [0, 1, 2, 3],
    "nestedList": [[[1, 2, 3, 4]], [[10, 20, 30, 40]], [[100, 200, 300, 400]],
                   [[1000, 2000, 3000, 4000]]],
    "object": {"a": "aa", "b": "bb"},
}  # fmt: skip


@pytest.mark.parametrize(("given", "normalized"), NORMALIZED)
def test_paths_are_normalized_as_in_java(given: str, normalized: str) -> None:
    assert normalize_attribute_path(given) == normalized


@pytest.mark.parametrize(
    ("path", "value"),
    [  # url/UriAttributeTest.java
        ("", DOCUMENT),
        ("/", DOCUMENT),
        ("foo", "bar"),
        ("/foo", "bar"),
        ("f o o", "b a r"),
        ("list", [0, 1, 2, 3]),
        ("list[3]", 3),
        ("list/[3]", 3),
        ("//list//[3]", 3),
        ("//list////[3]//", 3),
        ("object/b", "bb"),
        ("nestedList[0][0][0]", 1),
        ("/nestedList[0]//[0][0]", 1),
        ("nestedList//[0]/[0]///[0]", 1),
        ("nestedList[2][0][3]", 400),
        # AbstractN5Test.java, and what Java was seen to give
        ("/this/key/does/not/exist", None),
        ("list/3", None),
        ("list[4]", None),
        ("foo/bar", None),
    ],
)
def test_values_are_found_as_in_java(path: str, value: object) -> None:
    assert lookup(DOCUMENT, parse_attribute_path(path)) == value


def test_values_are_set_as_in_java() -> None:
    document: Any = {}
    steps: list[tuple[str, Any]] = [
        ("/a/b/c/key1", "value1"), ("/a/b/key2", "value2"), ("/a/b/c/key1", "new_value1"),
        ("/array[0]/b/c/key1", "array_value1"), ("/array[0]/d[3]/key2", "array_value2"),
        ("/array[1][2]/[3]key2", "array2_value2"), ("array[1]/[2][3]/key2", "array3_value4"),
        ("/array/[1]/[2]/[3]/key2", "array3_value5"), (" ", "space"), ("\n", "newline"),
        ("\r\n", "windows_newline"), ("[ ]", "space"), ("[\n]", "newline"),
        ("[ ][\n][\t][ \t \n \r\n][\r\n]", "mixed"), ("[\\]", "backslash"),
        ("/a/boolean[2]/test", True), ("/filled/double_array[5]", 5.0),
        ("/filled/double_array[1]", 1.0), ("/filled/string_array[5]", "f"),
        ("/filled/string_array[1]", "b"),
    ]  # fmt: skip
    values: dict[tuple[str | int, ...], Any] = {}
    for path, value in steps:
        tokens = parse_attribute_path(path)
        before = copy.deepcopy(document)
        changed = insert(document, tokens, value)
        assert document == before
        document = changed
        values[tokens] = value
        assert [lookup(document, tokens) for tokens in values] == list(values.values())
    assert document["filled"]["double_array"] == [0, 1.0, 0, 0, 0, 5.0]
    assert document["filled"]["string_array"] == [None, "b", None, None, None, "f"]
    # a boolean is replaced by what the path needs
    assert insert({"a": True, "k": 1}, ("a", "b"), 2) == {"a": {"b": 2}, "k": 1}


@pytest.mark.parametrize(
    ("path", "key"),
    [  # AbstractN5Test.testAttributePathEscaping
        ("\\/", "/"),
        ("abc\\/def", "abc/def"),
        ("\\[0]", "[0]"),
        ("]] [] [[", "]] [] [["),
        ("[\\[2]\\[33]]", "[[2][33]]"),
        ("\\\\", "\\\\"),
        ("\\/l\\/m\\[10]\\/n", "/l/m[10]/n"),
    ],
)
def test_escaped_characters_are_part_of_a_name(path: str, key: str) -> None:
    tokens = parse_attribute_path(path)
    assert insert({}, tokens, 1) == {key: 1}
    assert lookup({key: 1}, tokens) == 1
    assert remove({key: 1, "other": 2}, tokens) == {"other": 2}


def test_removing_an_item_moves_the_later_ones() -> None:
    document: Any = {"a": {"b": [1, 2, 3], "c": 4}}
    assert remove(document, ("a", "b", 0)) == {"a": {"b": [2, 3], "c": 4}}
    assert remove(document, ("a", "b")) == {"a": {"c": 4}}
    assert document == {"a": {"b": [1, 2, 3], "c": 4}}


def test_an_index_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(N5UnrepresentableError, match="index below 1000000, got 99999999999"):
        parse_attribute_path("a[99999999999]")
