/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "thirdparty/replay.h"
#include "thirdparty/rows.h"
#include "thirdparty/store.h"

static enum cv_err feed_release(void *data, const struct cv_release *release, struct cv_why *why) {
  enum cv_err err = cv_replay_release(data, release);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "out of memory");
}

static void feed_decision(void *data, const struct cv_stored_decision *stored) {
  cv_replay_decision(data, &stored->decision);
}

static enum cv_err feed_plans(struct cv_db *db, sqlite3_int64 id, const struct cv_stored_campaign *campaign,
                              struct cv_replay *replay, struct cv_why *why) {
  for (uint64_t number = 1; number <= campaign->row.plan; number++) {
    struct cv_plan plan;
    CV_TRY(cv_thirdparty_rows_wants(db, id, number, campaign->spec.arms, &plan, why));
    bool is_there = plan.wants > 0;
    enum cv_err err = is_there ? cv_replay_plan(replay, &plan) : CV_OK;
    free(plan.want);
    if (!is_there) { /* last_plan may be damaged, too: stop at the first gap, do not count up to it */
      return cv_fail(why, CV_ERR_DAMAGED, "plan %" PRIu64 " of %" PRIu64 " is missing", number, campaign->row.plan);
    }
    if (err != CV_OK) {
      return cv_fail(why, err, "out of memory");
    }
    /* Then the decisions: they were made from these releases, see replay.h for the order. */
    CV_TRY(cv_thirdparty_rows_releases(db, id, number, number, feed_release, replay, why));
    CV_TRY(cv_thirdparty_rows_decisions(db, id, number, feed_decision, replay, why));
  }
  return CV_OK;
}

static enum cv_err replay_campaign(struct cv_db *db, sqlite3_int64 id, const struct cv_stored_campaign *campaign,
                                   struct cv_replay_verdict *ret, struct cv_why *why) {
  struct cv_replay *replay = NULL;
  size_t n = 0;
  struct cv_standing *standing = calloc(campaign->spec.arms, sizeof(*standing));
  if (standing == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_replay_new(&campaign->spec, campaign->seed, true, &replay, why);
  err = err != CV_OK ? err : feed_plans(db, id, campaign, replay, why);
  err = err != CV_OK ? err : cv_thirdparty_rows_standings(db, id, campaign->spec.arms, standing, &n, why);
  if (err == CV_OK) {
    cv_replay_end(replay, campaign->row.end, standing, n, ret);
  }
  cv_replay_free(replay);
  free(standing);
  return err;
}

static enum cv_err replay_all(struct cv_db *db, cv_replay_each_fn *each, void *data, struct cv_why *why) {
  sqlite3_int64 id = 0;
  for (;;) {
    struct cv_stored_campaign campaign = {0};
    struct cv_replay_verdict verdict;
    bool found;
    /* One campaign at a time: all of a large database would not fit into memory. */
    CV_TRY(cv_thirdparty_rows_campaign(db, &id, &campaign, &found, why));
    if (!found) {
      return CV_OK;
    }
    enum cv_err err = replay_campaign(db, id, &campaign, &verdict, why);
    if (err == CV_OK) {
      each(data, &campaign, &verdict);
    } else {
      cv_why_prefix(why, "campaign %" PRIu64 " of broker %s", campaign.key.campaign, campaign.key.broker);
    }
    cv_stored_campaign_fini(&campaign);
    CV_TRY(err);
  }
}

enum cv_err cv_replay_database(const char *path, cv_replay_each_fn *each,
                               void (*stranger)(void *data, const char *what), void *data, struct cv_why *why) {
  struct cv_db *db;
  /* Read-only, and not while a daemon has it open: replay must not change what it checks. */
  CV_TRY(cv_db_open_readonly(path, &CV_THIRDPARTY_SCHEMA, &db, why));
  enum cv_err err = cv_thirdparty_prove(db, why);
  if (err == CV_OK && stranger != NULL) {
    err = cv_thirdparty_strangers(db, stranger, data, why);
  }
  if (err == CV_OK) {
    err = replay_all(db, each, data, why);
    if (err != CV_OK) {
      cv_why_prefix(why, "%s", path);
    }
  }
  cv_db_close(db);
  return err;
}
