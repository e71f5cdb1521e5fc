/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/sandbox: the parts of the sandbox; each reports its result. */
#ifndef CV_SANDBOX_PARTS_H
#define CV_SANDBOX_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/sandbox/needs.h"

/* A sanitizer reads /proc, runs a symbolizer and traces its own process for leaks, so a sanitizer build cannot be
 * sandboxed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CV_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CV_SANITIZED 1
#endif
#endif
#ifndef CV_SANITIZED
#define CV_SANITIZED 0
#endif

struct cv_sandbox_part {
  bool on;
  char text[640]; /* what is restricted, or why the part is off */
};

/* ---- privileges.c ---- */

/* Implements cv_sandbox_become(); `drops` also empties the bounding set, which only root may do. */
CV_MUST_USE enum cv_err cv_sandbox_change_user(const char *name, bool drops, struct cv_why *why);
/* Disables core dumps: sets the limit and the flag. */
void cv_sandbox_core_dumps(struct cv_sandbox_part *ret);
/*
 * Keeps memory out of swap. Locks all present and future memory if the limit on locked memory is unlimited or can be
 * raised; otherwise locks keys only, because locking everything would exhaust the limit.
 */
void cv_sandbox_swap(struct cv_sandbox_part *ret);
/* Empties all capability sets, and the bounding set as far as the process may. */
void cv_sandbox_capabilities(struct cv_sandbox_part *ret);
/* Sets no_new_privs: executing a set-user-id program grants no privileges. */
void cv_sandbox_no_new_privileges(struct cv_sandbox_part *ret);

/* ---- landlock.c ---- */

/* Access rights that are denied unless a rule grants them. */
struct cv_landlock_rights {
  uint64_t fs, net, scope;
};

/* All rights of an ABI version, up to the newest that this file defines. Pure. */
struct cv_landlock_rights cv_landlock_rights(unsigned abi);
/* `abi_most` is UINT_MAX, or in a test an older kernel's ABI. The part is off if other threads already run. */
void cv_sandbox_landlock(const struct cv_sandbox_needs *needs, unsigned abi_most, struct cv_sandbox_part *ret);

/* ---- seccomp.c ---- */

/*
 * An allow-list of system calls, for all threads. Other calls fail with ENOSYS, as on an older kernel, so that
 * libraries fall back. Calls that only an attacker would make (executing a program, accessing another process,
 * mounting, tracing) kill the process, and the kernel logs them.
 */
void cv_sandbox_seccomp(const struct cv_sandbox_needs *needs, struct cv_sandbox_part *ret);

#endif
