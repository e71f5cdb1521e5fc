/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of refused peer actions, by reason. Each reason has a name in the metrics. */
#ifndef CV_BASE_REFUSALS_H
#define CV_BASE_REFUSALS_H

#include <stdint.h>

#include "common/base/err.h"

#define CV_REFUSAL_TABLE(X)                                                                     \
  X(CV_REFUSED_HANDSHAKE, "handshake")   /* TLS: no TLS, version, ALPN, certificate, timeout */ \
  X(CV_REFUSED_CROWDED, "crowded")       /* an unfinished handshake closed to make room */      \
  X(CV_REFUSED_CONNECTION, "connection") /* the connection limit is reached */                  \
  X(CV_REFUSED_FRAME, "frame")           /* the frame's length is out of bounds */              \
  X(CV_REFUSED_SLOW, "slow")             /* a frame, or the first one, timed out */             \
  X(CV_REFUSED_DEAF, "deaf")             /* the peer's write queue is full */                   \
  X(CV_REFUSED_REKEY, "rekey")           /* too many key updates */                             \
  X(CV_REFUSED_MESSAGE, "message")       /* not a valid message */                              \
  X(CV_REFUSED_HELLO, "hello")           /* first message is not one hello of our version */    \
  X(CV_REFUSED_ROLE, "role")             /* a message or worker not allowed for this peer */    \
  X(CV_REFUSED_ORDER, "order")           /* a message out of order */                           \
  X(CV_REFUSED_LIMIT, "limit")           /* over a limit */                                     \
  X(CV_REFUSED_OVERLAP, "overlap")       /* worker ids overlap those of another certificate */  \
  X(CV_REFUSED_TICKET, "ticket")         /* a token with a ticket that we did not issue */      \
  X(CV_REFUSED_WORKER, "worker")         /* a token of a worker on another connection */        \
  X(CV_REFUSED_CAMPAIGN, "campaign")     /* a token or request for an unknown campaign */       \
  X(CV_REFUSED_VALUE, "value")           /* a token's values are out of range */                \
  X(CV_REFUSED_EPSILON, "epsilon")       /* a worker's lifetime epsilon is spent */             \
  X(CV_REFUSED_SUBMIT, "submit")         /* a campaign that this broker cannot run */           \
  X(CV_REFUSED_PLAN, "plan")             /* a plan that is invalid or over the budget */        \
  X(CV_REFUSED_HISTORY, "history")       /* a third-party whose history differs from ours */

enum cv_refusal {
#define CV_REFUSAL_ENTRY(name, text) name,
  CV_REFUSAL_TABLE(CV_REFUSAL_ENTRY)
#undef CV_REFUSAL_ENTRY
      CV_REFUSALS, /* the number of reasons; also means "not a refusal" */
};

struct cv_refusals {
  uint64_t count[CV_REFUSALS];
};

/* The reason's name in the metrics; never NULL. */
const char *cv_refusal_text(enum cv_refusal refusal);
/* The reason to count for an error returned for a peer's message; CV_REFUSALS for CV_OK. */
enum cv_refusal cv_refusal_of(enum cv_err err);
/* Counts one refusal; does nothing for CV_REFUSALS. */
void cv_refusals_add(struct cv_refusals *refusals, enum cv_refusal refusal);
/* Adds the counts of `others` to `refusals`. */
void cv_refusals_sum(struct cv_refusals *refusals, const struct cv_refusals *others);

#endif
