"""The temperature of a call: where nobody set it, a model that refuses any is asked without."""

from typing import Any

from langchain_core.language_models import BaseChatModel

from stepcraft.contexts.base import Context
from stepcraft.llm.failures import status
from stepcraft.models.resolve import model_name

_refusing: set[str] = set()
"""The names of models that refused it in this process."""


def options(model: BaseChatModel, context: Context) -> dict[str, Any]:
    """The temperature of the context, if there is one."""
    if context.temperature is None or (model_name(model) in _refusing and _is_default(context)):
        return {}
    return {"temperature": context.temperature}


def is_refused(model: BaseChatModel, sent: dict[str, Any], error: object, context: Context) -> bool:
    """Whether a call failed for a temperature that nobody set, so that it may succeed without one."""
    refused = (
        bool(sent)
        and isinstance(error, Exception)
        and status(error) in {400, 422}
        and "temperature" in str(error).lower()
        and _is_default(context)
    )
    if refused:
        _refusing.add(model_name(model))
    return refused


def _is_default(context: Context) -> bool:
    return "temperature" not in context.changed()
