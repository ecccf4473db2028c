"""Whether a Weaviate is there and can be used, found out quickly."""

import ssl

import grpc
import httpx

from stepcraft.concurrency import in_thread
from stepcraft.memory.weaviate.url import KEY_VARIABLE, Server, api_key

PROBE_S = 1.5
"""How long a server may take to answer, over HTTP and over gRPC, in seconds."""

_LATE_S = 2 * PROBE_S + 0.1
_OLDEST = (1, 27)


def unreachable(server: Server) -> str:
    """Why a server cannot be used, as the end of a sentence; "" if it can."""
    try:
        return in_thread(lambda: _fault(server)).result(_LATE_S)
    except TimeoutError:  # looking up a name may take longer than any timeout that can be set
        return f"cannot be reached: {server.http} did not answer in time; check host and port"


def _fault(server: Server) -> str:
    try:
        reply = httpx.get(f"{server.http}/v1/meta", headers=_headers(), timeout=PROBE_S, trust_env=False)
    except httpx.InvalidURL as error:
        return f"cannot be reached: {server.http} is no address ({error}); check host and port"
    except httpx.TransportError as error:
        return _no_http(server, error)
    if reply.status_code in (401, 403):
        return refused()
    try:
        version = str(reply.json()["version"])
    except (ValueError, LookupError, TypeError):
        return f"is no Weaviate: {server.http}/v1/meta answers {reply.status_code}; check host and port"
    found = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if found < _OLDEST:
        return f"is Weaviate {version}, which is too old; it takes {_OLDEST[0]}.{_OLDEST[1]} or newer"
    return _no_grpc(server)


def ready(server: Server) -> bool:
    """Whether a server has loaded its collections."""
    try:
        return httpx.get(f"{server.http}/v1/.well-known/ready", timeout=PROBE_S, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _no_http(server: Server, error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return (
            f"cannot be reached: {server.http} did not answer within {PROBE_S} s; is Weaviate running there?"
        )
    text = str(error)
    if isinstance(error.__cause__, ssl.SSLError) or "SSL" in text or "CERTIFICATE" in text:
        return f"cannot be reached over TLS at {server.http} ({text}); check the port, and whether it is tls=true"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"cannot be reached: {server.http} does not speak plain HTTP ({text}); check the port and tls="
    return f"cannot be reached at {server.http} ({text}); is Weaviate running there?"


def _no_grpc(server: Server) -> str:
    """A health check by hand: the client's own comes with a look-up on the package index."""
    target = f"{server.grpc_host}:{server.grpc_port}"
    secured = grpc.ssl_channel_credentials() if server.tls else None
    channel = grpc.secure_channel(target, secured) if secured else grpc.insecure_channel(target)
    with channel:
        try:
            channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=PROBE_S)
        except grpc.RpcError as error:
            code = getattr(error, "code", lambda: None)()
            if code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                return "" if code is grpc.StatusCode.UNAUTHENTICATED else _other_grpc(target)
            return f"answers over HTTP, but its gRPC port does not at {target}; open it, or name it as ?grpc=PORT"
    return ""


def _other_grpc(target: str) -> str:
    return f"answers over HTTP, but what listens at {target} is not its gRPC; name the port as ?grpc=PORT"


def refused() -> str:
    """That the server wants another key, as the end of a sentence."""
    told = "refuses the key" if api_key() else "asks for a key"
    return f"{told}; set {KEY_VARIABLE} to one that the server knows"


def _headers() -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key()}"} if api_key() else {}
