"""Making the checks of `stepcraft doctor` side by side."""

import importlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from itertools import chain

from stepcraft.cli.doctor import _configured, _installed
from stepcraft.cli.doctor._configured import VARIABLES
from stepcraft.cli.doctor._finding import Finding, described
from stepcraft.concurrency import in_thread
from stepcraft.errors import StepcraftError

_SHARED = {
    "": ("langgraph.graph",),
    "weaviate": ("stepcraft.memory.weaviate.memory", "stepcraft.sources.weaviate"),
    "web": ("stepcraft.sources.web.fetch", "stepcraft.sources.web.pages"),
    ":": ("langchain.chat_models", "langchain.embeddings", "langchain_openai"),
}
"""Modules that several checks import, by what a variable names where they are needed. They are loaded before the threads
start: modules that import each other may be seen half loaded by a thread that comes second."""

_CHECKS: Mapping[str, Callable[[], list[Finding]]] = {
    "python": _installed.check_python,
    "packages": _installed.check_packages,
    "settings": _configured.check_settings,
    "model": _configured.check_model,
    "embeddings": _configured.check_embeddings,
    "memory": _configured.check_memory,
    "source": _configured.check_source,
    "tracing": _configured.check_tracing,
    "server": _installed.check_server,
    "sandbox": _configured.check_sandbox,
    "allow": _configured.check_allow,
    "access": _configured.check_access,
}


def examine(names: Sequence[str], seconds: float) -> list[Finding]:
    """Make the checks of these names side by side, and return what they found within so many seconds."""
    named = " ".join(os.environ.get(name, "") for name in VARIABLES)
    for module in chain.from_iterable(modules for sign, modules in _SHARED.items() if sign in named):
        with suppress(ImportError):  # the check that needs it says so
            importlib.import_module(module)
    deadline = time.monotonic() + seconds
    found: list[Finding] = []
    with redirect_stdout(sys.stderr):  # what modules print that a check imports
        running = {name: in_thread(_CHECKS[name]) for name in names}
        for name, check in running.items():
            try:
                found += check.result(max(0.0, deadline - time.monotonic()))
            except StepcraftError as error:
                found.append(Finding(name, "wrong", str(error)))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                if check.done():
                    found.append(Finding(name, "wrong", described(error)))
                else:
                    found.append(
                        Finding(
                            name,
                            "wrong",
                            f"no answer within {seconds:g} s",
                            "see whether what it names can be reached, or allow more time with --timeout",
                        )
                    )
    return found
