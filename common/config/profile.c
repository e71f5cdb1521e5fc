/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"

static bool find_path(char to[CV_PROFILE_PATH]) {
  const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
  bool has_config = config != NULL && config[0] == '/';
  if (!has_config && (home == NULL || home[0] != '/')) {
    return false;
  }
  int n = snprintf(to, CV_PROFILE_PATH, "%s%s/crowdveil/profiles.yaml", has_config ? config : home,
                   has_config ? "" : "/.config");
  return n < CV_PROFILE_PATH && access(to, F_OK) == 0;
}

static enum cv_err check(struct cv_profiles *profiles, struct cv_why *why) {
  static const char *const top[] = {"default", "profiles"}, *const keys[] = {"broker", "broker_name", "patience",
                                                                             "tls"};
  struct cv_yaml *yaml = &profiles->yaml;
  CV_TRY(cv_yaml_keys(yaml, yaml->root, "", top, CV_COUNT(top), why));
  profiles->profiles = cv_yaml_find(yaml, yaml->root, "profiles").value;
  const yaml_node_t *usual = cv_yaml_find(yaml, yaml->root, "default").value;
  if (profiles->profiles == NULL || profiles->profiles->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, profiles->profiles == NULL ? yaml->root : profiles->profiles, "profiles",
                            "a mapping of names to profiles", why);
  }
  CV_TRY(cv_yaml_keys(yaml, profiles->profiles, "profiles", NULL, 0, why));
  for (size_t i = 0; i < cv_yaml_pairs(profiles->profiles); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(yaml, profiles->profiles, i);
    if (pair.value->type != YAML_MAPPING_NODE) {
      return cv_yaml_expected(yaml, pair.value, "a profile", "a mapping with broker, broker_name and tls", why);
    }
    CV_TRY(cv_yaml_keys(yaml, pair.value, "profiles", keys, CV_COUNT(keys), why));
  }
  if (usual != NULL && usual->type != YAML_SCALAR_NODE) {
    return cv_yaml_expected(yaml, usual, "default", "the name of a profile", why);
  }
  profiles->usual = usual == NULL ? NULL : cv_yaml_text(usual);
  return CV_OK;
}

enum cv_err cv_profiles_open(struct cv_profiles *ret, struct cv_why *why) {
  *ret = (struct cv_profiles){0};
  if (!find_path(ret->path)) {
    return CV_OK;
  }
  CV_TRY(cv_yaml_open(ret->path, &ret->yaml, why));
  enum cv_err err = check(ret, why);
  if (err != CV_OK) {
    cv_yaml_close(&ret->yaml);
    return err;
  }
  ret->exists = true;
  return CV_OK;
}

void cv_profiles_close(struct cv_profiles *profiles) {
  if (profiles->exists) {
    cv_yaml_close(&profiles->yaml);
  }
  profiles->exists = false;
}

enum cv_err cv_profiles_find(struct cv_profiles *profiles, const char *name, const yaml_node_t **ret,
                             struct cv_why *why) {
  enum { NAMES_MAX = 32 };
  const char *names[NAMES_MAX];
  size_t n = 0;
  if (!profiles->exists) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "unknown profile %s; expected it in %s", cv_text_quote(name).text,
                   profiles->path[0] == '\0' ? "crowdveil/profiles.yaml of ~/.config" : profiles->path);
  }
  for (size_t i = 0; i < cv_yaml_pairs(profiles->profiles); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(&profiles->yaml, profiles->profiles, i);
    if (strcmp(cv_yaml_text(pair.key), name) == 0) {
      *ret = pair.value;
      return CV_OK;
    }
    if (n < NAMES_MAX) {
      names[n++] = cv_yaml_text(pair.key);
    }
  }
  char known[240] = "some profile";
  if (n > 0) {
    cv_text_either(names, n, known, sizeof(known));
  }
  return cv_fail(why, CV_ERR_NOT_FOUND, "%s: unknown profile %s; expected %s", profiles->path, cv_text_quote(name).text,
                 known);
}
