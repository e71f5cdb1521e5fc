/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/backup_command.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/admin/receive.h"
#include "common/base/text.h"
#include "common/config/config.h"

enum { NICENESS = 10 };

/* The copy until it is checked, beside its place, so that a link makes it appear there. Static for on_end(). */
static char part[PATH_MAX];

static void on_end(int number) {
  (void)unlink(part);
  _exit(128 + number);
}

static void remove_at_end(void) {
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < CV_COUNT(ends); i++) {
    const struct sigaction action = {.sa_handler = on_end};
    (void)sigaction(ends[i], &action, NULL);
  }
}

static enum cv_err fail_file(struct cv_why *why, const char *path, const char *what) {
  return cv_fail(why,
                 errno == EACCES   ? CV_ERR_DENIED
                 : errno == ENOENT ? CV_ERR_NOT_FOUND
                                   : CV_ERR_IO,
                 "%s: %s: %s", path, what, strerror(errno));
}

/* Before the daemon makes a copy that could not be kept. */
static enum cv_err open_part(const char *to, int *ret, struct cv_why *why) {
  struct stat info;
  if (lstat(to, &info) == 0) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: exists already; expected the name of a new file", to);
  }
  if (snprintf(part, sizeof(part), "%s.part-XXXXXX", to) >= (int)sizeof(part)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the path is too long", to);
  }
  int fd = mkostemp(part, O_CLOEXEC); /* with mode 0600 */
  if (fd < 0) {
    return fail_file(why, to, "cannot create");
  }
  remove_at_end();
  *ret = fd;
  return CV_OK;
}

static enum cv_err sync_folder(const char *to, struct cv_why *why) {
  char copy[PATH_MAX];
  (void)snprintf(copy, sizeof(copy), "%s", to);
  int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  enum cv_err err = fd >= 0 && fsync(fd) == 0 ? CV_OK : fail_file(why, to, "cannot sync its folder");
  if (fd >= 0) {
    (void)close(fd);
  }
  return err;
}

/* link(), unlike rename(), replaces nothing. */
static enum cv_err appear(const char *to, struct cv_why *why) {
  return link(part, to) == 0 ? sync_folder(to, why) : fail_file(why, to, "cannot create");
}

/* A database that names a log would have SQLite make the log's files beside it. A daemon's copy names none. */
static enum cv_err check_head(int fd, struct cv_why *why) {
  uint8_t head[20] = {0};
  bool is_copy = pread(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
                 memcmp(head, "SQLite format 3", 16) == 0 && head[18] == 1 && head[19] == 1;
  return is_copy ? CV_OK : cv_fail(why, CV_ERR_DAMAGED, "not a database that a daemon has copied");
}

static enum cv_err check(const struct cv_backup_command *command, int fd, uint64_t *ret_commit, struct cv_why *why) {
  enum cv_err err = check_head(fd, why);
  err = err == CV_OK ? command->check(command->settings, part, ret_commit, why) : err;
  if (err == CV_OK) {
    return CV_OK;
  }
  cv_why_prefix(why, "the copy is not kept, because it could not be used");
  return CV_ERR_DAMAGED;
}

static enum cv_err keep(const struct cv_backup_command *command, int fd, uint64_t *ret_bytes, uint64_t *ret_commit,
                        struct cv_why *why) {
  enum cv_err err = cv_admin_receive(command->admin, fd, ret_bytes, why);
  if (err == CV_ERR_CLOSED) {
    struct cv_why reason = *why;
    return cv_fail(why, CV_ERR_STATE, "%.300s; start it first, or copy the state folder while it is stopped",
                   reason.text);
  }
  CV_TRY(err);
  if (fsync(fd) != 0) {
    return fail_file(why, command->to, "cannot sync");
  }
  CV_TRY(check(command, fd, ret_commit, why));
  return appear(command->to, why);
}

static enum cv_err run(const struct cv_backup_command *command, uint64_t *ret_bytes, uint64_t *ret_commit,
                       struct cv_why *why) {
  int fd = -1;
  if (command->admin == NULL) {
    return cv_fail(why, CV_ERR_INVALID,
                   "missing setting admin, which --backup needs; expected the path of a Unix socket");
  }
  CV_TRY(open_part(command->to, &fd, why));
  enum cv_err err = keep(command, fd, ret_bytes, ret_commit, why);
  (void)close(fd);
  (void)unlink(part);
  return err;
}

int cv_backup_run(const struct cv_backup_command *command) {
  uint64_t bytes = 0, commit = 0;
  struct cv_why why;
  (void)!nice(NICENESS); /* the check takes a core for a while, and the parties come first */
  enum cv_err err = run(command, &bytes, &commit, &why);
  if (err != CV_OK) {
    (void)fprintf(stderr, "%s: %s\n", command->program, why.text);
    return cv_config_exit_status(err);
  }
  (void)printf("%s: %llu bytes", cv_text_line(command->to).text, (unsigned long long)bytes);
  if (commit > 0) {
    (void)printf(", commit %llu", (unsigned long long)commit);
  }
  (void)printf("\n");
  return 0;
}
