"""What compose.yaml starts is what the memories are tried on, and what deploy/ starts."""

from pathlib import Path

import yaml

from tests.servers.ports import VERSION

ROOT = Path(__file__).parents[1]
COMPOSE, DEPLOYED = (
    yaml.safe_load((ROOT / name).read_text("utf-8"))
    for name in ("compose.yaml", "deploy/compose.yaml")
)
SERVICE = COMPOSE["services"]["weaviate"]


def test_it_is_the_version_that_the_tests_run_on_and_the_deployment_has():
    assert SERVICE["image"].endswith(f"/weaviate:{VERSION}")
    assert DEPLOYED["services"]["weaviate"]["image"] == SERVICE["image"]


def test_a_server_without_keys_is_on_loopback_alone():
    assert SERVICE["environment"]["AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED"] == "true"
    assert SERVICE["ports"] == ["127.0.0.1:8080:8080", "127.0.0.1:50051:50051"]


def test_data_is_kept_in_the_volume_and_nothing_is_reported():
    (volume,) = COMPOSE["volumes"]
    assert SERVICE["volumes"] == [f"{volume}:{SERVICE['environment']['PERSISTENCE_DATA_PATH']}"]
    assert SERVICE["environment"]["DISABLE_TELEMETRY"] == "true"
