"""What every test stands on: settings fixed before langgraph is imported, and the shared server."""

import gc
import os

_FOREIGN = ("STEPCRAFT_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
_OURS = "STEPCRAFT_TEST_"
for _name in [
    name for name in os.environ if name.startswith(_FOREIGN) and not name.startswith(_OURS)
]:
    del os.environ[_name]
os.environ.pop("WEAVIATE_API_KEY", None)
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGSMITH_TEST_TRACKING"] = "false"

from collections.abc import Callable, Generator, Iterator  # noqa: E402 - the lines above must come first
from contextlib import ExitStack, contextmanager  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402
from urllib.parse import parse_qsl, urlsplit  # noqa: E402

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from tests.servers.chromium import chromium  # noqa: E402
from tests.servers.langgraph_server import LangGraphServer, models_from  # noqa: E402
from tests.servers.openai_server import OpenAIServer, keyless_reply  # noqa: E402
from tests.servers.postgres_server import found_postgres, own_database  # noqa: E402
from tests.servers.weaviate_server import (  # noqa: E402
    WeaviateServer,
    binary,
    collection_of,
    folder,
    found_weaviate,
    own_collection,
)

if TYPE_CHECKING:
    import weaviate

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

_SERVER = pytest.StashKey[LangGraphServer]()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name long texts by their beginnings: pytest hands a test's id to child processes, which take only so much."""
    return f"{val[:40]!r}-{len(val)}" if isinstance(val, str) and len(val) > 200 else None


@pytest.fixture(scope="session", autouse=True)
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the run's own, so that nothing of a user's is read, and nothing is left there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def model_server() -> Iterator[OpenAIServer]:
    """An OpenAI-compatible server that replies as the keyless model does."""
    with OpenAIServer(keyless_reply) as server:
        yield server


@pytest.fixture(scope="session")
def langgraph_server(pytestconfig: pytest.Config, model_server: OpenAIServer) -> Iterator[str]:
    """The base URL of a real `langgraph dev` that serves this repository, started once a run."""
    with LangGraphServer(settings=models_from(model_server)) as server:
        pytestconfig.stash[_SERVER] = server
        yield server.url
        del pytestconfig.stash[_SERVER]


@pytest.fixture(scope="session")
def weaviate_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Weaviate, started once a run.

    It is the server at STEPCRAFT_TEST_WEAVIATE_URL, else the one that `scripts/weaviate install` built. Without any the test skips; with CI set it fails.
    """
    with found_weaviate(tmp_path_factory.mktemp("weaviate")) as found:
        if not found.startswith("weaviate://"):
            _no_weaviate(found)
        yield found


@pytest.fixture(scope="session")
def weaviate_client(weaviate_url: str) -> Iterator["weaviate.WeaviateClient"]:
    """The plain client of that server."""
    import weaviate  # noqa: PLC0415 - takes a second, which tests without it need not wait

    parts = urlsplit(weaviate_url)
    grpc_port = int(dict(parse_qsl(parts.query)).get("grpc", "50051"))
    with weaviate.connect_to_local(
        parts.hostname, parts.port or 8080, grpc_port, skip_init_checks=True
    ) as client:
        yield client


@pytest.fixture
def new_collection(
    weaviate_url: str, weaviate_client: "weaviate.WeaviateClient"
) -> Iterator[Callable[..., str]]:
    """Gives URLs of new collections, with the options named; the server may be someone's own, so they are dropped."""
    with _new_collections(weaviate_url, weaviate_client) as make:
        yield make


@pytest.fixture(scope="module")
def new_module_collection(
    weaviate_url: str, weaviate_client: "weaviate.WeaviateClient"
) -> Iterator[Callable[..., str]]:
    """The same for collections that the tests of a module share."""
    with _new_collections(weaviate_url, weaviate_client) as make:
        yield make


@contextmanager
def _new_collections(
    weaviate_url: str, client: "weaviate.WeaviateClient"
) -> Iterator[Callable[..., str]]:
    made: list[str] = []

    def make(**options: str) -> str:
        made.append(own_collection(weaviate_url, **options))
        return made[-1]

    yield make
    for url in made:
        client.collections.delete(collection_of(url))


@pytest.fixture(scope="session")
def weaviate_folder() -> Path:
    """The folder of the server that `scripts/weaviate install` built."""
    if not binary().exists():
        _no_weaviate("run scripts/weaviate install")
    return folder()


@pytest.fixture(scope="module")
def own_weaviate(
    tmp_path_factory: pytest.TempPathFactory, weaviate_folder: Path
) -> Iterator[WeaviateServer]:
    """A real Weaviate that a test may kill, freeze and start again."""
    with WeaviateServer(tmp_path_factory.mktemp("own")) as server:
        yield server


def _no_weaviate(reason: str) -> None:
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no Weaviate: {reason}")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a real Postgres with pgvector, started once a run.

    It is the server at STEPCRAFT_TEST_POSTGRES_URL, else that of the wheel. Without any the test skips; with CI set it
    fails.
    """
    with found_postgres() as found:
        if not found.startswith("postgresql://"):
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no Postgres: {found}")
        yield found


@pytest.fixture(scope="module")
def new_database(postgres_url: str) -> Iterator[Callable[[], str]]:
    """Gives URLs of new databases, which are dropped when the tests of the module are done."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(own_database(postgres_url))


@pytest.fixture(scope="session")
def browser() -> str:
    """Where Chromium is installed. Without it the test skips; with CI set it fails."""
    found = chromium()
    if not found:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "no Chromium: install it with your packages"
        )
    return str(found)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that share a server run in one process, so that it starts once a run.

    Two processes start Weaviate servers: one for what every memory does and for what kills and
    freezes a server, one for the rest. A busy machine may need longer for more than their clients
    wait.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if item.get_closest_marker("xdist_group"):
            continue
        if "own_weaviate" in fixtures or "[weaviate" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("own_weaviate"))
        elif "weaviate_url" in fixtures:
            item.add_marker(pytest.mark.xdist_group("weaviate_url"))
        elif shared := fixtures & {"langgraph_server", "postgres_url", "tab"}:
            item.add_marker(pytest.mark.xdist_group(min(shared)))
        elif "postgres" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("postgres_url"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for while all is imported: nearly all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure of a test which talks to the server comes with the server's log."""
    report = yield
    if report.failed and "langgraph_server" in getattr(item, "fixturenames", ()):
        server = item.config.stash.get(_SERVER, None)
        report.sections.append(("langgraph dev", server.log[-20_000:] if server else "not running"))
    return report
