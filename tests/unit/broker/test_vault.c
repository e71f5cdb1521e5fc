/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a broker's database: random, wrapped, bound to their place, and wrapped anew without a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "broker/both/vault.h"
#include "broker/both/vault_table.h"
#include "tests/support/folder.h"

static const uint8_t database_id[CV_DATABASE_ID_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

struct fixture {
  struct folder folder;
  struct cv_db *db;
  struct cv_ring ring;
  struct cv_vault *vault;
};

static struct cv_vault *open_vault(struct fixture *fixture) {
  struct cv_vault *vault;
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_vault_new(&fixture->ring, &vault), CV_OK);
  if (cv_vault_open(vault, cv_vault_table(fixture->db), database_id, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return vault;
}

static void reopen(struct fixture *fixture) {
  cv_vault_free(fixture->vault);
  fixture->vault = open_vault(fixture);
}

static int set_up(void **state) {
  static struct fixture fixture;
  const char *const all[] = {CV_VAULT_TABLE};
  const struct cv_db_schema schema = {.application_id = 1, .steps = all, .first = 1, .count = 1};
  memset(&fixture, 0, sizeof(fixture));
  folder_make(&fixture.folder);
  assert_int_equal(cv_db_open(folder_file(&fixture.folder, "db"), NULL, &schema, &fixture.db, NULL), CV_OK);
  assert_int_equal(cv_ring_renew(&fixture.ring, 0), CV_OK);
  fixture.vault = open_vault(&fixture);
  *state = &fixture;
  return 0;
}

static int tear_down(void **state) {
  struct fixture *fixture = *state;
  cv_vault_free(fixture->vault);
  cv_ring_fini(&fixture->ring);
  cv_db_close(fixture->db);
  folder_remove(&fixture->folder);
  return 0;
}

/* A new database with campaigns 1 and 2. */
static void begin(struct fixture *fixture) {
  assert_int_equal(cv_vault_begin(fixture->vault, NULL), CV_OK);
  for (uint32_t campaign = 1; campaign <= 2; campaign++) {
    assert_int_equal(cv_vault_renew(fixture->vault, campaign, CV_VAULT_SEAL, NULL), CV_OK);
  }
}

static struct cv_key key_of(struct fixture *fixture, uint32_t campaign, enum cv_vault_use use) {
  struct cv_key key;
  struct cv_why why = {.text = ""};
  if (cv_vault_key(fixture->vault, campaign, use, &key, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return key;
}

static const struct {
  uint32_t campaign;
  enum cv_vault_use use;
} places[] = {{0, CV_VAULT_SEAL}, {0, CV_VAULT_ROWS}, {0, CV_VAULT_TICKETS}, {1, CV_VAULT_SEAL}, {2, CV_VAULT_SEAL}};

static void keys_of(struct fixture *fixture, struct cv_key ret[CV_COUNT(places)]) {
  for (size_t i = 0; i < CV_COUNT(places); i++) {
    ret[i] = key_of(fixture, places[i].campaign, places[i].use);
  }
}

static void test_keys_are_different_and_stay(void **state) {
  struct fixture *fixture = *state;
  struct cv_key first[CV_COUNT(places)], again[CV_COUNT(places)];
  struct cv_vault_count count;
  begin(fixture);
  keys_of(fixture, first);
  reopen(fixture);
  keys_of(fixture, again);
  for (size_t i = 0; i < CV_COUNT(places); i++) {
    assert_memory_equal(&first[i], &again[i], sizeof(first[i]));
    for (size_t j = 0; j < i; j++) {
      assert_memory_not_equal(&first[i], &first[j], sizeof(first[i]));
    }
  }
  assert_int_equal(cv_vault_count(fixture->vault, &count, NULL), CV_OK);
  assert_int_equal(count.keys, 5);
  assert_int_equal(count.current, 5);
}

/* Each change that an attacker without the master key can make: the key does not open, and the line says where. */
static void test_a_wrapped_key_fits_its_place_only(void **state) {
  struct fixture *fixture = *state;
  static const struct {
    const char *sql;
    uint32_t campaign;
    enum cv_vault_use use;
  } cases[] = {
      {"UPDATE wrapped_key SET wrapped = (SELECT wrapped FROM wrapped_key WHERE campaign = 2) WHERE campaign = 1", 1,
       CV_VAULT_SEAL},
      {"UPDATE wrapped_key SET wrapped = (SELECT wrapped FROM wrapped_key WHERE campaign = 0 AND use = 1)"
       " WHERE campaign = 0 AND use = 3",
       0, CV_VAULT_TICKETS},
      {"UPDATE wrapped_key SET wrapped = (SELECT wrapped FROM wrapped_key WHERE campaign = 0 AND use = 1)"
       " WHERE campaign = 1",
       1, CV_VAULT_SEAL},
      {"UPDATE wrapped_key SET wrapped = zeroblob(60) WHERE campaign = 1", 1, CV_VAULT_SEAL},
      {"UPDATE wrapped_key SET wrapped = substr(wrapped, 2) WHERE campaign = 1", 1, CV_VAULT_SEAL},
      {"UPDATE wrapped_key SET wrapped = zeroblob(0) WHERE campaign = 1", 1, CV_VAULT_SEAL},
      {"UPDATE wrapped_key SET master = zeroblob(7) WHERE campaign = 1", 1, CV_VAULT_SEAL},
  };
  begin(fixture);
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_key key = {{0x77}};
    struct cv_why why = {.text = ""};
    char line[96];
    assert_int_equal(cv_db_exec(fixture->db, "SAVEPOINT case_of_test", NULL), CV_OK);
    assert_int_equal(cv_db_exec(fixture->db, cases[i].sql, NULL), CV_OK);
    assert_int_equal(cv_vault_key(fixture->vault, cases[i].campaign, cases[i].use, &key, &why), CV_ERR_DAMAGED);
    assert_int_equal(key.bytes[0], 0x77);
    (void)snprintf(line, sizeof(line), "table wrapped_key, campaign %u, use %u", cases[i].campaign,
                   (unsigned)cases[i].use);
    assert_non_null(strstr(why.text, line));
    assert_int_equal(cv_db_exec(fixture->db, "ROLLBACK TO case_of_test; RELEASE case_of_test", NULL), CV_OK);
  }
  (void)key_of(fixture, 1, CV_VAULT_SEAL);
}

static void test_a_wrapped_key_fits_its_database_only(void **state) {
  struct fixture *fixture = *state;
  const uint8_t other[CV_DATABASE_ID_BYTES] = {1};
  struct cv_key key;
  begin(fixture);
  assert_int_equal(cv_vault_open(fixture->vault, cv_vault_table(fixture->db), other, NULL), CV_OK);
  assert_int_equal(cv_vault_key(fixture->vault, 1, CV_VAULT_SEAL, &key, NULL), CV_ERR_DAMAGED);
}

/* A value that the old context sealed opens with the new one, and the old master key is not needed. */
static void test_wrapped_anew_the_keys_are_the_same(void **state) {
  struct fixture *fixture = *state;
  struct cv_key before[CV_COUNT(places)], after[CV_COUNT(places)];
  struct cv_vault_count count;
  struct cv_key_id old = cv_key_id(fixture->ring.item[0].key);
  begin(fixture);
  keys_of(fixture, before);
  assert_int_equal(cv_ring_renew(&fixture->ring, 0), CV_OK);
  assert_int_equal(cv_vault_trust(fixture->vault, &fixture->ring, NULL), CV_OK);
  assert_int_equal(cv_vault_count(fixture->vault, &count, NULL), CV_OK);
  assert_int_equal(count.current, 0);
  keys_of(fixture, after); /* half way: the old key unwraps */
  assert_memory_equal(before, after, sizeof(before));
  assert_int_equal(cv_vault_rewrap(fixture->vault, NULL), CV_OK);
  cv_vault_distrust(fixture->vault);
  assert_int_equal(cv_vault_count(fixture->vault, &count, NULL), CV_OK);
  assert_int_equal(count.current, 5);
  cv_ring_cut(&fixture->ring, 1);
  assert_null(cv_ring_find(&fixture->ring, &old));
  reopen(fixture);
  keys_of(fixture, after);
  assert_memory_equal(before, after, sizeof(before));
}

static void test_a_ring_without_the_key_is_refused_by_name(void **state) {
  struct fixture *fixture = *state;
  struct cv_ring other = {.n = 0};
  struct cv_vault *vault;
  struct cv_why why = {.text = ""};
  begin(fixture);
  assert_int_equal(cv_ring_renew(&other, 0), CV_OK);
  assert_int_equal(cv_ring_renew(&other, 0), CV_OK);
  assert_int_equal(cv_vault_trust(fixture->vault, &other, &why), CV_ERR_DAMAGED);
  assert_non_null(strstr(why.text, cv_ring_names(&fixture->ring).text));
  assert_non_null(strstr(why.text, cv_ring_names(&other).text));
  (void)key_of(fixture, 1, CV_VAULT_SEAL); /* nothing has changed */
  assert_int_equal(cv_vault_new(&other, &vault), CV_OK);
  assert_int_equal(cv_vault_open(vault, cv_vault_table(fixture->db), database_id, &why), CV_ERR_DAMAGED);
  cv_vault_free(vault);
  cv_ring_fini(&other);
}

/* The key and its context are gone; the next campaign of that number gets another one. */
static void test_a_dropped_key_is_gone(void **state) {
  struct fixture *fixture = *state;
  struct cv_key key;
  struct cv_seal *seal;
  struct cv_why why = {.text = ""};
  struct cv_buf sealed = {0}, plain = {0};
  begin(fixture);
  assert_int_equal(cv_vault_seal(fixture->vault, 1, &seal, NULL), CV_OK);
  assert_int_equal(cv_seal_close(seal, NULL, 0, "sum", 3, &sealed), CV_OK);
  assert_int_equal(cv_vault_drop(fixture->vault, 1, NULL), CV_OK);
  assert_int_equal(cv_vault_key(fixture->vault, 1, CV_VAULT_SEAL, &key, &why), CV_ERR_NOT_FOUND);
  assert_non_null(strstr(why.text, "no key of campaign 1"));
  assert_int_equal(cv_vault_seal(fixture->vault, 1, &seal, NULL), CV_ERR_NOT_FOUND);
  assert_int_equal(cv_vault_renew(fixture->vault, 1, CV_VAULT_SEAL, NULL), CV_OK);
  assert_int_equal(cv_vault_seal(fixture->vault, 1, &seal, NULL), CV_OK);
  assert_int_equal(cv_seal_open(seal, NULL, 0, sealed.data, sealed.len, &plain), CV_ERR_DAMAGED);
  cv_buf_fini(&sealed);
  cv_buf_fini(&plain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_keys_are_different_and_stay, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_wrapped_key_fits_its_place_only, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_wrapped_key_fits_its_database_only, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_wrapped_anew_the_keys_are_the_same, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_ring_without_the_key_is_refused_by_name, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_dropped_key_is_gone, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
