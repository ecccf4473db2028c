"""The app that `http.app` of langgraph.json names: the server's own routes, with this package's middleware around them.

Importing it has all that the server sends to LangSmith masked, because the server adds the texts of a run's context to its
traces.
"""

import langsmith
from langsmith.utils import tracing_is_enabled
from starlette.applications import Starlette
from starlette.middleware import Middleware

from stepcraft.secrets import redacted
from stepcraft.server.assistants import CheckedAssistants
from stepcraft.server.mcp import McpTools

if tracing_is_enabled():
    langsmith.configure(client=langsmith.Client(anonymizer=redacted))

app = Starlette(middleware=[Middleware(CheckedAssistants), Middleware(McpTools)])
"""Has no routes: every request reaches the server's, where it is authenticated."""
