/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/vault.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/table.h"

/* A campaign's sealing context, kept while the campaign runs. */
struct seal_entry {
  uint32_t campaign;
  struct cv_seal *seal;
  UT_hash_handle hh;
};

struct cv_vault {
  struct cv_ring ring;
  struct cv_vault_rows rows;
  uint8_t database[CV_DATABASE_ID_BYTES];
  bool has_term;
  uint8_t term[CV_TERM_ID_BYTES];
  struct seal_entry *seals;
};

static void seal_entry_free(struct seal_entry *entry) {
  cv_seal_free(entry->seal);
  free(entry);
}

enum cv_err cv_vault_new(const struct cv_ring *ring, struct cv_vault **ret) {
  struct cv_vault *vault = calloc(1, sizeof(*vault));
  if (vault == NULL) {
    return CV_ERR_NOMEM;
  }
  if (cv_ring_copy(ring, ring->n, &vault->ring) != CV_OK) {
    free(vault);
    return CV_ERR_NOMEM;
  }
  *ret = vault;
  return CV_OK;
}

void cv_vault_free(struct cv_vault *vault) {
  if (vault == NULL) {
    return;
  }
  CV_TABLE_DRAIN(vault->seals, seal_entry_free);
  cv_ring_fini(&vault->ring);
  free(vault);
}

struct cv_key_id cv_vault_current(const struct cv_vault *vault) {
  return cv_key_id(vault->ring.item[0].key);
}

/* ---- wrapping ---- */

/* Where a key belongs. */
struct place {
  uint32_t campaign, use;
};

/* What a wrapped key is bound to: moved to another row, or under another master key, it does not open. */
struct bound {
  uint8_t bytes[CV_DATABASE_ID_BYTES + 4 + 4 + CV_KEY_ID_BYTES];
};

static struct bound bind_to(const struct cv_vault *vault, struct place place, const struct cv_key_id *master) {
  struct bound bound;
  struct cv_buf out = {.data = bound.bytes, .cap = sizeof(bound.bytes)};
  cv_buf_put(&out, vault->database, sizeof(vault->database));
  cv_buf_put_u32(&out, place.campaign);
  cv_buf_put_u32(&out, place.use);
  cv_buf_put(&out, master->bytes, sizeof(master->bytes));
  return bound;
}

/* The context that wraps and unwraps under a master key. */
static enum cv_err wrapper_of(const struct cv_key *master, struct cv_seal **ret) {
  struct cv_key key;
  CV_TRY(cv_key_derive(master, "crowdveil wrap", 0, &key));
  enum cv_err err = cv_seal_new(&key, ret);
  cv_key_wipe(&key);
  return err;
}

static enum cv_err wrap(const struct cv_vault *vault, struct place place, const struct cv_key *key,
                        const struct cv_key_id *master, uint8_t to[CV_VAULT_WRAPPED_BYTES]) {
  struct bound bound = bind_to(vault, place, master);
  struct cv_buf out = {.data = to, .cap = CV_VAULT_WRAPPED_BYTES};
  struct cv_seal *seal = NULL;
  CV_TRY(wrapper_of(vault->ring.item[0].key, &seal));
  enum cv_err err = cv_seal_close(seal, bound.bytes, sizeof(bound.bytes), key->bytes, sizeof(key->bytes), &out);
  cv_seal_free(seal);
  return err;
}

static enum cv_err unwrap(const struct cv_vault *vault, struct place place, const struct cv_key_id *id,
                          const struct cv_key *master, const void *wrapped, struct cv_key *ret) {
  struct bound bound = bind_to(vault, place, id);
  uint8_t bytes[CV_KEY_BYTES + 1]; /* cv_seal_open() reserves a byte more: the key never gets to the heap */
  struct cv_buf out = {.data = bytes, .cap = sizeof(bytes)};
  struct cv_seal *seal = NULL;
  CV_TRY(wrapper_of(master, &seal));
  enum cv_err err = cv_seal_open(seal, bound.bytes, sizeof(bound.bytes), wrapped, CV_VAULT_WRAPPED_BYTES, &out);
  cv_seal_free(seal);
  if (err == CV_OK) {
    memcpy(ret->bytes, bytes, sizeof(ret->bytes));
  }
  explicit_bzero(bytes, sizeof(bytes));
  return err;
}

static const char *name_of(const struct cv_vault *vault) {
  return vault->rows.ops->name(vault->rows.data);
}

static enum cv_err fail_own(enum cv_err err, struct cv_why *why) {
  return cv_fail(why, err, "the broker's database: cannot wrap a key: %s", cv_err_text(err));
}

/* ---- rows ---- */

/* Names both sides: the operator looks for the file that has the key. */
static enum cv_err fail_master(const struct cv_vault *vault, const struct cv_ring *ring, const struct cv_key_id *id,
                               struct cv_why *why) {
  return cv_fail(why, CV_ERR_DAMAGED,
                 "%s: its keys are wrapped by seal key %s; the file of seal_key has %s; expected that key in the file",
                 name_of(vault), cv_key_name(id).text, cv_ring_names(ring).text);
}

/* Unwraps the key of a row. */
static enum cv_err take_row(const struct cv_vault *vault, const struct cv_vault_row *row, struct cv_key *ret,
                            struct cv_why *why) {
  enum cv_err err = CV_ERR_DAMAGED;
  if (row->is_whole) {
    const struct cv_key *master = cv_ring_find(&vault->ring, &row->master);
    if (master == NULL) {
      return fail_master(vault, &vault->ring, &row->master, why);
    }
    err = unwrap(vault, (struct place){row->campaign, row->use}, &row->master, master, row->wrapped, ret);
  }
  return err == CV_ERR_DAMAGED
             ? cv_fail(why, err, "%s: table wrapped_key, campaign %u, use %u: not as it was stored; expected a key",
                       name_of(vault), row->campaign, row->use)
         : err == CV_OK ? err
                        : fail_own(err, why);
}

static enum cv_err put(struct cv_vault *vault, struct place place, const struct cv_key *key, struct cv_why *why) {
  struct cv_vault_row row = {
      .campaign = place.campaign, .use = place.use, .is_whole = true, .master = cv_vault_current(vault)};
  enum cv_err err = wrap(vault, place, key, &row.master, row.wrapped);
  if (err != CV_OK) {
    return fail_own(err, why);
  }
  return vault->rows.ops->put(vault->rows.data, &row, why);
}

/* The master keys that wrap stored keys, compared with a ring. */
struct masters {
  const struct cv_vault *vault;
  const struct cv_ring *ring;
};

static enum cv_err take_master(void *taker, const struct cv_key_id *id, struct cv_why *why) {
  const struct masters *masters = taker;
  return id == NULL || cv_ring_find(masters->ring, id) != NULL ? CV_OK
                                                               : fail_master(masters->vault, masters->ring, id, why);
}

/* Each master key that wraps stored keys must be in the ring. */
static enum cv_err check_masters(const struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why) {
  struct masters masters = {.vault = vault, .ring = ring};
  return vault->rows.ops->masters(vault->rows.data, take_master, &masters, why);
}

/* ---- changes ---- */

enum cv_err cv_vault_open(struct cv_vault *vault, struct cv_vault_rows rows,
                          const uint8_t database[CV_DATABASE_ID_BYTES], struct cv_why *why) {
  vault->rows = rows;
  memcpy(vault->database, database, CV_DATABASE_ID_BYTES);
  return check_masters(vault, &vault->ring, why);
}

enum cv_err cv_vault_begin(struct cv_vault *vault, struct cv_why *why) {
  static const enum cv_vault_use own_keys[] = {CV_VAULT_SEAL, CV_VAULT_ROWS, CV_VAULT_TICKETS};
  for (size_t i = 0; i < CV_COUNT(own_keys); i++) {
    CV_TRY(cv_vault_renew(vault, 0, own_keys[i], why));
  }
  return CV_OK;
}

enum cv_err cv_vault_renew(struct cv_vault *vault, uint32_t campaign, enum cv_vault_use use, struct cv_why *why) {
  struct cv_key key;
  enum cv_err err = cv_key_random(&key);
  if (err != CV_OK) {
    return fail_own(err, why);
  }
  err = put(vault, (struct place){campaign, use}, &key, why);
  cv_key_wipe(&key);
  return err;
}

static void forget_seal(struct cv_vault *vault, uint32_t campaign) {
  struct seal_entry *entry;
  HASH_FIND(hh, vault->seals, &campaign, sizeof(campaign), entry);
  if (entry != NULL) {
    HASH_DEL(vault->seals, entry);
    seal_entry_free(entry);
  }
}

enum cv_err cv_vault_drop(struct cv_vault *vault, uint32_t campaign, struct cv_why *why) {
  forget_seal(vault, campaign);
  return vault->rows.ops->drop(vault->rows.data, campaign, why);
}

enum cv_err cv_vault_rewrap(struct cv_vault *vault, struct cv_why *why) {
  struct cv_key_id current = cv_vault_current(vault);
  for (;;) {
    struct cv_vault_row row;
    struct cv_key key;
    bool found;
    CV_TRY(vault->rows.ops->other(vault->rows.data, &current, &row, &found, why));
    if (!found) {
      return CV_OK;
    }
    CV_TRY(take_row(vault, &row, &key, why));
    enum cv_err err = put(vault, (struct place){row.campaign, row.use}, &key, why);
    cv_key_wipe(&key);
    CV_TRY(err);
  }
}

enum cv_err cv_vault_trust(struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why) {
  struct cv_ring copy;
  CV_TRY(check_masters(vault, ring, why));
  if (cv_ring_copy(ring, ring->n, &copy) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  cv_ring_fini(&vault->ring);
  vault->ring = copy;
  return CV_OK;
}

void cv_vault_distrust(struct cv_vault *vault) {
  cv_ring_cut(&vault->ring, 1);
}

/* ---- reading ---- */

enum cv_err cv_vault_key(struct cv_vault *vault, uint32_t campaign, enum cv_vault_use use, struct cv_key *ret,
                         struct cv_why *why) {
  struct cv_vault_row row;
  bool found;
  CV_TRY(vault->rows.ops->get(vault->rows.data, campaign, use, &row, &found, why));
  return found ? take_row(vault, &row, ret, why)
               : cv_fail(why, CV_ERR_NOT_FOUND, "%s: table wrapped_key: no key of campaign %u, use %u", name_of(vault),
                         campaign, (unsigned)use);
}

void cv_vault_set_term(struct cv_vault *vault, const uint8_t id[CV_TERM_ID_BYTES]) {
  if (!vault->has_term || memcmp(vault->term, id, CV_TERM_ID_BYTES) != 0) {
    CV_TABLE_DRAIN(vault->seals, seal_entry_free);
    memcpy(vault->term, id, CV_TERM_ID_BYTES);
    vault->has_term = true;
  }
}

/* Turns a campaign's key into that of the term: one derivation for each half of the term's id. */
static enum cv_err to_term(const struct cv_vault *vault, struct cv_key *key) {
  struct cv_reader id = cv_reader_over(vault->term, sizeof(vault->term));
  for (size_t half = 0; vault->has_term && half < sizeof(vault->term) / sizeof(uint64_t); half++) {
    struct cv_key before = *key;
    enum cv_err err = cv_key_derive(&before, "crowdveil term", cv_read_u64(&id), key);
    cv_key_wipe(&before);
    CV_TRY(err);
  }
  return CV_OK;
}

static enum cv_err make_seal(struct cv_vault *vault, uint32_t campaign, struct cv_seal **ret, struct cv_why *why) {
  struct cv_key key;
  CV_TRY(cv_vault_key(vault, campaign, CV_VAULT_SEAL, &key, why));
  enum cv_err err = to_term(vault, &key);
  err = err == CV_OK ? cv_seal_new(&key, ret) : err;
  cv_key_wipe(&key);
  return err == CV_OK ? err : fail_own(err, why);
}

enum cv_err cv_vault_seal(struct cv_vault *vault, uint32_t campaign, struct cv_seal **ret, struct cv_why *why) {
  struct seal_entry *entry;
  HASH_FIND(hh, vault->seals, &campaign, sizeof(campaign), entry);
  if (entry == NULL) {
    struct cv_seal *seal;
    CV_TRY(make_seal(vault, campaign, &seal, why));
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
      cv_seal_free(seal);
      return fail_own(CV_ERR_NOMEM, why);
    }
    *entry = (struct seal_entry){.campaign = campaign, .seal = seal};
    if (CV_TABLE_ADD(vault->seals, campaign, entry) != CV_OK) {
      seal_entry_free(entry);
      return fail_own(CV_ERR_NOMEM, why);
    }
  }
  *ret = entry->seal;
  return CV_OK;
}

enum cv_err cv_vault_count(struct cv_vault *vault, struct cv_vault_count *ret, struct cv_why *why) {
  struct cv_key_id current = cv_vault_current(vault);
  return vault->rows.ops->count(vault->rows.data, &current, ret, why);
}

/* ---- with a transaction ---- */

enum cv_err cv_vault_keep(struct cv_vault *vault, struct cv_why *why) {
  struct cv_vault_count count = {.keys = 0};
  CV_TRY(cv_vault_count(vault, &count, why));
  if (count.current == count.keys) {
    return CV_OK;
  }
  CV_TRY(vault->rows.ops->begin(vault->rows.data, why));
  enum cv_err err = cv_vault_rewrap(vault, why);
  err = err == CV_OK ? vault->rows.ops->commit(vault->rows.data, why) : err;
  if (err != CV_OK) {
    vault->rows.ops->rollback(vault->rows.data);
    return err;
  }
  return vault->rows.ops->scrub(vault->rows.data, why);
}

enum cv_err cv_vault_rekey(struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why) {
  CV_TRY(cv_vault_trust(vault, ring, why));
  CV_TRY(cv_vault_keep(vault, why));
  cv_vault_distrust(vault);
  return CV_OK;
}
