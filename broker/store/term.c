/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/store/term.h"

#include "common/crypto/crypto.h"

void cv_term_fini(struct cv_term *term) {
  cv_vault_free(term->vault);
  cv_anchor_close(term->anchor);
  cv_lineage_fini(&term->lineage);
}

/* ---- the anchor ---- */

/* Whether the anchor holds. That of another database concerns this broker alone. */
static enum cv_err judge(struct cv_term *term, struct cv_why *why) {
  if (!term->has_anchor) {
    return CV_OK;
  }
  enum cv_lineage_verdict verdict =
      term->is_new ? CV_LINEAGE_FOREIGN : cv_lineage_judge(&term->lineage, &term->mark, &term->anchored);
  const char *where = term->ops->where(term->data), *text = cv_lineage_text(verdict);
  if (verdict == CV_LINEAGE_HOLDS) {
    return CV_OK;
  }
  if (verdict == CV_LINEAGE_FOREIGN) {
    return cv_fail(why, CV_ERR_DAMAGED, "%s: %s", where, text);
  }
  CV_TRY(term->ops->dispute(term->data, text, why));
  return cv_fail(why, CV_ERR_DAMAGED, "%s: %s; expected a database with all that was acknowledged", where, text);
}

static enum cv_err write_anchor(struct cv_term *term, const struct cv_anchor_mark *mark, struct cv_why *why) {
  CV_TRY(cv_anchor_write(term->anchor, mark, why));
  term->anchored = *mark;
  term->has_anchor = true;
  return CV_OK;
}

/* The anchor stays where it is until the present term has made two commits. */
static enum cv_err follow(struct cv_term *term, struct cv_why *why) {
  const struct cv_lineage_term *item = cv_lineage_find(&term->lineage, term->mark.term);
  struct cv_anchor_mark before = term->mark;
  before.commit--;
  before.hash = term->prior;
  if (term->is_new || item == NULL || term->mark.commit < item->commit_before + 2 ||
      (term->has_anchor && term->anchored.term == before.term && term->anchored.commit >= before.commit)) {
    return CV_OK;
  }
  return write_anchor(term, &before, why);
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
  if (term->disputed[0] != '\0') {
    return cv_fail(why, CV_ERR_DAMAGED,
                   "%s: the history is disputed: %.100s; expected a database with all that was acknowledged",
                   term->ops->where(term->data), term->disputed);
  }
  CV_TRY(judge(term, why));
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
  return write_anchor(term, &term->mark, why);
}
