/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/sealing.h"

#include <stdio.h>

#include "broker/both/rotate.h"
#include "common/base/finding.h"

static enum cv_err open_store(const struct cv_rotate_party *party, const struct cv_ring *ring, bool readonly,
                              void **ret, struct cv_why *why) {
  const struct cv_store_files files = {.database = party->database, .anchor = party->anchor, .readonly = readonly};
  struct cv_broker_store *store;
  CV_TRY(cv_broker_store_open(&files, ring, &store, why));
  *ret = store;
  return CV_OK;
}

static void close_store(void *store) {
  cv_broker_store_close(store);
}

static struct cv_vault *vault(void *store) {
  return cv_broker_store_vault(store);
}

int cv_broker_seal(const struct cv_broker_settings *settings) {
  char database[4096];
  const struct cv_rotate_party party = {.program = "crowdveil-broker",
                                        .name = "broker",
                                        .database = database,
                                        .anchor = settings->anchor,
                                        .seal_key = settings->seal_key,
                                        .admin = settings->daemon.admin,
                                        .audit = settings->daemon.audit,
                                        .open = open_store,
                                        .close = close_store,
                                        .vault = vault};
  if (snprintf(database, sizeof(database), "%s/broker.db", settings->state) >= (int)sizeof(database)) {
    cv_finding(CV_FINDING_WRONG, "", "state: path too long");
    return 1;
  }
  return cv_rotate_run(&party, (enum cv_rotate_mode)settings->seal);
}
