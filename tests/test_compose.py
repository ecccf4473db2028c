"""What compose.yaml starts is what the memories are tried on."""

from pathlib import Path

import yaml

from tests.servers.ports import VERSION

COMPOSE = yaml.safe_load((Path(__file__).parents[1] / "compose.yaml").read_text(encoding="utf-8"))
SERVICE = COMPOSE["services"]["weaviate"]


def test_it_is_the_version_that_the_tests_run_on():
    assert SERVICE["image"].endswith(f"/weaviate:{VERSION}")


def test_a_server_without_keys_is_on_loopback_alone():
    assert SERVICE["environment"]["AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED"] == "true"
    assert SERVICE["ports"] == ["127.0.0.1:8080:8080", "127.0.0.1:50051:50051"]


def test_data_is_kept_in_the_volume_and_nothing_is_reported():
    (volume,) = COMPOSE["volumes"]
    assert SERVICE["volumes"] == [f"{volume}:{SERVICE['environment']['PERSISTENCE_DATA_PATH']}"]
    assert SERVICE["environment"]["DISABLE_TELEMETRY"] == "true"
