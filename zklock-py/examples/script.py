"""A report that only one process writes at a time, wherever this script is started.

python script.py [HOSTS]
"""

from __future__ import annotations

import sys
import time

import zklock


def write_report() -> None:
    time.sleep(0.1)


def main(hosts: str = "127.0.0.1:2181") -> int:
    with zklock.Client(hosts) as zk:
        lock = zk.mutex("/locks/report", timeout=5)
        try:
            with lock as hold:
                print(f"writing the report, with token {hold.token}")
                write_report()
                print(f"written, and the lock was ours for {hold.valid_for():.1f} s more")
        except zklock.Timeout:
            queue = [contender.identity for contender in lock.contenders()]
            print(f"somebody else is writing it: {', '.join(queue)}", file=sys.stderr)
            return 1
        except zklock.LockLost as loss:
            print(f"somebody else may have written it, too: {loss}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
