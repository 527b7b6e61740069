"""redis-py's Lock on one Redis: a key that runs out, and a poll each 100 ms; without a queue, a token or a word of its loss."""

import harness
import redis


class Session:
    def __init__(self, connect):
        host, port = connect.split(":")
        self.client = redis.Redis(host=host, port=int(port))

    def close(self):
        self.client.close()


if __name__ == "__main__":
    harness.run(Session, lambda session, path: session.client.lock(path, timeout=30))
