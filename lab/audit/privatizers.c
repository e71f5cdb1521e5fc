/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/base/grid.h"
#include "lab/audit/subjects.h"
#include "worker/privatizer/privatizer.h"

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_privatizer *privatizer;
  struct cv_rng_seeded seeded;
  CV_TRY(cv_privatizer_new(self->thing, 1, &privatizer, NULL));
  cv_rng_seeded_init(&seeded, stream, CV_RNG_PRIVATIZER, 0, 0);
  for (uint64_t run = 0; run < runs; run++) {
    row[run] = cv_privatizer_apply(privatizer, 0, neighbour ? CV_GRID : 0, &seeded.rng);
  }
  cv_privatizer_free(privatizer);
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "token");
}

enum cv_err cv_audit_privatizer(const struct cv_choice *choice, struct cv_audit_subject *ret, struct cv_why *why) {
  struct cv_privatizer *privatizer;
  CV_TRY(cv_privatizer_new(choice, 1, &privatizer, why));
  *ret = (struct cv_audit_subject){
      .is_sound = true,
      .epsilon = (double)privatizer->law.epsilon_micro / CV_MICRO,
      .delta = (double)privatizer->law.delta_pico / CV_PICO,
      .width = 1,
      .sample = sample,
      .label = label,
      .thing = choice,
  };
  (void)snprintf(ret->part, sizeof(ret->part), "%s", choice->name);
  for (uint32_t i = 0, used = 0; i < choice->params.count && used < sizeof(ret->setting); i++) {
    const struct cv_param *param = &choice->params.item[i];
    int n = param->is_text
                ? snprintf(ret->setting + used, sizeof(ret->setting) - used, "%s ", param->text)
                : snprintf(ret->setting + used, sizeof(ret->setting) - used, "%s %g ", param->key, param->number);
    used += n < 0 ? 0 : (uint32_t)n;
  }
  cv_privatizer_free(privatizer);
  return CV_OK;
}
