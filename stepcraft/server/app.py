"""The `http.app` of langgraph.json, which masks secrets in what the server sends to LangSmith."""

import os

from langsmith.utils import tracing_is_enabled
from starlette.applications import Starlette

from stepcraft.errors import BadInput
from stepcraft.tracing import configure_tracing

if os.environ.get("STEPCRAFT_ACCESS") and not os.environ.get("LANGGRAPH_AUTH"):
    raise BadInput(
        "STEPCRAFT_ACCESS names users, but the server has no auth: serve langgraph.auth.json"
    )

if tracing_is_enabled():
    configure_tracing()

app = Starlette()
"""An app without routes, so that every request goes to the server's own routes."""
