# SPDX-License-Identifier: Apache-2.0
"""A second implementation of the parties, written only from the .proto files and docs/protocol.md."""
