# SPDX-License-Identifier: Apache-2.0
"""Parties as tests need them, on top of the package crowdveil: hostile ones, and ones that show every message."""
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[3] / folder) for folder in ("python", "tests")]
