/* SPDX-License-Identifier: Apache-2.0 */
/* A mechanism over shares of sums: two halves add up to the exact sum and both noises, and the state is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdlib.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "common/prio/field.h"
#include "tests/support/mechanism.h"

enum { EPSILON = 250000 /* micro */, T = 70 };

static int64_t item(uint64_t n) {
  return (int64_t)(cv_mix64(n) % (uint64_t)(600 * CV_GRID));
}

/* One party: draws from its own stream, and keeps a twin over integers that draws alike and sees the item 0. */
struct half {
  struct cv_mechanism *share, *twin;
};

static void begin(struct half *half, const struct cv_mechanism_law *law) {
  struct cv_mechanism_law shares = *law;
  shares.shares = true;
  assert_int_equal(cv_mechanism_new(&shares, &half->share), CV_OK);
  assert_int_equal(cv_mechanism_new(law, &half->twin), CV_OK);
}

/* The half that is released, and the noise in it. */
static uint64_t release(struct half *half, uint64_t party, uint64_t n, uint64_t share, int64_t *ret_noise) {
  struct cv_rng_seeded one, two;
  cv_rng_seeded_init(&one, 9, party, n, 0);
  cv_rng_seeded_init(&two, 9, party, n, 0);
  cv_mechanism_draw(half->share, &one.rng);
  cv_mechanism_draw(half->twin, &two.rng);
  *ret_noise = cv_mechanism_release(half->twin, 0);
  return cv_mechanism_release_share(half->share, share);
}

/* Saves and loads; the bytes are the same again. */
static void reload(struct half *half) {
  struct cv_buf before = {0}, after = {0};
  struct cv_mechanism *loaded;
  cv_mechanism_save(half->share, &before);
  struct cv_reader in = cv_reader_over(before.data, before.len);
  assert_int_equal(cv_mechanism_load(&half->share->law, &in, &loaded), CV_OK);
  assert_true(cv_reader_done(&in));
  cv_mechanism_save(loaded, &after);
  assert_int_equal(before.len, after.len);
  assert_memory_equal(before.data, after.data, after.len);
  cv_mechanism_free(half->share);
  half->share = loaded;
  cv_buf_fini(&before);
  cv_buf_fini(&after);
}

static void check_law(const struct cv_mechanism_law *law) {
  struct half leader, helper;
  struct cv_mechanism *plain; /* of the sums themselves, without noise: a twin whose noise is known to be its own */
  begin(&leader, law);
  begin(&helper, law);
  assert_int_equal(cv_mechanism_new(law, &plain), CV_OK);
  for (uint64_t n = 1; n <= T; n++) {
    int64_t first, second, sum;
    uint64_t mask = cv_mix64(n * 7) % CV_FIELD_P; /* above 2^63 as often as below */
    uint64_t share = cv_field_sub(cv_field_of_int(item(n)), mask);
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, 9, 3, n, 0);
    cv_mechanism_draw(plain, &seeded.rng);
    int64_t noise = plain->noise;
    int64_t exact = cv_mechanism_release(plain, item(n)) - noise;
    uint64_t both = cv_field_add(release(&leader, 1, n, share, &first), release(&helper, 2, n, mask, &second));
    assert_true(cv_field_lift(both, &sum));
    assert_int_equal(sum, exact + first + second);
    reload(&leader);
    reload(&helper);
  }
  cv_mechanism_free(plain);
  cv_mechanism_free(leader.share);
  cv_mechanism_free(leader.twin);
  cv_mechanism_free(helper.share);
  cv_mechanism_free(helper.twin);
}

static void test_halves_add_up(void **state) {
  const struct cv_mechanism_class *class;
  for (size_t i = 0; (class = cv_mechanism_at(i)) != NULL; i++) {
    struct cv_mechanism_law law;
    struct cv_params params = {0};
    struct cv_why why;
    assert_int_equal(cv_mechanism_law_for(class, &params, EPSILON, T, &law, &why), CV_OK);
    check_law(&law);
  }
}

/* A stored sum that is no element is refused: added to others it would count as another one. */
static void test_false_state(void **state) {
  struct cv_mechanism_law law;
  struct cv_params params = {0};
  struct cv_mechanism *mechanism, *loaded;
  struct cv_why why;
  assert_int_equal(cv_mechanism_law_for(cv_mechanism_find("hybrid"), &params, EPSILON, T, &law, &why), CV_OK);
  law.shares = true;
  assert_int_equal(cv_mechanism_new(&law, &mechanism), CV_OK);
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, 1, 2, 3, 4);
  cv_mechanism_draw(mechanism, &seeded.rng);
  (void)cv_mechanism_release_share(mechanism, 5);
  for (int i = 0; i < 2; i++) {
    struct cv_buf bytes = {0};
    mechanism->exact = (int64_t)(CV_FIELD_P - (i == 0));
    cv_mechanism_save(mechanism, &bytes);
    struct cv_reader in = cv_reader_over(bytes.data, bytes.len);
    assert_int_equal(cv_mechanism_load(&law, &in, &loaded), i == 0 ? CV_OK : CV_ERR_DAMAGED);
    if (i == 0) {
      cv_mechanism_free(loaded);
    }
    cv_buf_fini(&bytes);
  }
  cv_mechanism_free(mechanism);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_halves_add_up), cmocka_unit_test(test_false_state)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
