/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/rules.h"

static bool owns_text(const struct cv_config_rule *rule) {
  return rule->type == CV_CONFIG_TEXT || rule->type == CV_CONFIG_PATH || rule->type == CV_CONFIG_WORDS ||
         rule->type == CV_CONFIG_PARTY || rule->type == CV_CONFIG_PARTIES || rule->type == CV_CONFIG_ADDRESSES;
}

enum cv_err cv_settings_init(struct cv_settings *settings, const struct cv_config_rule *rules, size_t count) {
  struct cv_setting *setting = calloc(count + 1, sizeof(*setting));
  if (setting == NULL) {
    return CV_ERR_NOMEM;
  }
  *settings = (struct cv_settings){.rules = rules, .count = count, .setting = setting};
  return CV_OK;
}

static void drop(struct cv_settings *settings, size_t index) {
  if (settings->setting[index].is_set && owns_text(&settings->rules[index])) {
    free(settings->setting[index].value.text);
  }
  settings->setting[index] = (struct cv_setting){0};
}

void cv_settings_fini(struct cv_settings *settings) {
  for (size_t i = 0; i < settings->count; i++) {
    drop(settings, i);
  }
  free(settings->setting);
  *settings = (struct cv_settings){0};
}

void cv_settings_put(struct cv_settings *settings, size_t index, union cv_value value) {
  /* An option given after the file replaces its value; the text of the first one is freed. */
  drop(settings, index);
  settings->setting[index] = (struct cv_setting){.is_set = true, .value = value};
}

/* The keys that are allowed after `prefix`, without duplicates. */
struct words {
  char *owned[64];
  const char *word[64];
  size_t owns, count;
};

static void words_fini(struct words *words) {
  for (size_t i = 0; i < words->owns; i++) {
    free(words->owned[i]);
  }
}

static bool words_has(const struct words *words, const char *word) {
  for (size_t i = 0; i < words->count; i++) {
    if (strcmp(words->word[i], word) == 0) {
      return true;
    }
  }
  return false;
}

static enum cv_err words_init(struct words *words, const struct cv_settings *settings, const char *prefix) {
  *words = (struct words){0};
  size_t skip = strlen(prefix);
  /* Tables are literals of ours, so one that is too long is a bug. */
  CV_REQUIRE(settings->count <= CV_COUNT(words->word));
  for (size_t i = 0; i < settings->count; i++) {
    const char *key = settings->rules[i].key;
    if (strncmp(key, prefix, skip) != 0 || settings->rules[i].is_option) {
      continue;
    }
    char *word = strndup(key + skip, strcspn(key + skip, "."));
    if (word == NULL) {
      words_fini(words);
      return CV_ERR_NOMEM;
    }
    words->owned[words->owns++] = word;
    if (!words_has(words, word)) {
      words->word[words->count++] = word;
    }
  }
  return CV_OK;
}

/* A plain value may have any type; a quoted value is a text. */
static bool may_be(const struct cv_config_rule *rule, const yaml_node_t *value) {
  if (value->type != YAML_SCALAR_NODE) {
    return false;
  }
  bool is_plain = value->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  return is_plain ? cv_yaml_text(value)[0] != '\0' : owns_text(rule) || rule->type == CV_CONFIG_WORD;
}

/* Reports a value that does not match its rule; a word of a list at its own position if the list is on one line. */
static enum cv_err fail_value(const struct cv_config_rule *rule, const struct cv_yaml *yaml, const yaml_node_t *node,
                              const char *name, struct cv_why *why) {
  struct cv_why stray;
  size_t at;
  /* Lists of words name the stray one: in a long list its position says more than the list's. */
  if (node->type != YAML_SCALAR_NODE || !cv_value_stray(rule, name, cv_yaml_text(node), &stray, &at)) {
    char expected[240];
    cv_value_describe(rule, expected, sizeof(expected));
    return cv_yaml_expected(yaml, node, name, expected, why);
  }
  yaml_node_t word = *node;
  if ((rule->type == CV_CONFIG_WORDS || rule->type == CV_CONFIG_ADDRESSES) &&
      node->start_mark.line == node->end_mark.line) {
    word.start_mark.column += at + (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
  }
  return cv_yaml_fail(yaml, &word, why, "%s", stray.text);
}

static enum cv_err fail_parse(const struct cv_config_rule *rule, const struct cv_yaml *yaml, const yaml_node_t *node,
                              const char *name, enum cv_err err, struct cv_why *why) {
  return err == CV_ERR_INVALID ? fail_value(rule, yaml, node, name, why) : cv_yaml_no_memory(yaml->path, why);
}

/* The items of a YAML list, separated by commas, as an option has them; each is checked here, for its place. */
static enum cv_err join_items(const struct cv_config_rule *rule, struct cv_yaml *yaml, const yaml_node_t *list,
                              const char *name, struct cv_buf *ret, struct cv_why *why) {
  for (size_t i = 0; i < cv_yaml_items(list); i++) {
    const yaml_node_t *item = cv_yaml_item(yaml, list, i);
    union cv_value value;
    enum cv_err err = may_be(rule, item) ? cv_value_parse(rule, cv_yaml_text(item), NULL, &value) : CV_ERR_INVALID;
    if (err != CV_OK) {
      return fail_parse(rule, yaml, item, name, err, why);
    }
    cv_buf_put(ret, ",", i > 0);
    cv_buf_put(ret, value.text, strlen(value.text));
    free(value.text);
  }
  cv_buf_put(ret, "", 1);
  return cv_buf_ok(ret) ? CV_OK : cv_yaml_no_memory(yaml->path, why);
}

static enum cv_err take_list(struct cv_settings *settings, size_t index, struct cv_yaml *yaml, const yaml_node_t *list,
                             const char *name, struct cv_why *why) {
  const struct cv_config_rule *rule = &settings->rules[index];
  struct cv_buf text = {0};
  union cv_value value;
  enum cv_err err = join_items(rule, yaml, list, name, &text, why);
  if (err == CV_OK) {
    err = cv_value_parse(rule, (const char *)text.data, NULL, &value);
    if (err == CV_OK) {
      cv_settings_put(settings, index, value);
    } else {
      err = fail_parse(rule, yaml, list, name, err, why);
    }
  }
  cv_buf_fini(&text);
  return err;
}

static enum cv_err take_value(struct cv_settings *settings, size_t index, struct cv_yaml *yaml, const yaml_node_t *node,
                              const char *name, struct cv_why *why) {
  const struct cv_config_rule *rule = &settings->rules[index];
  union cv_value value;
  if (rule->type == CV_CONFIG_ADDRESSES && node->type == YAML_SEQUENCE_NODE) {
    return take_list(settings, index, yaml, node, name, why);
  }
  enum cv_err err =
      may_be(rule, node) ? cv_value_parse(rule, cv_yaml_text(node), yaml->folder, &value) : CV_ERR_INVALID;
  if (err != CV_OK) {
    return fail_parse(rule, yaml, node, name, err, why);
  }
  cv_settings_put(settings, index, value);
  return CV_OK;
}

static enum cv_err take_pair(struct cv_settings *settings, struct cv_yaml *yaml, struct cv_yaml_pair pair,
                             const char *name, const char *prefix, struct cv_why *why) {
  char key[128], said[192];
  const char *word = cv_yaml_text(pair.key);
  (void)snprintf(key, sizeof(key), "%s%s", prefix, word);
  (void)snprintf(said, sizeof(said), "%s%s%s", name, name[0] == '\0' ? "" : ".", word);
  size_t n = strlen(key);
  /* Keys with a dot are mappings in the file: `limits.arms` is `arms` inside of `limits`. */
  for (size_t i = 0; i < settings->count; i++) {
    if (strcmp(settings->rules[i].key, key) == 0) {
      if (settings->rules[i].type == CV_CONFIG_OTHER) {
        settings->setting[i].is_set = true;
        return CV_OK;
      }
      return take_value(settings, i, yaml, pair.value, said, why);
    }
    if (strncmp(settings->rules[i].key, key, n) == 0 && settings->rules[i].key[n] == '.') {
      if (pair.value->type != YAML_MAPPING_NODE) {
        return cv_yaml_expected(yaml, pair.value, said, "a mapping of keys and values", why);
      }
      (void)snprintf(key + n, sizeof(key) - n, ".");
      return cv_settings_map(settings, yaml, pair.value, said, key, why);
    }
  }
  return CV_OK;
}

enum cv_err cv_settings_map(struct cv_settings *settings, struct cv_yaml *yaml, const yaml_node_t *mapping,
                            const char *name, const char *prefix, struct cv_why *why) {
  struct words words;
  /* Check all keys before reading any value, so that an unknown key is reported first. */
  if (words_init(&words, settings, prefix) != CV_OK) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  enum cv_err err = cv_yaml_keys(yaml, mapping, name, words.word, words.count, why);
  words_fini(&words);
  for (size_t i = 0; err == CV_OK && i < cv_yaml_pairs(mapping); i++) {
    err = take_pair(settings, yaml, cv_yaml_pair(yaml, mapping, i), name, prefix, why);
  }
  return err;
}

enum cv_err cv_settings_default(struct cv_settings *settings, const char *folder,
                                const struct cv_config_rule **ret_missing) {
  *ret_missing = NULL;
  for (size_t i = 0; i < settings->count; i++) {
    const struct cv_config_rule *rule = &settings->rules[i];
    if (settings->setting[i].is_set || (rule->type == CV_CONFIG_OTHER && !rule->required)) {
      continue;
    }
    if (rule->fallback != NULL) {
      union cv_value value;
      enum cv_err err = cv_value_parse(rule, rule->fallback, folder, &value);
      /* A fallback that its own rule refuses is a bug of the table. */
      CV_REQUIRE(err == CV_OK || err == CV_ERR_NOMEM);
      CV_TRY(err);
      cv_settings_put(settings, i, value);
    } else if (rule->required) {
      *ret_missing = rule;
      return CV_ERR_NOT_FOUND;
    }
  }
  return CV_OK;
}

void cv_settings_give(struct cv_settings *settings, void *into) {
  for (size_t i = 0; i < settings->count; i++) {
    void *field = (char *)into + settings->rules[i].offset;
    /* memcpy, since `field` may have any type. */
    union cv_value value = settings->setting[i].value;
    if (!settings->setting[i].is_set) {
      continue;
    }
    switch (settings->rules[i].type) {
      case CV_CONFIG_TEXT:
      case CV_CONFIG_PATH:
      case CV_CONFIG_WORDS:
      case CV_CONFIG_PARTY:
      case CV_CONFIG_PARTIES:
      case CV_CONFIG_ADDRESSES:
        memcpy(field, &value.text, sizeof(value.text));
        break;
      case CV_CONFIG_WHOLE:
      case CV_CONFIG_TIME:
        memcpy(field, &value.whole, sizeof(value.whole));
        break;
      case CV_CONFIG_REAL:
        memcpy(field, &value.real, sizeof(value.real));
        break;
      case CV_CONFIG_BOOL:
        memcpy(field, &value.flag, sizeof(value.flag));
        break;
      case CV_CONFIG_WORD:
        memcpy(field, &value.word, sizeof(value.word));
        break;
      case CV_CONFIG_OTHER:
        break;
    }
    /* The caller owns the text now; cv_settings_fini() must not free it. */
    settings->setting[i].is_set = false;
  }
}

enum cv_err cv_section_only(struct cv_yaml *yaml, const yaml_node_t *section, const char *name, const char *key,
                            const char *expected, const yaml_node_t **ret, struct cv_why *why) {
  char dotted[64];
  CV_TRY(cv_yaml_keys(yaml, section, name, &key, 1, why));
  const yaml_node_t *mapping = cv_yaml_find(yaml, section, key).value;
  if (mapping->type != YAML_MAPPING_NODE) {
    (void)snprintf(dotted, sizeof(dotted), "%s.%s", name, key);
    return cv_yaml_expected(yaml, mapping, dotted, expected, why);
  }
  *ret = mapping;
  return CV_OK;
}

enum cv_err cv_section_load(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name,
                            const struct cv_config_rule *rules, size_t count, void *into, struct cv_why *why) {
  struct cv_settings settings;
  if (cv_settings_init(&settings, rules, count) != CV_OK) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  enum cv_err err = cv_settings_map(&settings, yaml, mapping, name, "", why);
  if (err == CV_OK) {
    const struct cv_config_rule *missing;
    err = cv_settings_default(&settings, yaml->folder, &missing);
    if (err != CV_OK) {
      char expected[240] = "";
      if (missing != NULL) {
        cv_value_describe(missing, expected, sizeof(expected));
        err = cv_yaml_fail(yaml, mapping, why, "missing %s%s%s; expected %s", name, name[0] == '\0' ? "" : ".",
                           missing->key, expected);
      } else {
        err = cv_yaml_no_memory(yaml->path, why);
      }
    }
  }
  if (err == CV_OK) {
    /* Nothing can fail any more: the caller's struct gets all values or none. */
    cv_settings_give(&settings, into);
  }
  cv_settings_fini(&settings);
  return err;
}

enum cv_err cv_config_load(const struct cv_config_table *table, const char *path, void *into, struct cv_why *why) {
  struct cv_yaml yaml;
  CV_TRY(cv_yaml_open(path, &yaml, why));
  enum cv_err err = cv_section_load(&yaml, yaml.root, "", table->rules, table->count, into, why);
  cv_yaml_close(&yaml);
  return err;
}

void cv_config_fini(const struct cv_config_table *table, void *into) {
  for (size_t i = 0; i < table->count; i++) {
    if (owns_text(&table->rules[i])) {
      char *text = NULL;
      void *field = (char *)into + table->rules[i].offset;
      memcpy(&text, field, sizeof(text));
      free(text);
      /* A second call then frees nothing. */
      memset(field, 0, sizeof(text));
    }
  }
}
