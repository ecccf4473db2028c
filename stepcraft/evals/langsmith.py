"""Upload an evaluation to LangSmith: each method becomes an experiment, sent in a single call."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from langsmith import Client
from langsmith.utils import LangSmithError, get_api_url
from requests import RequestException

from stepcraft.errors import RunStopped
from stepcraft.evals.directory import Outcome
from stepcraft.evals.samples import fingerprint
from stepcraft.evals.summary import summarise
from stepcraft.secrets import anonymizer

_TIMEOUT_MS = 3_000, 60_000


def upload(directory: Path, name: str) -> list[str]:
    """Upload each method of an evaluation as an experiment, and return the experiments' names.

    Experiments on the same questions share a dataset. Each upload creates a new experiment.

    Args:
        directory: The directory of the evaluation.
        name: The prefix for the names of the dataset and the experiments.

    Raises:
        BadInput: There is no evaluation.
        RunStopped: LangSmith rejects the upload or cannot be reached.
    """
    methods = summarise(directory).methods
    samples = {each["id"]: each["sample"] for method in methods for each in method.outcomes}
    client = Client(auto_batch_tracing=False, timeout_ms=_TIMEOUT_MS, info={"version": "0"})
    now, experiments = datetime.now(UTC), list[str]()
    for method in methods:
        rows = [*map(_row, method.outcomes)]
        experiments.append(f"{name} {method.name} {now:%Y-%m-%d %H:%M:%S}")
        experiment: dict[str, Any] = {
            "experiment_name": experiments[-1],
            "dataset_name": f"{name} {fingerprint(samples[id_] for id_ in sorted(samples))}",
            "experiment_metadata": method.about,
            "experiment_start_time": min(row["start_time"] for row in rows),
            "experiment_end_time": max(row["end_time"] for row in rows),
            "results": rows,
        }
        try:
            client.request_with_retries(
                "POST", "/datasets/upload-experiment", json=anonymizer()(experiment)
            )
        except (LangSmithError, RequestException) as error:
            raise RunStopped(
                f"LangSmith at {get_api_url(None)} did not take {method.name!r} "
                f"({type(error).__name__}); check LANGSMITH_API_KEY and start again"
            ) from error
    return experiments


def _row(outcome: Outcome) -> dict[str, Any]:
    fields: dict[str, Any] = {**outcome["sample"]}
    question = {name: fields.pop(name) for name in ("question", "resources") if name in fields}
    end = datetime.fromisoformat(outcome["began"]) + timedelta(seconds=outcome["seconds"])
    return {
        # A question has the same row id in every experiment, so that LangSmith can compare them.
        "row_id": str(uuid5(NAMESPACE_URL, f"{outcome['id']} {outcome['sample']['question']}")),
        "inputs": question,
        "expected_outputs": fields,
        "actual_outputs": outcome["output"],
        "evaluation_scores": [
            {"key": key, "score": score} for key, score in outcome["scores"].items()
        ],
        "start_time": outcome["began"],
        "end_time": end.isoformat(),
        "run_name": outcome["method"],
        "error": outcome["error"] or None,
        "run_metadata": {name: outcome.get(name) for name in ("trace", "usage", "usd", "warnings")},
    }
