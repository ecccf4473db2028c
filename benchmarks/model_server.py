"""A process of its own that answers AAG's prompts over HTTP, any number at once. Prints its port.

`python benchmarks/model_server.py [SECONDS]`: how long each reply takes, 0.05 by default.
"""

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.kitchen import cook

LATENCY_S = float(sys.argv[1]) if sys.argv[1:] else 0.05
LIFETIME_S = 600
REPLIES = cook(0)
TELLING = {
    "You write procedures": "draft",
    "Somebody is about to write": "to_query",
    "Answer the question": "answer",
    "Improve the steps": "revise",
    "You are the last to check": "critic",
}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests on one connection until the client leaves."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(
                line.lower().split(b": ", 1) for line in head.splitlines()[1:] if b": " in line
            )
            body = json.loads(await reader.readexactly(int(fields[b"content-length"])))
            await asyncio.sleep(LATENCY_S)
            content = completion(body["messages"][0]["content"])
            length = str(len(content)).encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
                + length
                + b"\r\n\r\n"
            )
            writer.write(content)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def completion(prompt: str) -> bytes:
    """The reply that the node expects, as the wire has it; a bare node's prompt is its name."""
    node = next((node for begin, node in TELLING.items() if prompt.startswith(begin)), prompt)
    message = {"role": "assistant", "content": REPLIES[node][-1]}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    whole = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(whole).encode()


async def main() -> None:
    """Serve for a while at most, on a free loopback port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(LIFETIME_S)


if __name__ == "__main__":
    asyncio.run(main())
