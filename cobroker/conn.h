/* SPDX-License-Identifier: Apache-2.0 */
/* A connection of the co-broker's core: the broker's, or one of a worker or gateway. */
#ifndef CV_COBROKER_CONN_H
#define CV_COBROKER_CONN_H

#include <stdbool.h>

#include "cobroker/outbox.h"
#include "common/net/identity.h"

struct cv_cobroker_session;

struct cv_cobroker_conn {
  struct cv_cobroker_conn *next, *prev; /* all connections */
  struct cv_identity identity;
  char who[CV_NAME_BYTES + 16]; /* "gateway/1-9" */
  void *shell;
  bool greeted, close_due;
  char goodbye[CV_WHY_BYTES];
  struct cv_cobroker_outbox gather, ready; /* for the next batch; for the batch being stored */
  size_t gathered;                         /* answers in `gather` */
  struct cv_cobroker_session *sessions;    /* of a worker or gateway: list, one a campaign */
  uint32_t *entered;                       /* campaigns that it has, or has had, a session of; owned */
  size_t entered_count, entered_cap;
};

#endif
