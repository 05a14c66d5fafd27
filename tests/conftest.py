"""Settings every test shares."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No wall-clock assertions: the first example may compile a kernel. CI draws the same examples every time; a longer
# search is `HYPOTHESIS_PROFILE=thorough make pytest`.
_quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("default", max_examples=100, derandomize=bool(os.environ.get("CI")), **_quiet)
settings.register_profile("thorough", max_examples=5_000, **_quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
