/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/crypto/secret.h"
#include "common/sandbox/parts.h"

enum { KEYS_BYTES_LEAST = 1 << 20, KEYS_BYTES_MOST = 16 << 20 };

#define SAY(part, ...) (void)snprintf((part)->text, sizeof((part)->text), __VA_ARGS__)

/* Returns true if the set is empty. Only root may empty it; with no_new_privs other users do not need to. */
static bool empty_bounding_set(void) {
  bool empty = true;
  for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
    (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    empty = empty && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 0;
  }
  return empty;
}

static enum cv_err change_to(const struct passwd *user, struct cv_why *why) {
  /* Groups while still root, the user last: in another order root's groups would stay. */
  if (initgroups(user->pw_name, user->pw_gid) != 0 || setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
      setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0) {
    return cv_fail(why, CV_ERR_DENIED, "user: cannot become %s: %s", user->pw_name, strerror(errno));
  }
  /* The change must be irrevocable. */
  if (setresuid(0, 0, 0) == 0) {
    return cv_fail(why, CV_ERR_STATE, "user: became %s, but could become root again", user->pw_name);
  }
  return CV_OK;
}

enum cv_err cv_sandbox_change_user(const char *name, bool drops, struct cv_why *why) {
  errno = 0;
  const struct passwd *user = getpwnam(name);
  if (user == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "user: unknown user %s; expected a user of this machine", name);
  }
  /* Already this user, such as in a container: nothing to change. */
  if (user->pw_uid == geteuid()) {
    return CV_OK;
  }
  if (geteuid() != 0) {
    return cv_fail(why, CV_ERR_DENIED, "user: cannot become %s; expected to be started as root or as %s", name, name);
  }
  if (drops) {
    (void)empty_bounding_set(); /* while still root */
  }
  return change_to(user, why);
}

void cv_sandbox_core_dumps(struct cv_sandbox_part *ret) {
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) {
    ret->on = false;
    SAY(ret, "%s", strerror(errno));
    return;
  }
  if (CV_SANITIZED) {
    ret->on = false;
    SAY(ret, "a limit of 0 bytes only: this is a sanitizer build");
    return;
  }
  /* Also keeps other processes of the same user from reading memory through ptrace or /proc. */
  ret->on = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
  SAY(ret, "%s", ret->on ? "none" : strerror(errno));
}

/* Locks memory for keys, at most half of the limit. */
static void lock_keys(unsigned long long limit_bytes, struct cv_sandbox_part *ret) {
  size_t bytes = KEYS_BYTES_MOST;
  while (bytes > limit_bytes / 2) {
    bytes /= 2;
  }
  ret->on = bytes >= KEYS_BYTES_LEAST && cv_secret_begin(bytes);
  if (ret->on) {
    SAY(ret, "no keys, but other memory: locked memory is limited to %llu KiB", limit_bytes / 1024);
  } else {
    SAY(ret, "locked memory is limited to %llu KiB; expected %d for the keys, or unlimited", limit_bytes / 1024,
        2 * KEYS_BYTES_LEAST / 1024);
  }
}

void cv_sandbox_swap(struct cv_sandbox_part *ret) {
  const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  struct rlimit limit = {0};
  ret->on = false;
  if (CV_SANITIZED) {
    SAY(ret, "this is a sanitizer build");
    return;
  }
  (void)setrlimit(RLIMIT_MEMLOCK, &unlimited); /* usually permitted for root */
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    lock_keys(limit.rlim_cur, ret);
    return;
  }
  /* ONFAULT: pages are locked when they are used, so that reserved memory costs nothing. */
  ret->on = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
  SAY(ret, "%s", ret->on ? "nothing" : strerror(errno));
}

void cv_sandbox_capabilities(struct cv_sandbox_part *ret) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
  bool bounded = empty_bounding_set();
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  ret->on = syscall(SYS_capset, &header, none) == 0;
  SAY(ret, "%s", !ret->on ? strerror(errno) : bounded ? "none" : "none; this user may not empty the bounding set");
}

void cv_sandbox_no_new_privileges(struct cv_sandbox_part *ret) {
  ret->on = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  SAY(ret, "%s", ret->on ? "none" : strerror(errno));
}
