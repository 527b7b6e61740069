"""Uses an installed wheel: a lock on a server in memory, from Python and by the command.

    python use.py COMMAND VERSION

COMMAND is the path of the installed `zklock`.
"""

import os
import subprocess
import sys

import zklock
import zklock.testing

command, version = sys.argv[1:]


def output(*words: str) -> str:
    return subprocess.run([command, *words], stdout=subprocess.PIPE, check=True, text=True, timeout=120).stdout


assert zklock.__version__ == version, zklock.__version__
assert output("--version") == f"zklock {version}\n"
# A free-threaded interpreter turns its lock on for a module that does not declare that it needs none.
assert not hasattr(sys, "_is_gil_enabled") or sys._is_gil_enabled() == ("t" not in sys.abiflags)
with zklock.testing.Server() as server, zklock.Client(server.hosts) as zk:
    os.environ["ZKLOCK_HOSTS"] = server.hosts
    with zk.mutex("/locks/use", timeout=60) as hold:
        first = hold.token
        assert first > 0 and hold.valid_for() > 0
        taken = subprocess.run([command, "run", "--try", "--mutex", "/locks/use", "--", sys.executable, "-c", ""], check=False, timeout=120)
        assert taken.returncode == 120, f"not told that the lock is taken, but {taken.returncode}"
    # Only once the block has released the lock can another have it. qemu refuses what `zklock run` asks of Linux for a job.
    if os.environ.get("EMULATED"):
        with zk.mutex("/locks/use", timeout=60) as hold:
            second = hold.token
    else:
        program = "import os; print(os.environ['ZKLOCK_TOKEN'])"
        second = int(output("run", "--mutex", "/locks/use", "--", sys.executable, "-c", program))
    assert second > first, (first, second)
print(f"tokens {first} and {second} on Python {sys.version.split()[0]}, {os.uname().machine}")
