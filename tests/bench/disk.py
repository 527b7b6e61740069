"""How fast the disk is, which figures of whatever writes to it depend on."""

from __future__ import annotations

import os
import tempfile
import time


def fdatasync() -> str:
    """The line about it below tables."""
    took = []
    with tempfile.TemporaryFile() as file:
        for _ in range(200):
            file.write(b"x" * 200)
            file.flush()
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - start) * 1e6)
    took.sort()
    return f"fdatasync on disk: p50 {took[100]:.0f} us, p99 {took[198]:.0f} us. {os.cpu_count()} cores."
