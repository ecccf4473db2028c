"""Send traces to LangSmith with secrets masked, without delaying a program's exit."""

import atexit
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langsmith import Client


def configure_tracing(wait_s: float = 2.0) -> "Client":
    """Mask secrets sent to LangSmith, and limit the wait for it when the process ends.

    Call it once, before the first run. Otherwise, LangSmith's own client delays a process's exit
    for minutes if an endpoint does not answer.

    Args:
        wait_s: The number of seconds to wait for unsent traces when the process ends; the rest are
            lost.

    Returns:
        The client, which becomes LangSmith's default.
    """
    from langsmith import Client, configure  # noqa: PLC0415 - slow to import
    from urllib3.util import Retry  # noqa: PLC0415 - comes with langsmith

    from stepcraft.secrets import anonymizer  # noqa: PLC0415 - imports langsmith

    # At exit, Python waits for non-daemon threads and for the pool that sends compressed traces.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    os.environ.setdefault("LANGSMITH_DISABLE_RUN_COMPRESSION", "true")
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", f"{wait_s:g}")
    client = Client(anonymizer=anonymizer(), timeout_ms=(1_000, 2_000), retry_config=Retry(total=0))
    configure(client=client)
    atexit.register(client.flush, wait_s)
    return client
