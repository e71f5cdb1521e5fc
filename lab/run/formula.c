/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/config/value.h"
#include "lab/experiment/campaigns.h"
#include "lab/run/bounds.h"
#include "lab/run/noise.h"
#include "lab/run/ppar_bound.h"
#include "prepare/prepare.h"
#include "thirdparty/policy/kl.h"

static enum cv_err corrupt_fits(const struct cv_prepared *prepared, double x, struct cv_why *why) {
  const struct cv_spec *spec = &prepared->file.spec;
  struct cv_local law;
  (void)x;
  if (prepared->file.items.source != CV_SOURCE_GIVEN) {
    return cv_fail(why, CV_ERR_INVALID, "it needs items with given means; expected items.list");
  }
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &law, why));
  if (law.kind == CV_LOCAL_LAPLACE) {
    return cv_fail(why, CV_ERR_INVALID, "it applies to bits only; expected privatizer randomized-response or none");
  }
  return CV_OK;
}

/* The term of one arm, as a multiple of ln T. */
static double corrupt_arm(const struct cv_feedback *feedback, double mean, double best) {
  double found = feedback->offset + feedback->slope * mean, needed = feedback->offset + feedback->slope * best;
  return needed < 0 || needed > 1 ? 0 : (best - mean) / cv_kl(found, needed);
}

/* The term of one arm in the order of UCB-CF's regret, likewise. */
static double corrupt_arm_order(const struct cv_feedback *feedback, double mean, double best) {
  double distance = feedback->slope * (best - mean);
  return (best - mean) / (distance * distance);
}

typedef double corrupt_term(const struct cv_feedback *feedback, double mean, double best);

/* The sum of a term over the suboptimal arms. */
static double corrupt_sum(const struct cv_prepared *prepared, corrupt_term *term) {
  const struct cv_spec *spec = &prepared->file.spec;
  struct cv_local law;
  double best = 0, sum = 0;
  CV_REQUIRE(cv_local_init(&spec->privatizer, spec->arms, &law, NULL) == CV_OK);
  for (uint32_t i = 0; i < spec->arms; i++) {
    best = fmax(best, prepared->truth[i]);
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    struct cv_feedback feedback = cv_local_feedback(&law, i);
    sum += prepared->truth[i] < best ? term(&feedback, prepared->truth[i], best) : 0;
  }
  return sum;
}

static double corrupt_bound(const struct cv_prepared *prepared, double x) {
  return x >= 1 ? corrupt_sum(prepared, corrupt_arm) * log(x) : 0;
}

static double corrupt_main_term(const struct cv_prepared *prepared, double x) {
  return corrupt_sum(prepared, corrupt_arm) * (x > exp(1) ? log(x) + 3 * log(log(x)) : fmax(0, log(x)));
}

static double corrupt_order(const struct cv_prepared *prepared, double x) {
  return x >= 1 ? corrupt_sum(prepared, corrupt_arm_order) * log(x) : 0;
}

static enum cv_err leakage_fits(const struct cv_prepared *prepared, double x, struct cv_why *why) {
  (void)x;
  return prepared->file.spec.epsilon_micro > 0 ? CV_OK : cv_fail(why, CV_ERR_INVALID, "expected an epsilon");
}

static double leakage_bound(const struct cv_prepared *prepared, double x) {
  double epsilon = (double)prepared->file.spec.epsilon_micro / (double)CV_MICRO;
  (void)x;
  return epsilon * tanh(epsilon / 2);
}

static const struct cv_lab_formula table[] = {
    {.name = "corrupt-lower-bound",
     .metric = "regret",
     .is_asymptotic = true,
     .fits = corrupt_fits,
     .value = corrupt_bound},
    {.name = "klucb-cf-main-term",
     .metric = "regret",
     .is_asymptotic = true,
     .fits = corrupt_fits,
     .value = corrupt_main_term},
    {.name = "ucb-cf-order", .metric = "regret", .is_asymptotic = true, .fits = corrupt_fits, .value = corrupt_order},
    {.name = "leakage-bound", .metric = "leakage-worst", .fits = leakage_fits, .value = leakage_bound},
    {.name = "ppar-cost", .metric = "pulls", .fits = cv_lab_ppar_fits, .value = cv_lab_ppar_cost},
    {.name = "ppar-success", .metric = "correct", .fits = cv_lab_ppar_fits, .value = cv_lab_ppar_success},
    {.name = "ppar-noise", .metric = "noise", .fits = cv_lab_ppar_noise_fits, .value = cv_lab_ppar_noise},
    {.name = "exp3-tau-bound", .metric = "regret", .fits = cv_lab_bound_tau_fits, .value = cv_lab_bound_tau},
    {.name = "gap-bound", .metric = "regret", .fits = cv_lab_bound_gap_fits, .value = cv_lab_bound_gap},
    {.name = "gap-bound-of-run", .metric = "regret", .fits = cv_lab_bound_gap_fits, .value = cv_lab_bound_gap_of_run},
    {.name = "declared-noise", .metric = "noise", .fits = cv_lab_noise_fits, .value = cv_lab_noise_declared},
    {.name = "declared-noise-so-far", .metric = "noise", .fits = cv_lab_noise_fits, .value = cv_lab_noise_so_far},
};

static const struct cv_lab_formula *find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i].name, name) == 0) {
      return &table[i];
    }
  }
  return NULL;
}

bool cv_lab_formula_is_asymptotic(const char *name) {
  return name != NULL && find(name)->is_asymptotic;
}

enum cv_err cv_lab_formula_read(const struct cv_yaml *yaml, const yaml_node_t *node, const char **ret,
                                struct cv_why *why) {
  const char *known[CV_COUNT(table)];
  char list[240], expected[280];
  if (node->type == YAML_SCALAR_NODE && find(cv_yaml_text(node)) != NULL) {
    *ret = cv_yaml_text(node);
    return CV_OK;
  }
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    known[i] = table[i].name;
  }
  const char *nearest = node->type == YAML_SCALAR_NODE ? cv_nearest(cv_yaml_text(node), known, CV_COUNT(table)) : NULL;
  cv_text_either(known, CV_COUNT(table), list, sizeof(list));
  (void)snprintf(expected, sizeof(expected), "%s", nearest != NULL ? nearest : list);
  return cv_yaml_expected(yaml, node, "formula", expected, why);
}

/* The seed does not matter: formulas use given means only, no drawn ones. */
enum { SEED = 1 };

static bool has_metric(const struct cv_lab_experiment *experiment, const char *metric) {
  for (size_t i = 0; i < experiment->metrics; i++) {
    if (strcmp(experiment->metric[i].name, metric) == 0) {
      return true;
    }
  }
  return false;
}

static bool is_of_settings(const struct cv_lab_experiment *experiment) {
  return experiment->axis != CV_LAB_AXIS_PULLS;
}

static enum cv_err check_setting(const struct cv_lab_experiment *experiment, size_t series, size_t setting,
                                 struct cv_why *why) {
  const struct cv_lab_formula *formula = find(experiment->one[series].formula);
  struct cv_prepared prepared;
  CV_TRY(cv_lab_prepare(experiment, series, setting, SEED, &prepared, why));
  double x = is_of_settings(experiment) ? (double)prepared.file.spec.tokens : experiment->x[experiment->points - 1];
  enum cv_err err = formula->fits(&prepared, x, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s: series \"%s\" cannot have formula %s", experiment->path, experiment->one[series].name,
                  formula->name);
  }
  cv_prepared_fini(&prepared);
  return err;
}

static enum cv_err check_fit(const struct cv_lab_experiment *experiment, size_t series, struct cv_why *why) {
  const struct cv_lab_formula *formula = find(experiment->one[series].formula);
  if (!has_metric(experiment, formula->metric)) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "%s: formula %s of series \"%s\" gives %s, which is not a metric of the experiment; expected it in metrics",
        experiment->path, formula->name, experiment->one[series].name, formula->metric);
  }
  /* Every setting: x may vary what the formula depends on, such as the privatizer. */
  for (size_t setting = 0; setting < cv_lab_settings_of(experiment); setting++) {
    CV_TRY(check_setting(experiment, series, setting, why));
  }
  return CV_OK;
}

enum cv_err cv_lab_formulas_check(const struct cv_lab_experiment *experiment, struct cv_why *why) {
  for (size_t i = 0; i < experiment->series; i++) {
    if (experiment->one[i].formula != NULL) {
      CV_TRY(check_fit(experiment, i, why));
    }
  }
  return CV_OK;
}

enum cv_err cv_lab_formula_value(const struct cv_lab_experiment *experiment, size_t series, size_t point, size_t metric,
                                 double *ret) {
  const struct cv_lab_formula *formula = find(experiment->one[series].formula); /* checked: not NULL */
  bool is_setting = is_of_settings(experiment);
  struct cv_prepared prepared;
  if (strcmp(formula->metric, experiment->metric[metric].name) != 0) {
    *ret = (double)NAN;
    return CV_OK;
  }
  CV_TRY(cv_lab_prepare(experiment, series, is_setting ? point : 0, SEED, &prepared, NULL));
  *ret = formula->value(&prepared, is_setting ? (double)prepared.file.spec.tokens : experiment->x[point]);
  cv_prepared_fini(&prepared);
  return CV_OK;
}
