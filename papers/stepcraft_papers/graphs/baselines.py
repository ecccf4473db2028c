"""The papers' baselines: chain of thought, and examples from the memory."""

import random
from typing import Any

from langgraph.graph import END
from typing_extensions import Unpack

from stepcraft.evidence import Evidence
from stepcraft.graphs.baselines import Builder, Graph, State, baseline_builder, one_call_builder
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.nodes.answer import answer
from stepcraft.nodes.begin import store_of_run
from stepcraft_papers.contexts import CotContext, FewShotContext
from stepcraft_papers.nodes.answer_by_thinking import answer_by_thinking


def cot_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline that thinks step by step, then answers, in one call."""
    return one_call_builder("cot", CotContext, answer_by_thinking, options)


def few_shot_builder(**options: Unpack[BuilderOptions]) -> Builder:
    """Return the baseline shown `k` random procedures from the memory, fixed by the seed."""
    resources = Resources.of("few_shot", FewShotContext, options, prefers_memory=True)
    builder = baseline_builder(resources, "answer")
    builder.add_node("sample", resources.bind(sample))
    builder.add_node("answer", answer.bound(resources))
    builder.add_edge("begin", "sample")
    builder.add_edge("sample", "answer")
    builder.add_edge("answer", END)
    return builder


def sample(state: State, resources: Resources[FewShotContext]) -> dict[str, Any]:
    """Return random procedures from the memory as evidence."""
    settings = resources.settings(state)
    memory = resources.target.memory(settings, store_of_run())
    procedures = sorted(memory, key=lambda procedure: procedure.id)
    chosen = random.Random(settings.sample_seed).sample(  # noqa: S311 - examples, no secret
        procedures, min(settings.k, len(procedures))
    )
    evidence = [
        Evidence(
            id=procedure.id,
            title=procedure.output,
            text=procedure.text(),
            source=procedure.source,
            score=0.0,
        )
        for procedure in chosen
    ]
    return {"evidence": evidence}


def build_cot(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the chain-of-thought baseline."""
    return compiled(cot_builder, "cot", options)


def build_few_shot(**options: Unpack[GraphOptions]) -> Graph:
    """Build and compile the few-shot baseline."""
    return compiled(few_shot_builder, "few_shot", options)
