"""What the bundled procedures name exists in the installed packages."""

from importlib.metadata import version

import pytest

from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure


@pytest.fixture(scope="module")
def bundled() -> list[Procedure]:
    with open_memory(embeddings="none") as memory:
        return list(memory)


def test_no_bundled_procedure_names_the_agent_that_is_out_of_date(bundled: list[Procedure]) -> None:
    assert not [item.output for item in bundled if "create_react_agent" in item.text()]


def test_a_checked_procedure_names_installed_packages_with_a_version(
    bundled: list[Procedure],
) -> None:
    checked = [item.metadata["checked"] for item in bundled if "checked" in item.metadata]
    assert checked
    for packages in checked:
        assert packages
        for package, number in packages.items():
            assert version(package)
            assert number.replace(".", "").isdigit()
