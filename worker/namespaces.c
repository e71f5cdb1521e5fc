/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const unsigned long flags[CV_NAMESPACES_KINDS] = {
    [CV_NAMESPACES_PLAIN] = CLONE_NEWPID, [CV_NAMESPACES_USER] = CLONE_NEWPID | CLONE_NEWUSER};

pid_t cv_namespaces_fork(enum cv_namespaces kind) {
  /* Without the handlers that libraries have for fork(): libuv's would close descriptors by their former numbers. */
  return kind == CV_NAMESPACES_NONE ? _Fork()
                                    : (pid_t)syscall(SYS_clone, flags[kind] | SIGCHLD, NULL, NULL, NULL, NULL);
}

static enum cv_err put(const char *path, const char *text, struct cv_why *why) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  int error = errno;
  if (fd >= 0) {
    (void)close(fd);
  }
  return written ? CV_OK : cv_fail(why, CV_ERR_DENIED, "%s: %s", path, strerror(error));
}

/* The user keeps the number: files and sockets are its own as before. */
static enum cv_err map_user(uid_t user, gid_t group, struct cv_why *why) {
  char users[64], groups[64];
  (void)snprintf(users, sizeof(users), "%u %u 1", (unsigned)user, (unsigned)user);
  (void)snprintf(groups, sizeof(groups), "%u %u 1", (unsigned)group, (unsigned)group);
  CV_TRY(put("/proc/self/setgroups", "deny", why));
  CV_TRY(put("/proc/self/uid_map", users, why));
  return put("/proc/self/gid_map", groups, why);
}

static void show_own_processes(void) {
  /* Later mounts of the machine come in, none of these goes out. */
  if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0) {
    (void)mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  }
}

enum cv_err cv_namespaces_settle(enum cv_namespaces kind, uid_t user, gid_t group, struct cv_why *why) {
  if (kind == CV_NAMESPACES_USER) {
    /* The files of a process that may not be dumped belong to root. */
    (void)prctl(PR_SET_DUMPABLE, 1);
    enum cv_err err = map_user(user, group, why);
    (void)prctl(PR_SET_DUMPABLE, 0);
    CV_TRY(err);
  }
  if (kind != CV_NAMESPACES_NONE) {
    show_own_processes();
  }
  return CV_OK;
}
