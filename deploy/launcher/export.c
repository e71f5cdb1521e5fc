/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/grid.h"
#include "common/base/text.h"
#include "deploy/launcher/lies.h"

/* Limit for plans, releases and standings each: bounds the memory that a broker can make a requester allocate. */
enum { ROWS_MAX = 1 << 24 };

void cv_export_fini(struct cv_export *export) {
  if (export->begun) {
    cv_spec_fini(&export->spec);
  }
  for (size_t i = 0; i < export->plans; i++) {
    free(export->plan[i].want);
  }
  free(export->plan);
  free(export->release);
  free(export->standing);
  free(export->neutral);
  *export = (struct cv_export){0};
}

static bool are_too_many(size_t rows, size_t more) {
  return more > ROWS_MAX || rows > ROWS_MAX - more;
}

/* Copies the plan: the part is valid only during the call. */
static enum cv_err add_plan(struct cv_export *export, const struct cv_plan *from) {
  struct cv_plan plan = *from;
  plan.want = calloc((size_t)from->wants + 1, sizeof(*plan.want));
  if (plan.want == NULL) {
    return CV_ERR_NOMEM;
  }
  if (from->wants > 0) {
    memcpy(plan.want, from->want, from->wants * sizeof(*plan.want));
  }
  export->plan[export->plans++] = plan;
  return CV_OK;
}

static enum cv_err begin(struct cv_export *export, const struct cv_part *part) {
  cv_export_fini(export);
  CV_TRY(cv_spec_copy(&part->spec, &export->spec));
  export->begun = true;
  export->campaign = part->campaign;
  export->seed = part->seed;
  export->progress = part->progress;
  return CV_OK;
}

enum cv_err cv_export_add(struct cv_export *export, const struct cv_part *part) {
  if (part->first) {
    CV_TRY(begin(export, part));
  }
  if (!export->begun || export->complete || part->campaign != export->campaign) {
    return CV_ERR_FORMAT;
  }
  if (are_too_many(export->plans, part->plans) || are_too_many(export->releases, part->releases) ||
      are_too_many(export->standings, part->standings) || are_too_many(export->neutrals, part->neutrals)) {
    return CV_ERR_LIMIT;
  }
  /* Room for all rows first, so that the loops below can only fail for a plan's wants. */
  CV_TRY(CV_ARRAY_ROOM(export->plan, export->plans + part->plans, export->plans_cap));
  CV_TRY(CV_ARRAY_ROOM(export->release, export->releases + part->releases, export->releases_cap));
  CV_TRY(CV_ARRAY_ROOM(export->standing, export->standings + part->standings, export->standings_cap));
  CV_TRY(CV_ARRAY_ROOM(export->neutral, export->neutrals + part->neutrals, export->neutrals_cap));
  for (size_t i = 0; i < part->plans; i++) {
    CV_TRY(add_plan(export, &part->plan[i]));
  }
  for (size_t i = 0; i < part->releases; i++) {
    export->release[export->releases++] = part->release[i];
  }
  for (uint32_t i = 0; i < part->standings; i++) {
    export->standing[export->standings++] = part->standing[i];
  }
  for (uint32_t i = 0; i < part->neutrals; i++) {
    export->neutral[export->neutrals++] = part->neutral[i];
  }
  export->neutral_epsilon_micro = part->neutral_epsilon_micro;
  export->complete = part->last;
  return CV_OK;
}

/* ---- CSV ---- */

/* An empty field: not known, or no number. */
static void write_lies(uint64_t lies, FILE *to) {
  if (cv_lies_is_number(lies)) {
    (void)fprintf(to, "%" PRIu64, lies);
  }
}

/* Empty where nothing was released. */
static void write_interval(const struct cv_standing *standing, FILE *to) {
  if (standing->tokens > 0) {
    (void)fprintf(to, "%.9g,%.9g,", standing->mean, standing->radius);
  } else {
    (void)fprintf(to, ",,");
  }
}

void cv_export_write_result_csv(const struct cv_export *export, const struct cv_lies *lies, FILE *to) {
  (void)fprintf(to, "arm,item,class,tokens,mean,radius,lies_safe,lies_turn,class_last,held,neutral,contradicts\n");
  for (size_t i = 0; i < export->standings; i++) {
    const struct cv_standing *standing = &export->standing[i];
    (void)fprintf(to, "%u,", standing->arm);
    if (export->spec.names != NULL && standing->arm < export->spec.arms) {
      char name[2 * CV_ITEM_BYTES + 2];
      cv_text_csv(export->spec.names[standing->arm], name, sizeof(name));
      (void)fputs(name, to);
    }
    (void)fprintf(to, ",");
    if (standing->rank_class > 0) {
      (void)fprintf(to, "%u", standing->rank_class);
    }
    struct cv_policy_lies borne =
        lies->of_arm != NULL && standing->arm < lies->arms ? lies->of_arm[standing->arm] : (struct cv_policy_lies){0};
    (void)fprintf(to, ",%" PRIu64 ",", standing->tokens);
    write_interval(standing, to);
    write_lies(borne.safe, to);
    (void)fprintf(to, ",");
    write_lies(borne.turn, to);
    if (standing->held != CV_HELD_NO) {
      (void)fprintf(to, ",%u,%s,", standing->rank_last, cv_held_text(standing->held));
    } else {
      (void)fprintf(to, ",,,");
    }
    if (standing->arm < export->neutrals) {
      (void)fprintf(to, "%" PRId64, export->neutral[standing->arm]);
    }
    (void)fprintf(to, ",%d\n", standing->contradicts);
  }
}

void cv_export_write_releases_csv(const struct cv_export *export, FILE *to) {
  (void)fprintf(to, "number,plan,arm,tokens,noisy_sum,noisy_mean,noise_variance,last\n");
  double epsilon = (double)export->spec.epsilon_micro / (double)CV_MICRO;
  for (size_t i = 0; i < export->releases; i++) {
    const struct cv_release *release = &export->release[i];
    double squares = 0; /* variance of the sum, in units of (D/epsilon)^2; a Laplace noise of scale b has 2 b^2 */
    for (uint32_t g = 0; g < release->noise.groups; g++) {
      squares += 2 * release->noise.group[g].scale * release->noise.group[g].scale * release->noise.group[g].count;
    }
    double tokens = (double)release->tokens;
    double mean = tokens > 0 ? (double)release->noisy_sum / (double)CV_GRID / tokens : 0;
    double variance = tokens > 0 && epsilon > 0 ? squares / (epsilon * epsilon * tokens * tokens) : 0;
    (void)fprintf(to, "%" PRIu64 ",%" PRIu64 ",%u,%" PRIu64 ",%" PRId64 ",%.9g,%.9g,%d\n", release->number,
                  release->plan, release->arm, release->tokens, release->noisy_sum, mean, variance, release->last);
  }
}
