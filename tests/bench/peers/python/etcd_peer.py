"""etcd's own lock service (the one behind `etcdctl lock`), asked over its JSON gateway: there is no kept Python client for it.

A contender has a lease and a connection of its own, because two with one lease are one holder.
"""

import base64
import http.client
import json
import socket

import harness


def encoded(text):
    return base64.b64encode(text.encode()).decode()


class Session:
    def __init__(self, connect):
        self.connect = connect

    def close(self):
        pass


class Lock:
    def __init__(self, session, path):
        self.connection = http.client.HTTPConnection(session.connect)
        self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.name, self.lease = encoded(path), self.ask("lease/grant", TTL=120)["ID"]

    def ask(self, what, **request):
        self.connection.request("POST", f"/v3/{what}", json.dumps(request))
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        if response.status != 200:
            raise OSError(f"{what}: {answer}")
        return answer

    def acquire(self):
        self.key = self.ask("lock/lock", name=self.name, lease=self.lease)["key"]

    def release(self):
        self.ask("lock/unlock", key=self.key)


if __name__ == "__main__":
    harness.run(Session, Lock)
