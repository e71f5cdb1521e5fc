/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a connection of workers keeps per campaign. */
#ifndef CV_BROKER_DEALING_H
#define CV_BROKER_DEALING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_broker;
struct cv_broker_campaign;

enum { CV_DEALINGS_MAX = 256 /* open campaigns per connection */ };

struct cv_dealing {
  uint32_t campaign;
  bool told, declined, done_told;
  uint32_t *held; /* places held, by item; owned */
  /* By arm, and gold item (gold.h): it has no score from this place of the arm's stream on. NULL: it said so of no arm;
   * owned. */
  uint64_t *below;
};

struct cv_dealings {
  struct cv_dealing *dealing; /* owned */
  uint32_t count;
  size_t cap;
};

void cv_dealings_fini(struct cv_dealings *dealings);
/* NULL if the connection has none for this campaign. */
struct cv_dealing *cv_dealings_find(const struct cv_dealings *dealings, uint32_t campaign);
/* Finds or creates it. CV_ERR_LIMIT if the connection has too many for open campaigns; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_dealings_make(struct cv_broker *broker, struct cv_dealings *dealings,
                                         const struct cv_broker_campaign *campaign, struct cv_dealing **ret);
/* The first place of the arm's stream that the connection has no score for; UINT64_MAX: it did not say. */
uint64_t cv_dealing_below(const struct cv_dealing *dealing, uint32_t arm);
/* Lowers that place. `arms`: of the campaign, with its gold items. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_dealing_lower(struct cv_dealing *dealing, uint32_t arms, uint32_t arm, uint64_t below);

#endif
