"""Every Python block of the README and the pages runs, beside sample.n5."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import n5zarr
from n5zarr.cli.app import app
from tests.contract.bigstitcher import write_project

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```sh\n(n5zarr .*?)^```\n(?:\n```\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.filterwarnings("ignore:Endian.big is deprecated:DeprecationWarning")  # of zarr-n5
@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "sample.n5")
    blocks = BLOCK.findall(page.read_text())
    if any("dataset.xml" in block for block in blocks):
        write_project(tmp_path, (0, 1, 3, 4))
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, page, "exec"), {})  # noqa: S102 - our own pages


def test_the_example_of_the_readme_prints_what_follows_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (ROOT / "README.md").read_text()
    ((code, printed),) = re.findall(
        r"^```python\n([^`]*)^```\n\n```\n([^`]*)^```", text, re.MULTILINE
    )
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out == printed


def test_the_code_of_the_readme_has_types(tmp_path: Path) -> None:
    """As a user checks code, who has n5zarr installed."""
    for number, block in enumerate(BLOCK.findall((ROOT / "README.md").read_text())):
        (tmp_path / f"readme_{number}.py").write_text(block)
    options = ["--strict", "--config-file=", "--follow-imports=silent", "."]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},  # the development install is not looked at
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Success: no issues found in" in checked.stdout, checked.stdout + checked.stderr


def test_the_commands_run_and_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block of commands of the page, and the block of output that follows it, if any."""
    shutil.copytree(n5zarr.sample_path(), tmp_path / "sample.n5")
    monkeypatch.chdir(tmp_path)
    examples = SHELL.findall((ROOT / "docs" / "command-line.md").read_text())
    assert len(examples) > 5
    for commands, said in examples:
        printed = ""
        for command in commands.splitlines():
            program, *words = shlex.split(command.removesuffix("|| true"))
            assert program == "n5zarr"
            result = CliRunner().invoke(app, words)
            is_told = command.endswith("|| true")
            assert result.exit_code == is_told, result.output
            printed += result.stdout
        expected = re.escape(said.replace("/data/", f"{tmp_path}/"))
        expected = expected.replace(re.escape("  ...\n"), "(?:  .*\\n)*")
        assert re.fullmatch(expected or ".*", printed, re.DOTALL), (command, printed)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target
