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

#include "common/base/grid.h"
#include "tests/support/mechanism.h"

enum { LONGEST = 70, HORIZON = 200, EPSILON = 500000, STATE_BYTES = 4096 };

static struct cv_mechanism_law law_of(const struct cv_mechanism_class *class) {
  return mechanism_law(class->traits->name, EPSILON, HORIZON);
}

static struct cv_mechanism *make(const struct cv_mechanism_class *class) {
  const struct cv_mechanism_law law = law_of(class);
  return mechanism_new(&law);
}

static int64_t item(uint64_t n) {
  return (int64_t)(cv_mix64(n) % (uint64_t)(100 * CV_GRID));
}

/* `releases` items are in, and the noise of the next one is drawn if `drawn`. */
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
  assert_in_range(out.len, 1, STATE_BYTES);
  return out;
}

static enum cv_err load(const struct cv_mechanism_class *class, const void *bytes, size_t n,
                        struct cv_mechanism **ret) {
  struct cv_reader in = cv_reader_over(bytes, n);
  const struct cv_mechanism_law law = law_of(class);
  enum cv_err err = cv_mechanism_load(&law, &in, ret);
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
    size_t epsilon = 1 + 4 + strlen(class->traits->name), horizon = epsilon + 8, arity = horizon + 8,
           releases = arity + 4;
    size_t drawn = releases + 8, waiting = drawn + 1 + 8;
    bytes.data[0]++;
    assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_VERSION);
    bytes.data[0]--;
    const size_t wrong[] = {5, epsilon, horizon, arity, releases + 7, drawn};
    for (size_t w = 0; w < CV_COUNT(wrong); w++) {
      bytes.data[wrong[w]] ^= 0x82;
      assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_DAMAGED);
      bytes.data[wrong[w]] ^= 0x82;
    }
    uint8_t was[8]; /* one release after the largest count wraps around to none */
    memcpy(was, bytes.data + releases, sizeof(was));
    memset(bytes.data + releases, 0xff, sizeof(was));
    assert_int_equal(load(class, bytes.data, bytes.len, &none), CV_ERR_DAMAGED);
    memcpy(bytes.data + releases, was, sizeof(was));
    bytes.data[waiting] ^= 1;
    bool may_wait = class->traits->sums == CV_SUMS_POWERS;
    assert_int_equal(load(class, bytes.data, bytes.len, &none), may_wait ? CV_OK : CV_ERR_DAMAGED);
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

/* True if `act` ends by abort(), as it must for a bug of the caller. */
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

static void check_drawing_again(uint64_t n) {
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    struct cv_rng_seeded rng;
    struct cv_rng empty = {.refill = no_randomness};
    cv_rng_seeded_init(&rng, 5, CV_RNG_NOISE, 0, 0);
    struct cv_mechanism *mechanism = advanced(cv_mechanism_at(i), n, true, &rng.rng);
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

static void test_drawing_again_changes_nothing(void **state) {
  (void)state;
  for (uint64_t n = 0; n < LONGEST; n++) {
    check_drawing_again(n);
  }
}

static void test_names_are_found(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    assert_ptr_equal(cv_mechanism_find(cv_mechanism_at(i)->traits->name), cv_mechanism_at(i));
    assert_true(strlen(cv_mechanism_at(i)->guarantee) > 0);
  }
  assert_null(cv_mechanism_find("hybrid2"));
  assert_null(cv_mechanism_find(""));
}

/* ---- what a campaign may ask for ---- */

static enum cv_err ask(const char *name, const char *key, double value, uint64_t releases, struct cv_why *why,
                       struct cv_choice *ret_choice, struct cv_mechanism_law *ret_law) {
  *ret_choice = (struct cv_choice){0};
  (void)snprintf(ret_choice->name, sizeof(ret_choice->name), "%s", name);
  if (key != NULL) {
    assert_int_equal(cv_params_set_number(&ret_choice->params, key, value), CV_OK);
  }
  return cv_mechanism_law_init(ret_choice, EPSILON, releases, ret_law, why);
}

static void refused(const char *name, const char *key, double value, uint64_t releases, const char *text) {
  struct cv_choice choice;
  struct cv_mechanism_law law;
  struct cv_why why = {0};
  enum cv_err err = ask(name, key, value, releases, &why, &choice, &law);
  assert_int_equal(err, strncmp(text, "unknown mechanism", 17) == 0 ? CV_ERR_NOT_FOUND : CV_ERR_INVALID);
  if (strstr(why.text, text) == NULL) {
    fail_msg("\"%s\" lacks \"%s\"", why.text, text);
  }
}

static void test_parameters_that_make_no_sense_are_refused(void **state) {
  (void)state;
  refused("rot13", NULL, 0, 0, "unknown mechanism \"rot13\"; expected one of hybrid, none, binary");
  refused("hybrid", "horizon", 10, 0, "mechanism hybrid: unknown key \"horizon\"");
  refused("binary", "k", 3, 10, "mechanism binary: unknown key \"k\"");
  refused("binary", NULL, 0, 0, "mechanism binary: missing horizon; expected the largest number of releases");
  refused("binary", "horizon", 0, 10, "horizon is 0; expected a whole number");
  refused("binary-honaker", "horizon", 1.5, 10, "horizon is 1.5; expected a whole number");
  refused("kary", "horizon", 4294967296.0, 10, "horizon is 4294967296; expected");
  refused("kary", "k", 4, 10, "k is 4; expected an odd number");
  refused("kary", "k", 1, 10, "k is 1; expected a whole number of at least 3 and at most 99");
  refused("kary", "k", 101, 10, "k is 101; expected");
}

static void test_noise_needs_epsilon(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    struct cv_choice choice = {0};
    struct cv_mechanism_law law;
    (void)snprintf(choice.name, sizeof(choice.name), "%s", cv_mechanism_at(i)->traits->name);
    enum cv_err err = cv_mechanism_law_init(&choice, 0, 10, &law, NULL);
    assert_int_equal(err, strcmp(choice.name, "none") == 0 ? CV_OK : CV_ERR_INVALID);
  }
  cv_mechanism_free(NULL);
}

/* A campaign's parameters are stored completed: derived values never change later. */
static void test_a_completed_choice_gives_the_same_law(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    struct cv_choice choice;
    struct cv_mechanism_law law, again;
    assert_int_equal(ask(cv_mechanism_at(i)->traits->name, NULL, 0, 1024, NULL, &choice, &law), CV_OK);
    assert_int_equal(cv_mechanism_law_init(&choice, EPSILON, 7, &again, NULL), CV_OK);
    assert_memory_equal(&law, &again, sizeof(law));
  }
}

static void test_trees_are_as_high_as_the_horizon_needs(void **state) {
  (void)state;
  struct cv_choice choice;
  struct cv_mechanism_law law;
  static const uint32_t binary[][2] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {1023, 10}, {1024, 11}};
  for (size_t i = 0; i < CV_COUNT(binary); i++) {
    assert_int_equal(ask("binary", NULL, 0, binary[i][0], NULL, &choice, &law), CV_OK);
    assert_int_equal(law.levels, binary[i][1]);
  }
  static const uint32_t ternary[][2] = {{1, 1}, {2, 2}, {4, 2}, {5, 3}, {13, 3}, {14, 4}, {1093, 7}, {1094, 8}};
  for (size_t i = 0; i < CV_COUNT(ternary); i++) {
    assert_int_equal(ask("kary", "k", 3, ternary[i][0], NULL, &choice, &law), CV_OK);
    assert_int_equal(law.levels, ternary[i][1]);
  }
  assert_int_equal(ask("kary", NULL, 0, 1024, NULL, &choice, &law), CV_OK);
  assert_int_equal(law.arity, 13);
  assert_int_equal(law.levels, 3);
  assert_int_equal(ask("kary", NULL, 0, UINT64_MAX, NULL, &choice, &law), CV_OK);
  assert_int_equal(law.horizon, CV_RELEASES_END - 1);
}

static void draw_past_the_horizon(void) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_NOISE, 0, 0);
  (void)advanced(cv_mechanism_find("kary"), HORIZON, true, &rng.rng);
}

static void test_nothing_is_drawn_past_the_horizon(void **state) {
  (void)state;
  static const char *const names[] = {"binary", "binary-honaker", "kary"};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, 4, CV_RNG_NOISE, 0, 0);
  for (size_t i = 0; i < CV_COUNT(names); i++) {
    struct cv_mechanism *mechanism = advanced(cv_mechanism_find(names[i]), HORIZON - 1, false, &rng.rng);
    assert_false(cv_mechanism_is_spent(mechanism));
    cv_mechanism_draw(mechanism, &rng.rng);
    (void)cv_mechanism_release(mechanism, 1);
    assert_true(cv_mechanism_is_spent(mechanism));
    struct cv_buf bytes = saved(mechanism);
    struct cv_mechanism *copy = NULL;
    assert_int_equal(load(cv_mechanism_find(names[i]), bytes.data, bytes.len, &copy), CV_OK);
    assert_true(cv_mechanism_is_spent(copy));
    cv_mechanism_free(copy);
    cv_mechanism_free(mechanism);
    cv_buf_fini(&bytes);
  }
  assert_true(aborts(draw_past_the_horizon));
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
  cv_mechanism_noise(&mechanism->law, LONGEST, &noise);
  assert_int_equal(noise.groups, 0);
  assert_int_equal(cv_mechanism_spent_micro(&mechanism->law, LONGEST), 0);
  cv_mechanism_free(mechanism);
}

static void test_only_two_do_not_protect(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    const struct cv_mechanism_class *class = cv_mechanism_at(i);
    bool protects = strcmp(class->traits->name, "none") != 0 && strcmp(class->traits->name, "hybrid-printed") != 0;
    assert_int_equal(cv_mechanism_is_private(class), protects);
    assert_int_equal(cv_mechanism_has_noise(class), strcmp(class->traits->name, "none") != 0);
  }
}

/* Noise that no release may use again is not in the object at all, not only left out of its stored form. */
static void check_forgets(const struct cv_mechanism_law *law) {
  struct cv_rng_seeded rng;
  struct cv_mechanism *mechanism = mechanism_new(law);
  cv_rng_seeded_init(&rng, 21, CV_RNG_NOISE, law->arity, 0);
  for (uint64_t n = 1; n <= HORIZON; n++) {
    cv_mechanism_draw(mechanism, &rng.rng);
    for (uint32_t i = 0; i < law->nodes; i++) {
      if (mechanism->node[i] != 0 && !law->class->is_live(law, n, i)) {
        fail_msg("%s keeps node %u at release %u", law->class->traits->name, i, (unsigned)n);
      }
    }
    (void)cv_mechanism_release(mechanism, item(n));
  }
  cv_mechanism_free(mechanism);
}

static void test_dead_noise_is_forgotten(void **state) {
  (void)state;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    const struct cv_mechanism_law law = law_of(cv_mechanism_at(i));
    check_forgets(&law);
  }
  for (int arity = 3; arity <= 9; arity += 2) {
    struct cv_choice choice = {.name = "kary"};
    struct cv_mechanism_law law;
    assert_int_equal(cv_params_set_number(&choice.params, "k", arity), CV_OK);
    assert_int_equal(cv_mechanism_law_init(&choice, EPSILON, HORIZON, &law, NULL), CV_OK);
    check_forgets(&law);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stored_state_continues_identically),
      cmocka_unit_test(test_damaged_state_is_refused),
      cmocka_unit_test(test_state_of_another_mechanism_is_refused),
      cmocka_unit_test(test_releasing_without_noise_is_our_own_bug),
      cmocka_unit_test(test_drawing_again_changes_nothing),
      cmocka_unit_test(test_dead_noise_is_forgotten),
      cmocka_unit_test(test_names_are_found),
      cmocka_unit_test(test_parameters_that_make_no_sense_are_refused),
      cmocka_unit_test(test_noise_needs_epsilon),
      cmocka_unit_test(test_a_completed_choice_gives_the_same_law),
      cmocka_unit_test(test_trees_are_as_high_as_the_horizon_needs),
      cmocka_unit_test(test_nothing_is_drawn_past_the_horizon),
      cmocka_unit_test(test_none_is_exact_and_says_so),
      cmocka_unit_test(test_only_two_do_not_protect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
