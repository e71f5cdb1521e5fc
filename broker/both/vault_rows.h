/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a vault keeps its wrapped keys: rows of a database, whichever it is. At most one row has a campaign and a use.
 * Functions that change rows run in a transaction, the caller's own or one of begin().
 */
#ifndef CV_BROKER_BOTH_VAULT_ROWS_H
#define CV_BROKER_BOTH_VAULT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/crypto/crypto.h"
#include "common/crypto/ring.h"

enum { CV_VAULT_WRAPPED_BYTES = CV_KEY_BYTES + CV_SEAL_OVERHEAD };

struct cv_vault_row {
  uint32_t campaign, use;
  bool is_whole; /* master and wrapped have their lengths; else the row is damaged */
  struct cv_key_id master;
  uint8_t wrapped[CV_VAULT_WRAPPED_BYTES];
};

/* How many keys are stored, and how many of them one master key wraps. */
struct cv_vault_count {
  uint64_t keys, current;
};

/* `data` is that of struct cv_vault_rows. All errors are the database's. */
struct cv_vault_rows_ops {
  /* Adds the row, or replaces the one of the same campaign and use. */
  enum cv_err (*put)(void *data, const struct cv_vault_row *row, struct cv_why *why);
  /* Deletes the campaign's rows. */
  enum cv_err (*drop)(void *data, uint32_t campaign, struct cv_why *why);
  enum cv_err (*get)(void *data, uint32_t campaign, uint32_t use, struct cv_vault_row *ret, bool *ret_found,
                     struct cv_why *why);
  /* Any row that another master key wraps. */
  enum cv_err (*other)(void *data, const struct cv_key_id *master, struct cv_vault_row *ret, bool *ret_found,
                       struct cv_why *why);
  /* Calls `take` for each master key that wraps a row, until one call fails; with NULL for a damaged row. */
  enum cv_err (*masters)(void *data, enum cv_err (*take)(void *taker, const struct cv_key_id *id, struct cv_why *why),
                         void *taker, struct cv_why *why);
  enum cv_err (*count)(void *data, const struct cv_key_id *master, struct cv_vault_count *ret, struct cv_why *why);
  /* A transaction of the vault's own. `rollback` also after a failed commit. */
  enum cv_err (*begin)(void *data, struct cv_why *why);
  enum cv_err (*commit)(void *data, struct cv_why *why);
  void (*rollback)(void *data);
  /* After a commit: overwrites what is left of replaced rows, as far as the database can. */
  enum cv_err (*scrub)(void *data, struct cv_why *why);
  /* The database, for messages. */
  const char *(*name)(void *data);
};

struct cv_vault_rows {
  const struct cv_vault_rows_ops *ops;
  void *data;
};

#endif
