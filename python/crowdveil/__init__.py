# SPDX-License-Identifier: Apache-2.0
"""
Crowdveil's parties in Python: a requester, a worker or gateway, a third-party with policies of your own, and readers of
results. docs/python.md has examples.
"""
from pathlib import Path as _Path

from .bandit import bandit_feedback, save_bandit_feedback
from .crew import Accept, Counts, Decline, UsedUp
from .errors import Damaged, Error, Lost, ProtocolError, Refused
from .model import (Accepted, Account, Choice, End, Export, Gold, NoiseGroup, Plan, Progress, Release, Result, Spec,
                    Standing, Statement, Status, Want)
from .policy import Estimate, Policy
from .requester import Requester
from .results import columns, curve, read_export, read_lab
from .thirdparty import ThirdParty
from .wire import GRID, Tls
from .worker import Gateway, Worker

__all__ = ["Accept", "Accepted", "Account", "bandit_feedback", "Choice", "columns", "Counts", "curve", "Damaged",
           "Decline", "End", "Error", "Estimate", "Export", "Gateway", "Gold", "GRID", "Lost", "NoiseGroup", "Plan",
           "Policy", "Progress", "ProtocolError", "read_export", "read_lab", "Refused", "Release", "Requester",
           "Result", "save_bandit_feedback", "Spec", "Standing", "Statement", "Status", "ThirdParty", "Tls", "UsedUp",
           "Want", "Worker"]

_version = _Path(__file__).with_name("version")
__version__ = _version.read_text().split()[-1] if _version.exists() else "of the source tree"
