# SPDX-License-Identifier: Apache-2.0
"""Real programs in a temporary folder: certificates, configuration, starting, waiting for events, stopping."""
import client  # noqa: F401 - its folder is where the package crowdveil is found
