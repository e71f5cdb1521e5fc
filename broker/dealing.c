/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection has to do with each campaign. */
#include <stdlib.h>

#include "broker/state.h"

enum { DEALINGS_MAX = 256 };

struct cv_dealing *cv_dealing_find(struct cv_broker_conn *conn, uint32_t campaign) {
  for (uint32_t i = 0; i < conn->dealings; i++) {
    if (conn->dealing[i].campaign == campaign) {
      return &conn->dealing[i];
    }
  }
  return NULL;
}

/* A place for one more: that of a campaign which is over for this connection, or a new one; or CV_ERR_LIMIT. */
static enum cv_err make_room(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_dealing **ret) {
  for (uint32_t i = 0; i < conn->dealings; i++) {
    const struct cv_campaign *old = cv_campaign_find(broker, conn->dealing[i].campaign);
    if (old == NULL || (old->phase == CV_PHASE_ENDED && (conn->dealing[i].done_told || !conn->dealing[i].told))) {
      free(conn->dealing[i].held);
      *ret = &conn->dealing[i];
      return CV_OK;
    }
  }
  if (conn->dealings == DEALINGS_MAX) {
    return CV_ERR_LIMIT;
  }
  if (conn->dealings == conn->dealings_cap) {
    uint32_t cap = conn->dealings_cap == 0 ? 4 : conn->dealings_cap * 2;
    struct cv_dealing *grown = realloc(conn->dealing, cap * sizeof(*grown));
    if (grown == NULL) {
      return CV_ERR_NOMEM;
    }
    conn->dealing = grown;
    conn->dealings_cap = cap;
  }
  *ret = &conn->dealing[conn->dealings++];
  return CV_OK;
}

enum cv_err cv_dealing_make(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_campaign *campaign,
                            struct cv_dealing **ret) {
  struct cv_dealing *dealing = cv_dealing_find(conn, campaign->id);
  if (dealing == NULL) {
    uint32_t *held = calloc(campaign->spec.arms, sizeof(*held));
    enum cv_err err = held == NULL ? CV_ERR_NOMEM : make_room(broker, conn, &dealing);
    if (err != CV_OK) {
      free(held);
      return err;
    }
    *dealing = (struct cv_dealing){.campaign = campaign->id, .held = held};
  }
  *ret = dealing;
  return CV_OK;
}
