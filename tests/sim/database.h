/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a database that brokers share: rows, mark and terms, in memory. A transaction is a list of changes
 * that are made all at once, or not at all. */
#ifndef CV_SIM_DATABASE_H
#define CV_SIM_DATABASE_H

#include "broker/store/backend.h"
#include "broker/store/lineage.h"

struct row;

struct database {
  struct row *rows;
  bool is_new; /* without identity: nothing below is set */
  struct cv_anchor_mark mark;
  struct cv_digest prior;
  struct cv_lineage lineage;
  char disputed[200];
};

/* A wrapped key is a row of this kind, numbered by its use; the others are those of the operations. */
enum { DATABASE_KEY = 1000, DATABASE_KEYS_DROPPED };

struct change {
  uint32_t kind, campaign, chunk;
  uint64_t number, commit, term;
  uint8_t *bytes;
  size_t n;
};

struct changes {
  struct change *item;
  size_t n, cap;
};

void database_fini(struct database *database);
void database_copy(const struct database *from, struct database *to);
/* Adds a change, and copies its bytes. */
void changes_add(struct changes *changes, const struct change *change);
/* Removes all. */
void changes_clear(struct changes *changes);
/* False, and nothing has changed, if a row that may only be inserted exists. */
bool database_apply(struct database *database, const struct changes *changes);
/* The database's new mark, in the same transaction. */
void database_mark(struct database *database, const struct cv_anchor_mark *mark);

/* As in broker/store/backend.h; `each_term` is called before a row of a term is taken. */
enum cv_err database_each(const struct database *database, enum cv_backend_query query, uint32_t campaign,
                          void (*each_term)(void *owner, uint64_t term), void *owner, cv_backend_row_fn *take,
                          void *taker, struct cv_why *why);
uint32_t database_next_open(const struct database *database, uint32_t after);
/* The key of a campaign and use in the database, with the changes; false if there is none. */
bool database_key(const struct database *database, const struct changes *changes, uint32_t campaign, uint32_t use,
                  struct cv_vault_row *ret);
/* Calls `take` for each wrapped key, until one call fails. */
enum cv_err database_keys(const struct database *database,
                          enum cv_err (*take)(void *taker, const struct cv_vault_row *), void *taker);
/* Calls `take` with the bytes of every row. */
void database_bytes(const struct database *database, void (*take)(void *taker, const uint8_t *bytes, size_t n),
                    void *taker);

#endif
