/* SPDX-License-Identifier: Apache-2.0 */
/* Closings: the broker says that an arm's open epoch is complete; if that is so here, too, the arm is charged and its
 * half of the release is made, once. */
#ifndef CV_COBROKER_CLOSING_H
#define CV_COBROKER_CLOSING_H

#include "common/base/err.h"
#include "proto/codec/share.h"

struct cv_cobroker;
struct cv_cobroker_campaign;

/* Handles a Close of an open campaign, which it may freeze. An error means that the broker broke the protocol;
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_close(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                          const struct cv_share_close *close, struct cv_why *why);
/* Appends a closing with its half to the campaign's history. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_closing_add(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign,
                                                const struct cv_share_close *close, uint64_t half);
/* The stored form. Reading gives it the number of the campaign's next closing; CV_ERR_DAMAGED. */
void cv_cobroker_closing_put(const struct cv_share_close *close, uint64_t half, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_cobroker_closing_read(const struct cv_cobroker_campaign *campaign, struct cv_reader *row,
                                                 struct cv_share_close *ret, uint64_t *ret_half);

#endif
