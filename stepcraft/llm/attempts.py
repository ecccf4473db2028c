"""One call to a model, made again while it fails in a way that may pass, and what is said when it fails for good."""

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from stepcraft.errors import ModelFailure, UnreadableReply
from stepcraft.llm import failures as _failures
from stepcraft.llm import temperature as _temperature
from stepcraft.llm.budget import Budget, has_answered
from stepcraft.llm.reply import Refused
from stepcraft.llm.requests import Call, ModelCaller, Pause, Request
from stepcraft.models.resolve import model_name

ATTEMPTS = 3
"""How often one call is made when it fails in a way that may pass."""


@dataclass
class Failed(Exception):
    """All attempts at a call failed; the last one with this error."""

    error: BaseException


def replied(
    model: BaseChatModel, messages: Sequence[BaseMessage], budget: Budget, asked: ModelCaller | None = None
) -> Generator[Request, Any, AIMessage]:
    """The model's reply.

    Args:
        model: Who is asked.
        messages: The prompt.
        budget: Counts the calls and says how long one may take.
        asked: What carries the call to the model where that is not done directly.

    Raises:
        Failed: the call failed for good, or too often.
    """
    options = _temperature.options(model, budget.context)
    attempt = 1
    while True:
        budget.call_made()
        outcome = yield Call(asked or model, messages, options, budget.seconds_left())
        if isinstance(outcome, AIMessage):
            budget.tokens_used(outcome)
            return outcome
        if _temperature.is_refused(model, options, outcome, budget.context) and not budget.spent():
            options = {}
            continue
        last = attempt == ATTEMPTS or _retries_itself(model)
        pause = None if last else _pause_before(attempt, outcome, budget)
        if pause is None:
            raise Failed(outcome)
        yield Pause(pause)
        attempt += 1


def why_skipped(failure: Exception, state: Mapping[str, Any], model: BaseChatModel, budget: Budget) -> str:
    """Why a step is skipped, for the warnings.

    Raises:
        ModelFailure: nothing after it could succeed, and no call before it did.
    """
    if limit := budget.spent():
        return limit
    if isinstance(failure, Refused):
        return f"{budget.node} was skipped: the model declined: {failure!s:.200}"
    if isinstance(failure, UnreadableReply):
        return f"{budget.node} was skipped: the model's reply could not be read, asked twice: {failure}"
    error = failure.error if isinstance(failure, Failed) else failure
    if _failures.is_fatal(error) and not has_answered(state):
        raise ModelFailure(
            f"the model {model_name(model)!r} refuses every call: {_failures.describe(error)}. "
            "Check its name and its key."
        ) from error
    return f"{budget.node} was skipped: the model could not be asked: {_failures.describe(error)}"


def _retries_itself(model: BaseChatModel) -> bool:
    """Whether a model object makes retries of its own, as provider clients do unless told not to."""
    return "max_retries" in type(model).model_fields and getattr(model, "max_retries", 0) != 0


def _pause_before(attempt: int, error: Exception, budget: Budget) -> float | None:
    """Seconds to wait before the call is made again; None if that would be of no use or too late."""
    if not _failures.is_passing(error) or budget.spent():
        return None
    jittered = budget.context.retry_wait_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    asked = _failures.retry_after(error)
    pause = jittered if asked is None else asked
    left = budget.seconds_left()
    return pause if pause <= _failures.LONGEST_WAIT_S and (left is None or pause < left) else None
