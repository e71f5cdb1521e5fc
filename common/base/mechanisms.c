/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/mechanisms.h"

#include <stdio.h>
#include <string.h>

#include "common/base/err.h"

#define TRAITS(id, ...) const struct cv_traits cv_traits_##id = {__VA_ARGS__};
CV_MECHANISMS(TRAITS)

#define ADDRESS(id, ...) &cv_traits_##id,
static const struct cv_traits *const table[] = {CV_MECHANISMS(ADDRESS)};

#define NAME(id, name, ...) name,
const char *const cv_traits_names[] = {CV_MECHANISMS(NAME) NULL};

static const struct cv_traits unknown = {.sums = CV_SUMS_ALL, .noise = CV_NOISE_LINEAR, .private = CV_PRIVATE_NEVER};

const struct cv_traits *cv_traits_of(const char *mechanism) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, mechanism) == 0) {
      return table[i];
    }
  }
  return &unknown;
}

bool cv_traits_exact_sums(const struct cv_traits *traits) {
  return traits->sums == CV_SUMS_ALL && traits->noise == CV_NOISE_NONE;
}

bool cv_traits_fresh_sums(const struct cv_traits *traits) {
  return traits->sums == CV_SUMS_ITEM && traits->noise == CV_NOISE_ONE;
}

bool cv_traits_covers(const struct cv_traits *traits) {
  return traits->noise != CV_NOISE_NONE && traits->private != CV_PRIVATE_NEVER;
}

bool cv_traits_repeats(const struct cv_traits *traits) {
  return traits->sums == CV_SUMS_POWERS;
}

bool cv_traits_states_noises(const struct cv_traits *traits) {
  return traits->name != NULL && traits->noise != CV_NOISE_WEIGHED;
}

struct cv_traits_list cv_traits_list(cv_traits_fn *has) {
  struct cv_traits_list list = {.text = ""};
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    size_t used = strlen(list.text);
    if (has(table[i])) {
      (void)snprintf(list.text + used, sizeof(list.text) - used, "%s%s", used > 0 ? " or " : "", table[i]->name);
    }
  }
  return list;
}
