"""The command line works in this process and in one of its own."""

from __future__ import annotations

import gc
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import n5zarr
from n5zarr.__main__ import main
from n5zarr.cli.app import app
from n5zarr.cli.messages import console
from n5zarr.cli.options import options_of
from n5zarr.metadata.inspect import Described
from tests.command import CliRunner, printed

JAVA = Path(__file__).parents[2] / "data" / "java"
SAMPLE = n5zarr.sample_path()


def test_tree_shows_groups_and_datasets() -> None:
    lines = printed("tree", SAMPLE).splitlines()
    assert lines == [
        SAMPLE,
        "├── em",
        "│   ├── s0  (40, 96, 128) z, y, x  uint8  gzip  blocks (16, 40, 50)",
        "│   ├── s1  (20, 48, 64) z, y, x  uint8  gzip  blocks (16, 40, 50)",
        "│   └── s2  (10, 24, 32) z, y, x  uint8  gzip  blocks (10, 24, 32)",
        "└── labels",
        "    └── s0  (40, 96, 128) z, y, x  uint64  gzip  blocks (16, 40, 50)",
    ]
    assert "27 of 27 blocks" in printed("tree", "--size", f"{SAMPLE}/labels")
    assert "s0" not in printed("tree", "--depth", "1", SAMPLE)


def test_tree_prints_while_it_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nodes(*_: object, **__: object) -> Iterator[Described]:
        yield Described(0, True, {"kind": "group", "name": "c.n5"})
        yield Described(1, False, {"kind": "group", "name": "a"})
        yield Described(2, True, {"kind": "broken", "name": "b", "error": "one\ntwo"})
        assert capsys.readouterr().out.splitlines() == [
            "c.n5",
            "├── a",
            "│   └── b  broken: one two",
        ]
        yield Described(1, True, {"kind": "group", "name": "z"})

    monkeypatch.setattr("n5zarr.metadata.inspect.describe_each", nodes)
    app(["tree", "c.n5"], standalone_mode=False)
    assert capsys.readouterr().out == "└── z\n"


def test_tree_in_a_terminal_has_the_same_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = printed("tree", SAMPLE)
    monkeypatch.setenv("FORCE_COLOR", "1")
    colored = printed("tree", SAMPLE)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_info_shows_shapes_in_both_orders() -> None:
    output = printed("info", f"{SAMPLE}/em/s1")
    assert "shape, C order        (20, 48, 64) z, y, x" in output
    assert "dimensions, N5 order  [64, 48, 20]" in output
    assert "8, 8 stored; grid [2, 2, 2] in N5 order" in output
    assert '  units: ["nm", "nm", "nm"]' in output
    assert "stored" not in printed("info", "--no-size", f"{SAMPLE}/em/s1")
    assert re.search(r"children +em, labels", printed("info", SAMPLE))


def test_label_multisets_are_shown_as_what_they_are_read_as() -> None:
    assert "uint64 (stored as uint8)" in printed("info", str(JAVA / "labels.n5" / "labels" / "s0"))


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("{tmp}/no.n5", "no.n5 does not exist"),
        ("{java}/tree.n5/nope", "/nope: expected a group or dataset"),
        ("{java}/versions/5.0.0.n5", "n5: expected a version up to 4.x, got '5.0.0'"),
        ("{java}/varlen.n5/object", "expected numbers or strings, got 'object'"),
        ("{java}/tree.n5/a\\b", "expected names separated by '/'"),
    ],
)
def test_an_error_is_one_line_and_ends_with_2(location: str, message: str, tmp_path: Path) -> None:
    path = location.format(tmp=tmp_path, java=JAVA)
    for command in ("info", "tree"):
        (line,) = printed(command, path, status=2).splitlines()
        assert line.startswith("n5zarr: error: ")
        assert message in line
    with pytest.raises((n5zarr.N5Error, OSError), match=re.escape(message)):
        CliRunner().invoke(app, ["info", "--debug", path], catch_exceptions=False)


def test_verify_names_every_damaged_block(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "c.n5")
    (tmp_path / "c.n5" / "em" / "s2" / "0" / "0" / "0").write_bytes(b"")
    output = printed("info", "--verify", str(tmp_path / "c.n5" / "em" / "s2"), status=2)
    assert "damaged blocks        1" in output
    assert "n5zarr: error:" in output
    assert "em/s2: block 0/0/0: block header: expected 4 bytes" in output
    assert "damaged blocks        0" in printed("info", "--verify", f"{SAMPLE}/em/s2")


def test_names_are_printed_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "c.n5" / "[red]x"
    folder.mkdir(parents=True)
    (folder / "attributes.json").write_text('{"[bold]": "[/]"}')
    assert "[red]x" in printed("tree", str(tmp_path / "c.n5"))
    assert '  [bold]: "[/]"' in printed("info", str(folder))


def test_the_demo_runs_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plot installs it")
    output = printed("demo", "--output", str(tmp_path / "demo.png"))
    assert len(output.splitlines()) < 60
    assert "<Array" in output
    assert "('z', 'y', 'x')" in output
    assert "What to try next" in output
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_runs_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'n5zarr[plot]'" in printed("demo", "-o", str(tmp_path / "demo.png"))


def test_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "n5zarr"]
    done = subprocess.run(
        [*command, "info", "nope.n5"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("n5zarr: error: ")
    assert done.stderr.count("\n") == 1
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith(f"n5zarr {n5zarr.__version__} (with")


def test_without_typer_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from n5zarr.__main__ import main; main()"
    command = [sys.executable, "-c", code, "tree", SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "n5zarr: the command line needs typer and rich: pip install 'n5zarr[cli]'\n"
    )


@pytest.mark.long
def test_without_docstrings_the_command_says_what_to_do() -> None:
    command = [sys.executable, "-OO", "-m", "n5zarr", "tree", SAMPLE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("which python -OO removes; use -O\n")


def test_help_and_values_of_options_come_from_docstrings() -> None:
    def called(
        location: str, path: str = "", *, factors: object = "auto", names: object = ()
    ) -> None:
        """Do.

        Parameters
        ----------
        location : path
            Where.
        path : str, optional
            Node.
        factors : sequence of int or "auto", optional
            Whether to use :func:`n5zarr.open` with ``names`` of ``location``, such as ``"em/*"``.

            Python alone reads this.
        names : str or sequence of str, optional
            Names; ``"a"``.
        """

    @options_of(called)
    def made(**given: Any) -> None: ...

    location, factors, names = signature(made).parameters.values()
    (argument,), (option,), (several,) = (
        each.annotation.__metadata__ for each in (location, factors, names)
    )
    assert (argument.help, argument.metavar) == ("Where.", "LOCATION")
    assert option.help == "Use open with --names of LOCATION, such as 'em/*'."
    assert (option.parser("2,3"), option.parser("auto")) == ([2, 3], "auto")
    assert several.help == "Names; a. May be repeated."
    assert (factors.default, names.default) == ("auto", None)


def test_a_service_whose_output_is_closed_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service runs with its output closed, for which Python has None."""
    monkeypatch.setattr(sys, "stdout", None)
    console().print("text")


def test_an_interrupted_start_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "n5zarr.cli.app", Interrupted("n5zarr.cli.app"))
    monkeypatch.setattr(sys, "argv", ["n5zarr", "tree", SAMPLE])
    monkeypatch.setattr(gc, "disable", lambda: None)  # this process goes on
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_info_says_what_of_the_axes_cannot_be_meant(tmp_path: Path) -> None:
    attributes: dict[str, Any] = {"transform": {"axes": ["y", "x"], "scale": ["4", 4]}}
    where = tmp_path / "c.n5" / "a"
    n5zarr.create_array(where, shape=(3, 5), dtype="u1", attributes=attributes)
    output = printed("info", str(where))
    assert 'axes, not understood  transform.scale: expected 2 numbers, got ["4", 4]' in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("thumbnail", SAMPLE, "--position", "z=3,y"), "voxels such as 20,48,64 or z=20,t=3"),
        (("tree", SAMPLE, "--storage-option", "anon"), "expected NAME=VALUE, got 'anon'"),
        (("tree", SAMPLE, "--depth", "x"), "Invalid value for '--depth'"),
        (("tree", SAMPLE, "--depth", "-1"), "Invalid value for '--depth'"),
        (("tree",), "Missing argument 'LOCATION'"),
        (("validate",), "Missing argument"),
        (("attrs", SAMPLE, "a", "b", "c"), "unexpected extra argument"),
    ],
)
def test_values_of_options_that_cannot_be_meant_are_told(
    words: tuple[str, ...], message: str
) -> None:
    output = " ".join(printed(*words, status=2).replace("│", " ").split())  # it fills lines
    assert message in output


def test_a_dry_run_of_convert_names_the_first_twenty_arrays(tmp_path: Path) -> None:
    """It counts the others and their bytes, and writes nothing."""
    for number in range(23):
        n5zarr.create_array(tmp_path / "c.n5", path=f"a{number}", shape=(7, 5), dtype="u2")
    lines = printed("convert", str(tmp_path / "c.n5"), str(tmp_path / "d.zarr"), "--dry-run")
    assert lines.splitlines()[20:] == [
        "... and 3 more",
        f"{tmp_path / 'd.zarr'}: 23 arrays, 1.6 KiB of elements, not written",
    ]
    assert not (tmp_path / "d.zarr").exists()


def test_a_command_starts_without_the_modules_of_others() -> None:
    code = """
import sys
from n5zarr import sample_path
from n5zarr.cli.app import app
app(["tree", str(sample_path())], standalone_mode=False)
others = [name for name in sys.modules if name.startswith(("n5zarr.tools.", "n5zarr.viewing."))]
print("loaded:", [name for name in others if "convert" in name or "pyramid" in name])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"
