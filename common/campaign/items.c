/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/items.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t cv_items_count(const struct cv_items *items) {
  switch (items->source) {
    case CV_SOURCE_SYNTHETIC:
      return items->synthetic.count;
    case CV_SOURCE_GIVEN:
      return items->given.count;
    case CV_SOURCE_ADVERSARY:
      return items->adversary.count;
    case CV_SOURCE_CSV:
    case CV_SOURCE_TAXI:
      break;
  }
  /* Known only after the file is read. */
  return 0;
}

const char *cv_items_file(const struct cv_items *items) {
  switch (items->source) {
    case CV_SOURCE_CSV:
      return items->csv.file;
    case CV_SOURCE_TAXI:
      return items->taxi.file;
    case CV_SOURCE_SYNTHETIC:
    case CV_SOURCE_GIVEN:
    case CV_SOURCE_ADVERSARY:
      break;
  }
  return NULL;
}

const struct cv_items_law *cv_items_law(const struct cv_items *items) {
  switch (items->source) {
    case CV_SOURCE_SYNTHETIC:
      return &items->synthetic.law;
    case CV_SOURCE_GIVEN:
      return &items->given.law;
    case CV_SOURCE_TAXI:
      return &items->taxi.law;
    case CV_SOURCE_CSV:
    case CV_SOURCE_ADVERSARY:
      break;
  }
  return NULL;
}

bool cv_items_are_pairs(const struct cv_items *items) {
  const struct cv_items_law *law = cv_items_law(items);
  return law != NULL ? law->rewards == CV_REWARDS_PAIRS
                     : items->source == CV_SOURCE_CSV && items->csv.versus_column[0] != '\0';
}

void cv_items_name(const struct cv_items *items, uint32_t arm, struct cv_names *ret) {
  bool is_given = items->source == CV_SOURCE_GIVEN;
  if (is_given && items->given.name != NULL) {
    cv_names_add(ret, items->given.name[arm]);
    return;
  }
  char text[32];
  uint64_t number = is_given && items->are_paid ? items->given.item[arm].id : (uint64_t)arm + 1;
  (void)snprintf(text, sizeof(text), "%s %" PRIu64, items->are_paid ? "worker" : "item", number);
  cv_names_add(ret, text);
}

bool cv_items_have_means(const struct cv_items *items) {
  return items->source != CV_SOURCE_GIVEN || !isnan(items->given.item[0].mean);
}

void cv_items_fini(struct cv_items *items) {
  switch (items->source) {
    case CV_SOURCE_GIVEN:
      free(items->given.item);
      free(items->given.name);
      break;
    case CV_SOURCE_CSV:
      free(items->csv.file);
      free(items->csv.query);
      break;
    case CV_SOURCE_TAXI:
      free(items->taxi.file);
      break;
    case CV_SOURCE_SYNTHETIC:
    case CV_SOURCE_ADVERSARY:
      break;
  }
}
