/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/gold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"

/* The alternatives p that the test averages over, spread evenly above q. */
enum { ALTERNATIVES = 16 };

void cv_gold_fini(struct cv_gold *gold) {
  free(gold->item);
  *gold = (struct cv_gold){0};
}

enum cv_err cv_gold_copy(const struct cv_gold *from, struct cv_gold *ret_to) {
  struct cv_gold copy = *from;
  copy.item = NULL;
  if (from->items > 0) {
    copy.item = calloc(from->items, sizeof(*copy.item));
    if (copy.item == NULL) {
      return CV_ERR_NOMEM;
    }
    memcpy(copy.item, from->item, from->items * sizeof(*copy.item));
  }
  *ret_to = copy;
  return CV_OK;
}

/* ---- the test ---- */

/* The probability that the token for a score is the bit 1. */
static double one_for(const struct cv_local *law, double score) {
  struct cv_feedback feedback = cv_local_feedback(law, 0);
  return feedback.offset + feedback.slope * score;
}

/* The bit that the known score makes more probable. */
static bool expected_bit(const struct cv_local *law, int64_t answer) {
  return one_for(law, cv_grid_to(answer)) >= .5;
}

bool cv_gold_is_wrong(const struct cv_gold *gold, const struct cv_local *law, uint32_t index, int64_t token) {
  int64_t answer = gold->item[index].answer;
  return law->bits ? (token != 0) != expected_bit(law, answer) : llabs(token - answer) > gold->tolerance;
}

/* The probability of the less expected bit, for a score in [low, high]; it is linear in the score. */
static double miss(const struct cv_local *law, bool expected, double low, double high) {
  double a = one_for(law, low), b = one_for(law, high);
  return expected ? 1 - fmin(a, b) : fmax(a, b);
}

double cv_gold_error(const struct cv_gold *gold, const struct cv_local *law) {
  double error = gold->error_micro / 1e6, most = 0;
  if (!law->bits) {
    return error;
  }
  for (uint32_t i = 0; i < gold->items; i++) {
    double answer = cv_grid_to(gold->item[i].answer), tolerance = cv_grid_to(gold->tolerance);
    bool expected = expected_bit(law, gold->item[i].answer);
    double near = miss(law, expected, fmax(answer - tolerance, 0), fmin(answer + tolerance, 1));
    most = fmax(most, (1 - error) * near + error * miss(law, expected, 0, 1));
  }
  return most;
}

bool cv_gold_finds(double error, double level, uint32_t answers, uint32_t wrong) {
  double largest = -(double)INFINITY, sum = 0, each[ALTERNATIVES];
  for (int i = 0; i < ALTERNATIVES; i++) {
    double p = error + (1 - error) * (i + .5) / ALTERNATIVES;
    each[i] = wrong * log(p / error) + (answers - wrong) * log((1 - p) / (1 - error));
    largest = fmax(largest, each[i]);
  }
  for (int i = 0; i < ALTERNATIVES; i++) {
    sum += exp(each[i] - largest);
  }
  return largest + log(sum / ALTERNATIVES) >= -log(level);
}

double cv_gold_expected(const struct cv_gold *gold, uint32_t assignments) {
  double share = gold->share_micro / 1e6, n = assignments, expected = 0, below = 0;
  for (uint32_t k = 0; k < gold->items && k < assignments; k++) {
    below += exp(lgamma(n + 1) - lgamma(k + 1.) - lgamma(n - k + 1) + k * log(share) + (n - k) * log1p(-share));
    expected += fmax(0, 1 - below); /* the probability of more than k */
  }
  return expected;
}

int64_t cv_gold_neutral(const struct cv_local *law, struct cv_rng *rng) {
  if (!law->bits) {
    return CV_GRID / 2;
  }
  /* Symmetric: 1/2. Else (p11 + 1 - p00)/2, exactly. */
  uint64_t one = CV_MICRO;
  if (law->matrices > 0) {
    const struct cv_matrix *matrix = cv_local_matrix(law, 0);
    one = (uint64_t)CV_MICRO + matrix->p11_micro - matrix->p00_micro;
  }
  return cv_rng_below(rng, 2 * (uint64_t)CV_MICRO) < one ? CV_GRID : 0;
}

/* ---- checks ---- */

static enum cv_err check_items(const struct cv_gold *gold, uint32_t arms, struct cv_why *why) {
  if (gold->items > CV_GOLD_MAX || arms + gold->items > CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%u gold items beside %u arms; expected at most %d, and at most %d items in all", gold->items, arms,
                   CV_GOLD_MAX, CV_ARMS_MAX);
  }
  for (uint32_t i = 0; i < gold->items; i++) {
    const struct cv_gold_item *each = &gold->item[i];
    if (each->item >= arms + gold->items) {
      return cv_fail(why, CV_ERR_INVALID, "gold item %u does not exist; expected at most %u", each->item + 1,
                     arms + gold->items);
    }
    if (i > 0 && each->item <= gold->item[i - 1].item) {
      return cv_fail(why, CV_ERR_INVALID, "gold item %u after %u; expected each once, in ascending order",
                     each->item + 1, gold->item[i - 1].item + 1);
    }
    if (each->answer < 0 || each->answer > CV_GRID) {
      return cv_fail(why, CV_ERR_INVALID, "the known score of item %u is %g; expected 0 to 1", each->item + 1,
                     cv_grid_to(each->answer));
    }
  }
  return CV_OK;
}

static enum cv_err check_numbers(const struct cv_gold *gold, struct cv_why *why) {
  if (gold->tolerance < 0 || gold->tolerance >= CV_GRID) {
    return cv_fail(why, CV_ERR_INVALID, "the tolerance of gold items is %g; expected 0 or more, below 1",
                   cv_grid_to(gold->tolerance));
  }
  if (gold->epsilon_micro > CV_GOLD_EPSILON_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "the epsilon of the numbers of neutral tokens is %g; expected at most %g",
                   gold->epsilon_micro / 1e6, CV_GOLD_EPSILON_MAX / 1e6);
  }
  const struct {
    const char *what;
    uint32_t micro, most;
  } each[] = {{"share of wrong honest answers to gold items", gold->error_micro, CV_GOLD_ERROR_MAX},
              {"level at which honest workers may be found", gold->level_micro, CV_GOLD_LEVEL_MAX},
              {"share of gold items among the assignments", gold->share_micro, CV_GOLD_SHARE_MAX}};
  for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
    if (each[i].micro == 0 || each[i].micro > each[i].most) {
      return cv_fail(why, CV_ERR_INVALID, "the %s is %g; expected 0.000001 to %g", each[i].what, each[i].micro / 1e6,
                     each[i].most / 1e6);
    }
  }
  return CV_OK;
}

/* The fewest answers that can find a worker: all of them wrong. */
static uint32_t answers_needed(const struct cv_gold *gold, double error) {
  uint32_t answers = 1;
  while (!cv_gold_finds(error, gold->level_micro / 1e6, answers, answers)) {
    answers++;
  }
  return answers;
}

enum cv_err cv_gold_check(const struct cv_gold *gold, const struct cv_spec *spec, struct cv_why *why) {
  struct cv_local law;
  if (gold->items == 0) {
    return CV_OK;
  }
  CV_TRY(check_items(gold, spec->arms, why));
  CV_TRY(check_numbers(gold, why));
  if (spec->cost_micro != NULL || spec->edges > 0 || spec->pairs || spec->brokers != 0) {
    return cv_fail(why, CV_ERR_INVALID, "gold items in a %s; expected a campaign without it, or no gold items",
                   spec->brokers     ? "campaign with two brokers, of which none sees an answer"
                   : spec->pairs     ? "campaign of pairs, where the answer depends on the opponent"
                   : spec->edges > 0 ? "feedback graph"
                                     : "recruitment");
  }
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &law, why));
  if (law.matrices > 1 || !cv_local_is_bounded(law.kind)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "gold items with privatizer %s%s; expected tokens between 0 and 1 that follow one law",
                   spec->privatizer.name, law.matrices > 1 ? " of several matrices" : "");
  }
  double error = cv_gold_error(gold, &law);
  if (error >= .5) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "an honest answer to a gold item may be wrong with probability %.3f; expected below .5: a known score "
        "nearer to 0 or 1, a smaller tolerance, or a larger epsilon of the privatizer",
        error);
  }
  return spec->tokens_per_worker <= CV_GOLD_TOKENS_MAX
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "tokens_per_worker is %u with gold items; expected at most %d",
                       spec->tokens_per_worker, CV_GOLD_TOKENS_MAX);
}

/* The tokens of a worker of which so many ask a gold item on average, at this share of gold items. */
static uint64_t tokens_for(uint32_t needed, uint32_t share_micro) {
  return ((uint64_t)needed * (uint64_t)CV_MICRO + share_micro - 1) / share_micro;
}

/* The share of gold items at which so many of the tokens ask one, in thousandths; it may be above the largest. */
static double share_for(uint32_t needed, uint64_t tokens) {
  return ceil(needed * 1e3 / (double)tokens) / 1e3;
}

/* How a worker gets as many gold items as needed: by more tokens, of which it has one for each item at most, by a
 * larger share, by both, or only with more items. */
static void say_way(const struct cv_gold *gold, const struct cv_spec *spec, uint32_t needed, char *to, size_t size) {
  const double most = CV_GOLD_SHARE_MAX / 1e6;
  uint64_t items = (uint64_t)spec->arms + gold->items, tokens = tokens_for(needed, gold->share_micro);
  double share = share_for(needed, spec->tokens_per_worker);
  if (tokens <= items && share <= most) {
    cv_text_print(to, size, "%llu tokens of a worker, or a share of gold items of %g", (unsigned long long)tokens,
                  share);
  } else if (tokens <= items) {
    cv_text_print(to, size, "%llu tokens of a worker", (unsigned long long)tokens);
  } else if (share <= most) {
    cv_text_print(to, size, "a share of gold items of %g", share);
  } else if (share_for(needed, items) <= most) {
    cv_text_print(to, size, "%llu tokens of a worker, one for each item, and a share of gold items of %g",
                  (unsigned long long)items, share_for(needed, items));
  } else {
    cv_text_print(to, size, "%llu items or more, of which there are %llu, and a share of gold items of %g",
                  (unsigned long long)tokens_for(needed, CV_GOLD_SHARE_MAX), (unsigned long long)items, most);
  }
}

enum cv_err cv_gold_check_new(const struct cv_gold *gold, const struct cv_spec *spec, struct cv_why *why) {
  struct cv_local law;
  if (gold->items == 0) {
    return CV_OK;
  }
  CV_TRY(cv_gold_check(gold, spec, why));
  if (spec->repeat) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "gold items in a campaign that repeats its questions; expected privacy.repeat: false: a second answer "
        "to a gold item repeats the mistake of the first");
  }
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &law, why));
  double error = cv_gold_error(gold, &law);
  uint32_t needed = answers_needed(gold, error);
  if (gold->items < needed) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "%u gold item%s; expected at least %u: a worker is found by %u wrong answers or more, one to each gold "
        "item, as an honest one is wrong with probability %.3g and found with at most %.3g",
        gold->items, gold->items == 1 ? "" : "s", needed, needed, error, gold->level_micro / 1e6);
  }
  if (spec->tokens_per_worker < tokens_for(needed, gold->share_micro)) {
    char way[160];
    say_way(gold, spec, needed, way, sizeof(way));
    return cv_fail(why, CV_ERR_INVALID,
                   "tokens_per_worker is %u, of which %.3g ask a gold item on average; expected at least %u of them, "
                   "which find a worker: %s",
                   spec->tokens_per_worker, spec->tokens_per_worker * (gold->share_micro / 1e6), needed, way);
  }
  return CV_OK;
}

/* ---- stored form ---- */

void cv_gold_encode(const struct cv_gold *gold, struct cv_buf *out) {
  cv_buf_put_u32(out, gold->items);
  for (uint32_t i = 0; i < gold->items; i++) {
    cv_buf_put_u32(out, gold->item[i].item);
    cv_buf_put_u64(out, (uint64_t)gold->item[i].answer);
  }
  cv_buf_put_u64(out, (uint64_t)gold->tolerance);
  cv_buf_put_u32(out, gold->error_micro);
  cv_buf_put_u32(out, gold->level_micro);
  cv_buf_put_u32(out, gold->share_micro);
  if (gold->epsilon_micro > 0) { /* at the end: rows of before it was known have none */
    cv_buf_put_u32(out, gold->epsilon_micro);
  }
}

enum cv_err cv_gold_decode(struct cv_reader *in, struct cv_gold *ret) {
  struct cv_gold gold = {.items = cv_read_u32(in)};
  if (in->failed || gold.items == 0 || gold.items > CV_GOLD_MAX) {
    return CV_ERR_FORMAT;
  }
  gold.item = calloc(gold.items, sizeof(*gold.item));
  if (gold.item == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < gold.items; i++) {
    gold.item[i].item = cv_read_u32(in);
    gold.item[i].answer = (int64_t)cv_read_u64(in);
  }
  gold.tolerance = (int64_t)cv_read_u64(in);
  gold.error_micro = cv_read_u32(in);
  gold.level_micro = cv_read_u32(in);
  gold.share_micro = cv_read_u32(in);
  bool counts = !cv_reader_done(in);
  gold.epsilon_micro = counts ? cv_read_u32(in) : 0;
  if (in->failed || (counts && gold.epsilon_micro == 0)) {
    cv_gold_fini(&gold);
    return CV_ERR_FORMAT;
  }
  *ret = gold;
  return CV_OK;
}
