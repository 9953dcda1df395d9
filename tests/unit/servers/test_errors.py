"""Errors of libraries become Python's, in one line that names the key and a way out."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from n5zarr.errors import N5FormatError
from n5zarr.servers.errors import cause_to_show, is_gone, says_missing, server_error, words_of


def error(name: str = "Some", module: str = "elsewhere", text: str = "", **members: Any) -> Any:
    """Make an error of a class of a library, with some members."""
    base = members.pop("base", Exception)
    made = type(name, (base,), {"__module__": module})(text)
    made.__cause__ = members.pop("cause", None)
    made.__dict__.update(members)
    return made


def answered(status: int) -> dict[str, Any]:
    return {"ResponseMetadata": {"HTTPStatusCode": status}}


class Tolerant:
    forbidden_is_missing = True


FORBIDDEN = [
    PermissionError("no"),
    error(status=403),
    error(status="403"),
    error(code=403),
    error(response=answered(403)),
    error(cause=error(response=answered(403))),
    error("PermissionDeniedError", "obstore.exceptions"),
    error(text="with status code: 403 Forbidden"),
    error(text="An error occurred (403) when calling"),
    error(text="Forbidden: https://storage"),
]


@pytest.mark.parametrize("err", FORBIDDEN)
def test_a_forbidden_key_is_missing_if_wished(err: Exception) -> None:
    assert says_missing(Tolerant(), err)
    assert not says_missing(object(), err)
    assert not is_gone(err)
    found = server_error("c.n5: k", err, is_read=True)
    assert (type(found), found.errno) == (PermissionError, errno.EACCES)  # type: ignore[attr-defined]
    assert "expected to read it, but the server answers" in str(found)
    assert str(found).endswith("open N5Store(..., forbidden_is_missing=True)")
    assert ("answers 403: forbidden" in str(found)) == (not isinstance(err, PermissionError))
    written = str(server_error("c.n5: k", err, is_read=False))
    assert "expected to write it, but the server answers" in written
    assert written.endswith("forbidden")


@pytest.mark.parametrize(
    ("err", "reason"),
    [
        (error(status=401), "Unauthorized"),
        (error("UnauthenticatedError", "obstore.exceptions"), "Unauthorized"),
        (error(text="Unauthorized: https://storage"), "Unauthorized"),
        (PermissionError("ExpiredToken: old"), "ExpiredToken"),
        (error(status=403, cause=error(text="SignatureDoesNotMatch")), "SignatureDoesNotMatch"),
        (error(status=403, response={"Error": "InvalidAccessKeyId"}), "InvalidAccessKeyId"),
    ],
)
def test_credentials_that_are_refused(err: Exception, reason: str) -> None:
    assert not says_missing(Tolerant(), err)
    for is_read in (True, False):
        found = str(server_error("k", err, is_read=is_read))
        assert found.endswith(f"forbidden, {reason}; check the credentials")


@pytest.mark.parametrize(
    ("err", "is_missing"),
    [
        (FileNotFoundError(), True),
        (error(status=410), True),
        (error(text="Gone: x"), True),
        (error(status=404), False),
        (error(code="x"), False),
        (ValueError("Forbidden"), False),
        (error(response="text"), False),
    ],
)
def test_a_missing_key(err: Exception, is_missing: bool) -> None:
    assert (says_missing(object(), err), says_missing(Tolerant(), err)) == (is_missing, is_missing)
    assert is_gone(err) == (is_missing and not isinstance(err, FileNotFoundError))


BUCKET = "NoSuchBucket: the server has no such bucket; check its name, or create it"
NOT_REACHED = "check the address, the network and the proxy"


@pytest.mark.parametrize(
    ("err", "kind", "text"),
    [
        (error(status=500, text="bad"), OSError, "500: bad"),
        (error(status=500, text="status 500"), OSError, "status 500"),
        (error("E", "botocore.x", text="broken"), ConnectionError, "broken"),
        (error("E", "obstore", text="broken"), ConnectionError, "broken"),
        (error("E", "aiohttp.client", text="x", status=503), OSError, "503: x"),
        (ConnectionError("lost"), ConnectionError, "lost"),
        (error(base=ConnectionError, status=500), OSError, "500: "),
        (OSError(errno.EIO, "torn"), OSError, "torn"),
        (TimeoutError(), TimeoutError, "no answer in time"),
        (TimeoutError("slow"), TimeoutError, "no answer in time: slow"),
        (error("E", "obstore", "timed out"), TimeoutError, "no answer in time: timed out"),
        (error("ReadTimeoutError", "botocore.x", "x"), TimeoutError, "no answer in time: x"),
        (error("E", "obstore", "timed out", status=504), OSError, "504: timed out"),
        (FileNotFoundError("NoSuchBucket"), OSError, BUCKET),
        (ValueError("The specified bucket does not exist"), OSError, BUCKET),
        (error("E", "botocore.x", text="ContainerNotFound"), ConnectionError, BUCKET),
        (error("E", "botocore.x", text="Unable to locate credentials"), ConnectionError,
         "Unable to locate credentials; storage_options={'anon': True} reads public buckets"),
        (error("E", "aiohttp.x", text="Cannot connect to host h:80 ssl:default"), ConnectionError,
         f"no server is reached at h:80; {NOT_REACHED}"),
        (error("E", "obstore.x", text="error sending request for url (http://me:pw@host:9/k)"),
         ConnectionError, f"no server is reached at host:9; {NOT_REACHED}"),
        (error("E", "obstore.x", text="error sending request"), ConnectionError,
         f"no server is reached at ; {NOT_REACHED}"),
        (error("E", "requests.x", text="(host='h.org', port=9): Max retries exceeded"),
         ConnectionError, f"no server is reached at h.org; {NOT_REACHED}"),
        (error("E", "obstore.x", text="error sending request", status=500), OSError,
         "500: error sending request"),
    ],
)  # fmt: skip
def test_a_failed_request(err: Exception, kind: type[OSError], text: str) -> None:
    found: Any = server_error("c.n5: k", err, is_read=True)
    assert (type(found), str(found).partition("] ")[2]) == (kind, f"c.n5: k: {text}".rstrip() + (
        " " if text.endswith(": ") else ""))  # fmt: skip
    assert found.errno == (errno.ETIMEDOUT if kind is TimeoutError else errno.EIO)
    assert found.__cause__ is (None if "me:pw" in str(err) else err)


def test_errors_that_are_told_already_or_of_no_server() -> None:
    for err in (
        OSError(errno.EIO, "c.n5: k: said"), N5FormatError("x", kind="json"), ValueError("x"),
        FileNotFoundError("x"), IsADirectoryError("x"),
    ):  # fmt: skip
        assert server_error("c.n5: k", err, is_read=True, secrets=["word"]) is err
    hidden = server_error("c.n5: k", ValueError("word"), is_read=True, secrets=["word"])
    assert (type(hidden), str(hidden), hidden.__cause__) == (ValueError, "c.n5: k: ***", None)
    missing = server_error("k", FileNotFoundError("in word"), is_read=True, secrets=["word"])
    assert (type(missing), str(missing)) == (FileNotFoundError, "k: not found: in ***")
    bare = server_error("k", FileNotFoundError(2, "Forbidden: x"), is_read=True)
    assert type(bare) is FileNotFoundError
    unreached = error("E", "aiohttp.x", text="Cannot connect to host word:80")
    assert "word" not in str(server_error("k", unreached, is_read=True, secrets=["word"]))


@pytest.mark.parametrize(
    ("err", "text"),
    [
        (OSError(5, "a\n  b"), "a b"),
        (OSError("plain"), "plain"),
        (ValueError("a \n\nDebug source: b"), "a"),
        (ValueError("<html><head>x</head><p>No&nbsp;<b>way</b></p></html>"), "No&nbsp; way"),
        (ValueError("x" * 500), "x" * 500),
        (ValueError("x" * 501), "x" * 500 + "..."),
        (ValueError("my word"), "my ***"),
    ],
)
def test_the_words_of_an_error(err: Exception, text: str) -> None:
    assert words_of(err, ["word"]) == text


def test_an_error_that_tells_a_secret_is_no_cause() -> None:
    secret, plain = ValueError("word"), ValueError("x")
    assert cause_to_show(plain, ["word"]) is plain
    assert cause_to_show(secret, ["word"]) is None
    for name in ("__cause__", "__context__"):
        outer = ValueError("y")
        setattr(outer, name, secret)
        assert cause_to_show(outer, iter(["word"])) is None
        assert cause_to_show(outer) is outer
    loop = ValueError("z")
    loop.__context__ = plain
    plain.__context__ = loop
    assert cause_to_show(loop, ["word"]) is loop
