/* SPDX-License-Identifier: Apache-2.0 */
/* Inside common/sandbox: the parts, each with what became of it. */
#ifndef CV_SANDBOX_PARTS_H
#define CV_SANDBOX_PARTS_H

#include <stdint.h>

#include "common/sandbox/sandbox.h"

/* A sanitizer reads /proc, runs a symbolizer, traces itself for leaks: a build with one cannot be shut in. */
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
  char text[640]; /* how far it goes, or why it is off */
};

/* ---- privileges.c ---- */

/* Sets the limit and the flag that keep memory from files. */
void cv_sandbox_core_dumps(struct cv_sandbox_part *ret);
/*
 * Keeps memory from being written to a swap device: all of it, of today and of later, where the limit on locked memory
 * is unlimited or can be made so; else keys only, as memory would run out at the limit.
 */
void cv_sandbox_swap(struct cv_sandbox_part *ret);
/* All capability sets empty, the bounding set as far as this process may. */
void cv_sandbox_capabilities(struct cv_sandbox_part *ret);
/* No program that is executed gains anything, set-user-id or not. */
void cv_sandbox_no_new_privileges(struct cv_sandbox_part *ret);

/* ---- landlock.c ---- */

/* Access rights that are denied unless a rule grants them. */
struct cv_landlock_rights {
  uint64_t fs, net, scope;
};

/* All rights that an ABI knows, up to the newest this file knows. Pure. */
struct cv_landlock_rights cv_landlock_rights(unsigned abi);
/* `abi_most` is UINT_MAX, or an older kernel's for a test. Off if other threads run already. */
void cv_sandbox_landlock(const struct cv_sandbox_needs *needs, unsigned abi_most, struct cv_sandbox_part *ret);

/* ---- seccomp.c ---- */

/*
 * An allow-list for all threads. What is not on it fails with ENOSYS, as on an older kernel, so that a library that
 * tries something new falls back. What only an intruder would call (another program, another process, mounting,
 * tracing) kills the process, and the kernel logs it.
 */
void cv_sandbox_seccomp(const struct cv_sandbox_needs *needs, struct cv_sandbox_part *ret);

/* ---- sandbox.c ---- */

/* True if the address has a name that must be looked up. */
bool cv_sandbox_looks_up(const struct cv_sandbox_needs *needs);

#endif
