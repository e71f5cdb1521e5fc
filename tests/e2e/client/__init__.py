# SPDX-License-Identifier: Apache-2.0
"""A second worker, written from the .proto files and docs/protocol.md alone."""
