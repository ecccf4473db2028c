"""What deploy/ starts, as far as it goes without containers: settings, servers and scripts."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from click.testing import CliRunner
from langgraph_cli.cli import cli as langgraph
from typer.testing import CliRunner as StepcraftRunner

from stepcraft.cli import app
from stepcraft.errors import BadInput
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.weaviate.url import parse_url
from tests.servers.weaviate_server import WeaviateServer

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
JOB: dict[str, Any] = SERVICES.pop("ingest")
STORES = frozenset({"postgres", "redis", "weaviate"})
KEY = "0123456789abcdef-key"


def test_nothing_is_published_but_the_api_on_loopback() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:${API_PORT:-8123}:8000"]}
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert all(SERVICES[name]["networks"] == ["inside"] for name in STORES)


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_every_service_is_watched_limited_and_started_again(service: Any) -> None:
    assert service["restart"] == "unless-stopped"
    assert service["healthcheck"]["test"]
    assert {*service["deploy"]["resources"]["limits"]} == {"cpus", "memory", "pids"}
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_servers_wait_until_the_stores_are_healthy() -> None:
    healthy = {"condition": "service_healthy"}
    for name, others in (("api", STORES), ("worker", STORES | {"api"})):
        assert SERVICES[name]["depends_on"] == dict.fromkeys(others, healthy)


def test_the_job_builds_the_corpus_that_is_searched(
    deployed_weaviate: WeaviateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = SERVICES["worker"]["environment"]
    assert JOB["environment"].items() <= environment.items()
    assert (JOB["profiles"], JOB["restart"], JOB["secrets"]) == (
        ["ingest"],
        "no",
        SERVICES["worker"]["secrets"],
    )
    program, *arguments, target = JOB["command"]
    assert program == "stepcraft"
    assert target == "${STEPCRAFT_SOURCE:-weaviate://weaviate:8080/Docs}"
    monkeypatch.setenv("WEAVIATE_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tea.md").write_text("# Tea\n\nSteep it for two minutes.\n")
    url = deployed_weaviate.url("Docs")
    for read in (1, 0):
        done = StepcraftRunner().invoke(app, [*arguments, url])
        assert f"1 files, {read} read" in done.stdout
    assert (
        "(docs/tea.md:3)" in StepcraftRunner().invoke(app, ["source", "check", url, "tea"]).stdout
    )


def test_secrets_come_from_files_alone() -> None:
    for name, secret in COMPOSE["secrets"].items():
        assert secret["file"] == f"./secrets/{name}"
    names = {name for service in SERVICES.values() for name in service.get("environment", {})}
    assert {name for name in names if re.search("KEY$|PASSWORD$|TOKEN|URI$", name)} <= {"REDIS_URI"}
    left_out = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert {"**/.env", "deploy/secrets"} <= {*left_out}
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text("utf-8").split()


def test_every_variable_is_one_that_is_read() -> None:
    import langgraph_api  # noqa: PLC0415 - read, not used

    folder = Path(langgraph_api.__file__).parent
    server = folder / "config/__init__.py", folder / "queue_entrypoint.py"
    texts = [path.read_text("utf-8") for path in (*server, *(ROOT / "stepcraft").rglob("*.py"))]
    read = {name for text in texts for name in re.findall(r'"([A-Z][A-Z0-9_]+)"', text)}
    langsmith = {"LANGSMITH_TRACING", "LANGSMITH_PROJECT", "LANGSMITH_API_KEY"}
    variables = {*SERVICES["api"]["environment"], *SERVICES["worker"]["environment"]}
    variables.update(SERVICES["api"]["secrets"])
    assert variables - read - langsmith == {"OPENAI_API_KEY"}


def test_every_variable_of_the_example_reaches_the_servers() -> None:
    for service in (SERVICES["api"], SERVICES["worker"], JOB):
        assert service["env_file"] == [{"path": ".env", "required": False}]
        settings = {*service["environment"], *service["secrets"]}
        assert not settings & {"STEPCRAFT_ACCESS", "STEPCRAFT_REMEMBER", "OPENAI_BASE_URL"}
    assert "environment" not in COMPOSE["x-server"]


def test_the_job_reads_no_folder_that_nobody_named() -> None:
    (volume,) = JOB["volumes"]
    folder = volume.removeprefix("${DOCS:-").partition("}")[0]
    assert not (DEPLOY / folder).exists()


def test_weaviate_is_sent_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = SERVICES["worker"]["environment"]
    monkeypatch.setenv("STEPCRAFT_KEY_HOSTS", environment["STEPCRAFT_KEY_HOSTS"])
    monkeypatch.setenv("WEAVIATE_API_KEY", "k")
    memory = environment["STEPCRAFT_MEMORY"].removeprefix("${STEPCRAFT_MEMORY:-")
    address = parse_url(memory.removesuffix("}"))
    place = (address.host in SERVICES, address.port, address.grpc_port, address.key())
    assert place == (True, 8080, 50051, "k")


def test_the_image_is_built_as_the_deployment_expects(tmp_path: Path) -> None:
    file = tmp_path / "Dockerfile"
    done = CliRunner().invoke(
        langgraph, ["dockerfile", str(file), "--config", str(ROOT / "langgraph.json")]
    )
    assert done.exit_code == 0, done.output
    text = file.read_text("utf-8")
    assert re.match(r"FROM langchain/langgraph-(api|server):", text)
    assert "uv pip install --system --no-cache-dir -c /api/constraints.txt -e ." in text
    assert "ENTRYPOINT" not in text  # that of the base image is the command of the service
    graphs = re.findall(r"^ENV LANGSERVE_GRAPHS='(.+)'$", text, re.MULTILINE)
    assert {*json.loads(graphs[0])} == {
        *json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"]
    }


def test_the_health_check_of_the_server(langgraph_server: str) -> None:
    for name in ("api", "worker"):
        assert SERVICES[name]["environment"]["PORT"] == "8000"
        program, *arguments = SERVICES[name]["healthcheck"]["test"][1:]
        assert program == "python"
        for base, status in ((langgraph_server, 0), ("http://127.0.0.1:1", 1)):
            asking = [part.replace("http://127.0.0.1:8000", base) for part in arguments]
            assert asking != arguments
            command = [sys.executable, *asking]
            done = subprocess.run(command, stderr=subprocess.DEVNULL, timeout=30, check=False)
            assert done.returncode == status


def with_secrets(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "SECRETS_FOLDER": str(folder), **variables}
    return subprocess.run(
        ["/bin/sh", str(DEPLOY / "with-secrets.sh"), *command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=30,
        check=False,
    )


def test_files_become_variables_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "OPENAI_API_KEY").write_text("a 'key' $HOME `id`\n")
    (tmp_path / "EMPTY_KEY").write_text("")
    (tmp_path / "FOLDER").mkdir()
    code = "import json, os, sys; print(json.dumps([dict(os.environ), sys.argv[1:]])); sys.exit(3)"
    done = with_secrets(tmp_path, sys.executable, "-c", code, "two words", EMPTY_KEY="set")
    assert (done.returncode, done.stderr) == (3, "")
    environment, arguments = json.loads(done.stdout)
    assert environment["OPENAI_API_KEY"] == "a 'key' $HOME `id`"
    assert environment["EMPTY_KEY"] == "set"
    assert "FOLDER" not in environment
    assert arguments == ["two words"]


def test_a_secret_that_is_also_a_variable_is_refused(tmp_path: Path) -> None:
    (tmp_path / "OPENAI_API_KEY").write_text("of the file")
    done = with_secrets(tmp_path, "env", OPENAI_API_KEY="of the environment")
    assert (done.returncode, done.stdout) == (64, "")
    assert "OPENAI_API_KEY is set in the environment and as a secret" in done.stderr
    assert "of the file" not in done.stderr
    assert "of the environment" not in done.stderr


def test_secrets_are_made_once(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    command = ["/bin/sh", str(DEPLOY / "make-secrets.sh"), str(folder)]
    subprocess.run(command, stdout=subprocess.DEVNULL, timeout=30, check=True)
    secrets = {file.name: file.read_text("utf-8") for file in folder.iterdir()}
    assert secrets.keys() == COMPOSE["secrets"].keys()
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    password, postgres = secrets["POSTGRES_PASSWORD"], SERVICES["postgres"]["environment"]
    assert re.fullmatch("[0-9a-f]{48}", password)
    address = f"{postgres['POSTGRES_USER']}:{password}@postgres:5432/{postgres['POSTGRES_DB']}"
    assert secrets["DATABASE_URI"] == f"postgres://{address}?sslmode=disable"
    assert secrets["WEAVIATE_API_KEY"] not in ("", password)
    assert subprocess.check_output(command) == b""
    assert {file.name: file.read_text("utf-8") for file in folder.iterdir()} == secrets


@pytest.fixture(scope="module")
def deployed_weaviate(
    tmp_path_factory: pytest.TempPathFactory, weaviate_folder: Path
) -> Iterator[WeaviateServer]:
    """A real Weaviate with the environment that its service has, its key from a file."""
    folder = tmp_path_factory.mktemp("secrets")
    (source,) = SERVICES["weaviate"]["secrets"]
    (folder / source["target"]).write_text(KEY)
    settings = {**SERVICES["weaviate"]["environment"]}
    del settings["PERSISTENCE_DATA_PATH"]
    lines = with_secrets(folder, "env", **settings).stdout.splitlines()
    environment = dict(line.split("=", 1) for line in lines)
    wanted = {name: environment[name] for name in [*settings, source["target"]]}
    with WeaviateServer(tmp_path_factory.mktemp("deployed"), wanted) as server:
        yield server


def test_weaviate_is_ready_without_a_key_and_answers_nothing_else(
    deployed_weaviate: WeaviateServer,
) -> None:
    base = f"http://127.0.0.1:{deployed_weaviate.port}/v1"
    with urlopen(f"{base}/.well-known/ready", timeout=5) as reply:
        assert reply.status == 200
    for path in ("meta", "schema", "objects"):
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{base}/{path}", timeout=5)
        assert refused.value.code == 401
        refused.value.close()


def test_the_key_goes_without_tls_only_to_hosts_that_are_named(
    deployed_weaviate: WeaviateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This leads here and is not known to, as the name of a container's neighbour.
    url = deployed_weaviate.url("Keys").replace("127.0.0.1", "0.0.0.0")
    monkeypatch.setenv("WEAVIATE_API_KEY", KEY)
    with pytest.raises(
        BadInput, match=r"in the clear to 0\.0\.0\.0; .+ or add the host to STEPCRAFT_KEY_HOSTS"
    ):
        open_memory(url)
    monkeypatch.setenv("STEPCRAFT_KEY_HOSTS", "weaviate, 0.0.0.0")
    with open_memory(url) as memory:
        assert memory.count() == 0


def test_a_collection_is_replaced_while_it_is_searched(
    deployed_weaviate: WeaviateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Follow the steps of docs/how-to/weaviate.md."""
    import weaviate  # noqa: PLC0415 - takes a second
    from weaviate.auth import Auth  # noqa: PLC0415

    monkeypatch.setenv("WEAVIATE_API_KEY", KEY)
    old, new, alias = (
        deployed_weaviate.url(name) for name in ("ProceduresOld", "ProceduresNew", "Procedures")
    )

    def stepcraft(*arguments: str) -> str:
        done = StepcraftRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    stepcraft("memory", "copy", "", old)
    with weaviate.connect_to_local(
        "127.0.0.1",
        deployed_weaviate.port,
        deployed_weaviate.grpc_port,
        auth_credentials=Auth.api_key(KEY),
        skip_init_checks=True,
    ) as client:
        client.alias.create(alias_name="Procedures", target_collection="ProceduresOld")
        with open_memory(alias, create=False) as served:
            assert served.count() == 212
            stepcraft("memory", "copy", old, new)
            late = Procedure(input="an oven", output="bake a bread", steps=("Bake it.",))
            served.add([late])
            assert "1 added, 212 present" in stepcraft("memory", "copy", old, new)
            client.alias.update(alias_name="Procedures", new_target_collection="ProceduresNew")
            client.collections.delete("ProceduresOld")
            assert served.count() == 213
            assert served.search("bake a bread", 1)[0].procedure.id == late.id
