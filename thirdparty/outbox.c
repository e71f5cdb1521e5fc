/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

static void letter_free(struct cv_thirdparty_letter *letter) {
  if (letter != NULL) {
    free(letter->plan.plan.want);
    free(letter->standing);
    free(letter->refused);
    free(letter->refusal);
    free(letter);
  }
}

/* Frees the letters of `conn`; NULL: all letters. None may outlive its connection, which the shell would send it to. */
static void drop(struct cv_thirdparty_letter **list, const struct cv_thirdparty_conn *conn) {
  struct cv_thirdparty_letter *letter, *next;
  DL_FOREACH_SAFE(*list, letter, next) {
    if (conn == NULL || letter->conn == conn) {
      DL_DELETE(*list, letter);
      letter_free(letter);
    }
  }
}

void cv_thirdparty_outbox_fini(struct cv_thirdparty_outbox *outbox) {
  drop(&outbox->held, NULL);
  drop(&outbox->ready, NULL);
  letter_free(outbox->lent);
  outbox->lent = NULL;
}

struct cv_thirdparty_letter *cv_thirdparty_outbox_add(struct cv_thirdparty_outbox *outbox,
                                                      struct cv_thirdparty_conn *conn) {
  struct cv_thirdparty_letter *letter = calloc(1, sizeof(*letter));
  if (letter != NULL) {
    letter->conn = conn;
    /* At the end, so that a connection's letters leave in the order in which they were caused. */
    DL_APPEND(outbox->held, letter);
  }
  return letter;
}

void cv_thirdparty_outbox_release(struct cv_thirdparty_outbox *outbox) {
  /* `held` are the letters of one flush, and only one flush is open at a time: the batch that was just stored covers
   * all of them. */
  DL_CONCAT(outbox->ready, outbox->held);
  outbox->held = NULL;
}

const struct cv_thirdparty_letter *cv_thirdparty_outbox_next(struct cv_thirdparty_outbox *outbox) {
  /* The shell has encoded the letter of the last call. */
  letter_free(outbox->lent);
  outbox->lent = outbox->ready;
  if (outbox->lent != NULL) {
    DL_DELETE(outbox->ready, outbox->lent);
  }
  return outbox->lent;
}

void cv_thirdparty_outbox_drop(struct cv_thirdparty_outbox *outbox, const struct cv_thirdparty_conn *conn) {
  drop(&outbox->held, conn);
  drop(&outbox->ready, conn);
  if (outbox->lent != NULL && outbox->lent->conn == conn) {
    letter_free(outbox->lent);
    outbox->lent = NULL;
  }
}

/* ---- letters ---- */

void cv_thirdparty_letter_opened(struct cv_thirdparty_letter *letter, const struct cv_thirdparty_campaign *campaign) {
  /* The position as of this flush: its batch stores everything that is counted here. */
  letter->opened.position = (struct cv_position){.campaign = campaign->id,
                                                 .releases = campaign->row.releases,
                                                 .plans = campaign->row.accepted,
                                                 .releases_hash = campaign->row.releases_hash,
                                                 .plans_hash = campaign->row.plans_hash};
  letter->opened.seed = campaign->seed;
  letter->frame.opened = 1;
  letter->frame.answer = &letter->opened;
}

void cv_thirdparty_letter_ack(struct cv_thirdparty_letter *letter, const struct cv_thirdparty_campaign *campaign) {
  letter->ack = (struct cv_rank_number){.campaign = campaign->id, .number = campaign->row.releases};
  letter->frame.acks = 1;
  letter->frame.ack = &letter->ack;
}

static enum cv_err fill_standings(struct cv_thirdparty_letter *letter, const struct cv_thirdparty_campaign *campaign) {
  letter->standing = calloc(campaign->spec.arms, sizeof(*letter->standing));
  if (letter->standing == NULL) {
    return CV_ERR_NOMEM;
  }
  cv_thirdparty_campaign_standings(campaign, letter->standing);
  return CV_OK;
}

enum cv_err cv_thirdparty_letter_plan(struct cv_thirdparty_letter *letter,
                                      const struct cv_thirdparty_campaign *campaign) {
  CV_TRY(fill_standings(letter, campaign));
  letter->plan.campaign = campaign->id;
  /* A copy: the next event may replace the campaign's plan while the letter waits for its commit. */
  CV_TRY(cv_plan_copy(&campaign->plan, &letter->plan.plan));
  letter->plan.standings = campaign->spec.arms;
  letter->plan.standing = letter->standing;
  letter->frame.plans = 1;
  letter->frame.plan = &letter->plan;
  return CV_OK;
}

enum cv_err cv_thirdparty_letter_result(struct cv_thirdparty_letter *letter,
                                        const struct cv_thirdparty_campaign *campaign) {
  CV_TRY(fill_standings(letter, campaign));
  letter->result = (struct cv_rank_result){.campaign = campaign->id,
                                           .reason = campaign->row.end,
                                           .standings = campaign->spec.arms,
                                           .standing = letter->standing};
  letter->frame.results = 1;
  letter->frame.result = &letter->result;
  return CV_OK;
}

enum cv_err cv_thirdparty_letter_refused(struct cv_thirdparty_letter *letter, struct cv_thirdparty_refusal *refusal,
                                         size_t n) {
  letter->refused = calloc(n, sizeof(*letter->refused));
  if (letter->refused == NULL) {
    return CV_ERR_NOMEM;
  }
  /* Taken over: the texts in the frame point into it. */
  letter->refusal = refusal;
  for (size_t i = 0; i < n; i++) {
    letter->refused[i].position.campaign = refusal[i].campaign;
    letter->refused[i].refused = refusal[i].why;
  }
  letter->frame.opened = n;
  letter->frame.answer = letter->refused;
  return CV_OK;
}

void cv_thirdparty_letter_goodbye(struct cv_thirdparty_letter *letter, const char *why) {
  (void)snprintf(letter->goodbye, sizeof(letter->goodbye), "%s", why);
  letter->frame.goodbye = letter->goodbye;
  letter->close = true;
}
