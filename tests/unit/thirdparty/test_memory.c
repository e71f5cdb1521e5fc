/* SPDX-License-Identifier: Apache-2.0 */
/* Every single allocation fails once: in the core over a whole campaign, and in the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "tests/support/alloc_fault.h"
#include "tests/support/folder.h"
#include "tests/unit/thirdparty/fake.h"

enum { TURNS_A_PROCESS = 12 };

static struct folder folder;

/* A campaign, and how many plans it has. */
struct kind {
  uint64_t plans_least, plans_most;
  void (*specify)(struct world *w);
};

static void rank(struct world *w) {
  static const double far_apart[FAKE_ARMS] = {0.99, 0.01, 0.97, 0.5, 0.49, 0.02}; /* ends soon */
  assert_int_equal(cv_params_set_number(&w->spec.policy.params, "tokens_per_round", 20000), CV_OK);
  memcpy(w->mean, far_apart, sizeof(w->mean));
}

static void choose(struct world *w, const char *policy, const char *mechanism) {
  w->spec.policy = (struct cv_choice){0};
  (void)snprintf(w->spec.policy.name, CV_PARAM_TEXT, "%s", policy);
  (void)snprintf(w->spec.mechanism.name, CV_PARAM_TEXT, "%s", mechanism);
}

static void see_neighbours(struct world *w) {
  static struct cv_edge edge[] = {{0, 1}, {0, 2}, {1, 2}, {3, 4}};
  static const double far_apart[FAKE_ARMS] = {0.99, 0.01, 0.7, 0.5, 0.4, 0.02};
  choose(w, "alpha-sample", "none");
  assert_int_equal(cv_params_set_number(&w->spec.policy.params, "delta", 0.001), CV_OK);
  w->spec.thirdparty_trusted = true;
  w->has_seed = true; /* its choices are random, and a choice that was lost before it was stored is drawn again */
  w->seed = 5;
  w->spec.edges = CV_COUNT(edge);
  w->spec.edge = edge;
  memcpy(w->mean, far_apart, sizeof(w->mean));
}

static void hire(struct world *w) {
  static uint64_t cost[FAKE_ARMS] = {1000000, 1500000, 1200000, 2000000, 1100000, 1900000};
  choose(w, "dpu", "hybrid");
  assert_int_equal(cv_params_set_number(&w->spec.policy.params, "pulls", 20), CV_OK);
  w->spec.cost_micro = cost;
  w->spec.budget_micro = 60000000;
  w->spec.tokens_per_worker = 60;
}

static const struct kind ranking = {2, 6, rank}, graph = {2, 6, see_neighbours}, recruitment = {3, 8, hire};

static struct world *make(const struct kind *kind) {
  static const char *names[FAKE_ARMS] = {"a", "b", "c", "d", "e", "f"};
  folder_make(&folder);
  struct world *w = world_new(folder_file(&folder, "thirdparty.db"));
  world_spec(w, "hold", 0.45);
  kind->specify(w);
  w->spec.names = names;
  return w;
}

static void end(struct world *w) {
  w->spec.names = NULL;
  world_fini(w);
  folder_remove(&folder);
}

/* A campaign from its opening to its close, over a few processes, and some that are refused. */
static void run_campaign(struct world *w) {
  world_halt(w);
  folder_remove(&folder);
  folder_make(&folder);
  w->path = folder_file(&folder, "thirdparty.db");
  world_start(w);
  world_connect(w);
  struct cv_rank_open other = {.spec = w->spec, .position = {.campaign = 99}};
  (void)snprintf(other.spec.policy.name, CV_PARAM_TEXT, "unheard-of");
  world_send(w, &(struct cv_rank_frame){.opens = 1, .open = &other});
  for (int i = 1; i < 2000 && w->result == CV_END_NONE; i++) {
    if (i == TURNS_A_PROCESS || i == 2 * TURNS_A_PROCESS) {
      world_restart(w);
    }
    if (w->died || cv_thirdparty_is_pending(w->thirdparty)) {
      world_turn(w);
    } else {
      world_release(w);
    }
  }
  assert_int_equal(w->result, CV_END_COMPLETE);
  for (int i = 0; i < 3; i++) { /* once more if it was lost */
    world_send(w, &(struct cv_rank_frame){.closed = 1, .close = &w->id});
    world_turn(w);
    world_quiet(w);
  }
}

static void check(struct world *w, const struct world *whole) {
  struct cv_thirdparty_figures counts;
  world_restart(w);
  cv_thirdparty_figures(w->thirdparty, &counts);
  assert_int_equal(counts.campaigns_closed, 1);
  assert_int_equal(counts.campaigns_open, 0);
  assert_int_equal(w->plans, whole->plans);
  assert_int_equal(w->releases, whole->releases);
  for (uint64_t i = 0; i < w->plans; i++) {
    assert_true(world_same_plan(&w->plan[i], &whole->plan[i]));
  }
  assert_memory_equal(w->standing, whole->standing, sizeof(w->standing));
}

static void without_memory(const struct kind *kind, bool in_core, struct alloc_fault how) {
  struct world *whole = make(kind);
  run_campaign(whole);
  world_halt(whole);
  folder_remove(&folder);
  assert_in_range(whole->plans, kind->plans_least, kind->plans_most);
  ALLOC_FAULT_EACH(fault, .rest = how.rest, .step = how.step) {
    int64_t before = alloc_fault_live();
    struct world *w = make(kind);
    w->feed = alloc_fault_pause;
    w->starve = in_core ? alloc_fault_arm : NULL;
    w->starve_store = in_core ? NULL : alloc_fault_arm;
    run_campaign(w);
    if (in_core) {
      assert_true(alloc_fault_hit() == (w->starve == NULL)); /* a process that survives has lost nothing */
    }
    check(w, whole);
    end(w);
    assert_int_equal(alloc_fault_live(), before);
  }
  whole->spec.names = NULL;
  world_fini(whole);
}

static void one_allocation_of_the_core_fails(void **state) {
  without_memory(&ranking, true, (struct alloc_fault){.step = 1});
}

static void all_allocations_of_the_core_fail_from_one_on(void **state) {
  without_memory(&ranking, true, (struct alloc_fault){.step = 1, .rest = true});
}

static void one_allocation_of_the_store_fails(void **state) {
  without_memory(&ranking, false, (struct alloc_fault){.step = 13});
}

static void all_allocations_of_the_store_fail_from_one_on(void **state) {
  without_memory(&ranking, false, (struct alloc_fault){.step = 59, .rest = true});
}

static void one_allocation_fails_on_a_graph(void **state) {
  without_memory(&graph, true, (struct alloc_fault){.step = 1});
  without_memory(&graph, false, (struct alloc_fault){.step = 31});
}

static void one_allocation_fails_of_a_recruitment(void **state) {
  without_memory(&recruitment, true, (struct alloc_fault){.step = 1});
  without_memory(&recruitment, false, (struct alloc_fault){.step = 31});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_allocation_of_the_core_fails),
      cmocka_unit_test(all_allocations_of_the_core_fail_from_one_on),
      cmocka_unit_test(one_allocation_of_the_store_fails),
      cmocka_unit_test(all_allocations_of_the_store_fail_from_one_on),
      cmocka_unit_test(one_allocation_fails_on_a_graph),
      cmocka_unit_test(one_allocation_fails_of_a_recruitment),
  };
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
