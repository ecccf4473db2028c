"""An evaluation in LangSmith: its samples as a dataset, each method as an experiment, its scores as feedback.

What was taken is kept in the evaluation's directory (`langsmith.jsonl`), and ids follow from what is there, so that a
command that was stopped uploads nothing twice. Requests are sent one after the other within limits of their own; none is
left to a thread that would hold up the end of the process.
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import requests
from langsmith import Client
from langsmith.utils import LangSmithConflictError, LangSmithError, get_api_key, get_api_url
from urllib3.util import Retry

from stepcraft.errors import BadInput, RunStopped
from stepcraft.evals.directory import Outcome, RunDirectory, read_configuration, read_outcomes
from stepcraft.evals.samples import Sample, fingerprint
from stepcraft.journal import LineFile, read_lines
from stepcraft.secrets import anonymizer

UPLOADED = "langsmith.jsonl"
_TIMEOUT_MS = 3_000, 20_000
_ATTEMPTS = 3
_MANY = 100
"""How many examples go into one request."""
_METADATA = ("trace", "usage", "usd", "warnings", "versions", "models", "prompts", "seed")


class LangSmith:
    """Uploads evaluations under a name; the endpoint and the key are those of LANGSMITH_ENDPOINT and LANGSMITH_API_KEY.

    Args:
        name: The beginning of the names of the dataset and the experiments.

    Raises:
        BadInput: There is no key.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.endpoint = get_api_url(None)
        if not get_api_key(None):
            raise BadInput(
                f"--langsmith {name!r:.80} needs a key for {self.endpoint}; set LANGSMITH_API_KEY, or leave it out"
            )
        self._client = Client(
            auto_batch_tracing=False,
            retry_config=Retry(total=0),
            timeout_ms=_TIMEOUT_MS,
            info={"version": "0"},  # else it is asked for
        )

    def upload(self, directory: Path, samples: Sequence[Sample]) -> int:
        """Upload what an evaluation has and LangSmith has not; return the number of new runs.

        Args:
            directory: The directory of the evaluation.
            samples: Its samples.

        Raises:
            BadInput: There is no evaluation, it is running, or LangSmith refuses the key.
            RunStopped: LangSmith does not take it, or the directory cannot be written.
        """
        configuration = read_configuration(directory)
        with RunDirectory(directory, configuration), LineFile(directory / UPLOADED) as lines:
            return _Upload(self, directory, lines).everything(configuration, samples)

    def send(self, method: Literal["GET", "POST", "PATCH"], path: str, **options: Any) -> Any:  # noqa: ANN401 - JSON
        """The reply to a request; None where LangSmith has it already.

        Raises:
            BadInput: LangSmith refuses the key.
            RunStopped: It does not take it.
        """
        try:
            reply = self._client.request_with_retries(
                method, path, stop_after_attempt=_ATTEMPTS, **options
            )
            return reply.json()
        except LangSmithConflictError:
            return None
        except (LangSmithError, requests.RequestException, ValueError) as error:
            code = _status(error)
            if code in {401, 403}:
                raise BadInput(
                    f"LangSmith at {self.endpoint} refuses the key ({code}); check LANGSMITH_API_KEY"
                ) from error
            raise RunStopped(
                f"LangSmith at {self.endpoint} did not take the evaluation ({type(error).__name__} at {path}); start the "
                "same command again to upload the rest"
            ) from error


def _status(error: BaseException | None) -> int | None:
    """The status of the response that an error, or one that led to it, is about."""
    while error is not None:
        response = getattr(error, "response", None)
        if response is not None:
            return int(response.status_code)
        error = error.__context__
    return None


class _Upload:
    """One evaluation on its way."""

    def __init__(self, to: LangSmith, directory: Path, lines: LineFile) -> None:
        self._to = to
        self._directory = directory
        self._lines = lines
        self._place = f"{to.endpoint} {to.name}"
        known = [one for one in read_lines(directory / UPLOADED) if one["to"] == self._place]
        self._known = {(one["kind"], one["of"]): str(one["id"]) for one in known}
        self._masked = anonymizer()
        self._root = self._known.get(("evaluation", "")) or self._keep(
            "evaluation", "", str(uuid4())
        )

    def _keep(self, kind: str, of: str, id_: str) -> str:
        self._lines.add({"to": self._place, "kind": kind, "of": of, "id": id_})
        self._known[kind, of] = id_
        return id_

    def everything(self, configuration: Mapping[str, Any], samples: Sequence[Sample]) -> int:
        dataset = self._known.get(("dataset", "")) or self._dataset(samples)
        last = {
            (one["method"], one["id"]): place
            for place, one in enumerate(read_outcomes(self._directory))
        }
        uploaded: dict[str, int] = {}
        for place, outcome in enumerate(read_outcomes(self._directory)):
            if last[outcome["method"], outcome["id"]] == place:
                method = outcome["method"]
                experiment = self._experiment(method, configuration, dataset)
                uploaded[method] = uploaded.get(method, 0) + self._run(
                    outcome, experiment, UUID(dataset)
                )
        for method, count in uploaded.items():
            if count:
                now = datetime.now().astimezone().isoformat()
                self._to.send(
                    "PATCH",
                    f"/sessions/{self._known['experiment', method]}",
                    json={"end_time": now},
                )
        return sum(uploaded.values())

    def _dataset(self, samples: Sequence[Sample]) -> str:
        """The id of the dataset of these samples, whoever uploaded it first; examples that it lacks are added."""
        digest = fingerprint(samples)
        name = f"{self._to.name} {digest}"
        found = self._to.send("GET", "/datasets", params={"name": name, "limit": 1})
        if not found:
            extra = {"metadata": {"fingerprint": digest, "samples": len(samples)}}
            made = self._to.send(
                "POST", "/datasets", json={"name": name, "data_type": "kv", "extra": extra}
            )
            found = (
                [made]
                if made
                else self._to.send("GET", "/datasets", params={"name": name, "limit": 1})
            )
        dataset = str(found[0]["id"])
        present: set[str] = set()
        while page := self._to.send(
            "GET", "/examples", params={"dataset": dataset, "offset": len(present), "limit": _MANY}
        ):
            present |= {str(one["id"]) for one in page}
        examples = [self._example(sample, dataset) for sample in samples]
        missing = [example for example in examples if example["id"] not in present]
        for start in range(0, len(missing), _MANY):
            self._to.send("POST", "/examples/bulk", json=missing[start : start + _MANY])
        return self._keep("dataset", "", dataset)

    def _experiment(self, method: str, configuration: Mapping[str, Any], dataset: str) -> str:
        if known := self._known.get(("experiment", method)):
            return known
        id_ = str(uuid5(UUID(self._root), method))
        metadata = {
            **configuration["methods"][method],
            "stepcraft_version": configuration["version"],
            "prompts": configuration.get("prompts", {}).get(method, ""),
        }
        experiment = {
            "id": id_,
            "name": f"{self._to.name} {method} {self._root[:8]}",
            "reference_dataset_id": dataset,
            "extra": {"metadata": self._masked(metadata)},
        }
        self._to.send("POST", "/sessions", json=experiment)
        return self._keep("experiment", method, id_)

    def _run(self, outcome: Outcome, experiment: str, dataset: UUID) -> int:
        """Upload a run unless it was, and its scores unless they were; return the number of new runs."""
        of = (
            outcome.get("trace")
            or f"{outcome['method']} {outcome['id']} {outcome.get('began', '')}"
        )
        began = datetime.fromisoformat(outcome.get("began") or "2000-01-01T00:00:00+00:00")
        id_ = str(_run_id(began, f"{uuid5(NAMESPACE_URL, self._place)} {self._root} {of}"))
        is_new = ("run", of) not in self._known
        if is_new:
            sample = outcome["sample"]
            example = self._example(sample, str(dataset))
            run = {
                "id": id_,
                "trace_id": id_,
                "dotted_order": f"{began:%Y%m%dT%H%M%S%f}Z{id_}",
                "name": outcome["method"],
                "run_type": "chain",
                "inputs": example["inputs"],
                "outputs": self._masked(outcome["output"]),
                "error": self._masked(outcome["error"]) or None,
                "start_time": began.isoformat(),
                "end_time": (began + timedelta(seconds=outcome["seconds"])).isoformat(),
                "session_id": experiment,
                "reference_example_id": example["id"],
                "extra": {
                    "metadata": self._masked({name: outcome.get(name) for name in _METADATA})
                },
            }
            self._to.send("POST", "/runs", json=run)
            self._keep("run", of, id_)
        if outcome["scores"] and ("scores", of) not in self._known:
            for key, score in outcome["scores"].items():
                feedback = {
                    "id": str(uuid5(UUID(id_), key)),
                    "run_id": id_,
                    "trace_id": id_,
                    "session_id": experiment,
                    "key": key,
                    "score": score,
                    "feedback_source": {"type": "api"},
                }
                self._to.send("POST", "/feedback", json=feedback)
            self._keep("scores", of, id_)
        return int(is_new)

    def _example(self, sample: Sample, dataset: str) -> dict[str, Any]:
        fields: dict[str, Any] = {**sample}
        asked = {name: fields.pop(name) for name in ("question", "resources") if name in fields}
        fields.pop("id")
        return {
            "id": str(uuid5(UUID(dataset), sample["id"])),
            "dataset_id": dataset,
            "inputs": self._masked(asked),
            "outputs": self._masked(fields),
            "metadata": {"id": sample["id"]},
        }


def _run_id(began: datetime, seed: str) -> UUID:
    """A UUID of version 7, which LangSmith asks of runs, from a time and a text alone."""
    digest = hashlib.sha256(seed.encode()).digest()
    milliseconds = int(began.timestamp() * 1000).to_bytes(6, "big")
    return UUID(
        bytes=milliseconds
        + bytes([0x70 | digest[0] & 15, digest[1], 0x80 | digest[2] & 63])
        + digest[3:10]
    )
