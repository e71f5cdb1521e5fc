/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section `items`: a data file (`source: csv`, `jsonl` or `sqlite`), items drawn at random (`synthetic: {...}`),
 * items with given means (`list: [...]`), means in even steps (`ladder: {...}`), or gains that change each round
 * (`adversary: {...}`).
 */
#include "common/campaign/read_items.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/rules.h"

/* In the order of enum cv_format. */
static const char *const source_words[] = {"csv", "jsonl", "sqlite", NULL};
static const char *const missing_words[] = {"refuse", "skip", NULL};
static const char *const outside_words[] = {"refuse", "clamp", NULL};

#define LAW_WORD(file, kind, word, ...) word,
const char *const cv_rewards_words[] = {CV_REWARD_LAWS(LAW_WORD) NULL};
/* In the order of enum cv_rewards; workers for hire are not compared with each other. */
static const char *const item_rewards_words[] = {CV_REWARD_LAWS(LAW_WORD) CV_REWARDS_PAIRS_WORD, NULL};
#define ITEM_REWARDS_RULE(at)              \
  CV_REWARDS_WORDS_RULE(                   \
      at, item_rewards_words, "bernoulli", \
      "the law of simulated scores around an item's mean; pairs: two items are compared, by their means as strengths")

#define ADVERSARY_WORD(file, word) word,
static const char *const adversary_words[] = {CV_ADVERSARIES(ADVERSARY_WORD) NULL};
static const char *const delimiter_words[] = {"comma", "tab", NULL};

/* The values of all forms, filled by the rule tables. */
struct form {
  int source, rewards, delimiter, adversary, missing, outside;
  double mean, variance, spread, distance, step;
  uint64_t count, seed, best, rounds, memory;
  char *path, *item, *versus, *score, *name, *worker, *query;
  bool replacement;
  uint64_t first_worker, top, least_rows, row_memory;
};

#define FIELD(name) offsetof(struct form, name)

#define COUNT_RULE(least, usual)                                                                          \
  {                                                                                                       \
    .key = "count", .type = CV_CONFIG_WHOLE, .offset = FIELD(count), .low = (least), .high = CV_ARMS_MAX, \
    .required = (usual) == NULL, .fallback = (usual), .example = "20", .help = "how many items"           \
  }

static const struct cv_config_rule csv_rules[] = {
    {.key = "source",
     .type = CV_CONFIG_WORD,
     .offset = FIELD(source),
     .choices = source_words,
     .required = true,
     .help = "the kind of file: csv has separated columns and a header, jsonl one JSON object a line; sqlite is a "
             "database, of which a query is read"},
    {.key = "path",
     .type = CV_CONFIG_PATH,
     .offset = FIELD(path),
     .required = true,
     .example = "men.csv",
     .help = "the file; csv and jsonl files may be packed, their names then end in .gz or .zst"},
    {.key = "item",
     .type = CV_CONFIG_TEXT,
     .offset = FIELD(item),
     .required = true,
     .example = "item_id",
     .help = "the column, or JSON key, with an item's name"},
    {.key = "versus",
     .type = CV_CONFIG_TEXT,
     .offset = FIELD(versus),
     .example = "opponent",
     .help = "the column with the item that this one was compared with; then a score of 1 says that the item won, 0 "
             "that it lost"},
    {.key = "score",
     .type = CV_CONFIG_TEXT,
     .offset = FIELD(score),
     .required = true,
     .example = "rating",
     .help = "the column, or JSON key, with a score"},
    {.key = "delimiter",
     .type = CV_CONFIG_WORD,
     .offset = FIELD(delimiter),
     .choices = delimiter_words,
     .example = "tab",
     .help = "what separates columns; by the file's name unless said: a tab in .tsv and .tab files, else a comma"},
    {.key = "scale",
     .type = CV_CONFIG_OTHER,
     .noun = "a list of two numbers, the lower one first",
     .example = "[1, 5]",
     .help = "the answers that become 0 and 1: the range of the question, whatever was answered; required with noise "
             "or a privatizer, since the file's own range would tell of single rows"},
    {.key = "outside",
     .type = CV_CONFIG_WORD,
     .offset = FIELD(outside),
     .choices = outside_words,
     .fallback = "refuse",
     .help = "a score outside the scale: refuse it as an error, or clamp it to the nearer end"},
    {.key = "replacement",
     .type = CV_CONFIG_BOOL,
     .offset = FIELD(replacement),
     .fallback = "false",
     .help = "true: a token draws any row of its item, and a row drawn N times is charged N times; false: each row is "
             "one token at most"},
    {.key = "worker",
     .type = CV_CONFIG_TEXT,
     .offset = FIELD(worker),
     .example = "user_id",
     .help = "the column that names the person of a row: each person then is one worker, gives each of its rows once "
             "and is charged for each"},
    {.key = "first_worker",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(first_worker),
     .low = 1,
     .high = 0x1p47,
     .fallback = "1",
     .help = "worker id of the file's first person; the others follow"},
    {.key = "query",
     .type = CV_CONFIG_TEXT,
     .offset = FIELD(query),
     .example = "SELECT film, stars FROM ratings",
     .help = "with source sqlite, where it is required: one SELECT with the columns that item, score and worker name"},
    {.key = "missing",
     .type = CV_CONFIG_WORD,
     .offset = FIELD(missing),
     .choices = missing_words,
     .fallback = "refuse",
     .help = "a row without a score, which is empty, NA, NaN or null: refuse it as an error, or skip it"},
    {.key = "top",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(top),
     .high = CV_ARMS_MAX,
     .fallback = "0",
     .example = "50",
     .help = "how many items stay, those with most rows, and of equals the first by name; 0: all"},
    {.key = "min_rows",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(least_rows),
     .high = 1e12,
     .fallback = "0",
     .example = "20",
     .help = "rows with a score that an item needs to stay; 0: one"},
    {.key = "memory",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(row_memory),
     .low = 1,
     .high = 1 << 20,
     .fallback = "512",
     .example = "2048",
     .help = "MiB of memory that the rows may take while they are read (12 bytes each, 16 with worker, and each name), "
             "and what SQLite may take for a query"},
};

/* The forms with a mapping of their own are one key in the section. */
#define FORM_RULE(word, what, sample, says) \
  { .key = (word), .type = CV_CONFIG_OTHER, .noun = (what), .required = true, .example = (sample), .help = (says) }

static const struct cv_config_rule synthetic_form[] = {
    FORM_RULE("synthetic", "a mapping of keys and values", "{count: 20, variance: 0.1}", "items with means by chance")};
static const struct cv_config_rule ladder_form[] = {
    FORM_RULE("ladder", "a mapping like {count: 5, mean: 0.9, distance: 0.1}", "{count: 5, mean: 0.9, distance: 0.1}",
              "items with means in even steps")};
static const struct cv_config_rule adversary_form[] = {
    FORM_RULE("adversary", "a mapping like {name: stochastic, count: 4}", "{name: stochastic, count: 4}",
              "items whose gains change with the round")};

static const struct cv_config_rule synthetic_rules[] = {
    COUNT_RULE(1, NULL),
    {.key = "mean",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(mean),
     .low = -1e6,
     .high = 1e6,
     .fallback = "0.5",
     .help = "mean of the normal distribution of the items' means"},
    {.key = "variance",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(variance),
     .high = 1e12,
     .fallback = "10",
     .help = "its variance; a mean outside 0 to 1 is moved to that end"},
    ITEM_REWARDS_RULE(FIELD(rewards)),
    CV_SPREAD_RULE(FIELD(spread)),
    CV_SEED_RULE(FIELD(seed)),
};

static const struct cv_config_rule ladder_rules[] = {
    COUNT_RULE(1, NULL),
    {.key = "mean",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(mean),
     .high = 1,
     .required = true,
     .example = "0.9",
     .help = "mean score of the best items"},
    {.key = "best",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(best),
     .low = 1,
     .high = CV_ARMS_MAX,
     .fallback = "1",
     .help = "how many items have that mean"},
    {.key = "distance",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(distance),
     .high = 1,
     .required = true,
     .example = "0.1",
     .help = "how far the next item is below, in scores"},
    {.key = "step",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(step),
     .high = 1,
     .fallback = "0",
     .help = "how far each further item is below the one before, in scores"},
    ITEM_REWARDS_RULE(FIELD(rewards)),
    CV_SPREAD_RULE(FIELD(spread)),
    CV_SEED_RULE(FIELD(seed)),
};

static const struct cv_config_rule adversary_rules[] = {
    {.key = "name",
     .type = CV_CONFIG_WORD,
     .offset = FIELD(adversary),
     .choices = adversary_words,
     .noun = "adversary",
     .required = true,
     .example = "stochastic",
     .help = "which adversary sets the gains (policies.md)"},
    COUNT_RULE(2, "4"),
    {.key = "best",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(best),
     .low = 1,
     .high = CV_ARMS_MAX,
     .fallback = "1",
     .help = "which item is the best one, from 1; not for deterministic"},
    {.key = "rounds",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(rounds),
     .high = 1 << 28,
     .fallback = "0",
     .help = "length of the game in tokens; 0: limits.tokens"},
    {.key = "memory",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(memory),
     .high = CV_MEMORY_MAX,
     .fallback = "0",
     .help = "how many rounds the adversary looks back; its own unless said"},
    CV_SEED_RULE(FIELD(seed)),
};

static const struct cv_config_rule given_rules[] = {
    FORM_RULE("list", "a list of items", "[{name: Roma, mean: 0.9}, {name: Blue Fish, mean: 0.6}]",
              "the items, each a mapping"),
    ITEM_REWARDS_RULE(FIELD(rewards)), CV_SPREAD_RULE(FIELD(spread)), CV_SEED_RULE(FIELD(seed))};

static const struct cv_config_rule item_rules[] = {
    {.key = "name",
     .type = CV_CONFIG_TEXT,
     .offset = FIELD(name),
     .required = true,
     .example = "Roma",
     .help = "the item's name, distinct from the others'"},
    {.key = "mean",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(mean),
     .high = 1,
     .example = "0.9",
     .help = "mean of its simulated scores; left out of all items where people give the scores"},
    CV_SPREAD_RULE(FIELD(spread)),
};

const struct cv_campaign_section cv_items_sections[] = {
    CV_CAMPAIGN_SECTION_OF("items", "a data file", "Scores are rows of a file.", csv_rules),
    CV_CAMPAIGN_SECTION_OF("items", "a list", "Items with given means, as simulated workers see them.", given_rules),
    CV_CAMPAIGN_SECTION_OF("items.list", NULL, "An item of the list.", item_rules),
    CV_CAMPAIGN_SECTION_OF("items", "a ladder", "Simulated items with means in even steps.", ladder_form),
    CV_CAMPAIGN_SECTION_OF("items.ladder", NULL, "The best items have the highest mean; the others follow below.",
                           ladder_rules),
    CV_CAMPAIGN_SECTION_OF("items", "synthetic", "Simulated items with means by chance.", synthetic_form),
    CV_CAMPAIGN_SECTION_OF("items.synthetic", NULL, "The items' means are drawn from a normal distribution.",
                           synthetic_rules),
    CV_CAMPAIGN_SECTION_OF("items", "an adversary", "Gains that change with the round, for bandits.", adversary_form),
    CV_CAMPAIGN_SECTION_OF("items.adversary", NULL, "The adversary's game.", adversary_rules),
    {0},
};

static void form_fini(struct form *form) {
  free(form->path);
  free(form->item);
  free(form->versus);
  free(form->score);
  free(form->name);
  free(form->worker);
  free(form->query);
}

static void take(char **text, char **ret) {
  *ret = *text;
  *text = NULL;
}

/* csv */

static enum cv_err take_name(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section, const char *key,
                             const char *text, char *to, struct cv_why *why) {
  if (!cv_name_is_valid(text)) {
    char name[64];
    (void)snprintf(name, sizeof(name), "%s.%s", section, key);
    return cv_yaml_expected(yaml, cv_yaml_find(yaml, mapping, key).value, name, "a name of 1 to 63 bytes", why);
  }
  (void)snprintf(to, CV_NAME_BYTES, "%s", text);
  return CV_OK;
}

static enum cv_err take_scale(struct cv_yaml *yaml, const yaml_node_t *mapping, struct cv_items_csv *ret,
                              struct cv_why *why) {
  static const char expected[] = "a list of two numbers, the lower one first";
  const yaml_node_t *scale = cv_yaml_find(yaml, mapping, "scale").value;
  if (scale == NULL) {
    return CV_OK;
  }
  if (scale->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(yaml, scale, "items.scale", expected, why);
  }
  double end[2];
  for (size_t i = 0; i < cv_yaml_items(scale); i++) {
    const yaml_node_t *node = cv_yaml_item(yaml, scale, i);
    /* In the loop, because the third value would be written behind the array. */
    if (i >= CV_COUNT(end)) {
      return cv_yaml_fail(yaml, scale, why, "items.scale has more than 2 values; expected %s", expected);
    }
    if (node->type != YAML_SCALAR_NODE || !cv_value_real(cv_yaml_text(node), &end[i])) {
      return cv_yaml_expected(yaml, node, "items.scale", expected, why);
    }
  }
  if (cv_yaml_items(scale) != CV_COUNT(end)) {
    return cv_yaml_fail(yaml, scale, why, "items.scale has fewer than 2 values; expected %s", expected);
  }
  if (!(end[0] < end[1])) {
    return cv_yaml_fail(yaml, scale, why, "items.scale is [%g, %g]; expected %s", end[0], end[1], expected);
  }
  ret->scale = (struct cv_scale){.low = end[0], .high = end[1]};
  return CV_OK;
}

/* What becomes of a score outside the scale. */
static enum cv_err take_outside(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct form *form,
                                struct cv_items_csv *ret, struct cv_why *why) {
  struct cv_yaml_pair outside = cv_yaml_find(yaml, mapping, "outside");
  ret->clamps = form->outside == 1;
  return outside.key == NULL || cv_scale_is_declared(&ret->scale)
             ? CV_OK
             : cv_yaml_fail(yaml, outside.key, why,
                            "items.outside without items.scale; expected the range of the question as items.scale");
}

/* Each person in the file is a separate worker, with the rows that name the person. */
static enum cv_err take_persons(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct form *form,
                                struct cv_items_csv *ret, struct cv_why *why) {
  struct cv_yaml_pair worker = cv_yaml_find(yaml, mapping, "worker");
  struct cv_yaml_pair first = cv_yaml_find(yaml, mapping, "first_worker");
  if (worker.key == NULL) {
    return first.key == NULL
               ? CV_OK
               : cv_yaml_fail(
                     yaml, first.key, why,
                     "items.first_worker without items.worker; expected the column of persons as items.worker");
  }
  CV_TRY(take_name(yaml, mapping, "items", "worker", form->worker, ret->worker_column, why));
  if (strcmp(form->worker, form->item) == 0 || strcmp(form->worker, form->score) == 0) {
    return cv_yaml_fail(yaml, worker.value, why,
                        "items.worker is the column of the %s; expected one that names persons",
                        strcmp(form->worker, form->item) == 0 ? "items" : "scores");
  }
  if (form->replacement) {
    return cv_yaml_fail(yaml, cv_yaml_find(yaml, mapping, "replacement").value, why,
                        "items.replacement is true; expected false with items.worker: a person gives each row once");
  }
  ret->first_worker = form->first_worker;
  return CV_OK;
}

/* Rows of comparisons: a token is drawn from those of two items, and no person is known who gave it. */
static enum cv_err take_versus(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct form *form,
                               struct cv_items_csv *ret, struct cv_why *why) {
  struct cv_yaml_pair versus = cv_yaml_find(yaml, mapping, "versus"), worker = cv_yaml_find(yaml, mapping, "worker");
  if (versus.key == NULL) {
    return CV_OK;
  }
  CV_TRY(take_name(yaml, mapping, "items", "versus", form->versus, ret->versus_column, why));
  if (strcmp(form->versus, form->item) == 0 || strcmp(form->versus, form->score) == 0) {
    return cv_yaml_fail(yaml, versus.value, why,
                        "items.versus is the column of the %s; expected one that names opponents",
                        strcmp(form->versus, form->item) == 0 ? "items" : "scores");
  }
  if (worker.key != NULL) {
    return cv_yaml_fail(yaml, worker.key, why, "items.worker with items.versus; expected no persons with comparisons");
  }
  return CV_OK;
}

/* Whether a file's name ends so, without the ending of its packing. */
static bool is_named(const char *path, const char *end) {
  static const char *const packed[] = {".gz", ".zst"};
  size_t n = strlen(path), m = strlen(end);
  for (size_t i = 0; i < CV_COUNT(packed); i++) {
    size_t own = strlen(packed[i]);
    n -= n >= own && strcmp(path + n - own, packed[i]) == 0 ? own : 0;
  }
  return n >= m && strncmp(path + n - m, end, m) == 0;
}

/* The keys that only one format has. */
static enum cv_err take_format(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form,
                               struct cv_items_csv *ret, struct cv_why *why) {
  struct cv_yaml_pair delimiter = cv_yaml_find(yaml, mapping, "delimiter"),
                      query = cv_yaml_find(yaml, mapping, "query");
  ret->format = (enum cv_format)form->source;
  if (delimiter.key != NULL && ret->format != CV_FORMAT_CSV) {
    return cv_yaml_fail(yaml, delimiter.key, why, "items.delimiter with source %s; expected it with source csv alone",
                        source_words[form->source]);
  }
  if (query.key != NULL && ret->format != CV_FORMAT_SQLITE) {
    return cv_yaml_fail(yaml, query.key, why, "items.query with source %s; expected it with source sqlite alone",
                        source_words[form->source]);
  }
  if (query.key == NULL && ret->format == CV_FORMAT_SQLITE) {
    return cv_yaml_fail(yaml, mapping, why, "missing items.query; expected one SELECT with source sqlite");
  }
  bool is_tab =
      form->delimiter < 0 ? is_named(form->path, ".tsv") || is_named(form->path, ".tab") : form->delimiter == 1;
  ret->delimiter = is_tab ? '\t' : ',';
  take(&form->query, &ret->query);
  return CV_OK;
}

/* Comparisons are read from separated columns alone, and all of their rows count. */
static enum cv_err check_versus(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct cv_items_csv *csv,
                                struct cv_why *why) {
  static const char *const others[] = {"missing", "outside", "top", "min_rows"};
  if (csv->versus_column[0] == '\0') {
    return CV_OK;
  }
  if (csv->format != CV_FORMAT_CSV) {
    return cv_yaml_fail(yaml, cv_yaml_find(yaml, mapping, "source").value, why,
                        "items.source is %s; expected csv with items.versus", source_words[csv->format]);
  }
  for (size_t i = 0; i < CV_COUNT(others); i++) {
    struct cv_yaml_pair pair = cv_yaml_find(yaml, mapping, others[i]);
    if (pair.key != NULL) {
      return cv_yaml_fail(yaml, pair.key, why, "items.%s with items.versus; expected it for scores of single items",
                          others[i]);
    }
  }
  return csv->replacement ? CV_OK
                          : cv_yaml_fail(yaml, cv_yaml_find(yaml, mapping, "versus").key, why,
                                         "items.versus without replacement; expected replacement: true, since an "
                                         "answer may draw any row of its two items");
}

static enum cv_err load_csv(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form, struct cv_items *items,
                            struct cv_why *why) {
  struct cv_items_csv *ret = &items->csv;
  items->source = CV_SOURCE_CSV;
  items->csv = (struct cv_items_csv){0};
  form->delimiter = -1;
  CV_TRY(cv_section_load(yaml, mapping, "items", csv_rules, CV_COUNT(csv_rules), form, why));
  CV_TRY(take_name(yaml, mapping, "items", "item", form->item, ret->item_column, why));
  CV_TRY(take_name(yaml, mapping, "items", "score", form->score, ret->score_column, why));
  CV_TRY(take_scale(yaml, mapping, ret, why));
  CV_TRY(take_outside(yaml, mapping, form, ret, why));
  CV_TRY(take_versus(yaml, mapping, form, ret, why));
  CV_TRY(take_persons(yaml, mapping, form, ret, why));
  CV_TRY(take_format(yaml, mapping, form, ret, why));
  ret->skips_missing = form->missing == 1;
  ret->top = (uint32_t)form->top;
  ret->least_rows = form->least_rows;
  ret->memory = form->row_memory;
  ret->replacement = form->replacement;
  CV_TRY(check_versus(yaml, mapping, ret, why));
  ret->score_line = cv_yaml_line(cv_yaml_find(yaml, mapping, "score").key);
  take(&form->path, &ret->file);
  return CV_OK;
}

/* synthetic and given */

double cv_spread_usual(enum cv_rewards rewards) {
#define USUAL_SPREAD(file, kind, word, usual, ...) usual,
  static const double usual[] = {CV_REWARD_LAWS(USUAL_SPREAD)};
  return rewards < CV_REWARDS_KINDS ? usual[rewards] : 0;
}

enum cv_err cv_spread_take(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section,
                           enum cv_rewards rewards, double spread, double *ret, struct cv_why *why) {
  const yaml_node_t *node = cv_yaml_find(yaml, mapping, "spread").value;
#define MAY_BE_ZERO(file, kind, word, usual, may_be_zero) may_be_zero,
  static const bool may_be_zero[] = {CV_REWARD_LAWS(MAY_BE_ZERO)};
  if (node != NULL && rewards < CV_REWARDS_KINDS && !may_be_zero[rewards] && spread <= 0) {
    return cv_yaml_fail(yaml, node, why, "%s.spread is 0; expected more than 0 with rewards %s", section,
                        cv_rewards_words[rewards]);
  }
  *ret = spread;
  return CV_OK;
}

static enum cv_err take_spread(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section,
                               enum cv_rewards rewards, double fallback, const struct form *form, double *ret,
                               struct cv_why *why) {
  /* 0 may be written or left out, and means something else then: the form alone cannot tell. */
  bool is_said = cv_yaml_find(yaml, mapping, "spread").key != NULL;
  return cv_spread_take(yaml, mapping, section, rewards, is_said ? form->spread : fallback, ret, why);
}

static void take_seed(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct form *form, struct cv_items *ret) {
  ret->has_seed = cv_yaml_find(yaml, mapping, "seed").key != NULL;
  ret->seed = form->seed;
}

static enum cv_err take_rewards(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section,
                                const struct form *form, struct cv_items_law *ret, struct cv_why *why) {
  ret->rewards = (enum cv_rewards)form->rewards;
  return take_spread(yaml, mapping, section, ret->rewards, cv_spread_usual(ret->rewards), form, &ret->spread, why);
}

static enum cv_err load_synthetic(struct cv_yaml *yaml, const yaml_node_t *section, struct form *form,
                                  struct cv_items *ret, struct cv_why *why) {
  const yaml_node_t *mapping;
  CV_TRY(cv_section_only(yaml, section, "items", "synthetic", "a mapping of keys and values", &mapping, why));
  CV_TRY(cv_section_load(yaml, mapping, "items.synthetic", synthetic_rules, CV_COUNT(synthetic_rules), form, why));
  ret->source = CV_SOURCE_SYNTHETIC;
  ret->synthetic =
      (struct cv_items_synthetic){.count = (uint32_t)form->count, .mean = form->mean, .variance = form->variance};
  take_seed(yaml, mapping, form, ret);
  return take_rewards(yaml, mapping, "items.synthetic", form, &ret->synthetic.law, why);
}

static enum cv_err load_adversary(struct cv_yaml *yaml, const yaml_node_t *section, struct form *form,
                                  struct cv_items *ret, struct cv_why *why) {
  const yaml_node_t *mapping;
  CV_TRY(cv_section_only(yaml, section, "items", "adversary", "a mapping like {name: stochastic, count: 4}", &mapping,
                         why));
  CV_TRY(cv_section_load(yaml, mapping, "items.adversary", adversary_rules, CV_COUNT(adversary_rules), form, why));
  struct cv_yaml_pair best = cv_yaml_find(yaml, mapping, "best");
  bool is_fixed = strcmp(adversary_words[form->adversary], "deterministic") == 0;
  if (best.key != NULL && (is_fixed || form->best > form->count)) {
    return is_fixed ? cv_yaml_fail(yaml, best.key, why,
                                   "items.adversary.best does not apply to deterministic; expected no best")
                    : cv_yaml_fail(yaml, best.value, why, "items.adversary.best is %llu; expected 1 to %llu",
                                   (unsigned long long)form->best, (unsigned long long)form->count);
  }
  ret->source = CV_SOURCE_ADVERSARY;
  ret->adversary = (struct cv_items_adversary){.name = adversary_words[form->adversary],
                                               .count = (uint32_t)form->count,
                                               .best = is_fixed ? 2 : (uint32_t)form->best,
                                               .rounds = form->rounds,
                                               .has_memory = cv_yaml_find(yaml, mapping, "memory").key != NULL,
                                               .memory = (uint32_t)form->memory};
  take_seed(yaml, mapping, form, ret);
  return CV_OK;
}

static enum cv_err reserve_items(struct cv_yaml *yaml, size_t n, struct cv_items_given *ret, struct cv_why *why) {
  ret->item = calloc(n, sizeof(*ret->item));
  if (ret->item == NULL) {
    (void)cv_yaml_no_memory(yaml->path, why);
    return CV_ERR_NOMEM;
  }
  return CV_OK;
}

static enum cv_err load_ladder(struct cv_yaml *yaml, const yaml_node_t *section, struct form *form,
                               struct cv_items *items, struct cv_why *why) {
  static const double ROUNDED = 1e-12; /* tolerance: 0.9 - 0.4 - 5 x 0.1 is not exactly 0 */
  const yaml_node_t *mapping;
  CV_TRY(cv_section_only(yaml, section, "items", "ladder", "a mapping like {count: 5, mean: 0.9, distance: 0.1}",
                         &mapping, why));
  CV_TRY(cv_section_load(yaml, mapping, "items.ladder", ladder_rules, CV_COUNT(ladder_rules), form, why));
  struct cv_items_given *ret = &items->given;
  items->source = CV_SOURCE_GIVEN;
  *ret = (struct cv_items_given){0};
  take_seed(yaml, mapping, form, items);
  CV_TRY(take_rewards(yaml, mapping, "items.ladder", form, &ret->law, why));
  CV_TRY(reserve_items(yaml, form->count, ret, why));
  for (uint32_t i = 0; i < form->count; i++) {
    double below = i < form->best ? 0 : form->distance + form->step * (double)(i - form->best);
    if (form->mean - below < -ROUNDED) {
      return cv_yaml_fail(yaml, mapping, why, "items.ladder gives item %u the mean %g; expected none below 0", i + 1,
                          form->mean - below);
    }
    struct cv_item *item = &ret->item[ret->count++];
    *item = (struct cv_item){.mean = fmax(form->mean - below, 0), .spread = ret->law.spread};
  }
  return CV_OK;
}

static enum cv_err load_item(struct cv_yaml *yaml, const yaml_node_t *node, struct cv_items_given *given,
                             struct cv_names *names, struct cv_why *why) {
  static const char section[] = "items.list";
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, node, "an item", "a mapping like {name: Roma, mean: 0.7}", why);
  }
  struct form form = {.mean = (double)NAN};
  char name[CV_ITEM_BYTES];
  /* Counted only when it is complete, so that an error leaves no half item. */
  struct cv_item *item = &given->item[given->count];
  enum cv_err err = cv_section_load(yaml, node, section, item_rules, CV_COUNT(item_rules), &form, why);
  if (err == CV_OK) {
    err = cv_yaml_name(yaml, cv_yaml_find(yaml, node, "name").value, "items.list.name", "a name of 1 to 255 bytes",
                       name, sizeof(name), why);
  }
  if (err == CV_OK) {
    err = take_spread(yaml, node, section, given->law.rewards, given->law.spread, &form, &item->spread, why);
  }
  if (err == CV_OK && given->count > 0 && isnan(form.mean) != isnan(given->item[0].mean)) {
    err = cv_yaml_fail(yaml, node, why,
                       "item %s has %s mean, but the items before have %s; expected means of all or none",
                       cv_text_quote(name).text, isnan(form.mean) ? "no" : "a", isnan(form.mean) ? "one" : "none");
  }
  if (err == CV_OK) {
    item->mean = form.mean;
    cv_names_add(names, name);
    given->count++;
  }
  form_fini(&form);
  return err;
}

enum cv_err cv_given_repeated(struct cv_items_given *given, cv_given_compare *compare, uint32_t *ret) {
  uint32_t *order = calloc(given->count, sizeof(*order)), first = given->count;
  if (order == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < given->count; i++) {
    order[i] = i;
  }
  /* Sorted, equal items are neighbours. */
  qsort_r(order, given->count, sizeof(*order), compare, given);
  for (uint32_t i = 1; i < given->count; i++) {
    if (compare(&order[i - 1], &order[i], given) == 0) {
      uint32_t later = order[i] > order[i - 1] ? order[i] : order[i - 1];
      first = later < first ? later : first;
    }
  }
  free(order);
  *ret = first;
  return CV_OK;
}

static int by_name(const void *a, const void *b, void *given) {
  const char *const *name = ((const struct cv_items_given *)given)->name;
  return strcmp(name[*(const uint32_t *)a], name[*(const uint32_t *)b]);
}

static enum cv_err fail_twice(struct cv_yaml *yaml, const yaml_node_t *list, const char *const *name, uint32_t twice,
                              struct cv_why *why) {
  const yaml_node_t *node[2]; /* of the names */
  uint32_t first = 0;
  while (strcmp(name[first], name[twice]) != 0) {
    first++;
  }
  for (uint32_t i = 0; i < 2; i++) {
    node[i] = cv_yaml_find(yaml, cv_yaml_item(yaml, list, i == 0 ? first : twice), "name").value;
  }
  return cv_yaml_fail(
      yaml, cv_yaml_item(yaml, list, twice), why, "duplicate item %s, %s on line %u; expected distinct names",
      cv_text_quote(name[twice]).text,
      strcmp(cv_yaml_text(node[0]), cv_yaml_text(node[1])) == 0 ? "as" : "typed in other characters or blanks",
      cv_yaml_line(node[0]));
}

static enum cv_err take_names(struct cv_yaml *yaml, const yaml_node_t *list, struct cv_names *names,
                              struct cv_items_given *given, struct cv_why *why) {
  uint32_t twice;
  if (cv_names_take(names, &given->name) != CV_OK || cv_given_repeated(given, by_name, &twice) != CV_OK) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  return twice == given->count ? CV_OK : fail_twice(yaml, list, given->name, twice, why);
}

static enum cv_err load_list(struct cv_yaml *yaml, const yaml_node_t *list, struct cv_items_given *given,
                             struct cv_why *why) {
  size_t n = cv_yaml_items(list);
  if (n < 1 || n > CV_ARMS_MAX) {
    return cv_yaml_fail(yaml, list, why, "items.list has %zu items; expected 1 to %d", n, CV_ARMS_MAX);
  }
  CV_TRY(reserve_items(yaml, n, given, why));
  struct cv_names names = {0};
  enum cv_err err = CV_OK;
  for (size_t i = 0; i < n && err == CV_OK; i++) {
    err = load_item(yaml, cv_yaml_item(yaml, list, i), given, &names, why);
  }
  if (err == CV_OK) {
    err = take_names(yaml, list, &names, given, why);
  }
  cv_names_fini(&names);
  return err;
}

static enum cv_err load_given(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form,
                              struct cv_items *items, struct cv_why *why) {
  CV_TRY(cv_section_load(yaml, mapping, "items", given_rules, CV_COUNT(given_rules), form, why));
  struct cv_items_given *ret = &items->given;
  items->source = CV_SOURCE_GIVEN;
  *ret = (struct cv_items_given){0};
  take_seed(yaml, mapping, form, items);
  CV_TRY(take_rewards(yaml, mapping, "items", form, &ret->law, why));
  const yaml_node_t *list = cv_yaml_find(yaml, mapping, "list").value;
  if (list->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(yaml, list, "items.list", "a list of items", why);
  }
  return load_list(yaml, list, ret, why);
}

static enum cv_err load_form(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form, struct cv_items *ret,
                             struct cv_why *why) {
  CV_TRY(cv_campaign_keys(yaml, mapping, "items", cv_items_sections, why));
  if (cv_yaml_find(yaml, mapping, "synthetic").key != NULL) {
    return load_synthetic(yaml, mapping, form, ret, why);
  }
  if (cv_yaml_find(yaml, mapping, "adversary").key != NULL) {
    return load_adversary(yaml, mapping, form, ret, why);
  }
  if (cv_yaml_find(yaml, mapping, "ladder").key != NULL) {
    return load_ladder(yaml, mapping, form, ret, why);
  }
  if (cv_yaml_find(yaml, mapping, "list").key != NULL) {
    return load_given(yaml, mapping, form, ret, why);
  }
  if (cv_yaml_find(yaml, mapping, "source").key != NULL) {
    return load_csv(yaml, mapping, form, ret, why);
  }
  return cv_yaml_fail(yaml, mapping, why,
                      "items has no source of scores; expected source, synthetic, list, ladder or "
                      "adversary");
}

enum cv_err cv_items_load(struct cv_yaml *yaml, struct cv_yaml_pair section, struct cv_items *ret, struct cv_why *why) {
  if (section.value->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, section.value, "items", "a mapping of keys and values", why);
  }
  struct form form = {0};
  struct cv_items items = {.line = cv_yaml_line(section.key)};
  enum cv_err err = load_form(yaml, section.value, &form, &items, why);
  form_fini(&form);
  if (err != CV_OK) {
    cv_items_fini(&items);
    return err;
  }
  *ret = items;
  return CV_OK;
}
