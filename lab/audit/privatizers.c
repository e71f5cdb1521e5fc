/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/base/grid.h"
#include "lab/audit/subjects.h"
#include "worker/privatizer/privatizer.h"

/* The arm of a token: tokens take the arms in turn, such that the changed token has the stream's arm. */
static uint32_t arm_of(const struct cv_audit_stream *stream, uint32_t arms, uint32_t token) {
  return (uint32_t)(((uint64_t)stream->arm + (uint64_t)arms * stream->items + token - stream->changed) % arms);
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_privatizer *privatizer;
  struct cv_rng_seeded seeded;
  const struct cv_audit_stream *scores = &self->stream;
  CV_TRY(cv_privatizer_new(self->thing, self->arms, &privatizer, NULL));
  cv_rng_seeded_init(&seeded, stream, CV_RNG_PRIVATIZER, 0, 0);
  for (uint64_t run = 0; run < runs; run++) {
    for (uint32_t token = 1; token <= scores->items; token++) {
      int64_t score = token != scores->changed ? scores->base : neighbour ? scores->score : 0;
      *row++ = cv_privatizer_apply(privatizer, arm_of(scores, self->arms, token), score, &seeded.rng);
    }
  }
  cv_privatizer_free(privatizer);
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, self->stream.items == 1 ? "token" : "token %u", at + 1);
}

/* The epsilon claimed for one arm. With one matrix per arm it may be less than the law's, that of the worst arm. */
static enum cv_err claim_of(const struct cv_local *law, uint32_t arm, uint64_t *ret_epsilon_micro) {
  struct cv_choice alone = {.name = "randomized-response"};
  struct cv_local its;
  if (law->matrices < 2) {
    *ret_epsilon_micro = law->epsilon_micro;
    return CV_OK;
  }
  const struct cv_matrix *matrix = cv_local_matrix(law, arm);
  CV_TRY(cv_params_set_number(&alone.params, "p00", matrix->p00_micro / (double)CV_MICRO));
  CV_TRY(cv_params_set_number(&alone.params, "p11", matrix->p11_micro / (double)CV_MICRO));
  CV_TRY(cv_params_set_number(&alone.params, "delta", (double)law->delta_pico / CV_PICO));
  CV_TRY(cv_local_init(&alone, 1, &its, NULL));
  *ret_epsilon_micro = its.epsilon_micro;
  return CV_OK;
}

static void name_setting(struct cv_audit_subject *subject, const struct cv_params *params) {
  char *text = subject->setting;
  size_t size = sizeof(subject->setting), used = 0;
  for (uint32_t i = 0; i < params->count && used < size; i++) {
    const struct cv_param *param = &params->item[i];
    const char *between = i == 0 ? "" : " ";
    int n = param->is_text ? snprintf(text + used, size - used, "%s%s", between, param->text)
                           : snprintf(text + used, size - used, "%s%s %g", between, param->key, param->number);
    used += n < 0 ? 0 : (size_t)n;
  }
  const char *between = used == 0 ? "" : ", ";
  if (subject->stream.items > 1 && used < size) {
    (void)snprintf(text + used, size - used, "%sn %u, item %u%s", between, subject->stream.items,
                   subject->stream.changed, subject->stream.base > 0 ? ", full" : "");
  } else if (subject->arms > 1 && used < size) {
    (void)snprintf(text + used, size - used, "%sarm %u", between, subject->stream.arm + 1);
  }
}

enum cv_err cv_audit_privatizer(const struct cv_choice *choice, uint32_t arms, const struct cv_audit_stream *stream,
                                struct cv_audit_subject *ret, struct cv_why *why) {
  struct cv_privatizer *privatizer;
  uint64_t epsilon_micro;
  CV_TRY(cv_privatizer_new(choice, arms, &privatizer, why));
  struct cv_local law = privatizer->law; /* the claim is the law that the other parties read */
  cv_privatizer_free(privatizer);
  CV_TRY(claim_of(&law, stream->arm, &epsilon_micro));
  *ret = (struct cv_audit_subject){
      .is_sound = true,
      .epsilon = (double)epsilon_micro / CV_MICRO,
      .delta = (double)law.delta_pico / CV_PICO,
      .width = stream->items,
      .series = stream->items,
      .sample = sample,
      .label = label,
      .thing = choice,
      .arms = arms,
      .stream = *stream,
  };
  for (uint32_t i = 0; i < stream->items && i < CV_AUDIT_KEYS_MAX; i++) {
    ret->key[ret->keys++] = (uint16_t)i;
  }
  (void)snprintf(ret->part, sizeof(ret->part), "%s", choice->name);
  name_setting(ret, &choice->params);
  return CV_OK;
}
