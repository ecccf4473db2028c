"""The page of the Python API: every public name once, in groups; mkdocstrings fills in signatures and docstrings."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module

from website.reference.schemas import context_class, graphs

GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Graphs": (
        "Functions that build a compiled graph of LangGraph. Invoke and stream it as any other: [results](results.md) lists "
        "what each takes and returns.",
        (
            "stepcraft.build_aag",
            "stepcraft.build_rat",
            "stepcraft.build_rpg",
            "stepcraft.build_chat",
            "stepcraft.build_extract",
            "stepcraft.build_duplicates",
            "stepcraft.get_graph",
        ),
    ),
    "Baselines": (
        "The methods that the others are compared with, built as they are.",
        (
            "stepcraft.graphs.baselines.build_direct",
            "stepcraft.graphs.baselines.build_cot",
            "stepcraft.graphs.baselines.build_rag",
            "stepcraft.graphs.baselines.build_few_shot",
            "stepcraft.graphs.baselines.build_react",
        ),
    ),
    "Contexts": (
        "The settings of a run, a frozen dataclass for each graph. [Settings](settings.md) describes every field.",
        (
            "stepcraft.AagContext",
            "stepcraft.RatContext",
            "stepcraft.RpgContext",
            "stepcraft.ChatContext",
            "stepcraft.ExtractContext",
            "stepcraft.DuplicatesContext",
            "stepcraft.graphs.baselines.DirectContext",
            "stepcraft.graphs.baselines.CotContext",
            "stepcraft.graphs.baselines.RagContext",
            "stepcraft.graphs.baselines.FewShotContext",
            "stepcraft.graphs.baselines.ReactContext",
        ),
    ),
    "In a graph or an agent of your own": (
        "What puts a graph into another: see [embedding](../embedding.md).",
        (
            "stepcraft.as_node",
            "stepcraft.as_tool",
            "stepcraft.memory_tools",
            "stepcraft.MergedResults",
            "stepcraft.add_answer",
            "stepcraft.add_usage",
            "stepcraft.add_warnings",
            "stepcraft.merge_evidence",
            "stepcraft.Evidence",
            "stepcraft.Usage",
        ),
    ),
    "Memories": (
        "Procedures, and where they are kept: see [memory](../memory.md).",
        (
            "stepcraft.open_memory",
            "stepcraft.ProcedureMemory",
            "stepcraft.Procedure",
            "stepcraft.Found",
            "stepcraft.AddReport",
            "stepcraft.compose",
        ),
    ),
    "Sources": (
        "Sources of evidence: see [RAT](../rat.md).",
        ("stepcraft.open_source", "stepcraft.sources.open_corpus", "stepcraft.sources.CorpusRetriever"),
    ),
    "Building memories": (
        "What fills a memory from documents: see [extraction](../extraction.md).",
        (
            "stepcraft.building.build_memory",
            "stepcraft.building.BuildReport",
            "stepcraft.building.Document",
            "stepcraft.building.list_documents",
        ),
    ),
    "Evaluations": (
        "What measures methods on questions: see [evals](../evals.md).",
        (
            "stepcraft.evals.samples.read_samples",
            "stepcraft.evals.samples.Sample",
            "stepcraft.evals.methods.read_methods",
            "stepcraft.evals.methods.Method",
            "stepcraft.evals.methods.OwnMethod",
            "stepcraft.evals.evaluate.evaluate",
            "stepcraft.evals.summary.summarise",
            "stepcraft.evals.summary.Summary",
            "stepcraft.evals.reports.markdown.markdown",
        ),
    ),
    "Reports, traces and embeddings": (
        "What pages, [traces](../tracing.md) and a [server's store](../serving.md) take from the package.",
        (
            "stepcraft.report.page",
            "stepcraft.secrets.redacted",
            "stepcraft.models.embeddings.WordLlamaEmbedder",
        ),
    ),
    "Server": (
        "What runs may name ([security](../security.md)), and the objects that a `langgraph.json` names: see "
        "[serving](../serving.md) and [access](../access.md).",
        (
            "stepcraft.policy.Policy",
            "stepcraft.server.app.app",
            "stepcraft.server.auth.auth",
            "stepcraft.server.embeddings.embeddings",
        ),
    ),
    "Errors": (
        "Every error that the package raises on purpose derives from `StepcraftError`. [Messages](messages.md) lists their texts.",
        (
            "stepcraft.StepcraftError",
            "stepcraft.BadInput",
            "stepcraft.ModelUnknown",
            "stepcraft.MemoryFailure",
            "stepcraft.ReadOnlyMemory",
            "stepcraft.AddStopped",
            "stepcraft.SourceFailure",
            "stepcraft.FetchFailed",
            "stepcraft.FetchRefused",
            "stepcraft.ModelFailure",
            "stepcraft.UnreadableReply",
            "stepcraft.LimitsFailure",
            "stepcraft.NoAnswer",
            "stepcraft.RunStopped",
            "stepcraft.SandboxFailure",
        ),
    ),
}

_RECORDS = {
    "AddReport",
    "BuildReport",
    "Document",
    "Evidence",
    "Found",
    "MergedResults",
    "Method",
    "OwnMethod",
    "Sample",
    "Summary",
    "Usage",
}
"""Classes whose fields are all shown, those without a docstring and the inherited ones included."""


def page() -> str:
    """The Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield "# Python API"
    yield ""
    yield "This page lists the public names of the package for those who call it from Python, with their signatures and"
    yield "docstrings. What is not on it may change without notice. `import stepcraft` does not load LangGraph; a name is loaded"
    yield "when it is first used."
    yield ""
    contexts = {context_class(graph).__name__: context_class(graph) for graph in graphs().values()}
    for title, (about, names) in GROUPS.items():
        yield f"## {title}"
        yield ""
        yield about
        yield ""
        for identifier in names:
            name = identifier.rpartition(".")[2]
            yield f"::: {identifier}"
            yield "    options:"
            yield "      show_root_full_path: true"
            if name in contexts:
                yield "      separate_signature: false"
                yield "      show_signature: false"
                yield "      members: false"
            elif name in _RECORDS:
                yield "      show_if_no_docstring: true"
                yield "      inherited_members: true"
                yield '      filters: ["!^_"]'
            yield ""
            if name in contexts:
                own = ", ".join(
                    f"[`{one.name}`](settings.md#{name}.{one.name})" for one in fields(contexts[name])
                )
                yield f"Fields: {own}."
                yield ""


def resolve(identifier: str) -> object:
    """The object that a name stands for.

    Raises:
        AttributeError: There is none.
    """
    module, _, name = identifier.rpartition(".")
    return getattr(import_module(module), name)
