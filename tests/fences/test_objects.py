"""Fenced writes to objects, in moto's stand-in for S3."""

from __future__ import annotations

import contextlib
import typing
import uuid

import botocore.exceptions
import pytest
from holds import Held

import zklock
from zklock import fence
from zklock.fence import Stamp


class Value(typing.NamedTuple):
    object: fence.Object
    stamp: Stamp

    def read(self) -> str | None:
        data = self.object.read(self.stamp)
        return None if data is None else data.decode()

    def write(self, value: str) -> None:
        self.object.write(self.stamp, value.encode())


class Objects:
    """For ``fence.check``: an object for each name."""

    def __init__(self, client: typing.Any) -> None:
        self._client = client

    @contextlib.contextmanager
    def transaction(self, stamp: Stamp) -> typing.Iterator[Value]:
        value = Value(fence.Object(self._client, "bucket", stamp.name), stamp)
        value.object.raise_token(stamp)
        yield value


def test_it_keeps_what_a_fence_promises(s3: typing.Any) -> None:
    report = fence.check(Objects(s3), rolls_back=False)
    assert len(report.passed) == 14 and report.skipped == ("roll_back",)


class Interrupted:
    """A client that does something else just before it puts the text of an object, with the number and the text of that put."""

    def __init__(self, client: typing.Any, key: str, meanwhile: typing.Callable[[int, bytes], object]) -> None:
        self._client, self._key, self._meanwhile = client, key, meanwhile
        self.texts = 0

    def __getattr__(self, name: str) -> typing.Any:
        return getattr(self._client, name)

    def put_object(self, **words: typing.Any) -> typing.Any:
        if words["Key"] == self._key:
            self.texts += 1
            self._meanwhile(self.texts, words["Body"])
        return self._client.put_object(**words)


@pytest.fixture
def key() -> str:
    return uuid.uuid4().hex


def keys_below(s3: typing.Any, key: str) -> list[str]:
    return [found["Key"] for found in s3.list_objects_v2(Bucket="bucket", Prefix=key)["Contents"]]


@pytest.mark.parametrize("has_text", [False, True])
def test_a_holder_that_sleeps_before_its_put_is_refused(s3: typing.Any, key: str, has_text: bool) -> None:
    object = fence.Object(s3, "bucket", key)
    if has_text:
        object.write(Held("/locks/a", 4), b"same")
    # The later one only raises the token, or writes the same: the data do not change.
    later = Held("/locks/a", 9)
    client = Interrupted(s3, key, lambda number, _: number > 1 or object.raise_token(later))
    with pytest.raises(zklock.StaleToken):
        fence.Object(client, "bucket", key).write(Held("/locks/a", 5), b"late")
    assert client.texts == 1 and object.look() == (b"same" if has_text else None)
    # What was refused does not stay.
    assert len(keys_below(s3, key)) == 1 + has_text


def test_a_holder_that_an_equal_token_overtakes_writes_all_the_same(s3: typing.Any, key: str) -> None:
    object = fence.Object(s3, "bucket", key)
    client = Interrupted(s3, key, lambda number, _: number > 1 or object.write(Held("/locks/a", 5), b"other"))
    fence.Object(client, "bucket", key).write(Held("/locks/a", 5), b"mine")
    assert client.texts == 2 and object.look() == b"mine" and len(keys_below(s3, key)) == 2


def test_a_put_whose_reply_is_lost_is_not_undone(s3: typing.Any, key: str) -> None:
    object = fence.Object(s3, "bucket", key)

    def put_now(number: int, text: bytes) -> None:
        if number == 1:
            # boto3 sends it once more. By then the first one is done, and a later holder has raised the token.
            s3.put_object(Bucket="bucket", Key=key, Body=text, IfNoneMatch="*")
            object.raise_token(Held("/locks/a", 9))

    with pytest.raises(zklock.StaleToken):
        fence.Object(Interrupted(s3, key, put_now), "bucket", key).write(Held("/locks/a", 5), b"first")
    assert object.look() == b"first"


def test_data_that_are_replaced_while_they_are_read_are_read_again(s3: typing.Any, key: str) -> None:
    object = fence.Object(s3, "bucket", key)
    object.write(Held("/locks/a", 5), b"old")

    class Slow(Interrupted):
        def get_object(self, **words: typing.Any) -> typing.Any:
            if words["Key"] != key and not self.texts:
                self.texts = 1
                object.write(Held("/locks/a", 5), b"new")
            return self._client.get_object(**words)

    assert fence.Object(Slow(s3, key, list), "bucket", key).look() == b"new"


def test_the_error_says_what_to_do(s3: typing.Any, key: str) -> None:
    object = fence.Object(s3, "bucket", key)
    object.write(Held("/locks/a", 9), b"x")
    with pytest.raises(zklock.OtherEnsemble, match=rf"keep what look\(\) gives, delete the object {key}, and write"):
        object.write(Held("/locks/a", 10, "two"), b"y")
    with pytest.raises(zklock.InvalidInput, match="fenced under the name /locks/a, and not /locks/b"):
        object.write(Held("/locks/b", 10), b"y")
    assert len(keys_below(s3, key)) == 2
    # What it says helps, and loses nothing.
    kept = object.look() or b""
    s3.delete_object(Bucket="bucket", Key=key)
    assert object.look() is None
    object.write(Held("/locks/b", 5, "two"), kept)
    assert object.read(Held("/locks/b", 5, "two")) == b"x"


def test_other_errors_of_the_store_come_out(s3: typing.Any, key: str) -> None:
    with pytest.raises(botocore.exceptions.ClientError, match="NoSuchBucket"):
        fence.Object(s3, "none", key).write(Held("/locks/a", 5), b"x")


def test_a_store_that_never_lets_it_write_is_given_up(s3: typing.Any, key: str) -> None:
    object = fence.Object(s3, "bucket", key)

    busy = Interrupted(s3, key, lambda *_: object.write(Held("/locks/a", 5), b"other"))
    with pytest.raises(zklock.InvalidInput, match="cannot be replaced"):
        fence.Object(busy, "bucket", key).write(Held("/locks/a", 5), b"mine")
    assert busy.texts == 50 and object.look() == b"other"
