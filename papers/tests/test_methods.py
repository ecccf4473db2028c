"""The papers' graphs as methods of an evaluation."""

from __future__ import annotations

import re

from stepcraft.evals.methods import read_methods
from tests.evals.runs import stepcraft


def test_the_list_has_the_papers_graphs_methods_and_benchmarks() -> None:
    names = re.findall(r"[\w-]+", stepcraft("list").stdout)
    assert {"rat", "rat_paper", "self_refinement", "gsm8k"} <= {*names}


def test_the_seed_of_a_sample_is_for_the_model_and_for_draws() -> None:
    [method] = read_methods("few_shot:seed=1", {})
    seeds = [method.context(seed).model_dump(include={"seed", "sample_seed"}) for seed in (3, None)]
    assert seeds[0] == {"seed": 3, "sample_seed": 3}
    assert seeds[1]["seed"] == 1


def test_self_refinement_is_without_the_memory_that_others_search() -> None:
    [method] = read_methods(
        "self_refinement:k=1", {"memory": "a.jsonl", "sources": ["web"], "model": "x"}
    )
    assert (method.graph, method.settings["questions"]) == ("aag_paper", False)
    assert method.options["model"] == "x"
    assert list(method.options["memory"]) == []  # type: ignore[arg-type] # a memory that is listed
    assert "sources" not in method.options
