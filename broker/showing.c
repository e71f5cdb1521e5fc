/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/showing.h"

#include "broker/column.h"
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

static void put_holds(struct cv_jot *jot, const struct cv_broker_column *column) {
  cv_jot_key(jot, "sealed");
  cv_jot_open(jot, '[');
  if (column->has_epoch) {
    cv_jot_text(jot, "partial sum");
  }
  if (column->has_noise) {
    cv_jot_text(jot, "noise");
  }
  cv_jot_close(jot, ']');
  cv_jot_key(jot, "holds");
  cv_jot_open(jot, '[');
  cv_jot_open(jot, '[');
  cv_jot_text(jot, "tokens summed");
  cv_jot_whole(jot, column->tokens);
  cv_jot_close(jot, ']');
  if (column->has_epoch) {
    hold(jot, "partial sum");
  }
  if (column->has_noise) {
    hold(jot, "noise");
  }
  cv_jot_close(jot, ']');
}

enum cv_page_found cv_broker_showing(struct cv_broker *broker, uint64_t id, uint64_t arm, struct cv_buf *out) {
  struct cv_broker_column column;
  struct cv_jot jot = {.out = out};
  if (!cv_broker_column(broker, id, arm, &column)) {
    return CV_PAGE_ABSENT;
  }
  cv_jot_open(&jot, '{');
  whole(&jot, "tokens", column.tokens);
  whole(&jot, "places_open", column.places_open);
  whole(&jot, "epoch_tokens", column.epoch_tokens);
  put_holds(&jot, &column);
  whole(&jot, "releases", column.releases);
  cv_jot_key(&jot, "spent");
  cv_jot_number(&jot, (double)column.spent_micro / (double)CV_MICRO);
  cv_jot_close(&jot, '}');
  return CV_PAGE_HERE;
}
