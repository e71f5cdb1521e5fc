/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/repair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "broker/both/anchor.h"

static bool is_unreadable(enum cv_err err) {
  return err == CV_ERR_DAMAGED || err == CV_ERR_INVALID; /* one of another version is not lost */
}

/* Renames the database and its log to a name that is free. */
static enum cv_err put_aside(const char *database, char *to, size_t size, struct cv_why *why) {
  static const char *const parts[] = {"-wal", "-shm", "-journal"};
  struct stat info;
  unsigned n = 1;
  do {
    (void)snprintf(to, size, "%s.damaged-%u", database, n++);
  } while (stat(to, &info) == 0);
  /* The log first: if the second step fails, a database without its log is unreadable again; a new database with an old
   * log would be damaged. */
  for (size_t i = 0; i < CV_COUNT(parts); i++) {
    char from[4300], aside[4300];
    (void)snprintf(from, sizeof(from), "%s%s", database, parts[i]);
    (void)snprintf(aside, sizeof(aside), "%s%s", to, parts[i]);
    if (rename(from, aside) != 0 && errno != ENOENT) {
      return cv_fail(why, CV_ERR_IO, "%s: cannot rename it to put it aside: %s", from, strerror(errno));
    }
  }
  if (rename(database, to) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot rename it to put it aside: %s", database, strerror(errno));
  }
  return CV_OK;
}

/* Puts an unreadable anchor aside, as if there were none; requires --lost. */
static enum cv_err check_anchor(const struct cv_repair *repair, struct cv_why *why) {
  const char *anchor = repair->files.anchor;
  struct cv_anchor_mark mark;
  bool exists;
  char to[4200];
  bool is_file = repair->files.vfs == NULL && !repair->is_shared;
  enum cv_err err = is_file ? cv_anchor_peek(anchor, &exists, &mark, why) : CV_OK;
  if (err != CV_ERR_DAMAGED) {
    return err;
  }
  if (!repair->lost) {
    struct cv_why reason = *why;
    return cv_fail(why, err, "%.300s; restore the anchor as it was, or accept its loss with --lost", reason.text);
  }
  (void)snprintf(to, sizeof(to), "%s.damaged", anchor);
  return rename(anchor, to) == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_IO, "%s: cannot rename it to put it aside: %s", anchor, strerror(errno));
}

/* Whether enough is known to charge; what is unknown must be accepted with --lost. */
static enum cv_err check_known(const struct cv_repair *repair, const char *records, const struct cv_store_marks *marks,
                               struct cv_why *why) {
  const char *database = repair->files.database, *anchor = repair->files.anchor;
  if (marks->is_anchored ? marks->is_same : repair->lost && (repair->claims > 0 || marks->database.commit > 0)) {
    return CV_OK;
  }
  if (!marks->is_anchored) {
    return repair->lost ? cv_fail(why, CV_ERR_DAMAGED,
                                  "%s is new, %s is missing, and there is no record of another party: the spending is "
                                  "unknown; expected %s, or a new party under another name",
                                  database, anchor, records)
                        : cv_fail(why, CV_ERR_DAMAGED,
                                  "missing anchor %s, so the last commit of %s is unknown; restore it, or accept its "
                                  "loss with --lost",
                                  anchor, database);
  }
  return repair->lost
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED,
                       "%s is of another database or history than %s; restore the right anchor, or accept with "
                       "--lost that all it promised is charged to every worker",
                       anchor, database);
}

/* Whether an earlier run stored this recovery and stopped before it wrote the anchor. */
static bool is_done(const struct cv_recovery *last, const struct cv_store_marks *marks) {
  return last != NULL && marks->is_anchored && last->anchored == marks->anchor.commit &&
         memcmp(last->database, marks->anchor.database, sizeof(last->database)) == 0 &&
         marks->database.commit > last->anchored;
}

/* Recovers the loaded core, or only writes the anchor if an earlier run was interrupted or nothing was lost. */
static enum cv_err mend(const struct cv_repair_party *party, const struct cv_repair *repair, void *bench,
                        struct cv_repaired *ret, struct cv_why *why) {
  struct cv_store_marks marks;
  party->marks(bench, &marks);
  /* A shared database says itself which anchors it has taken in. */
  if (!repair->is_shared && is_done(party->recovered(bench), &marks)) {
    return party->anchor(bench, why);
  }
  /* Before anything changes: a recovery that knows too little would charge too little. */
  CV_TRY(check_known(repair, party->records, &marks, why));
  const struct cv_recover_facts facts = {.is_anchored = marks.is_anchored,
                                         .is_same = marks.is_same,
                                         .anchor = marks.anchor,
                                         .commit = marks.database.commit,
                                         .taken = marks.taken,
                                         .takens = marks.takens,
                                         .claim = repair->claim,
                                         .claims = repair->claims,
                                         .wall_ms = repair->wall_ms};
  CV_TRY(party->recover(bench, &facts, ret, why));
  return ret->changed ? party->commit(bench, repair, &ret->recovery, why) : party->anchor(bench, why);
}

enum cv_err cv_repair_run(const struct cv_repair_party *party, const struct cv_repair *repair, struct cv_repaired *ret,
                          struct cv_why *why) {
  struct cv_repaired repaired = {.changed = false};
  void *bench = NULL;
  struct stat info;
  const char *database = repair->files.database;
  bool exists = repair->is_shared || repair->files.vfs != NULL || stat(database, &info) == 0;
  if (!exists && !repair->lost) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "missing %s; restore a copy, however old, or accept its loss with --lost",
                   database);
  }
  CV_TRY(check_anchor(repair, why));
  enum cv_err err = party->load(repair, &bench, why);
  /* Renamed, not deleted, and only if its loss was accepted: it may yet be read on another machine or with another
   * key. */
  if (is_unreadable(err) && repair->lost && repair->is_shared) {
    struct cv_why reason = *why;
    return cv_fail(why, err, "%.300s; expected an empty database for --lost", reason.text);
  }
  if (is_unreadable(err) && repair->lost && exists) {
    CV_TRY(put_aside(database, repaired.aside, sizeof(repaired.aside), why));
    err = party->load(repair, &bench, why);
  } else if (is_unreadable(err)) {
    struct cv_why reason = *why;
    return cv_fail(why, err, "%.300s; restore the key or a copy, however old, or accept its loss with --lost",
                   reason.text);
  }
  if (err == CV_OK) {
    err = mend(party, repair, bench, &repaired, why);
    party->free(bench);
  }
  if (err == CV_OK) {
    *ret = repaired;
  }
  return err;
}
