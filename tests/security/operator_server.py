"""Who may ask the server of the tests on stores: whoever says a name."""

from __future__ import annotations

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """The caller is who the header says."""
    return {"identity": (authorization or "nobody").removeprefix("Bearer ")}
