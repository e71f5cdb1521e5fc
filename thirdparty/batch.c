/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/batch.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

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

void cv_thirdparty_batch_fini(struct cv_thirdparty_batch *batch) {
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

enum cv_err cv_delta_add_plan(struct cv_delta *delta, const struct cv_plan *plan, bool recorded) {
  CV_TRY(CV_ARRAY_ROOM(delta->plan, delta->plans + 1, delta->plans_cap));
  /* Counted only once its wants are copied, so that an error leaves no plan without them. */
  struct cv_stored_plan *at = &delta->plan[delta->plans];
  CV_TRY(cv_plan_copy(plan, &at->plan));
  at->recorded = recorded;
  delta->plans++;
  return CV_OK;
}

enum cv_err cv_delta_add_release(struct cv_delta *delta, const struct cv_release *release) {
  CV_TRY(CV_ARRAY_ROOM(delta->release, delta->releases + 1, delta->releases_cap));
  delta->release[delta->releases++] = *release;
  return CV_OK;
}

enum cv_err cv_delta_add_decision(struct cv_delta *delta, const struct cv_stored_decision *decision) {
  CV_TRY(CV_ARRAY_ROOM(delta->decision, delta->decisions + 1, delta->decisions_cap));
  delta->decision[delta->decisions++] = *decision;
  return CV_OK;
}

enum cv_err cv_delta_add_standing(struct cv_delta *delta, const struct cv_standing *standing) {
  CV_TRY(CV_ARRAY_ROOM(delta->standing, delta->standings + 1, delta->standings_cap));
  delta->standing[delta->standings++] = *standing;
  return CV_OK;
}
