"""Fenced writes to Redis."""

from __future__ import annotations

import typing

from .._errors import InvalidInput
from ._settle import now, settled
from ._stamp import AnyStamped, Stamp, Stamped, refusal, stamp_later, stamp_now

# Lua's numbers end at 2**53, so it compares the halves of 20 digits. The token is raised before the user's script, because Redis does
# not roll back what a script has done before it failed.
_SCRIPT = """
local function number(token, first, last) return tonumber(string.sub(token, first, last)) end
local function is_greater(one, other)
  local here, there = number(one, 1, 10), number(other, 1, 10)
  if here == there then return number(one, 11, 20) > number(other, 11, 20) end
  return here > there
end
local function guarded(KEYS, ARGV)
%s
end
local kept = redis.call('HMGET', KEYS[1], 'ensemble', 'token')
if kept[1] and (kept[1] ~= ARGV[1] or is_greater(kept[2], ARGV[2])) then return {0, kept[1], kept[2]} end
redis.call('HSET', KEYS[1], 'ensemble', ARGV[1], 'token', ARGV[2])
local keys, arguments = {}, {}
for at = 2, #KEYS do keys[at - 1] = KEYS[at] end
for at = 3, #ARGV do arguments[at - 2] = ARGV[at] end
return {1, guarded(keys, arguments)}
"""

Value = typing.Union[str, bytes, int, float]


class Redis:
    """A fence in Redis, for a client of redis-py. The methods of one for ``redis.asyncio`` must be awaited.

    ``zklock.fence.Redis(redis.Redis()).set(hold, "{account}:anna", 100)``

    One script compares the token, keeps it, and does the write. The fence of a name is the hash ``zklock-fence:{TAG}:NAME``. TAG
    is the part of the keys that chooses their slot: the text in the first braces, or the whole key. So all keys of a lock have
    one fence only if all of them have the same tag.

    Redis does not roll back. It forgets tokens if it loses its data, or evicts keys when its memory is full. See
    docs/fencing.md for the settings to use.

    Every method takes a hold or a ``Stamp`` first. It raises ``StaleToken`` if a later holder has written, ``OtherEnsemble`` if
    the fence is of another ensemble, and ``InvalidInput`` if keys have several tags, or for a pipeline.
    """

    __module__ = "zklock.fence"

    def __init__(self, client: typing.Any) -> None:
        if hasattr(client, "execute"):
            raise InvalidInput("a pipeline answers too late for a fence: give a client")
        self._client = client
        self._is_async = any(cls.__module__.startswith("redis.asyncio") for cls in type(client).__mro__)

    def set(self, hold: AnyStamped, key: str, value: Value, *, name: str | None = None) -> typing.Any:
        """Sets a key."""
        return self.run(hold, "return redis.call('SET', KEYS[1], ARGV[1])", [key], [value], name=name)

    def get(self, hold: AnyStamped, key: str, *, name: str | None = None) -> typing.Any:
        """Reads a key, for a decision. It raises the token, as a write does."""
        return self.run(hold, "return redis.call('GET', KEYS[1])", [key], name=name)

    def raise_token(self, hold: AnyStamped, key: str, *, name: str | None = None) -> typing.Any:
        """Raises the token of a key's fence. Afterwards, writes of earlier holders are refused."""
        return self.run(hold, "", [key], name=name)

    def run(
        self,
        hold: AnyStamped,
        script: str,
        keys: typing.Sequence[str],
        arguments: typing.Sequence[Value] = (),
        *,
        name: str | None = None,
    ) -> typing.Any:
        """Runs a script in Lua with its ``KEYS`` and ``ARGV``, and returns what it returns."""
        if self._is_async:
            return self._run_later(hold, name, script, keys, arguments)
        return now(self._run(stamp_now(typing.cast("Stamped", hold), name), script, keys, arguments))

    async def _run_later(self, hold: AnyStamped, name: str | None, *what: typing.Any) -> typing.Any:
        return await self._run(await stamp_later(hold, name), *what)

    async def _run(self, stamp: Stamp, script: str, keys: typing.Sequence[str], arguments: typing.Sequence[Value]) -> typing.Any:
        tags = {_tag(key) for key in keys}
        if len(tags) != 1:
            raise InvalidInput(f"the keys of a fenced write have one tag, as in {{account}}:anna, unlike {', '.join(keys) or 'none'}")
        fence = f"zklock-fence:{{{tags.pop()}}}:{stamp.name}"
        words = fence, *keys, stamp.ensemble, f"{stamp.token:020}", *arguments
        was_done, *answer = await settled(self._client.eval(_SCRIPT % script, 1 + len(keys), *words))
        if not was_done:
            ensemble, written = (word.decode() if isinstance(word, bytes) else word for word in answer)
            raise refusal(stamp, ensemble, int(written), f"delete the key {fence}")
        return answer[0] if answer else None


def _tag(key: str) -> str:
    """What chooses the slot of a key."""
    _, brace, rest = key.partition("{")
    tag, end, _ = rest.partition("}")
    if brace and end and tag:
        return tag
    if "}" in key:
        raise InvalidInput(f"no other key is in the slot of {key!r} for sure: give it a tag, such as {{account}}:anna")
    return key
