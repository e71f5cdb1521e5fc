/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "lab/audit/subjects.h"

enum { SUBJECTS_MAX = 512, SPECS_MAX = 64, CHOICES_MAX = 64 };

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

static enum cv_err add_pipelines(struct cv_audit_plan *plan, bool full) {
  static const uint32_t rounds[] = {1, 4};
  for (size_t i = 0; i < CV_COUNT(rounds); i++) {
    struct cv_spec *spec = &plan->spec[plan->specs++];
    struct cv_audit_subject subject;
    *spec = (struct cv_spec){.name = "audit",
                             .arms = 2,
                             .policy.name = "ppar",
                             .mechanism.name = "hybrid",
                             .privatizer.name = "none",
                             .epsilon_micro = 1000000,
                             .tokens_per_worker = 1,
                             .tokens = 2 * (uint64_t)rounds[i]};
    CV_TRY(cv_audit_pipeline(spec, rounds[i], &subject));
    keep(plan, &subject);
  }
  return CV_OK;
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
    err = cv_fail(why, CV_ERR_NOT_FOUND, "\"%.40s\" is no part of the audit; crowdveil-lab list names them", only);
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
