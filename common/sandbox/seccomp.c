/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/sandbox/parts.h"

/* The kernel reads an int argument from the lower half of a register; the upper half must be ignored. */
#define INT_BITS UINT64_C(0xffffffff)

/* Allowed with any arguments. Listed by name, because not every architecture has all calls (open, for one). */
static const char *const allowed[] = {
    /* descriptors and files; Landlock restricts which files */
    "read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "fcntl", "fstat", "newfstatat", "stat",
    "lstat", "statx", "access", "faccessat", "faccessat2", "open", "openat", "readlink", "readlinkat", "getcwd",
    "unlink", "unlinkat", "ftruncate", "fallocate", "fsync", "fdatasync", "fchmod", "fchown", "fadvise64", "fstatfs",
    /* events and connections */
    "epoll_wait", "epoll_pwait", "epoll_ctl", "poll", "ppoll", "eventfd2", "pipe2", "accept", "accept4", "getsockname",
    "getpeername", "getsockopt", "setsockopt", "shutdown", "recvfrom", "recvmsg", "sendto", "sendmsg",
    /* threads and memory */
    "futex", "set_robust_list", "rseq", "sched_yield", "sched_getaffinity", "munmap", "mremap", "madvise", "brk",
    /* signals and time */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "restart_syscall", "clock_gettime", "clock_getres",
    "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    /* process and system information */
    "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "getrusage", "getrlimit", "uname",
    "sysinfo", "exit", "exit_group"};

/* For name resolution: several queries in one call, and the local addresses over netlink. */
static const char *const for_lookup[] = {"bind", "sendmmsg", "recvmmsg"};

/* No library that we link calls these, in any version. */
static const char *const deadly[] = {"execve",
                                     "execveat",
                                     "fork",
                                     "vfork",
                                     "ptrace",
                                     "process_vm_readv",
                                     "process_vm_writev",
                                     "mount",
                                     "umount2",
                                     "pivot_root",
                                     "chroot",
                                     "setns",
                                     "unshare",
                                     "bpf",
                                     "perf_event_open",
                                     "userfaultfd",
                                     "init_module",
                                     "finit_module",
                                     "delete_module",
                                     "kexec_load",
                                     "kexec_file_load",
                                     "reboot",
                                     "swapon",
                                     "swapoff",
                                     "add_key",
                                     "request_key",
                                     "keyctl",
                                     "open_by_handle_at",
                                     "iopl",
                                     "ioperm",
                                     "acct",
                                     "settimeofday",
                                     "clock_settime"};

/* A filter under construction; `error` is the first error. */
struct filter {
  scmp_filter_ctx context;
  int error;
  unsigned calls;
};

static void add(struct filter *filter, uint32_t action, const char *name, unsigned conditions,
                const struct scmp_arg_cmp *condition) {
  int call = seccomp_syscall_resolve_name(name);
  if (call < 0 || filter->error != 0) {
    return;
  }
  filter->error = -seccomp_rule_add_array(filter->context, action, call, conditions, condition);
}

static void allow(struct filter *filter, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    add(filter, SCMP_ACT_ALLOW, names[i], 0, NULL);
    filter->calls++;
  }
}

static void allow_if(struct filter *filter, const char *name, struct scmp_arg_cmp condition) {
  add(filter, SCMP_ACT_ALLOW, name, 1, &condition);
}

/* Allows creating threads but not processes. clone3 passes its flags in memory, where a filter cannot read them; it
 * is not allowed, so glibc falls back to clone. */
static void add_threads(struct filter *filter) {
  const struct scmp_arg_cmp process = SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0);
  allow_if(filter, "clone", SCMP_A0_64(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  add(filter, SCMP_ACT_KILL_PROCESS, "clone", 1, &process);
  allow_if(filter, "tgkill", SCMP_A0_64(SCMP_CMP_MASKED_EQ, INT_BITS, (scmp_datum_t)getpid()));
  filter->calls += 2;
}

/* Executable memory is allowed only if name resolution may load a module. */
static void add_memory(struct filter *filter, bool loads) {
  static const char *const both[] = {"mmap", "mprotect"};
  if (loads) {
    allow(filter, both, CV_COUNT(both));
    return;
  }
  for (size_t i = 0; i < CV_COUNT(both); i++) {
    allow_if(filter, both[i], SCMP_A2_64(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    filter->calls++;
  }
}

static void add_sockets(struct filter *filter, const struct cv_sandbox_needs *needs) {
  static const int families[] = {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK};
  static const char *const connect[] = {"connect"}, *const listen[] = {"listen"};
  bool looks_up = cv_sandbox_looks_up(needs);
  if (needs->listens) {
    allow(filter, listen, 1);
  }
  if (!cv_sandbox_dials(needs)) {
    return;
  }
  size_t n = looks_up ? CV_COUNT(families) : cv_sandbox_dials_here(needs) ? 3 : 2;
  for (size_t i = 0; i < n; i++) {
    allow_if(filter, "socket", SCMP_A0_64(SCMP_CMP_MASKED_EQ, INT_BITS, (scmp_datum_t)families[i]));
  }
  filter->calls++;
  allow(filter, connect, 1);
  if (looks_up) {
    allow(filter, for_lookup, CV_COUNT(for_lookup));
  }
}

/* Allows requests that read state, not those that set it; of ioctl only a few, since TIOCSTI types into a terminal. */
static void add_asking(struct filter *filter) {
  static const unsigned long requests[] = {FIONBIO, FIONREAD, TCGETS};
  for (size_t i = 0; i < CV_COUNT(requests); i++) {
    allow_if(filter, "ioctl", SCMP_A1_64(SCMP_CMP_MASKED_EQ, INT_BITS, requests[i]));
  }
  allow_if(filter, "prctl", SCMP_A0_64(SCMP_CMP_MASKED_EQ, INT_BITS, PR_SET_NAME));
  allow_if(filter, "prlimit64", SCMP_A2_64(SCMP_CMP_EQ, 0));
  filter->calls += 3;
}

static int load(struct filter *filter, const struct cv_sandbox_needs *needs) {
  filter->error = -seccomp_attr_set(filter->context, SCMP_FLTATR_CTL_TSYNC, 1);
  if (filter->error == 0) {
    filter->error = -seccomp_attr_set(filter->context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  }
  allow(filter, allowed, CV_COUNT(allowed));
  add_threads(filter);
  add_memory(filter, cv_sandbox_looks_up(needs));
  add_sockets(filter, needs);
  add_asking(filter);
  for (size_t i = 0; i < CV_COUNT(deadly); i++) {
    add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0, NULL);
  }
  return filter->error != 0 ? filter->error : -seccomp_load(filter->context);
}

void cv_sandbox_seccomp(const struct cv_sandbox_needs *needs, struct cv_sandbox_part *ret) {
  *ret = (struct cv_sandbox_part){0};
  if (CV_SANITIZED) {
    (void)snprintf(ret->text, sizeof(ret->text), "this is a sanitizer build");
    return;
  }
  struct filter filter = {.context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS))};
  int error = filter.context != NULL ? load(&filter, needs) : ENOMEM;
  if (filter.context != NULL) {
    seccomp_release(filter.context);
  }
  ret->on = error == 0;
  if (ret->on) {
    (void)snprintf(ret->text, sizeof(ret->text), "%u system calls, in every thread", filter.calls);
  } else {
    (void)snprintf(ret->text, sizeof(ret->text), "the filter was refused: %s", strerror(error));
  }
}
