"""The sandbox of the tests."""

import os
import shutil

import pytest

from stepcraft.errors import SandboxFailure
from stepcraft.evals.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Sandbox:
    """Programs under bubblewrap. Where that is missing or the kernel does not permit it, the test skips.

    With CI set it fails where it is missing.
    """
    found = Sandbox()
    try:
        found.probe()
    except SandboxFailure as error:
        is_missing = not shutil.which("bwrap")
        (pytest.fail if is_missing and os.environ.get("CI") else pytest.skip)(str(error))
    return found
