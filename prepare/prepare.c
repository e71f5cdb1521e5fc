/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare/prepare.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/campaign/complete.h"
#include "common/crypto/crypto.h"
#include "prepare/first_plan.h"
#include "thirdparty/policy/policy.h"

/* Random seeds are short, so that a person can type them again. */
enum { DRAWN_SEEDS = 1000000000 };

static uint64_t draw_seed(void) {
  struct cv_drbg drbg;
  cv_drbg_init(&drbg);
  uint64_t seed = cv_rng_below(&drbg.rng, DRAWN_SEEDS);
  cv_drbg_fini(&drbg);
  return seed;
}

/* Tells a policy whose analysis depends on it that rows are drawn without replacement. */
static enum cv_err say_drawn_once(struct cv_campaign_file *file, struct cv_why *why) {
  const struct cv_policy_class *class = cv_policy_find(file->spec.policy.name);
  struct cv_params *params = &file->spec.policy.params;
  if (class == NULL || class->once_key == NULL || file->items.source != CV_SOURCE_CSV || file->items.csv.replacement) {
    return CV_OK;
  }
  const struct cv_param *given = cv_params_find(params, class->once_key);
  if (given == NULL) {
    return cv_params_set_text(params, class->once_key, class->once_word);
  }
  if (given->is_text && strcmp(given->text, class->once_word) != 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s:%u:%u: policy.%s is %s, but each row of the data file is used once; expected %s%s", file->path,
                   given->line, given->column, class->once_key, given->text, class->once_word,
                   cv_spec_is_local(&file->spec) ? "" : ", or items.replacement: true");
  }
  return CV_OK;
}

static enum cv_err check_policy(struct cv_campaign_file *file, struct cv_why *why) {
  const struct cv_param *bad = NULL;
  enum cv_err err = cv_policy_check(&file->spec.policy, &bad, why);
  if (err != CV_OK && bad != NULL && bad->line > 0) {
    cv_why_prefix(why, "%s:%u:%u", file->path, bad->line, bad->column);
  } else if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u:1", file->path, file->policy_line);
  }
  return err;
}

/* The order matters: the arms come from the source, and only a completed spec can be checked against the policy. */
static enum cv_err fill(uint64_t seed, struct cv_prepared *prepared, struct cv_why *why) {
  struct cv_campaign_file *file = &prepared->file;
  CV_TRY(say_drawn_once(file, why));
  CV_TRY(check_policy(file, why));
  prepared->kind = cv_policy_find(file->spec.policy.name)->kind;
  prepared->seed = seed != CV_SEED_NONE ? seed : file->items.has_seed ? file->items.seed : draw_seed();
  CV_TRY(cv_score_source_init(&prepared->source, file, prepared->seed, why));
  const struct cv_score_source *source = &prepared->source;
  const struct cv_campaign_arms arms = {.arms = source->items,
                                        .name = source->name,
                                        .worker = source->worker,
                                        .cost_micro = source->cost_micro,
                                        .requests = source->requests};
  CV_TRY(cv_campaign_complete(file, &arms, prepared->seed, why));
  enum cv_err err = cv_policy_fits_told(&file->spec, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", file->path);
  }
  return err;
}

static enum cv_err take_names(struct cv_prepared *prepared, struct cv_why *why) {
  prepared->name = calloc(prepared->source.items, sizeof(*prepared->name));
  if (prepared->name == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (uint32_t item = 0, arm = 0; item < prepared->source.items; item++) {
    if (!cv_golds_has(&prepared->file.gold, item)) {
      prepared->name[arm++] = prepared->source.name[item];
    }
  }
  return CV_OK;
}

static enum cv_err take_truth(struct cv_prepared *prepared, struct cv_why *why) {
  if (!cv_items_have_means(&prepared->file.items)) {
    return CV_OK;
  }
  prepared->truth = calloc(prepared->source.items, sizeof(*prepared->truth));
  if (prepared->truth == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (uint32_t item = 0, arm = 0; item < prepared->source.items; item++) {
    if (!cv_golds_has(&prepared->file.gold, item)) {
      prepared->truth[arm++] = cv_quality_truth(prepared->source.quality, item);
    }
  }
  return CV_OK;
}

enum cv_err cv_prepare_first_tokens(const struct cv_prepared *prepared, uint64_t *ret, struct cv_why *why) {
  struct cv_policy *policy = NULL;
  struct cv_policy_step step = {0};
  enum cv_err err = cv_policy_new(&prepared->file.spec, prepared->seed, &policy);
  if (err == CV_OK) {
    err = cv_policy_step(policy, 1, &step);
  }
  *ret = 0;
  for (size_t i = 0; err == CV_OK && i < step.wants && !step.done; i++) {
    *ret += step.want[i].tokens;
  }
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return err == CV_OK ? CV_OK : cv_fail(why, err, "%s", cv_err_text(err));
}

/* Moves the prepared campaign to *ret, or frees it on an error. */
static enum cv_err hand_out(enum cv_err err, struct cv_prepared *prepared, struct cv_prepared *ret) {
  if (err == CV_OK) {
    *ret = *prepared;
  } else {
    cv_prepared_fini(prepared);
  }
  return err;
}

enum cv_err cv_prepare(const char *path, uint64_t seed, struct cv_prepared *ret, struct cv_why *why) {
  struct cv_campaign_file campaign;
  CV_TRY(cv_campaign_load(path, &campaign, why));
  return cv_prepare_file(&campaign, seed, ret, why);
}

enum cv_err cv_prepare_file(struct cv_campaign_file *campaign, uint64_t seed, struct cv_prepared *ret,
                            struct cv_why *why) {
  struct cv_prepared prepared;
  CV_TRY(cv_prepare_campaign(campaign, seed, &prepared, why));
  enum cv_err err = cv_policy_fits(&prepared.file.spec, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", prepared.file.path);
  } else if (prepared.truth == NULL) {
    err = take_truth(&prepared, why);
  }
  if (err == CV_OK) {
    err = cv_first_plan_check(&prepared, why);
  }
  return hand_out(err, &prepared, ret);
}

enum cv_err cv_prepare_campaign(struct cv_campaign_file *campaign, uint64_t seed, struct cv_prepared *ret,
                                struct cv_why *why) {
  struct cv_prepared prepared = {.file = *campaign};
  enum cv_err err = fill(seed, &prepared, why);
  if (err == CV_OK) {
    err = take_names(&prepared, why);
  }
  if (err == CV_OK && cv_quality_adversary(prepared.source.quality) == NULL) {
    err = take_truth(&prepared, why);
  }
  return hand_out(err, &prepared, ret);
}

void cv_prepared_fini(struct cv_prepared *prepared) {
  cv_score_source_fini(&prepared->source);
  cv_campaign_fini(&prepared->file);
  free(prepared->name);
  free(prepared->truth);
  *prepared = (struct cv_prepared){0};
}
