"""Models by name: one that is slow to build delays nobody but those who wait for it, and they keep their deadline."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from stepcraft.concurrency import in_thread
from stepcraft.models.resolve import aresolve_model, resolve_model
from tests.llm import slow_provider


@pytest.fixture(autouse=True)
def _provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tmp_path.joinpath("langchain_groq.py").write_text(slow_provider.PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    slow_provider.building.clear()
    slow_provider.ready.clear()
    yield
    slow_provider.ready.set()


def test_a_model_that_is_being_built_delays_no_other() -> None:
    slow = in_thread(lambda: resolve_model("groq:delays"))
    assert slow_provider.building.wait(30)
    other: Future[BaseChatModel] = in_thread(lambda: resolve_model("extractive"))
    assert other.result(timeout=10)
    assert not slow.done()
    slow_provider.ready.set()
    assert slow.result(timeout=30) is resolve_model("groq:delays")


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_model_that_is_not_built_in_time(kind: str) -> None:
    def resolve(seconds: float | None) -> Any:
        if kind == "sync":
            return resolve_model(f"groq:late {kind}", seconds)
        return asyncio.run(aresolve_model(f"groq:late {kind}", seconds))

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        resolve(0.05)
    assert time.monotonic() - began < 20, "it would wait for thirty seconds"
    slow_provider.ready.set()
    assert resolve(None).invoke("hi").text == "Built."
