/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/starved.h"

#include <jansson.h>
#include <stdlib.h>

static bool starved;

static void *watched_malloc(size_t n) {
  void *at = malloc(n);
  starved = starved || at == NULL;
  return at;
}

void cv_starved_watch(void) {
  starved = false;
  json_set_alloc_funcs(watched_malloc, free);
}

bool cv_starved_failed(void) {
  return starved;
}
