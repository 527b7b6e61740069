"""Clients of several libraries contend for one lock, while one of either side is killed by turns, or a side is cut off."""

from __future__ import annotations

import collections
import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import typing

from ground import Ground, Proxy
from register import Register, Rules

HERE = pathlib.Path(__file__).parent
# The folder in which tests/interop/run builds.
BUILT = pathlib.Path(os.environ.get("ZKLOCK_INTEROP") or HERE.parents[1] / "target/interop")

# The most grants, if a contest has not shown the effect after the first number of them.
AT_MOST = 2000
GRANTS = AT_MOST if os.environ.get("ZKLOCK_LONG") else 500
# The server would grant half of this, but on a busy machine such a session would be lost too often.
SESSION_MS = 1000
BETWEEN_KILLS = 2.0
# A waiter may have to wait for the sessions of killed peers, on a busy machine.
PATIENCE = 120.0

_CURATOR = "curator-recipes curator-framework curator-client"
_JARS = "zookeeper zookeeper-jute zookeeper-recipes-lock guava slf4j-api slf4j-nop"
# The first release that takes the read side within the write side without letting another writer in between (CURATOR-621).
CURATOR_THAT_DOWNGRADES = "5.5.0"
# A release that legacy services use, and the newest, each with the ZooKeeper client that it requires. For --long.
CURATORS = ("4.0.0", "5.9.0")


def _java(curator: str) -> list[str]:
    """A peer with Curator's jars by this pattern."""
    jars = [curator.format(jar) for jar in _CURATOR.split()] + [f"/usr/share/java/{jar}.jar" for jar in _JARS.split()]
    return _java_with(str(BUILT / "java"), *jars)


def _java_with(*class_path: str) -> list[str]:
    # Start as quickly as possible, because it is killed soon.
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx64m"]
    return ["java", *quick, "-cp", ":".join(class_path), "Peer"]


_PYTHON = [sys.executable, "-X", "faulthandler"]

PROGRAMS: dict[str, list[str]] = {
    # zklock's faces.
    "python": [*_PYTHON, str(HERE / "peers/zklock_peer.py")],
    "cpp": [str(BUILT / "peer-cpp")],
    # The others.
    "curator": _java("/usr/share/java/{}.jar"),
    "curator-that-downgrades": _java(f"{BUILT}/curator/{{}}-{CURATOR_THAT_DOWNGRADES}.jar"),
    **{
        f"curator-{version}": _java_with(f"{BUILT}/curators/{version}/classes", f"{BUILT}/curators/{version}/jars/*")
        for version in CURATORS
    },
    "writelock": _java("/usr/share/java/{}.jar"),
    "home-made": _java("/usr/share/java/{}.jar"),
    "kazoo": [*_PYTHON, str(HERE / "peers/kazoo_peer.py")],
    "go": [str(BUILT / "peer-go")],
}
FACES = ("python", "cpp")


class Steps:
    """A program in which Curator does one thing: see peers/java/Steps.java."""

    def __init__(self, *words: str) -> None:
        command = ["setpriv", "--pdeathsig", "KILL", *PROGRAMS["curator"][:-1], "Steps", *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def next(self) -> str:
        """Its next step."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rpartition(" ")[0]

    def rest(self) -> dict[str, list[int]]:
        """The times of all further steps, when it has ended."""
        out, errors = self._process.communicate(timeout=60)
        assert self._process.returncode == 0, errors
        times: dict[str, list[int]] = collections.defaultdict(list)
        for line in out.splitlines():
            what, _, when = line.rpartition(" ")
            times[what].append(int(when))
        return times


class Side(typing.NamedTuple):
    """Contenders that are killed and replaced by turns."""

    programs: typing.Sequence[str]
    kind: str
    options: typing.Sequence[str] = ()
    # On its way to the server, if the side is to be cut off, too.
    proxy: Proxy | None = None


def zklock_side(kind: str, *options: str, faces: typing.Sequence[str] = (*FACES, "python")) -> Side:
    return Side(faces, kind, options)


def foreign_side(library: str, kind: str, *options: str, count: int = 2) -> Side:
    return Side([library] * count, kind, [*([library] if library in ("writelock", "home-made") else []), *options])


class Contestant:
    """A running peer."""

    def __init__(self, name: str, program: str, side: Side, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
        self.name, self.program, self.side, self.process, self.log = name, program, side, process, log

    def said(self) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text(errors="replace").strip().splitlines()[-15:])


class Contest:
    """All peers that run at one path. ``nodes`` is how the paths of their nodes begin, if not with that."""

    def __init__(self, ground: Ground, path: str, register: Register, nodes: str = "", session_ms: int = SESSION_MS) -> None:
        self._ground, self._path, self.register, self._session_ms = ground, path, register, session_ms
        self.directory, _, self._beginning = (nodes or f"{path}/").rpartition("/")
        self._hosts = ground("servers")
        self._numbers: dict[str, typing.Iterator[int]] = collections.defaultdict(lambda: itertools.count(1))
        self._logs = pathlib.Path(tempfile.mkdtemp(prefix="zklock-interop-"))
        self.running: list[Contestant] = []
        self.killed = self.lost = self.expired = 0

    def start(self, program: str, side: Side) -> Contestant:
        name = f"{program}-{next(self._numbers[program])}"
        hosts = side.proxy.hosts if side.proxy else self._hosts
        words = [*PROGRAMS[program], hosts, side.kind, self._path, str(self._session_ms), self.register.address, name]
        log = self._logs / name
        with log.open("wb") as out:
            # The peer ends with this process, in whatever way that ends.
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *words, *side.options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        contestant = Contestant(name, program, side, process, log)
        self.running.append(contestant)
        return contestant

    def kill_one_of(self, side: Side) -> None:
        """Kills a peer, in half of the cases one that is inside if there is any, and starts another one in its place."""
        # Spare peers that have not begun yet, as on a slow machine.
        present = self.register.present()
        members = [one for one in self.running if one.side is side and one.name in present]
        if not members:
            return
        inside = [one for one in members if one.name in self.register.inside]
        victim = random.choice(inside if inside and random.random() < 0.5 else members)
        self.register.doom(victim.name)
        victim.process.kill()
        victim.process.wait()
        self.running.remove(victim)
        self.killed += 1
        self.start(victim.program, side)

    def lose_a_reply(self, side: Side) -> None:
        """Loses the reply to the side's next creation of a node, and the connection."""
        assert side.proxy
        hook = side.proxy("drop-reply", "create", "1", self._path)
        self.lost += self._happens(lambda: self._ground(f"fired {hook}") == "true")

    def cut_off(self, side: Side) -> None:
        """Cuts off a side, one of which is killed then, until its sessions have expired: no node that was there is left."""
        assert side.proxy
        side.proxy("refuse", "on")
        side.proxy("cut")
        self.kill_one_of(side)
        there = self._nodes()
        self.expired += self._happens(lambda: not there & self._nodes())
        side.proxy("refuse", "off")

    def _nodes(self) -> set[str]:
        return {child for child in self._ground.children(self.directory) if child.startswith(self._beginning)}

    def _happens(self, event: typing.Callable[[], bool]) -> bool:
        """Waits for an event. Returns whether it happens before the register ends the contest, as it does if a peer waits for too long."""
        while not (happened := event()) and not self.register.over.wait(0.02):
            pass
        return happened

    def finish(self, within: float) -> None:
        """Waits until all have ended. Each has one more turn."""
        until = time.monotonic() + within
        for one in self.running:
            try:
                status = one.process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{one.name} does not end:\n{one.said()}") from None
            assert status == 0, f"{one.name} has ended with {status}:\n{one.said()}"

    def close(self) -> None:
        for one in self.running:
            if one.process.poll() is None:
                self.register.doom(one.name)
                one.process.kill()
                one.process.wait()
        shutil.rmtree(self._logs)

    def said(self) -> str:
        """The nodes in the queue, and the end of all peers' output."""
        said = [f"-- {one.name}\n{text}" for one in self.running if (text := one.said())]
        return "\n".join([f"in the queue: {sorted(self._nodes())}", *said])


class Outcome(typing.NamedTuple):
    """The observations of a contest in which the rules were kept."""

    figures: str
    peak: int
    # The programs that were inside together.
    together: set[frozenset[str]]


def by_program(grants: typing.Mapping[str, int]) -> collections.Counter[str]:
    shares: collections.Counter[str] = collections.Counter()
    for name, count in grants.items():
        shares[name.rsplit("-", 1)[0]] += count
    return shares


def programs_of(pairs: typing.Iterable[frozenset[str]]) -> set[frozenset[str]]:
    return {frozenset(name.rsplit("-", 1)[0] for name in pair) for pair in pairs}


def contend(
    ground: Ground,
    path: str,
    sides: typing.Sequence[Side],
    rules: Rules = Rules(),
    *,
    grants: int = GRANTS,
    kills: bool = True,
    cuts: bool = False,
    stay: float = 0.001,
    nodes: str = "",
    shows: typing.Callable[[int, set[frozenset[str]]], bool] = lambda peak, together: True,
) -> Outcome:
    """Lets the sides contend, and fails if a rule is broken. Peers stay inside for at most ``stay`` seconds. Kills and turns are
    random, so it goes on until two of each side were killed, each program had its turns, and ``shows`` is true. With ``cuts`` each
    side also loses a reply, and all its sessions."""
    if cuts:
        sides = [side._replace(proxy=ground.proxy()) for side in sides]
    first = sum(len(side.programs) for side in sides)
    programs = {program for side in sides for program in side.programs}
    share = grants / len(programs) / 10

    def has_shown() -> bool:
        shares = by_program(register.grants)
        has_killed = not kills or contest.killed >= 2 * len(sides)
        has_cut = not cuts or min(contest.lost, contest.expired) >= len(sides)
        has_had_turns = all(shares[program] >= share for program in programs)
        has_lingered = register.again > 0 or not rules.lingers
        has_downgraded = register.downs > 0 or not rules.downgrades
        return has_killed and has_cut and has_had_turns and has_lingered and has_downgraded and shows(register.peak, programs_of(register.together))

    def exists(node: str) -> bool:
        # The nodes of a semaphore are one level deeper.
        places = [contest.directory, f"{path}/locks", f"{path}/leases"]
        return any(ground(f"exists {place}/{node}") == "true" for place in places)

    register = Register(
        rules, grants, first, patience=PATIENCE, stay=stay, exists=exists, at_most=AT_MOST, has_shown=has_shown
    )
    with register:
        contest = Contest(ground, path, register, nodes)
        steps: list[typing.Callable[[Side], None]] = [contest.kill_one_of] if kills else []
        if cuts:
            steps += [contest.lose_a_reply, contest.cut_off]
        faults = itertools.cycle([(step, side) for step in steps for side in sides])
        try:
            for side in sides:
                for program in side.programs:
                    contest.start(program, side)
            assert register.begun.wait(60), f"not all have come: {register.waiting()}\n{contest.said()}"
            begun = time.monotonic()
            due = 0
            while not register.over.wait(0.02 if cuts else BETWEEN_KILLS):
                # If the clock set the pace of so many faults, a busy machine would have time for nothing else.
                if steps and (not cuts or sum(register.grants.values()) >= due):
                    step, side = next(faults)
                    step(side)
                    due = sum(register.grants.values()) + grants // 10
            seconds = time.monotonic() - begun
            assert not register.violations, f"{register.violations}\n{register.notes}\n{contest.said()}"
            contest.finish(PATIENCE)
            assert not register.violations, f"{register.violations}\n{register.notes}\n{contest.said()}"
        finally:
            contest.close()
        shares = by_program(register.grants)
        for program in programs:
            assert shares[program] >= share, f"{program} has hardly had a turn: {shares}"
        figures = [f"{sum(shares.values())} grants in {seconds:.1f} s, {contest.killed} killed"]
        figures.append(", ".join(f"{program} {count}" for program, count in sorted(shares.items())))
        if cuts:
            assert has_shown(), (contest.killed, contest.lost, contest.expired)
            figures.append(f"{contest.lost} replies lost, a side cut off {contest.expired} times")
        assert register.downs or not rules.downgrades, "no writer of ours became a reader"
        if rules.lingers:
            assert register.again, "nobody came in again with its node"
            figures.append(f"{register.again} came in again")
        for title, lines in (("excused", register.excused), ("notes", register.notes)):
            if lines:
                kinds = collections.Counter(line.split(": ", 1)[-1][:60] for line in lines)
                figures.append(f"{len(lines)} {title}, most {kinds.most_common(1)[0]}")
        return Outcome("; ".join(figures), register.peak, programs_of(register.together))
