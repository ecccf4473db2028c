"""Near duplicates: procedures for the same task in other words, found as they are added, or in a whole memory.

Candidates are the nearest procedures that a search of the memory finds with the whole text of a procedure, as far as they
share enough of their words; a model says of each whether it is for the same task. Names, calls and options make most of
the words of a procedure, which is why words tell more than vectors do. Of the 57 pairs in
tests/data/duplicate_pairs.jsonl the 30 for the same task share 0.55 or more of the words of the shorter one. At that
threshold, 100 procedures of LGStep have 32 pairs to ask about among their five nearest (41 in a memory without vectors); at
0.5, the default, 70 (84). With cosines of WordLlama the same 30 take a threshold of 0.65, which leaves 256. So 10,000
procedures cost 10,000 searches and some 8,000 calls, not 50 million.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from stepcraft.building.compare import Content, build_duplicates, compare, content_of
from stepcraft.building.placing import built_of, links_of, taught_by, taught_too, teachers_of
from stepcraft.building.settings import DuplicatesContext
from stepcraft.building.verdicts import VerdictFile
from stepcraft.errors import BadInput, MemoryFailure, ModelFailure, ReadOnlyMemory
from stepcraft.index.serial import SerialExecutor
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.llm.usage import Usage, add_usage, no_usage
from stepcraft.memory.feedback import VOTES, counts
from stepcraft.memory.procedure import Found, Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.resolve import model_name
from stepcraft.text.clean import stems
from stepcraft.text.names import mentions

OnDuplicate = Literal["merge", "keep", "skip"]
"""What becomes of a procedure for whose task there is one already: both become one, both stay, or it is not added."""

THRESHOLD = 0.5
"""The share of the words of the shorter of two procedures that the other has, from which on a model is asked."""

NEAREST = 5
"""How many of the nearest procedures are looked at."""

T = TypeVar("T")


@dataclass(frozen=True)
class Verdict:
    """What a model said of two procedures."""

    same: bool | None
    """Whether they are for the same task; None where no model could say."""
    why: str = ""
    merged: Content | None = None
    """The procedure in place of both, if there is one."""
    left_out: Sequence[str] = ()
    """Names, options and numbers of the two that the merged one does not have."""
    warnings: Sequence[str] = ()
    usage: Usage = field(default_factory=no_usage)


@dataclass(frozen=True)
class Placed:
    """What became of a procedure that was added."""

    kind: Literal["added", "present", "merged", "linked", "skipped"]
    procedure: Procedure
    """The procedure as the memory holds it; of a skipped one, the one that is there for its task."""
    of: str = ""
    """The id of the procedure that it was merged into, linked to or skipped for; "" if there is none."""
    verdict: Verdict = field(default_factory=lambda: Verdict(same=False))
    """What the model said of the two."""
    warnings: tuple[str, ...] = ()
    """What went wrong in the comparisons."""
    usage: Usage = field(default_factory=no_usage)
    """The usage of all comparisons."""


class Comparer:
    """Finds the procedures of a memory that are like another one, and asks a model whether they are for the same task.

    Args:
        memory: The memory.
        model: The model, or its name; None for that of STEPCRAFT_MODEL, or else the keyless one, to which tasks are the same
            where the outputs are equal.
        threshold: The share of words in common, from 0 to 1, from which on the model is asked; THRESHOLD if None.
        cache: Keeps verdicts.
        context: Further settings of the comparisons.
        config: The config of the runs, such as callbacks that trace them.
        turns: Limits the calls at the same time, of all that share it.

    Raises:
        BadInput: The threshold or the model cannot be used.
    """

    def __init__(
        self,
        memory: ProcedureMemory,
        model: BaseChatModel | str | None = None,
        *,
        threshold: float | None = None,
        cache: VerdictFile | None = None,
        context: DuplicatesContext | None = None,
        config: RunnableConfig | None = None,
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        self.memory = memory
        self.threshold = THRESHOLD if threshold is None else threshold
        if not 0 <= self.threshold <= 1:
            raise BadInput(
                f"the threshold must be a share of words between 0 and 1, not {threshold}"
            )
        models: BuilderOptions = {} if model is None else {"model": model}
        self._graph = build_duplicates(turns, **models)
        self._resources = Resources.of("duplicates", DuplicatesContext, models)
        self._cache = cache
        self._context = context or DuplicatesContext()
        self._config = config
        self._has_answered = False

    def like(self, procedure: Procedure) -> list[Procedure]:
        """The procedures of the memory that are like one, nearest first, without itself."""
        found = self.memory.search(procedure.text(self.memory.template), NEAREST + 1, alpha=1)
        return self._alike(procedure, found)

    async def alike(self, procedure: Procedure) -> list[Procedure]:
        """As `like`, without blocking the event loop."""
        found = await self.memory.asearch(
            procedure.text(self.memory.template), NEAREST + 1, alpha=1
        )
        return self._alike(procedure, found)

    def _alike(self, procedure: Procedure, found: Iterable[Found]) -> list[Procedure]:
        others = [hit.procedure for hit in found if hit.procedure.id != procedure.id]
        return [
            other for other in others[:NEAREST] if similarity(procedure, other) >= self.threshold
        ]

    async def compare(self, first: Procedure, second: Procedure, *, merge: bool) -> Verdict:
        """What the model says of two procedures; of equal ones it is not asked.

        Args:
            first: The one.
            second: The other.
            merge: Whether they are to be merged. What a person has approved is not rewritten.

        Raises:
            ModelFailure: The model refuses the first call; a later one costs the verdict.
        """
        contents = content_of(first), content_of(second)
        if contents[0] == contents[1]:
            return Verdict(same=True, merged=contents[0])
        approved = any(one.metadata.get("approved") for one in (first, second))
        context = self._context.model_copy(update={"merge": merge and not approved})
        key = self._key(contents, context)
        if self._cache and (known := await in_background(partial(self._cache.get, key))):
            return Verdict(**known)
        try:
            result: Mapping[str, Any] = await self._graph.ainvoke(
                {"first": contents[0], "second": contents[1]}, self._config, context=context
            )
        except ModelFailure as error:
            if not self._has_answered:
                raise
            return Verdict(same=None, why=str(error), warnings=(str(error),))
        content = {name: result[name] for name in ("same", "why", "merged", "left_out", "warnings")}
        if result["same"] is not None:
            self._has_answered = True
            if self._cache:
                await in_background(partial(self._cache.add, key, content))
        return Verdict(**content, usage=result["usage"])

    def _key(self, contents: Sequence[Content], context: DuplicatesContext) -> str:
        """Identify a question by all that the verdict depends on; a model counts by its name."""
        choice = self._resources.choice(compare.name, context)
        name = choice if isinstance(choice, str) else model_name(choice)
        text = json.dumps([name, contents, context.model_dump(mode="json")])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Duplicates:
    """Adds procedures to a memory in which those for the same task are to stand once.

    Many may be added at the same time, on one event loop: the model is asked about them side by side, and each is compared
    with what was added meanwhile before it is added itself. Other processes that add to the memory are not waited for:
    `dedupe` finds what both add.

    Args:
        comparer: The memory, and the model that says what is the same.
        on_duplicate: What becomes of a procedure for whose task there is one already. "merge" makes one of both, under the id
            of the one that is there; "keep" adds it, and links the two by `also` in their metadata; "skip" does not add it.
            "merge" links, too, where the two contradict each other, where the merged one names what neither has, and where a
            person has approved one of them.

    Raises:
        BadInput: `on_duplicate` is none of the three.
        ReadOnlyMemory: The memory cannot be changed.
    """

    def __init__(self, comparer: Comparer, on_duplicate: OnDuplicate = "merge") -> None:
        if on_duplicate not in get_args(OnDuplicate):
            raise BadInput(
                f"on_duplicate={on_duplicate!r} cannot be used; it is one of {', '.join(get_args(OnDuplicate))}"
            )
        check_writable(comparer.memory)
        self._comparer = comparer
        self._memory = comparer.memory
        self._on_duplicate = on_duplicate
        self._line = SerialExecutor()
        """What is placed, one after another: each procedure is compared with all that were placed before it."""

    async def add(self, procedure: Procedure) -> Placed:
        """Add a procedure, or what is made of it and the one that is there for its task.

        A procedure whose id is in the memory, or was merged into another one there, is present: no model is asked.

        Raises:
            ModelFailure: The model refuses every call.
            MemoryFailure: The memory cannot be read or written.
        """
        verdicts: dict[str, Verdict] = {}
        while True:
            placed = await self._line.submit(partial(self._place, procedure, verdicts))
            if isinstance(placed, Placed):
                return placed
            for other in placed:
                verdict = await self._comparer.compare(
                    other, procedure, merge=self._on_duplicate == "merge"
                )
                verdicts[_key(other)] = verdict
                if verdict.same:
                    break

    async def update(
        self, name: str, change: Callable[[Procedure], Procedure | None]
    ) -> Procedure | None:
        """Change a procedure while no other one is written; return the changed one, None if nothing was changed.

        Args:
            name: Its id.
            change: Makes the changed procedure; None for no change.

        Raises:
            MemoryFailure: The memory cannot be read or written.
        """

        def changed() -> Procedure | None:
            known = self._memory.get(name)
            if known is None or change(known) is None:
                return None
            return changed_in(self._memory, known, lambda one: change(one) or one)

        return await self._line.submit(changed)

    def _place(
        self, procedure: Procedure, verdicts: Mapping[str, Verdict]
    ) -> Placed | list[Procedure]:
        """Place a procedure, or return those that it must be compared with first, nearest first.

        Args:
            procedure: The procedure that is added.
            verdicts: What is known of others, by their contents.
        """
        if known := self._memory.get(procedure.id):
            renewed = changed_in(self._memory, known, partial(renew, procedure=procedure))
            return _placed("present", renewed or known, verdicts)
        # A stale one is of an earlier version, and is not merged.
        rivals = [one for one in self._comparer.like(procedure) if not one.metadata.get("stale")]
        for other in rivals:
            if procedure.id in links_of(other):
                document = teachers_of(procedure)[0]
                changed = changed_in(self._memory, other, partial(taught_too, document=document))
                return _placed("present", changed or other, verdicts, other.id)
        for number, other in enumerate(rivals):
            verdict = verdicts.get(_key(other))
            if verdict is None:
                return [one for one in rivals[number:] if _key(one) not in verdicts]
            if verdict.same:
                return self._place_beside(other, procedure, verdicts) or self._place(
                    procedure, verdicts
                )
        self._write(procedure)
        return _placed("added", procedure, verdicts)

    def _place_beside(
        self, known: Procedure, procedure: Procedure, verdicts: Mapping[str, Verdict]
    ) -> Placed | None:
        """Merge a procedure with the one for the same task, link it to that one, or leave it out.

        None if another process has changed or deleted that one since it was read; nothing was done then.
        """
        verdict, content = verdicts[_key(known)], content_of(known)
        if self._on_duplicate == "skip":
            return _placed("skipped", known, verdicts, known.id, verdict)
        if self._on_duplicate == "merge" and (merged := verdict.merged):
            changed = changed_in(
                self._memory,
                known,
                lambda one: merge(one, procedure, merged) if content_of(one) == content else one,
            )
            if changed is None or procedure.id not in links_of(changed):
                return None
            return _placed("merged", changed, verdicts, known.id, verdict)
        # The new one first: a link to what was never stored would pass for one that was merged.
        linked = with_link(procedure, known)
        self._write(linked)
        changed_in(self._memory, known, partial(with_link, other=procedure))
        return _placed("linked", linked, verdicts, known.id, verdict)

    def _write(self, procedure: Procedure) -> None:
        report = self._memory.add([procedure])
        if report.failed:
            raise MemoryFailure(
                f"{self._memory.name} did not take {procedure.id}: {report.failed[0].reason}"
            )


def merge(kept: Procedure, other: Procedure, content: Content) -> Procedure:
    """The procedure in place of two, under the id of the one that is kept.

    It has the metadata of both, that of the one that is kept before that of the other, the votes for both, in `also` the id
    and the source of the other one, and the documents of both. If only the one that is kept is stale, the source of the other takes
    the place of its own, and its documents count no longer.
    """
    renewed = kept.metadata.get("stale") and not other.metadata.get("stale")
    first, second = (other, kept) if renewed else (kept, other)
    metadata = {**second.metadata, **first.metadata}
    if not first.metadata.get("stale"):
        metadata.pop("stale", None)
    votes = {
        name: sum(numbers)
        for name, *numbers in zip(("up", "down"), counts(kept), counts(other), strict=True)
    }
    if any(votes.values()):
        metadata[VOTES] = votes
    if isinstance(metadata.get("built"), dict) and content != content_of(first):
        metadata["built"] = _built(metadata["built"], (kept, other), content)
    also = [*links_of(kept), *links_of(other), other.id, second.source]
    metadata["also"] = [
        name for name in dict.fromkeys(also) if name and name not in {kept.id, first.source}
    ]
    merged = Procedure(
        input=content["input"],
        output=content["output"],
        steps=tuple(content["steps"]),
        id=kept.id,
        source=first.source,
        metadata=metadata,
    )
    if not built_of(merged):
        return merged
    return taught_by(
        merged,
        [*teachers_of(first), *([] if second.metadata.get("stale") else teachers_of(second))],
    )


def _built(
    built: Mapping[str, Any], originals: Sequence[Procedure], content: Content
) -> dict[str, Any]:
    """How a merged procedure was built: what was flagged in the two is flagged in its steps."""
    facts = [one.metadata.get("built") for one in originals]
    flags = [flag for fact in facts if isinstance(fact, dict) for flag in fact.get("flagged", [])]
    names = list(dict.fromkeys(str(name) for flag in flags for name in flag["names"]))
    found = [
        {"step": number, "names": mentioned}
        for number, step in enumerate(content["steps"], 1)
        if (mentioned := [name for name in names if mentions(step, name)])
    ]
    kept = {
        name: value
        for name, value in built.items()
        if name not in {"flagged", "verified", "missing"}
    }
    return {**kept, "flagged": found} if found else kept


def renew(known: Procedure, procedure: Procedure) -> Procedure:
    """What is there, with where else it comes from; a stale one has the source that teaches it now."""
    metadata, source = dict(known.metadata), known.source
    document, (first, *others) = teachers_of(procedure)[0], teachers_of(known)
    is_renewed = metadata.get("stale") or document["from"] == first["from"]
    if is_renewed:
        metadata.pop("stale", None)
        source = procedure.source or source
        if "built" in procedure.metadata and content_of(procedure) == content_of(known):
            metadata["built"] = procedure.metadata["built"]
    also = [*links_of(known), known.source if is_renewed else procedure.source]
    if also := [name for name in dict.fromkeys(also) if name and name != source]:
        metadata["also"] = also
    renewed = replace(known, metadata=metadata, source=source)
    if is_renewed and built_of(renewed):
        return taught_by(renewed, [{**document, "source": source}, *others])
    return taught_too(renewed, document)


def with_link(procedure: Procedure, other: Procedure) -> Procedure:
    """The procedure with the id of another one in `also`."""
    also = list(dict.fromkeys([*links_of(procedure), other.id]))
    return replace(procedure, metadata={**procedure.metadata, "also": also})


def similarity(one: Procedure, other: Procedure) -> float:
    """The share of the words of the shorter of two procedures that the other one has, too."""
    words, others = stems(one.text()), stems(other.text())
    return len(words & others) / min(len(words), len(others)) if words and others else 0.0


def check_writable(memory: ProcedureMemory) -> None:
    """Raise ReadOnlyMemory for a memory that cannot be changed."""
    if memory.read_only:
        raise ReadOnlyMemory(
            f"{memory.name} can be searched, not changed; copy it into a .db file with `stepcraft memory copy` first"
        )


def changed_in(
    memory: ProcedureMemory, known: Procedure, make: Callable[[Procedure], Procedure]
) -> Procedure | None:
    """Change a procedure of a memory; return it as it is now, None if it is there no more.

    Raises:
        MemoryFailure: It cannot be written.
    """
    try:
        return memory.update(known.id, make)
    except BadInput:
        return None


async def in_background(call: Callable[[], T]) -> T:
    """The result of a blocking call on a memory, made in a thread of the event loop's pool: starting one for each takes longer."""
    return await asyncio.to_thread(call)


def _placed(
    kind: Literal["added", "present", "merged", "linked", "skipped"],
    procedure: Procedure,
    verdicts: Mapping[str, Verdict],
    of: str = "",
    verdict: Verdict | None = None,
) -> Placed:
    usage, warnings = no_usage(), list[str]()
    for one in verdicts.values():
        usage = add_usage(usage, one.usage)
        warnings += one.warnings
    return Placed(
        kind, procedure, of, verdict or Verdict(same=False), tuple(dict.fromkeys(warnings)), usage
    )


def _key(procedure: Procedure) -> str:
    """Identifies a procedure with this content."""
    return json.dumps([procedure.id, content_of(procedure)])
