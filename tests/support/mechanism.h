/* SPDX-License-Identifier: Apache-2.0 */
/* Mechanisms by name, for tests. */
#ifndef CV_TESTS_MECHANISM_H
#define CV_TESTS_MECHANISM_H

#include <stdio.h>

#include "broker/mechanism/mechanism.h"

/* Without parameters, except for `releases` as the horizon if the mechanism needs one. */
static inline struct cv_mechanism_law mechanism_law(const char *name, uint64_t epsilon_micro, uint64_t releases) {
  struct cv_choice choice = {0};
  struct cv_mechanism_law law;
  (void)snprintf(choice.name, sizeof(choice.name), "%s", name);
  CV_REQUIRE(cv_mechanism_law_init(&choice, epsilon_micro, releases, &law, NULL) == CV_OK);
  return law;
}

static inline struct cv_mechanism *mechanism_new(const struct cv_mechanism_law *law) {
  struct cv_mechanism *mechanism = NULL;
  CV_REQUIRE(cv_mechanism_new(law, &mechanism) == CV_OK);
  return mechanism;
}

/* Tokens in release n: `before` are those of release n - 1, `want` those of the epoch, `all` those of all epochs. */
static inline uint64_t mechanism_tokens(const struct cv_mechanism_law *law, uint64_t n, uint64_t before, uint64_t want,
                                        uint64_t all) {
  enum cv_cover cover = cv_mechanism_cover(law, n);
  return cover == CV_COVER_ALL ? all : cover == CV_COVER_ITEM ? want : before;
}

#endif
