/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/sealing.h"

#include <stdio.h>
#include <stdlib.h>

#include "broker/both/rotate.h"
#include "broker/shared.h"
#include "common/base/finding.h"

/* ---- on a server ---- */

struct of_server {
  struct cv_rotate_party party;
  const struct cv_broker_settings *settings;
};

static enum cv_err open_shared(const struct cv_rotate_party *party, const struct cv_ring *ring, bool readonly,
                               void **ret, struct cv_why *why) {
  const struct of_server *own = (const struct of_server *)party;
  struct cv_shared *shared = malloc(sizeof(*shared));
  if (shared == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_shared_open(own->settings, ring, readonly ? CV_REMOTE_LOOK : CV_REMOTE_SEAL, shared, why);
  if (err != CV_OK) {
    free(shared);
    return err;
  }
  *ret = shared;
  return CV_OK;
}

static void close_shared(void *store) {
  cv_shared_close(store);
  free(store);
}

static struct cv_vault *vault_shared(void *store) {
  return cv_broker_store_vault(((struct cv_shared *)store)->store);
}

static int seal_shared(const struct cv_broker_settings *settings) {
  const struct cv_shared_name name = cv_shared_name(settings);
  const struct of_server own = {.party = {.program = CV_BROKER_PROGRAM,
                                          .name = "broker",
                                          .database = name.text,
                                          .is_shared = true,
                                          .anchor = settings->anchor,
                                          .seal_key = settings->seal_key,
                                          .admin = settings->daemon.admin,
                                          .audit = settings->daemon.audit,
                                          .open = open_shared,
                                          .close = close_shared,
                                          .vault = vault_shared},
                                .settings = settings};
  return cv_rotate_run(&own.party, (enum cv_rotate_mode)settings->seal);
}

/* ---- in a file ---- */

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
  if (settings->store != NULL) {
    return seal_shared(settings);
  }
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
