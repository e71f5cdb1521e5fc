/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/campaign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/split.h"
#include "common/base/text.h"
#include "common/campaign/read_items.h"
#include "common/campaign/read_workers.h"
#include "common/campaign/section.h"
#include "common/config/rules.h"

/* What values are expected, for messages and for the reference. */
#define NAME    "a name of 1 to 63 bytes"
#define MAPPING "a mapping of keys and values"
#define CHOICE  "an algorithm's name, or a mapping with it as name"
#define BITS    "auto, 1 or 15"
#define EPSILON "a number above 0 and at most 4000, with at most 6 decimals"

/* Reads an algorithm: a word, or a mapping with `name` and parameters. For a privatizer a list gives each arm its
 * own value, as key.1, key.2, ... */
static const char privatizer_section[] = "privacy.privatizer";

static enum cv_err take_word(struct cv_yaml *yaml, const yaml_node_t *node, const char *said, const char *expected,
                             char *to, struct cv_why *why) {
  const char *text = node->type == YAML_SCALAR_NODE ? cv_yaml_text(node) : "";
  size_t n = strlen(text);
  if (n == 0 || n >= CV_PARAM_TEXT || !cv_text_is_clean(text, n)) {
    return cv_yaml_expected(yaml, node, said, expected, why);
  }
  memcpy(to, text, n + 1);
  return CV_OK;
}

static enum cv_err take_value(struct cv_yaml *yaml, const yaml_node_t *node, const char *section, const char *key,
                              struct cv_params *params, struct cv_why *why) {
  struct cv_param param = {.line = cv_yaml_line(node), .column = cv_yaml_column(node)};
  char said[CV_PARAM_TEXT + 64];
  (void)snprintf(said, sizeof(said), "%s.%s", section, key);
  (void)snprintf(param.key, sizeof(param.key), "%s", key);
  if (params->count == CV_PARAMS_MAX) {
    return cv_yaml_fail(yaml, node, why, "%s has more than %d parameters", section, CV_PARAMS_MAX);
  }
  /* A quoted number is a word: "0.5" in quotes is refused where a number is expected. */
  bool is_plain = node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (!is_plain || !cv_value_real(cv_yaml_text(node), &param.number)) {
    param.is_text = true;
    CV_TRY(take_word(yaml, node, said, "a number or a word of at most 31 bytes", param.text, why));
  }
  params->item[params->count++] = param;
  return CV_OK;
}

static enum cv_err take_param(struct cv_yaml *yaml, struct cv_yaml_pair pair, const char *section,
                              struct cv_params *params, struct cv_why *why) {
  char key[CV_PARAM_TEXT], numbered[CV_PARAM_TEXT + 16];
  CV_TRY(take_word(yaml, pair.key, "a key", "a word of at most 31 bytes", key, why));
  if (pair.value->type != YAML_SEQUENCE_NODE || strcmp(section, privatizer_section) != 0) {
    return take_value(yaml, pair.value, section, key, params, why);
  }
  for (size_t i = 0; i < cv_yaml_items(pair.value); i++) {
    if ((size_t)snprintf(numbered, sizeof(numbered), "%s.%zu", key, i + 1) >= CV_PARAM_TEXT) {
      return cv_yaml_fail(yaml, pair.key, why, "%s.%s is too long for a list", section, key);
    }
    CV_TRY(take_value(yaml, cv_yaml_item(yaml, pair.value, i), section, numbered, params, why));
  }
  return CV_OK;
}

static enum cv_err load_choice(struct cv_yaml *yaml, const yaml_node_t *node, const char *section,
                               struct cv_choice *ret, struct cv_why *why) {
  static const char expected[] = "an algorithm's name";
  struct cv_choice choice = {0};
  if (node->type != YAML_MAPPING_NODE) {
    CV_TRY(take_word(yaml, node, section, CHOICE, choice.name, why));
    *ret = choice;
    return CV_OK;
  }
  /* + 1: the name is a pair, too. */
  if (cv_yaml_pairs(node) > CV_PARAMS_MAX + 1) {
    return cv_yaml_fail(yaml, node, why, "%s has more than %d parameters", section, CV_PARAMS_MAX);
  }
  CV_TRY(cv_yaml_keys(yaml, node, section, NULL, 0, why));
  for (size_t i = 0; i < cv_yaml_pairs(node); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(yaml, node, i);
    if (strcmp(cv_yaml_text(pair.key), "name") == 0) {
      char said[64];
      (void)snprintf(said, sizeof(said), "%s.name", section);
      CV_TRY(take_word(yaml, pair.value, said, expected, choice.name, why));
    } else {
      CV_TRY(take_param(yaml, pair, section, &choice.params, why));
    }
  }
  if (choice.name[0] == '\0') {
    return cv_yaml_fail(yaml, node, why, "missing %s.name; expected %s", section, expected);
  }
  *ret = choice;
  return CV_OK;
}

/* privacy */

struct privacy {
  uint64_t tokens_per_worker, brokers;
  int third_party;
  bool repeat, share_names;
};

static const char *const trust_words[] = {"untrusted", "trusted", NULL};

static const struct cv_config_rule privacy_rules[] = {
    {.key = "mechanism",
     .type = CV_CONFIG_OTHER,
     .noun = CHOICE,
     .example = "segments",
     .fallback = "hybrid",
     .help = "the noise that the broker adds to sums; auto leaves the choice to simulations"},
    {.key = "epsilon",
     .type = CV_CONFIG_OTHER,
     .noun = EPSILON,
     .example = "0.5",
     .help = "bounds what the releases disclose about one score: smaller is more private; required with noise"},
    {.key = "privatizer",
     .type = CV_CONFIG_OTHER,
     .noun = CHOICE,
     .example = "{name: randomized-response, epsilon: 1}",
     .fallback = "none",
     .help = "what a worker does to a score before it leaves; a list as a parameter gives each item its own value"},
    {.key = "tokens_per_worker",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct privacy, tokens_per_worker),
     .low = 1,
     .high = 1e6,
     .fallback = "1",
     .help = "how many scores one worker may give, of each item one; in a recruitment the budget says it"},
    {.key = "repeat",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct privacy, repeat),
     .fallback = "false",
     .help = "a worker may be asked the same item, or pair of items, again, as simulated scores are drawn afresh each "
             "time"},
    {.key = "third_party",
     .type = CV_CONFIG_WORD,
     .offset = offsetof(struct privacy, third_party),
     .choices = trust_words,
     .fallback = "untrusted",
     .help = "trusted: exact sums may leave the broker, if its operator permits it too"},
    {.key = "brokers",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct privacy, brokers),
     .low = 1,
     .high = 2,
     .fallback = "1",
     .example = "2",
     .help = "2: each score goes to two brokers in two shares, of which neither tells it, and each adds its noise"},
    {.key = "score_bits",
     .type = CV_CONFIG_OTHER,
     .noun = BITS,
     .fallback = "auto",
     .example = "1",
     .help = "with two brokers: 1 if scores are 0 or 1, which is cheaper; 15 for scores between; auto: 1 with pairs, "
             "randomized-response or bernoulli scores, else 15"},
    {.key = "share_names",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct privacy, share_names),
     .fallback = "false",
     .help = "true: the third-party receives the items' names; else it knows them by number"},
};

static enum cv_err load_epsilon(struct cv_yaml *yaml, const yaml_node_t *mapping, struct cv_spec *spec,
                                struct cv_why *why) {
  static const char expected[] = EPSILON;
  const yaml_node_t *node = cv_yaml_find(yaml, mapping, "epsilon").value;
  if (node == NULL) {
    /* A mechanism without noise has no epsilon to choose; two brokers have none without. */
    return cv_spec_has_noise(spec) && (!cv_campaign_is_auto(&spec->mechanism) || spec->brokers != 0)
               ? cv_yaml_fail(yaml, mapping, why, "missing privacy.epsilon; expected %s", expected)
               : CV_OK;
  }
  uint64_t micro;
  if (node->type != YAML_SCALAR_NODE || !cv_value_micro(cv_yaml_text(node), &micro) || micro == 0 ||
      micro > UINT64_C(4000000000)) {
    return cv_yaml_expected(yaml, node, "privacy.epsilon", expected, why);
  }
  spec->epsilon_micro = micro;
  return CV_OK;
}

static enum cv_err load_choice_at(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *key,
                                  const char *fallback, struct cv_choice *ret, struct cv_why *why) {
  const yaml_node_t *node = cv_yaml_find(yaml, mapping, key).value;
  if (node == NULL) {
    (void)snprintf(ret->name, sizeof(ret->name), "%s", fallback);
    return CV_OK;
  }
  char section[64];
  (void)snprintf(section, sizeof(section), "privacy.%s", key);
  return load_choice(yaml, node, section, ret, why);
}

static enum cv_err load_brokers(struct cv_yaml *yaml, const yaml_node_t *mapping, uint64_t brokers, struct cv_spec *ret,
                                struct cv_why *why) {
  ret->brokers = brokers == 2 ? 2 : 0;
  struct cv_yaml_pair pair = cv_yaml_find(yaml, mapping, "score_bits");
  if (pair.key == NULL) {
    return CV_OK;
  }
  if (brokers == 1) {
    return cv_yaml_fail(yaml, pair.key, why, "privacy.score_bits with one broker; expected privacy.brokers: 2");
  }
  const char *text = pair.value->type == YAML_SCALAR_NODE ? cv_yaml_text(pair.value) : "";
  ret->score_bits = strcmp(text, "1") == 0 ? CV_SPLIT_BIT : strcmp(text, "15") == 0 ? CV_SPLIT_SCORE : 0;
  return ret->score_bits != 0 || strcmp(text, "auto") == 0
             ? CV_OK
             : cv_yaml_expected(yaml, pair.value, "privacy.score_bits", BITS, why);
}

static enum cv_err load_privacy(struct cv_yaml *yaml, const yaml_node_t *mapping, struct cv_campaign_file *ret,
                                struct cv_why *why) {
  struct privacy privacy = {0};
  CV_TRY(cv_section_load(yaml, mapping, "privacy", privacy_rules, CV_COUNT(privacy_rules), &privacy, why));
  CV_TRY(load_brokers(yaml, mapping, privacy.brokers, &ret->spec, why));
  /* The mechanism before epsilon, which only mechanisms with noise require. */
  CV_TRY(load_choice_at(yaml, mapping, "mechanism", "hybrid", &ret->spec.mechanism, why));
  CV_TRY(load_choice_at(yaml, mapping, "privatizer", "none", &ret->spec.privatizer, why));
  CV_TRY(load_epsilon(yaml, mapping, &ret->spec, why));
  ret->spec.tokens_per_worker = (uint32_t)privacy.tokens_per_worker;
  ret->spec.repeat = privacy.repeat;
  ret->spec.thirdparty_trusted = privacy.third_party == 1;
  ret->share_names = privacy.share_names;
  return CV_OK;
}

/* limits */

static const struct cv_config_rule limit_rules[] = {
    {.key = "tokens",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct cv_spec, tokens),
     .low = 1,
     .high = 1e12,
     .fallback = "50000000",
     .help = "scores over all items; a plan that would pass it is not made"},
    {.key = "deadline",
     .type = CV_CONFIG_TIME,
     .offset = offsetof(struct cv_spec, deadline_ms),
     .high = 31536e6,
     .fallback = "none",
     .help = "time after the submission when the campaign ends, by the broker's wall clock"},
    {.key = "idle",
     .type = CV_CONFIG_TIME,
     .offset = offsetof(struct cv_spec, idle_ms),
     .high = 31536e6,
     .fallback = "30s",
     .help = "time without a token after which the campaign ends as `no workers`"},
};

static enum cv_err default_limits(struct cv_spec *spec) {
  struct cv_settings settings;
  const struct cv_config_rule *missing;
  CV_TRY(cv_settings_init(&settings, limit_rules, CV_COUNT(limit_rules)));
  enum cv_err err = cv_settings_default(&settings, NULL, &missing);
  if (err == CV_OK) {
    cv_settings_give(&settings, spec);
  }
  cv_settings_fini(&settings);
  return err;
}

/* The file. */

#define PART(word, what, is_required, sample, says)                                                         \
  {                                                                                                         \
    .key = (word), .type = CV_CONFIG_OTHER, .noun = (what), .required = (is_required), .example = (sample), \
    .help = (says)                                                                                          \
  }

static const struct cv_config_rule file_rules[] = {
    PART("campaign", NAME, true, "restaurants", "the campaign's name"),
    PART("items", MAPPING, false, "{ladder: {count: 5, mean: 0.9, distance: 0.1}}",
         "what is scored, and where scores come from; this or workers"),
    PART("workers", "a list of workers, or list, synthetic or source", false, "{synthetic: {count: 50}}",
         "who can be hired, in place of items"),
    PART("budget", "an amount of money", false, "100000",
         "with workers: what all of them together may be paid; above 0, with at most six decimals"),
    PART("policy", CHOICE, true, "{name: ppar-kl, alpha: 0.1}",
         "how the third-party decides; auto leaves the choice to simulations"),
    PART("privacy", MAPPING, true, "{mechanism: segments, epsilon: 0.5}", "how scores are protected"),
    PART("limits", MAPPING, false, "{tokens: 1000000, deadline: 1h}",
         "when the campaign ends, if its policy has not ended it"),
    PART("graph", "a mapping with edges, or with p and seed", false, "{edges: [[1, 2], [2, 3]]}",
         "which items are answered about together"),
    PART("gold", MAPPING, false, "{items: {Aurora: 0.9}, tolerance: 0.25}",
         "items whose scores the requester knows, which find workers who lie"),
    PART("experiment", MAPPING, false, NULL, "read by the laboratory only (lab.md)"),
};

const struct cv_campaign_section cv_file_sections[] = {
    CV_CAMPAIGN_SECTION_OF("", NULL, "The sections of a campaign file.", file_rules),
    {0},
};

const struct cv_campaign_section cv_privacy_sections[] = {
    CV_CAMPAIGN_SECTION_OF("privacy", NULL, "How scores are protected.", privacy_rules),
    CV_CAMPAIGN_SECTION_OF("limits", NULL, "When the campaign ends, if its policy has not ended it.", limit_rules),
    {0},
};

static enum cv_err find_section(struct cv_yaml *yaml, const char *key, const char *expected, struct cv_yaml_pair *ret,
                                struct cv_why *why) {
  struct cv_yaml_pair pair = cv_yaml_find(yaml, yaml->root, key);
  if (pair.key == NULL) {
    return cv_yaml_fail(yaml, yaml->root, why, "missing %s; expected %s", key, expected);
  }
  *ret = pair;
  return CV_OK;
}

static enum cv_err load_name(struct cv_yaml *yaml, char *to, struct cv_why *why) {
  static const char expected[] = NAME;
  struct cv_yaml_pair pair = {0};
  CV_TRY(find_section(yaml, "campaign", expected, &pair, why));
  return cv_yaml_name(yaml, pair.value, "campaign", expected, to, CV_NAME_BYTES, why);
}

static enum cv_err load_limits(struct cv_yaml *yaml, struct cv_spec *spec, struct cv_why *why) {
  struct cv_yaml_pair pair = cv_yaml_find(yaml, yaml->root, "limits");
  if (pair.key == NULL) {
    enum cv_err err = default_limits(spec);
    return err == CV_OK ? err : cv_fail(why, err, "%s: %s", yaml->path, cv_err_text(err));
  }
  if (pair.value->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, pair.value, "limits", "a mapping of keys and values", why);
  }
  return cv_section_load(yaml, pair.value, "limits", limit_rules, CV_COUNT(limit_rules), spec, why);
}

/* Sets the number of arms, unless a data file has to be read first. */
static enum cv_err number_arms(struct cv_campaign_file *campaign) {
  const struct cv_items *items = &campaign->items;
  struct cv_spec *spec = &campaign->spec;
  spec->arms = cv_items_count(items);
  spec->pairs = cv_items_are_pairs(items);
  /* Names leave the requester only if the campaign says so; without them the parties see numbers. */
  if (spec->arms == 0 || !campaign->share_names) {
    return CV_OK;
  }
  struct cv_names names = {0};
  for (uint32_t i = 0; i < spec->arms; i++) {
    cv_items_name(items, i, &names);
  }
  enum cv_err err = cv_names_take(&names, &spec->names);
  cv_names_fini(&names);
  return err;
}

/* Reads the source: `items`, or `workers` with a `budget`. */
static enum cv_err load_source(struct cv_yaml *yaml, struct cv_campaign_file *campaign, struct cv_why *why) {
  struct cv_yaml_pair items = {0}, workers = cv_yaml_find(yaml, yaml->root, "workers"),
                      budget = cv_yaml_find(yaml, yaml->root, "budget");
  if (workers.key == NULL) {
    if (budget.key != NULL) {
      return cv_yaml_fail(yaml, budget.key, why, "budget without workers; expected workers in place of items");
    }
    CV_TRY(find_section(yaml, "items", "where scores come from", &items, why));
    return cv_items_load(yaml, items, &campaign->items, why);
  }
  items = cv_yaml_find(yaml, yaml->root, "items");
  if (items.key != NULL) {
    return cv_yaml_fail(yaml, items.key, why, "both items and workers; expected only one");
  }
  CV_TRY(find_section(yaml, "budget", "what may be paid to all workers together", &budget, why));
  CV_TRY(cv_money_take(yaml, budget.value, "budget", CV_BUDGET_MAX_MICRO, &campaign->spec.budget_micro, why));
  return cv_workers_load(yaml, workers, &campaign->items, why);
}

static enum cv_err load(struct cv_yaml *yaml, struct cv_campaign_file *campaign, struct cv_why *why) {
  struct cv_yaml_pair policy = {0}, privacy = {0};
  /* `experiment` is allowed and not read: the laboratory reads it from the same file. */
  CV_TRY(cv_campaign_keys(yaml, yaml->root, "", cv_file_sections, why));
  CV_TRY(load_name(yaml, campaign->spec.name, why));
  CV_TRY(find_section(yaml, "policy", "the name of a policy", &policy, why));
  CV_TRY(find_section(yaml, "privacy", "a mapping with epsilon", &privacy, why));
  campaign->policy_line = cv_yaml_line(policy.key);
  campaign->privacy_line = cv_yaml_line(privacy.key);
  CV_TRY(load_source(yaml, campaign, why));
  CV_TRY(load_choice(yaml, policy.value, "policy", &campaign->spec.policy, why));
  if (privacy.value->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, privacy.value, "privacy", "a mapping of keys and values", why);
  }
  CV_TRY(load_privacy(yaml, privacy.value, campaign, why));
  CV_TRY(load_limits(yaml, &campaign->spec, why));
  CV_TRY(cv_graph_load(yaml, &campaign->graph, &campaign->spec, why));
  CV_TRY(cv_golds_load(yaml, &campaign->gold, why));
  enum cv_err err = number_arms(campaign);
  campaign->path = strdup(yaml->path);
  if (err != CV_OK || campaign->path == NULL) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  return CV_OK;
}

enum cv_err cv_campaign_load(const char *path, struct cv_campaign_file *ret, struct cv_why *why) {
  struct cv_yaml yaml;
  CV_TRY(cv_yaml_open(path, &yaml, why));
  enum cv_err err = cv_campaign_read(&yaml, ret, why);
  cv_yaml_close(&yaml);
  return err;
}

enum cv_err cv_campaign_read(struct cv_yaml *yaml, struct cv_campaign_file *ret, struct cv_why *why) {
  struct cv_campaign_file campaign = {0};
  enum cv_err err = load(yaml, &campaign, why);
  if (err != CV_OK) {
    cv_campaign_fini(&campaign);
    return err;
  }
  *ret = campaign;
  return CV_OK;
}

void cv_campaign_fini(struct cv_campaign_file *campaign) {
  if (campaign == NULL) {
    return;
  }
  cv_items_fini(&campaign->items);
  cv_golds_fini(&campaign->gold);
  cv_spec_fini(&campaign->spec);
  free(campaign->path);
  *campaign = (struct cv_campaign_file){0};
}
