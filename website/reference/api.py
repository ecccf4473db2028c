"""The page of the Python API: every public name once, in groups; mkdocstrings adds the rest."""

from collections.abc import Iterator, Mapping
from importlib import import_module

from website.reference.schemas import graphs, settings_type

GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Graphs": (
        "Functions that build a compiled graph of LangGraph, and those that return it before it is "
        "compiled, so that nodes can be added and replaced ([nodes](../how-to/nodes.md)). "
        "[Results](results.md) lists what each graph takes and returns.",
        (
            "stepcraft.build_aag",
            "stepcraft.build_rat",
            "stepcraft.build_rpg",
            "stepcraft.build_chat",
            "stepcraft.aag_builder",
            "stepcraft.rat_builder",
            "stepcraft.rpg_builder",
            "stepcraft.get_graph",
            "stepcraft.build_extract",
        ),
    ),
    "Contexts": (
        "The settings of a run, a frozen pydantic model for each graph. [Settings](settings.md) "
        "describes every field, also those of the baselines and the papers' graphs.",
        (
            "stepcraft.AagContext",
            "stepcraft.RatContext",
            "stepcraft.RpgContext",
            "stepcraft.ChatContext",
            "stepcraft.ExtractContext",
        ),
    ),
    "In a graph or an agent of your own": (
        "See [embedding](../embedding.md).",
        (
            "stepcraft.as_tool",
            "stepcraft.memory_tools",
            "stepcraft.add_usage",
            "stepcraft.add_warnings",
            "stepcraft.Evidence",
            "stepcraft.Usage",
            "stepcraft.AagInput",
            "stepcraft.AagOutput",
            "stepcraft.RatInput",
            "stepcraft.RatOutput",
            "stepcraft.RpgInput",
            "stepcraft.RpgOutput",
        ),
    ),
    "Memories and sources": (
        "See [memory](../memory.md) and [sources](../how-to/sources.md).",
        (
            "stepcraft.open_memory",
            "stepcraft.ProcedureMemory",
            "stepcraft.Procedure",
            "stepcraft.Found",
            "stepcraft.AddReport",
            "stepcraft.compose",
            "stepcraft.open_source",
            "stepcraft.sources.open_corpus",
            "stepcraft.sources.CorpusRetriever",
        ),
    ),
    "Building memories": (
        "See [extraction](../extraction.md).",
        (
            "stepcraft.building.build_memory",
            "stepcraft.building.BuildReport",
            "stepcraft.building.list_documents",
        ),
    ),
    "Evaluations": (
        "See [evals](../evals.md).",
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
    "Reports, traces and servers": (
        "See [traces](../tracing.md) and [serving](../serving.md).",
        (
            "stepcraft.report.page",
            "stepcraft.anonymizer",
            "stepcraft.configure_tracing",
            "stepcraft.models.embeddings.WordLlamaEmbedder",
            "stepcraft.server.app.app",
            "stepcraft.server.auth.auth",
            "stepcraft.server.embeddings.embeddings",
        ),
    ),
    "Errors": (
        "Every error that the package raises on purpose derives from `StepcraftError`: those of a "
        "caller also from `ValueError`, those of a network from `ConnectionError`.",
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
            "stepcraft.NoAnswer",
            "stepcraft.RunStopped",
        ),
    ),
}

_RECORDS = {
    "AagInput",
    "AagOutput",
    "AddReport",
    "BuildReport",
    "Document",
    "Evidence",
    "Found",
    "Method",
    "OwnMethod",
    "RatInput",
    "RatOutput",
    "RpgInput",
    "RpgOutput",
    "Sample",
    "Summary",
    "Usage",
}
"""Classes whose fields are all shown, those without a docstring and the inherited ones, too."""


def page() -> str:
    """Return the Markdown of the page."""
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield "# Python API"
    yield ""
    yield "The public names of the package; what is not on this page may change without notice."
    yield ""
    contexts = {settings_type(graph).__name__: settings_type(graph) for graph in graphs().values()}
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
                links = [
                    f"[`{field}`](settings.md#{name}.{field})"
                    for field in contexts[name].model_fields
                ]
                yield f"Fields: {', '.join(links)}."
                yield ""


def resolve(identifier: str) -> object:
    """Return the object that a name stands for.

    Raises:
        AttributeError: There is none.
    """
    module, _, name = identifier.rpartition(".")
    return getattr(import_module(module), name)
