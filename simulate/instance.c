/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/instance.h"

#include <stdlib.h>
#include <string.h>

enum cv_err cv_instance_items(const struct cv_instance_items *of, struct cv_items *ret) {
  struct cv_item *item = calloc(of->count, sizeof(*item));
  if (item == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < of->count; i++) {
    item[i] = (struct cv_item){.mean = of->item[i].mean,
                               .spread = of->item[i].spread,
                               .id = of->worker == NULL ? i + 1 : of->worker[i],
                               .cost_micro = of->cost_micro == NULL ? 0 : of->cost_micro[i]};
  }
  *ret = (struct cv_items){.source = CV_SOURCE_GIVEN,
                           .are_paid = of->cost_micro != NULL,
                           .given = {.law = of->law, .count = of->count, .item = item}};
  return CV_OK;
}

enum cv_err cv_instance_file(const char *path, const struct cv_spec *spec, struct cv_campaign_file *ret) {
  struct cv_campaign_file file = {.path = strdup(path)};
  enum cv_err err = file.path == NULL ? CV_ERR_NOMEM : cv_spec_copy(spec, &file.spec);
  if (err != CV_OK) {
    free(file.path);
    return err;
  }
  free(file.spec.names);
  free(file.spec.cost_micro);
  free(file.spec.worker);
  file.spec.names = NULL;
  file.spec.cost_micro = file.spec.worker = NULL;
  *ret = file;
  return CV_OK;
}

/* The laws of the arms in the source; gold items are no arms. */
static void take_laws(const struct cv_prepared *of, const struct cv_score_source *source, struct cv_quality_item *ret) {
  for (uint32_t item = 0, arm = 0; item < source->items; item++) {
    if (!cv_golds_has(&of->file.gold, item)) {
      (void)cv_quality_law(source->quality, item, &ret[arm++]);
    }
  }
}

/* As many as the source has: of a drawn source, and gold items are never for hire. */
static enum cv_err draw_items(const struct cv_prepared *of, uint64_t seed, const struct cv_guess *guess,
                              const struct cv_score_source *source, struct cv_items *ret) {
  uint32_t arms = of->file.spec.arms;
  struct cv_quality_item *item = calloc(arms, sizeof(*item));
  double *means = calloc(arms, sizeof(*means));
  enum cv_err err = item == NULL || means == NULL ? CV_ERR_NOMEM : CV_OK;
  if (err == CV_OK) {
    take_laws(of, source, item);
    if (guess != NULL) {
      cv_guess_draw(guess, seed, arms, means);
    }
    for (uint32_t i = 0; i < arms && guess != NULL; i++) {
      item[i].mean = means[i];
    }
    const struct cv_instance_items items = {.count = arms,
                                            .law = *cv_items_law(&of->file.items),
                                            .item = item,
                                            .worker = source->worker,
                                            .cost_micro = source->cost_micro};
    err = cv_instance_items(&items, ret);
  }
  free(item);
  free(means);
  return err;
}

enum cv_err cv_instance_draw(const struct cv_prepared *of, uint64_t seed, const struct cv_guess *guess,
                             struct cv_prepared *ret, struct cv_why *why) {
  struct cv_campaign_file file;
  enum cv_err err = cv_instance_file(of->file.path, &of->file.spec, &file);
  if (err == CV_OK && of->file.gold.gold.items > 0 && file.spec.tokens_per_worker > file.spec.arms) {
    file.spec.tokens_per_worker = file.spec.arms; /* the others are about gold items, which are no arms */
  }
  if (err == CV_OK && of->file.items.source == CV_SOURCE_ADVERSARY) {
    file.items = of->file.items; /* nothing in them is owned */
  } else if (err == CV_OK) {
    struct cv_score_source source;
    err = cv_score_source_init(&source, &of->file, seed, why);
    if (err != CV_OK) {
      cv_campaign_fini(&file);
      return err;
    }
    err = draw_items(of, seed, guess, &source, &file.items);
    cv_score_source_fini(&source);
  }
  if (err != CV_OK) {
    cv_campaign_fini(&file);
    return cv_fail(why, err, "%s", cv_err_text(err));
  }
  return cv_prepare_campaign(&file, seed, ret, why);
}
