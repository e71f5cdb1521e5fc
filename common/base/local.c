/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/local.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/nearest.h"
#include "common/base/text.h"

#define NAME(file, kind, name, ...) name,
const char *const cv_local_names[CV_LOCAL_KINDS + 1] = {CV_LOCALS(NAME) NULL};

const char *cv_local_name(enum cv_local_kind kind) {
  CV_REQUIRE((unsigned)kind < CV_LOCAL_KINDS);
  return cv_local_names[kind];
}

enum cv_local_kind cv_local_find(const char *name) {
  enum cv_local_kind kind = CV_LOCAL_NONE;
  while (kind < CV_LOCAL_KINDS && strcmp(name, cv_local_names[kind]) != 0) {
    kind++;
  }
  return kind;
}

bool cv_local_is_bounded(enum cv_local_kind kind) {
#define BOUNDED(file, kind, name, bounded, ...) bounded,
  static const bool is_bounded[CV_LOCAL_KINDS + 1] = {CV_LOCALS(BOUNDED) true};
  return is_bounded[kind];
}

/* ---- parameters ---- */

/* Converts a decimal to whole units of 1/`unit`; false if it has more decimals. */
static bool take_decimal(double value, int64_t unit, uint64_t *ret) {
  /* A decimal such as 0.1 is not exact as a double: it counts as whole if only that error is left. */
  double scaled = value * (double)unit, whole = round(scaled);
  if (fabs(scaled - whole) > 1e-6 + 1e-15 * whole) {
    return false;
  }
  *ret = (uint64_t)whole;
  return true;
}

static enum cv_err read_decimal(const struct cv_params *params, const char *key, int64_t unit, int decimals,
                                uint64_t *ret, struct cv_why *why) {
  double value = cv_params_number(params, key);
  return take_decimal(value, unit, ret)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s is %.15g; expected at most %d decimals", key, value, decimals);
}

static enum cv_err read_epsilon(const struct cv_params *params, struct cv_local *law, struct cv_why *why) {
  return read_decimal(params, "epsilon", CV_MICRO, 6, &law->epsilon_micro, why);
}

/* ---- randomized response by matrices ---- */

/* True if the key is that of a matrix entry: "p00.3" is the first entry of arm 3, from 1. *ret is then that entry, or
 * NULL if its arm is out of range. */
static bool find_entry(struct cv_local *law, const char *key, uint32_t arms, uint32_t **ret) {
  bool first = strncmp(key, "p00.", 4) == 0;
  if (!first && strncmp(key, "p11.", 4) != 0) {
    return false;
  }
  char *end;
  unsigned long arm = strtoul(key + 4, &end, 10);
  *ret = NULL;
  if (key[4] >= '1' && key[4] <= '9' && *end == '\0' && arm <= arms && arm <= CV_MATRICES_MAX) {
    struct cv_matrix *matrix = &law->matrix[arm - 1];
    *ret = first ? &matrix->p00_micro : &matrix->p11_micro;
  }
  return true;
}

static enum cv_err take_probability(const struct cv_param *param, uint32_t *ret, struct cv_why *why) {
  uint64_t micro;
  if (param->is_text || !(param->number > 0 && param->number < 1) || !take_decimal(param->number, CV_MICRO, &micro) ||
      micro == 0 || micro >= CV_MICRO) {
    return cv_fail(why, CV_ERR_INVALID, "%s is not a probability strictly between 0 and 1 with at most 6 decimals",
                   param->key);
  }
  *ret = (uint32_t)micro;
  return CV_OK;
}

/* Takes the entries of single arms out of `params`; the rest is checked by the rules. */
static enum cv_err take_entries(struct cv_params *params, uint32_t arms, struct cv_local *law, struct cv_why *why) {
  /* `kept` trails `i`: what is not an entry of a matrix stays, closed up. */
  uint32_t kept = 0, entries = 0;
  for (uint32_t i = 0; i < params->count; i++) {
    const struct cv_param *param = &params->item[i];
    uint32_t *entry;
    if (!find_entry(law, param->key, arms, &entry)) {
      params->item[kept++] = *param;
      continue;
    }
    if (entry == NULL) {
      return cv_fail(why, CV_ERR_INVALID, "%s: expected an arm from 1 to %u, and arms up to %d only", param->key, arms,
                     CV_MATRICES_MAX);
    }
    if (*entry != 0) {
      return cv_fail(why, CV_ERR_INVALID, "%s is given twice", param->key);
    }
    CV_TRY(take_probability(param, entry, why));
    entries++;
  }
  params->count = kept;
  law->matrices = entries == 0 ? 0 : arms;
  for (uint32_t arm = 0; arm < law->matrices; arm++) {
    if (arm >= CV_MATRICES_MAX || law->matrix[arm].p00_micro == 0 || law->matrix[arm].p11_micro == 0) {
      return cv_fail(why, CV_ERR_INVALID, "missing p00.%u or p11.%u; expected both for each of the %u arms", arm + 1,
                     arm + 1, arms);
    }
  }
  return CV_OK;
}

/* ln((p - delta)/q), the smallest epsilon with p <= e^epsilon q + delta. */
static double between(uint64_t p_micro, uint64_t q_micro, double delta) {
  double p = (double)p_micro / (double)CV_MICRO - delta;
  return p <= 0 ? 0 : log(p * (double)CV_MICRO / (double)q_micro);
}

/* The epsilon at which the worst matrix is (epsilon, delta)-private, rounded up. */
static uint64_t worst_of_matrices(const struct cv_local *law, double delta) {
  const uint64_t one = (uint64_t)CV_MICRO;
  double epsilon = 0;
  for (uint32_t i = 0; i < law->matrices; i++) {
    uint64_t p00 = law->matrix[i].p00_micro, p11 = law->matrix[i].p11_micro;
    epsilon = fmax(epsilon, fmax(between(p00, one - p11, delta), between(one - p11, p00, delta)));
    epsilon = fmax(epsilon, fmax(between(p11, one - p00, delta), between(one - p00, p11, delta)));
  }
  /* The error of the logarithms is far below the 10^-6 micro that are added before rounding up. */
  return (uint64_t)ceil(epsilon * (double)CV_MICRO + 1e-6);
}

static enum cv_err epsilon_of_matrices(struct cv_local *law, struct cv_why *why) {
  /* With p00 + p11 = 1 the means cannot be computed back: the slope of the law is 0. */
  for (uint32_t i = 0; i < law->matrices; i++) {
    if (law->matrix[i].p00_micro + law->matrix[i].p11_micro == (uint64_t)CV_MICRO) {
      return cv_fail(why, CV_ERR_INVALID,
                     "p00 + p11 is 1; expected another sum, because tokens would not depend on scores");
    }
  }
  law->epsilon_micro = worst_of_matrices(law, (double)law->delta_pico / (double)CV_PICO);
  law->pure_micro = worst_of_matrices(law, 0);
  return CV_OK;
}

/* The epsilon at delta 0 of a symmetric rule that is (epsilon, delta)-private: ln of p/(1 - p). */
static uint64_t pure_of_rule(const struct cv_local *law) {
  if (law->delta_pico == 0) {
    return law->epsilon_micro;
  }
  double delta = (double)law->delta_pico / (double)CV_PICO;
  double above = log1p(delta * exp(-(double)law->epsilon_micro / (double)CV_MICRO));
  above -= law->printed ? 0 : log1p(-delta);
  return law->epsilon_micro + (uint64_t)ceil(above * (double)CV_MICRO + 1e-6);
}

static const char *const rule_words[] = {"optimal", "printed", NULL};
static const struct cv_param_rule response_rules[] = {
    {.key = "epsilon", .low = 1e-6, .high = 4000, .fallback = 0, .help = "of each token; smaller is more private"},
    {.key = "delta",
     .low = 0,
     .high = 1,
     .high_open = true,
     .fallback = 0,
     .help = "the probability with which a token may tell more"},
    {.key = "rule",
     .choices = rule_words,
     .fallback_text = "optimal",
     .help = "optimal: the best matrix for epsilon and delta; printed: as the paper has it"},
    {.key = "p00",
     .low = 0,
     .high = 1,
     .low_open = true,
     .high_open = true,
     .fallback = 0,
     .help = "instead of epsilon: the probability that a bit 0 is sent as 0; p00.1, p00.2 for each item"},
    {.key = "p11",
     .low = 0,
     .high = 1,
     .low_open = true,
     .high_open = true,
     .fallback = 0,
     .help = "instead of epsilon: the probability that a bit 1 is sent as 1; p11.1, p11.2 for each item"},
};

static enum cv_err read_response(struct cv_params *params, uint32_t arms, struct cv_local *law, struct cv_why *why) {
  const struct cv_param *bad;
  CV_TRY(take_entries(params, arms, law, why));
  CV_TRY(cv_params_check(params, response_rules, CV_COUNT(response_rules), &bad, why));
  CV_TRY(read_epsilon(params, law, why));
  CV_TRY(read_decimal(params, "delta", CV_PICO, 12, &law->delta_pico, why));
  if (law->delta_pico >= (uint64_t)CV_PICO) {
    return cv_fail(why, CV_ERR_INVALID, "delta rounds to 1; expected at most 12 decimals");
  }
  law->printed = strcmp(cv_params_text(params, "rule"), "printed") == 0;
  const struct cv_param *p00 = cv_params_find(params, "p00"), *p11 = cv_params_find(params, "p11");
  /* Exactly one of the three forms must be given: epsilon, one matrix for all arms, or a matrix for each arm. */
  bool for_all = p00->number > 0 || p11->number > 0;
  if ((law->epsilon_micro > 0) + for_all + (law->matrices > 0) != 1) {
    return cv_fail(why, CV_ERR_INVALID, "expected either epsilon, or p00 and p11, or p00 and p11 for each arm");
  }
  if (for_all) {
    law->matrices = 1;
    CV_TRY(take_probability(p00, &law->matrix[0].p00_micro, why));
    CV_TRY(take_probability(p11, &law->matrix[0].p11_micro, why));
  }
  if (law->matrices > 0 && law->printed) {
    return cv_fail(why, CV_ERR_INVALID, "rule is \"printed\"; expected it with epsilon only");
  }
  law->bits = true;
  law->high = CV_GRID;
  law->pure_micro = pure_of_rule(law);
  return law->matrices > 0 ? epsilon_of_matrices(law, why) : CV_OK;
}

/* ---- the others ---- */

static const struct cv_param_rule laplace_rules[] = {{.key = "epsilon",
                                                      .low = 1e-6,
                                                      .high = 4000,
                                                      .fallback = (double)NAN,
                                                      .help = "of each token; smaller is more private"}};

static enum cv_err read_laplace(struct cv_params *params, uint32_t arms, struct cv_local *law, struct cv_why *why) {
  const struct cv_param *bad;
  CV_TRY(cv_params_check(params, laplace_rules, CV_COUNT(laplace_rules), &bad, why));
  CV_TRY(read_epsilon(params, law, why));
  law->pure_micro = law->epsilon_micro;
  /* B = ceil(40 CV_GRID/epsilon); noise beyond B has probability of about e^-40. */
  uint64_t bound = ((uint64_t)(40 * CV_GRID * CV_MICRO) + law->epsilon_micro - 1) / law->epsilon_micro;
  law->low = -(int64_t)bound;
  law->high = CV_GRID + (int64_t)bound;
  return CV_OK;
}

static enum cv_err read_none(struct cv_params *params, uint32_t arms, struct cv_local *law, struct cv_why *why) {
  const struct cv_param *bad;
  law->epsilon_micro = law->pure_micro = CV_EPSILON_NONE;
  law->high = CV_GRID;
  return cv_params_check(params, NULL, 0, &bad, why);
}

/* ---- what the reference of campaign files says ---- */

#define none_about     "the score itself is sent"
#define response_about "a bit that is 1 with the score's probability, and flipped with a known one"
#define laplace_about  "the score plus Laplace noise"
#define none_count     0
#define response_count CV_COUNT(response_rules)
#define laplace_count  CV_COUNT(laplace_rules)
#define none_table     NULL
#define response_table response_rules
#define laplace_table  laplace_rules

const char *cv_local_about(enum cv_local_kind kind) {
#define ABOUT(file, kind, name, bounded, parameters, kept) (kept) > 0 ? response_about : parameters##_about,
  static const char *const about[] = {CV_LOCALS(ABOUT)};
  return about[kind];
}

const struct cv_param_rule *cv_local_rules(enum cv_local_kind kind, size_t *ret_count) {
#define TABLE(file, kind, name, bounded, parameters, kept) (kept) > 0 ? NULL : parameters##_table,
#define COUNT(file, kind, name, bounded, parameters, kept) (kept) > 0 ? 0 : parameters##_count,
  static const struct cv_param_rule *const table[] = {CV_LOCALS(TABLE)};
  static const size_t count[] = {CV_LOCALS(COUNT)};
  *ret_count = count[kind];
  return table[kind];
}

/* A bit that is always kept as often; what one token tells follows. */
static enum cv_err keep_bits(uint32_t kept_micro, struct cv_local *law, struct cv_why *why) {
  law->bits = true;
  law->matrices = 1;
  law->matrix[0] = (struct cv_matrix){.p00_micro = kept_micro, .p11_micro = kept_micro};
  return epsilon_of_matrices(law, why);
}

#define READ(file, kind, name, bounded, parameters, kept) read_##parameters,
#define KEPT(file, kind, name, bounded, parameters, kept) kept,
static const uint32_t kept_micro[] = {CV_LOCALS(KEPT)};
static enum cv_err (*const read_params[])(struct cv_params *params, uint32_t arms, struct cv_local *law,
                                          struct cv_why *why) = {CV_LOCALS(READ)};

enum cv_err cv_local_init(const struct cv_choice *choice, uint32_t arms, struct cv_local *ret, struct cv_why *why) {
  struct cv_local law = {.kind = cv_local_find(choice->name)};
  if (law.kind == CV_LOCAL_KINDS) {
    return cv_nearest_fail(why, "privatizer", choice->name, cv_local_names, CV_LOCAL_KINDS);
  }
  struct cv_params params = choice->params;
  enum cv_err err = read_params[law.kind](&params, arms, &law, why);
  if (err == CV_OK && kept_micro[law.kind] > 0) {
    err = keep_bits(kept_micro[law.kind], &law, why);
  }
  if (err != CV_OK) {
    cv_why_prefix(why, "privatizer %s", choice->name);
    return err;
  }
  *ret = law;
  return CV_OK;
}

bool cv_local_sends(const struct cv_local *law, int64_t value) {
  if (law->bits) {
    return value == 0 || value == CV_GRID;
  }
  return value >= law->low && value <= law->high;
}

const struct cv_matrix *cv_local_matrix(const struct cv_local *law, uint32_t arm) {
  CV_REQUIRE(law->matrices == 1 || arm < law->matrices);
  return &law->matrix[law->matrices == 1 ? 0 : arm];
}

/* P(bit sent unchanged) of the symmetric rules, numerator and denominator divided by e^epsilon. */
static double kept(const struct cv_local *law) {
  double e = exp(-(double)law->epsilon_micro / (double)CV_MICRO), delta = (double)law->delta_pico / (double)CV_PICO;
  double keep = 1 + delta * e;
  return law->printed ? keep / (keep + e) : keep / (1 + e);
}

struct cv_feedback cv_local_feedback(const struct cv_local *law, uint32_t arm) {
  if (!law->bits) {
    double epsilon = (double)law->epsilon_micro / (double)CV_MICRO;
    return (struct cv_feedback){.slope = 1, .scale = law->kind == CV_LOCAL_LAPLACE ? 1 / epsilon : 0};
  }
  double p00 = kept(law), p11 = p00;
  if (law->matrices > 0) {
    const struct cv_matrix *matrix = cv_local_matrix(law, arm);
    p00 = (double)matrix->p00_micro / (double)CV_MICRO;
    p11 = (double)matrix->p11_micro / (double)CV_MICRO;
  }
  return (struct cv_feedback){.offset = 1 - p00, .slope = p00 + p11 - 1};
}
