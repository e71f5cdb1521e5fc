/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/holding.h"

#include "common/base/grid.h"
#include "common/page/jot.h"

static void whole(struct cv_jot *jot, const char *key, uint64_t value) {
  cv_jot_key(jot, key);
  cv_jot_whole(jot, value);
}

static void hold(struct cv_jot *jot, const char *what) {
  cv_jot_open(jot, '[');
  cv_jot_text(jot, what);
  cv_jot_text(jot, "sealed");
  cv_jot_close(jot, ']');
}

static void put_holds(struct cv_jot *jot, const struct cv_holding *holding) {
  const char *sum = holding->is_share ? "share of the sum" : "partial sum";
  cv_jot_key(jot, "sealed");
  cv_jot_open(jot, '[');
  if (holding->has_epoch) {
    cv_jot_text(jot, sum);
  }
  if (holding->has_noise) {
    cv_jot_text(jot, "noise");
  }
  cv_jot_close(jot, ']');
  cv_jot_key(jot, "holds");
  cv_jot_open(jot, '[');
  cv_jot_open(jot, '[');
  cv_jot_text(jot, holding->is_share ? "shares summed" : "tokens summed");
  cv_jot_whole(jot, holding->tokens);
  cv_jot_close(jot, ']');
  if (holding->has_epoch) {
    hold(jot, sum);
  }
  if (holding->has_noise) {
    hold(jot, "noise");
  }
  cv_jot_close(jot, ']');
}

void cv_holding_tell(const struct cv_holding *holding, struct cv_buf *out) {
  struct cv_jot jot = {.out = out};
  cv_jot_open(&jot, '{');
  whole(&jot, "tokens", holding->tokens);
  whole(&jot, "places_open", holding->places_open);
  whole(&jot, "epoch_tokens", holding->epoch_tokens);
  put_holds(&jot, holding);
  whole(&jot, "releases", holding->releases);
  cv_jot_key(&jot, "spent");
  cv_jot_number(&jot, (double)holding->spent_micro / (double)CV_MICRO);
  cv_jot_close(&jot, '}');
}
