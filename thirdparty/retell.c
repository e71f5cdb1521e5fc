/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/retell.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "thirdparty/policy/tail.h"
#include "thirdparty/rows.h"

struct cv_retell {
  struct cv_db *db;
  sqlite3_int64 id;
  struct cv_stored_campaign campaign;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_standing *standing; /* as told last, by arm */
  uint64_t plan;                /* whose releases the next turn tells; 0 at the beginning */
  uint32_t left;                /* of its wants: not released yet */
  bool has_begun;
  bool is_stuck; /* the policy cannot go on: there is no further step */
  struct cv_history *history;
};

static enum cv_err no_memory(enum cv_err err, struct cv_why *why) {
  return err == CV_OK ? CV_OK : cv_fail(why, err, "out of memory");
}

/* Reads the campaign's row, as it is by now. */
static enum cv_err read_row(struct cv_retell *retell, struct cv_why *why) {
  struct cv_stored_campaign stored = {0};
  sqlite3_int64 id = retell->id - 1;
  bool found = false;
  CV_TRY(cv_thirdparty_rows_campaign(retell->db, &id, &stored, &found, why));
  if (!found || id != retell->id) {
    cv_stored_campaign_fini(&stored);
    return cv_fail(why, CV_ERR_NOT_FOUND, "campaign %lld is not in the database", (long long)retell->id);
  }
  if (retell->policy == NULL) {
    retell->campaign = stored;
  } else {
    retell->campaign.row = stored.row;
    cv_stored_campaign_fini(&stored);
  }
  return CV_OK;
}

static enum cv_err set_up(struct cv_retell *retell, struct cv_why *why) {
  struct cv_spec *spec = &retell->campaign.spec;
  const struct cv_param *bad;
  CV_TRY(read_row(retell, why));
  CV_TRY(cv_policy_check(&spec->policy, &bad, why));
  CV_TRY(cv_policy_fits(spec, why));
  retell->standing = calloc(spec->arms, sizeof(*retell->standing));
  enum cv_err err =
      retell->standing == NULL ? CV_ERR_NOMEM : cv_policy_new(spec, retell->campaign.seed, &retell->policy);
  err = err != CV_OK ? err : cv_history_new(spec, &retell->history);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "policy %s: %s", spec->policy.name, cv_err_text(err));
}

enum cv_err cv_retell_new(struct cv_db *db, int64_t id, struct cv_retell **ret, struct cv_why *why) {
  struct cv_retell *retell = calloc(1, sizeof(*retell));
  if (retell == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  retell->db = db;
  retell->id = id;
  enum cv_err err = set_up(retell, why);
  if (err != CV_OK) {
    cv_retell_free(retell);
    return err;
  }
  *ret = retell;
  return CV_OK;
}

void cv_retell_free(struct cv_retell *retell) {
  if (retell != NULL) {
    cv_stored_campaign_fini(&retell->campaign);
    cv_policy_free(retell->policy);
    cv_policy_step_fini(&retell->step);
    cv_history_free(retell->history);
    free(retell->standing);
    free(retell);
  }
}

const struct cv_thirdparty_campaign_key *cv_retell_key(const struct cv_retell *retell) {
  return &retell->campaign.key;
}

struct cv_history *cv_retell_take(struct cv_retell *retell) {
  struct cv_history *history = retell->history;
  retell->history = NULL;
  return history;
}

/* ---- one plan as a batch ---- */

struct feed {
  struct cv_retell *retell;
  struct cv_delta *delta;
  enum cv_err err;
};

static enum cv_err feed_release(void *data, const struct cv_release *release, struct cv_why *why) {
  struct feed *feed = data;
  struct cv_retell *retell = feed->retell;
  if (release->arm >= retell->campaign.spec.arms || !cv_release_is_whole(release) ||
      !cv_tail_is_valid(&release->noise) || retell->left == 0) {
    return cv_fail(why, CV_ERR_DAMAGED, "release %" PRIu64 " does not fit plan %" PRIu64, release->number,
                   release->plan);
  }
  retell->is_stuck = !cv_policy_take(retell->policy, release) || retell->is_stuck;
  retell->left--;
  return no_memory(cv_delta_add_release(feed->delta, release), why);
}

static void feed_decision(void *data, const struct cv_stored_decision *stored) {
  struct feed *feed = data;
  if (feed->err == CV_OK) {
    feed->err = cv_delta_add_decision(feed->delta, stored);
  }
}

static enum cv_err feed_standing(struct feed *feed, const struct cv_standing *now) {
  struct cv_standing *told = &feed->retell->standing[now->arm];
  /* Step 0 tells every arm. */
  if (cv_standing_is_same(told, now) && feed->retell->has_begun) {
    return CV_OK;
  }
  *told = *now;
  return cv_delta_add_standing(feed->delta, now);
}

static enum cv_err feed_standings(struct feed *feed) {
  const struct cv_retell *retell = feed->retell;
  for (uint32_t i = 0; i < retell->campaign.spec.arms; i++) {
    struct cv_standing now;
    cv_policy_standing(retell->policy, i, &now);
    CV_TRY(feed_standing(feed, &now));
  }
  return CV_OK;
}

/* Makes the step after plan `retell->plan`, and reads the plan that follows, if there is one. */
static enum cv_err feed_step(struct feed *feed, struct cv_why *why) {
  struct cv_retell *retell = feed->retell;
  CV_TRY(no_memory(cv_policy_step(retell->policy, retell->plan + 1, &retell->step), why));
  CV_TRY(no_memory(feed_standings(feed), why));
  CV_TRY(cv_thirdparty_rows_decisions(retell->db, retell->id, retell->plan, feed_decision, feed, why));
  CV_TRY(no_memory(feed->err, why));
  feed->delta->has_state = true;
  feed->delta->row.state_plan = retell->plan;
  if (retell->plan == retell->campaign.row.plan) {
    return CV_OK;
  }
  struct cv_plan plan;
  CV_TRY(cv_thirdparty_rows_wants(retell->db, retell->id, retell->plan + 1, retell->campaign.spec.arms, &plan, why));
  retell->left = plan.wants;
  enum cv_err err = plan.wants == 0 ? cv_fail(why, CV_ERR_DAMAGED, "plan %" PRIu64 " is missing", plan.number)
                                    : no_memory(cv_delta_add_plan(feed->delta, &plan, false), why);
  free(plan.want);
  return err;
}

/* The last standings, as the database has them. */
static enum cv_err feed_stored(struct feed *feed, struct cv_why *why) {
  const struct cv_retell *retell = feed->retell;
  uint32_t arms = retell->campaign.spec.arms;
  struct cv_standing *stored = calloc(arms, sizeof(*stored));
  size_t n = 0;
  enum cv_err err = no_memory(stored == NULL ? CV_ERR_NOMEM : CV_OK, why);
  err = err != CV_OK ? err : cv_thirdparty_rows_standings(retell->db, retell->id, arms, stored, &n, why);
  for (size_t i = 0; i < n && err == CV_OK; i++) {
    err = stored[i].arm >= arms ? cv_fail(why, CV_ERR_DAMAGED, "a standing is of an arm that is not there")
                                : no_memory(feed_standing(feed, &stored[i]), why);
  }
  free(stored);
  return err;
}

static enum cv_err tell_next(struct cv_retell *retell, struct feed *feed, bool *ret_done, struct cv_why *why) {
  bool is_complete = !retell->has_begun;
  feed->delta->created = !retell->has_begun;
  if (retell->has_begun) {
    CV_TRY(cv_thirdparty_rows_releases(retell->db, retell->id, retell->plan, retell->plan, feed_release, feed, why));
    is_complete = retell->left == 0 && !retell->is_stuck;
  }
  feed->delta->row = retell->campaign.row;
  *ret_done = !is_complete || retell->plan == retell->campaign.row.plan;
  if (is_complete) {
    CV_TRY(feed_step(feed, why));
  } else if (retell->campaign.row.end != CV_END_NONE) {
    CV_TRY(no_memory(feed_standings(feed), why));
  }
  return *ret_done ? feed_stored(feed, why) : CV_OK;
}

enum cv_err cv_retell_go_on(struct cv_retell *retell, bool *ret_done, struct cv_why *why) {
  struct feed feed = {.retell = retell, .delta = calloc(1, sizeof(*feed.delta))};
  bool done = false;
  /* The campaign may have come further since the last turn. */
  enum cv_err err = feed.delta == NULL ? no_memory(CV_ERR_NOMEM, why) : read_row(retell, why);
  err = err != CV_OK ? err : tell_next(retell, &feed, &done, why);
  err = err != CV_OK ? err : no_memory(cv_history_take(retell->history, feed.delta, CV_HISTORY_NO_TIME), why);
  cv_delta_free(feed.delta);
  if (err == CV_OK) {
    retell->has_begun = true;
    retell->plan += !done;
    *ret_done = done;
  }
  return err;
}
