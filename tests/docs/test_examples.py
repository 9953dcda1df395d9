"""The code of the README and the pages runs, in the order of each page, beside the samples.

A block of text after it is what it prints; lines of ``  ...`` stand for any. A block of Python that
begins with ``# name.py`` is a script. The commands of blocks of ``sh`` run, those of ``bash`` do
not: they are for data of the reader's, or wait for Ctrl-C. Of these, too, the command line knows
each name and value, and blocks of ``py``, which do not run either, compile.
"""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup
from typer.main import get_command

import n5zarr
from n5zarr.cli.app import app
from tests.command import CliRunner
from tests.outputs import python

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
RUN_ELSEWHERE = {DOCS / "cookbook.md", DOCS / "gallery.md"}  # beside files of their own
LONG = {DOCS / f"{name}.md" for name in ("engines", "machine-learning", "nwb")}  # start processes
BLOCK = re.compile(
    r"^```(python|sh)\n(.*?)^```\n(\n```(?:text)?\n(.*?)^```)?", re.DOTALL | re.MULTILINE
)
SCRIPT = re.compile(r"# (\w+\.py)\n")
ANY_BLOCK = re.compile(r"^ *```(py|sh|bash)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.filterwarnings("ignore:Endian.big is deprecated:DeprecationWarning")  # of zarr-n5
@pytest.mark.filterwarnings("ignore:The linked table for DynamicTableRegion:UserWarning")  # pynwb
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.long if page in LONG else (), id=name(page))
        for page in PAGES
        if BLOCK.search(page.read_text()) and page not in RUN_ELSEWHERE
    ],
)
def test_the_blocks_of_a_page_run_in_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(n5zarr.sample_path(), tmp_path / "sample.n5")
    blocks = BLOCK.findall(page.read_text())
    assert page != PAGES[0] or any(said for *_, said in blocks), "the README shows no output"
    shutil.copytree(Path(n5zarr.sample_path("bigstitcher")).parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for kind, block, is_said, said in blocks:
        if kind == "python":
            printed = run_python(block, page)
        elif block.startswith("n5zarr ") and page.parent == DOCS:
            printed = "".join(run_command(line) for line in block.splitlines())
        else:
            continue
        if is_said:
            expected = re.escape(said.replace("/data/", f"{tmp_path}/"))
            expected = expected.replace(re.escape("  ...\n"), "(?:  .*\\n)*")
            assert re.fullmatch(expected, printed), (block, printed)


def run_python(block: str, page: Path) -> str:
    """Run a block, as a script if it begins with the name of one, and return its output."""
    script = SCRIPT.match(block)
    if script is None:
        with redirect_stdout(StringIO()) as printed:
            exec(compile(block, page, "exec"), {})  # noqa: S102 - our own pages
        return printed.getvalue()
    Path(script[1]).write_text(block)
    forks = "ignore:This process (pid=:DeprecationWarning"  # which the page tells of
    return python("-W", "error", "-W", forks, script[1])


def run_command(line: str) -> str:
    """Run a command, and return its output; it ends with 1 if ``|| true`` says so."""
    _, *words = shlex.split(line.removesuffix("|| true"), comments=True)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == line.endswith("|| true"), (line, result.output)
    return re.sub(r" +$", "", result.stdout, flags=re.MULTILINE)


@cache
def parser() -> Any:
    """Return the command line's parser, in which commands do nothing."""

    def spare(command: Any) -> None:
        command.callback = lambda **_: None
        for name in command.commands if isinstance(command, TyperGroup) else ():
            spare(command.get_command(None, name))

    command = get_command(app)  # makes it anew
    spare(command)
    return command


def parse_command(line: str) -> int:
    """Parse a line of a shell as the command line does, run nothing, and return its exit code."""
    shell = shlex.shlex(line, posix=True, punctuation_chars=True)
    shell.whitespace_split = True
    words = list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), shell))

    with pytest.raises(SystemExit) as end:
        parser().main(args=words[1:], prog_name=words[0])
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize("page", [p for p in PAGES if ANY_BLOCK.search(p.read_text())], ids=name)
def test_the_command_line_knows_the_commands_of_a_page_and_its_code_compiles(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind, block in ANY_BLOCK.findall(page.read_text()):
        if kind == "py":
            compile(block, page, "exec")
            continue
        for line in map(str.strip, block.replace("\\\n", " ").splitlines()):
            if line.startswith("n5zarr "):
                code = parse_command(line)
                assert code == 0, (line, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("n5zarr tre sample.n5", "No such command 'tre'"),
        ("n5zarr nwb conver a.nwb a.n5", "No such command 'conver'"),
        ("n5zarr tree sample.n5 --levels 2", "No such option: --levels"),
        ("n5zarr convert a.n5 b.zarr --to zarr4 | head", "'zarr4' is not one of"),
        ("n5zarr convert a.n5  # and where to?", "Missing argument 'DESTINATION'"),
    ],
)
def test_the_command_line_refuses_what_it_does_not_know(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse_command(line) == 2
    assert said in re.sub(r"[\s│]+", " ", capsys.readouterr().err)


@pytest.mark.long
def test_the_code_of_the_readme_has_types(tmp_path: Path) -> None:
    """The code of the README passes strict mypy, as for a user with n5zarr installed."""
    for number, (kind, block, *_) in enumerate(BLOCK.findall((ROOT / "README.md").read_text())):
        if kind == "python":
            (tmp_path / f"readme_{number}.py").write_text(block)
    cache = ROOT / ".mypy_cache" / "user"  # beside that of the package, whose options are others
    options = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={cache}", "."]
    # the development install is not looked at
    said = python("-m", "mypy", *options, cwd=tmp_path, env={"MYPYPATH": str(ROOT)})
    assert "Success: no issues found in" in said
