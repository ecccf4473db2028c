"""What the tests of the papers stand on: an empty environment, a cache of their own, a sandbox."""

import os
import shutil
from collections.abc import Iterator

import pytest

for _name in [name for name in os.environ if name.startswith(("STEPCRAFT_", "LANGSMITH_"))]:
    del os.environ[_name]
os.environ["LANGSMITH_TRACING"] = "false"

from papers.tests.registered import install  # noqa: E402
from stepcraft_papers.sandbox import SandboxFailure, need_sandbox  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what is made of the benchmarks' files out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Register the graphs, methods and benchmarks, whether the distribution is installed or not."""
    folder = tmp_path_factory.mktemp("site")
    install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


@pytest.fixture(scope="session")
def sandbox() -> None:
    """Skip where bubblewrap is missing or not permitted; under CI fail where it is missing."""
    try:
        need_sandbox()
    except SandboxFailure as error:
        is_missing = not shutil.which("bwrap")
        (pytest.fail if is_missing and os.environ.get("CI") else pytest.skip)(str(error))
