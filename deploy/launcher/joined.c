/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/joined.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/grid.h"
#include "common/page/jot.h"
#include "deploy/launcher/progress.h"
#include "deploy/launcher/pulls.h"
#include "worker/quality/truth.h"

/* A broker's column of a campaign that it has forgotten, since it has ended. */
#define FORGOTTEN \
  "{\"tokens\":null,\"places_open\":0,\"epoch_tokens\":0,\"sealed\":[],\"releases\":null,\"spent\":null,\"holds\":[]}"
enum { CAMPAIGN = 1, PIECE_BYTES = 16384, FRESH_MS = 300 };

/* ---- pieces of JSON ---- */

static void put(struct cv_buf *out, const char *text) {
  cv_buf_put(out, text, strlen(text));
}

static void number(struct cv_jot *jot, const char *key, double value) {
  cv_jot_key(jot, key);
  cv_jot_number(jot, value);
}

static void whole(struct cv_jot *jot, const char *key, uint64_t value) {
  cv_jot_key(jot, key);
  cv_jot_whole(jot, value);
}

/* The true classes of a ranking; false if its policy has no alpha. */
static bool true_classes(const struct cv_prepared *prepared, uint32_t *ret) {
  const struct cv_spec *spec = &prepared->file.spec;
  const struct cv_param *alpha = cv_params_find(&spec->policy.params, "alpha");
  if (prepared->kind != CV_POLICY_RANKING || alpha == NULL || alpha->is_text) {
    return false;
  }
  (void)cv_truth_classes(prepared->truth, spec->arms, alpha->number, ret);
  return true;
}

/* The arm with the highest mean, or in a recruitment mean per cost. */
static uint32_t best_of(const struct cv_prepared *prepared) {
  const struct cv_spec *spec = &prepared->file.spec;
  uint32_t best = 0;
  double most = -1;
  for (uint32_t i = 0; i < spec->arms; i++) {
    double value = prepared->truth[i] / (spec->cost_micro == NULL ? 1 : (double)spec->cost_micro[i]);
    best = value > most ? i : best;
    most = value > most ? value : most;
  }
  return best;
}

static void put_truth(const struct cv_prepared *prepared, struct cv_jot *jot) {
  uint32_t arms = prepared->file.spec.arms, *classes = calloc(arms, sizeof(*classes));
  cv_jot_key(jot, "truth");
  if (prepared->truth == NULL || classes == NULL) {
    cv_jot_null(jot);
    free(classes);
    return;
  }
  cv_jot_open(jot, '{');
  cv_jot_key(jot, "means");
  cv_jot_open(jot, '[');
  for (uint32_t i = 0; i < arms; i++) {
    cv_jot_number(jot, prepared->truth[i]);
  }
  cv_jot_close(jot, ']');
  cv_jot_key(jot, "classes");
  if (true_classes(prepared, classes)) {
    cv_jot_open(jot, '[');
    for (uint32_t i = 0; i < arms; i++) {
      cv_jot_whole(jot, classes[i]);
    }
    cv_jot_close(jot, ']');
  } else {
    cv_jot_null(jot);
  }
  whole(jot, "best", best_of(prepared));
  cv_jot_close(jot, '}');
  free(classes);
}

static void put_live(const struct cv_joined *joined, struct cv_jot *jot) {
  const struct cv_progress *progress = &joined->progress;
  uint64_t limit = joined->prepared->file.spec.epsilon_micro, spent = progress->epsilon_spent_micro;
  cv_jot_open(jot, '{');
  whole(jot, "t", progress->elapsed_ms);
  whole(jot, "tokens", progress->tokens);
  whole(jot, "limit", progress->tokens_limit);
  number(jot, "rate", cv_view_rate(progress));
  number(jot, "spent", (double)spent / (double)CV_MICRO);
  number(jot, "left", (double)(limit > spent ? limit - spent : 0) / (double)CV_MICRO);
  whole(jot, "workers", progress->workers);
  number(jot, "paid", (double)progress->paid_micro / (double)CV_MICRO);
  number(jot, "budget", (double)progress->budget_micro / (double)CV_MICRO);
  number(jot, "regret", joined->regret);
  number(jot, "reward", joined->reward);
  cv_jot_close(jot, '}');
}

/* ---- what the page asks for ---- */

static enum cv_page_found campaigns(void *data, struct cv_buf *out) {
  const struct cv_joined *joined = data;
  const struct cv_mirror *mirror = &joined->mirror;
  json_t *list =
      mirror->head == NULL
          ? json_array()
          : json_pack("[{s:i, s:O, s:O, s:O, s:O, s:O, s:O, s:I, s:I}]", "id", CAMPAIGN, "number",
                      json_object_get(mirror->head, "number"), "broker", json_object_get(mirror->head, "broker"),
                      "name", json_object_get(mirror->head, "name"), "kind", json_object_get(mirror->head, "kind"),
                      "state", json_object_get(mirror->head, "state"), "arms", json_object_get(mirror->head, "arms"),
                      "plans", (json_int_t)joined->progress.plans, "decided", (json_int_t)joined->progress.decided);
  json_t *whole_list = json_pack("{s:s, s:s, s:o}", "party", "all", "program", "crowdveil up", "campaigns", list);
  char *text = whole_list == NULL ? NULL : json_dumps(whole_list, JSON_COMPACT);
  json_decref(whole_list);
  if (text == NULL) {
    return CV_PAGE_FAILED;
  }
  put(out, text);
  free(text);
  return CV_PAGE_HERE;
}

/* The third-party and the broker tell of the campaign in any order; the page has it when both have. */
static enum cv_page_found find(void *data, uint64_t id) {
  const struct cv_joined *joined = data;
  return id != CAMPAIGN                                         ? CV_PAGE_ABSENT
         : joined->campaign == 0 || joined->mirror.head == NULL ? CV_PAGE_LATER
                                                                : CV_PAGE_HERE;
}

static bool put_head(const struct cv_mirror *mirror, struct cv_buf *out) {
  char *text = json_dumps(mirror->head, JSON_COMPACT | JSON_REAL_PRECISION(17));
  if (text == NULL) {
    return false;
  }
  cv_buf_put(out, text, strlen(text) - 1); /* without the last brace */
  put(out, ",\"steps\":[");
  free(text);
  return true;
}

static void put_tail(const struct cv_joined *joined, struct cv_buf *out) {
  struct cv_jot jot = {.out = out};
  cv_jot_close(&jot, ']');
  put_truth(joined->prepared, &jot);
  cv_jot_key(&jot, "live");
  if (joined->live == 0) {
    cv_jot_null(&jot);
  } else {
    put_live(joined, &jot);
  }
  cv_jot_close(&jot, '}');
}

static const struct cv_mirror_step *next_step(const struct cv_mirror *mirror, struct cv_page_cursor *at) {
  const struct cv_mirror_step *step = cv_mirror_after(mirror, at->has_after, at->after);
  if (step != NULL) {
    at->has_after = true;
    at->after = step->number;
  }
  return step;
}

static enum cv_page_next history(void *data, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out) {
  enum { BEGIN, STEPS, END };
  const struct cv_joined *joined = data;
  if (at->part == END || (at->part == BEGIN && !put_head(&joined->mirror, out))) {
    return CV_PAGE_END;
  }
  at->part = STEPS;
  while (out->len < PIECE_BYTES) {
    bool follows = at->has_after;
    const struct cv_mirror_step *step = next_step(&joined->mirror, at);
    if (step == NULL) {
      put_tail(joined, out);
      at->part = END;
      return CV_PAGE_MORE;
    }
    put(out, follows ? "," : "");
    put(out, step->json);
  }
  return CV_PAGE_MORE;
}

static void put_step(const struct cv_mirror_step *step, struct cv_buf *out) {
  char head[64];
  (void)snprintf(head, sizeof(head), "event: step\nid: %" PRIu64 "\ndata: ", step->number);
  put(out, head);
  put(out, step->json);
  put(out, "\n\n");
}

static void put_state(const struct cv_mirror *mirror, struct cv_buf *out) {
  struct cv_jot jot = {.out = out};
  put(out, "event: state\ndata: ");
  cv_jot_open(&jot, '{');
  cv_jot_key(&jot, "state");
  cv_jot_text(&jot, json_string_value(json_object_get(mirror->head, "state")));
  cv_jot_key(&jot, "note");
  cv_jot_text(&jot, json_string_value(json_object_get(mirror->head, "note")));
  cv_jot_close(&jot, '}');
  put(out, "\n\n");
}

static enum cv_page_next events(void *data, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out) {
  const struct cv_joined *joined = data;
  const struct cv_mirror *mirror = &joined->mirror;
  const struct cv_mirror_step *step = NULL;
  if (at->part != 0) {
    return CV_PAGE_END;
  }
  if (at->has_after && (mirror->steps == 0 || at->after > mirror->step[mirror->steps - 1].number)) {
    put(out, "event: reload\ndata: {}\n\n");
    at->part = 1;
    return CV_PAGE_MORE;
  }
  while (out->len < PIECE_BYTES && (step = next_step(mirror, at)) != NULL) {
    put_step(step, out);
  }
  if (step == NULL && at->state != mirror->state) {
    at->state = mirror->state;
    put_state(mirror, out);
  }
  if (step == NULL && at->live != joined->live) {
    struct cv_jot jot = {.out = out};
    at->live = joined->live;
    put(out, "event: live\ndata: ");
    put_live(joined, &jot);
    put(out, "\n\n");
  }
  return out->len > 0 ? CV_PAGE_MORE : CV_PAGE_WAIT;
}

/* ---- answers of the parties ---- */

static bool has_cobroker(const struct cv_joined *joined) {
  return joined->cobroker[0] != '\0';
}

static void on_answered(void *data, int status, const char *body, size_t n) {
  const struct cv_joined_asked *asked = data;
  struct cv_joined_answer *answer = asked->answer;
  answer->upstream[asked->party] = NULL;
  answer->status[asked->party] = status;
  answer->text[asked->party] = strdup(body);
  if (--answer->open == 0) {
    answer->is_ready = true;
    answer->is_asked = false;
    answer->at_ms = cv_clock_mono_ms();
    if (asked->joined->site.page != NULL) {
      cv_page_site_wake(&asked->joined->site);
    }
  }
}

static void ask(struct cv_joined *joined, struct cv_joined_answer *answer, enum cv_joined_party party,
                const char *url) {
  static const struct cv_upstream_ops ops = {.done = on_answered};
  const char *const socket[CV_JOINED_PARTIES] = {joined->broker, joined->thirdparty, joined->cobroker,
                                                 joined->cobroker};
  answer->asked[party] = (struct cv_joined_asked){joined, answer, party};
  if (cv_upstream_get(joined->loop, socket[party], url, &ops, &answer->asked[party], &answer->upstream[party], NULL) ==
      CV_OK) {
    answer->open++;
  }
}

static void forget(struct cv_joined_answer *answer) {
  for (size_t i = 0; i < CV_COUNT(answer->text); i++) {
    free(answer->text[i]);
    answer->text[i] = NULL;
    answer->status[i] = 0;
  }
  answer->is_ready = false;
}

/* Whether a fresh answer about this arm is there. One party may have answered long before the other; after the end of
 * the campaign no answer from before it counts. */
static bool is_fresh(const struct cv_joined *joined, const struct cv_joined_answer *answer, uint64_t arm) {
  return answer->is_ready && answer->arm == arm && answer->state == joined->mirror.state &&
         cv_clock_mono_ms() - answer->at_ms <= FRESH_MS;
}

/* The only place where a score or a token is shown, with --unsafe-show-worker. */
static void put_worker(const struct cv_joined *joined, struct cv_buf *out) {
  struct cv_jot jot = {.out = out};
  if (!joined->shown.is_there) {
    cv_jot_null(&jot);
    return;
  }
  cv_jot_open(&jot, '{');
  whole(&jot, "worker", joined->shown.worker);
  whole(&jot, "arm", joined->shown.arm);
  number(&jot, "score", joined->shown.score);
  number(&jot, "token", joined->shown.token);
  cv_jot_key(&jot, "privatizer");
  cv_jot_text(&jot, joined->prepared->file.spec.privatizer.name);
  cv_jot_key(&jot, "state");
  cv_jot_text(&jot, "answered");
  if (joined->shown.share[0][0] != '\0') {
    cv_jot_key(&jot, "shares");
    cv_jot_open(&jot, '[');
    cv_jot_text(&jot, joined->shown.share[0]);
    cv_jot_text(&jot, joined->shown.share[1]);
    cv_jot_close(&jot, ']');
  }
  cv_jot_close(&jot, '}');
}

/* The number after a word; NAN if it is not there. */
static double after(const char *line, const char *word) {
  const char *at = strstr(line, word);
  return at == NULL ? (double)NAN : strtod(at + strlen(word), NULL);
}

/* The shares of the token that was shown before. */
static void take_shares(struct cv_joined *joined, const char *line) {
  enum { DIGITS = sizeof(joined->shown.share[0]) - 1 };
  static const char word[] = " shares ";
  const char *first = strstr(line, word) + sizeof(word) - 1;
  if (strlen(first) == 2 * DIGITS + 1 && strspn(first, "0123456789abcdef ") == 2 * DIGITS + 1) {
    (void)snprintf(joined->shown.share[0], DIGITS + 1, "%.*s", DIGITS, first);
    (void)snprintf(joined->shown.share[1], DIGITS + 1, "%.*s", DIGITS, first + DIGITS + 1);
    cv_page_site_wake(&joined->site);
  }
}

void cv_joined_shown(struct cv_joined *joined, const char *line) {
  double worker = after(line, "worker "), arm = after(line, " arm ");
  if (joined->is_open && strncmp(line, "UNSAFE shown: ", 14) == 0 && strstr(line, " shares ") != NULL) {
    take_shares(joined, line);
  } else if (joined->is_open && strncmp(line, "UNSAFE shown: ", 14) == 0 && worker >= 1 && arm >= 0) {
    joined->shown.is_there = true;
    joined->shown.worker = (uint64_t)worker;
    joined->shown.arm = (uint64_t)arm;
    joined->shown.score = after(line, " score ");
    joined->shown.token = after(line, " token ");
    joined->shown.share[0][0] = joined->shown.share[1][0] = '\0';
    cv_page_site_wake(&joined->site);
  }
}

static void ask_boundary(struct cv_joined *joined, struct cv_joined_answer *answer, uint64_t arm) {
  char url[96];
  (void)snprintf(url, sizeof(url), "/api/boundary?id=%" PRIu64 "&arm=%" PRIu64, joined->campaign, arm);
  ask(joined, answer, CV_JOINED_BROKER, url);
  if (has_cobroker(joined)) {
    ask(joined, answer, CV_JOINED_COBROKER, url);
    ask(joined, answer, CV_JOINED_HEALTH, "/health");
  }
  (void)snprintf(url, sizeof(url), "/api/boundary?id=%d&arm=%" PRIu64, CAMPAIGN, arm);
  ask(joined, answer, CV_JOINED_THIRDPARTY, url);
}

/* What the party said; `otherwise` if it has no such campaign, or is away. */
static void put_column(const struct cv_joined_answer *answer, enum cv_joined_party party, const char *otherwise,
                       struct cv_buf *out) {
  put(out, answer->status[party] == 200 && answer->text[party] != NULL ? answer->text[party] : otherwise);
}

/* 503: it runs, without the broker. */
static void put_cobroker(const struct cv_joined_answer *answer, struct cv_buf *out) {
  int status = answer->status[CV_JOINED_HEALTH];
  put(out, ",\"cobroker_health\":");
  put(out, status == 200 ? "\"ok\"" : status == 0 ? "\"away\"" : "\"alone\"");
  put(out, ",\"cobroker\":");
  put_column(answer, CV_JOINED_COBROKER, FORGOTTEN, out);
}

static enum cv_page_found boundary(void *data, uint64_t id, uint64_t arm, struct cv_buf *out) {
  struct cv_joined *joined = data;
  struct cv_joined_answer *answer = &joined->boundary;
  char head[64];
  if (find(data, id) != CV_PAGE_HERE || arm >= joined->prepared->file.spec.arms) {
    return find(data, id) == CV_PAGE_LATER ? CV_PAGE_LATER : CV_PAGE_ABSENT;
  }
  if (!is_fresh(joined, answer, arm)) {
    if (!answer->is_asked) {
      forget(answer);
      answer->state = joined->mirror.state;
      answer->arm = arm;
      ask_boundary(joined, answer, arm);
      answer->is_asked = answer->open > 0;
    }
    return answer->is_asked ? CV_PAGE_LATER : CV_PAGE_FAILED;
  }
  (void)snprintf(head, sizeof(head), "{\"arm\":%" PRIu64 ",\"worker\":", arm);
  put(out, head);
  put_worker(joined, out);
  put(out, ",\"broker\":");
  put_column(answer, CV_JOINED_BROKER, FORGOTTEN, out);
  if (has_cobroker(joined)) {
    put_cobroker(answer, out);
  }
  put(out, ",\"thirdparty\":");
  put_column(answer, CV_JOINED_THIRDPARTY, "null", out);
  put(out, "}");
  return CV_PAGE_HERE;
}

static enum cv_page_found table(void *data, uint64_t id, struct cv_buf *out) {
  struct cv_joined *joined = data;
  struct cv_joined_answer *answer = &joined->table;
  if (id > CAMPAIGN) {
    return CV_PAGE_ABSENT;
  }
  if (!is_fresh(joined, answer, 0)) {
    if (!answer->is_asked) {
      forget(answer);
      answer->state = joined->mirror.state;
      ask(joined, answer, CV_JOINED_THIRDPARTY, "/table"); /* of its only campaign */
      answer->is_asked = answer->open > 0;
    }
    return answer->is_asked ? CV_PAGE_LATER : CV_PAGE_FAILED;
  }
  if (answer->status[CV_JOINED_THIRDPARTY] != 200 || answer->text[CV_JOINED_THIRDPARTY] == NULL) {
    return CV_PAGE_FAILED;
  }
  put(out, answer->text[CV_JOINED_THIRDPARTY]);
  return CV_PAGE_HERE;
}

/* ---- life ---- */

static void on_changed(void *data) {
  struct cv_joined *joined = data;
  cv_page_site_wake(&joined->site);
}

enum cv_err cv_joined_open(struct cv_joined *joined, uv_loop_t *loop, const struct cv_prepared *prepared, uint64_t port,
                           struct cv_rng *rng, struct cv_why *why) {
  static const struct cv_page_ops ops = {.campaigns = campaigns,
                                         .find = find,
                                         .history = history,
                                         .events = events,
                                         .table = table,
                                         .boundary = boundary,
                                         .has_whole_boundary = true,
                                         .files = &CV_PAGE_FILES};
  joined->loop = loop;
  joined->prepared = prepared;
  joined->reward = joined->regret = (double)NAN;
  joined->site.socket = -1;
  (void)snprintf(joined->listen, sizeof(joined->listen), "127.0.0.1:%" PRIu64, port);
  joined->settings.listen = joined->listen;
  joined->is_open = true;
  CV_TRY(cv_page_site_bind(&joined->site, &joined->settings, why));
  return cv_page_site_open(&joined->site, loop, &ops, joined, rng, why);
}

void cv_joined_say(const struct cv_joined *joined, FILE *to) {
  cv_page_site_say(&joined->site, to);
}

void cv_joined_watch(struct cv_joined *joined) {
  if (joined->is_open) {
    cv_mirror_start(&joined->mirror, joined->loop, joined->thirdparty, on_changed, joined);
  }
}

/* Reward and regret as at the end, from the pulls so far; NAN for a ranking, and against an adversary, whose rounds are
 * not known here. */
static void take_sums(struct cv_joined *joined, const struct cv_finished *finished) {
  const struct cv_prepared *prepared = joined->prepared;
  const struct cv_outcome_known known = {.kind = prepared->kind, .spec = &prepared->file.spec, .mean = prepared->truth};
  struct cv_outcome outcome;
  if (prepared->kind == CV_POLICY_RANKING || cv_quality_adversary(prepared->source.quality) != NULL ||
      finished->progress.arms != prepared->file.spec.arms || cv_outcome_init(&outcome, finished, &known) != CV_OK) {
    return;
  }
  struct cv_pulls_sums sums = cv_pulls_sums(&outcome);
  joined->reward = sums.reward;
  joined->regret = sums.regret;
  cv_outcome_fini(&outcome);
}

void cv_joined_finished(struct cv_joined *joined, const struct cv_finished *finished) {
  if (joined->is_open) {
    joined->campaign = finished->progress.campaign;
    joined->progress = finished->progress;
    joined->live++;
    take_sums(joined, finished);
    cv_page_site_wake(&joined->site);
  }
}

void cv_joined_progress(struct cv_joined *joined, const struct cv_progress *progress) {
  const struct cv_finished so_far = {
      .progress = *progress, .standings = joined->mirror.arms, .standing = joined->mirror.standing};
  cv_joined_finished(joined, &so_far);
}

static void cancel(struct cv_joined_answer *answer) {
  for (size_t i = 0; i < CV_COUNT(answer->upstream); i++) {
    cv_upstream_cancel(answer->upstream[i]);
    answer->upstream[i] = NULL;
  }
  forget(answer);
}

void cv_joined_close(struct cv_joined *joined) {
  if (joined->is_open) {
    joined->is_open = false;
    cv_page_site_close(&joined->site);
    cv_page_site_free(&joined->site);
    cv_mirror_stop(&joined->mirror);
    cancel(&joined->boundary);
    cancel(&joined->table);
  }
}

void cv_joined_fini(struct cv_joined *joined) {
  cv_mirror_fini(&joined->mirror);
}
