# SPDX-License-Identifier: Apache-2.0
"""
The loopback address of this process of tests. Programs that it starts listen there: a port that one of them leaves for
a moment is not taken by another process's tests, nor by any connection, which comes from 127.0.0.1.
"""
import os
import socket


def of_process(pid):
    return f"127.{64 + (pid >> 16) % 64}.{pid >> 8 & 255}.{pid & 255}"


HOST = of_process(os.getpid())
ANY_PORT = f"{HOST}:0"


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
