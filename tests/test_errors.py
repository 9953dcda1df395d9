"""Errors form a tree on which handlers can rely."""

from __future__ import annotations

import copy
import pickle

import pytest

from n5zarr import errors
from n5zarr.errors import (
    KINDS,
    ErrorsAt,
    N5AttributesError,
    N5BlockError,
    N5Error,
    N5FormatError,
    N5MissingDependencyError,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
    Problem,
)

PROBLEMS = [
    Problem(("blockSize", 2), "expected an integer from 1 to 2147483647, got 0"),
    Problem(("compression", "level"), "expected an integer from -1 to 9, got 10", "compression"),
]
INSTANCES: list[N5Error] = [
    N5Error("message", kind="json"),
    N5FormatError("message", kind="member", where="c.n5: em/s0"),
    N5AttributesError(PROBLEMS),
    N5AttributesError(PROBLEMS, where="c.n5: em/s0/attributes.json"),
    N5BlockError(
        "block header: expected 16 bytes, got 9", kind="header", where="c.n5: em: block 0"
    ),
    N5UnsupportedError("message", kind="version"),
    N5UnrepresentableError("message", kind="option"),
    N5MissingDependencyError("lz4", "lz4 compression", "lz4"),
]


def name(error: N5Error) -> str:
    return f"{type(error).__name__}{'-located' if error.where else ''}"


@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (N5Error, (Exception,)),
        (N5FormatError, (N5Error, ValueError)),
        (N5AttributesError, (N5FormatError,)),
        (N5BlockError, (N5FormatError,)),
        (N5UnsupportedError, (N5Error, NotImplementedError)),
        (N5UnrepresentableError, (N5Error, ValueError)),
        (N5MissingDependencyError, (N5Error, ImportError)),
        (N5Warning, (UserWarning,)),
    ],
)
def test_the_tree_is_as_documented(error: type, bases: tuple[type, ...]) -> None:
    assert error.__bases__ == bases
    assert error.__name__ in (errors.__doc__ or "") or error is N5Warning


def test_every_class_of_the_tree_is_tested_here() -> None:
    public = {getattr(errors, member) for member in errors.__all__}
    classes = {each for each in public if isinstance(each, type) and issubclass(each, N5Error)}
    assert classes == {type(instance) for instance in INSTANCES}


def test_the_kinds_are_append_only() -> None:
    assert KINDS[:13] == (
        "json", "member", "version", "compression", "data-type", "header", "payload", "varlength",
        "path", "not-found", "option", "read-only", "dependency",
    )  # fmt: skip
    assert len(set(KINDS)) == len(KINDS) <= 20


@pytest.mark.parametrize("error", INSTANCES, ids=name)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(error: N5Error, protocol: int) -> None:
    back = pickle.loads(pickle.dumps(error, protocol))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert back.args == error.args
    assert vars(back) == vars(error)


@pytest.mark.parametrize("error", INSTANCES, ids=name)
def test_errors_survive_copying(error: N5Error) -> None:
    back = copy.copy(error)
    assert (type(back), str(back), back.kind) == (type(error), str(error), error.kind)


@pytest.mark.parametrize("error", INSTANCES, ids=name)
def test_a_message_begins_with_the_place_where_there_is_one(error: N5Error) -> None:
    expected = f"{error.where}: {error.message}" if error.where else error.message
    assert str(error) == expected
    assert error.kind in KINDS


@pytest.mark.parametrize("error", INSTANCES, ids=name)
def test_locating_returns_the_same_error(error: N5Error) -> None:
    error = copy.copy(error)
    before = error.where
    assert error.located("elsewhere") is error
    assert error.where == (before or "elsewhere")
    assert error.located("a third place").where == (before or "elsewhere")


def test_a_context_adds_the_place_and_keeps_cause_and_traceback() -> None:
    cause = OSError()

    def fail() -> None:
        raise N5BlockError("cut off", kind="payload") from cause

    cut_off = pytest.raises(N5BlockError, match=r"^em: block 0: cut off$")
    with cut_off as caught, ErrorsAt(lambda: "em"), ErrorsAt("em: block 0"):
        fail()
    assert caught.value.__cause__ is cause
    assert caught.traceback[-1].name == "fail"


def test_a_context_leaves_other_errors_and_asks_for_the_place_only_for_an_error() -> None:
    def place() -> str:
        raise AssertionError

    with ErrorsAt(place):
        pass
    with pytest.raises(KeyError), ErrorsAt(place):
        raise KeyError


@pytest.mark.parametrize(
    ("loc", "expected"),
    [
        ((), "message"),
        (("blockSize",), "blockSize: message"),
        (("blockSize", 2), "blockSize[2]: message"),
        (("compression", "level"), "compression.level: message"),
        (("a", 0, "b", 1), "a[0].b[1]: message"),
        ((3,), "[3]: message"),
    ],
)
def test_a_problem_names_its_field(loc: tuple[str | int, ...], expected: str) -> None:
    assert str(Problem(loc, "message")) == expected


def test_all_problems_stand_in_the_message_and_the_first_gives_the_kind() -> None:
    error = N5AttributesError(PROBLEMS, where="c.n5: em/s0/attributes.json")
    assert str(error) == (
        "c.n5: em/s0/attributes.json: "
        "blockSize[2]: expected an integer from 1 to 2147483647, got 0; "
        "compression.level: expected an integer from -1 to 9, got 10"
    )
    assert error.problems == tuple(PROBLEMS)
    assert error.kind == "member"
    assert N5AttributesError(PROBLEMS[::-1]).kind == "compression"


def test_a_missing_package_says_what_to_install() -> None:
    error = N5MissingDependencyError("PIL", "jpeg compression", "jpeg")
    assert str(error) == "jpeg compression needs the package 'PIL': pip install 'n5zarr[jpeg]'"
    assert error.kind == "dependency"


def test_problems_are_values() -> None:
    assert Problem(("a",), "b") == Problem(("a",), "b", "member")
    assert len({Problem(("a",), "b"), Problem(("a",), "b")}) == 1
    with pytest.raises(AttributeError):
        PROBLEMS[0].message = "other"  # type: ignore[misc]
