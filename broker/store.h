/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's database. One batch is one transaction, then the anchor. What is secret (journal, chunks) is sealed with
 * a key per campaign; database id, campaign, kind, number and commit are bound to each sealed value, so that none can
 * be put in another's place.
 *
 * Tables: meta, campaign, plan, release (the noisy sums, in the clear: they are what leaves), ended (records of
 * campaigns that have ended), journal, chunk.
 */
#ifndef CV_BROKER_STORE_H
#define CV_BROKER_STORE_H

#include "broker/anchor.h"
#include "broker/batch.h"
#include "broker/core.h"
#include "common/crypto/crypto.h"

struct cv_broker_store;

struct cv_broker_store_files {
  const char *database;
  const char *anchor;
  const char *vfs; /* NULL: the default */
  bool repair;     /* opens whatever the anchor says, and leaves it: for cv_broker_store_marks() */
  bool readonly;   /* the same, and changes nothing; CV_ERR_STATE if a daemon has it open */
};

/*
 * Opens or makes the database and compares it with its anchor: behind it, of another history, or without it where there
 * is a database, is CV_ERR_DAMAGED with both numbers named. `master` seals; it is borrowed for the call.
 */
CV_MUST_USE enum cv_err cv_broker_store_open(const struct cv_broker_store_files *files, const struct cv_key *master,
                                             struct cv_broker_store **ret, struct cv_why *why);
void cv_broker_store_close(struct cv_broker_store *store);
/* Whether there is a database at the path already. */
bool cv_broker_store_exists(const char *database);

/* A number that is this database's own, another one after each recovery: keys that must not outlive it are derived with
 * it. */
uint64_t cv_broker_store_number(const struct cv_broker_store *store);

/* For repair: the anchor as it was found, and whether it was there; what the database itself says; whether they are of
 * one history. */
struct cv_broker_marks {
  bool is_anchored, is_same;
  struct cv_anchor_mark anchor, database;
};
void cv_broker_store_marks(const struct cv_broker_store *store, struct cv_broker_marks *ret);
/* The next commit has this number, which is above the last one's. */
void cv_broker_store_leap(struct cv_broker_store *store, uint64_t commit);
/* Writes the anchor as the database is. */
CV_MUST_USE enum cv_err cv_broker_store_anchor(struct cv_broker_store *store, struct cv_why *why);

/* Feeds a new core what it goes on from: of campaigns that have ended their records only. */
CV_MUST_USE enum cv_err cv_broker_store_load(struct cv_broker_store *store, struct cv_broker *broker, uint64_t now_ms,
                                             uint64_t wall_ms, struct cv_why *why);
/* Feeds it one of those whole (cv_broker_wanted()). CV_ERR_DAMAGED: its rows are not what they were; the core is to be
 * told (cv_broker_fetch_failed()). Not while a commit runs. */
CV_MUST_USE enum cv_err cv_broker_store_fetch(struct cv_broker_store *store, struct cv_broker *broker,
                                              uint32_t campaign, struct cv_why *why);
/* Fetches the one that is wanted, if there is one, and tells the core if its rows are damaged. */
CV_MUST_USE enum cv_err cv_broker_store_serve(struct cv_broker_store *store, struct cv_broker *broker,
                                              struct cv_why *why);
/* Commits, then writes the anchor. After an error the daemon must stop: the batch may or may not be stored. */
CV_MUST_USE enum cv_err cv_broker_store_commit(struct cv_broker_store *store, const struct cv_batch *batch,
                                               struct cv_why *why);

#endif
