#!/usr/bin/env python3
"""Runs a client of ZooKeeper behind a proxy that lies, and prints how the client ended and how much memory it took.

    hostile.py HOST:PORT PROGRAM     PROGRAM gets the proxy's address as its argument

What the servers say is passed on until the session is open. Then:

    count      each list of children claims to have two billion entries
    length     a message claims to have 2 GiB, and its bytes come for as long as the client takes them, up to 1 GiB
    garbage    bytes that mean nothing, and the end of the connection

A client that trusts its servers is ended by this system, which lets it have no more than 4 GiB of addresses.
"""

import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading

LIMIT = 4 << 30
SECONDS = 20  # Longer than the client in the test tries.
GET_CHILDREN = (8, 12)


def frames(connection):
    with connection.makefile("rb") as stream:
        while len(head := stream.read(4)) == 4:
            yield stream.read(struct.unpack(">i", head)[0])


def sent(body):
    return struct.pack(">i", len(body)) + body


def serve(client, server, lie):
    asked = {}

    def requests():
        for number, body in enumerate(frames(client)):
            if number:
                xid, operation = struct.unpack(">ii", body[:8])
                asked[xid] = operation
            server.sendall(sent(body))

    thread = threading.Thread(target=quietly, args=(requests,), daemon=True)
    thread.start()
    for number, body in enumerate(frames(server)):
        if number and lie == "length":
            client.sendall(struct.pack(">i", 0x7FFFFFFF))
            for _ in range(1 << 10):
                client.sendall(bytes(1 << 20))
            break
        if number and lie == "garbage":
            client.sendall(b"\x00\x00\x00\x20" + b"\xa5" * 4096)
            break
        if number and lie == "count" and asked.get(struct.unpack(">i", body[:4])[0]) in GET_CHILDREN:
            body = body[:16] + struct.pack(">i", 0x7FFFFFFF) + body[20:]
        client.sendall(sent(body))
    # The thread that reads from it has to end, too.
    client.shutdown(socket.SHUT_RDWR)
    server.shutdown(socket.SHUT_RDWR)


def quietly(work, *arguments):
    try:
        work(*arguments)
    except OSError:
        pass  # One of the two has hung up.


def accept(listener, address, lie):
    while True:
        client = listener.accept()[0]
        server = socket.create_connection(address)
        threading.Thread(target=quietly, args=(serve, client, server, lie), daemon=True).start()


def run(address, program, lie):
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=accept, args=(listener, address, lie), daemon=True).start()
    hosts = "127.0.0.1:%d" % listener.getsockname()[1]
    limited = lambda: resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    client = subprocess.Popen([program, hosts], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limited)
    alarm = threading.Timer(SECONDS, client.kill)
    alarm.start()
    said = client.stderr.read()
    # Its own figures, and not the greatest of all children.
    _, status, usage = os.wait4(client.pid, 0)
    client.returncode = status
    alarm.cancel()
    ended = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "status %d" % os.WEXITSTATUS(status)
    print("%s: %s, %d MiB: %s" % (lie, ended, usage.ru_maxrss >> 10, " ".join(said.split())[:200]), flush=True)


host, _, port = sys.argv[1].rpartition(":")
for lie in ("count", "length", "garbage"):
    run((host, int(port)), sys.argv[2], lie)
