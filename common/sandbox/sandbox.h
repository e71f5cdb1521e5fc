/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a daemon gives up once it has started: another user, its capabilities, core dumps, swap space, the file
 * system but for what it still needs (Landlock), the system calls it never makes (seccomp). Whoever takes a daemon over
 * then holds what that daemon holds, and not the files of another party on the same machine, even as the same user.
 *
 *   cv_sandbox_begin()    first of all, before a key is read
 *   ... listen, read certificates: what may need root ...
 *   cv_sandbox_become()
 *   ... open the database, the admin socket: what is to belong to the user ...
 *   cv_sandbox_enter()    last, before the first thread; Landlock would bind only the thread that asks for it
 *
 * What this kernel can is found out at run time. A part that cannot be had is reported and does not keep the daemon
 * from starting, unless the configuration says `require`.
 */
#ifndef CV_SANDBOX_H
#define CV_SANDBOX_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/config/config.h"

enum cv_sandbox_mode { CV_SANDBOX_ON, CV_SANDBOX_REQUIRE, CV_SANDBOX_OFF };
extern const char *const CV_SANDBOX_MODES[];

/* Two keys of every daemon. */
struct cv_sandbox_settings {
  int mode;   /* enum cv_sandbox_mode */
  char *user; /* NULL: whoever started the daemon */
};

/* Their rows in a daemon's table; `at` is the offset of the settings in its struct. */
#define CV_SANDBOX_RULES(at)                                                                            \
  {.key = "sandbox",                                                                                    \
   .type = CV_CONFIG_WORD,                                                                              \
   .offset = (at) + offsetof(struct cv_sandbox_settings, mode),                                         \
   .choices = CV_SANDBOX_MODES,                                                                         \
   .fallback = "on",                                                                                    \
   .help = "give up what is not needed; require: do not start if a part cannot be had"},                \
  {                                                                                                     \
    .key = "user", .type = CV_CONFIG_TEXT, .offset = (at) + offsetof(struct cv_sandbox_settings, user), \
    .help = "user to become when started as root"                                                       \
  }

enum { CV_SANDBOX_READS = 4 };

/* What a daemon still needs after its start. All borrowed; NULL is nothing. Ports it listens on are open by then. */
struct cv_sandbox_needs {
  /*
   * Files that are read again. Their folders are what may be read, all of them and everything below, since a file that
   * is replaced by rename is another one to the kernel; if one is a link, the folder it leads to as well.
   */
  const char *reads[CV_SANDBOX_READS];
  const char *state;  /* folder in which files are made, read, written and removed */
  const char *socket; /* a Unix socket, removed at the end; anything else in its folder could be, too */
  const char *dials;  /* HOST:PORT: TCP to this port only and, if HOST is a name, all that looking it up takes */
};

struct cv_sandbox_report {
  bool whole;      /* every part is on */
  char text[1000]; /* one line: each part, and why one is off */
};

/* Core dumps and swapping off. */
void cv_sandbox_begin(const struct cv_sandbox_settings *settings);
/*
 * The configured user with its groups, for good; whatever `sandbox` says. CV_ERR_NOT_FOUND if there is no such user,
 * CV_ERR_DENIED if the daemon is neither root nor that user already.
 */
CV_MUST_USE enum cv_err cv_sandbox_become(const struct cv_sandbox_settings *settings, struct cv_why *why);
/*
 * All the rest. Cannot be undone; holds for every thread that is started later. CV_ERR_STATE if a part is required and
 * cannot be had.
 */
CV_MUST_USE enum cv_err cv_sandbox_enter(const struct cv_sandbox_settings *settings,
                                         const struct cv_sandbox_needs *needs, struct cv_sandbox_report *ret,
                                         struct cv_why *why);

#endif
