/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "lab/audit/subjects.h"

enum { SUBJECTS_MAX = 512, SPECS_MAX = 128, CHOICES_MAX = 64 };

struct cv_audit_plan {
  const char *only;
  size_t count, specs, choices;
  struct cv_audit_subject subject[SUBJECTS_MAX];
  struct cv_spec spec[SPECS_MAX];
  struct cv_choice choice[CHOICES_MAX];
};

/* Streams to look at: length, and the item that differs. */
struct stream {
  uint32_t items, changed;
  bool full;
};
static const struct stream streams[] = {
    {1, 1, false}, {3, 2, true}, {4, 3, false}, {7, 3, true}, {8, 5, false}, {64, 1, false}, {64, 33, true},
};
static const struct {
  uint64_t micro;
  bool full;
} epsilons[] = {{250000, true}, {1000000, false}, {2000000, true}};

static void keep(struct cv_audit_plan *plan, const struct cv_audit_subject *subject) {
  if (plan->only == NULL || strcmp(plan->only, subject->part) == 0) {
    CV_REQUIRE(plan->count < SUBJECTS_MAX);
    plan->subject[plan->count++] = *subject;
  }
}

static enum cv_err add_mechanisms(struct cv_audit_plan *plan, bool full) {
  struct cv_audit_subject subject;
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    if (strcmp(cv_mechanism_at(i)->name, "none") == 0) {
      continue;
    }
    for (size_t e = 0; e < CV_COUNT(epsilons); e++) {
      for (size_t s = 0; s < CV_COUNT(streams); s++) {
        if (full || !(epsilons[e].full || streams[s].full)) {
          CV_TRY(cv_audit_mechanism(cv_mechanism_at(i), epsilons[e].micro, streams[s].items, streams[s].changed,
                                    &subject));
          keep(plan, &subject);
        }
      }
    }
  }
  return CV_OK;
}

/* Choices of a privatizer: up to three numbers and a word. */
static const struct local {
  const char *name, *key[3];
  double number[3];
  const char *rule;
  bool full;
} locals[] = {
    {.name = "randomized-response", .key = {"epsilon"}, .number = {.5}},
    {.name = "randomized-response", .key = {"epsilon"}, .number = {2}},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {1, .05}},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {1, .05}, .rule = "printed"},
    {.name = "randomized-response", .key = {"p00", "p11"}, .number = {.8, .6}},
    {.name = "randomized-response", .key = {"p00", "p11"}, .number = {.2, .3}},
    {.name = "randomized-response", .key = {"epsilon"}, .number = {.1}, .full = true},
    {.name = "randomized-response", .key = {"p00", "p11"}, .number = {.99, .02}, .full = true},
    {.name = "laplace", .key = {"epsilon"}, .number = {.5}},
    {.name = "laplace", .key = {"epsilon"}, .number = {2}},
    {.name = "laplace", .key = {"epsilon"}, .number = {.1}, .full = true},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {.1, .5}},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {.1, .5}, .rule = "printed", .full = true},
    {.name = "randomized-response", .key = {"p00", "p11", "delta"}, .number = {.7, .8, .6}, .full = true},
};

static enum cv_err choose(const struct local *local, struct cv_choice *ret) {
  *ret = (struct cv_choice){0};
  (void)snprintf(ret->name, sizeof(ret->name), "%s", local->name);
  for (size_t i = 0; i < CV_COUNT(local->key) && local->key[i] != NULL; i++) {
    CV_TRY(cv_params_set_number(&ret->params, local->key[i], local->number[i]));
  }
  return local->rule == NULL ? CV_OK : cv_params_set_text(&ret->params, "rule", local->rule);
}

static enum cv_err add_privatizers(struct cv_audit_plan *plan, bool full) {
  for (size_t i = 0; i < CV_COUNT(locals); i++) {
    if (full || !locals[i].full) {
      struct cv_audit_subject subject;
      struct cv_choice *choice = &plan->choice[plan->choices++];
      CV_TRY(choose(&locals[i], choice));
      CV_TRY(cv_audit_privatizer(choice, &subject, NULL));
      keep(plan, &subject);
    }
  }
  return CV_OK;
}

/* Whole ways from a score to the third-party: a local law or NULL, a mechanism, and how many releases of each arm. */
static const struct way {
  const struct local *local;
  const char *mechanism;
  uint32_t rounds;
  bool full;
} ways[] = {
    {NULL, "hybrid", 1, false},     {NULL, "hybrid", 4, false},        {NULL, "segments", 4, false},
    {NULL, "batch", 3, false},      {NULL, "kary", 4, true},           {NULL, "binary", 4, true},
    {NULL, "doubling", 4, true},    {NULL, "per-item", 3, true},       {NULL, "binary-honaker", 4, true},
    {&locals[1], "none", 3, false}, {&locals[9], "none", 3, false},    {&locals[1], "hybrid", 4, false},
    {&locals[2], "none", 3, true},  {&locals[8], "segments", 3, true}, {&locals[11], "batch", 1, false},
};

static enum cv_err add_way(struct cv_audit_plan *plan, const struct way *way) {
  struct cv_spec *spec = &plan->spec[plan->specs++];
  struct cv_audit_subject subject;
  *spec = (struct cv_spec){.name = "audit",
                           .arms = 2,
                           .policy.name = "ppar",
                           .privatizer.name = "none",
                           .epsilon_micro = 1000000,
                           .tokens_per_worker = 1,
                           .tokens = 2 * (uint64_t)way->rounds};
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "%s", way->mechanism);
  if (way->local != NULL) {
    CV_TRY(choose(way->local, &spec->privatizer));
  }
  CV_TRY(cv_audit_pipeline(spec, way->rounds, &subject));
  keep(plan, &subject);
  return CV_OK;
}

static bool has_delta(const struct local *local) {
  return (local->key[1] != NULL && strcmp(local->key[1], "delta") == 0) ||
         (local->key[2] != NULL && strcmp(local->key[2], "delta") == 0);
}

/* Every privatizer with a delta in front of every mechanism that protects, once: what is charged has to cover what the
 * third-party sees for certain. */
static enum cv_err add_deltas(struct cv_audit_plan *plan) {
  for (size_t i = 0; i < CV_COUNT(locals); i++) {
    for (size_t j = 0; cv_mechanism_at(j) != NULL && has_delta(&locals[i]); j++) {
      if (cv_mechanism_at(j)->is_private) {
        CV_TRY(add_way(plan, &(struct way){&locals[i], cv_mechanism_at(j)->name, 1, true}));
      }
    }
  }
  return CV_OK;
}

static enum cv_err add_pipelines(struct cv_audit_plan *plan, bool full) {
  for (size_t i = 0; i < CV_COUNT(ways); i++) {
    if (full || !ways[i].full) {
      CV_TRY(add_way(plan, &ways[i]));
    }
  }
  return full ? add_deltas(plan) : CV_OK;
}

static void add_laplace(struct cv_audit_plan *plan) {
  struct cv_audit_subject subject;
  cv_audit_laplace(true, 1, &subject);
  keep(plan, &subject);
  cv_audit_laplace(false, 1, &subject);
  keep(plan, &subject);
}

static enum cv_err fill(struct cv_audit_plan *plan, bool full) {
  CV_TRY(add_mechanisms(plan, full));
  CV_TRY(add_privatizers(plan, full));
  CV_TRY(add_pipelines(plan, full));
  add_laplace(plan);
  return CV_OK;
}

enum cv_err cv_audit_plan_new(const char *only, bool full, struct cv_audit_plan **ret, struct cv_why *why) {
  struct cv_audit_plan *plan = calloc(1, sizeof(*plan));
  if (plan == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  plan->only = only;
  enum cv_err err = fill(plan, full);
  if (err != CV_OK) {
    cv_why_set(why, "%s", cv_err_text(err));
  } else if (plan->count == 0) {
    err = cv_fail(why, CV_ERR_NOT_FOUND,
                  "\"%.40s\" is no part of the audit; expected a mechanism, a privatizer or pipeline", only);
  }
  if (err != CV_OK) {
    cv_audit_plan_free(plan);
    return err;
  }
  *ret = plan;
  return CV_OK;
}

void cv_audit_plan_free(struct cv_audit_plan *plan) {
  free(plan);
}

const struct cv_audit_subject *cv_audit_plan_subjects(const struct cv_audit_plan *plan, size_t *ret_count) {
  *ret_count = plan->count;
  return plan->subject;
}
