# SPDX-License-Identifier: Apache-2.0
"""An intruder who controls a running program: makes system calls in its name with ptrace, as the machine's root may.
Only on x86-64. The program is stopped in a system call, and continues afterwards undisturbed."""
import ctypes
import errno
import os
import signal
import socket
from pathlib import Path

from support.address import HOST

from .daemon import wait_until

CALLS = {"write": 1, "close": 3, "socket": 41, "connect": 42, "execve": 59, "unlink": 87, "openat": 257}
AT_FDCWD = -100 & 0xFFFFFFFFFFFFFFFF
CONT, GETREGS, SETREGS, SINGLESTEP, SEIZE, INTERRUPT, DETACH = 7, 12, 13, 9, 0x4206, 0x4207, 17
RED_ZONE = 512  # below the stack pointer, more than a function keeps there

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es "
        "fs gs").split()]


def ptrace(request, pid, data=None):
    if libc.ptrace(request, pid, None, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace {request:#x}: {os.strerror(code)}")


class Died(Exception):
    """The call ended the program; `signal` is the signal that killed it."""

    def __init__(self, signal):
        super().__init__(f"died of signal {signal}")
        self.signal = signal


class Intruder:
    """`with Intruder(pid) as intruder: intruder.open(path)`. Results are as in C: negative is -errno."""

    def __init__(self, pid):
        self.pid, self.gone = pid, False

    def __enter__(self):
        ptrace(SEIZE, self.pid)
        self.memory = open(f"/proc/{self.pid}/mem", "r+b", buffering=0)
        self.before = Registers()
        wait_until(self.is_met_in_a_call, "the program is met in a system call")
        return self

    def __exit__(self, *unused):
        self.memory.close()
        if not self.gone:
            ptrace(SETREGS, self.pid, ctypes.byref(self.before))
            ptrace(DETACH, self.pid)

    def is_met_in_a_call(self):
        """Stops the program where it waits in a system call; otherwise lets it continue."""
        state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state != "S":
            return False
        ptrace(INTERRUPT, self.pid)
        os.waitpid(self.pid, 0)
        ptrace(GETREGS, self.pid, ctypes.byref(self.before))
        if os.pread(self.memory.fileno(), 2, self.before.rip - 2) == b"\x0f\x05":
            return True
        ptrace(CONT, self.pid)
        return False

    def put(self, data):
        """The address of the bytes in the program."""
        at = (self.before.rsp - RED_ZONE - len(data)) & ~15
        os.pwrite(self.memory.fileno(), data, at)
        return at

    def call(self, name, *args):
        registers = Registers.from_buffer_copy(self.before)
        registers.rax, registers.orig_rax, registers.rip = CALLS[name], 0xFFFFFFFFFFFFFFFF, self.before.rip - 2
        for register, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), (*args, 0, 0, 0, 0, 0, 0)):
            setattr(registers, register, value)
        ptrace(SETREGS, self.pid, ctypes.byref(registers))
        ptrace(SINGLESTEP, self.pid)
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSIGNALED(status):
            self.gone = True
            raise Died(os.WTERMSIG(status))
        if os.WSTOPSIG(status) != signal.SIGTRAP:
            raise AssertionError(f"{name} in another program's name was interrupted, status {status:#x}")
        ptrace(GETREGS, self.pid, ctypes.byref(registers))
        return ctypes.c_int64(registers.rax).value

    def open(self, path, flags=os.O_RDONLY):
        """0 if it could be opened, else the errno's name."""
        fd = self.call("openat", AT_FDCWD, self.put(os.fsencode(path) + b"\0"), flags, 0o600)
        return self.told(fd, fd)

    def unlink(self, path):
        return self.told(self.call("unlink", self.put(os.fsencode(path) + b"\0")))

    def connect(self, port):
        """Connects to a port of this process's address; the errno's name if even a socket is refused."""
        fd = self.call("socket", 2, 1, 0)
        if fd < 0:
            return self.told(fd)
        address = b"\x02\x00" + port.to_bytes(2, "big") + socket.inet_aton(HOST) + bytes(8)
        return self.told(self.call("connect", fd, self.put(address), len(address)), fd)

    def told(self, result, fd=-1):
        if fd >= 0:
            self.call("close", fd)
        return 0 if result >= 0 else errno.errorcode[-result]
