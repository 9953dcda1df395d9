"""Paths of nodes are literal names, and never leave the container."""

from __future__ import annotations

import pytest

from n5zarr.errors import N5UnrepresentableError
from n5zarr.format.path import check_key, join, normalize_path
from tests.refusals import refused

LITERAL = [
    "em/s0", "with space", "a#b", "a?b", "100%20", "c:d", "ünï/çödé", ".hidden", "a..b", "...",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("", "", id="root"),
        pytest.param("/", "", id="root-slash"),
        pytest.param("//", "", id="root-slashes"),
        pytest.param("/em/s0", "em/s0", id="leading-slash"),
        pytest.param("em/s0/", "em/s0", id="trailing-slash"),
        pytest.param("//em///s0//", "em/s0", id="repeated-slashes"),
        *(pytest.param(path, path, id=f"literal-{path}") for path in LITERAL),
    ],
)
def test_a_path_has_one_form(path: str, expected: str) -> None:
    assert normalize_path(path) == expected


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param("..", "..", id="parent"),
        pytest.param("../x", "..", id="parent-first"),
        pytest.param("a/../../etc", "..", id="parent-inside"),
        pytest.param("a/..", "..", id="parent-last"),
        pytest.param(".", ".", id="self"),
        pytest.param("a/./b", ".", id="self-inside"),
        pytest.param("a/b\\c", "b\\c", id="backslash"),
        pytest.param("a\0b", "a\0b", id="nul"),
        pytest.param("a.b/c\\d", "c\\d", id="backslash-beside-a-dot"),
        pytest.param("x/\udfff", "\udfff", id="half-of-a-character"),
    ],
)
def test_a_path_that_escapes_names_the_bad_part(path: str, name: str) -> None:
    for check in (normalize_path, check_key):
        with refused(N5UnrepresentableError, "path") as caught:
            check(path)
        expected = f"path {path!r}: expected names separated by '/', got the name {name!r};"
        assert expected in str(caught.value)


@pytest.mark.parametrize(
    "key", ["", "zarr.json", "em/s0/c/0/1", "em/s0/.zarray", "0.1.2", *LITERAL], ids=repr
)
def test_a_key_inside_the_container_is_returned(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    "key", ["/em", "/", "em//s0", "em/", "em.a//s0", "/em.a", "em.a/", "ü//a"], ids=repr
)
def test_a_key_with_an_empty_name_is_refused(key: str) -> None:
    with refused(N5UnrepresentableError, "path", "got the name ''"):
        check_key(key)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [((), ""), (("",), ""), (("", "a"), "a"), (("a", ""), "a"), (("a/b", "", "c"), "a/b/c")],
)
def test_joining_leaves_out_empty_parts(parts: tuple[str, ...], expected: str) -> None:
    assert join(*parts) == expected
