/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's program with --backup: asks the running daemon for a copy of its database, checks it and keeps it. */
#ifndef CV_DAEMON_BACKUP_COMMAND_H
#define CV_DAEMON_BACKUP_COMMAND_H

#include <stdint.h>

#include "common/base/err.h"

/*
 * Opens the copy at `path` for reading only, and checks pages, schema and the code of every row. *ret_commit is the
 * number of the last commit in it; 0: this party does not count commits.
 */
typedef enum cv_err cv_backup_check_fn(const void *settings, const char *path, uint64_t *ret_commit,
                                       struct cv_why *why);

struct cv_backup_command {
  const char *program;
  const char *admin; /* the daemon's admin socket, or NULL */
  const char *to;    /* the copy; must not exist */
  cv_backup_check_fn *check;
  const void *settings;
};

/*
 * The copy appears at `to` at once, whole and on disk, with mode 0600, or not at all. Prints one line: file, bytes and
 * commit; or on standard error the reason. Returns the exit status.
 */
CV_MUST_USE int cv_backup_run(const struct cv_backup_command *command);

#endif
