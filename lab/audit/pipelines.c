/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "broker/both/gate.h"
#include "common/base/grid.h"
#include "lab/audit/pipeline.h"
#include "lab/audit/subjects.h"

/* The neighbours differ in one score: the only token of the changed arm and round, in the first campaign. */
struct input {
  bool neighbour;
  const struct cv_audit_stream *stream;
};

static int64_t score(const void *data, uint32_t campaign, uint32_t arm, uint64_t place) {
  const struct input *input = data;
  const struct cv_audit_stream *stream = input->stream;
  if (campaign > 0 || arm != stream->arm || place + 1 != stream->changed) {
    return stream->base;
  }
  return input->neighbour ? stream->score : 0;
}

/* The neighbours differ in what one worker says of the arm. */
static int64_t answer(const void *data, uint64_t worker, uint32_t arm) {
  const struct input *input = data;
  const struct cv_audit_stream *stream = input->stream;
  if (arm != stream->arm || worker != stream->changed) {
    return stream->base;
  }
  return input->neighbour ? stream->score : 0;
}

static bool is_asked(const struct cv_spec *spec) {
  return spec->tokens_per_worker > 1 && spec->cost_micro == NULL;
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  const struct input input = {.neighbour = neighbour, .stream = &self->stream};
  struct cv_rng_seeded noise, privatizer;
  cv_rng_seeded_init(&noise, stream, CV_RNG_NOISE, 0, 0);
  cv_rng_seeded_init(&privatizer, stream, CV_RNG_PRIVATIZER, 0, 0);
  const struct cv_pipeline pipeline = {.spec = self->thing,
                                       .campaigns = self->stream.campaigns,
                                       .rounds = self->stream.items,
                                       .tau = 1,
                                       .score = score,
                                       .answer = is_asked(self->thing) ? answer : NULL,
                                       .data = &input,
                                       .noise = &noise.rng,
                                       .privatizer = &privatizer.rng};
  for (uint64_t run = 0; run < runs; run++, row += self->width) {
    CV_TRY(cv_pipeline_run(&pipeline, row, NULL));
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  if (at + 1 == self->width) {
    (void)snprintf(text, CV_AUDIT_TEXT, "rest");
  } else {
    uint32_t round = at / 2 % self->stream.items + 1, campaign = at / 2 / self->stream.items;
    (void)snprintf(text, CV_AUDIT_TEXT, "%c%s(%u)", "AB"[at % 2], campaign == 0 ? "" : "'", round);
  }
}

enum cv_err cv_audit_pipeline(const struct cv_spec *spec, const struct cv_audit_stream *stream,
                              struct cv_audit_subject *ret) {
  enum { ARMS = 2 };
  uint32_t campaigns = stream->campaigns == 0 ? 1 : stream->campaigns;
  uint32_t width = ARMS * campaigns * stream->items + 1;
  if ((is_asked(spec) && stream->arm > 0) || spec->arms != ARMS || width > CV_AUDIT_WIDTH_MAX ||
      width - 1 > CV_AUDIT_KEYS_MAX) {
    return CV_ERR_LIMIT;
  }
  /* The claim is the broker's own account of what it has spent, not a formula repeated here. */
  struct cv_privacy privacy;
  struct cv_spec completed = *spec;
  CV_TRY(cv_privacy_init(&completed, &privacy, NULL));
  *ret = (struct cv_audit_subject){
      .is_sound = true,
      .epsilon = (double)cv_privacy_spent_micro(&privacy, stream->items) / CV_MICRO,
      .delta = (double)cv_privacy_delta_pico(&privacy) / CV_PICO,
      .width = width,
      .series = width - 1,
      .keys = width - 1,
      .sample = sample,
      .label = label,
      .thing = spec,
      .stream = *stream,
  };
  ret->stream.campaigns = campaigns;
  /* Pipelines are short, so that the differences of all pairs can be searched. */
  for (uint32_t i = 0; i < ret->keys; i++) {
    ret->key[i] = (uint16_t)i;
  }
  const char arm_name = "AB"[stream->arm];
  (void)snprintf(ret->part, sizeof(ret->part), "pipeline");
  (void)snprintf(ret->setting, sizeof(ret->setting), "%.20s%s, %.14s%s, n %u%s, item %c%u%s", spec->privatizer.name,
                 privacy.local.delta_pico > 0 ? " delta" : "", spec->mechanism.name,
                 spec->cost_micro != NULL ? " hires"
                 : is_asked(spec)         ? " asked"
                                          : "",
                 stream->items, campaigns > 1 ? " twice" : "", arm_name, stream->changed,
                 stream->base > 0 ? ", full" : "");
  return CV_OK;
}
