"""What every test stands on: settings fixed before langgraph is imported, and the shared server."""

import os

_FOREIGN = ("STEPCRAFT_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
_OURS = "STEPCRAFT_TEST_"
for _name in [name for name in os.environ if name.startswith(_FOREIGN) and not name.startswith(_OURS)]:
    del os.environ[_name]
os.environ.pop("WEAVIATE_API_KEY", None)
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGSMITH_TEST_TRACKING"] = "false"

from collections.abc import Generator, Iterator  # noqa: E402 - the lines above must come first

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from tests.servers.langgraph_server import LangGraphServer  # noqa: E402
from tests.servers.weaviate_server import WeaviateServer, binary, found_weaviate  # noqa: E402

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

_SERVER = pytest.StashKey[LangGraphServer]()


@pytest.fixture(scope="session")
def langgraph_server(pytestconfig: pytest.Config) -> Iterator[str]:
    """The base URL of a real `langgraph dev` that serves this repository, started once a run."""
    with LangGraphServer() as server:
        pytestconfig.stash[_SERVER] = server
        yield server.url
        del pytestconfig.stash[_SERVER]


@pytest.fixture(scope="session")
def weaviate_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Weaviate without a collection, started once a run.

    It is the server at STEPCRAFT_TEST_WEAVIATE_URL, else the one that `scripts/weaviate install` built, else the
    client's embedded one. Without any the test skips; with CI set it fails.
    """
    with found_weaviate(tmp_path_factory.mktemp("weaviate")) as found:
        if found.startswith("weaviate://"):
            yield found
        else:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no Weaviate: {found}")


@pytest.fixture(scope="module")
def own_weaviate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WeaviateServer]:
    """A real Weaviate that a test may kill, freeze and start again."""
    if not binary().exists():
        reason = "no Weaviate that may be killed: run scripts/weaviate install"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    with WeaviateServer(tmp_path_factory.mktemp("own")) as server:
        yield server


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
