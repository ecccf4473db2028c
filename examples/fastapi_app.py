"""An endpoint that streams the progress of RAT and then its answer, as server-sent events.

Run with `pip install "fastapi[standard]"` and `fastapi run examples/fastapi_app.py`, then:

    curl -N localhost:8000/answers -H 'Content-Type: application/json' -d '{"question": "…"}'

A client that leaves cancels its run. STEPCRAFT_MODEL and STEPCRAFT_SOURCE name the model and the
source; who may call the endpoint, and how often, is up to you.
"""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field

from stepcraft import RatContext, StepcraftError, build_rat

app = FastAPI()
rat = build_rat(settings=RatContext(max_calls=20, deadline_s=120))


class Question(BaseModel):
    """The body of a request."""

    question: str = Field(min_length=1, max_length=2_000)


@app.post("/answers", response_class=EventSourceResponse)
async def answers(body: Question) -> AsyncIterator[ServerSentEvent]:
    """Stream what the run is doing, then the answer with its evidence, or an error."""
    result: dict[str, Any] = {}
    try:
        parts: Any = rat.astream({"question": body.question}, stream_mode=["custom", "values"])
        async for mode, data in parts:
            if mode == "custom":
                yield ServerSentEvent(event=data["type"], data=data)
            else:
                result = data
    except StepcraftError as error:
        yield ServerSentEvent(event="error", data={"message": str(error)})
    else:
        keys = ("answer", "evidence", "warnings", "usage")
        yield ServerSentEvent(event="result", data={key: result[key] for key in keys})
