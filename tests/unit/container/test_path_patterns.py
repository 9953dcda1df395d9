"""Patterns of paths select nodes, and tell where selected nodes may be."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest

from n5zarr.container.walk import PathPatterns

# every path of up to five of these characters
PATHS = ["".join(text) for n in range(1, 6) for text in product("ab/", repeat=n)]
PARTS = ["a", "b", "/", "*", "?", "[a]", "[!a]"]


@pytest.mark.parametrize("first", PARTS)
def test_a_group_is_read_only_if_a_match_can_begin_with_its_path(first: str) -> None:
    for rest in product(PARTS, repeat=3):
        pattern = "".join([first, *rest]).strip("/")
        patterns = PathPatterns([pattern])
        for group in ("a", "b", "a/b"):
            below = [f"{group}/{path}" for path in PATHS]
            above = [group[:n] for n in range(1, len(group) + 1) if f"{group}/"[n] == "/"]
            expected = any(fnmatchcase(path, pattern) for path in [*below, *above])
            assert patterns.may_hold(group) == expected, (pattern, group)


def test_names_that_patterns_state_need_no_listing() -> None:
    patterns = PathPatterns(["/em/s1/", "em/s[2]", "raw"])
    assert patterns.named_in("") == ["em", "raw"]
    assert patterns.named_in("em") is None  # a name with a wildcard
    assert patterns.named_in("raw/below") is None  # all of it is selected
    assert PathPatterns(["*"]).named_in("") is None
    assert PathPatterns(["a*/x"]).named_in("") is None
    assert PathPatterns(["a", "b/c"], ["a"]).named_in("") == ["b"]
    assert PathPatterns().named_in("") is None


def test_excluded_paths_are_not_read() -> None:
    patterns = PathPatterns((), ["em/s0", "labels"])
    paths = ["em", "em/s0", "em/s0/0", "em/s1", "labels/x"]
    assert [patterns.may_hold(path) for path in paths] == [True, False, False, True, False]
    assert [patterns.wants(path) for path in paths] == [True, False, False, True, False]


@pytest.mark.parametrize(
    ("pattern", "below"), [("a//b", []), ("a//", None), ("//a", None), ("a///b/c", [])]
)
def test_an_empty_name_selects_nothing(pattern: str, below: list[str] | None) -> None:
    patterns = PathPatterns([pattern])
    assert patterns.named_in("") == ["a"]
    assert patterns.named_in("a") == below  # None where all of it is selected
    assert [patterns.wants(path) for path in ("a", "b", "a/b")] == [
        below is None, False, below is None,
    ]  # fmt: skip
