/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "broker/both/ledger.h"
#include "common/crypto/crypto.h"

void cv_term_fini(struct cv_term *term) {
  cv_vault_free(term->vault);
  cv_anchor_close(term->anchor);
  cv_lineage_fini(&term->lineage);
  free(term->taken);
}

/* ---- the anchor ---- */

static enum cv_err write_anchor(struct cv_term *term, const struct cv_anchor_mark *mark, struct cv_why *why) {
  CV_TRY(cv_anchor_write(term->anchor, mark, why));
  term->anchored = *mark;
  term->has_anchor = true;
  return CV_OK;
}

/* Whether a recovery has charged what this anchor counts. */
static bool is_taken(const struct cv_term *term, const struct cv_anchor_mark *anchor) {
  for (size_t i = 0; i < term->takens; i++) {
    if (memcmp(term->taken[i].term_id, anchor->term_id, sizeof(anchor->term_id)) == 0 &&
        anchor->commit <= term->taken[i].commit) {
      return true;
    }
  }
  return false;
}

/* The place before the database's last commit, in its present term: the last commit proves that it was acknowledged. */
static struct cv_anchor_mark before_last(const struct cv_term *term, const struct cv_lineage_term *item) {
  struct cv_anchor_mark before = term->mark;
  bool is_begun = term->mark.commit > item->commit_before;
  before.commit = is_begun ? term->mark.commit - 1 : item->commit_before;
  before.hash = is_begun ? term->prior : item->hash_before;
  return before;
}

/* An anchor that a recovery has taken in: the database goes on in its place. */
static enum cv_err replace_anchor(struct cv_term *term, struct cv_why *why) {
  const struct cv_lineage_term *item = cv_lineage_find(&term->lineage, term->mark.term);
  if (item == NULL) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: a recovery, but no term; expected one", term->ops->where(term->data));
  }
  const struct cv_anchor_mark mark = before_last(term, item);
  return write_anchor(term, &mark, why);
}

static enum cv_lineage_verdict verdict_of(const struct cv_term *term, const struct cv_anchor_mark *anchor) {
  return term->is_new ? CV_LINEAGE_FOREIGN : cv_lineage_judge(&term->lineage, &term->mark, anchor);
}

/* Whether the anchor holds. That of another database concerns this broker alone. */
static enum cv_err judge(struct cv_term *term, struct cv_why *why) {
  if (!term->has_anchor) {
    return CV_OK;
  }
  enum cv_lineage_verdict verdict = verdict_of(term, &term->anchored);
  const char *where = term->ops->where(term->data), *text = cv_lineage_text(verdict);
  if (verdict == CV_LINEAGE_HOLDS) {
    return CV_OK;
  }
  if (is_taken(term, &term->anchored)) {
    return replace_anchor(term, why);
  }
  if (verdict == CV_LINEAGE_FOREIGN) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: %s", where, text);
  }
  CV_TRY(term->ops->dispute(term->data, text, why));
  return cv_fail(why, CV_ERR_DAMAGED, "%s: %s; expected a database with all that was acknowledged", where, text);
}

/* The anchor stays where it is until the present term has made two commits. */
static enum cv_err follow(struct cv_term *term, struct cv_why *why) {
  const struct cv_lineage_term *item = cv_lineage_find(&term->lineage, term->mark.term);
  if (term->is_new || item == NULL || term->mark.commit < item->commit_before + 2) {
    return CV_OK;
  }
  const struct cv_anchor_mark before = before_last(term, item);
  if (term->has_anchor && term->anchored.term == before.term && term->anchored.commit >= before.commit) {
    return CV_OK;
  }
  return write_anchor(term, &before, why);
}

/* ---- several anchors ---- */

/* Whether the database ends in the anchor's term, and so is the beginning of the anchor's history. */
static bool is_beginning(const struct cv_term *term, const struct cv_anchor_mark *anchor) {
  const struct cv_lineage_term *item = cv_lineage_find(&term->lineage, anchor->term);
  const struct cv_lineage_term *end = term->lineage.item + term->lineage.n;
  return item != NULL && (item + 1 == end || item[1].commit_before == term->mark.commit);
}

/* Adds the anchor to those that were taken in. False: there are too many. */
static bool take_in(struct cv_store_marks *marks, const struct cv_anchor_mark *anchor, size_t *ret_at) {
  for (size_t i = 0; i < marks->takens; i++) {
    struct cv_anchor_place *taken = &marks->taken[i];
    if (memcmp(taken->term_id, anchor->term_id, sizeof(taken->term_id)) == 0) {
      taken->commit = anchor->commit > taken->commit ? anchor->commit : taken->commit;
      *ret_at = i;
      return true;
    }
  }
  if (marks->takens == CV_ANCHORS_MAX) {
    return false;
  }
  *ret_at = marks->takens;
  marks->taken[marks->takens] = (struct cv_anchor_place){.commit = anchor->commit};
  memcpy(marks->taken[marks->takens++].term_id, anchor->term_id, sizeof(anchor->term_id));
  return true;
}

static void raise(uint64_t *to, uint64_t value) {
  *to = value > *to ? value : *to;
}

enum cv_err cv_term_weigh(const struct cv_term *term, const struct cv_anchor_mark *anchor, size_t n, bool is_moved,
                          bool lost, struct cv_store_marks *ret, struct cv_why *why) {
  struct cv_store_marks marks = {.is_anchored = n > 0, .is_same = true, .anchor = term->mark, .database = term->mark};
  struct cv_anchor_mark ahead = term->mark;
  uint64_t beginning = 0, other[CV_ANCHORS_MAX] = {0}; /* promises: of this history; of each term of another one */
  bool is_last = false;
  for (size_t i = 0; i < n; i++) {
    size_t at;
    enum cv_lineage_verdict verdict = verdict_of(term, &anchor[i]);
    if (verdict == CV_LINEAGE_HOLDS || is_taken(term, &anchor[i])) {
      is_last = is_last || (verdict == CV_LINEAGE_HOLDS && anchor[i].commit == term->mark.commit);
      continue;
    }
    if (!take_in(&marks, &anchor[i], &at)) {
      return cv_fail(why, CV_ERR_INVALID, "anchors of more than %d terms; expected at most that", CV_ANCHORS_MAX);
    }
    raise(&ahead.commit, anchor[i].commit);
    raise(&ahead.totals.campaigns, anchor[i].totals.campaigns);
    raise(&ahead.totals.releases, anchor[i].totals.releases);
    raise(&ahead.totals.tokens, anchor[i].totals.tokens);
    bool is_ours = verdict == CV_LINEAGE_BEHIND && is_beginning(term, &anchor[i]);
    raise(is_ours ? &beginning : &other[at], anchor[i].totals.promised_micro);
    marks.is_same = marks.is_same && is_ours;
  }
  if (marks.takens == 0 && is_moved && !is_last) {
    if (!lost) {
      return cv_fail(why, CV_ERR_DAMAGED,
                     "%s: another server, or a promoted or restored one, at commit %" PRIu64
                     ", of which no anchor is; "
                     "expected that of the broker that was active last (--anchor), or its loss accepted with --lost",
                     term->ops->where(term->data), term->mark.commit);
    }
    marks.is_anchored = false;
  }
  if (marks.takens > 0) {
    raise(&beginning, marks.is_same ? term->mark.totals.promised_micro : 0);
    for (size_t i = 0; i < CV_ANCHORS_MAX; i++) {
      beginning = cv_ledger_add(beginning, other[i]);
    }
    ahead.totals.promised_micro = beginning;
    marks.anchor = ahead;
  }
  *ret = marks;
  return CV_OK;
}

/* ---- standing by ---- */

/* Only a database without commits needs no anchor. */
static bool may_try(const struct cv_term *term) {
  return term->has_anchor || term->is_new || term->mark.commit == 0;
}

enum cv_err cv_term_stand_by(struct cv_term *term, bool *ret_is_ours, struct cv_why *why) {
  bool is_held = false;
  *ret_is_ours = false;
  CV_TRY(term->ops->read(term->data, why));
  CV_TRY(judge(term, why));
  CV_TRY(follow(term, why));
  CV_TRY(term->ops->see_holder(term->data, &is_held, why));
  if (may_try(term)) {
    return term->ops->try_lock(term->data, ret_is_ours, why);
  }
  return is_held ? CV_OK
                 : cv_fail(why, CV_ERR_DAMAGED,
                           "%s: at commit %llu, but this broker has no anchor, and no broker is active; expected one "
                           "with an anchor",
                           term->ops->where(term->data), (unsigned long long)term->mark.commit);
}

/* ---- taking the term ---- */

enum cv_err cv_term_take(struct cv_term *term, struct cv_why *why) {
  uint8_t id[CV_TERM_ID_BYTES];
  /* Everything is read again, as the holder before may have changed it since. */
  CV_TRY(term->ops->read(term->data, why));
  if (term->disputed[0] != '\0' && !term->recovers) {
    return cv_fail(why, CV_ERR_DAMAGED,
                   "%s: the history is disputed: %.100s; expected a database with all that was acknowledged",
                   term->ops->where(term->data), term->disputed);
  }
  CV_TRY(term->recovers ? CV_OK : judge(term, why));
  CV_TRY(term->is_new ? term->ops->make(term->data, why) : term->ops->open_vault(term->data, why));
  CV_TRY(term->ops->draw(term->data, id, why));
  /* Two machines may be copies of one: from here on they draw different bits. */
  if (cv_drbg_mix(id, sizeof(id)) != CV_OK) {
    return cv_fail(why, CV_ERR_CRYPTO, "%s", cv_err_text(CV_ERR_CRYPTO));
  }
  /* Without a replica there is no use in a term; what was found is durable before the term names it. */
  CV_TRY(term->ops->touch(term->data, why));
  CV_TRY(term->ops->begin(term->data, id, why));
  /* Waits for the replica, too: the term is durable before it is used. */
  CV_TRY(term->ops->touch(term->data, why));
  cv_vault_set_term(term->vault, term->mark.term_id);
  CV_TRY(cv_vault_keep(term->vault, why));
  return term->recovers ? CV_OK : write_anchor(term, &term->mark, why);
}
