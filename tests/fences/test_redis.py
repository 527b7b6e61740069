"""Fenced writes to Redis."""

from __future__ import annotations

import asyncio
import contextlib
import typing

import pytest
import redis
import redis.asyncio
import redis.asyncio.cluster
import redis.cluster
import redis.crc
from holds import AsyncHeld, Held

import zklock
from zklock import fence
from zklock.fence import Stamp
from zklock.fence._settle import entered, settled

Client = typing.Callable[[int], typing.Any]
CLIENTS: dict[str, Client] = {
    "bytes": lambda port: redis.Redis(port=port),
    "texts": lambda port: redis.Redis(port=port, decode_responses=True),
    "asyncio": lambda port: redis.asyncio.Redis(port=port),
    "cluster": lambda port: redis.cluster.RedisCluster("127.0.0.1", port),
    "cluster, asyncio": lambda port: redis.asyncio.cluster.RedisCluster("127.0.0.1", port),
}


class Key(typing.NamedTuple):
    """The key of a name. Each call is fenced by itself."""

    fence: fence.Redis
    stamp: Stamp

    @property
    def key(self) -> str:
        return f"{{{self.stamp.name}}}:value"

    async def read(self) -> str | None:
        value = await settled(self.fence.get(self.stamp, self.key))
        return value.decode() if isinstance(value, bytes) else value

    def write(self, value: str) -> typing.Any:
        return self.fence.set(self.stamp, self.key, value)


class Keys(typing.NamedTuple):
    """For ``fence.check``."""

    client: Client
    port: int

    @contextlib.asynccontextmanager
    async def transaction(self, stamp: Stamp) -> typing.AsyncIterator[Key]:
        async with entered(self.client(self.port)) as client:
            key = Key(fence.Redis(client), stamp)
            await settled(key.fence.raise_token(stamp, key.key))
            yield key


@pytest.mark.parametrize("client", CLIENTS)
def test_it_keeps_what_a_fence_promises(client: str, request: pytest.FixtureRequest) -> None:
    port = request.getfixturevalue("redis_cluster_port" if "cluster" in client else "redis_port")
    report = fence.check(Keys(CLIENTS[client], port), rolls_back=False)
    assert len(report.passed) == 14 and report.skipped == ("roll_back",)


@pytest.fixture
def client(redis_port: int) -> typing.Iterator[typing.Any]:
    with redis.Redis(port=redis_port) as client:
        client.flushall()
        yield client


def test_a_script_has_its_own_keys_and_arguments(client: typing.Any) -> None:
    fenced, hold = fence.Redis(client), Held("/locks/a", 5)
    script = "redis.call('SET', KEYS[2], ARGV[1]) return {KEYS[1], ARGV[2], #KEYS, #ARGV} -- the end"
    keys = ["{a}:one", "{a}:two"]
    assert fenced.run(hold, script, keys, [1, "two"]) == [b"{a}:one", b"two", 2, 2]
    assert client.get("{a}:two") == b"1"
    assert fenced.run(hold, "local nothing", keys) is None
    assert fenced.set(hold, "{a}:one", "x") and fenced.get(hold, "{a}:one") == b"x"
    assert client.hgetall("zklock-fence:{a}:/locks/a") == {b"ensemble": b"one", b"token": b"%020d" % 5}


def test_the_error_says_what_to_do(client: typing.Any) -> None:
    fenced = fence.Redis(client)
    fenced.raise_token(Held("/locks/a", 9), "a")
    with pytest.raises(zklock.StaleToken, match="with the token 9, and this one is 5"):
        fenced.set(Held("/locks/a", 5), "a", 1)
    with pytest.raises(zklock.OtherEnsemble, match="delete the key zklock-fence:{a}:/locks/a"):
        fenced.set(Held("/locks/a", 10, "two"), "a", 1)
    assert not client.exists("a")
    client.delete("zklock-fence:{a}:/locks/a")
    assert fenced.set(Held("/locks/a", 5, "two"), "a", 1)


def test_a_script_that_fails_has_raised_the_token(client: typing.Any) -> None:
    fenced = fence.Redis(client)
    with pytest.raises(redis.ResponseError, match="not an integer"):
        fenced.run(Held("/locks/a", 9), "redis.call('SET', KEYS[1], 'half') return redis.call('INCR', KEYS[1])", ["a"])
    # Redis keeps what was done, so an earlier holder must not write over it.
    assert client.get("a") == b"half"
    with pytest.raises(zklock.StaleToken):
        fenced.set(Held("/locks/a", 5), "a", 1)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pipeline_is_refused(client: str, request: pytest.FixtureRequest) -> None:
    port = request.getfixturevalue("redis_cluster_port" if "cluster" in client else "redis_port")

    async def main() -> None:
        with pytest.raises(zklock.InvalidInput, match="a pipeline answers too late"):
            fence.Redis(CLIENTS[client](port).pipeline())

    asyncio.run(main())


@pytest.mark.parametrize("keys", [[], ["a", "b"], ["{a}:1", "{b}:1"], ["{a}", "b"]])
def test_keys_of_several_slots_are_refused(client: typing.Any, keys: list[str]) -> None:
    with pytest.raises(zklock.InvalidInput, match="one tag"):
        fence.Redis(client).run(Held("/locks/a", 5), "return 1", keys)
    assert client.keys() == []


@pytest.mark.parametrize("key", ["a", "{a}", "x{a}y{b}", "{a", "{{a}b", "{a}}", "/locks/{a}/b"])
def test_a_fence_is_in_the_slot_of_its_key(client: typing.Any, key: str) -> None:
    fence.Redis(client).raise_token(Held("/locks/{x}", 5), key)
    (kept,) = client.keys()
    assert redis.crc.key_slot(kept) == redis.crc.key_slot(key.encode())


@pytest.mark.parametrize("key", ["a}", "{}a", "a{}b{c}"])
def test_a_key_for_which_there_is_no_tag_is_refused(client: typing.Any, key: str) -> None:
    with pytest.raises(zklock.InvalidInput, match="give it a tag"):
        fence.Redis(client).raise_token(Held("/locks/a", 5), key)


class Mine(redis.asyncio.Redis):
    """A user's own."""


@pytest.mark.parametrize("client_class", [redis.asyncio.Redis, Mine])
def test_an_asynchronous_hold_is_awaited(redis_port: int, client_class: type[redis.asyncio.Redis]) -> None:
    async def main() -> typing.Any:
        async with client_class(port=redis_port) as client:
            await fence.Redis(client).set(AsyncHeld("/locks/later", 5), "later", "x", name="a part")
            return await client.hget("zklock-fence:{later}:a part", "ensemble")

    assert asyncio.run(main()) == b"one"
