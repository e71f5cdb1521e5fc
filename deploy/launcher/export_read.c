/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an export. The file is untrusted: every value is checked for type and range. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/before.h"
#include "common/base/gold.h"
#include "common/base/text.h"
#include "deploy/launcher/export.h"
#include "deploy/launcher/json_read.h"

/* ---- the campaign ---- */

static enum cv_err take_choice(const struct cv_json_at *at, const json_t *spec, const char *key,
                               struct cv_choice *ret) {
  json_t *object = json_object_get(spec, key), *value;
  json_t *params = json_object_get(object, "params");
  const char *name;
  if (!json_is_object(params)) {
    return cv_json_fail(at, key, "a name with params");
  }
  CV_TRY(cv_json_take_text(at, object, "name", ret->name, sizeof(ret->name)));
  json_object_foreach(params, name, value) {
    enum cv_err err = json_is_string(value)   ? cv_params_set_text(&ret->params, name, json_string_value(value))
                      : json_is_number(value) ? cv_params_set_number(&ret->params, name, json_number_value(value))
                                              : CV_ERR_FORMAT;
    if (err != CV_OK) {
      return cv_json_fail(at, key, "params that are numbers or words");
    }
  }
  return CV_OK;
}

static enum cv_err take_names(const struct cv_json_at *at, const json_t *object, struct cv_spec *spec) {
  const json_t *names = NULL;
  if (json_object_get(object, "names") == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_json_take_array(at, object, "names", spec->arms, &names));
  struct cv_names taken = {0};
  enum cv_err err = json_array_size(names) == spec->arms ? CV_OK : CV_ERR_FORMAT;
  for (uint32_t i = 0; i < spec->arms && err == CV_OK; i++) {
    const char *name = json_string_value(json_array_get(names, i));
    if (name == NULL || !cv_name_is_item(name)) {
      err = CV_ERR_FORMAT;
    } else {
      cv_names_add(&taken, name);
    }
  }
  if (err == CV_OK) {
    err = cv_names_take(&taken, &spec->names);
  }
  cv_names_fini(&taken);
  return err == CV_OK ? err : cv_json_fail(at, "names", "a name for each arm");
}

static enum cv_err take_numbers(const struct cv_json_at *at, const json_t *object, const char *key, uint32_t n,
                                uint64_t **ret) {
  const json_t *list = NULL;
  CV_TRY(cv_json_take_array(at, object, key, n, &list));
  *ret = calloc(n, sizeof(**ret));
  if (*ret == NULL) {
    return cv_fail(at->why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (uint32_t i = 0; i < n; i++) {
    const json_t *value = json_array_get(list, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
      return cv_json_fail(at, key, "a whole number for each arm");
    }
    (*ret)[i] = (uint64_t)json_integer_value(value);
  }
  return CV_OK;
}

/* Costs, worker ids and budget, which only a recruitment has. */
static enum cv_err take_workers(const struct cv_json_at *at, const json_t *object, struct cv_spec *spec) {
  if (json_object_get(object, "costs_micro") == NULL) {
    return CV_OK;
  }
  CV_TRY(take_numbers(at, object, "costs_micro", spec->arms, &spec->cost_micro));
  CV_TRY(take_numbers(at, object, "workers", spec->arms, &spec->worker));
  return cv_json_take_whole(at, object, "budget_micro", CV_BUDGET_MAX_MICRO, &spec->budget_micro);
}

static enum cv_err take_edges(const struct cv_json_at *at, const json_t *object, struct cv_spec *spec) {
  const json_t *edges = NULL;
  if (json_object_get(object, "edges") == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_json_take_array(at, object, "edges", CV_EDGES_MAX, &edges));
  spec->edge = calloc(json_array_size(edges) + 1, sizeof(*spec->edge));
  if (spec->edge == NULL) {
    return cv_fail(at->why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (size_t i = 0; i < json_array_size(edges); i++) {
    const json_t *edge = json_array_get(edges, i), *a = json_array_get(edge, 0), *b = json_array_get(edge, 1);
    json_int_t low = json_integer_value(a), high = json_integer_value(b);
    if (json_array_size(edge) != 2 || !json_is_integer(a) || !json_is_integer(b) || low < 0 || high < 0 ||
        low >= CV_ARMS_MAX || high >= CV_ARMS_MAX) {
      return cv_json_fail(at, "edges", "pairs of arms");
    }
    spec->edge[spec->edges++] = (struct cv_edge){.a = (uint32_t)low, .b = (uint32_t)high};
  }
  return spec->edges > 0 ? CV_OK : cv_json_fail(at, "edges", "at least one, or no edges at all");
}

static enum cv_err take_scale(const struct cv_json_at *at, const json_t *object, struct cv_scale *ret) {
  const json_t *scale = json_object_get(object, "scale"), *low = json_array_get(scale, 0),
               *high = json_array_get(scale, 1);
  if (scale == NULL) {
    return CV_OK;
  }
  if (json_array_size(scale) != 2 || !json_is_number(low) || !json_is_number(high)) {
    return cv_json_fail(at, "scale", "a list of two numbers");
  }
  *ret = (struct cv_scale){.low = json_number_value(low), .high = json_number_value(high)};
  return CV_OK;
}

static enum cv_err take_spec(const struct cv_json_at *root, const json_t *all, struct cv_spec *spec) {
  const json_t *object = json_object_get(all, "spec"), *trusted = json_object_get(object, "thirdparty_trusted");
  struct cv_json_at at = {.why = root->why, .path = root->path, .place = "spec"};
  CV_TRY(cv_json_take_text(&at, object, "name", spec->name, sizeof(spec->name)));
  /* The number of arms comes first: it bounds all lists per arm. */
  CV_TRY(cv_json_take_u32(&at, object, "arms", CV_ARMS_MAX, &spec->arms));
  if (spec->arms == 0) {
    return cv_json_fail(&at, "arms", "at least one");
  }
  CV_TRY(take_names(&at, object, spec));
  CV_TRY(take_workers(&at, object, spec));
  CV_TRY(take_edges(&at, object, spec));
  CV_TRY(take_choice(&at, object, "policy", &spec->policy));
  CV_TRY(take_choice(&at, object, "mechanism", &spec->mechanism));
  CV_TRY(take_choice(&at, object, "privatizer", &spec->privatizer));
  CV_TRY(cv_json_take_whole(&at, object, "epsilon_micro", INT64_MAX, &spec->epsilon_micro));
  CV_TRY(cv_json_take_u32(&at, object, "tokens_per_worker", UINT32_MAX, &spec->tokens_per_worker));
  CV_TRY(cv_json_take_whole(&at, object, "tokens", INT64_MAX, &spec->tokens));
  CV_TRY(cv_json_take_whole(&at, object, "deadline_ms", INT64_MAX, &spec->deadline_ms));
  CV_TRY(cv_json_take_whole(&at, object, "idle_ms", INT64_MAX, &spec->idle_ms));
  spec->thirdparty_trusted = json_is_true(trusted);
  spec->pairs = json_is_true(json_object_get(object, "pairs"));
  spec->repeat = json_is_true(json_object_get(object, "repeat"));
  CV_TRY(take_scale(&at, object, &spec->scale));
  if (json_object_get(object, "brokers") != NULL) {
    CV_TRY(cv_json_take_u32(&at, object, "brokers", UINT32_MAX, &spec->brokers));
    CV_TRY(cv_json_take_u32(&at, object, "score_bits", UINT32_MAX, &spec->score_bits));
  }
  /* The same check as for a submitted campaign, so the policy never runs on an invalid spec. */
  enum cv_err err = cv_spec_check(spec, at.why);
  if (err != CV_OK) {
    cv_why_prefix(at.why, "%s", at.path);
  }
  return err;
}

/* ---- rows ---- */

static enum cv_err take_plan(const struct cv_json_at *at, const json_t *row, struct cv_plan *ret) {
  const json_t *wants;
  CV_TRY(cv_json_take_whole(at, row, "number", INT64_MAX, &ret->number));
  CV_TRY(cv_json_take_array(at, row, "wants", CV_ARMS_MAX, &wants));
  ret->want = calloc(json_array_size(wants) + 1, sizeof(*ret->want));
  if (ret->want == NULL) {
    return cv_fail(at->why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (size_t i = 0; i < json_array_size(wants); i++) {
    const json_t *want = json_array_get(wants, i);
    CV_TRY(cv_json_take_u32(at, want, "arm", CV_ARMS_MAX, &ret->want[i].arm));
    CV_TRY(cv_json_take_u32(at, want, "tokens", UINT32_MAX, &ret->want[i].tokens));
    if (json_object_get(want, "opponent") != NULL) {
      CV_TRY(cv_json_take_u32(at, want, "opponent", CV_ARMS_MAX - 1, &ret->want[i].opponent));
      ret->want[i].opponent++;
    }
    ret->wants++;
  }
  return CV_OK;
}

static enum cv_err take_release(const struct cv_json_at *at, const json_t *row, struct cv_release *ret) {
  const json_t *noise, *sum = json_object_get(row, "noisy_sum");
  CV_TRY(cv_json_take_whole(at, row, "number", INT64_MAX, &ret->number));
  CV_TRY(cv_json_take_whole(at, row, "plan", INT64_MAX, &ret->plan));
  CV_TRY(cv_json_take_u32(at, row, "arm", CV_ARMS_MAX, &ret->arm));
  CV_TRY(cv_json_take_whole(at, row, "tokens", INT64_MAX, &ret->tokens));
  CV_TRY(cv_json_take_array(at, row, "noise", CV_NOISE_GROUPS_MAX, &noise));
  if (!json_is_integer(sum)) {
    return cv_json_fail(at, "noisy_sum", "a whole number");
  }
  ret->noisy_sum = json_integer_value(sum);
  ret->last = json_is_true(json_object_get(row, "last")); /* older exports have none */
  for (size_t i = 0; i < json_array_size(noise); i++) {
    struct cv_noise_group *group = &ret->noise.group[ret->noise.groups++];
    CV_TRY(cv_json_take_real(at, json_array_get(noise, i), "scale", &group->scale));
    CV_TRY(cv_json_take_u32(at, json_array_get(noise, i), "count", UINT32_MAX, &group->count));
    if (!(group->scale > 0) || !isfinite(group->scale) || group->count == 0) {
      return cv_json_fail(at, "noise", "scales above 0, each with a count from 1");
    }
  }
  return CV_OK;
}

/* Present in items without a class only. */
static enum cv_err take_held(const struct cv_json_at *at, const json_t *row, struct cv_standing *ret) {
  char text[16];
  if (json_object_get(row, "held") == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_json_take_text(at, row, "held", text, sizeof(text)));
  for (enum cv_held held = CV_HELD_NO + 1; held < CV_HELD_COUNT; held++) {
    ret->held = strcmp(text, cv_held_text(held)) == 0 ? held : ret->held;
  }
  CV_TRY(cv_json_take_u32(at, row, "class_last", CV_ARMS_MAX, &ret->rank_last));
  return cv_standing_is_plausible(ret, CV_ARMS_MAX)
             ? CV_OK
             : cv_json_fail(at, "held",
                            "\"boundary\", \"used up\" or \"undecided\", with class_last no less than class");
}

static enum cv_err take_standing(const struct cv_json_at *at, const json_t *row, struct cv_standing *ret) {
  CV_TRY(cv_json_take_u32(at, row, "arm", CV_ARMS_MAX, &ret->arm));
  CV_TRY(cv_json_take_u32(at, row, "class", CV_ARMS_MAX, &ret->rank_class));
  CV_TRY(cv_json_take_whole(at, row, "tokens", INT64_MAX, &ret->tokens));
  CV_TRY(cv_json_take_real(at, row, "mean", &ret->mean));
  CV_TRY(cv_json_take_real(at, row, "radius", &ret->radius));
  ret->contradicts = json_is_true(json_object_get(row, "contradicts"));
  return take_held(at, row, ret);
}

/* Allocates room for all rows of one list, then reads each. Rows read before an error are freed with the export. */
#define TAKE_ROWS(root, all, export, field, most, take)                                   \
  do {                                                                                    \
    const json_t *rows;                                                                   \
    struct cv_json_at at = {.why = (root)->why, .path = (root)->path};                    \
    CV_TRY(cv_json_take_array((root), (all), #field "s", (most), &rows));                 \
    (export)->field = calloc(json_array_size(rows) + 1, sizeof(*(export)->field));        \
    if ((export)->field == NULL) {                                                        \
      return cv_fail((root)->why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));         \
    }                                                                                     \
    for (size_t i = 0; i < json_array_size(rows); i++) {                                  \
      (void)snprintf(at.place, sizeof(at.place), #field "s[%zu]", i);                     \
      CV_TRY(take(&at, json_array_get(rows, i), &(export)->field[(export)->field##s++])); \
    }                                                                                     \
  } while (0)

/* Only campaigns that count neutral tokens have them. */
static enum cv_err take_neutral(const struct cv_json_at *root, const json_t *all, struct cv_export *export) {
  const json_t *object = json_object_get(all, "neutral"), *numbers;
  struct cv_json_at at = {.why = root->why, .path = root->path, .place = "neutral"};
  if (object == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_json_take_whole(&at, object, "epsilon_micro", CV_GOLD_EPSILON_MAX, &export->neutral_epsilon_micro));
  CV_TRY(cv_json_take_array(&at, object, "numbers", export->spec.arms, &numbers));
  export->neutral = calloc(export->spec.arms, sizeof(*export->neutral));
  if (export->neutral == NULL) {
    return cv_fail(root->why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (size_t i = 0; i < json_array_size(numbers) && json_is_integer(json_array_get(numbers, i)); i++) {
    export->neutral[export->neutrals++] = json_integer_value(json_array_get(numbers, i));
  }
  return export->neutrals == export->spec.arms && export->neutral_epsilon_micro > 0
             ? CV_OK
             : cv_json_fail(&at, "numbers", "a whole number for each arm, and an epsilon_micro above 0");
}

static enum cv_err take_progress(const struct cv_json_at *root, const json_t *all, struct cv_progress *ret) {
  const json_t *object = json_object_get(all, "progress");
  struct cv_json_at at = {.why = root->why, .path = root->path, .place = "progress"};
  uint32_t end = 0;
  CV_TRY(cv_json_take_whole(&at, object, "tokens", INT64_MAX, &ret->tokens));
  CV_TRY(cv_json_take_u32(&at, object, "end", CV_END_COUNT - 1, &end));
  ret->end = (enum cv_end)end;
  const char *why = json_string_value(json_object_get(object, "why"));
  cv_text_print(ret->why, sizeof(ret->why), "%s", why == NULL ? "" : why);
  return CV_OK;
}

static enum cv_err take_all(const struct cv_json_at *root, const json_t *all, struct cv_export *export) {
  char format[32], seed[24], *end;
  CV_TRY(cv_json_take_text(root, all, "format", format, sizeof(format)));
  if (strcmp(format, "crowdveil-export/1") == 0) {
    return cv_fail(root->why, CV_ERR_VERSION, "%s: an export " CV_BEFORE "; use the programs that made it", root->path);
  }
  if (strcmp(format, "crowdveil-export/2") != 0) {
    return cv_json_fail(root, "format", "\"crowdveil-export/2\"");
  }
  CV_TRY(cv_json_take_whole(root, all, "campaign", INT64_MAX, &export->campaign));
  CV_TRY(cv_json_take_text(root, all, "seed", seed, sizeof(seed)));
  errno = 0;
  export->seed = strtoull(seed, &end, 10);
  if (seed[0] < '0' || seed[0] > '9' || *end != '\0' || errno != 0) {
    return cv_json_fail(root, "seed", "a whole number as a text");
  }
  export->begun = true; /* from here on cv_export_fini() frees the spec, even an incomplete one */
  CV_TRY(take_spec(root, all, &export->spec));
  CV_TRY(take_progress(root, all, &export->progress));
  TAKE_ROWS(root, all, export, plan, SIZE_MAX, take_plan);
  TAKE_ROWS(root, all, export, release, SIZE_MAX, take_release);
  TAKE_ROWS(root, all, export, standing, export->spec.arms, take_standing);
  CV_TRY(take_neutral(root, all, export));
  export->complete = true;
  return CV_OK;
}

enum cv_err cv_export_read_json(const char *path, struct cv_export *ret, struct cv_why *why) {
  struct cv_export export = {0};
  const struct cv_json_at root = {.why = why, .path = path};
  json_t *all = NULL;
  CV_TRY(cv_json_load(path, &all, why));
  enum cv_err err = take_all(&root, all, &export);
  json_decref(all);
  if (err != CV_OK) {
    cv_export_fini(&export);
    return err;
  }
  *ret = export;
  return CV_OK;
}
