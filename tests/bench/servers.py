"""The servers that the peers use, and their own figures."""

import collections
import contextlib
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORES, PEER_CORES = CORES[: len(CORES) // 2] or CORES, CORES[len(CORES) // 2 :]
JARS = pathlib.Path(os.environ.get("ZK_JARS", "/usr/share/java"))
NEEDED = """zookeeper zookeeper-jute slf4j-api slf4j-simple snappy-java metrics-core commons-cli commons-io jackson-annotations jackson-core
jackson-databind netty-buffer netty-codec netty-common netty-handler netty-resolver netty-transport netty-transport-native-epoll
netty-transport-native-unix-common"""
JAVA = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dzookeeper.jmx.log4j.disable=true",
        "-Dznode.container.checkIntervalMs=3600000", "-cp", ":".join(str(JARS / f"{jar}.jar") for jar in NEEDED.split())]
# Without snapshots, which would be made in the middle of what is measured.
CONFIGURATION = """tickTime=2000
initLimit=20
syncLimit=10
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
snapCount=1000000
"""


def said(hostport, word):
    """The answer to a four-letter word, or to what else a server answers and then hangs up."""
    host, port = hostport.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as s:
        s.sendall(word)
        return b"".join(iter(lambda: s.recv(65536), b"")).decode()


def value(hostport, word, name, separator):
    """A value in an answer; None if it is not there, or the server is not."""
    with contextlib.suppress(OSError):
        for line in said(hostport, word).splitlines():
            if line.startswith(name + separator):
                return line.split(separator, 1)[1].strip()


class Servers:
    """Real ZooKeeper servers on loopback, from the Debian jars: one, or an ensemble of three.

    Storage: disk; shm, on tmpfs, so that fsync costs nothing; nosync, on a disk without waiting for it.
    """

    def __init__(self, n, storage, port):
        for i in range(n):
            socket.create_server(("127.0.0.1", port + i)).close()  # fails if it is taken
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="measure.", dir="/dev/shm" if storage == "shm" else None))
        hosts = [f"127.0.0.1:{port + i}" for i in range(n)]
        self.connect = ",".join(hosts)
        peers = "".join(f"server.{i + 1}=127.0.0.1:{port + i + 10}:{port + i + 20}\n" for i in range(n) if n > 1)
        sync = [] if storage == "disk" else ["-Dzookeeper.forceSync=no"]
        self.processes = []
        for i in range(n):
            home = self.dir / str(i + 1)
            home.mkdir()
            (home / "myid").write_text(str(i + 1))
            (home / "zoo.cfg").write_text(f"{CONFIGURATION}dataDir={home}\nclientPort={port + i}\n{peers}")
            command = [JAVA[0], *sync, *JAVA[1:], "org.apache.zookeeper.server.quorum.QuorumPeerMain", home / "zoo.cfg"]
            with open(home / "log", "w") as log:
                self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        self.pids = [process.pid for process in self.processes]
        self.over = threading.Event()
        # Some releases print it as a floating point number.
        in_step = lambda: any(float(value(h, b"mntr", "zk_synced_followers", "\t") or 0) == n - 1 for h in hosts)
        end = time.monotonic() + 60
        while not all(value(h, b"srvr", "Mode", ":") for h in hosts) or n > 1 and not in_step():
            if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                logs = "".join((self.dir / str(i + 1) / "log").read_text() for i in range(n))
                self.stop()
                raise TimeoutError(f"the servers do not serve: {logs}")
            time.sleep(0.2)
        self.pin = n == 1  # three servers want all the cores
        for pid in self.pids if self.pin else ():
            pin(pid, SERVER_CORES)
        self.one = next((h for h in hosts if value(h, b"srvr", "Mode", ":") == "follower"), self.connect)  # one session: a follower
        if n > 1:
            threading.Thread(target=self.nudge, daemon=True).start()

    def nudge(self):
        """Pings each server now and then from a session of its own.

        ZOOKEEPER-4537, fixed in 3.7.2 and 3.8.1: a server of an ensemble may notice a commit only when the next
        request comes in. A lone client then waits until it pings; libzookeeper, which does not ping while it waits
        for a reply, until it times out; wire-*, which never pings, for good.
        """
        sockets = []
        for host, port in (h.split(":") for h in self.connect.split(",")):
            sockets.append(socket.create_connection((host, int(port))))
            sockets[-1].sendall(struct.pack(">iiqiqi17x", 45, 0, 0, 30000, 0, 16))
        while not self.over.wait(0.2):
            try:
                for s in sockets:
                    s.sendall(struct.pack(">iii", 8, -2, 11))
                    s.recv(4096)
            except OSError:
                return

    def stop(self):
        self.over.set()
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir)

    def counters(self):
        """Sums over the servers: packets, the bytes of the open client connections, CPU seconds."""
        total = collections.Counter()
        for hostport in self.connect.split(","):
            for key, number in (line.split("\t", 1) for line in said(hostport, b"mntr").splitlines() if "\t" in line):
                if key in ("zk_packets_received", "zk_packets_sent", "zk_znode_count"):
                    total[key] += int(float(number))
        ports = " or ".join(f"sport = :{h.split(':')[1]}" for h in self.connect.split(","))
        sockets = subprocess.run(["ss", "-tinH", "state", "established", ports], text=True, stdout=subprocess.PIPE)
        for word in sockets.stdout.split():
            if word.startswith(("bytes_sent:", "bytes_received:")):
                total["bytes"] += int(word.split(":")[1])
        total["server_cpu"] = sum(map(cpu, self.pids))
        # The number of the last transaction in the epoch of the leader.
        total["writes"] = max(int(value(h, b"srvr", "Zxid", ":"), 16) & 0xFFFFFFFF for h in self.connect.split(","))
        for log in self.dir.glob("*/version-2/log.*"):
            # Servers make the files larger than what they have written.
            total["log"] += len(log.read_bytes().rstrip(b"\0"))
        return total

    def settle(self, nodes):
        """Waits until the tree has that many nodes and requests no longer come in: all waiters have queued."""
        end, before = time.monotonic() + 90, None
        while time.monotonic() < end:
            now = self.counters()
            if before and now["zk_znode_count"] >= nodes and now["zk_packets_received"] - before < 20:
                return
            before = now["zk_packets_received"]
            time.sleep(0.5)
        raise TimeoutError("waiters did not queue")


def pin(pid, cores):
    """Servers and peers on different cores: by far the steadiest figures on a small machine."""
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            os.sched_setaffinity(int(task), cores)
        except ProcessLookupError:
            pass


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Other:
    """A server of another kind, on tmpfs, for alternatives to ZooKeeper: one process, and no fsync that costs anything."""

    pin = True

    def __init__(self, kind, port):
        self.kind, self.connect = kind, f"127.0.0.1:{port}"
        self.dir = tempfile.mkdtemp(prefix="measure.", dir="/dev/shm")
        self.one = self.connect
        url, peers = f"http://{self.connect}", f"http://127.0.0.1:{port + 1}"
        command = {
            "redis": ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", self.dir, "--save", ""],
            "etcd": ["etcd", "--data-dir", self.dir, "--listen-client-urls", url, "--advertise-client-urls", url,
                     "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                     "--initial-cluster", f"default={peers}", "--log-level", "error"],
        }[kind]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    self.stop()
                    raise TimeoutError(f"{kind} does not serve") from None
                time.sleep(0.05)
        pin(self.process.pid, SERVER_CORES)

    def counters(self):
        total = collections.Counter(server_cpu=cpu(self.process.pid))
        if self.kind == "redis":
            stats = b"INFO stats\r\nQUIT\r\n"
            total["zk_packets_received"] = int(value(self.connect, stats, "total_commands_processed", ":"))
        return total

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir)
