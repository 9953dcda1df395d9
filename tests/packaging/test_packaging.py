"""Files around the package agree, and the checks of distributions find mistakes.

`.ci/run` builds the distributions, and checks them with `python -m tests.packaging.check`.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import n5zarr
from tests.packaging import check
from tests.packaging.recipe import conda_name, key
from tests.packaging.sdist import LINK, ROOT, tracked, with_addresses, with_urls

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
URL = "https://example.org/us/n5zarr"


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


# ---------------------------------------------------------------------- one version, one Python


def test_the_version_is_the_same_wherever_it_stands() -> None:
    assert str(load("CITATION.cff")["version"]) == n5zarr.__version__
    assert load("recipe/recipe.yaml")["context"]["version"] == n5zarr.__version__
    cited = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"version = {{{n5zarr.__version__}}}" in cited
    assert f"title = {{{load('CITATION.cff')['title']}}}" in cited
    assert f"year = {{{load('CITATION.cff')['date-released'].year}}}" in cited
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"(?m)^## (\S+)(?: - (\S+))?$", changes)
    assert headings[0] == ("Unreleased", "")
    assert headings[1] == (n5zarr.__version__, str(load("CITATION.cff")["date-released"]))


def test_the_oldest_python_is_the_same_wherever_it_stands() -> None:
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {oldest}" in PROJECT["project"]["classifiers"]
    assert PROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert load("recipe/recipe.yaml")["context"]["python_min"] == oldest
    tested = load(".github/workflows/test.yml")["jobs"]["python"]["strategy"]["matrix"]["python"]
    assert tested[0] == oldest
    classified = re.findall(r"Python :: (3\.\d+)", str(PROJECT["project"]["classifiers"]))
    assert set(classified) <= set(tested)


def test_the_rows_of_the_matrix_are_the_same_wherever_they_stand() -> None:
    rows = re.findall(r'(?m)^    "([\w.-]+) +\|', (ROOT / ".ci/matrix").read_text("utf-8"))
    job = load(".github/workflows/monthly.yml")["jobs"]["row"]
    assert rows == job["strategy"]["matrix"]["row"]
    used = [each["uses"] for each in job["steps"] if "uses" in each]
    test = load(".github/workflows/test.yml")["jobs"]["floors"]["steps"]
    assert used == [each["uses"] for each in test if "uses" in each]


def test_a_name_that_is_no_row_of_the_matrix_is_refused() -> None:
    command = ["bash", str(ROOT / ".ci/matrix"), "z5py", "typo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "tensorstore z5py), got: typo" in done.stderr


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    """The recipe has the package's requirements, its test those of lz4, by conda-forge's names."""

    def renamed(requirements: list[str]) -> dict[str, str]:
        pairs = [each.partition(";")[0].strip().split(">=", 1) for each in requirements]
        return {conda_name(key(name)): floor for name, floor in pairs}

    recipe = load("recipe/recipe.yaml")
    run = recipe["requirements"]["run"]
    there = [each for each in run if isinstance(each, str) and not each.startswith("python ")]
    there += [each["then"] for each in run if isinstance(each, dict)]
    wanted = renamed(PROJECT["project"]["dependencies"])
    assert dict(each.split(" >=") for each in there) == wanted
    tested = recipe["tests"][1]["requirements"]["run"]
    wanted = renamed(PROJECT["project"]["optional-dependencies"]["lz4"])
    assert dict(each.split(" >=") for each in tested) == wanted


def test_each_dependency_has_a_floor() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    every = [*PROJECT["project"]["dependencies"], *(each for e in extras.values() for each in e)]
    assert [r for r in every if ">=" not in r and not r.startswith("n5zarr[")] == []


def test_all_installs_every_extra() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    named = set(re.findall(r"[\w]+", extras["all"][0].partition("[")[2]))
    assert named == set(extras) - {"all"}


# ----------------------------------------------------------------------------------- addresses


def test_links_of_the_readme_get_addresses() -> None:
    text = with_addresses((ROOT / "README.md").read_text("utf-8"), URL, "v9")
    assert LINK.findall(text) == []
    targets = re.findall(rf'{URL}/(blob|raw)/v9/([^)\s"#]+)', text)
    assert targets
    assert [target for _, target in targets if not (ROOT / target).exists()] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](docs/a.md#b)", f"[a]({URL}/blob/v9/docs/a.md#b)"),
        ("![a](./docs/a.png)", f"![a]({URL}/raw/v9/docs/a.png)"),
        ("[![a](a.png)](b.md)", f"[![a]({URL}/raw/v9/a.png)]({URL}/blob/v9/b.md)"),
        ('<img src="docs/a.png">', f'<img src="{URL}/raw/v9/docs/a.png">'),
        ("[a](https://host/a) [b](#c) [d](mailto:e)", None),
        ("array[0](1) no link", f"array[0]({URL}/blob/v9/1) no link"),  # as Markdown reads it
    ],
)
def test_a_link_gets_an_address(text: str, expected: str | None) -> None:
    assert with_addresses(text, URL, "v9") == (text if expected is None else expected)


def test_addresses_are_added_to_the_project_and_nothing_else_changes() -> None:
    text = with_urls((ROOT / "pyproject.toml").read_text("utf-8"), URL, "v9")
    project = tomllib.loads(text)
    urls = project["project"].pop("urls")
    assert project == PROJECT
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues"}
    assert all(address.startswith(URL) for address in urls.values())


# ------------------------------------------------------------------------------- distributions

ENTRY_POINTS = "\n".join(
    f"[{group}]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items())
    for group, entries in {
        "console_scripts": PROJECT["project"]["scripts"],
        **PROJECT["project"]["entry-points"],
    }.items()
)


def wheel(folder: Path, changes: dict[str, bytes | None], tag: str = "py3-none-any") -> Path:
    """Pack the package as a wheel, with some files changed, added or left out."""
    files: dict[str, bytes | None] = {
        name: (ROOT / name).read_bytes()
        for name in tracked(ROOT)
        if name.startswith("n5zarr/") and not name.endswith((".c", ".so", ".pyc"))
    }
    files["n5zarr-9.dist-info/METADATA"] = b"Name: n5zarr\n\nWhat it is.\n"
    files["n5zarr-9.dist-info/entry_points.txt"] = ENTRY_POINTS.encode()
    path = folder / f"n5zarr-9-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (files | changes).items():
            if data is not None:
                archive.writestr(name, data)
    return path


def test_a_whole_wheel_is_right(tmp_path: Path) -> None:
    assert check.problems(wheel(tmp_path, {})) == []
    compiled: dict[str, bytes | None] = {"n5zarr/fast/_kernel.cpython-313-x.so": b"\0"}
    assert check.problems(wheel(tmp_path, compiled, "cp313-cp313-x")) == []


@pytest.mark.parametrize(
    ("changes", "tag", "expected"),
    [
        ({"n5zarr/py.typed": None}, "py3-none-any", "lacks n5zarr/py.typed"),
        ({"n5zarr/napari.yaml": None}, "py3-none-any", "lacks n5zarr/napari.yaml"),
        ({"n5zarr/fast/_kernel.c": b""}, "py3-none-any", "should not hold .*_kernel.c"),
        ({"tests/conftest.py": b""}, "py3-none-any", "should not hold tests/conftest.py"),
        ({}, "cp313-cp313-x", "has 0 compiled kernels"),
        ({"n5zarr/fast/_kernel.so": b""}, "py3-none-any", "has 1 compiled kernels"),
        ({"n5zarr-9.dist-info/entry_points.txt": b""}, "py3-none-any", "has the entry points"),
        ({"n5zarr-9.dist-info/METADATA": b"Name: n5zarr\n\n"}, "py3-none-any", "no description"),
    ],
)
def test_a_mistake_in_a_wheel_is_found(
    tmp_path: Path, changes: dict[str, bytes | None], tag: str, expected: str
) -> None:
    (found,) = check.problems(wheel(tmp_path, changes, tag))
    assert re.search(expected, found)


def test_a_large_wheel_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = wheel(tmp_path, {})
    monkeypatch.setitem(check.LIMITS, ".whl", path.stat().st_size - 1)
    (found,) = check.problems(path)
    assert re.search(r"has \d+ bytes, more than \d+", found)


def test_a_source_distribution_that_lacks_files_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "n5zarr-9.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in [*tracked(ROOT), "n5zarr/fast/_kernel.so"]:
            if not name.startswith((".gita", ".giti", "tests/test_")):
                archive.addfile(tarfile.TarInfo(f"n5zarr-9/{name}"), io.BytesIO(b""))
    found = check.problems(path)
    assert "lacks tests/test_errors.py" in found
    assert "should not hold n5zarr/fast/_kernel.so" in found
    assert all(re.match(r"lacks tests/test_|should not hold .*\.so", each) for each in found)
