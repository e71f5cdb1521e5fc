/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/role.h"

static bool has(struct cv_yaml *yaml, const char *key) {
  return cv_yaml_find(yaml, yaml->root, key).key != NULL;
}

enum cv_err cv_launcher_role(struct cv_yaml *yaml, const char *path, enum cv_role *ret, struct cv_why *why) {
  enum cv_role role = has(yaml, "broker_key")                        ? CV_ROLE_COBROKER
                      : has(yaml, "anchor") || has(yaml, "seal_key") ? CV_ROLE_BROKER
                      : has(yaml, "broker")                          ? CV_ROLE_GATEWAY
                      : has(yaml, "state")                           ? CV_ROLE_THIRDPARTY
                                                                     : CV_ROLE_NONE;
  if (role == CV_ROLE_NONE) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "%s: not a party's configuration; expected that of a broker, co-broker, third-party, worker or gateway", path);
  }
  *ret = role;
  return CV_OK;
}

static bool is_shared(const char *config) {
  struct cv_yaml yaml;
  if (cv_yaml_open(config, &yaml, NULL) != CV_OK) {
    return false;
  }
  bool shared = has(&yaml, "store");
  cv_yaml_close(&yaml);
  return shared;
}

const char *cv_launcher_program_of(enum cv_role role, const char *config) {
  return role == CV_ROLE_BROKER       ? is_shared(config) ? "crowdveil-broker-postgresql" : "crowdveil-broker"
         : role == CV_ROLE_COBROKER   ? "crowdveil-cobroker"
         : role == CV_ROLE_THIRDPARTY ? "crowdveil-thirdparty"
                                      : "crowdveil-worker";
}
