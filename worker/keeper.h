/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the record of the core of a worker (core.h) in its store. */
#ifndef CV_WORKER_KEEPER_H
#define CV_WORKER_KEEPER_H

#include "worker/core.h"
#include "worker/store.h"

struct cv_keeper {
  struct cv_worker_store *store; /* borrowed */
  uint64_t most;                 /* disclosures of a data file; 0: any number */
  bool failed;                   /* no memory for what the store has to know */
  struct cv_worker_record record;
};

/* `keeper` must not move afterwards. */
void cv_keeper_init(struct cv_keeper *keeper, struct cv_worker_store *store, uint64_t most);

#endif
