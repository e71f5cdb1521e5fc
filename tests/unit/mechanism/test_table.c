/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every mechanism of the table: stored state, order of calls, names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"

enum { LONGEST = 70, EPSILON = 500000 };

static struct cv_mechanism *make(const struct cv_mechanism_class *class) {
  struct cv_mechanism *mechanism = NULL;
  assert_int_equal(cv_mechanism_new(class, EPSILON, &mechanism), CV_OK);
  return mechanism;
}

static int64_t item(uint64_t n) {
  return (int64_t)(cv_mix64(n) % (uint64_t)(100 * CV_GRID));
}

/* `releases` items in, and the noise of the next if `drawn`. */
static struct cv_mechanism *advanced(const struct cv_mechanism_class *class, uint64_t releases, bool drawn,
                                     struct cv_rng *rng) {
  struct cv_mechanism *mechanism = make(class);
  for (uint64_t n = 1; n <= releases; n++) {
    cv_mechanism_draw(mechanism, rng);
    (void)cv_mechanism_release(mechanism, item(n));
  }
  if (drawn) {
    cv_mechanism_draw(mechanism, rng);
  }
  return mechanism;
}

static struct cv_buf saved(const struct cv_mechanism *mechanism) {
  struct cv_buf out = {0};
  cv_mechanism_save(mechanism, &out);
  assert_true(cv_buf_ok(&out));
  return out;
}

static enum cv_err load(const struct cv_mechanism_class *class, const void *bytes, size_t n,
                        struct cv_mechanism **ret) {
  struct cv_reader in = cv_reader_over(bytes, n);
  enum cv_err err = cv_mechanism_load(class, &in, ret);
  if (err == CV_OK) {
    assert_true(cv_reader_done(&in));
  }
  return err;
}

static void check_continues(const struct cv_mechanism_class *class, uint64_t releases, bool drawn) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 1, CV_RNG_NOISE, releases, drawn);
  struct cv_mechanism *original = advanced(class, releases, drawn, &rng.rng), *copy = NULL;
  struct cv_buf bytes = saved(original);
  assert_int_equal(load(class, bytes.data, bytes.len, &copy), CV_OK);
  struct cv_buf again = saved(copy);
  assert_int_equal(again.len, bytes.len);
  assert_memory_equal(again.data, bytes.data, bytes.len);
  struct cv_rng_seeded same_a, same_b;
  cv_rng_seeded_init(&same_a, 2, CV_RNG_NOISE, 0, 0);
  cv_rng_seeded_init(&same_b, 2, CV_RNG_NOISE, 0, 0);
  for (uint64_t n = releases + 1; n <= 2 * releases + 20; n++) {
    cv_mechanism_draw(original, &same_a.rng);
    cv_mechanism_draw(copy, &same_b.rng);
    assert_int_equal(cv_mechanism_release(copy, item(n)), cv_mechanism_release(original, item(n)));
  }
  cv_buf_fini(&bytes);
  cv_buf_fini(&again);
  cv_mechanism_free(original);
  cv_mechanism_free(copy);
}

static void test_stored_state_continues_identically(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    for (uint64_t n = 0; n <= LONGEST; n++) {
      check_continues(cv_mechanism_at(i), n, false);
      check_continues(cv_mechanism_at(i), n, true);
    }
  }
}

static void test_damaged_state_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    const struct cv_mechanism_class *class = cv_mechanism_at(i);
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, 3, CV_RNG_NOISE, 0, 0);
    struct cv_mechanism *mechanism = advanced(class, 7, true, &rng.rng), *none = NULL;
    struct cv_buf bytes = saved(mechanism);
    for (size_t n = 0; n < bytes.len; n++) {
      assert_int_equal(load(class, bytes.data, n, &none), CV_ERR_DAMAGED);
    }
    size_t epsilon = 1 + 4 + strlen(class->name), releases = epsilon + 8, drawn = releases + 8;
    bytes.data[0]++;
    assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_VERSION);
    bytes.data[0]--;
    bytes.data[5] ^= 1;
    assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_DAMAGED);
    bytes.data[5] ^= 1;
    bytes.data[releases + 7] = 0x80;
    assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_DAMAGED);
    bytes.data[releases + 7] = 0;
    bytes.data[drawn] = 2;
    assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_DAMAGED);
    bytes.data[drawn] = 1;
    memset(bytes.data + epsilon, 0, 8);
    enum cv_err err = load(class, bytes.data, bytes.len, &none);
    assert_int_equal(err, class->is_private ? CV_ERR_DAMAGED : CV_OK);
    cv_mechanism_free(none);
    cv_buf_fini(&bytes);
    cv_mechanism_free(mechanism);
  }
}

static void test_state_of_another_mechanism_is_refused(void **state) {
  (void)state;
  struct cv_mechanism *mechanism = make(cv_mechanism_find("none")), *other = NULL;
  struct cv_buf bytes = saved(mechanism);
  assert_int_equal(load(cv_mechanism_find("hybrid"), bytes.data, bytes.len, &other), CV_ERR_DAMAGED);
  assert_null(other);
  cv_buf_fini(&bytes);
  cv_mechanism_free(mechanism);
}

/* True if `act` dies of abort(), as one of our own bugs must. */
static bool aborts(void (*act)(void)) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
    (void)signal(SIGABRT, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void release_undrawn(void) {
  (void)cv_mechanism_release(make(cv_mechanism_find("hybrid")), 1);
}

static void release_twice(void) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_NOISE, 0, 0);
  (void)cv_mechanism_release(advanced(cv_mechanism_find("hybrid"), 1, false, &rng.rng), 1);
}

static void release_drawn(void) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_NOISE, 0, 0);
  (void)cv_mechanism_release(advanced(cv_mechanism_find("hybrid"), 1, true, &rng.rng), 1);
}

static void test_releasing_without_noise_is_our_own_bug(void **state) {
  (void)state;
  assert_true(aborts(release_undrawn));
  assert_true(aborts(release_twice));
  assert_false(aborts(release_drawn));
}

static void no_randomness(struct cv_rng *rng) {
  (void)rng;
  fail_msg("noise was drawn twice");
}

static void test_drawing_again_changes_nothing(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    struct cv_rng_seeded rng;
    struct cv_rng empty = {.refill = no_randomness};
    cv_rng_seeded_init(&rng, 5, CV_RNG_NOISE, 0, 0);
    struct cv_mechanism *mechanism = advanced(cv_mechanism_at(i), 5, true, &rng.rng);
    struct cv_buf before = saved(mechanism);
    cv_mechanism_draw(mechanism, &empty);
    struct cv_buf after = saved(mechanism);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, after.len);
    cv_buf_fini(&before);
    cv_buf_fini(&after);
    cv_mechanism_free(mechanism);
  }
}

static void test_names_are_found(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    assert_ptr_equal(cv_mechanism_find(cv_mechanism_at(i)->name), cv_mechanism_at(i));
    assert_true(strlen(cv_mechanism_at(i)->guarantee) > 0);
  }
  assert_null(cv_mechanism_find("hybrid-printed"));
  assert_null(cv_mechanism_find(""));
}

static void test_only_none_goes_without_epsilon(void **state) {
  (void)state;
  struct cv_mechanism *mechanism = NULL;
  assert_int_equal(cv_mechanism_new(cv_mechanism_find("hybrid"), 0, &mechanism), CV_ERR_INVALID);
  assert_null(mechanism);
  assert_int_equal(cv_mechanism_new(cv_mechanism_find("none"), 0, &mechanism), CV_OK);
  cv_mechanism_free(mechanism);
  cv_mechanism_free(NULL);
}

static void test_none_is_exact_and_says_so(void **state) {
  (void)state;
  const struct cv_mechanism_class *class = cv_mechanism_find("none");
  struct cv_rng empty = {.refill = no_randomness};
  struct cv_mechanism *mechanism = make(class);
  struct cv_noise noise = {.groups = 9};
  int64_t exact = 0;
  for (uint64_t n = 1; n <= LONGEST; n++) {
    exact += item(n);
    cv_mechanism_draw(mechanism, &empty);
    assert_int_equal(cv_mechanism_release(mechanism, item(n)), exact);
  }
  cv_mechanism_noise(mechanism, LONGEST, &noise);
  assert_int_equal(noise.groups, 0);
  assert_int_equal(cv_mechanism_spent_micro(mechanism, LONGEST), 0);
  assert_false(class->is_private);
  assert_true(cv_mechanism_find("hybrid")->is_private);
  cv_mechanism_free(mechanism);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stored_state_continues_identically),
      cmocka_unit_test(test_damaged_state_is_refused),
      cmocka_unit_test(test_state_of_another_mechanism_is_refused),
      cmocka_unit_test(test_releasing_without_noise_is_our_own_bug),
      cmocka_unit_test(test_drawing_again_changes_nothing),
      cmocka_unit_test(test_names_are_found),
      cmocka_unit_test(test_only_none_goes_without_epsilon),
      cmocka_unit_test(test_none_is_exact_and_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
