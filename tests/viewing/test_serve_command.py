"""``n5zarr serve`` prints addresses and code, and ends cleanly."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zarr

import n5zarr
from n5zarr.cli import servers
from n5zarr.cli.app import app
from n5zarr.cli.messages import print_text
from tests.command import CliRunner

PAGE = Path(__file__).parents[2] / "docs/view.md"
SAMPLE = n5zarr.sample_path()


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "n5zarr", "serve", SAMPLE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as run:
        yield run
        run.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_where_it_serves_and_ends_quietly(
    process: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert process.stdout is not None
    printed = [process.stdout.readline() for _ in range(11)]
    url = re.search(r"http://127\.0\.0\.1:[0-9]+/", printed[1])
    assert url is not None
    with urllib.request.urlopen(f"{url[0]}n5/attributes.json", timeout=60) as answer:  # noqa: S310
        assert answer.read() == Path(SAMPLE, "attributes.json").read_bytes()
    shown = "".join(printed).replace(url[0], "http://127.0.0.1:43211/")
    shown = shown.replace(SAMPLE, "/data/sample.n5")
    assert shown in PAGE.read_text()
    process.send_signal(number)
    rest = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, ("", ""))


@pytest.mark.each_of(2)
@pytest.mark.parametrize("words", [("view", "--no-browser"), ("serve",)])
def test_scripts_read_one_line_with_the_addresses(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "n5zarr", *words, "--json", SAMPLE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        found = json.loads(run.stdout.readline())
        with urllib.request.urlopen(f"{found['n5']}attributes.json", timeout=60) as answer:  # noqa: S310
            assert answer.read() == Path(SAMPLE, "attributes.json").read_bytes()
        assert zarr.open_array(f"{found['zarr3']}em/s1", mode="r").shape == (20, 48, 64)
        with urllib.request.urlopen(found["page"], timeout=60) as answer:  # noqa: S310
            assert answer.status == 200
        assert ("neuroglancer" in found) == (words[0] == "view")
        run.terminate()
        assert (run.stdout.read(), run.wait(60)) == ("", 0)


def test_a_port_in_use_is_said() -> None:
    with n5zarr.serve(SAMPLE) as server:
        result = CliRunner().invoke(app, ["serve", SAMPLE, "--port", str(server.port)])
    assert result.exit_code == 2
    expected = f"127.0.0.1:{server.port}: expected a free port, got one in use; port 0 takes any"
    assert expected in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [(["nothing.n5"], "nothing.n5 does not exist"),
     ([SAMPLE, "--host", "203.0.113.9"], "203.0.113.9:0: expected an address of this machine")],
)  # fmt: skip
def test_a_wrong_location_or_host_is_an_error_of_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["serve", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_ipv6_address_is_one_that_zarr_opens() -> None:
    """zarr opens the printed IPv6 address, though fsspec would split one at ``::``."""
    with _on_ipv6() as server:
        lines = list(map(str, servers._addresses(server)))
        assert lines[1].endswith(f"http://[::1]:{server.port}/")
        code = next(line for line in lines if "zarr.open(" in line)
        url = code.partition('"')[2].partition('"')[0]
        assert zarr.open_array(url, mode="r", zarr_format=3).shape == (40, 96, 128)
        with urllib.request.urlopen(f"{server.url}tree/em/s0", timeout=10) as page:  # noqa: S310
            assert url in page.read().decode()


def _on_ipv6() -> n5zarr.Server:
    try:
        return n5zarr.serve(SAMPLE, host="::1")
    except OSError as err:
        pytest.skip(f"no IPv6 here: {err}")


def test_addresses_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Addresses are printed unchanged, though those of IPv6 look like rich's markup."""
    served = SimpleNamespace(first_dataset=lambda: "em/s0")
    app = SimpleNamespace(state=SimpleNamespace(served=served))
    fake: Any = SimpleNamespace(url="http://[fe80::a]:7/", app=app)
    print_text(*servers._addresses(fake))
    printed = capsys.readouterr().out
    assert "Start page   http://[fe80::a]:7/\n" in printed
    assert '"http://[fe80:0:0:0:0:0:0:a]:7/zarr3/em/s0"' in printed


@pytest.mark.parametrize("has_browser", [True, False])
def test_a_browser_opens_what_is_served(has_browser: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neuroglancer or the start page; without a browser, the address of Neuroglancer is enough."""
    opened: list[str] = []

    def open_browser(url: str) -> bool:
        opened.append(url)
        return has_browser

    monkeypatch.setattr("webbrowser.open", open_browser)
    monkeypatch.setattr(n5zarr.Server, "wait", lambda server, _: server.close())
    result = CliRunner().invoke(app, ["view", SAMPLE, "--dataset", "em"])
    assert result.exit_code == 0, result.output
    (url,) = opened
    assert url.endswith("/view?dataset=em")
    assert f"Neuroglancer  {url}" in result.stdout
    assert SAMPLE in result.stdout.splitlines()[0]
    said = "no browser available; open the address of Neuroglancer in one"
    assert (said in result.stderr) is not has_browser
    result = CliRunner().invoke(app, ["serve", SAMPLE, "--open"])
    assert result.exit_code == 0, result.output
    assert f"Start page   {opened[1]}" in result.stdout


def test_a_container_without_datasets_names_a_path_to_fill_in(tmp_path: Path) -> None:
    zarr.open_group(n5zarr.N5Store(tmp_path / "c.n5"), path="g", mode="w")
    with n5zarr.serve(tmp_path / "c.n5") as server:
        lines = [str(line) for line in servers._addresses(server)]
    assert lines[-5] == "To open PATH"
    assert f'zarr.open("{server.url}zarr3/PATH", mode="r")' in lines[-4]
