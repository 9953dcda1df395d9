"""Passwords, keys and signatures are in no message, log line, text or cause of an error."""

from __future__ import annotations

import logging
import traceback
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import n5zarr
from n5zarr import N5Store
from n5zarr.cli.app import app
from n5zarr.errors import N5Error, N5UnsupportedError
from n5zarr.storage.secrets import secrets_in, without_secrets
from tests.remote import servers

SAID = ("PASSW0RD", "S1GNED", "AKIAKEY", "SECR3T", "T0KEN", b64encode(b"user:PASSW0RD").decode())
NOWHERE = "http://127.0.0.1:9"  # nobody listens there
S3FS = {
    "key": "AKIAKEY1", "secret": "SECR3T+/1", "token": "T0KEN1", "endpoint_url": NOWHERE,
}  # fmt: skip
OBSTORE = {
    "access_key_id": "AKIAKEY1", "secret_access_key": "SECR3T+/1", "token": "T0KEN1",
    "endpoint": NOWHERE, "region": "us-east-1", "client_options": {"allow_http": True},
    "retry_config": {"max_retries": 0}, "virtual_hosted_style_request": False,
}  # fmt: skip
HEADERS = {"headers": {"Authorization": "Bearer T0KEN1"}}
SIGNED = "user:PASSW0RD@127.0.0.1:9/lab/c.n5?X-Signature=S1GNED&more=S1GNED2"
PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "s3": ("s3://user:PASSW0RD@lab/c.n5", {"storage_options": S3FS}),
    "s3, fsspec": ("s3://user:PASSW0RD@lab/c.n5", {"storage_options": S3FS, "backend": "fsspec"}),
    "s3, obstore": (
        "s3://user:PASSW0RD@lab/c.n5", {"storage_options": OBSTORE, "backend": "obstore"},
    ),
    "s3, as a bucket": ("s3://lab/c.n5", {"storage_options": S3FS}),
    "s3, wrong options": (
        "s3://user:PASSW0RD@lab/c.n5", {"storage_options": S3FS, "backend": "obstore"},
    ),
    "http": (f"http://{SIGNED}", {"storage_options": HEADERS}),
    "http, fsspec": (f"http://{SIGNED}", {"storage_options": HEADERS, "backend": "fsspec"}),
    "http, obstore": (
        f"http://{SIGNED}",
        {"backend": "obstore", "storage_options": {k: OBSTORE[k] for k in
                                                   ("client_options", "retry_config")}},
    ),
    "chain": (f"simplecache::http://{SIGNED}", {}),
    "unknown": ("foo://user:PASSW0RD@lab/c.n5", {}),
    "zip": ("zip://user:PASSW0RD@c.zip", {"storage_options": {"token": "T0KEN1"}}),
    "s3, quoted": ("s3://us%65r:PASSW0RD@lab/c.n5", {"storage_options": S3FS}),
    "zip in http": ("zip://c.n5::http://user:PASSW0RD@127.0.0.1:9/c.zip", {}),
    "zip, signed": ("zip://c.n5::http://127.0.0.1:9/c.zip?X-Signature=S1GNED", {}),
    "zip, header": ("zip://c.n5::http://127.0.0.1:9/c.zip", {"storage_options": {"http": HEADERS}}),
    "zip in s3": ("zip://c.n5::s3://lab/c.zip", {"storage_options": {"s3": S3FS}}),
    "tar": ("tar://c.n5::http://user:PASSW0RD@127.0.0.1:9/c.tar", {}),
    "references": ("reference://::http://user:PASSW0RD@127.0.0.1:9/r.json", {}),
    "references, signed": ("reference://::http://127.0.0.1:9/r.json?X-Signature=S1GNED", {}),
    "filecache": (f"filecache::http://{SIGNED}", {}),
    "folder": ("dir::http://user:PASSW0RD@127.0.0.1:9/c.n5", {}),
    "any header": (
        f"{NOWHERE}/c.n5", {"storage_options": {"client_kwargs": {"headers": {"X-Me": "T0KEN1"}}}},
    ),
    "azure, obstore": ("az://lab/c.n5", {"backend": "obstore", "storage_options": {
        "account_name": "lab", "account_key": "U0VDUjNU", "endpoint": NOWHERE,
        "retry_config": {"max_retries": 0}}}),
    "ftp": ("ftp://user:PASSW0RD@127.0.0.1:9/c.n5", {}),
    **{f"http, {odd}": (f"http://user:PASSW0RD{odd}@127.0.0.1:9/c.n5", {})
       for odd in ("%2Fw", "%3F%23w", "@w", ":w", "/w", "?w", "#w", "/PASSW0RD2")},
    "zip in http, /": ("zip://c.n5::http://user:a/PASSW0RD@127.0.0.1:9/c.zip", {}),
    "s3, /": ("s3://user:a/PASSW0RD@lab/c.n5", {"storage_options": S3FS}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


def check(text: str) -> None:
    assert not [each for each in SAID if each in text], text


@pytest.mark.parametrize("name", PLACES)
def test_no_secret_is_told(name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    url, given = PLACES[name]
    reports = [tmp_path / "a.json", tmp_path / "b.json"]
    caplog.set_level(logging.DEBUG, logger="n5zarr")
    calls: dict[str, Callable[[], object]] = {
        "open": lambda: n5zarr.open_array(url, path="q", **given),
        "list": lambda: sorted(n5zarr.open_group(url, **given)),
        "convert": lambda: n5zarr.convert(url, "memory://nowhere", **given, report=reports[0]),
        "report": lambda: n5zarr.convert(url, "memory://nowhere", **given, report=reports[1]),
        "validate": lambda: n5zarr.validate(url, **given),
        "store": lambda: check(f"{N5Store(url, **given)!r} {N5Store(url, **given).info}"),
        "durability": lambda: N5Store(url, durability="durable", **given),
        "url in url": lambda: n5zarr.virtualize(url, f"{url}/refs.json", **given),
    }
    n_told = 0
    for call in calls.values():
        try:
            call()
        except (N5Error, OSError, ValueError) as err:
            check(told(err))
            n_told += 1
    assert n_told >= 3
    check("".join(report.read_text() for report in reports))
    check("\n".join(r.getMessage() for r in caplog.records if r.name.startswith("n5zarr")))


def told(err: BaseException | None) -> str:
    """Return what Python prints of an error, without lines of source, which show this test."""
    assert err is not None
    lines = traceback.format_exception(err)
    return "".join(line for line in lines if not line.startswith("  File")) + repr(err)


def test_a_refused_password_is_not_told_by_what_the_server_repeats() -> None:
    """Services repeat keys in what they answer, as S3 does of wrong ones."""

    class Repeating(servers.LyingFiles):
        def do_GET(self) -> None:  # noqa: N802 - as the base wants
            pairs = (*S3FS.items(), *self.headers.items())
            said = "".join(f"<{name}>{value}</{name}>" for name, value in pairs)
            self.send_response(400)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said.encode() if self.command == "GET" else b"")

        do_HEAD = do_GET  # noqa: N815 - as above

    with servers.serving(Repeating) as url:
        at = f"{url.replace('://', '://user:PASSW0RD@')}/c"
        for place in (f"{at}.n5", f"zip://c.n5::{at}.zip", f"simplecache::{at}.n5"):
            with pytest.raises(OSError, match=r"400|not found") as failed:
                n5zarr.open_array(place, path="q")
            check(told(failed.value))
        for backend, options in (
            (None, S3FS | {"endpoint_url": url}),
            ("fsspec", S3FS | {"endpoint_url": url}),
            ("obstore", OBSTORE | {"endpoint": url}),
        ):
            given: Any = {"backend": backend, "storage_options": options}
            with pytest.raises(OSError, match="400") as raised:
                n5zarr.open_array("s3://lab/c.n5", path="q", **given)
            check(told(raised.value))


def test_commands_print_no_secret(tmp_path: Path) -> None:
    runner = CliRunner()
    urls = f"http://{SIGNED}", "s3://user:PASSW0RD@lab/c.n5", PLACES["zip in http"][0]
    lines = [
        ["info"], ["info", "--debug"], ["info", "--backend", "obstore", "-o", "key=PASSW0RD"],
        ["nwb", "convert"], ["tree"], ["validate", "--json"],
        ["-v", "info"], ["info", "--json"], ["-vv", "convert"],
    ]  # fmt: skip
    for number, arguments in enumerate(lines):
        for url in urls if number < 3 else [urls[number % 3]]:
            places = [url, str(tmp_path / "x.nwb")] if "convert" in arguments else [url]
            result = runner.invoke(app, [*arguments, *places])
            assert result.exit_code != 0
            assert isinstance(result.exception, SystemExit) != ("--debug" in arguments)
            check(f"{result.output} {told(result.exception)}")


def test_a_token_of_google_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", NOWHERE)
    with pytest.raises(
        ConnectionError, match=r"gs://lab/c\.n5: no server is reached at oauth2\."
    ) as e:
        N5Store("gs://lab/c.n5", storage_options={"token": "ya29.T0KEN1"})
    check(told(e.value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/tokeninfo?access_token=abc&x=1", "/tokeninfo?access_token=***&x=1"),
        ("abfs://c@a.net/b?sv=1&sig=ab%2Bc", "abfs://c@a.net/b?sv=1&sig=***"),
        ("AccountName=a;AccountKey=abc==;Suffix=b", "AccountName=a;AccountKey=***;Suffix=b"),
        ("zip://c.n5::http://me:a/b@host/c.zip", "zip://c.n5::http://host/c.zip"),
        ("at http://me:a?b#c@d@host:80/c.n5 now", "at http://host:80/c.n5 now"),
        ("zip://a.n5::s3://lab/b@c:d.zip", "zip://a.n5::s3://lab/b@c:d.zip"),
        ("http://host:80/a@b:c/d@e.n5", "http://host:80/a@b:c/d@e.n5"),
        ("s3://bucket/what?/a:b@c.n5", "s3://bucket/what?/a:b@c.n5"),
        ("abfs://c@a.dfs.core.windows.net/a.n5", "abfs://c@a.dfs.core.windows.net/a.n5"),
        ("memory://140278809250176", "memory://140278809250176"),
        ("https://host:8000/a@b.n5", "https://host:8000/a@b.n5"),
        ("https://[::1]:8000/a.n5", "https://[::1]:8000/a.n5"),
    ],
)
def test_secrets_are_known_by_their_places(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


def test_what_is_no_secret_stays() -> None:
    """Short values are parts of words; those of other options name things."""
    given = {"key": "a", "token": "anon", "endpoint_url": "https://s3.lab.org", "anon": "true"}
    text = "a server, s3.lab.org, says true: anon"
    assert without_secrets(text, secrets_in("s3://lab/a:b@c.n5", given)) == text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"key": "AKIAKEY1"}, "expected those of obstore's store .*got key; those of"),
        ({"region": "x", "anon": True}, "got anon, region; those of fsspec"),
        (  # of client_options: obstore takes it, and panics later
            {"secret_access_key": "SECR3T", "allow_http": True},
            "backend='obstore': .*client_options.*got allow_http, secret_access_key; those of",
        ),
    ],
)
def test_options_of_the_other_library_are_named(given: Any, expected: str) -> None:
    with pytest.raises(N5UnsupportedError, match=expected) as raised:
        N5Store("s3://lab/c.n5", backend="obstore", storage_options=given)
    assert "\n" not in str(raised.value)
    assert "Debug" not in str(raised.value)
    check(told(raised.value))


@pytest.mark.parametrize("backend", ["fsspec", "obstore"])
def test_a_name_of_a_folder_is_no_secret(backend: Any) -> None:
    """Such as the credentials of a test server, ``test`` and ``test``: places stay distinct."""
    options = {
        "fsspec": {"key": "test", "secret": "data"},
        "obstore": {"access_key_id": "test", "secret_access_key": "data", "region": "us-east-1"},
    }[backend]
    places = [f"s3://{path}/c.n5" for path in ("data/test", "test/data")]
    stores = [N5Store(place, backend=backend, storage_options=options) for place in places]
    for store, place in zip(stores, places, strict=True):
        assert place in str(store)


@pytest.mark.parametrize("end", ["copy", "d.zarr", "d.n5/s0", "r.json", "r.parq", "r.icechunk"])
@pytest.mark.parametrize("command", ["convert", "virtualize", "pyramid --to"])
def test_no_secret_of_a_destination_is_told(command: str, end: str) -> None:
    url = f"http://user:PASSW0RD@127.0.0.1:9/{end}?X-Signature=S1GNED"
    name, *option = command.split()
    source = f"{n5zarr.sample_path()}/em/s0" if option else n5zarr.sample_path()
    result = CliRunner().invoke(app, [name, source, *option, url])
    assert result.exit_code == 2
    assert "http://127.0.0.1:9" in result.output
    check(result.output)


def test_a_query_does_not_hide_the_format_of_a_destination() -> None:
    query = "?X-Signature=S1GNED"
    for end in ("d.n5/s0", "d.n5", "d.zarr"):
        with pytest.raises(N5UnsupportedError, match=r"got a read-only one|read-only"):
            n5zarr.convert(n5zarr.sample_path(), f"http://127.0.0.1:9/{end}{query}")
    with pytest.raises(N5Error, match=r"ends in .*, got '.txt'"):
        n5zarr.virtualize(n5zarr.sample_path(), f"http://127.0.0.1:9/r.txt{query}")
