/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "broker/both/gate.h"
#include "common/base/grid.h"
#include "lab/audit/pipeline.h"
#include "lab/audit/subjects.h"

enum { ARMS = CV_INSIDER_ARMS };

/* The neighbours differ in one score: the first token of the changed arm and round. */
struct input {
  bool neighbour;
  uint32_t tau;
  const struct cv_audit_stream *stream;
};

static int64_t score(const void *data, uint32_t campaign, uint32_t arm, uint64_t place) {
  const struct input *input = data;
  const struct cv_audit_stream *stream = input->stream;
  if (arm != stream->arm || place != (uint64_t)input->tau * (stream->changed - 1)) {
    return stream->base;
  }
  return input->neighbour ? stream->score : 0;
}

static void write_row(const struct cv_audit_subject *self, const struct cv_insider_view *view, uint64_t rest,
                      int64_t *row) {
  const struct cv_audit_brokers *brokers = &self->brokers;
  bool only_other = brokers->lie == CV_LIE_ARM; /* the claim is about the arm that the token is not of */
  for (uint32_t round = 0; round < self->stream.items; round++) {
    for (uint32_t arm = 0; arm < ARMS; arm++) {
      bool shows = !only_other || arm != self->stream.arm;
      row[round * ARMS + arm] = shows ? view->sum[round][arm] : 0;
      row[self->series / 2 + round * ARMS + arm] = shows ? view->noise[round][arm] : 0;
    }
  }
  row[self->series] = only_other ? 0 : view->share;
  row[self->series + 1] = only_other ? 0 : view->check;
  row[self->series + 2] = view->opened;
  row[self->series + 3] = (int64_t)cv_mix64(view->rest + rest);
}

/* Tokens of a release. */
static uint32_t tau_of(enum cv_lie lie) {
  return lie == CV_LIE_SHORT || lie == CV_LIE_AGAIN ? 2 : 1;
}

static enum cv_err law_of(const struct cv_spec *spec, struct cv_privacy *ret) {
  struct cv_spec completed = *spec;
  return cv_privacy_init(&completed, ret, NULL);
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  const struct cv_spec *spec = self->thing;
  const struct cv_audit_brokers *brokers = &self->brokers;
  const struct input input = {.neighbour = neighbour, .tau = tau_of(brokers->lie), .stream = &self->stream};
  struct cv_insider insider;
  struct cv_privacy privacy;
  struct cv_rng_seeded noise, privatizer;
  int64_t seen[ARMS * CV_INSIDER_ROUNDS + 1];
  CV_TRY(law_of(spec, &privacy));
  cv_rng_seeded_init(&noise, stream, CV_RNG_NOISE, 0, 0);
  cv_rng_seeded_init(&privatizer, stream, CV_RNG_PRIVATIZER, 0, 0);
  const struct cv_pipeline pipeline = {.spec = spec,
                                       .campaigns = 1,
                                       .rounds = self->stream.items,
                                       .tau = input.tau,
                                       .score = score,
                                       .data = &input,
                                       .noise = &noise.rng,
                                       .privatizer = &privatizer.rng,
                                       .insider = &insider,
                                       .seeded = brokers->seeded};
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    insider = (struct cv_insider){
        .is_cobroker = brokers->is_cobroker,
        .lie = brokers->lie,
        .arm = self->stream.arm,
        .round = self->stream.changed,
        .measurement = (uint64_t)(neighbour ? self->stream.score : 0) / cv_split_scale(spec->score_bits),
        .law = privacy.law,
        .score_bits = spec->score_bits};
    CV_TRY(cv_insider_init(&insider));
    CV_TRY(cv_pipeline_run(&pipeline, seen, NULL));
    CV_TRY(brokers->lie == CV_LIE_NONE || insider.lied ? CV_OK : CV_ERR_STATE);
    write_row(self, &insider.view, (uint64_t)seen[ARMS * self->stream.items], row);
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  static const char *const names[] = {"share", "verifier", "opened", "rest"};
  if (at >= self->series) {
    (void)snprintf(text, CV_AUDIT_TEXT, "%s", names[at - self->series]);
    return;
  }
  bool is_noise = at >= self->series / 2;
  uint32_t round = at % (self->series / 2) / ARMS + 1;
  (void)snprintf(text, CV_AUDIT_TEXT, "%s%c(%u)", is_noise ? "own " : "", "AB"[at % ARMS], round);
}

/* What a lie must not show at all, an honest peer given: another arm's releases depend on no token, nothing leaves of
 * an epoch that is not complete, and nothing is released of tokens that have no place. */
static bool is_void(enum cv_lie lie) {
  return lie != CV_LIE_NONE && lie != CV_LIE_SLOT && lie != CV_LIE_AGAIN;
}

static void name_setting(struct cv_audit_subject *subject, const struct cv_spec *spec) {
  static const char *const lies[] = {
      "", ", other arm", ", slot twice", ", asked again", ", short closing", ", other key",
  };
  const struct cv_audit_stream *stream = &subject->stream;
  const struct cv_audit_brokers *brokers = &subject->brokers;
  bool is_local = cv_split_tokens_are_bits(spec);
  (void)snprintf(subject->part, sizeof(subject->part), "two-brokers");
  (void)snprintf(subject->setting, sizeof(subject->setting), "%s, %.14s%s, n %u, item %c%u%s%s%s",
                 brokers->is_cobroker ? "co-broker" : "broker", spec->mechanism.name, is_local ? " bits" : "",
                 stream->items, "AB"[stream->arm], stream -> changed, stream -> base > 0 ? ", full" : "",
                 brokers->seeded ? ", one seed" : "", lies[brokers->lie]);
}

enum cv_err cv_audit_two_brokers(const struct cv_spec *spec, const struct cv_audit_stream *stream,
                                 const struct cv_audit_brokers *brokers, struct cv_audit_subject *ret) {
  struct cv_privacy privacy;
  if (spec->arms != ARMS || spec->brokers != 2 || stream->items > CV_INSIDER_ROUNDS) {
    return CV_ERR_LIMIT;
  }
  CV_TRY(law_of(spec, &privacy));
  *ret = (struct cv_audit_subject){
      .is_sound = true,
      .epsilon = is_void(brokers->lie) ? 0 : (double)cv_privacy_spent_micro(&privacy, stream->items) / CV_MICRO,
      .delta = (double)cv_privacy_delta_pico(&privacy) / CV_PICO,
      .width = 2 * ARMS * stream->items + 4,
      .series = 2 * ARMS * stream->items,
      .keys = 2 * ARMS * stream->items,
      .sample = sample,
      .label = label,
      .thing = spec,
      .stream = *stream,
      .brokers = *brokers,
  };
  for (uint32_t i = 0; i < ret->keys; i++) {
    ret->key[i] = (uint16_t)i;
  }
  name_setting(ret, spec);
  return CV_OK;
}
