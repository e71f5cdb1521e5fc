/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles: brokers that a requester uses, by name, in profiles.yaml of the folder crowdveil in $XDG_CONFIG_HOME or
 * ~/.config. Paths in it are relative to that folder.
 *
 * `broker` may be a list.
 *
 *   default: city
 *   profiles:
 *     city: {broker: "broker.example:7401", broker_name: main, tls: {ca: ca.crt, cert: alice.crt, key: alice.key}}
 */
#ifndef CV_CONFIG_PROFILE_H
#define CV_CONFIG_PROFILE_H

#include "common/config/document.h"

/* The key of the option that names a profile, and the variable that does so without the option. */
#define CV_PROFILE_KEY "profile"
#define CV_PROFILE_ENV "CROWDVEIL_PROFILE"
enum { CV_PROFILE_PATH = 4096 };

struct cv_profiles {
  char path[CV_PROFILE_PATH];
  bool exists; /* false: there is no such file, and nothing below is set */
  struct cv_yaml yaml;
  const char *usual;           /* the default profile; NULL: none. Borrowed from the file */
  const yaml_node_t *profiles; /* a mapping of names to mappings */
};

/* Reads the file and checks its keys. CV_OK without a file; otherwise as cv_yaml_open(). */
CV_MUST_USE enum cv_err cv_profiles_open(struct cv_profiles *ret, struct cv_why *why);
void cv_profiles_close(struct cv_profiles *profiles);
/* Finds a profile by name. CV_ERR_NOT_FOUND with the names that there are. */
CV_MUST_USE enum cv_err cv_profiles_find(struct cv_profiles *profiles, const char *name, const yaml_node_t **ret,
                                         struct cv_why *why);

#endif
