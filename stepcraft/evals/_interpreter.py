"""A folder that holds this Python interpreter and nothing else, to be the root of a sandbox.

It is a copy, not a set of mounts: the user that a sandbox runs as may have no way to the original (an interpreter below
`/root`), one mount is quicker than fifty, and there is no other file in it.
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
"""The interpreter inside the folder."""
_FORMAT = 1
_LEFT_OUT = {
    *("site-packages", "dist-packages", "test", "tests", "ensurepip"),
    *("idlelib", "tkinter", "turtledemo", "lib2to3"),
}
_LEFT_OUT_EXTENSIONS = ("_tkinter.", "_test", "_ctypes_test.", "xxlimited")
_LIBRARY = re.compile(r"\s+(?P<name>\S+) => (?P<path>/\S+) \(|\s+(?P<loader>/\S+) \(")


def interpreter_root() -> Path:
    """Return the folder, made once for an interpreter and kept in the cache folder of the user, or of the system for root.

    It takes about 60 MB and a second. It holds the standard library without its tests and without tkinter, the shared
    libraries that this needs, and mount points.

    Raises:
        OSError: The cache folder cannot be written, or `ldd` is missing.
        subprocess.CalledProcessError: `ldd` cannot read the interpreter.
    """
    executable, library = Path(sys.executable).resolve(), Path(sysconfig.get_path("stdlib"))
    made_from = f"{_FORMAT} {sys.version} {executable} {executable.stat().st_mtime_ns} {library}"
    name = f"python-{hashlib.sha256(made_from.encode()).hexdigest()[:16]}"
    is_root = os.geteuid() == 0
    cache = (site_cache_path if is_root else user_cache_path)("stepcraft") / "sandbox"
    cache.mkdir(parents=True, exist_ok=True)
    if is_root:  # another user goes through them
        cache.chmod(0o755)
        cache.parent.chmod(0o755)
    root = cache / name
    if not root.is_dir():
        with tempfile.TemporaryDirectory(
            dir=cache, prefix="making-", ignore_cleanup_errors=True
        ) as folder:
            made = Path(folder) / name
            _copy(executable, library, made)
            try:
                made.rename(root)
            except OSError:
                if not root.is_dir():  # else another process was quicker
                    raise
    return root


def _copy(executable: Path, library: Path, root: Path) -> None:
    modules = root / "python" / library.relative_to(_prefix(library))
    shutil.copytree(library, modules, ignore=_left_out)
    python = root / PYTHON.lstrip("/")
    python.parent.mkdir()
    shutil.copy2(executable, python)
    extensions = sorted(modules.glob("lib-dynload/*.so"))
    found = _shared_libraries(
        [executable, *(library / path.relative_to(modules) for path in extensions)]
    )
    loader_folder = Path(found["libc.so.6"]).parent if "libc.so.6" in found else Path("/lib")
    for name, path in found.items():
        # Without `ld.so.cache` the loader looks into its own folders only, so all stand beside the C library.
        target = root / (name if name.startswith("/") else str(loader_folder / name)).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(Path(path).resolve(), target)
    for folder in ("work", "dev/shm"):
        (root / folder).mkdir(parents=True)
    for device in ("null", "urandom"):
        (root / "dev" / device).touch()
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(0o755)


def _prefix(library: Path) -> Path:
    """Return the folder that `lib/python3.x` or `lib64/python3.x` stands in."""
    return library.parent.parent


def _left_out(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in _LEFT_OUT
        or name.startswith("config-")
        or (Path(folder).name == "lib-dynload" and name.startswith(_LEFT_OUT_EXTENSIONS))
    }


def _shared_libraries(files: list[Path]) -> dict[str, str]:
    """Return the paths of the shared libraries of some files, by the names that the files ask for."""
    listed = subprocess.run(  # noqa: S603 - files of this interpreter
        ["ldd", *map(str, files)],  # noqa: S607 - part of the C library
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = map(_LIBRARY.match, listed.stdout.splitlines())
    return {
        line["name"] or line["loader"]: line["path"] or line["loader"] for line in found if line
    }
