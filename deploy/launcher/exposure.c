/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/exposure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/text.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/progress.h"

/* Up to this many tokens the uses of rows are counted one by one, which takes a minute at most. */
#define COUNTED_MAX (UINT64_C(1) << 26)

/* ---- counting uses ---- */

static uint64_t sum_of(const uint64_t *tokens, uint32_t arms) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < arms; i++) {
    sum += tokens[i];
  }
  return sum;
}

/* Draws the rows of the arm's tokens again; raises *ret_most to the uses of the row that was drawn most. */
static enum cv_err count_arm(const struct cv_quality *quality, uint32_t arm, uint64_t tokens, uint64_t *ret_most) {
  uint32_t *uses = calloc(cv_quality_rows(quality, arm), sizeof(*uses));
  if (uses == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint64_t place = 0; place < tokens; place++) {
    uint64_t row;
    if (cv_quality_row(quality, arm, place, &row) != CV_OK) {
      break;
    }
    uses[row]++;
    *ret_most = uses[row] > *ret_most ? uses[row] : *ret_most;
  }
  free(uses);
  return CV_OK;
}

/* The rows of two items are drawn for tokens of either. */
static uint64_t two_largest(const uint64_t *tokens, uint32_t arms) {
  uint64_t first = 0, second = 0;
  for (uint32_t i = 0; i < arms; i++) {
    second = tokens[i] > first ? first : tokens[i] > second ? tokens[i] : second;
    first = tokens[i] > first ? tokens[i] : first;
  }
  return first + second;
}

/* Uses of a row in a campaign that has begun: counted if the seed is known, else bounded by the tokens of its arm. */
static enum cv_err find_past(const struct cv_exposure_ask *ask, struct cv_exposure *exposure) {
  const struct cv_score_source *source = ask->source;
  if (cv_quality_pairs(source->quality) != NULL) {
    exposure->mean = (double)sum_of(ask->tokens, source->items) / (double)exposure->rows;
    exposure->most = two_largest(ask->tokens, source->items);
    return CV_OK;
  }
  /* With a feedback graph a token also shows scores of other arms, so the draws of one arm are not all uses. */
  bool can_count = ask->is_seed_known && ask->spec->edges == 0 && sum_of(ask->tokens, source->items) <= COUNTED_MAX;
  for (uint32_t i = 0; i < source->items; i++) {
    double mean = (double)ask->tokens[i] / (double)cv_quality_rows(source->quality, i);
    exposure->mean = mean > exposure->mean ? mean : exposure->mean;
    if (can_count) {
      CV_TRY(count_arm(source->quality, i, ask->tokens[i], &exposure->most));
    } else {
      exposure->most = ask->tokens[i] > exposure->most ? ask->tokens[i] : exposure->most;
    }
  }
  exposure->is_counted = can_count;
  return CV_OK;
}

enum cv_err cv_exposure_find(const struct cv_exposure_ask *ask, struct cv_exposure *ret) {
  const struct cv_items_csv *csv = &ask->items->csv;
  struct cv_exposure exposure = {.is_data = ask->items->source == CV_SOURCE_CSV};
  if (!exposure.is_data) {
    *ret = exposure;
    return CV_OK;
  }
  const char *slash = strrchr(csv->file, '/');
  exposure.file = slash == NULL ? csv->file : slash + 1;
  exposure.replacement = csv->replacement;
  exposure.is_exact = ask->is_exact;
  exposure.is_past = ask->tokens != NULL && !ask->is_expected;
  exposure.is_expected = ask->is_expected;
  exposure.token_micro = ask->token_micro;
  const struct cv_pairs *pairs = cv_quality_pairs(ask->source->quality);
  exposure.rows = pairs == NULL ? 0 : pairs->rows;
  for (uint32_t i = 0; i < ask->source->items; i++) {
    exposure.rows += cv_quality_rows(ask->source->quality, i);
  }
  const struct cv_persons *persons = &ask->source->persons;
  exposure.persons = persons->persons;
  uint64_t most, again;
  bool is_once = !ask->spec->repeat;
  CV_TRY(cv_persons_give(persons, ask->source->items, UINT64_MAX, is_once, &most, &again));
  exposure.is_once = again > 0;
  CV_TRY(cv_persons_give(persons, ask->source->items, ask->spec->tokens_per_worker, is_once, &exposure.person_most,
                         &exposure.beyond));
  /* Used once, a row is in an order that all gateways have, or that each has drawn for itself. */
  exposure.is_known =
      !exposure.is_past || csv->replacement || persons->persons > 0 || ask->items->has_seed || ask->is_seed_known;
  /* Without replacement a row is used once; with it a campaign may, in theory, draw the same row every time. */
  if (!csv->replacement) {
    exposure.most = 1;
  } else if (ask->tokens == NULL) {
    exposure.mean = (double)ask->spec->tokens / (double)exposure.rows;
    exposure.most = ask->spec->tokens;
  } else {
    CV_TRY(find_past(ask, &exposure));
  }
  *ret = exposure;
  return CV_OK;
}

enum cv_err cv_exposure_plan(const struct cv_prepared *prepared, uint64_t token_micro, struct cv_exposure *ret) {
  const struct cv_exposure_ask ask = {.items = &prepared->file.items,
                                      .source = &prepared->source,
                                      .spec = &prepared->file.spec,
                                      .token_micro = token_micro,
                                      .is_exact = cv_spec_is_exact(&prepared->file.spec)};
  return cv_exposure_find(&ask, ret);
}

uint64_t cv_exposure_micro(const struct cv_exposure *exposure, uint64_t uses) {
  uint64_t micro;
  return __builtin_mul_overflow(exposure->token_micro, uses, &micro) ? UINT64_MAX : micro;
}

/* The charge of a token for the campaign's releases. */
static uint64_t releases_micro(const struct cv_spec *spec) {
  struct cv_local law;
  bool is_local = cv_local_find(spec->privatizer.name) != CV_LOCAL_NONE &&
                  cv_local_init(&spec->privatizer, spec->arms, &law, NULL) == CV_OK;
  bool is_noisy = cv_spec_has_noise(spec);
  /* A privatizer with a delta guarantees no epsilon on its own, so the mechanism's epsilon is charged. */
  if (!is_local || (is_noisy && law.delta_pico > 0)) {
    return spec->epsilon_micro;
  }
  return is_noisy && spec->epsilon_micro < law.epsilon_micro ? spec->epsilon_micro : law.epsilon_micro;
}

uint64_t cv_exposure_token_micro(const struct cv_campaign_file *file) {
  uint64_t micro = releases_micro(&file->spec);
  return cv_spec_is_exact(&file->spec) ? micro : micro + file->gold.gold.epsilon_micro;
}

/* ---- as text ---- */

static double epsilon(double micro) {
  return micro / (double)CV_MICRO;
}

/* How often a row is used on average: three digits of a small number, and a large one as a count. */
static struct cv_count_text average_text(double mean) {
  struct cv_count_text text = cv_count_text((uint64_t)fmin(round(mean), 1e18));
  if (mean < 100) {
    (void)snprintf(text.text, sizeof(text.text), "%.3g", mean);
  }
  return text;
}

static void say_uses(const struct cv_exposure *exposure, char *to, size_t size) {
  const char *verb = exposure->is_past ? "was" : "may be";
  if (!exposure->is_known) {
    cv_text_print(
        to, size,
        "how often a row of %s was used is not known here: once at most if one gateway had the file, or all of "
        "them its row_key, a common seed or parts of it",
        exposure->file);
  } else if (!exposure->replacement) {
    cv_text_print(to, size, "a row of %s %s used once at most", exposure->file, verb);
  } else if (exposure->is_expected) {
    cv_text_print(to, size,
                  "a row of %s will be used about %s times on average, the most of an item, and one of them %s%s times",
                  exposure->file, average_text(exposure->mean).text, exposure->is_counted ? "about " : "at most ",
                  cv_count_text(exposure->most).text);
  } else if (exposure->is_past) {
    cv_text_print(to, size, "a row of %s was used %s times on average, the most of an item, and %s%s times",
                  exposure->file, average_text(exposure->mean).text, exposure->is_counted ? "one of them " : "at most ",
                  cv_count_text(exposure->most).text);
  } else {
    cv_text_print(to, size,
                  "a row of %s may be used up to %s times (replacement: true), %s if items and rows come alike",
                  exposure->file, cv_count_text(exposure->most).text, average_text(exposure->mean).text);
  }
}

/* With persons each row gives at most one token, and each person is one worker. */
static void say_persons(const struct cv_exposure *exposure, const char *uses, char *to, size_t size) {
  double micro = (double)exposure->token_micro;
  char rest[160] = "";
  if (exposure->beyond > 0) {
    cv_text_print(rest, sizeof(rest), "; %s %s of its %s rows unused",
                  exposure->is_once ? "one row of an item for each person, and tokens_per_worker, leave"
                                    : "tokens_per_worker leaves",
                  cv_count_text(exposure->beyond).text, cv_count_text(exposure->rows).text);
  }
  cv_text_print(
      to, size,
      "%s: epsilon %g; each of %s persons is a worker and is charged that for every row it gives, up to %s x %g "
      "= %.6g%s",
      uses, epsilon(micro), cv_count_text(exposure->persons).text, cv_count_text(exposure->person_most).text,
      epsilon(micro), epsilon((double)exposure->person_most * micro), rest);
}

void cv_exposure_text(const struct cv_exposure *exposure, char *to, size_t size) {
  char uses[400];
  if (!exposure->is_data) {
    to[0] = '\0';
    return;
  }
  say_uses(exposure, uses, sizeof(uses));
  if (exposure->is_exact) {
    cv_text_print(to, size, "%s: no epsilon, the third-party %s exact sums", uses, exposure->is_past ? "saw" : "sees");
  } else if (exposure->persons > 0) {
    say_persons(exposure, uses, to, size);
  } else if (exposure->replacement) {
    double micro = (double)exposure->token_micro;
    cv_text_print(to, size,
                  "%s: epsilon up to %s x %g = %.6g for the score of a row; replacement: false uses each once at most",
                  uses, cv_count_text(exposure->most).text, epsilon(micro), epsilon((double)exposure->most * micro));
  } else {
    cv_text_print(
        to, size,
        "%s: epsilon %g for the score of a row (names of items, and how many rows each has, are public); a person with "
        "many rows is charged for each (items.worker names the column of persons)",
        uses, epsilon((double)exposure->token_micro));
  }
}

void cv_exposure_print(const struct cv_exposure *exposure, const char *head, FILE *to) {
  char text[CV_EXPOSURE_BYTES];
  cv_exposure_text(exposure, text, sizeof(text));
  if (text[0] != '\0') {
    (void)fprintf(to, "%s%s\n", head, text);
  }
}

json_t *cv_exposure_json(const struct cv_exposure *exposure) {
  if (!exposure->is_data) {
    return json_null();
  }
  json_t *most = exposure->is_known ? json_integer((json_int_t)exposure->most) : json_null();
  json_t *micro = exposure->is_exact || !exposure->is_known
                      ? json_null()
                      : json_integer((json_int_t)cv_exposure_micro(exposure, exposure->most));
  json_t *all = json_pack("{s:I, s:b, s:f, s:o, s:b, s:o}", "rows", (json_int_t)exposure->rows, "replacement",
                          exposure->replacement, "uses_mean", exposure->mean, "uses_most", most, "uses_counted",
                          exposure->is_counted, "row_most_micro", micro);
  if (exposure->persons > 0) {
    all = cv_json_set(all, "persons", json_integer((json_int_t)exposure->persons));
    all = cv_json_set(all, "person_rows_most", json_integer((json_int_t)exposure->person_most));
    micro =
        exposure->is_exact ? json_null() : json_integer((json_int_t)cv_exposure_micro(exposure, exposure->person_most));
    all = cv_json_set(all, "person_most_micro", micro);
    all = cv_json_set(all, "rows_beyond", json_integer((json_int_t)exposure->beyond));
  }
  return all;
}
