/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "broker/mechanism/classes.h"
#include "common/base/nearest.h"

#define ADDRESS(id, ...) &cv_mechanism_##id,
static const struct cv_mechanism_class *const table[] = {CV_MECHANISMS(ADDRESS)};

const struct cv_mechanism_class *cv_mechanism_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_mechanism_class *cv_mechanism_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->traits->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

static bool has_horizon(const struct cv_mechanism_class *class) {
  for (size_t i = 0; i < class->rule_count; i++) {
    if (strcmp(class->rules[i].key, "horizon") == 0) {
      return true;
    }
  }
  return false;
}

static enum cv_err take_horizon(struct cv_mechanism_law *law, struct cv_params *params, uint64_t releases,
                                struct cv_why *why) {
  if (!has_horizon(law->class)) {
    return CV_OK;
  }
  uint64_t said = (uint64_t)cv_params_number(params, "horizon");
  if (said == 0 && releases == 0) {
    return cv_fail(why, CV_ERR_INVALID, "missing horizon; expected the largest number of releases of one arm");
  }
  law->horizon = said != 0 ? said : releases < law->horizon ? releases : law->horizon;
  return cv_params_set_number(params, "horizon", (double)law->horizon);
}

static enum cv_err complete(struct cv_mechanism_law *law, struct cv_params *params, uint64_t releases,
                            struct cv_why *why) {
  const struct cv_param *bad;
  if (cv_mechanism_has_noise(law->class) && law->epsilon_micro == 0) {
    return cv_fail(why, CV_ERR_INVALID, "epsilon is 0; expected a positive number");
  }
  CV_TRY(cv_params_check(params, law->class->rules, law->class->rule_count, &bad, why));
  CV_TRY(take_horizon(law, params, releases, why));
  return law->class->prepare(law, params, why);
}

enum cv_err cv_mechanism_law_for(const struct cv_mechanism_class *class, struct cv_params *params,
                                 uint64_t epsilon_micro, uint64_t releases, struct cv_mechanism_law *ret,
                                 struct cv_why *why) {
  struct cv_mechanism_law law = {.class = class, .epsilon_micro = epsilon_micro, .horizon = CV_RELEASES_END - 1};
  struct cv_params completed = params == NULL ? (struct cv_params){0} : *params;
  enum cv_err err = complete(&law, &completed, releases, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "mechanism %s", class->traits->name);
    return err;
  }
  if (params != NULL) {
    *params = completed;
  }
  *ret = law;
  return CV_OK;
}

uint64_t cv_mechanism_releases(const struct cv_spec *spec) {
  const struct cv_param *round = cv_params_find(&spec->policy.params, "tokens_per_round");
  uint64_t each = cv_spec_release_tokens(spec);
  if (round != NULL && !round->is_text && round->number > (double)each && round->number <= UINT32_MAX) {
    each = (uint64_t)round->number;
  }
  return spec->tokens > each ? spec->tokens / each : 1;
}

enum cv_err cv_mechanism_law_init(struct cv_choice *choice, uint64_t epsilon_micro, uint64_t releases,
                                  struct cv_mechanism_law *ret, struct cv_why *why) {
  const struct cv_mechanism_class *class = cv_mechanism_find(choice->name);
  return class == NULL ? cv_nearest_fail(why, "mechanism", choice->name, cv_traits_names, CV_COUNT(table))
                       : cv_mechanism_law_for(class, &choice->params, epsilon_micro, releases, ret, why);
}
