/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/persons.h"

#include <stdlib.h>

enum cv_err cv_persons_init(struct cv_persons *ret, uint32_t persons, uint64_t rows) {
  struct cv_persons made = {.persons = persons};
  if (rows >= UINT32_MAX) {
    return CV_ERR_LIMIT;
  }
  made.start = calloc((size_t)persons + 1, sizeof(*made.start));
  made.arm = calloc(rows + 1, sizeof(*made.arm));
  made.value = calloc(rows + 1, sizeof(*made.value));
  if (made.start == NULL || made.arm == NULL || made.value == NULL) {
    cv_persons_fini(&made);
    return CV_ERR_NOMEM;
  }
  *ret = made;
  return CV_OK;
}

void cv_persons_fini(struct cv_persons *persons) {
  free(persons->start);
  free(persons->arm);
  free(persons->value);
  *persons = (struct cv_persons){0};
}

uint64_t cv_persons_rows(const struct cv_persons *persons, uint32_t person) {
  CV_REQUIRE(person < persons->persons);
  return persons->start[person + 1] - persons->start[person];
}

/* The items among the person's rows. last[] has, of each arm, 1 + the last person that was seen to have rows of it. */
static uint64_t count_arms(const struct cv_persons *persons, uint32_t person, uint32_t *last) {
  uint64_t arms = 0;
  for (uint64_t row = persons->start[person]; row < persons->start[person + 1]; row++) {
    uint32_t arm = persons->arm[row];
    arms += last[arm] != person + 1;
    last[arm] = person + 1;
  }
  return arms;
}

enum cv_err cv_persons_give(const struct cv_persons *persons, uint32_t arms, uint64_t each, bool is_once,
                            uint64_t *ret_most, uint64_t *ret_beyond) {
  uint32_t *last = calloc((size_t)arms + 1, sizeof(*last));
  if (last == NULL) {
    return CV_ERR_NOMEM;
  }
  *ret_most = *ret_beyond = 0;
  for (uint32_t i = 0; i < persons->persons; i++) {
    uint64_t rows = cv_persons_rows(persons, i), give = is_once ? count_arms(persons, i, last) : rows;
    give = give < each ? give : each;
    *ret_most = give > *ret_most ? give : *ret_most;
    *ret_beyond += rows - give;
  }
  free(last);
  return CV_OK;
}
