"""Random input raises documented exceptions only, and takes little time; `benchmarks/fuzz.py` runs the same for longer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.security.targets import TARGETS, Target

FEW = settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_random_input_raises_what_is_documented(target: Target) -> None:
    FEW(given(target.examples)(target.check))()
