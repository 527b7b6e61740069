"""Fenced writes to objects in a store that speaks S3."""

from __future__ import annotations

import contextlib
import json
import typing
import uuid

from .._errors import InvalidInput, OtherEnsemble, StaleToken
from ._stamp import Stamp, Stamped, is_refused, refusal, stamp_now

# Each time the condition fails, somebody else has written.
_TRIES = 50
_KEEP = "keep"


class Object:
    """An object in a store that speaks S3, which only the holder with the greatest token replaces.

    ``zklock.fence.Object(boto3.client("s3"), "bucket", "report").write(hold, b"done")``

    The object itself is a short text in JSON: the name, the ensemble, the token as a text, and the key of the data. The data are
    another object, with a key that is never used again. So each text differs from all before it, and so does its ``ETag``. The
    ``ETag`` of the data is not enough: in most stores it is a hash of the bytes alone, so it stays the same when only the token is
    raised. The text is replaced with ``If-Match``, and created with ``If-None-Match``. The store must support both:
    docs/fencing-stores.md lists stores that do.

    Each method takes a hold or a ``Stamp`` first, and raises ``StaleToken`` if a later holder has written, ``OtherEnsemble`` if
    the object is of another ensemble, and ``InvalidInput`` if it is of another name. Errors of the store are raised unchanged. In
    asyncio, call it in a thread, with ``await zklock.fence.stamp(hold)``.
    """

    __module__ = "zklock.fence"

    def __init__(self, client: typing.Any, bucket: str, key: str) -> None:
        self._client = client
        self._bucket = bucket
        self._key = key

    def write(self, hold: Stamped, data: bytes, *, name: str | None = None) -> None:
        """Replaces the data, or creates the object. The data that were replaced are deleted."""
        stamp = stamp_now(hold, name)
        key = f"{self._key}.{stamp.token:019}-{uuid.uuid4().hex}"
        self._client.put_object(Bucket=self._bucket, Key=key, Body=data)
        try:
            old = self._swap(stamp, key)
        except (StaleToken, OtherEnsemble, InvalidInput):
            # Unless an earlier try was done although its reply was lost, and the later holder has kept these data.
            if self.data_key() != key:
                self._forget(key)
            raise
        if old and old != key:
            self._forget(old)

    def read(self, hold: Stamped, *, name: str | None = None) -> bytes | None:
        """Reads the data, for a decision; ``None`` if there are none. It raises the token, as a write does."""
        stamp = stamp_now(hold, name)
        return self._data(lambda: self._swap(stamp, _KEEP))

    def raise_token(self, hold: Stamped, *, name: str | None = None) -> None:
        """Raises the token. Afterwards, writes of earlier holders are refused."""
        self._swap(stamp_now(hold, name), _KEEP)

    def look(self) -> bytes | None:
        """Reads the data without a token, for readers that hold no lock; ``None`` if there are none."""
        return self._data(self.data_key)

    def data_key(self) -> str | None:
        """The key of the data, if there are any."""
        return self._text()[0].get("data")

    def _data(self, key_now: typing.Callable[[], str | None]) -> bytes | None:
        while key := key_now():
            with self._but(404):
                return typing.cast("bytes", self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())
        return None

    def _swap(self, stamp: Stamp, key: str) -> str | None:
        """Replaces the text. Returns the key of the data that were there, or are kept."""
        for _ in range(_TRIES):
            text, condition = self._text()
            if text and text["name"] != stamp.name:
                raise InvalidInput(f"{self._key} is fenced under the name {text['name']}, and not {stamp.name}")
            if text and is_refused(stamp, text["ensemble"], int(text["token"])):
                # The object names the data, so they would go with it.
                reset = f"keep what look() gives, delete the object {self._key}, and write it again"
                raise refusal(stamp, text["ensemble"], int(text["token"]), reset)
            old = text.get("data")
            new = {**stamp._asdict(), "token": str(stamp.token), "data": old if key == _KEEP else key}
            if new == text:
                return old
            with self._but(404, 409, 412):
                self._client.put_object(Bucket=self._bucket, Key=self._key, Body=json.dumps(new).encode(), **condition)
                return old
        raise InvalidInput(f"{self._key} cannot be replaced: the store refuses each condition, although nobody else writes as often")

    def _text(self) -> tuple[dict[str, typing.Any], dict[str, str]]:
        """The text, and the condition that it is still the same."""
        with self._but(404):
            answer = self._client.get_object(Bucket=self._bucket, Key=self._key)
            return json.loads(answer["Body"].read()), {"IfMatch": answer["ETag"]}
        return {}, {"IfNoneMatch": "*"}

    def _forget(self, key: str) -> None:
        # What is left behind harms nobody.
        with contextlib.suppress(self._client.exceptions.ClientError):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    @contextlib.contextmanager
    def _but(self, *statuses: int) -> typing.Iterator[None]:
        """Passes over these answers of the store."""
        try:
            yield
        except self._client.exceptions.ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] not in statuses:
                raise
