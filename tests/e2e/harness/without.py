# SPDX-License-Identifier: Apache-2.0
"""python3 without.py CALL[,CALL...] PROGRAM ARGUMENT...: runs the program as on a kernel without these system calls."""
import ctypes
import errno
import os
import sys

ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def main():
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ALLOW))
    calls = [library.seccomp_syscall_resolve_name(name.encode()) for name in sys.argv[1].split(",")]
    taken = all(call >= 0 and not library.seccomp_rule_add(context, ERRNO | errno.ENOSYS, call, 0) for call in calls)
    if not taken or library.seccomp_load(context):
        sys.exit(f"without.py: {sys.argv[1]} cannot be taken away")
    os.execv(sys.argv[2], sys.argv[2:])


main()
