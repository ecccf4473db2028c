"""The app that `http.app` of langgraph.json names: the server's own routes, with this package's middleware around them."""

from starlette.applications import Starlette
from starlette.middleware import Middleware

from stepcraft.server.assistants import CheckedAssistants
from stepcraft.server.mcp import McpTools

app = Starlette(middleware=[Middleware(CheckedAssistants), Middleware(McpTools)])
"""Has no routes: every request reaches the server's, where it is authenticated."""
