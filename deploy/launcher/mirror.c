/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/mirror.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/spec.h"

/* The only campaign of a new third-party has the number 1. */
#define CAMPAIGN "1"
enum { AGAIN_MS = 200 };

static void ask(struct cv_mirror *mirror);

/* ---- steps ---- */

static void clear_steps(struct cv_mirror *mirror) {
  for (size_t i = 0; i < mirror->steps; i++) {
    free(mirror->step[i].json);
  }
  mirror->steps = 0;
}

static double real_at(const json_t *array, size_t i) {
  const json_t *value = json_array_get(array, i);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* An arm without a class has two more places, its last class and why; one that contradicts a third one. */
static void take_held(const json_t *row, struct cv_standing *standing) {
  const char *text = json_string_value(json_array_get(row, 7));
  if (text != NULL) {
    standing->rank_last = (uint32_t)json_integer_value(json_array_get(row, 6));
    for (enum cv_held held = CV_HELD_NO + 1; held < CV_HELD_COUNT; held++) {
      standing->held = strcmp(text, cv_held_text(held)) == 0 ? held : standing->held;
    }
  }
  standing->contradicts = json_is_true(json_array_get(row, 8));
}

static void take_standings(struct cv_mirror *mirror, const json_t *step) {
  const json_t *changed = json_object_get(step, "s"), *at;
  size_t i;
  json_array_foreach(changed, i, at) {
    json_int_t arm = json_integer_value(json_array_get(at, 0));
    if (arm >= 0 && (uint64_t)arm < mirror->arms) {
      mirror->standing[arm] = (struct cv_standing){.arm = (uint32_t)arm,
                                                   .rank_class = (uint32_t)json_integer_value(json_array_get(at, 1)),
                                                   .tokens = (uint64_t)json_integer_value(json_array_get(at, 2)),
                                                   .mean = real_at(at, 3),
                                                   .radius = real_at(at, 4),
                                                   .noise = real_at(at, 5)};
      take_held(at, &mirror->standing[arm]);
    }
  }
}

static bool take_step(struct cv_mirror *mirror, const json_t *step) {
  uint64_t number = (uint64_t)json_integer_value(json_object_get(step, "n"));
  if (mirror->steps > 0 && number <= mirror->step[mirror->steps - 1].number) {
    return true; /* sent again after a reconnection */
  }
  char *text = json_dumps(step, JSON_COMPACT | JSON_REAL_PRECISION(17));
  struct cv_mirror_step *slot = text == NULL ? NULL : CV_ARRAY_PUSH(mirror->step, mirror->steps, mirror->cap);
  if (slot == NULL) {
    free(text);
    return false;
  }
  *slot = (struct cv_mirror_step){.number = number, .json = text};
  take_standings(mirror, step);
  return true;
}

const struct cv_mirror_step *cv_mirror_after(const struct cv_mirror *mirror, bool has_after, uint64_t after) {
  size_t low = 0, high = mirror->steps;
  while (has_after && low < high) {
    size_t middle = low + (high - low) / 2;
    if (mirror->step[middle].number <= after) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < mirror->steps ? &mirror->step[low] : NULL;
}

/* ---- the third-party's answers ---- */

static void on_again(uv_timer_t *timer) {
  ask(timer->data);
}

static void ask_again(struct cv_mirror *mirror) {
  if (!mirror->is_stopped) {
    (void)uv_timer_start(&mirror->timer, on_again, AGAIN_MS, 0);
  }
}

static void take_state(struct cv_mirror *mirror, const json_t *state) {
  (void)json_object_set(mirror->head, "state", json_object_get(state, "state"));
  (void)json_object_set(mirror->head, "note", json_object_get(state, "note"));
  mirror->state++;
}

static void on_line(void *data, const char *line) {
  static const char event[] = "event: ", content[] = "data: ";
  struct cv_mirror *mirror = data;
  if (strncmp(line, event, sizeof(event) - 1) == 0) {
    (void)snprintf(mirror->event, sizeof(mirror->event), "%s", line + sizeof(event) - 1);
  }
  if (strncmp(line, content, sizeof(content) - 1) != 0) {
    return;
  }
  json_t *value = json_loads(line + sizeof(content) - 1, JSON_DECODE_ANY, NULL);
  bool good = value != NULL && strcmp(mirror->event, "reload") != 0;
  if (good && strcmp(mirror->event, "step") == 0) {
    good = take_step(mirror, value) && ++mirror->events < CV_MIRROR_EVENTS_MAX;
  } else if (good && strcmp(mirror->event, "state") == 0) {
    take_state(mirror, value);
  }
  json_decref(value);
  if (!good) {
    cv_upstream_cancel(mirror->upstream);
    mirror->upstream = NULL;
    ask_again(mirror);
  }
  mirror->changed(mirror->data);
}

static void on_stream_over(void *data, int status, const char *body, size_t n) {
  struct cv_mirror *mirror = data;
  mirror->upstream = NULL;
  ask_again(mirror);
}

static void listen_on(struct cv_mirror *mirror) {
  static const struct cv_upstream_ops ops = {.line = on_line, .done = on_stream_over};
  char url[80];
  (void)snprintf(url, sizeof(url), "/api/events?id=" CAMPAIGN "&after=%" PRIu64,
                 mirror->step[mirror->steps - 1].number);
  mirror->events = 0;
  if (cv_upstream_get(mirror->loop, mirror->socket, url, &ops, mirror, &mirror->upstream, NULL) != CV_OK) {
    ask_again(mirror);
  }
}

static bool take_campaign(struct cv_mirror *mirror, json_t *campaign) {
  json_int_t arms = json_integer_value(json_object_get(campaign, "arms"));
  json_t *steps = json_object_get(campaign, "steps"), *at;
  size_t i;
  if (arms < 1 || arms > CV_ARMS_MAX || json_array_size(steps) == 0) {
    return false;
  }
  free(mirror->standing);
  mirror->standing = calloc((size_t)arms, sizeof(*mirror->standing));
  mirror->arms = mirror->standing == NULL ? 0 : (uint32_t)arms;
  clear_steps(mirror);
  bool good = mirror->standing != NULL;
  json_array_foreach(steps, i, at) {
    good = good && take_step(mirror, at);
  }
  (void)json_object_del(campaign, "steps");
  json_decref(mirror->head);
  mirror->head = json_incref(campaign);
  mirror->state++;
  return good && mirror->steps > 0;
}

static void on_campaign(void *data, int status, const char *body, size_t n) {
  struct cv_mirror *mirror = data;
  mirror->upstream = NULL;
  /* Not there yet: the broker has not opened it. */
  json_t *campaign = status == 200 ? json_loadb(body, n, 0, NULL) : NULL;
  if (campaign != NULL && take_campaign(mirror, campaign)) {
    listen_on(mirror);
    mirror->changed(mirror->data);
  } else {
    ask_again(mirror);
  }
  json_decref(campaign);
}

static void ask(struct cv_mirror *mirror) {
  static const struct cv_upstream_ops ops = {.done = on_campaign};
  if (cv_upstream_get(mirror->loop, mirror->socket, "/api/campaign?id=" CAMPAIGN, &ops, mirror, &mirror->upstream,
                      NULL) != CV_OK) {
    ask_again(mirror);
  }
}

/* ---- life ---- */

void cv_mirror_start(struct cv_mirror *mirror, uv_loop_t *loop, const char *socket, void (*changed)(void *data),
                     void *data) {
  mirror->loop = loop;
  mirror->socket = socket;
  mirror->changed = changed;
  mirror->data = data;
  (void)uv_timer_init(loop, &mirror->timer);
  mirror->timer.data = mirror;
  mirror->is_started = true;
  /* The first question begins the third-party's record, before there is a campaign. */
  ask(mirror);
}

void cv_mirror_stop(struct cv_mirror *mirror) {
  if (mirror->is_started && !mirror->is_stopped) {
    mirror->is_stopped = true;
    cv_upstream_cancel(mirror->upstream);
    mirror->upstream = NULL;
    uv_close((uv_handle_t *)&mirror->timer, NULL);
  }
}

void cv_mirror_fini(struct cv_mirror *mirror) {
  clear_steps(mirror);
  free(mirror->step);
  free(mirror->standing);
  json_decref(mirror->head);
}
