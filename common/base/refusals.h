/* SPDX-License-Identifier: Apache-2.0 */
/* Why something that a peer did was refused: counters with the names that an operator reads in the metrics. */
#ifndef CV_BASE_REFUSALS_H
#define CV_BASE_REFUSALS_H

#include <stdint.h>

#include "common/base/err.h"

#define CV_REFUSAL_TABLE(X)                                                                         \
  X(CV_REFUSED_HANDSHAKE, "handshake")   /* TLS: no TLS, version, ALPN, certificate, too late */    \
  X(CV_REFUSED_CROWDED, "crowded")       /* an unfinished handshake gave its place to a newcomer */ \
  X(CV_REFUSED_CONNECTION, "connection") /* all places for connections are taken */                 \
  X(CV_REFUSED_FRAME, "frame")           /* its length is out of bounds */                          \
  X(CV_REFUSED_SLOW, "slow")             /* a frame, or the first one, took too long */             \
  X(CV_REFUSED_DEAF, "deaf")             /* it does not read what it is sent */                     \
  X(CV_REFUSED_REKEY, "rekey")           /* too many key updates */                                 \
  X(CV_REFUSED_MESSAGE, "message")       /* no valid message */                                     \
  X(CV_REFUSED_HELLO, "hello")           /* not one hello of our version first */                   \
  X(CV_REFUSED_ROLE, "role")             /* a message or a worker that this peer may not send */    \
  X(CV_REFUSED_ORDER, "order")           /* a message that does not fit what was said before */     \
  X(CV_REFUSED_LIMIT, "limit")           /* more than a limit allows */                             \
  X(CV_REFUSED_OVERLAP, "overlap")       /* a certificate whose workers another one has, too */     \
  X(CV_REFUSED_TICKET, "ticket")         /* a token's ticket is not one of ours */                  \
  X(CV_REFUSED_WORKER, "worker")         /* a token of another connection's worker */               \
  X(CV_REFUSED_CAMPAIGN, "campaign")     /* a token or request for an unknown campaign */           \
  X(CV_REFUSED_VALUE, "value")           /* a token's values are out of range */                    \
  X(CV_REFUSED_EPSILON, "epsilon")       /* a worker's lifetime epsilon is spent */                 \
  X(CV_REFUSED_SUBMIT, "submit")         /* a campaign that cannot be run, or not here */           \
  X(CV_REFUSED_PLAN, "plan")             /* a plan that makes no sense or is over the budget */     \
  X(CV_REFUSED_HISTORY, "history")       /* a third-party that knows another history */

enum cv_refusal {
#define CV_REFUSAL_ENTRY(name, text) name,
  CV_REFUSAL_TABLE(CV_REFUSAL_ENTRY)
#undef CV_REFUSAL_ENTRY
      CV_REFUSALS, /* how many there are; also: not a refusal */
};

struct cv_refusals {
  uint64_t count[CV_REFUSALS];
};

/* One word, as in the metrics; never NULL. */
const char *cv_refusal_text(enum cv_refusal refusal);
/* What a peer did if our answer to its message is this error; CV_REFUSALS for CV_OK. */
enum cv_refusal cv_refusal_of(enum cv_err err);
/* Counts one; nothing for CV_REFUSALS. */
void cv_refusals_add(struct cv_refusals *refusals, enum cv_refusal refusal);

#endif
