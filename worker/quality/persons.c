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

uint64_t cv_persons_most(const struct cv_persons *persons) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < persons->persons; i++) {
    uint64_t rows = cv_persons_rows(persons, i);
    most = rows > most ? rows : most;
  }
  return most;
}

uint64_t cv_persons_beyond(const struct cv_persons *persons, uint64_t each) {
  uint64_t beyond = 0;
  for (uint32_t i = 0; i < persons->persons; i++) {
    uint64_t rows = cv_persons_rows(persons, i);
    beyond += rows > each ? rows - each : 0;
  }
  return beyond;
}
