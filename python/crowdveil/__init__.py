# SPDX-License-Identifier: Apache-2.0
"""
Crowdveil's parties in Python: a requester, a worker or gateway, a third-party with policies of your own, and readers of
results. docs/python.md has examples.
"""
from .crew import Accept, Counts, Decline, UsedUp
from .errors import Damaged, Error, Lost, ProtocolError, Refused
from .model import (Accepted, Account, Choice, End, Export, Gold, NoiseGroup, Plan, Progress, Release, Result, Spec,
                    Standing, Statement, Status, Want)
from .policy import Estimate, Policy
from .requester import Requester
from .thirdparty import ThirdParty
from .wire import GRID, Tls
from .worker import Gateway, Worker

__all__ = ["Accept", "Accepted", "Account", "Choice", "Counts", "Damaged", "Decline", "End", "Error", "Estimate",
           "Export", "Gateway", "Gold", "GRID", "Lost", "NoiseGroup", "Plan", "Policy", "Progress", "ProtocolError",
           "Refused", "Release", "Requester", "Result", "Spec", "Standing", "Statement", "Status", "ThirdParty",
           "Tls", "UsedUp", "Want", "Worker"]
