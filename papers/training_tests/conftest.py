"""A random Llama of two million parameters, its tokenizer, and what is trained of it; on the CPU."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, set_seed

from papers.training_tests.made import SAMPLES
from stepcraft_papers.training.examples import examples
from stepcraft_papers.training.samples import TrainingSample
from stepcraft_papers.training.train import Recipe, train


def texts(samples: Sequence[TrainingSample]) -> list[str]:
    return [
        "\n\n".join([*(message.text for message in each.messages), each.reply])
        for sample in samples
        for each in examples(sample)
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the libraries for training warn each other of what they deprecate."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("ignore::FutureWarning"))
        item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning:torch.*"))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the model."""
    torch.set_num_threads(2)
    folder = str(tmp_path_factory.mktemp("base"))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<pad>", "<s>", "</s>"]
    tokenizer.train_from_iterator(
        texts(SAMPLES),
        trainers.BpeTrainer(vocab_size=800, special_tokens=special, initial_alphabet=alphabet),
    )
    names = dict(zip(("pad_token", "bos_token", "eos_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    set_seed(0)
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        # So that what it attends to differs from token to token without training.
        initializer_range=0.08,
        tie_word_embeddings=False,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


RECIPES: dict[str, Recipe] = {
    "lora": Recipe(
        method="lora",
        also_trained=("embed_tokens", "lm_head"),
        epochs=30,
        learning_rate=1e-3,
        batch=4,
    ),
    "multitask-prompt": Recipe(
        method="multitask-prompt",
        also_trained=("self_attn", "mlp", "lm_head"),
        virtual_tokens=20,
        epochs=30,
        learning_rate=1e-3,
        batch=4,
    ),
}
"""Nothing is known to the model, so that more is trained than the adapters."""


@pytest.fixture(scope="session", params=RECIPES)
def tuned(
    request: pytest.FixtureRequest, base: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """The folder of a trained model, and the record of its training."""
    folder = tmp_path_factory.mktemp(request.param)
    return folder, train(base, SAMPLES, (), folder, RECIPES[request.param])
