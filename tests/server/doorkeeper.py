"""An `auth` for langgraph.json that knows one user."""

from langgraph_sdk import Auth

KEY = "sesame"
USER = "ana"

auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    if headers.get(b"x-api-key") != KEY.encode():
        raise Auth.exceptions.HTTPException(401, "no such key")
    return {"identity": USER}
