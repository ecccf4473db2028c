"""An endpoint that streams the steps of RAT and then its answer, as server-sent events.

Run with `pip install "fastapi[standard]"` and `fastapi run examples/fastapi_app.py`, then:

    curl -N localhost:8000/answers -H 'Content-Type: application/json' -d '{"question": "How does an agent remember?"}'

A client that leaves cancels its run. STEPCRAFT_MODEL and STEPCRAFT_SOURCE name the model and the source; who may call
the endpoint, and how often, is up to you.
"""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from stepcraft import RatContext, StepcraftError, build_rat

app = FastAPI()
rat = build_rat(fallback="memory")
LIMITS = RatContext(max_calls=20, deadline_s=120)


class Asked(BaseModel):
    """The body of a request."""

    question: str = Field(min_length=1, max_length=2_000)


@app.post("/answers", response_class=EventSourceResponse)
async def answers(asked: Asked) -> AsyncIterator[ServerSentEvent]:
    """Stream an event for each step, then the answer with its evidence, or an error."""
    result: dict[str, Any] = {}
    modes: list[Any] = ["updates", "custom", "values"]
    parts: AsyncIterator[Any] = rat.astream(
        {"question": asked.question}, context=LIMITS, stream_mode=modes, subgraphs=True
    )
    try:
        async for namespace, mode, data in parts:
            if mode == "values" and not namespace:
                result = data
            elif mode == "custom":
                yield ServerSentEvent(event="progress", data=data)
            elif mode == "updates":
                yield ServerSentEvent(event="step", data={"nodes": list(data)})
    except StepcraftError as failure:
        yield ServerSentEvent(event="error", data={"message": str(failure)})
    else:
        shown = {name: result[name] for name in ("answer", "evidence", "warnings", "usage")}
        yield ServerSentEvent(event="answer", data=shown)
