"""The errors of servers: what each library says, as an error of Python's with a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from errno import EACCES, EIO, ETIMEDOUT
from typing import Any

from n5zarr.errors import N5Error
from n5zarr.storage.secrets import without_secrets

# reasons in a "forbidden" answer that never mean that the key is missing
_NOT_MISSING = re.compile(
    "SignatureDoesNotMatch|InvalidAccessKeyId|InvalidToken|ExpiredToken|TokenRefreshRequired"
    "|RequestTimeTooSkewed|AccountProblem|InvalidSecurity|NotSignedUp"
)
# have errors of their own
_LIBRARIES = {
    "obstore", "aiohttp", "botocore", "aiobotocore", "gcsfs", "azure", "google", "requests",
}  # fmt: skip
_OF_OBSTORE = {"PermissionDeniedError": 403, "UnauthenticatedError": 401}
_OF_GCSFS = {401: "Unauthorized", 403: "Forbidden", 410: "Gone"}
# as obstore, as s3fs
_STATUS = re.compile(r"status code: (\d{3})\b|An error occurred \((\d{3})\)")
_TIMED_OUT = re.compile(r"timed ?out|\w+TimeoutError", re.IGNORECASE)
_DEBUG_TEXT = re.compile(r"\s*\n+Debug source")
_DOCUMENT = re.compile(r"<(style|script|head)\b.*?</\1>|<[^>]*>", re.DOTALL)  # a server's
_LONGEST = 500  # characters of what a server says


def says_missing(store: object, err: Exception) -> bool:
    """Whether an error of a store means that the key is missing."""
    if isinstance(err, FileNotFoundError) or is_gone(err):
        return True
    is_tolerant = getattr(store, "forbidden_is_missing", False)
    return is_tolerant and _is_forbidden(err) and not _refused_credentials(err)


def is_gone(err: Exception) -> bool:
    """Whether a server says that a key existed once: 410 Gone."""
    return _status(err) == 410


def _refused_credentials(err: Exception) -> str | None:
    """Return the reason of a service that refuses the user's credentials, whatever the key."""
    causes = [err, err.__cause__, err.__context__]
    reasons = " ".join(f"{cause} {getattr(cause, 'response', '')}" for cause in causes)
    found = _NOT_MISSING.search(reasons)
    return ("Unauthorized" if _status(err) == 401 else None) if found is None else found.group()


# of obstore, aiohttp and botocore
_NOT_REACHED = re.compile(
    r"error sending request()|Cannot connect to host (\S+)|Could not connect to the endpoint()"
    r"|Max retries exceeded()"
)
_HOST = re.compile(r"(?:https?://(?:[^@/\s]*@)?|Cannot connect to host |\(host=')([^/\s\"']+)")

# of S3, Google and Azure
_NO_BUCKET = re.compile(r"NoSuchBucket|bucket does not exist|ContainerNotFound")


def server_error(
    where: str, err: Exception, *, is_read: bool, secrets: Iterable[str] = ()
) -> Exception:
    """Return the error for a failed request: one of Python's, in one line, with place and way out.

    Its cause is the error of the library, unless that shows a secret.

    Parameters
    ----------
    where : str
        Container and key.
    err : Exception
        The error of the store, which is returned if it is none of a server.
    is_read : bool
        Whether the request reads.
    secrets : iterable of str, optional
        What its text must not contain; see :func:`~n5zarr.storage.secrets.secrets_of_store`.
    """
    is_told = str(getattr(err, "strerror", "")).startswith(f"{where}: ")
    if is_told or isinstance(err, N5Error):
        return err
    is_of_library = type(err).__module__.partition(".")[0] in _LIBRARIES
    is_lost = isinstance(err, ConnectionError | TimeoutError) or getattr(err, "errno", 0) == EIO
    made: Exception
    is_bucket = bool(_NO_BUCKET.search(str(err)))
    is_missing = isinstance(err, FileNotFoundError) and not is_bucket
    if not is_missing and _is_forbidden(err):
        made = _refusal(where, err, is_read=is_read)
    elif not is_missing and (is_of_library or is_lost or is_bucket or _status(err)):
        made = _failure(where, err, secrets, is_of_library=is_of_library)
    elif cause_to_show(err, secrets) is err:
        return err
    else:
        kind, what = (FileNotFoundError, "not found: ") if is_missing else (ValueError, "")
        made = kind(f"{where}: {what}{words_of(err, secrets)}")
    made.__cause__ = cause_to_show(err, secrets)
    return made


def _refusal(where: str, err: Exception, *, is_read: bool) -> PermissionError:
    status = _status(err)
    answer = f"answers {status}: " if status else "answers: "
    verb = "read" if is_read else "write"
    message = f"{where}: expected to {verb} it, but the server {answer}forbidden"
    if reason := _refused_credentials(err):
        message += f", {reason}; check the credentials"
    elif is_read:
        message += (
            "; if it answers so for what is missing, as S3 does to users who may not list, "
            "open N5Store(..., forbidden_is_missing=True)"
        )
    return PermissionError(EACCES, message)


def _failure(where: str, err: Exception, secrets: Iterable[str], *, is_of_library: bool) -> OSError:
    status = _status(err)
    text = words_of(err, secrets)
    if status and str(status) not in text:
        text = f"{status}: {text}"
    details = f"{type(err).__name__} {err}"
    if status is None and (isinstance(err, TimeoutError) or _TIMED_OUT.search(details)):
        text = ": ".join(filter(None, ("no answer in time", text)))
        return TimeoutError(ETIMEDOUT, f"{where}: {text}")
    if _NO_BUCKET.search(details):
        text = "NoSuchBucket: the server has no such bucket; check its name, or create it"
    elif "locate credentials" in text:
        text += "; storage_options={'anon': True} reads public buckets"
    elif status is None and (found := _NOT_REACHED.search(details)):
        host = (_HOST.search(details) or found)[1]
        text = f"no server is reached at {host}; check the address, the network and the proxy"
        text = without_secrets(text, secrets)
    is_lost = isinstance(err, ConnectionError) or is_of_library
    return (ConnectionError if is_lost and status is None else OSError)(EIO, f"{where}: {text}")


def words_of(err: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return what a library or a server says, in one line, without secrets and debug text."""
    text = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
    text = _DOCUMENT.sub(" ", _DEBUG_TEXT.split(text, maxsplit=1)[0])
    text = " ".join(without_secrets(text, secrets).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _is_forbidden(err: Exception) -> bool:
    return isinstance(err, PermissionError) or _status(err) in (401, 403)


def _status(err: BaseException) -> int | None:
    """Return the status of a server's answer; each library tells it in another way."""
    codes: list[Any] = [getattr(err, "status", None), getattr(err, "__dict__", {}).get("code")]
    for each in (err, err.__cause__):  # botocore's, and what s3fs makes of it
        response = getattr(each, "response", None)
        metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
        codes.append(metadata.get("HTTPStatusCode"))
    codes.append(_OF_OBSTORE.get(type(err).__name__))
    text = str(err)
    codes += [next(filter(None, found.groups())) for found in _STATUS.finditer(text)]
    codes += [code for code, phrase in _OF_GCSFS.items() if text.startswith(f"{phrase}: ")]
    return next((int(str(code)) for code in codes if str(code).isdigit()), None)


def cause_to_show(err: BaseException, secrets: Iterable[str] = ()) -> BaseException | None:
    """Return an error as the cause of another one; None if its text, or that of a cause, tells.

    Examples
    --------
    >>> cause_to_show(OSError("https://me:word@host")) is None
    True
    """
    secrets, seen = [*secrets], set[int]()
    each: BaseException | None = err
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        if any(without_secrets(text, secrets) != text for text in (str(each), repr(each))):
            return None
        each = each.__cause__ or each.__context__
    return err
