/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outgoing frames of the third-party's core. A letter is one frame with all memory it points to. The outbox holds a
 * letter until its cause is committed, and then returns letters in the order of addition.
 */
#ifndef CV_THIRDPARTY_OUTBOX_H
#define CV_THIRDPARTY_OUTBOX_H

#include "thirdparty/campaign.h"

struct cv_thirdparty_conn;

/* A refused campaign, and why. */
struct cv_thirdparty_refusal {
  uint64_t campaign;
  char why[CV_WHY_BYTES];
};

struct cv_thirdparty_letter {
  struct cv_thirdparty_letter *prev, *next;
  struct cv_thirdparty_conn *conn;
  struct cv_rank_frame frame;
  bool close; /* close the connection after the frame */
  char goodbye[CV_WHY_BYTES];
  /* what the frame points to; owned */
  struct cv_rank_opened opened;
  struct cv_rank_number ack;
  struct cv_rank_plan plan;
  struct cv_rank_result result;
  struct cv_standing *standing;
  struct cv_rank_opened *refused;
  struct cv_thirdparty_refusal *refusal;
};

/* All zero is empty. */
struct cv_thirdparty_outbox {
  struct cv_thirdparty_letter *held, *ready; /* before and after their commit */
  struct cv_thirdparty_letter *lent;         /* the letter returned last */
};

void cv_thirdparty_outbox_fini(struct cv_thirdparty_outbox *outbox);
/* Adds an empty held letter; NULL if out of memory. */
struct cv_thirdparty_letter *cv_thirdparty_outbox_add(struct cv_thirdparty_outbox *outbox,
                                                      struct cv_thirdparty_conn *conn);
/* Call after the commit: all held letters become ready. */
void cv_thirdparty_outbox_release(struct cv_thirdparty_outbox *outbox);
/* Returns the next ready letter, valid until the next call; NULL if there is none. */
const struct cv_thirdparty_letter *cv_thirdparty_outbox_next(struct cv_thirdparty_outbox *outbox);
/* Frees all letters of a closed connection. */
void cv_thirdparty_outbox_drop(struct cv_thirdparty_outbox *outbox, const struct cv_thirdparty_conn *conn);

/* Each function adds one message about the campaign to the letter. A letter is about one campaign. CV_ERR_NOMEM. */
void cv_thirdparty_letter_opened(struct cv_thirdparty_letter *letter, const struct cv_thirdparty_campaign *campaign);
void cv_thirdparty_letter_ack(struct cv_thirdparty_letter *letter, const struct cv_thirdparty_campaign *campaign);
CV_MUST_USE enum cv_err cv_thirdparty_letter_plan(struct cv_thirdparty_letter *letter,
                                                  const struct cv_thirdparty_campaign *campaign);
CV_MUST_USE enum cv_err cv_thirdparty_letter_result(struct cv_thirdparty_letter *letter,
                                                    const struct cv_thirdparty_campaign *campaign);
/* Adds the refused campaigns. Takes ownership of the heap array `refusal`; on CV_ERR_NOMEM it stays the caller's. */
CV_MUST_USE enum cv_err cv_thirdparty_letter_refused(struct cv_thirdparty_letter *letter,
                                                     struct cv_thirdparty_refusal *refusal, size_t n);
void cv_thirdparty_letter_goodbye(struct cv_thirdparty_letter *letter, const char *why);

#endif
