/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ticket names a place (campaign, plan, item, position below the planned tokens) and a payer (worker, slot below
 * tokens_per_worker). It is authenticated, not stored: a token counts only if its ticket is genuine and both place and
 * payer are free. In a campaign with gold items it is masked, too, since the place would tell them: a worker that reads
 * tickets learns the campaign only. `lease` locates the connection's open assignment, and `expiry` is a hint for the
 * worker; safety depends on neither.
 */
#ifndef CV_BROKER_TICKET_H
#define CV_BROKER_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Same as on the wire. */
enum { CV_BROKER_TICKET_BYTES = 48, CV_BROKER_TICKET_TAG = 12 };

struct cv_ticket {
  uint32_t campaign;
  uint32_t plan;
  uint32_t item; /* as workers number them, see gold.h */
  uint32_t position;
  uint64_t worker;
  uint32_t slot;
  uint32_t lease;
  uint32_t expiry; /* seconds since 1970, truncated to 32 bits */
  bool is_masked;
};

/* Authentication, passed as an argument: writes `n` bytes of the tag of `bytes`. CV_ERR_NOMEM is the only error. */
struct cv_tagger {
  enum cv_err (*tag)(void *data, const void *bytes, size_t bytes_n, uint8_t *tag, size_t n);
  void *data;
};

/* Encodes the ticket with its tag. `campaign` is below 2^31. */
CV_MUST_USE enum cv_err cv_ticket_seal(const struct cv_ticket *ticket, const struct cv_tagger *tagger,
                                       uint8_t ret_bytes[CV_BROKER_TICKET_BYTES]);
/* CV_ERR_DENIED if the tag is wrong. */
CV_MUST_USE enum cv_err cv_ticket_open(const uint8_t sealed[CV_BROKER_TICKET_BYTES], const struct cv_tagger *tagger,
                                       struct cv_ticket *ret);

#endif
