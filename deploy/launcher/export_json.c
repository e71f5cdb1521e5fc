/* SPDX-License-Identifier: Apache-2.0 */
/* An export as JSON. 64-bit seeds are strings, since many JSON parsers read numbers as doubles. */
#include <inttypes.h>

#include "deploy/launcher/export.h"
#include "deploy/launcher/json.h"

static const char format_name[] = "crowdveil-export/2";

static json_t *choice_json(const struct cv_choice *choice) {
  json_t *params = json_object();
  for (uint32_t i = 0; i < choice->params.count; i++) {
    const struct cv_param *param = &choice->params.item[i];
    json_t *value = param->is_text ? json_string(param->text) : json_real(param->number);
    params = cv_json_set(params, param->key, value);
  }
  return json_pack("{s:s, s:o}", "name", choice->name, "params", params);
}

static json_t *numbers_json(const uint64_t *number, uint32_t n) {
  json_t *all = json_array();
  for (uint32_t i = 0; number != NULL && i < n; i++) {
    all = cv_json_append(all, json_integer((json_int_t)number[i]));
  }
  return all;
}

static json_t *spec_json(const struct cv_spec *spec) {
  json_t *out = json_pack("{s:s, s:I, s:o, s:o, s:o, s:I, s:I, s:b, s:I, s:I, s:I}", "name", spec->name, "arms",
                          (json_int_t)spec->arms, "policy", choice_json(&spec->policy), "mechanism",
                          choice_json(&spec->mechanism), "privatizer", choice_json(&spec->privatizer), "epsilon_micro",
                          (json_int_t)spec->epsilon_micro, "tokens_per_worker", (json_int_t)spec->tokens_per_worker,
                          "thirdparty_trusted", spec->thirdparty_trusted, "tokens", (json_int_t)spec->tokens,
                          "deadline_ms", (json_int_t)spec->deadline_ms, "idle_ms", (json_int_t)spec->idle_ms);
  if (spec->cost_micro != NULL) {
    out = cv_json_set(out, "costs_micro", numbers_json(spec->cost_micro, spec->arms));
    out = cv_json_set(out, "workers", numbers_json(spec->worker, spec->arms));
    out = cv_json_set(out, "budget_micro", json_integer((json_int_t)spec->budget_micro));
  }
  if (spec->names != NULL) {
    json_t *names = json_array();
    for (uint32_t i = 0; i < spec->arms; i++) {
      names = cv_json_append(names, json_string(spec->names[i]));
    }
    out = cv_json_set(out, "names", names);
  }
  if (spec->edges > 0) {
    json_t *edges = json_array();
    for (uint32_t i = 0; i < spec->edges; i++) {
      edges = cv_json_append(edges, json_pack("[I, I]", (json_int_t)spec->edge[i].a, (json_int_t)spec->edge[i].b));
    }
    out = cv_json_set(out, "edges", edges);
  }
  if (spec->pairs) {
    out = cv_json_set(out, "pairs", json_true());
  }
  if (spec->repeat) {
    out = cv_json_set(out, "repeat", json_true());
  }
  if (cv_scale_is_declared(&spec->scale)) {
    out = cv_json_set(out, "scale", json_pack("[f, f]", spec->scale.low, spec->scale.high));
  }
  if (spec->brokers > 0) {
    out = cv_json_set(out, "brokers", json_integer(spec->brokers));
    out = cv_json_set(out, "score_bits", json_integer(spec->score_bits));
  }
  return out;
}

static json_t *progress_json(const struct cv_progress *progress) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "tokens", (json_int_t)progress->tokens,
                   "releases", (json_int_t)progress->releases, "plans", (json_int_t)progress->plans, "elapsed_ms",
                   (json_int_t)progress->elapsed_ms, "epsilon_spent_micro", (json_int_t)progress->epsilon_spent_micro,
                   "paid_micro", (json_int_t)progress->paid_micro, "budget_micro", (json_int_t)progress->budget_micro,
                   "end", (json_int_t)progress->end, "ended", cv_end_text(progress->end), "why", progress->why);
}

static json_t *plans_json(const struct cv_export *export) {
  json_t *plans = json_array();
  for (size_t i = 0; i < export->plans; i++) {
    json_t *wants = json_array();
    for (uint32_t w = 0; w < export->plan[i].wants; w++) {
      const struct cv_want *want = &export->plan[i].want[w];
      json_t *asked = json_pack("{s:I, s:I}", "arm", (json_int_t)want->arm, "tokens", (json_int_t)want->tokens);
      if (want->opponent > 0) {
        asked = cv_json_set(asked, "opponent", json_integer((json_int_t)want->opponent - 1));
      }
      wants = cv_json_append(wants, asked);
    }
    plans =
        cv_json_append(plans, json_pack("{s:I, s:o}", "number", (json_int_t) export->plan[i].number, "wants", wants));
  }
  return plans;
}

static json_t *release_json(const struct cv_release *release) {
  json_t *noise = json_array();
  for (uint32_t g = 0; g < release->noise.groups; g++) {
    const struct cv_noise_group *group = &release->noise.group[g];
    noise = cv_json_append(noise, json_pack("{s:f, s:I}", "scale", group->scale, "count", (json_int_t)group->count));
  }
  return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:b}", "number", (json_int_t)release->number, "plan",
                   (json_int_t)release->plan, "arm", (json_int_t)release->arm, "tokens", (json_int_t)release->tokens,
                   "noisy_sum", (json_int_t)release->noisy_sum, "noise", noise, "last", release->last);
}

static json_t *standing_json(const struct cv_standing *standing) {
  json_t *row = json_pack("{s:I, s:I, s:I, s:f, s:f}", "arm", (json_int_t)standing->arm, "class",
                          (json_int_t)standing->rank_class, "tokens", (json_int_t)standing->tokens, "mean",
                          standing->mean, "radius", standing->radius);
  if (standing->held != CV_HELD_NO) {
    row = cv_json_set(row, "class_last", json_integer(standing->rank_last));
    row = cv_json_set(row, "held", json_string(cv_held_text(standing->held)));
  }
  if (standing->contradicts) {
    row = cv_json_set(row, "contradicts", json_true());
  }
  return row;
}

static json_t *neutral_json(const struct cv_export *export) {
  json_t *numbers = json_array();
  for (size_t i = 0; i < export->neutrals; i++) {
    numbers = cv_json_append(numbers, json_integer(export->neutral[i]));
  }
  return json_pack("{s:I, s:o}", "epsilon_micro", (json_int_t) export->neutral_epsilon_micro, "numbers", numbers);
}

enum cv_err cv_export_write_json(const struct cv_export *export, FILE *to) {
  json_t *releases = json_array(), *standings = json_array();
  char seed[24];
  (void)snprintf(seed, sizeof(seed), "%" PRIu64, export->seed);
  for (size_t i = 0; i < export->releases; i++) {
    releases = cv_json_append(releases, release_json(&export->release[i]));
  }
  for (size_t i = 0; i < export->standings; i++) {
    standings = cv_json_append(standings, standing_json(&export->standing[i]));
  }
  json_t *all = json_pack("{s:s, s:I, s:o, s:s, s:o, s:o, s:o, s:o}", "format", format_name, "campaign",
                          (json_int_t) export->campaign, "spec", spec_json(&export->spec), "seed", seed, "progress",
                          progress_json(&export->progress), "plans", plans_json(export), "releases", releases,
                          "standings", standings);
  if (export->neutrals > 0) {
    all = cv_json_set(all, "neutral", neutral_json(export));
  }
  if (all == NULL) {
    return CV_ERR_NOMEM;
  }
  int status = json_dump_callback(all, cv_escape_json, to, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  json_decref(all);
  return status == 0 && fputc('\n', to) != EOF ? CV_OK : ferror(to) != 0 ? CV_ERR_IO : CV_ERR_NOMEM;
}
