"""``zklock quickstart``, of the command that is installed with this package: four worker processes share a lock and write to a
ledger. One is killed while it holds the lock, and one is stopped: its late write is refused.

    python -m zklock.quickstart                                  on a server in memory
    python -m zklock.quickstart --connect zk1:2181,zk2:2181      on your own ensemble
"""

from __future__ import annotations

import os
import sys

from ._command import PROGRAM, installed


def main() -> int:
    program = installed() or PROGRAM
    try:
        os.execvp(program, [program, "quickstart", *sys.argv[1:]])
    except OSError as error:
        text = "is installed with this package: install the package again, or put the command into a directory of PATH"
        print(f"{program}: {error.strerror}. The command zklock {text}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
