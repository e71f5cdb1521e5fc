/* SPDX-License-Identifier: Apache-2.0 */
/* The option --recover of a stopped broker or co-broker: repairs its database (repair.h), says what it charged, and
 * writes that to the audit log before it is in the database. */
#ifndef CV_BROKER_BOTH_RECOVERING_H
#define CV_BROKER_BOTH_RECOVERING_H

#include "broker/both/repair.h"

struct cv_recovering {
  const struct cv_repair_party *party;
  const char *program; /* "crowdveil-broker" */
  const char *name;    /* "broker", for messages */
  const char *database, *anchor, *seal_key, *audit;
  bool is_shared; /* repair.h */
  bool lost;
  const void *config;              /* of the party's core */
  uint64_t worker_micro;           /* its limit of a worker's epsilon */
  struct cv_recover_claims claims; /* of other parties */
};

/* Returns the exit status. */
CV_MUST_USE int cv_recovering_run(const struct cv_recovering *recovering);

#endif
