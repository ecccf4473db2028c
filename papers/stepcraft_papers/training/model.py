"""A trained folder as a chat model, with a separate adapter for planning and for answering."""

import json
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from peft import PeftModel
from pydantic import PrivateAttr

from stepcraft.errors import BadInput
from stepcraft_papers.training.examples import TASKS, Task, prompt_ids
from stepcraft_papers.training.train import PROMPTS, RECORD, loaded_model, loaded_tokenizer


class TunedModel(BaseChatModel):
    """A model trained by `train`, for use in `build_rpg_paper(model=)`.

    The node `plan` uses the adapter for plans; all other nodes use the adapter for answers.
    Decoding is greedy.

    Args:
        folder: The folder that it was trained into.
        fields: The other fields of the model.

    Raises:
        BadInput: The folder holds no trained model, or its base cannot be loaded.
    """

    folder: Path
    plan_tokens: int = 30
    """The maximum number of tokens in a plan (RPG §4)."""
    answer_tokens: int = 100
    """The maximum number of tokens in a segment (RPG §4)."""

    _tokenizer: Any = PrivateAttr()
    _adapted: Any = PrivateAttr()
    _record: dict[str, Any] = PrivateAttr()
    _lock: Any = PrivateAttr(default_factory=Lock)

    def __init__(self, folder: str | Path, **fields: Any) -> None:
        values: dict[str, Any] = {"folder": Path(folder), **fields}
        super().__init__(**values)
        try:
            self._record = json.loads((self.folder / RECORD).read_text("utf-8"))
        except OSError as error:
            raise BadInput(
                f"{folder} holds no trained model: {error.strerror} ({RECORD}); train one with "
                "python -m stepcraft_papers.training train"
            ) from error
        self._tokenizer = loaded_tokenizer(str(self.folder))
        base = loaded_model(self._record["base"], bf16=self._record["recipe"]["bf16"])
        first, *others = [name for name in (PROMPTS, *TASKS) if (self.folder / name).exists()]
        self._adapted = PeftModel.from_pretrained(base, self.folder / first, adapter_name=first)
        for name in others:
            self._adapted.load_adapter(self.folder / name, adapter_name=name)
        self._adapted.eval()

    @property
    def _llm_type(self) -> str:
        return "tuned"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,  # a temperature has no effect
    ) -> ChatResult:
        metadata = (run_manager.metadata if run_manager else None) or {}
        task: Task = "plan" if metadata.get("langgraph_node") == "plan" else "answer"
        shown = self._record["recipe"]["instructions"]
        read = prompt_ids(messages, self._tokenizer, instructions=shown)
        ids = torch.tensor([read], device=self._adapted.device)
        with self._lock, torch.no_grad():  # adapters are switched for all
            reply = self._written(ids, task)
        text = self._tokenizer.decode(reply, skip_special_tokens=True).strip()
        for end in stop or ():
            text = text.partition(end)[0]
        usage = UsageMetadata(
            input_tokens=ids.shape[1],
            output_tokens=reply.shape[0],
            total_tokens=ids.shape[1] + reply.shape[0],
        )
        message = AIMessage(text, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _written(self, ids: torch.Tensor, task: Task) -> torch.Tensor:
        """Return the tokens of a reply."""
        model = self._adapted
        inputs: dict[str, torch.Tensor] = {"input_ids": ids}
        if PROMPTS in model.peft_config:
            # PEFT's generate places what is written as if the virtual tokens were not there.
            number = 0 if self._record["recipe"]["shared_prompt"] else TASKS.index(task)
            prompt = model.get_prompt(1, torch.tensor([number], device=ids.device))
            embedded = model.word_embeddings(ids)
            inputs = {"inputs_embeds": torch.cat([prompt.to(embedded.dtype), embedded], dim=1)}
            model = model.base_model
        else:
            model.set_adapter(task if task in model.peft_config else "answer")
        read = next(iter(inputs.values())).shape[1]
        written: torch.Tensor = model.generate(
            **inputs,
            attention_mask=torch.ones((1, read), dtype=torch.long, device=ids.device),
            max_new_tokens=self.plan_tokens if task == "plan" else self.answer_tokens,
            do_sample=False,
            pad_token_id=self._tokenizer.pad_token_id,
            eos_token_id=self._tokenizer.eos_token_id,
        )[0]
        return written[ids.shape[1] :] if "input_ids" in inputs else written


def vllm_command(folder: Path) -> str:
    """Return the command that serves a folder's LoRAs with vLLM, each named after its task.

    Raises:
        BadInput: The folder holds no LoRAs.
    """
    record = folder / RECORD
    trained = json.loads(record.read_text("utf-8")) if record.exists() else {}
    recipe = trained.get("recipe", {})
    if recipe.get("method") != "lora" or not recipe["instructions"]:
        raise BadInput(
            f"{folder} holds no LoRAs that were trained with the instructions that the graph "
            "sends; vLLM serves what --method lora has trained"
        )
    loras = [folder.resolve() / task for task in TASKS if (folder / task).exists()]
    modules = " ".join(f"{path.name}={path}" for path in loras)
    return (
        f"vllm serve {trained['base']} --tokenizer {folder.resolve()} --enable-lora "
        f"--max-lora-rank {recipe['ranks']} --lora-modules {modules}"
    )
