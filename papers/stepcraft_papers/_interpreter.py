"""A folder that contains only this Python interpreter, for use as the root of a sandbox.

The folder is a copy rather than a set of mounts, because the user that a sandbox runs as may not
have access to the original (such as an interpreter below `/root`). A copy also exposes no other
files.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from platformdirs import site_cache_path, user_cache_path

PYTHON = "/python/bin/python"
"""The path of the interpreter inside the folder."""
_LEFT_OUT = shutil.ignore_patterns(
    *("site-packages", "dist-packages", "test", "tests", "ensurepip", "idlelib", "tkinter"),
    *("turtledemo", "lib2to3", "config-*", "_tkinter.*", "_test*.so", "_ctypes_test.*"),
)
_LIBRARY = re.compile(r"\s+(\S+) => (/\S+) \(|\s+(/\S+) \(")


def interpreter_root() -> Path:
    """Return the folder, which is created once per interpreter and kept in a cache folder.

    Creating it takes about a second and 60 MB.

    Raises:
        OSError: The cache folder cannot be written to, or `ldd` is missing.
        subprocess.CalledProcessError: `ldd` cannot read the interpreter.
    """
    executable = Path(sys.executable).resolve()
    made_from = f"2 {sys.version} {executable} {executable.stat().st_mtime_ns}"
    name = f"python-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"
    is_root = os.geteuid() == 0
    cache = (site_cache_path if is_root else user_cache_path)("stepcraft") / "sandbox"
    cache.mkdir(parents=True, exist_ok=True)
    if is_root:  # another user goes through them
        cache.chmod(0o755)
        cache.parent.chmod(0o755)
    root = cache / name
    if not root.is_dir():
        with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as folder:
            copy = Path(folder) / name
            _copy(executable, copy)
            try:
                copy.rename(root)
            except OSError:
                if not root.is_dir():  # else another process was quicker
                    raise
    return root


def _copy(executable: Path, root: Path) -> None:
    library = Path(sysconfig.get_path("stdlib"))
    # `lib/python3.x` or `lib64/python3.x`, as the interpreter looks for it
    modules = root / "python" / library.relative_to(library.parents[1])
    shutil.copytree(library, modules, ignore=_LEFT_OUT)
    python = root / PYTHON.lstrip("/")
    python.parent.mkdir()
    shutil.copy2(executable, python)
    libraries = _shared_libraries([executable, *modules.glob("lib-dynload/*.so")])
    # Without `ld.so.cache` the loader looks into its folders alone, so all stand beside libc.
    beside = Path(libraries.get("libc.so.6", "/lib/libc.so.6")).parent
    for library_name, path in libraries.items():
        target = root / str(beside / library_name).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(Path(path).resolve(), target)
    (root / "work").mkdir()
    (root / "dev").mkdir()
    for device in ("null", "urandom"):  # mount points
        (root / "dev" / device).touch()
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(0o755)


def _shared_libraries(files: list[Path]) -> dict[str, str]:
    """Return the paths of the shared libraries that files need, by the names they request."""
    listed = subprocess.run(  # noqa: S603 - files of this interpreter
        ["ldd", *map(str, files)],  # noqa: S607 - part of the C library
        capture_output=True,
        text=True,
        check=True,
    )
    lines = filter(None, map(_LIBRARY.match, listed.stdout.splitlines()))
    return {line[1] or line[3]: line[2] or line[3] for line in lines}
