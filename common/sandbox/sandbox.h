/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox of a daemon: another user, no capabilities, no core dumps, no swap, only the files that it still needs
 * (Landlock), only the system calls that it makes (seccomp). An attacker who takes over a daemon gets that daemon's
 * data only, not the files of another party on the same machine, even of the same user.
 *
 *   cv_sandbox_begin()    first of all, before a key is read
 *   ... listen, read certificates: may need root ...
 *   cv_sandbox_become()
 *   ... open the database and the admin socket, which belong to the configured user ...
 *   cv_sandbox_enter()    last, before the first thread: Landlock applies only to the calling thread
 *
 * The kernel's features are detected at run time. A part that is not available is reported; the daemon starts without
 * it unless the configuration says `require`.
 */
#ifndef CV_SANDBOX_H
#define CV_SANDBOX_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/config/config.h"
#include "common/sandbox/needs.h"

enum cv_sandbox_mode { CV_SANDBOX_ON, CV_SANDBOX_REQUIRE, CV_SANDBOX_OFF };
extern const char *const CV_SANDBOX_MODES[];

/* Two settings of every daemon. */
struct cv_sandbox_settings {
  int mode;   /* enum cv_sandbox_mode */
  char *user; /* NULL: do not change the user */
};

/* The rules for these settings; `at` is their offset in the daemon's struct. */
#define CV_SANDBOX_RULES(at)                                                                            \
  {.key = "sandbox",                                                                                    \
   .type = CV_CONFIG_WORD,                                                                              \
   .offset = (at) + offsetof(struct cv_sandbox_settings, mode),                                         \
   .choices = CV_SANDBOX_MODES,                                                                         \
   .fallback = "on",                                                                                    \
   .help = "drop privileges that are not needed; require: do not start if one cannot be dropped"},      \
  {                                                                                                     \
    .key = "user", .type = CV_CONFIG_TEXT, .offset = (at) + offsetof(struct cv_sandbox_settings, user), \
    .help = "user to switch to when started as root"                                                    \
  }

struct cv_sandbox_report {
  bool whole;      /* every part is on */
  char text[1000]; /* one line: the state of each part */
};

/* Disables core dumps and swapping. */
void cv_sandbox_begin(const struct cv_sandbox_settings *settings);
/*
 * Changes to the configured user and its groups, irrevocably, also if `sandbox` is off. CV_ERR_NOT_FOUND if the user
 * does not exist, CV_ERR_DENIED if the daemon runs neither as root nor as that user.
 */
CV_MUST_USE enum cv_err cv_sandbox_become(const struct cv_sandbox_settings *settings, struct cv_why *why);
/*
 * Enters all other parts, irrevocably, for all threads started later. CV_ERR_STATE if a required part is not available.
 */
CV_MUST_USE enum cv_err cv_sandbox_enter(const struct cv_sandbox_settings *settings,
                                         const struct cv_sandbox_needs *needs, struct cv_sandbox_report *ret,
                                         struct cv_why *why);

/* For a process that runs the operator's own programs, which no filter knows: no core dumps, no capabilities, no new
 * privileges. Irrevocable, also for the programs. */
void cv_sandbox_shed(void);

#endif
