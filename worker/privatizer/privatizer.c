/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/privatizer/privatizer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "worker/privatizer/classes.h"

#define ADDRESS(file, ...) &cv_privatizer_##file,
static const struct cv_privatizer_class *const table[] = {CV_LOCALS(ADDRESS)};

const struct cv_privatizer_class *cv_privatizer_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_privatizer_class *cv_privatizer_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(cv_local_name(table[i]->kind), name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

enum cv_err cv_privatizer_new(const struct cv_choice *choice, uint32_t arms, struct cv_privatizer **ret,
                              struct cv_why *why) {
  struct cv_privatizer privatizer = {0};
  CV_TRY(cv_local_init(choice, arms, &privatizer.law, why));
  privatizer.class = cv_privatizer_find(choice->name);
  CV_REQUIRE(privatizer.class != NULL);
  if (privatizer.law.epsilon_micro != CV_EPSILON_NONE) {
    /* CV_GRID CV_MICRO < 2^40: within the sampler's range for every epsilon. */
    CV_REQUIRE(cv_dlaplace_init(&privatizer.noise, (uint64_t)(CV_GRID * CV_MICRO), privatizer.law.epsilon_micro) ==
               CV_OK);
  }
  struct cv_privatizer *made = malloc(sizeof(*made));
  if (made == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for privatizer %s", choice->name);
  }
  *made = privatizer;
  *ret = made;
  return CV_OK;
}

void cv_privatizer_free(struct cv_privatizer *privatizer) {
  free(privatizer);
}
