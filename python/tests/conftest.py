# SPDX-License-Identifier: Apache-2.0
import sys
from pathlib import Path

import hypothesis

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def pytest_configure(config):  # as crowdveil.wire does outside of tests
    config.addinivalue_line("filterwarnings", "ignore:Unexpected end-group tag:RuntimeWarning")


# The machine's speed is no property of the code; failures must come again.
hypothesis.settings.register_profile("crowdveil", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("crowdveil")
