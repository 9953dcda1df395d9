"""Read parts of objects in S3 through s3fs, which does not show the headers of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from n5zarr.storage.ranges import header_of, taken

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest

__all__ = ["lacks_bucket", "part_in_s3"]


def lacks_bucket(err: Exception) -> bool:
    """Whether S3 says that there is no such bucket, which s3fs reports as a missing key."""
    response = getattr(err.__cause__, "response", None) or {}
    return bool(response.get("Error", {}).get("Code") == "NoSuchBucket")


async def part_in_s3(fs: Any, name: str, asked: ByteRequest) -> bytes:  # noqa: ANN401 - fsspec has no types
    """Read a part of an object as s3fs does, and check that it is what was asked for."""
    from s3fs.core import _error_wrapper, version_id_kw  # noqa: PLC0415 - optional

    bucket, key, version = fs.split_path(name)

    async def call() -> bytes:
        answer = await fs._call_s3(  # noqa: SLF001 - as s3fs itself
            "get_object", Bucket=bucket, Key=key, Range=header_of(asked), **version_id_kw(version)
        )
        try:
            data = await answer["Body"].read()
        finally:
            answer["Body"].close()
        status = answer["ResponseMetadata"]["HTTPStatusCode"]
        return taken(data, asked, status, answer.get("ContentRange"))

    found: bytes = await _error_wrapper(call, retries=fs.retries)
    return found
