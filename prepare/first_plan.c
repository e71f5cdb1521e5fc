/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare/first_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"

enum { EPSILON_DOUBLED = 10, EPSILON_MOST = 20, TEXT_BYTES = 160 };

/* ---- whether rows last ---- */

/* A want of the first plan that the rows of each arm do not last for, if that ends the campaign. */
static const struct cv_want *find_short(const uint64_t *rows, struct cv_policy *policy,
                                        const struct cv_policy_step *step) {
  const struct cv_want *found = NULL;
  size_t lacking = 0;
  bool goes_on = true;
  for (size_t i = 0; i < step->wants; i++) {
    const struct cv_want *want = &step->want[i];
    if (rows[want->arm] < want->tokens) {
      found = want;
      lacking++;
      goes_on = cv_policy_exhaust(policy, want->arm) && goes_on;
    }
  }
  return goes_on && lacking < step->wants ? NULL : found;
}

/* Of a spec whose policy has been checked. *ret_short: such a want; 0 tokens: there is none. */
static enum cv_err look(const struct cv_spec *spec, uint64_t seed, const uint64_t *rows, struct cv_want *ret_short) {
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  CV_TRY(cv_policy_new(spec, seed, &policy));
  enum cv_err err = cv_policy_step(policy, 1, &step);
  const struct cv_want *want = err == CV_OK ? find_short(rows, policy, &step) : NULL;
  *ret_short = want == NULL ? (struct cv_want){0} : *want;
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return err;
}

/* ---- what would help ---- */

struct search {
  const struct cv_prepared *prepared;
  uint64_t *rows; /* of each arm */
  char *text;     /* the remedies so far, and the last one of them, which is not yet written */
  char last[TEXT_BYTES];
  size_t size;
};

static void add(struct search *search, const char *fmt, ...) CV_PRINTF(2, 3);
static void add(struct search *search, const char *fmt, ...) {
  size_t used = strlen(search->text);
  if (search->last[0] != '\0') {
    cv_text_print(search->text + used, search->size - used, "%s%s", used == 0 ? "" : ", ", search->last);
  }
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(search->last, sizeof(search->last), fmt, args);
  va_end(args);
}

/* Whether a campaign can be so, and its rows then last for the first plan. */
static bool lasts(const struct search *search, struct cv_spec *spec, const uint64_t *rows) {
  struct cv_want lacking;
  const struct cv_param *bad;
  return cv_policy_check(&spec->policy, &bad, NULL) == CV_OK && cv_spec_check(spec, NULL) == CV_OK &&
         cv_policy_fits_told(spec, NULL) == CV_OK && look(spec, search->prepared->seed, rows, &lacking) == CV_OK &&
         lacking.tokens == 0;
}

static const struct cv_spec *spec_of(const struct search *search) {
  return &search->prepared->file.spec;
}

static void try_epsilon(struct search *search) {
  bool has_noise = cv_spec_has_noise(spec_of(search));
  const struct cv_param *own = cv_params_find(&spec_of(search)->privatizer.params, "epsilon");
  double epsilon = has_noise                     ? (double)spec_of(search)->epsilon_micro / (double)CV_MICRO
                   : own == NULL || own->is_text ? 0
                                                 : own->number;
  for (int i = 0; i < EPSILON_DOUBLED && epsilon > 0 && 2 * epsilon <= EPSILON_MOST; i++) {
    struct cv_spec spec = *spec_of(search); /* borrows its arrays, as all copies here */
    epsilon *= 2;
    spec.epsilon_micro = has_noise ? (uint64_t)(epsilon * (double)CV_MICRO + .5) : spec.epsilon_micro;
    if (!has_noise && cv_params_set_number(&spec.privatizer.params, "epsilon", epsilon) != CV_OK) {
      return;
    }
    if (lasts(search, &spec, search->rows)) {
      add(search, "%s.epsilon: %.6g", has_noise ? "privacy" : "privatizer", epsilon);
      return;
    }
  }
}

/* Smaller and smaller rounds of this policy; 0: they have no size, or none helps. */
static double smaller_rounds(const struct search *search, const struct cv_spec *of) {
  const struct cv_param *own = cv_params_find(&of->policy.params, "tokens_per_round");
  double tokens = own == NULL || own->is_text ? 0 : own->number;
  while (tokens > 1) {
    struct cv_spec spec = *of;
    tokens = ceil(tokens / 2);
    if (cv_params_set_number(&spec.policy.params, "tokens_per_round", tokens) == CV_OK &&
        lasts(search, &spec, search->rows)) {
      return tokens;
    }
  }
  return 0;
}

static void try_rounds(struct search *search) {
  double tokens = smaller_rounds(search, spec_of(search));
  if (tokens > 0) {
    add(search, "policy.tokens_per_round: %.0f", tokens);
  }
}

/* The other one of the two that find classes with a proof; with smaller rounds, if it needs them. */
static void try_policy(struct search *search) {
  struct cv_spec spec = *spec_of(search);
  bool is_ppar = strcmp(spec.policy.name, "ppar") == 0, is_kl = strcmp(spec.policy.name, "ppar-kl") == 0;
  if (!is_ppar && !is_kl) {
    return;
  }
  static const char *const kept[] = {"alpha", "delta"};
  struct cv_choice other = {0};
  const struct cv_param *bad;
  cv_text_print(other.name, sizeof(other.name), "%s", is_ppar ? "ppar-kl" : "ppar");
  for (size_t i = 0; i < CV_COUNT(kept); i++) {
    const struct cv_param *param = cv_params_find(&spec.policy.params, kept[i]);
    if (param != NULL && !param->is_text && cv_params_set_number(&other.params, kept[i], param->number) != CV_OK) {
      return;
    }
  }
  const struct cv_policy_class *class = cv_policy_find(other.name);
  if (class->once_key != NULL && cv_params_set_text(&other.params, class->once_key, class->once_word) != CV_OK) {
    return;
  }
  spec.policy = other;
  if (cv_policy_check(&spec.policy, &bad, NULL) != CV_OK) {
    return;
  }
  double tokens = lasts(search, &spec, search->rows) ? 0 : smaller_rounds(search, &spec);
  if (tokens > 0) {
    add(search, "policy %s with tokens_per_round: %.0f", other.name, tokens);
  } else if (lasts(search, &spec, search->rows)) {
    add(search, "policy %s", other.name);
  }
}

static int most_first(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x > y ? -1 : x < y;
}

/* The items with the most rows: of half the items, and so on. */
static void try_fewer(struct search *search) {
  struct cv_spec spec = *spec_of(search);
  uint64_t *rows = calloc(spec.arms, sizeof(*rows));
  bool fits = rows != NULL && spec.edges == 0 && search->prepared->file.gold.gold.items == 0;
  if (fits) {
    memcpy(rows, search->rows, spec.arms * sizeof(*rows));
    qsort(rows, spec.arms, sizeof(*rows), most_first);
  }
  for (uint32_t arms = spec.arms / 2; fits && arms > 1; arms /= 2) {
    spec.arms = arms;
    if (lasts(search, &spec, rows)) {
      add(search, "items.top: %u", arms);
      break;
    }
  }
  free(rows);
}

static void try_replacement(struct search *search) {
  const struct cv_items *items = &search->prepared->file.items;
  if (!cv_spec_is_local(spec_of(search)) && items->csv.worker_column[0] == '\0') {
    add(search, "items.replacement: true");
  }
}

/* ---- both ---- */

static enum cv_err refuse(struct search *search, const struct cv_want *want, struct cv_why *why) {
  const struct cv_prepared *prepared = search->prepared;
  char text[2 * TEXT_BYTES] = "";
  search->text = text;
  search->size = sizeof(text);
  try_rounds(search);
  try_policy(search);
  try_epsilon(search);
  try_fewer(search);
  try_replacement(search);
  add(search, "%u rows of each item", want->tokens);
  return cv_fail(why, CV_ERR_INVALID,
                 "%s:%u: item \"%s\" has %llu rows in %s, but the first plan needs %u of them; expected %s%s%s",
                 prepared->file.path, prepared->file.items.line, prepared->name[want->arm],
                 (unsigned long long)search->rows[want->arm], prepared->file.items.csv.file, want->tokens, text,
                 text[0] == '\0' ? "" : " or ", search->last);
}

enum cv_err cv_first_plan_check(const struct cv_prepared *prepared, struct cv_why *why) {
  const struct cv_items *items = &prepared->file.items;
  if (items->source != CV_SOURCE_CSV || items->csv.replacement) {
    return CV_OK;
  }
  struct search search = {.prepared = prepared};
  struct cv_want lacking = {0};
  uint32_t arms = prepared->file.spec.arms;
  search.rows = calloc(arms, sizeof(*search.rows));
  enum cv_err err = search.rows == NULL ? CV_ERR_NOMEM : CV_OK;
  for (uint32_t i = 0; i < arms && err == CV_OK; i++) {
    search.rows[i] = cv_quality_rows(prepared->source.quality, i);
  }
  if (err == CV_OK) {
    err = look(&prepared->file.spec, prepared->seed, search.rows, &lacking);
  }
  if (err != CV_OK) {
    err = cv_fail(why, err, "%s", cv_err_text(err));
  } else if (lacking.tokens > 0) {
    err = refuse(&search, &lacking, why);
  }
  free(search.rows);
  return err;
}
