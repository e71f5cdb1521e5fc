# SPDX-License-Identifier: Apache-2.0
"""The hashes that both sides chain over releases and plans, so that they notice when their records differ."""
import hashlib
import struct
from collections.abc import Iterable
from typing import Any

NONE = bytes(32)


def chain_release(before: bytes, release: Any) -> bytes:
    """The hash after this release: a message, or a `Release`."""
    record = struct.pack("<QQIQqI", release.number, release.plan, release.arm, release.tokens, release.noisy_sum,
                         len(release.noise))
    record += b"".join(struct.pack("<dI", group.scale, group.count) for group in release.noise)
    record += b"\1" * release.last
    return hashlib.sha256(before + record).digest()


def chain_plan(before: bytes, number: int, wants: Iterable[tuple[int, ...]]) -> bytes:
    """The hash after this plan; a want is (arm, tokens) or (arm, tokens, opponent)."""
    wants = list(wants)
    record = struct.pack("<QI", number, len(wants)) + b"".join(struct.pack("<II", *want[:2]) for want in wants)
    opponents = [sum(want[2:]) for want in wants]
    if any(opponents):
        record += struct.pack(f"<{len(opponents)}I", *opponents)
    return hashlib.sha256(before + record).digest()
