"""What is set up: environment variables, model, embeddings, memory, source, traces, sandbox, what a run may name, users."""

import difflib
import json
import os
import re
import shutil
import time
from functools import partial
from itertools import islice
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langsmith.run_helpers import tracing_context
from langsmith.utils import get_api_url, get_env_var

from stepcraft.access import VARIABLE as ACCESS_VARIABLE
from stepcraft.access import access
from stepcraft.cli.doctor._finding import Finding, described
from stepcraft.cli.doctor._installed import CONFIG
from stepcraft.concurrency import in_thread
from stepcraft.errors import BadInput, MemoryFailure, SandboxFailure, SourceFailure
from stepcraft.evals.prices import VARIABLE as PRICES_VARIABLE
from stepcraft.evals.prices import Prices
from stepcraft.evals.sandbox import Sandbox
from stepcraft.limits import VARIABLE as LIMITS_VARIABLE
from stepcraft.limits import allowance_of
from stepcraft.llm.call import status
from stepcraft.memory.open import BUNDLED, open_memory
from stepcraft.memory.open import VARIABLE as MEMORY_VARIABLE
from stepcraft.memory.protocol import ProcedureMemory, VectorMemory
from stepcraft.memory.urls import scheme_of
from stepcraft.memory.weaviate.url import KEY_HOSTS, parse_url
from stepcraft.models.embeddings import VARIABLE as EMBEDDINGS_VARIABLE
from stepcraft.models.embeddings import default_embeddings, resolve_embeddings
from stepcraft.models.resolve import EXTRACTIVE, resolve_model
from stepcraft.policy import VARIABLE as ALLOW_VARIABLE
from stepcraft.policy import Policy
from stepcraft.retrieval.target import SOURCE_VARIABLE
from stepcraft.sources.corpus.files import files_of, roots_of
from stepcraft.sources.open import open_source, references
from stepcraft.sources.web.retriever import ALLOW_HOSTS

MODEL_VARIABLE = "STEPCRAFT_MODEL"
VARIABLES = (
    MODEL_VARIABLE,
    MEMORY_VARIABLE,
    SOURCE_VARIABLE,
    EMBEDDINGS_VARIABLE,
    ALLOW_VARIABLE,
    ACCESS_VARIABLE,
    LIMITS_VARIABLE,
    ALLOW_HOSTS,
    KEY_HOSTS,
    PRICES_VARIABLE,
)
"""The environment variables that the package reads, but for those that a server or a provider shares with it."""

_MOST_FILES = 100_000


def check_settings() -> list[Finding]:
    env_file = _env_file()
    in_file = _names_in(env_file) if env_file else set[str]()
    found: list[Finding] = []
    for name in sorted({*os.environ, *in_file}):
        if not name.startswith("STEPCRAFT_") or name.startswith("STEPCRAFT_TEST_") or name in VARIABLES:
            continue
        near = difflib.get_close_matches(name, VARIABLES, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(VARIABLES)}"
        found.append(Finding("settings", "wrong", f"{name} is set, and nothing reads it", hint))
    Prices.of(None)
    given = [name for name in VARIABLES if os.environ.get(name)]
    if unread := sorted(name for name in in_file - {*os.environ} if name in VARIABLES or "_API_KEY" in name):
        found.append(
            Finding(
                "settings",
                "missing",
                f"{env_file} sets {', '.join(unread)}, which the server reads and the command line does not",
                f"set -a; . ./{env_file}; set +a",
            )
        )
    return found or [
        Finding("settings", "ok", f"set: {', '.join(given)}" if given else "no STEPCRAFT_ variable is set")
    ]


def _env_file() -> Path | None:
    """The file of environment variables that langgraph.json names, where both are there."""
    try:
        named = json.loads(CONFIG.read_text("utf-8")).get("env")
    except (OSError, ValueError, AttributeError):
        return None  # the check of the server says what is wrong with it
    return Path(named) if isinstance(named, str) and Path(named).is_file() else None


def _names_in(file: Path) -> set[str]:
    text = file.read_text("utf-8", "replace")
    return set(re.findall(r"^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w*)[ \t]*=[ \t]*[^\s#]", text, re.MULTILINE))


def check_model() -> list[Finding]:
    name = os.environ.get(MODEL_VARIABLE, "")
    if not name:
        keys = [key for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY") if os.environ.get(key)]
        return [
            Finding(
                "model",
                "missing",
                "no language model is named, so the keyless one puts answers together from what is found"
                + (f"; {keys[0]} is set and not used" if keys else ""),
                f"{MODEL_VARIABLE}=openai:gpt-5-mini, or another provider:model, and the key of the provider",
            )
        ]
    if name == EXTRACTIVE:
        return [Finding("model", "ok", f"{name}, which needs no key and is no language model")]
    model = _with_one_token(resolve_model(name))
    began = time.monotonic()
    try:
        with tracing_context(enabled=False):
            model.invoke("Reply with the word yes.")
    except Exception as error:
        if not _ran_out_of_tokens(error):
            return [Finding("model", "wrong", f"{name}: {described(error)}", _model_advice(error))]
    return [Finding("model", "ok", f"{name} answered in {time.monotonic() - began:.1f} s")]


def _with_one_token(model: BaseChatModel) -> BaseChatModel:
    """The same model, which writes one token; providers name this limit differently."""
    fields = type(model).model_fields
    limit = next((one for one in ("max_tokens", "max_output_tokens", "num_predict") if one in fields), None)
    return model.model_copy(update={limit: 1}) if limit else model


def _ran_out_of_tokens(error: Exception) -> bool:
    """Whether a model that thinks first refused to do so within one token, which shows that it can be used."""
    return status(error) == 400 and re.search(r"max_\w{0,40}tokens|output limit", str(error)) is not None


def _model_advice(error: Exception) -> str:
    match status(error):
        case 401 | 403:
            return "set the key of the provider to one that it knows, such as OPENAI_API_KEY"
        case 404:
            return f"check the name of the model in {MODEL_VARIABLE}, and OPENAI_BASE_URL if it is set"
        case 429:
            return "wait, or check the limits and the credit of the account"
        case None:
            return "see whether the provider can be reached from here, and check OPENAI_BASE_URL if it is set"
        case _:
            return "see what the provider says about it, and check the name of the model"


def check_embeddings() -> list[Finding]:
    name = default_embeddings()
    embedder = resolve_embeddings()
    if embedder:
        dimensions = len(embedder.embed_query("procedure"))
        return [Finding("embeddings", "ok", f"{name}, {dimensions} dimensions")]
    if os.environ.get(EMBEDDINGS_VARIABLE):
        return [Finding("embeddings", "ok", "none: memories and corpora are searched by words alone")]
    return [
        Finding(
            "embeddings",
            "missing",
            "wordllama is not installed, so that memories and corpora are searched by words alone",
            f"pip install wordllama, or set {EMBEDDINGS_VARIABLE} to a name for init_embeddings",
        )
    ]


def check_memory() -> list[Finding]:
    url = os.environ.get(MEMORY_VARIABLE, "").strip()
    if told := _unopened(url):
        return [Finding("memory", "ok", told)]
    with open_memory(url or None, create=False) as memory:
        count = memory.count()
        memory.search("procedure", 1)  # the vectors of the query and of the memory must fit
        found = f"{url or BUNDLED}: {count:,} procedures{_made_with(memory)}"
    if count:
        return [Finding("memory", "ok", found)]
    return [Finding("memory", "missing", found, f"stepcraft memory import FILE --memory {url}")]


def _made_with(memory: ProcedureMemory) -> str:
    if not isinstance(memory, VectorMemory):
        return ""
    made_with = memory.made_with
    return f", embeddings {made_with.embeddings}" + (
        f" of {made_with.dimensions} dimensions" if made_with.dimensions else ""
    )


def _unopened(url: str) -> str:
    """What can be said of a memory that is not opened here; "" if it can be opened.

    Raises:
        BadInput: the folder of an embedded server is not there.
    """
    scheme = scheme_of(url)
    if scheme == "store":
        return f"{url} is in the store of the LangGraph server; its runs open it"
    if scheme == "weaviate+embedded":
        folder = parse_url(url).folder
        if folder and not folder.is_dir():
            raise BadInput(f"{url}: there is no folder {folder}; import procedures first")
        return f"{url} is there; `stepcraft memory count` starts its server and opens it"
    return ""


def check_source() -> list[Finding]:
    spec = os.environ.get(SOURCE_VARIABLE, "").strip()
    if not spec:
        return [
            Finding(
                "source",
                "missing",
                "no source is named: served runs search the bundled procedures, the command line asks for --from",
                f"{SOURCE_VARIABLE}=corpus:PATH, web, memory, weaviate://… or package.module:retriever",
            )
        ]
    return [Finding("source", "ok", _tried(spec))]


def _tried(spec: str) -> str:
    """Open a source, and say what it is. The files of a corpus are listed and not read, which may take minutes.

    Raises:
        BadInput, MemoryFailure, SourceFailure: it cannot be used.
    """
    kind, _, rest = spec.partition(":")
    if kind == "corpus":
        problems: dict[str, str] = {}
        roots = roots_of(one.value for one in references(spec))
        count = sum(1 for _ in islice(files_of(roots, problems), _MOST_FILES))
        if not count:
            why = "; ".join(f"{path}: {problem}" for path, problem in problems.items())
            raise BadInput(f"{spec} holds no file that can be read{f' ({why})' if why else ''}")
        return f"{spec}: {count:,} files"
    if told := _unopened(rest if kind == "memory" else spec):
        return told
    opened = open_source(spec)
    if callable(close := getattr(opened, "close", None)):
        close()
    return f"{spec} can be opened"


def check_tracing() -> list[Finding]:
    if get_env_var("TRACING_V2", get_env_var("TRACING", "")) != "true":
        return [
            Finding(
                "tracing", "missing", "runs are not traced", "LANGSMITH_TRACING=true and LANGSMITH_API_KEY"
            )
        ]
    import requests

    endpoint, key = get_api_url(None), (get_env_var("API_KEY") or "").strip()
    project = get_env_var("PROJECT") or "default"
    if not key:
        return [
            Finding(
                "tracing",
                "wrong",
                f"LANGSMITH_TRACING is true, and there is no key for {endpoint}",
                "set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false",
            )
        ]
    try:
        reply = requests.get(
            f"{endpoint}/sessions", params={"limit": 1}, headers={"x-api-key": key}, timeout=(2, 4)
        )
    except requests.RequestException as error:
        return [
            Finding(
                "tracing",
                "wrong",
                f"LangSmith cannot be reached at {endpoint}: {described(error)}",
                "check LANGSMITH_ENDPOINT and the network; runs go on without traces",
            )
        ]
    if reply.status_code in (401, 403):
        return [
            Finding(
                "tracing",
                "wrong",
                f"{endpoint} refuses the key ({reply.status_code})",
                "set LANGSMITH_API_KEY to a key of the workspace, and LANGSMITH_ENDPOINT to its region",
            )
        ]
    if not reply.ok:
        advice = "check LANGSMITH_ENDPOINT"
        return [Finding("tracing", "wrong", f"{endpoint} answers {reply.status_code}", advice)]
    return [Finding("tracing", "ok", f"{endpoint}, project {project}")]


def check_sandbox() -> list[Finding]:
    is_installed = bool(shutil.which("bwrap"))
    try:
        return [Finding("sandbox", "ok", f"generated programs run in {Sandbox().probe()}")]
    except SandboxFailure as error:
        reason, _, advice = str(error).partition("; ")
        return [Finding("sandbox", "wrong" if is_installed else "missing", reason, advice)]


def check_allow() -> list[Finding]:
    policy = Policy.of(None)
    if not policy.entries:
        default = "the bundled procedures, the public web, any chat model, and what the environment names"
        return [Finding("allow", "ok", f"runs may name {default}; {ALLOW_VARIABLE} is not set")]
    advice = f"change {ALLOW_VARIABLE}, or provide what it names"
    looking = {entry: in_thread(partial(_entry_problem, entry, policy)) for entry in policy.entries}
    problems = [
        Finding("allow", "wrong", f"{entry}: {problem}", advice)
        for entry, looked in looking.items()
        if (problem := looked.result())
    ]
    return problems or [Finding("allow", "ok", f"runs may also name {'; '.join(policy.entries)}")]


def check_access() -> list[Finding]:
    found = access(refresh=True)
    if found is None:
        return [
            Finding(
                "access",
                "missing",
                f"{ACCESS_VARIABLE} is not set: a server lets everybody in",
                "docs/access.md, before others reach the server",
            )
        ]
    for rules in found.groups.values():
        allowance_of("", rules)  # opens the database that limits are counted in
    users, groups = len(found.users), len(found.groups)
    return [Finding("access", "ok", f"users: {users}, groups: {groups}{', tokens' if found.jwt else ''}")]


def _entry_problem(entry: str, policy: Policy) -> str:
    """What is wrong with what an entry allows; "" if nothing is, or if it is a pattern that stands for anything."""
    name, _, spec = entry.partition("=")
    kind, _, rest = entry.partition(":")
    try:
        if name.strip() in policy.names:
            _tried(spec.strip())
        elif kind in ("corpus", "memory") and not scheme_of(rest):
            folder = Path(rest.partition("*")[0]).expanduser()
            place = folder if "*" not in rest or rest.partition("*")[0].endswith("/") else folder.parent
            if not place.exists():
                return f"there is no file or folder {place}"
        elif kind == "web" and "*" not in rest:
            _tried(entry)
        elif scheme_of(entry) == "weaviate" and "*" not in (host := rest.lstrip("/").partition("/")[0]):
            return _weaviate_problem(host, entry)
        elif kind == "model" and "*" not in (provider := rest.partition(":")[0]) and ":" in rest:
            return _provider_problem(provider)
    except (BadInput, MemoryFailure, SourceFailure) as error:
        return str(error)
    return ""


def _weaviate_problem(host: str, entry: str) -> str:
    from stepcraft.memory.weaviate.connection import unreachable

    query = entry.partition("?")[2]
    server = parse_url(f"weaviate://{host}/Any{f'?{query}' if query and '*' not in query else ''}").server
    reason = unreachable(server) if server else ""
    return f"the server {reason}" if reason else ""


def _provider_problem(provider: str) -> str:
    from langchain.chat_models import init_chat_model

    try:
        init_chat_model("model", model_provider=provider)
    except ImportError as error:
        return str(error)
    except Exception:
        return ""  # a key may be missing, which the provider's own models tell when they are used
    return ""
