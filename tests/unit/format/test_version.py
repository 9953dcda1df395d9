"""The version of a container is accepted if Java accepts it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from n5zarr.errors import N5UnsupportedError
from n5zarr.format.version import SUPPORTED_VERSION, check_version, parse_version
from tests.refusals import refused

JAVA = Path(__file__).parents[2] / "data" / "java"
MANIFEST: dict[str, Any] = json.loads((JAVA / "manifest.json").read_text())


def test_the_manifest_has_containers_of_every_kind() -> None:
    opens = [case["opensInJava"] for case in MANIFEST["versions"]]
    assert (opens.count(True), opens.count(False)) == (11, 2)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["root"]) for case in MANIFEST["versions"]]
)
def test_containers_that_java_opens_are_opened(case: dict[str, Any]) -> None:
    value = json.loads((JAVA / case["root"] / "attributes.json").read_text())["n5"]
    if case["opensInJava"]:
        check_version(value)
    else:
        with refused(N5UnsupportedError, "version", "expected a version up to 4") as caught:
            check_version(value)
        assert f"n5: expected a version up to 4.x, got {value!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("4.0.0", (4, 0, 0), id="plain"),
        pytest.param("2.5.1", (2, 5, 1), id="three-components"),
        pytest.param("4.0.0-SNAPSHOT", (4, 0, 0), id="suffix"),
        pytest.param("v4.0.0", (4, 0, 0), id="prefix"),
        pytest.param("10.0.0", (10, 0, 0), id="two-digits"),
        pytest.param("4.1", (4, 1, 0), id="two-components"),
        pytest.param("4", (4, 0, 0), id="one-component"),
        pytest.param(4, (4, 0, 0), id="integer"),
        pytest.param(4.5, (4, 5, 0), id="float"),
        pytest.param("abc", (0, 0, 0), id="no-digits"),
        pytest.param("", (0, 0, 0), id="empty"),
        pytest.param(None, (0, 0, 0), id="absent"),
        pytest.param({"major": 9}, (0, 0, 0), id="object"),
        pytest.param([9], (0, 0, 0), id="array"),
    ],
)
def test_only_the_leading_digits_count(value: object, expected: tuple[int, int, int]) -> None:
    assert parse_version(value) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["4.9.9", "4.0.0", "0.0.0", "abc", None, 4, "1.5.0"], ids=repr)
def test_a_major_version_up_to_four_opens(value: str | int | None) -> None:
    check_version(value)


@pytest.mark.parametrize("value", ["5.0.0", 5, "5", "v7.1.2", "999999999999.0.0"], ids=repr)
def test_a_later_major_version_is_unsupported(value: str | int) -> None:
    with refused(N5UnsupportedError, "version") as caught:
        check_version(value)
    assert repr(value) in str(caught.value)


def test_the_supported_version_is_the_one_that_java_writes() -> None:
    assert SUPPORTED_VERSION == (4, 0, 0)
