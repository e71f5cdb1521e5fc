/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The histories of the campaigns that somebody watches. A campaign that begins while the chronicle is kept has its
 * history from its first step, with times; that of an earlier one, also of a closed one, is made from the database
 * when it is asked for (retell.h). At most CV_CHRONICLE_MAX histories are held; the one that nobody has asked for or
 * added to for longest makes room.
 */
#ifndef CV_THIRDPARTY_CHRONICLE_H
#define CV_THIRDPARTY_CHRONICLE_H

#include "common/db/db.h"
#include "thirdparty/history.h"

enum { CV_CHRONICLE_MAX = 8 };

struct cv_chronicle;

struct cv_chronicle_entry {
  int64_t id; /* of the campaign in the database; 0: none */
  struct cv_thirdparty_campaign_key key;
  struct cv_history *history; /* NULL: not ready yet */
};

enum cv_chronicle_found { CV_CHRONICLE_HERE, CV_CHRONICLE_LATER, CV_CHRONICLE_ABSENT, CV_CHRONICLE_FAILED };

/* Borrows the database. It holds nothing until cv_chronicle_begin(). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_chronicle_new(struct cv_db *db, struct cv_chronicle **ret);
void cv_chronicle_free(struct cv_chronicle *chronicle);

/* From now on new campaigns have a history from their first step. */
void cv_chronicle_begin(struct cv_chronicle *chronicle);
/* Takes a batch that has just been stored; no other may be under way. False if nothing was taken. */
bool cv_chronicle_take(struct cv_chronicle *chronicle, const struct cv_thirdparty_batch *batch, uint64_t now_ms);

/* Finds a history; if there is none yet, cv_chronicle_work() will make it. No batch may be under way. */
enum cv_chronicle_found cv_chronicle_find(struct cv_chronicle *chronicle, int64_t id,
                                          const struct cv_chronicle_entry **ret);
/* The same for a history that was found: NULL if it has made room since. */
const struct cv_chronicle_entry *cv_chronicle_at(struct cv_chronicle *chronicle, int64_t id);

/* Whether histories are being made; and goes on with it for a few milliseconds. No batch may be under way. `why` has
 * the reason if one cannot be made, then *ret_failed. Returns true if one is ready, or cannot be made. */
bool cv_chronicle_has_work(const struct cv_chronicle *chronicle);
bool cv_chronicle_work(struct cv_chronicle *chronicle, bool *ret_failed, struct cv_why *why);

#endif
