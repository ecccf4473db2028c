"""Make training samples from records, and from RPG runs on a user's questions (RPG §3.3)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever

from stepcraft import RpgContext, build_rpg
from stepcraft.building.grounding import Grounds
from stepcraft.errors import ModelFailure, RunStopped, StepcraftError
from stepcraft.journal import FolderLock, LineFile, read_lines
from stepcraft.text.citations import without_marks
from stepcraft_papers.entries import fold
from stepcraft_papers.training.label import Unlabelled, build_label, sentences_of, unlabelled
from stepcraft_papers.training.records import Item
from stepcraft_papers.training.samples import Segment, TrainingSample

SAMPLES, LEFT_OUT = "samples.jsonl", "left-out.jsonl"
"""The files in a build folder."""
LEAST_SEGMENT = 200
"""The minimum number of characters in a segment, except for the last one."""
_RUN_CALLS = 8
"""The maximum number of model calls in an RPG run."""


@dataclass
class Report:
    """The result of a build."""

    kept: int = 0
    present: int = 0
    """The number of items finished by an earlier build in this folder."""
    segments: int = 0
    calls: int = 0
    left_out: Counter[str] = field(default_factory=Counter[str])
    """The numbers of segments and whole samples that were left out, by reason."""
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """The reason for each item that failed, by id; the same command tries these items again."""
    stopped: bool = False
    """Whether the build ended because the limit on calls was reached."""


class _Passages(BaseRetriever):
    """Returns the passages of one record, regardless of the query."""

    passages: list[tuple[str, str]]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int = 10
    ) -> list[Document]:
        del query, run_manager
        shown = self.passages[:k]
        return [Document(text, metadata={"title": title, "score": 1.0}) for title, text in shown]


class _Unfit(Exception):
    """An item from which no sample can be made."""


@dataclass
class Build:
    """Makes samples in a folder; a build that was stopped continues where it left off.

    Args:
        folder: The folder for `samples.jsonl`, and for `left-out.jsonl` with the reasons.
        model: The model that answers and labels, or its name.
        sources: The sources that RPG searches for questions without passages of their own.
        max_calls: The maximum number of calls in total, or None for no limit.
        concurrency: The number of items processed at the same time.
        on_done: Called with the report after each item.
    """

    folder: Path
    model: BaseChatModel | str
    sources: Sequence[Any] = ()
    max_calls: int | None = None
    concurrency: int = 4
    on_done: Callable[[Report], object] = lambda _report: None
    report: Report = field(init=False, default_factory=Report)
    """The result of the build so far."""

    def __post_init__(self) -> None:
        self._label = build_label(self.model)

    def run(self, items: Iterable[Item]) -> Report:
        """Make a sample from each item.

        Raises:
            BadInput: The folder is in use or cannot be written to.
            RunStopped: The model refuses every call.
        """
        lock = FolderLock(self.folder, "samples are being made into")
        try:
            with (
                LineFile(self.folder / SAMPLES) as samples,
                LineFile(self.folder / LEFT_OUT) as left_out,
            ):
                return asyncio.run(self._run(items, samples, left_out))
        finally:
            lock.close()

    async def _run(self, items: Iterable[Item], samples: LineFile, left_out: LineFile) -> Report:
        report = self.report
        done = {line["id"] for each in (samples, left_out) for line in read_lines(each.path)}
        waiting = iter(items)

        async def work() -> None:
            for item in waiting:
                if item.id in done:
                    report.present += 1
                    continue
                done.add(item.id)
                if self.max_calls is not None and report.calls >= self.max_calls:
                    report.stopped = True
                    return
                try:
                    sample = await self._sample(item)
                    samples.add(sample.model_dump())
                    report.kept += 1
                    report.segments += len(sample.segments)
                except _Unfit as reason:
                    left_out.add({"id": item.id, "reason": str(reason)})
                    report.left_out[str(reason)] += 1
                except ModelFailure as error:
                    raise RunStopped(f"{error} The same command goes on from here.") from error
                except StepcraftError as error:
                    report.failed[item.id] = str(error)
                self.on_done(report)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.concurrency):
                    group.create_task(work())
        except* RunStopped as stopped:
            raise stopped.exceptions[0] from None
        return report

    async def _sample(self, item: Item) -> TrainingSample:
        answered = item.answered or await self._answered(item)
        if any(each["sentences"] for each in answered):
            labelled = await self._label.ainvoke(unlabelled(item.question, answered))
            self.report.calls += labelled["usage"]["calls"]
            segments = [each for each in labelled["segments"] if self._is_borne_out(item, each)]
        else:
            segments = [Segment(plan="", support=(), text=each["text"]) for each in answered]
        if not segments:
            raise _Unfit("no segment is borne out by the sentences that were shown")
        return TrainingSample(
            id=item.id,
            question=item.question,
            kind="multihop" if item.origin == "hotpotqa" else "long",
            origin=item.origin,
            segments=tuple(segments),
        )

    async def _answered(self, item: Item) -> list[Unlabelled]:
        """Have RPG write the answer, from the item's passages or from the sources."""
        given = bool(item.passages)
        settings = (
            RpgContext(kind="long", max_calls=_RUN_CALLS, k=10, looks=1)
            if given
            else RpgContext(kind="long", max_calls=_RUN_CALLS, looks=1)
        )
        sources = [_Passages(passages=item.passages)] if given else [*self.sources]
        rpg = build_rpg(model=self.model, sources=sources, settings=settings)
        result = await rpg.ainvoke({"question": item.question})
        self.report.calls += result["usage"]["calls"]
        answer = fold(result["answer"]).casefold()
        if item.right and not any(fold(each).casefold() in answer for each in item.right):
            raise _Unfit("the answer lacks the right one")
        return segments_of(result)

    def _is_borne_out(self, item: Item, segment: Segment) -> bool:
        if not segment.support:
            self.report.left_out["a segment: no sentence bears it out"] += 1
            return False
        shown = [item.question, *(f"{each.title} {each.text}" for each in segment.support)]
        if Grounds("\n".join(shown)).missing([segment.text]):
            self.report.left_out["a segment: it names what its sentences do not have"] += 1
            return False
        return True


def segments_of(result: Mapping[str, Any]) -> list[Unlabelled]:
    """Return the paragraphs of RPG's answer, each with the sentences of the passages it cites.

    A heading begins a new segment, and a short paragraph is joined to the one after it.
    """
    passages = {
        each["id"]: sentences_of(each["title"], each["text"]) for each in result["evidence"]
    }
    groups: list[list[Any]] = [[]]
    for sentence in result["sentences"]:
        text = "".join(each["text"] for each in groups[-1])
        is_whole = text.endswith("\n\n") and len(text) >= LEAST_SEGMENT
        if is_whole or (text and sentence["text"].startswith("#")):
            groups.append([])
        groups[-1].append(sentence)
    segments: list[Unlabelled] = []
    for group in groups:
        cited = dict.fromkeys(id_ for sentence in group for id_ in sentence["evidence"])
        text = without_marks("".join(sentence["text"] for sentence in group)).strip()
        segments.append(
            Unlabelled(text=text, sentences=[s for id_ in cited for s in passages[id_]])
        )
    return segments
