"""Calling a chat model: repeated attempts, their limits, and what a failure means for the step.

`call_model` and `acall_model` are the only places that call a model, for the model nodes and for the ReAct agent
alike. Both are short loops around `ModelCall`, which decides without any I/O what follows from each outcome:

- a fault of the network or the provider (timeouts, 408, 409, 429, 5xx, an answer that is no chat completion) is
  repeated, up to `ATTEMPTS` in all, after a pause that grows or that the provider asked for;
- any other refusal by the provider ends the call, which costs the step;
- an error in the model's own code (TypeError, KeyError, …) is raised: repeating it would hide it;
- `interrupt()` and cancellation are raised at once.
"""

import asyncio
import random
import sysconfig
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langgraph.errors import GraphBubbleUp

from stepcraft import access
from stepcraft.concurrency import in_thread, within
from stepcraft.errors import LimitsFailure, ModelFailure, StepcraftError, UnreadableReply
from stepcraft.limits import allowance
from stepcraft.llm.budget import Budget, has_answered
from stepcraft.llm.reply import Refused
from stepcraft.models.resolve import model_identity, model_name
from stepcraft.secrets import without_secrets

ATTEMPTS = 3
"""Attempts at one call while it fails transiently."""
LONGEST_WAIT_S = 60.0
"""A provider that asks for a longer pause than this is not waited for."""


class CallFailed(Exception):
    """A model call failed permanently, or transiently `ATTEMPTS` times; `error` is the last failure."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


_turns: ContextVar[asyncio.Semaphore | None] = ContextVar("turns", default=None)


@contextmanager
def calls_at_once(most: int) -> Generator[None]:
    """At most so many calls of `acall_model` at the same time, by all runs that begin within; others wait for their turn.

    A run does more than to call its model. With more runs than calls the model is always busy.
    """
    token = _turns.set(asyncio.Semaphore(most))
    try:
        yield
    finally:
        _turns.reset(token)


@asynccontextmanager
async def _turn() -> AsyncGenerator[None]:
    """The turn of a call, in which the calls of a model that is itself made of calls need none."""
    if (turns := _turns.get()) is None:
        yield
        return
    async with turns:
        token = _turns.set(None)
        try:
            yield
        finally:
            _turns.reset(token)


def call_model(
    model: BaseChatModel, budget: Budget, send: Callable[[Mapping[str, Any]], AIMessage]
) -> AIMessage:
    """Call a model and repeat the call while it fails transiently.

    Args:
        model: The model, for its name and its own retry setting.
        budget: The limits of the step; every attempt and the tokens used are counted there.
        send: Makes one attempt with these options, such as a temperature.

    Raises:
        CallFailed: the call failed permanently or too often.
    """
    call = ModelCall(model, budget)
    is_limited = access.rules().limits_usage
    while True:
        if is_limited:
            _take_call(budget)
        options = call.begin()
        try:
            reply = within(budget.seconds_left(), partial(send, options))
        except Exception as error:
            time.sleep(call.pause_after(error))
        else:
            budget.tokens_used(reply)
            if is_limited:
                _add_tokens(budget, reply)
            return reply


async def acall_model(
    model: BaseChatModel, budget: Budget, send: Callable[[Mapping[str, Any]], Awaitable[AIMessage]]
) -> AIMessage:
    """As `call_model`, on the running event loop."""
    call = ModelCall(model, budget)
    is_limited = access.rules().limits_usage
    while True:
        if is_limited:
            await asyncio.wrap_future(in_thread(partial(_take_call, budget)))
        options = call.begin()
        try:
            async with asyncio.timeout(budget.seconds_left()), _turn():
                reply = await send(options)
        except Exception as error:
            await asyncio.sleep(call.pause_after(error))
        else:
            budget.tokens_used(reply)
            if is_limited:
                await asyncio.wrap_future(in_thread(partial(_add_tokens, budget, reply)))
            return reply


def _take_call(budget: Budget) -> None:
    """Count a call of the run's user before it is made; it blocks.

    Raises:
        CallFailed: a limit of the user is reached, or nothing can be counted.
    """
    try:
        allowed = allowance()
        refusal = allowed.take_call() if allowed else None
    except LimitsFailure as failure:
        raise CallFailed(failure) from failure
    if refusal:
        budget.refused = refusal.sentence
        raise CallFailed(LimitsFailure(refusal.sentence))


def _add_tokens(budget: Budget, reply: AIMessage) -> None:
    """Count the tokens of a reply of the run's user; it blocks. The reply is there, so a failure is a warning."""
    try:
        if (allowed := allowance()) and (used := reply.usage_metadata):
            allowed.add_tokens(used["input_tokens"] + used["output_tokens"])
    except LimitsFailure as failure:
        budget.notes.append(f"{budget.node}: {failure}")


class ModelCall:
    """The attempts at one model call: the options of each, and whether another follows. Does no I/O."""

    def __init__(self, model: BaseChatModel, budget: Budget) -> None:
        self.model = model
        self.budget = budget
        self.attempt = 1
        context = budget.context
        self.temperature = context.temperature
        self.temperature_is_default = "temperature" not in context.changed
        # The set is empty in most processes; the digest of a model need not be made then.
        if (
            _refuses_temperature
            and self.temperature_is_default
            and model_identity(model) in _refuses_temperature
        ):
            self.temperature = None
        # A default seed is that of the examples alone (few_shot).
        has_seed = "seed" in context.changed and "seed" in type(model).model_fields
        self.seed = context.seed if has_seed else None

    def begin(self) -> Mapping[str, Any]:
        """Count an attempt and return its options."""
        self.budget.call_made()
        options = {"temperature": self.temperature, "seed": self.seed}
        return {name: value for name, value in options.items() if value is not None}

    def pause_after(self, error: Exception) -> float:
        """Seconds to wait before the next attempt.

        Raises:
            CallFailed: no further attempt is made.
            Exception: the error itself, where it is an interrupt, a cancellation or an error in the model's code.
        """
        if isinstance(error, GraphBubbleUp | CancelledError):
            raise error
        if self._is_refused_temperature(error) and not self.budget.spent():
            _refuses_temperature.add(model_identity(self.model))
            self.temperature = None
            return 0.0
        if self.seed is not None and status(error) in {400, 422} and "seed" in str(error).lower():
            self.seed = None
            return 0.0
        outcome = outcome_of(error)
        if outcome == "bug":
            raise error
        pause = self._pause(error) if outcome == "transient" else None
        if pause is None:
            raise CallFailed(error) from error
        self.attempt += 1
        return pause

    def _pause(self, error: Exception) -> float | None:
        """The pause before the next attempt; None where no attempt is left or the pause would take too long."""
        # Provider clients repeat calls on their own unless `max_retries` is 0; one layer of repetition is enough.
        repeats = (
            "max_retries" in type(self.model).model_fields and getattr(self.model, "max_retries", 0) != 0
        )
        if repeats or self.attempt == ATTEMPTS or self.budget.spent():
            return None
        pause = retry_after(error)
        if pause is None:
            growing = self.budget.context.retry_wait_s * 2 ** (self.attempt - 1)
            pause = growing * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
        left = self.budget.seconds_left()
        return pause if pause <= LONGEST_WAIT_S and (left is None or pause < left) else None

    def _is_refused_temperature(self, error: Exception) -> bool:
        """Whether the model refused a default temperature; one that a user set is never left out."""
        return (
            self.temperature is not None
            and self.temperature_is_default
            and status(error) in {400, 422}
            and "temperature" in str(error).lower()
        )


_refuses_temperature: set[str] = set()
"""Identities of the models that refused a default temperature in this process, as reasoning models do."""


def skip_reason(
    failure: Exception, state: Mapping[str, Any], choice: BaseChatModel | str, budget: Budget
) -> str:
    """The warning for a step whose model gave no usable reply.

    Args:
        failure: CallFailed, Refused, UnreadableReply, or the TimeoutError of a model that was not built in time.
        state: The state of the step.
        choice: The model or its name.
        budget: The budget of the step.

    Raises:
        ModelFailure: the provider refuses every call (401, 403, 404) and none succeeded before in this run.
    """
    if limit := budget.spent():
        return limit
    if isinstance(failure, Refused):
        return f"{budget.node} was skipped: the model declined: {without_secrets(str(failure)):.200}"
    if isinstance(failure, UnreadableReply):
        return f"{budget.node} was skipped: the model's reply could not be read, asked twice: {failure}"
    error = failure.error if isinstance(failure, CallFailed) else failure
    if status(error) in {401, 403, 404} and not has_answered(state):
        name = choice if isinstance(choice, str) else model_name(choice)
        raise ModelFailure(
            f"the model {name!r} refuses every call: {_described(error)}. Check its name and its key."
        ) from error
    return f"{budget.node} was skipped: the model could not be asked: {_described(error)}"


def _described(error: Exception) -> str:
    """The error in one line, without secrets."""
    if isinstance(error, TimeoutError) and not str(error):
        return "the model did not answer in time"
    if isinstance(error, UnicodeEncodeError) and error.encoding == "ascii":
        return "its key, or another header, has letters that HTTP does not take; set the key of its provider"
    text = " ".join(str(error).split())
    return without_secrets(f"{type(error).__name__}: {text}")[:300]


_TRANSIENT_STATUS = frozenset({408, 409, 429, *range(500, 600)})
_TRANSIENT_NAMES = frozenset(
    {
        "APIConnectionError",  # openai, anthropic and clients modelled on them; timeouts are a subclass
        "TransportError",  # httpx: connect, read, protocol, timeout
        "ConnectTimeoutError",
        "ReadTimeoutError",  # botocore
        "APIResponseValidationError",
    }
)
"""Classes of provider packages, by name, so that none of the packages has to be installed."""
_LOOP_MESSAGES = ("Event loop is closed", "is bound to a different event loop")
"""A pooled connection of another event loop was taken; the next attempt opens its own."""
_BUGS = (TypeError, LookupError, AttributeError, NameError, AssertionError, NotImplementedError, ImportError)


def outcome_of(error: Exception) -> Literal["transient", "bug", "permanent"]:
    """What an exception of a model call means.

    "transient" is what a network or an overloaded provider causes: the same call may succeed later. "bug" is an
    error in the code of the model, which the user must see. Everything else is "permanent".
    """
    if (code := status(error)) is not None:
        transient = code in _TRANSIENT_STATUS
    elif isinstance(error, TypeError | LookupError | AttributeError):
        transient = _is_from_library(error)
    elif isinstance(error, RuntimeError):
        transient = any(part in str(error) for part in _LOOP_MESSAGES)
    elif isinstance(error, ValueError):
        # Clients raise it over answers: half a JSON, an empty stream, a missing field. UnicodeError concerns the
        # prompt, and an error of Stepcraft comes from a graph that the model runs.
        transient = not isinstance(error, UnicodeError | StepcraftError)
    else:
        transient = isinstance(error, ConnectionError | TimeoutError) or any(
            kind.__name__ in _TRANSIENT_NAMES for kind in type(error).__mro__
        )
    if transient:
        return "transient"
    return "bug" if isinstance(error, _BUGS) else "permanent"


_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
_FRAMEWORK = frozenset({"langchain", "langchain_core", "langgraph", "langsmith"})


def _is_from_library(error: Exception) -> bool:
    """Whether an installed client library raised the error, not the user's code.

    A client whose request is answered with a proxy's page or half a completion fails with TypeError, KeyError or
    IndexError somewhere in its code; in a user's model the same errors are mistakes. The innermost frame outside of
    the standard library and of the framework that called the model tells whose code failed. Where there is none, the
    framework itself failed: over a completion without choices (IndexError), or over a method of the model that has
    another signature or returns another type (TypeError, AttributeError).
    """
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "stepcraft":
            break
        path = Path(frame.f_code.co_filename)
        installed = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
        if package not in _FRAMEWORK and (installed or not path.is_relative_to(_STANDARD_LIBRARY)):
            return installed
    return isinstance(error, LookupError)


def status(error: Exception) -> int | None:
    """The HTTP status from 400 to 599 that a provider's exception carries, if any."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    return None


def retry_after(error: Exception) -> float | None:
    """The seconds that the provider's Retry-After header asks to wait, if it has one."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    value = str(headers.get("retry-after", ""))
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
