/* SPDX-License-Identifier: Apache-2.0 */
/* The next frame to a connection, in arrays that are reused. */
#ifndef CV_COBROKER_OUTBOX_H
#define CV_COBROKER_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/codec/share.h"

struct cv_cobroker_outbox {
  struct cv_share_frame frame; /* its arrays, and what they point to, are owned */
  size_t sessions_cap, turned_cap, opened_cap, plans_opened_cap, plans_refused_cap, answers_cap, closed_cap, ended_cap;
};

/* Each appends one message, copying what it points to. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_say_session(struct cv_cobroker_outbox *out, const struct cv_share_session *message);
CV_MUST_USE enum cv_err cv_cobroker_say_turned(struct cv_cobroker_outbox *out, const struct cv_share_turned *message);
CV_MUST_USE enum cv_err cv_cobroker_say_opened(struct cv_cobroker_outbox *out, const struct cv_share_opened *message);
CV_MUST_USE enum cv_err cv_cobroker_say_plan_opened(struct cv_cobroker_outbox *out, uint64_t campaign, uint64_t plan);
CV_MUST_USE enum cv_err cv_cobroker_say_plan_refused(struct cv_cobroker_outbox *out,
                                                     const struct cv_share_refused *message);
CV_MUST_USE enum cv_err cv_cobroker_say_answers(struct cv_cobroker_outbox *out, const struct cv_share_answers *message);
CV_MUST_USE enum cv_err cv_cobroker_say_closed(struct cv_cobroker_outbox *out, const struct cv_share_closed *message);
CV_MUST_USE enum cv_err cv_cobroker_say_ended(struct cv_cobroker_outbox *out, const struct cv_share_end *message);

/* Takes back the halves of the campaign, wiping them. */
void cv_cobroker_unsay_closed(struct cv_cobroker_outbox *out, uint64_t campaign);

/* Whether the frame has nothing to send. */
bool cv_cobroker_outbox_is_empty(const struct cv_share_frame *frame);
/* Empties the frame after it was sent, wiping keys and halves; keeps the allocated memory unless it is large. */
void cv_cobroker_outbox_empty(struct cv_cobroker_outbox *out);
void cv_cobroker_outbox_fini(struct cv_cobroker_outbox *out);

#endif
