"""The papers' baselines: chain of thought, and examples from the memory."""

from __future__ import annotations

from stepcraft import get_graph
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft_papers.contexts import FewShotContext
from tests.kitchen import small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, ids, shown


def test_chain_of_thought_answers_below_its_thoughts() -> None:
    model = ScriptedModel(["First this.\n\nANSWER\nHaldruvin."])
    result = get_graph("cot", model=model, sources=Shelf()).invoke(QUESTION)
    assert (model.nodes, result["answer"]) == (["answer"], "Haldruvin.")
    assert len(shown(model.calls[0].prompt, "passage")) == len(result["evidence"]) == 0


def test_the_keyless_model_has_thoughts_and_no_answer() -> None:
    result = get_graph("cot", model=ExtractiveModel()).invoke(QUESTION)
    assert result["answer"] == "No evidence was found for this."


def test_few_shot_shows_the_same_procedures_for_a_seed() -> None:
    with small_memory() as memory:
        graph = get_graph("few_shot", model=ScriptedModel(["Bake."] * 3), memory=memory)
        contexts = [FewShotContext(sample_seed=seed, k=2) for seed in (1, 1, 2)]
        first, same, other = [ids(graph.invoke(QUESTION, context=each)) for each in contexts]
    assert first == same != other
