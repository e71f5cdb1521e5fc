/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil profiles: the brokers that --profile can name. */
#include "common/base/text.h"
#include "common/config/profile.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "common/base/address.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/json.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {
    CV_JSON_RULE(offsetof(struct settings, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil profiles",
    .about = "lists the brokers that --profile can name, from crowdveil/profiles.yaml in $XDG_CONFIG_HOME or ~/.config",
    .rules = rules,
    .count = CV_COUNT(rules),
};

struct value {
  char text[CV_ADDRESSES_MAX * CV_ADDRESS_BYTES];
};

static void append(struct value *value, const yaml_node_t *node) {
  size_t n = strlen(value->text);
  if (node->type == YAML_SCALAR_NODE) {
    (void)snprintf(value->text + n, sizeof(value->text) - n, "%s%s", n == 0 ? "" : ",", cv_yaml_text(node));
  }
}

/* The value of a key, a list's as an option has it; NULL if there is none. */
static const char *value_of(struct cv_profiles *profiles, const yaml_node_t *profile, const char *key,
                            struct value *to) {
  const yaml_node_t *value = cv_yaml_find(&profiles->yaml, profile, key).value;
  to->text[0] = '\0';
  if (value != NULL && value->type == YAML_SEQUENCE_NODE) {
    for (size_t i = 0; i < cv_yaml_items(value); i++) {
      append(to, cv_yaml_item(&profiles->yaml, value, i));
    }
  } else if (value != NULL) {
    append(to, value);
  }
  return to->text[0] != '\0' ? to->text : NULL;
}

static void print(struct cv_profiles *profiles) {
  for (size_t i = 0; i < cv_yaml_pairs(profiles->profiles); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(&profiles->yaml, profiles->profiles, i);
    struct value address, party;
    const char *name = cv_yaml_text(pair.key), *broker = value_of(profiles, pair.value, "broker", &address),
               *called = value_of(profiles, pair.value, "broker_name", &party);
    bool is_usual = profiles->usual != NULL && strcmp(profiles->usual, name) == 0;
    (void)printf("%-16s %s%s%s%s\n", cv_text_line(name).text, broker == NULL ? "" : cv_text_line(broker).text,
                 called == NULL ? "" : ", broker ", called == NULL ? "" : cv_text_line(called).text,
                 is_usual ? " (default)" : "");
  }
}

static int print_json(struct cv_profiles *profiles) {
  json_t *all = json_object();
  for (size_t i = 0; profiles->exists && i < cv_yaml_pairs(profiles->profiles); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(&profiles->yaml, profiles->profiles, i);
    struct value address, party;
    all = cv_json_set(all, cv_yaml_text(pair.key),
                      json_pack("{s:s?, s:s?}", "broker", value_of(profiles, pair.value, "broker", &address),
                                "broker_name", value_of(profiles, pair.value, "broker_name", &party)));
  }
  json_t *object = json_pack("{s:s?, s:s?, s:o}", "file", profiles->exists ? profiles->path : NULL, "default",
                             profiles->usual, "profiles", all);
  return cv_launcher_print_json(&table, object, 0);
}

static int list(const struct settings *settings) {
  struct cv_profiles profiles;
  struct cv_why why;
  if (cv_profiles_open(&profiles, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  int status = 0;
  if (settings->json) {
    status = print_json(&profiles);
  } else if (profiles.exists) {
    print(&profiles);
  } else {
    (void)printf("no profiles: there is no crowdveil/profiles.yaml in $XDG_CONFIG_HOME or ~/.config\n");
  }
  cv_profiles_close(&profiles);
  return status;
}

int cv_launcher_profiles(int argc, char **argv) {
  struct settings settings = {0};
  int status = cv_command_options(&table, argc, argv, 0, 0, NULL, &settings);
  if (status < 0) {
    status = list(&settings);
  }
  cv_config_fini(&table, &settings);
  return status;
}
