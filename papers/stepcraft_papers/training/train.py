"""Train a model to plan and to answer: multitask prompt tuning, or a LoRA for each task (RPG §3.4).

Multitask prompt tuning learns a prompt P* shared by both tasks and, for each task, the vectors u
and v in P_task = P* ∘ (u_task ⊗ v_taskᵀ), while the model stays frozen. The planning loss covers
only the tokens of plans, the answering loss covers only the tokens of answers, and the two are
added. LoRAs share no weights, so the sum of their losses is at its minimum when each loss is.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from peft import (
    LoraConfig,
    MultitaskPromptTuningConfig,
    MultitaskPromptTuningInit,
    TaskType,
    get_peft_model,
)
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    Trainer,
    TrainingArguments,
    set_seed,
)

from stepcraft.errors import BadInput
from stepcraft_papers.training.examples import IGNORED, TASKS, Encoded, Task, encoded, examples
from stepcraft_papers.training.samples import TrainingSample

RECORD = "training.json"
"""The file in a trained folder that records how the model was trained."""
MEASURED = 300
"""The maximum number of examples for measuring the losses before and after training."""
CHECKPOINTS = "checkpoints"
PROMPTS = "prompts"
"""The folder of the trained prompts; LoRAs are in folders named after their tasks."""
_PROMPT = "Plan what has to be looked up for the question, or answer it from what was found."


@dataclass(frozen=True)
class Recipe:
    """The settings for training a model.

    The defaults are those of the script that the paper's authors released for Llama-2-7B.
    """

    method: Literal["multitask-prompt", "lora"] = "multitask-prompt"
    plan_loss: bool = True
    """Whether plans are learned; if not, only answers are (RPG §4, table 3)."""
    shared_prompt: bool = False
    """Whether both tasks share one prompt (RPG §4, table 3)."""
    instructions: bool = False
    """Whether prompts include the nodes' instructions, as with vLLM, or adapters replace them."""
    virtual_tokens: int = 50
    """The number of virtual tokens in a prompt."""
    ranks: int = 64
    """The columns of u and the rows of v, or the rank of a LoRA."""
    also_trained: tuple[str, ...] = ()
    """Modules trained in full (in the released script, embed_tokens and lm_head for new tokens)."""
    epochs: float = 3
    learning_rate: float = 1e-5
    batch: int = 2
    """The number of examples per step on each device."""
    accumulated: int = 1
    """The number of steps over which gradients are added before the weights change."""
    warmup: float = 0.03
    """The proportion of steps in which the learning rate rises; afterwards it falls linearly."""
    max_tokens: int = 1024
    """The maximum number of tokens in an example; longer examples are left out."""
    bf16: bool = False
    save_steps: int = 500
    """The number of steps between two checkpoints."""
    seed: int = 0


@dataclass(frozen=True)
class Collator:
    """Pads a batch on the right; padding is not attended to and does not count in the loss."""

    padding: int
    """The id of the padding token."""
    shared_prompt: bool = False

    def __call__(self, batch: Sequence[Encoded]) -> dict[str, torch.Tensor]:
        """Return the tensors of a batch, a row for each example."""
        length = max(len(each["input_ids"]) for each in batch)

        def padded(rows: Sequence[Sequence[int]], filler: int) -> torch.Tensor:
            return torch.tensor([[*row, *[filler] * (length - len(row))] for row in rows])

        ids = [each["input_ids"] for each in batch]
        return {
            "input_ids": padded(ids, self.padding),
            "attention_mask": padded([[1] * len(row) for row in ids], 0),
            "labels": padded([each["labels"] for each in batch], IGNORED),
            "tasks": torch.tensor([each["task"] for each in batch]),
            "task_ids": torch.tensor([0 if self.shared_prompt else each["task"] for each in batch]),
        }


def token_losses(model: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """Return the loss of every token in a batch, one row per example, with 0 if it is ignored."""
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "task_ids")}
    labels = batch["labels"][:, 1:]
    # Virtual tokens come first.
    logits = model(**inputs).logits[:, -batch["labels"].shape[1] : -1]
    return cross_entropy(
        logits.transpose(1, 2).float(), labels, ignore_index=IGNORED, reduction="none"
    )


class _Trainer(Trainer):
    """Adds up the losses of the tasks, each of which is the mean over its own tokens."""

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,  # noqa: FBT001, FBT002 - as in Trainer
        num_items_in_batch: object = None,
    ) -> torch.Tensor:
        del return_outputs, num_items_in_batch
        losses, counted = token_losses(model, inputs), inputs["labels"][:, 1:] != IGNORED
        tasks = [inputs["tasks"] == task for task in inputs["tasks"].unique()]
        return torch.stack([losses[rows].sum() / counted[rows].sum() for rows in tasks]).sum()


def task_losses(model: Any, data: Sequence[Encoded], collator: Any) -> dict[Task, float]:
    """Return the mean loss per token for each task."""
    sums = dict.fromkeys(TASKS, 0.0)
    counts = dict.fromkeys(TASKS, 0)
    model.eval()
    with torch.no_grad():
        for each in data:
            batch = {name: value.to(model.device) for name, value in collator([each]).items()}
            task = TASKS[each["task"]]
            sums[task] += token_losses(model, batch).sum().item()
            counts[task] += sum(label != IGNORED for label in each["labels"][1:])
    return {task: sums[task] / counts[task] for task in TASKS if counts[task]}


def train(
    base: str,
    samples: Sequence[TrainingSample],
    validation: Sequence[TrainingSample],
    folder: Path,
    recipe: Recipe,
) -> dict[str, Any]:
    """Train a model, resuming from the last checkpoint in the folder, and return the record.

    Args:
        base: The folder or Hugging Face Hub name of a transformers model for causal language
            modelling.
        samples: The samples to learn.
        validation: The samples on which losses are measured; if empty, `samples` are used.
        folder: The folder for the adapters, the tokenizer, the checkpoints and `training.json`,
            whose contents are returned.
        recipe: The settings for training.

    Raises:
        BadInput: The model cannot be loaded, the folder was trained with other settings, or no
            example is short enough.
    """
    tokenizer = loaded_tokenizer(base)
    data, too_long = _encoded(samples, tokenizer, recipe)
    measured = (_encoded(validation, tokenizer, recipe)[0] or data)[:MEASURED]
    record: dict[str, Any] = {
        "base": _named(base),
        "recipe": asdict(recipe),
        "examples": len(data),
        "too_long": too_long,
        "losses": {},
    }
    _check_same(folder, record)
    if (folder / RECORD).exists():
        return dict(json.loads((folder / RECORD).read_text("utf-8")))
    collator = Collator(tokenizer.pad_token_id, recipe.shared_prompt)
    # Tasks that share no weights are trained one after the other.
    groups = [[task] for task in TASKS] if recipe.method == "lora" else [list(TASKS)]
    for tasks in groups:
        name = tasks[0] if len(tasks) == 1 else PROMPTS
        learned = [each for each in data if TASKS[each["task"]] in tasks]
        if not learned:
            continue
        set_seed(recipe.seed)
        model = get_peft_model(loaded_model(base, bf16=recipe.bf16), _adapter(recipe, base))
        shown = [each for each in measured if TASKS[each["task"]] in tasks]
        before = task_losses(model, shown, collator)
        speed = _fit(model, learned, collator, folder / CHECKPOINTS / name, recipe)
        model.save_pretrained(str(folder / name))
        for task, loss in task_losses(model, shown, collator).items():
            record["losses"][task] = {"before": before[task], "after": loss}
        record["tokens_per_second"] = speed
    tokenizer.save_pretrained(str(folder))
    text = json.dumps(record, indent=1)
    (folder / RECORD).write_text(text, "utf-8")
    return dict(json.loads(text))


def loaded_model(base: str, *, bf16: bool = False) -> Any:
    """Return a transformers model, on the GPU if there is one.

    Raises:
        BadInput: It cannot be loaded.
    """
    dtype = torch.bfloat16 if bf16 else torch.float32
    model = _loaded(AutoModelForCausalLM, base, dtype=dtype)
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def loaded_tokenizer(base: str) -> PreTrainedTokenizerBase:
    """Return a model's tokenizer; if it has no padding token, its end token is used instead.

    Raises:
        BadInput: The tokenizer cannot be loaded, or has no end token.
    """
    tokenizer: PreTrainedTokenizerBase = _loaded(AutoTokenizer, base)
    if tokenizer.eos_token_id is None:
        raise BadInput(f"the tokenizer of {base} has no token for the end of a text (eos_token)")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return tokenizer


def _loaded(loader: Any, base: str, **options: Any) -> Any:
    try:
        return loader.from_pretrained(base, **options)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise BadInput(f"the model {base} cannot be loaded: {reason}") from error


def _named(base: str) -> str:
    return str(Path(base).resolve()) if Path(base).exists() else base


def _encoded(
    samples: Sequence[TrainingSample], tokenizer: PreTrainedTokenizerBase, recipe: Recipe
) -> tuple[list[Encoded], int]:
    """Return the tokens of the examples, and how many were too long."""
    every = [
        encoded(each, tokenizer, instructions=recipe.instructions)
        for sample in samples
        for each in examples(sample)
    ]
    if not recipe.plan_loss:
        every = [each for each in every if TASKS[each["task"]] != "plan"]
    fit = [each for each in every if len(each["input_ids"]) <= recipe.max_tokens]
    if samples and not fit:
        shortest = min(len(each["input_ids"]) for each in every)
        raise BadInput(
            f"no example has at most {recipe.max_tokens} tokens, the shortest has {shortest}; "
            "raise --max-tokens"
        )
    return fit, len(every) - len(fit)


def _check_same(folder: Path, record: Mapping[str, Any]) -> None:
    """Save the settings with which a folder is trained, or check that they are unchanged.

    Raises:
        BadInput: The folder was begun with a different base, recipe or number of examples.
    """
    folder.mkdir(parents=True, exist_ok=True)
    begun = folder / "begun.json"
    fields = {"base": record["base"], "examples": record["examples"], **record["recipe"]}
    written = json.dumps(fields)
    old = json.loads(begun.read_text("utf-8")) if begun.exists() else json.loads(written)
    changed = [name for name, value in json.loads(written).items() if old.get(name) != value]
    if changed:
        raise BadInput(
            f"{folder} was begun with another {', '.join(changed)}; name another folder, or "
            "delete it"
        )
    begun.write_text(written, "utf-8")


def _adapter(recipe: Recipe, base: str) -> Any:
    also_trained = list(recipe.also_trained) or None
    if recipe.method == "lora":
        return LoraConfig(
            task_type=TaskType.CAUSAL_LM,
            r=recipe.ranks,
            lora_alpha=recipe.ranks,
            target_modules="all-linear",
            modules_to_save=also_trained,
        )
    return MultitaskPromptTuningConfig(
        task_type=TaskType.CAUSAL_LM,
        num_tasks=1 if recipe.shared_prompt else len(TASKS),
        num_ranks=recipe.ranks,
        num_virtual_tokens=recipe.virtual_tokens,
        prompt_tuning_init=MultitaskPromptTuningInit.TEXT,
        prompt_tuning_init_text=_PROMPT,
        tokenizer_name_or_path=base,
        modules_to_save=also_trained,
    )


def _fit(
    model: Any, data: Sequence[Encoded], collator: Collator, folder: Path, recipe: Recipe
) -> float:
    """Train a model and return the number of tokens read per second."""
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=recipe.epochs,
        learning_rate=recipe.learning_rate,
        per_device_train_batch_size=recipe.batch,
        gradient_accumulation_steps=recipe.accumulated,
        warmup_steps=recipe.warmup,
        lr_scheduler_type="linear",
        bf16=recipe.bf16,
        save_steps=recipe.save_steps,
        save_total_limit=1,
        seed=recipe.seed,
        report_to="none",
        remove_unused_columns=False,
        label_names=["labels"],
        include_num_input_tokens_seen="all",
    )
    trainer = _Trainer(model, arguments, train_dataset=list(data), data_collator=collator)
    metrics = trainer.train(resume_from_checkpoint=_last_checkpoint(folder)).metrics
    return float(trainer.state.num_input_tokens_seen / metrics["train_runtime"])


def _last_checkpoint(folder: Path) -> str | None:
    """Return the last complete checkpoint, recognised by its state, which is written last."""
    whole = [state.parent for state in folder.glob("checkpoint-*/trainer_state.json")]
    last = max(whole, key=lambda path: int(path.name.partition("-")[2]), default=None)
    return str(last) if last else None
