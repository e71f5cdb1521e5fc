/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/grid.h"

/* ---- life ---- */

enum cv_err cv_history_new(const struct cv_spec *spec, struct cv_history **ret) {
  struct cv_history *history = calloc(1, sizeof(*history));
  if (history == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_spec_copy(spec, &history->spec);
  err = err != CV_OK ? err : cv_neighbours_init(&history->spec, &history->graph);
  err = err != CV_OK ? err : cv_local_init(&spec->privatizer, spec->arms, &history->local, NULL);
  history->last = calloc(spec->arms, sizeof(*history->last));
  history->plays = calloc(spec->arms, sizeof(*history->plays));
  history->seen = calloc(spec->arms, sizeof(*history->seen));
  history->release = calloc(spec->arms, sizeof(*history->release));
  bool whole = history->last != NULL && history->plays != NULL && history->seen != NULL && history->release != NULL;
  if (err == CV_OK && !whole) {
    err = CV_ERR_NOMEM;
  }
  if (err != CV_OK) {
    cv_history_free(history);
    return err;
  }
  history->state = history->every = 1;
  *ret = history;
  return CV_OK;
}

static void step_fini(struct cv_history_step *step) {
  free(step->standing);
  free(step->decision);
}

void cv_history_free(struct cv_history *history) {
  if (history != NULL) {
    for (size_t i = 0; i < history->steps; i++) {
      step_fini(&history->step[i]);
    }
    free(history->step);
    free(history->last);
    free(history->plays);
    free(history->seen);
    free(history->release);
    cv_neighbours_fini(&history->graph);
    cv_spec_fini(&history->spec);
    free(history);
  }
}

/* ---- the noise part ---- */

/* The share of noise in the variance of a release's mean score; see history.h. */
static double share_of_noise(const struct cv_history *history, const struct cv_release *release) {
  struct cv_feedback feedback = cv_local_feedback(&history->local, release->arm);
  double unit = history->spec.epsilon_micro == 0 ? 0 : (double)CV_MICRO / (double)history->spec.epsilon_micro;
  double tokens = (double)release->tokens, slope = feedback.slope * feedback.slope;
  double noise = 2 * tokens * feedback.scale * feedback.scale + tokens * fmax(0, 1 - slope) / 4;
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    double scale = release->noise.group[i].scale * unit;
    noise += 2 * release->noise.group[i].count * scale * scale;
  }
  noise /= slope;
  return noise / (noise + tokens / 4);
}

/* What the page shows as the noise part of a new standing. */
static double noise_of(const struct cv_history *history, const struct cv_standing *now) {
  const struct cv_standing *before = &history->last[now->arm];
  const struct cv_release *release = &history->release[now->arm];
  if (isfinite(now->noise)) {
    return fmin(fmax(now->noise, 0), now->radius);
  }
  /* A policy that was loaded from its state does not know the parts of an interval that it has not made. */
  if (now->radius == before->radius && now->mean == before->mean && now->tokens == before->tokens) {
    return before->noise;
  }
  return release->number == 0 || !isfinite(now->radius) ? 0 : now->radius * share_of_noise(history, release);
}

/* ---- thinning ---- */

static int by_arm(const void *a, const void *b) {
  const struct cv_standing *x = a, *y = b;
  return x->arm < y->arm ? -1 : x->arm > y->arm;
}

/* The later standing of each arm in *ret, which has room for all. Both are in order of arms. */
static uint32_t merge_standings(const struct cv_history_step *a, const struct cv_history_step *b,
                                struct cv_standing *ret) {
  uint32_t n = 0, i = 0, j = 0;
  while (i < a->standings || j < b->standings) {
    if (j == b->standings || (i < a->standings && a->standing[i].arm < b->standing[j].arm)) {
      ret[n++] = a->standing[i++];
    } else {
      i += i < a->standings && a->standing[i].arm == b->standing[j].arm;
      ret[n++] = b->standing[j++];
    }
  }
  return n;
}

/* Adds a later step to *step; takes *later, but for a failure. */
static enum cv_err merge(struct cv_history *history, struct cv_history_step *step, struct cv_history_step *later) {
  size_t standings = (size_t)step->standings + later->standings, decisions = (size_t)step->decisions + later->decisions;
  struct cv_standing *standing = calloc(standings + 1, sizeof(*standing));
  struct cv_stored_decision *decision = calloc(decisions + 1, sizeof(*decision));
  if (standing == NULL || decision == NULL) {
    free(standing);
    free(decision);
    return CV_ERR_NOMEM;
  }
  struct cv_history_step merged = *later;
  merged.covers = step->covers + later->covers;
  merged.standings = merge_standings(step, later, standing);
  merged.standing = standing;
  merged.decisions = (uint32_t)decisions;
  merged.decision = decision;
  if (step->decisions > 0) {
    memcpy(decision, step->decision, step->decisions * sizeof(*decision));
  }
  if (later->decisions > 0) {
    memcpy(decision + step->decisions, later->decision, later->decisions * sizeof(*decision));
  }
  history->standings -= standings - merged.standings;
  step_fini(step);
  step_fini(later);
  *step = merged;
  *later = (struct cv_history_step){0};
  return CV_OK;
}

/* Halves the number of steps. Step 0 and the last one stay: the page begins and ends with them. */
static enum cv_err thin(struct cv_history *history) {
  size_t kept = 1;
  for (size_t i = 1; i < history->steps; i += 2) {
    if (i + 1 < history->steps) {
      CV_TRY(merge(history, &history->step[i], &history->step[i + 1]));
    }
    history->step[kept++] = history->step[i];
    if (kept - 1 != i) {
      history->step[i] = (struct cv_history_step){0};
    }
  }
  history->steps = kept;
  history->every *= 2;
  return CV_OK;
}

/* ---- taking ---- */

/* Makes plan `number` the one that releases belong to. */
static void turn_to(struct cv_history *history, const struct cv_plan *plan) {
  if (plan->number != history->plan) {
    history->asked_before = history->asked;
    history->plan = plan->number;
  }
  /* A plan that the broker never ran is replaced by the one that it ran. */
  history->asked = history->asked_before;
  memset(history->plays, 0, history->spec.arms * sizeof(history->plays[0]));
  for (uint32_t i = 0; i < plan->wants; i++) {
    if (plan->want[i].arm < history->spec.arms) {
      history->plays[plan->want[i].arm] = plan->want[i].tokens;
      history->asked += plan->want[i].tokens;
    }
  }
}

static void take_releases(struct cv_history *history, const struct cv_delta *delta, size_t *at, uint64_t number) {
  for (; *at < delta->releases && delta->release[*at].plan < number; (*at)++) {
    const struct cv_release *release = &delta->release[*at];
    if (release->arm < history->spec.arms) {
      uint64_t shown = cv_neighbours_shown(&history->graph, history->plays, release->arm);
      history->tokens += release->last && release->tokens < shown ? release->tokens : shown;
      /* An empty one has no mean: the one before it stays. */
      history->release[release->arm] = release->tokens > 0 ? *release : history->release[release->arm];
      history->releases++;
    }
  }
}

/* Plans and releases in the order in which they came: a plan's releases follow it. */
static void take_counts(struct cv_history *history, const struct cv_delta *delta) {
  size_t release = 0;
  for (size_t i = 0; i < delta->plans; i++) {
    take_releases(history, delta, &release, delta->plan[i].plan.number);
    turn_to(history, &delta->plan[i].plan);
  }
  take_releases(history, delta, &release, UINT64_MAX);
}

static enum cv_err take_standings(struct cv_history *history, const struct cv_delta *delta,
                                  struct cv_history_step *step) {
  /* A batch with two steps has some arms twice: the later one counts. */
  step->standing = calloc(delta->standings + 1, sizeof(*step->standing));
  if (step->standing == NULL) {
    return CV_ERR_NOMEM;
  }
  for (size_t i = delta->standings; i-- > 0;) {
    struct cv_standing now = delta->standing[i];
    if (now.arm < history->spec.arms && !history->seen[now.arm]) {
      history->seen[now.arm] = true;
      now.noise = noise_of(history, &now);
      step->standing[step->standings++] = now;
    }
  }
  qsort(step->standing, step->standings, sizeof(*step->standing), by_arm);
  for (uint32_t i = 0; i < step->standings; i++) {
    history->last[step->standing[i].arm] = step->standing[i];
    history->seen[step->standing[i].arm] = false;
  }
  return CV_OK;
}

static enum cv_err take_decisions(struct cv_history *history, const struct cv_delta *delta,
                                  struct cv_history_step *step) {
  size_t room = CV_HISTORY_DECISIONS_MAX - history->decisions;
  size_t n = delta->decisions < room ? delta->decisions : room;
  step->decision = calloc(n + 1, sizeof(*step->decision));
  if (step->decision == NULL) {
    return CV_ERR_NOMEM;
  }
  if (n > 0) {
    memcpy(step->decision, delta->decision, n * sizeof(*step->decision));
  }
  step->decisions = (uint32_t)n;
  return CV_OK;
}

static enum cv_err append(struct cv_history *history, struct cv_history_step *step) {
  struct cv_history_step *last = history->steps == 0 ? NULL : &history->step[history->steps - 1];
  history->standings += step->standings;
  history->decisions += step->decisions;
  /* Step 0 stays alone. A client that has seen the last step gets it again when it has grown. */
  if (last != NULL && (last->number == step->number || (history->steps > 1 && last->covers < history->every))) {
    return merge(history, last, step);
  }
  if (history->steps >= 3 &&
      (history->steps == CV_HISTORY_STEPS_MAX || history->standings > CV_HISTORY_STANDINGS_MAX)) {
    CV_TRY(thin(history));
  }
  struct cv_history_step *slot = CV_ARRAY_PUSH(history->step, history->steps, history->cap);
  if (slot == NULL) {
    return CV_ERR_NOMEM;
  }
  *slot = *step;
  *step = (struct cv_history_step){0};
  return CV_OK;
}

static void take_row(struct cv_history *history, const struct cv_thirdparty_campaign_row *row) {
  history->state += row->end != history->row.end || strcmp(row->note, history->row.note) != 0;
  history->row = *row;
}

enum cv_err cv_history_take(struct cv_history *history, const struct cv_delta *delta, uint64_t now_ms) {
  if (delta->created && now_ms != CV_HISTORY_NO_TIME) {
    history->has_first = true;
    history->first_ms = now_ms;
  }
  /* The plan of the releases before the new plans, which the same batch may make. */
  bool is_step = delta->standings > 0 || delta->decisions > 0 || delta->has_state;
  take_counts(history, delta);
  take_row(history, &delta->row);
  if (!is_step) {
    return CV_OK;
  }
  bool has_time = history->has_first && now_ms != CV_HISTORY_NO_TIME;
  struct cv_history_step step = {
      .covers = 1,
      .number = delta->has_state ? delta->row.state_plan : delta->row.plan,
      .at_ms = has_time ? now_ms - history->first_ms : CV_HISTORY_NO_TIME,
      .tokens = history->tokens,
      .asked = history->asked,
      .releases = history->releases,
  };
  enum cv_err err = take_standings(history, delta, &step);
  err = err != CV_OK ? err : take_decisions(history, delta, &step);
  err = err != CV_OK ? err : append(history, &step);
  step_fini(&step);
  return err;
}

const struct cv_history_step *cv_history_after(const struct cv_history *history, bool has_after, uint64_t after) {
  size_t low = 0, high = history->steps;
  while (has_after && low < high) {
    size_t middle = low + (high - low) / 2;
    if (history->step[middle].number <= after) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < history->steps ? &history->step[low] : NULL;
}
