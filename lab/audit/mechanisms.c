/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "common/base/rng.h"
#include "lab/audit/subjects.h"

static enum cv_err law_of(const struct cv_mechanism_class *class, uint64_t epsilon_micro,
                          const struct cv_audit_stream *stream, struct cv_mechanism_law *ret) {
  struct cv_params params = {0};
  if (stream->arity > 0) {
    CV_TRY(cv_params_set_number(&params, "k", stream->arity));
  }
  return cv_mechanism_law_for(class, &params, epsilon_micro, stream->items, ret, NULL);
}

/* Saves and loads the mechanism, as a restarted broker does. */
static enum cv_err restart(struct cv_mechanism **mechanism, struct cv_buf *state) {
  struct cv_mechanism *loaded;
  cv_buf_clear(state);
  cv_mechanism_save(*mechanism, state);
  struct cv_reader in = cv_reader_over(state->data, state->len);
  CV_TRY(cv_buf_ok(state) ? cv_mechanism_load(&(*mechanism)->law, &in, &loaded) : CV_ERR_NOMEM);
  cv_mechanism_free(*mechanism);
  *mechanism = loaded;
  return CV_OK;
}

static enum cv_err release_all(const struct cv_audit_stream *stream, bool neighbour, struct cv_mechanism **mechanism,
                               struct cv_buf *state, struct cv_rng *rng, int64_t *row) {
  for (uint32_t n = 1; n <= stream->items; n++) {
    int64_t item = n != stream->changed ? stream->base : neighbour ? stream->score : 0;
    cv_mechanism_draw(*mechanism, rng);
    /* Restarts after the draw and after the release: noise drawn twice or forgotten would show in later releases. */
    if (stream->restarts) {
      CV_TRY(restart(mechanism, state));
    }
    row[n - 1] = cv_mechanism_release(*mechanism, item);
    if (stream->restarts) {
      CV_TRY(restart(mechanism, state));
    }
  }
  return CV_OK;
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_rng_seeded seeded;
  struct cv_mechanism_law law;
  struct cv_buf state = {0};
  enum cv_err err = law_of(self->thing, self->epsilon_micro, &self->stream, &law);
  cv_rng_seeded_init(&seeded, stream, CV_RNG_NOISE, 0, 0);
  for (uint64_t run = 0; err == CV_OK && run < runs; run++, row += self->width) {
    struct cv_mechanism *mechanism = NULL;
    err = cv_mechanism_new(&law, &mechanism);
    err = err == CV_OK ? release_all(&self->stream, neighbour, &mechanism, &state, &seeded.rng, row) : err;
    cv_mechanism_free(mechanism);
  }
  cv_buf_fini(&state);
  return err;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "F(%u)", at + 1);
}

static void add_key(struct cv_audit_subject *subject, uint32_t n) {
  if (n < 1 || n > subject->stream.items || subject->keys == CV_AUDIT_KEYS_MAX) {
    return;
  }
  for (uint32_t i = 0; i < subject->keys; i++) {
    if (subject->key[i] == n - 1) {
      return;
    }
  }
  subject->key[subject->keys++] = (uint16_t)(n - 1);
}

/* Selects the releases around the changed item, the last one, and those around powers of two, where trees and segments
 * start and end; the most promising first, since the number of keys is limited. */
static void add_keys(struct cv_audit_subject *subject) {
  const struct cv_audit_stream *stream = &subject->stream;
  for (int around = -1; around <= 1; around++) {
    add_key(subject, stream->changed + (uint32_t)around);
  }
  add_key(subject, stream->items);
  for (uint32_t power = 1; power <= stream->items; power *= 2) {
    add_key(subject, power);
  }
  for (uint32_t power = 2; power <= stream->items; power *= 2) {
    add_key(subject, power + 1);
    add_key(subject, power - 1);
  }
}

static void name_setting(struct cv_audit_subject *subject) {
  const struct cv_audit_stream *stream = &subject->stream;
  char arity[16] = "";
  if (stream->arity > 0) {
    (void)snprintf(arity, sizeof(arity), " k %u", stream->arity);
  }
  (void)snprintf(subject->setting, sizeof(subject->setting), "n %u%s, item %u%s%s%s", stream->items, arity,
                 stream->changed, stream->base > 0 ? ", full" : "", stream->restarts ? ", restarts" : "",
                 stream->charged ? ", as charged" : "");
}

enum cv_err cv_audit_mechanism(const struct cv_mechanism_class *class, uint64_t epsilon_micro,
                               const struct cv_audit_stream *stream, struct cv_audit_subject *ret) {
  struct cv_mechanism_law law;
  CV_TRY(law_of(class, epsilon_micro, stream, &law));
  /* A mechanism without a guarantee still must not spend more than the broker charges for it. */
  bool is_sound = cv_mechanism_is_private(class) || stream->charged;
  *ret = (struct cv_audit_subject){
      .is_sound = is_sound,
      .epsilon = (double)(is_sound ? cv_mechanism_spent_micro(&law, stream->items) : epsilon_micro) / CV_MICRO,
      .width = stream->items,
      .series = stream->items,
      .sample = sample,
      .label = label,
      .thing = class,
      .epsilon_micro = epsilon_micro,
      .stream = *stream,
  };
  add_keys(ret);
  (void)snprintf(ret->part, sizeof(ret->part), "%s", class->traits->name);
  name_setting(ret);
  return CV_OK;
}
