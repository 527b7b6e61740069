"""The command `zklock`, which is installed with this package."""

from __future__ import annotations

import pathlib

# The name under which this package is installed.
PACKAGE = "zklock-py"
PROGRAM = "zklock"


def installed() -> str | None:
    """The path of the command that was installed with this package. That one has the same version, and its directory need not be in
    ``PATH``: an environment may be used without being activated."""
    # Slow to import, and most programs never need it.
    import importlib.metadata

    try:
        files = importlib.metadata.files(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (pathlib.Path(str(file.locate())) for file in files or () if file.name == PROGRAM)
    # If the package was installed in another way, a path of that name may be the package itself.
    return next((str(path) for path in paths if path.is_file()), None)
