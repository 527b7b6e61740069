"""The servers that the peers use, and their own figures."""

import collections
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
CORES = sorted(os.sched_getaffinity(0))
SERVER_CORES, PEER_CORES = CORES[: len(CORES) // 2] or CORES, CORES[len(CORES) // 2 :]


def zk(*args):
    return subprocess.run([str(HERE / "zk.sh"), *map(str, args)], check=True, text=True, stdout=subprocess.PIPE).stdout


class Servers:
    def __init__(self, n, storage, port):
        self.dir = tempfile.mkdtemp(prefix="measure.")
        self.connect = zk("start", self.dir, f"n={n}", f"storage={storage}", f"port={port}").strip()
        self.pids = [int(p) for p in zk("pids", self.dir).split()]
        roles = dict(line.split() for line in zk("roles", self.dir).splitlines())
        self.pin = n == 1  # three servers want all the cores
        for pid in self.pids if self.pin else ():
            pin(pid, SERVER_CORES)
        self.one = next((h for h, role in roles.items() if role == "follower"), self.connect)  # one session: a follower

        self.over = threading.Event()
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
        zk("stop", self.dir)
        subprocess.run(["rm", "-rf", self.dir])

    def counters(self):
        """Sums over the servers: packets, the bytes of the open client connections, CPU seconds."""
        total = collections.Counter()
        for hostport in self.connect.split(","):
            host, port = hostport.split(":")
            with socket.create_connection((host, int(port))) as s:
                s.sendall(b"mntr")
                text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
            for key, value in (line.split("\t", 1) for line in text.splitlines() if "\t" in line):
                if key in ("zk_packets_received", "zk_packets_sent", "zk_znode_count"):
                    total[key] += int(float(value))
        ports = " or ".join(f"sport = :{h.split(':')[1]}" for h in self.connect.split(","))
        sockets = subprocess.run(["ss", "-tinH", "state", "established", ports], text=True, stdout=subprocess.PIPE)
        for word in sockets.stdout.split():
            if word.startswith(("bytes_sent:", "bytes_received:")):
                total["bytes"] += int(word.split(":")[1])
        total["server_cpu"] = sum(map(cpu, self.pids))
        total["writes"] = max(map(self.last_write, self.connect.split(",")))
        for log in pathlib.Path(pathlib.Path(self.dir, "where").read_text().strip()).glob("*/version-2/log.*"):
            # Servers make the files larger than what they have written.
            total["log"] += len(log.read_bytes().rstrip(b"\0"))
        return total

    def last_write(self, hostport):
        """The number of the last transaction in the epoch of the leader."""
        host, port = hostport.split(":")
        with socket.create_connection((host, int(port))) as s:
            s.sendall(b"srvr")
            text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Zxid:")), 16) & 0xFFFFFFFF

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
        self.kind, self.port, self.connect = kind, port, f"127.0.0.1:{port}"
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
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.sendall(b"INFO stats\r\nQUIT\r\n")
                text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
            fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            total["zk_packets_received"] = int(fields["total_commands_processed"])
        return total

    def stop(self):
        self.process.kill()
        self.process.wait()
        subprocess.run(["rm", "-rf", self.dir])
