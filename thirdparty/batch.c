/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/batch.h"

#include <stdlib.h>
#include <string.h>

void cv_delta_free(struct cv_delta *delta) {
  if (delta == NULL) {
    return;
  }
  for (size_t i = 0; i < delta->plans; i++) {
    free(delta->plan[i].plan.want);
  }
  free(delta->plan);
  free(delta->release);
  free(delta->decision);
  free(delta->standing);
  cv_buf_fini(&delta->state);
  cv_spec_fini(&delta->spec);
  free(delta);
}

void cv_batch_fini(struct cv_batch *batch) {
  while (batch->first != NULL) {
    struct cv_delta *next = batch->first->next;
    cv_delta_free(batch->first);
    batch->first = next;
  }
  batch->last = NULL;
}

void cv_stored_campaign_fini(struct cv_stored_campaign *stored) {
  cv_spec_fini(&stored->spec);
  free(stored->plan.want);
  free(stored->release);
  cv_buf_fini(&stored->state);
  *stored = (struct cv_stored_campaign){0};
}

/* Room for one more element of an array that doubles. */
static enum cv_err grow(void **array, size_t used, size_t *cap, size_t size) {
  if (used < *cap) {
    return CV_OK;
  }
  size_t wanted = *cap == 0 ? 8 : 2 * *cap;
  void *grown = reallocarray(*array, wanted, size);
  if (grown == NULL) {
    return CV_ERR_NOMEM;
  }
  *array = grown;
  *cap = wanted;
  return CV_OK;
}

enum cv_err cv_plan_copy(const struct cv_plan *from, struct cv_plan *ret_to) {
  struct cv_want *want = calloc(from->wants > 0 ? from->wants : 1, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  if (from->wants > 0) {
    memcpy(want, from->want, from->wants * sizeof(*want));
  }
  *ret_to = (struct cv_plan){.number = from->number, .wants = from->wants, .want = want};
  return CV_OK;
}

enum cv_err cv_delta_add_plan(struct cv_delta *delta, const struct cv_plan *plan, bool recorded) {
  CV_TRY(grow((void **)&delta->plan, delta->plans, &delta->plans_cap, sizeof(*delta->plan)));
  struct cv_stored_plan *at = &delta->plan[delta->plans];
  CV_TRY(cv_plan_copy(plan, &at->plan));
  at->recorded = recorded;
  delta->plans++;
  return CV_OK;
}

enum cv_err cv_delta_add_release(struct cv_delta *delta, const struct cv_release *release) {
  CV_TRY(grow((void **)&delta->release, delta->releases, &delta->releases_cap, sizeof(*release)));
  delta->release[delta->releases++] = *release;
  return CV_OK;
}

enum cv_err cv_delta_add_decision(struct cv_delta *delta, const struct cv_stored_decision *decision) {
  CV_TRY(grow((void **)&delta->decision, delta->decisions, &delta->decisions_cap, sizeof(*decision)));
  delta->decision[delta->decisions++] = *decision;
  return CV_OK;
}

enum cv_err cv_delta_add_standing(struct cv_delta *delta, const struct cv_standing *standing) {
  CV_TRY(grow((void **)&delta->standing, delta->standings, &delta->standings_cap, sizeof(*standing)));
  delta->standing[delta->standings++] = *standing;
  return CV_OK;
}
