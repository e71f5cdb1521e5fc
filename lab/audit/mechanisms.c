/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "common/base/rng.h"
#include "lab/audit/subjects.h"

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_rng_seeded seeded;
  struct cv_mechanism_law law;
  CV_TRY(cv_mechanism_law_for(self->thing, NULL, self->epsilon_micro, self->items, &law, NULL));
  cv_rng_seeded_init(&seeded, stream, CV_RNG_NOISE, 0, 0);
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    struct cv_mechanism *mechanism;
    CV_TRY(cv_mechanism_new(&law, &mechanism));
    for (uint32_t n = 1; n <= self->items; n++) {
      cv_mechanism_draw(mechanism, &seeded.rng);
      row[n - 1] = cv_mechanism_release(mechanism, neighbour && n == self->changed ? CV_GRID : 0);
    }
    cv_mechanism_free(mechanism);
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "F(%u)", at + 1);
}

static void add_key(struct cv_audit_subject *subject, uint32_t n) {
  if (n < 1 || n > subject->items || subject->keys == CV_AUDIT_KEYS_MAX) {
    return;
  }
  for (uint32_t i = 0; i < subject->keys; i++) {
    if (subject->key[i] == n - 1) {
      return;
    }
  }
  subject->key[subject->keys++] = (uint16_t)(n - 1);
}

/* The numbers around the changed item, the last, and those around powers of two. */
static void add_keys(struct cv_audit_subject *subject) {
  for (int around = -1; around <= 1; around++) {
    add_key(subject, subject->changed + (uint32_t)around);
  }
  add_key(subject, subject->items);
  for (uint32_t power = 1; power <= subject->items; power *= 2) {
    add_key(subject, power);
  }
  for (uint32_t power = 2; power <= subject->items; power *= 2) {
    add_key(subject, power + 1);
    add_key(subject, power - 1);
  }
}

enum cv_err cv_audit_mechanism(const struct cv_mechanism_class *class, uint64_t epsilon_micro, uint32_t items,
                               uint32_t changed, struct cv_audit_subject *ret) {
  struct cv_mechanism_law law;
  CV_TRY(cv_mechanism_law_for(class, NULL, epsilon_micro, items, &law, NULL));
  *ret = (struct cv_audit_subject){
      .is_sound = class->is_private,
      .epsilon = (double)(class->is_private ? cv_mechanism_spent_micro(&law, items) : epsilon_micro) / CV_MICRO,
      .width = items,
      .sample = sample,
      .label = label,
      .thing = class,
      .epsilon_micro = epsilon_micro,
      .items = items,
      .changed = changed,
  };
  add_keys(ret);
  (void)snprintf(ret->part, sizeof(ret->part), "%s", class->name);
  (void)snprintf(ret->setting, sizeof(ret->setting), "n %u, item %u", items, changed);
  return CV_OK;
}
