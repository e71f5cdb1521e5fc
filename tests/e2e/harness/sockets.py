# SPDX-License-Identifier: Apache-2.0
"""A program's TCP connections, as the kernel knows them."""
import os

ESTABLISHED = "01"


def rows_of(daemon):
    """Of its established connections in /proc/net/tcp, each split into words."""
    own = set()
    for number in os.listdir(f"/proc/{daemon.pid}/fd"):
        try:
            own.add(os.readlink(f"/proc/{daemon.pid}/fd/{number}"))
        except FileNotFoundError:
            continue
    with open(f"/proc/{daemon.pid}/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return [row for row in rows if f"socket:[{row[9]}]" in own and row[3] == ESTABLISHED]


def connections_of(daemon):
    """A name for each connection, which no later one has."""
    return {row[9] for row in rows_of(daemon)}


def unread_by(daemon):
    """Bytes that have arrived for it."""
    return sum(int(row[4].split(":")[1], 16) for row in rows_of(daemon))
