/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fingerprint.h"

static const char ASK[] =
    "ask the party's owner for the fingerprint (crowdveil pki fingerprint CERT.PEM), and set that";

static char *text_in(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *key) {
  struct cv_yaml_pair pair = cv_yaml_find(yaml, mapping, key);
  return pair.value != NULL && pair.value->type == YAML_SCALAR_NODE ? strdup(cv_yaml_text(pair.value)) : NULL;
}

void cv_pins_read(struct cv_yaml *yaml, struct cv_pins *ret) {
  struct cv_yaml_pair accept = cv_yaml_find(yaml, yaml->root, "accept");
  *ret = (struct cv_pins){.cobroker_key = text_in(yaml, yaml->root, "cobroker_key"),
                          .broker_key = text_in(yaml, yaml->root, "broker_key")};
  if (accept.value != NULL && accept.value->type == YAML_MAPPING_NODE) {
    ret->pairs = text_in(yaml, accept.value, "pairs");
  }
}

void cv_pins_fini(struct cv_pins *pins) {
  free(pins->cobroker_key);
  free(pins->broker_key);
  free(pins->pairs);
}

/* ---- comparing ---- */

static bool is_known(const struct cv_pinned *party) {
  static const struct cv_digest none;
  return !cv_digest_is_same(&party->identity.key, &none);
}

static const struct cv_pinned *of_role(const struct cv_pinned *party, size_t parties, enum cv_role role) {
  for (size_t i = 0; i < parties; i++) {
    if (party[i].identity.role == role && is_known(&party[i])) {
      return &party[i];
    }
  }
  return NULL;
}

static bool says(const char *text, const struct cv_digest *key) {
  struct cv_digest said;
  return text != NULL && cv_fingerprint_read(text, &said) && cv_digest_is_same(&said, key);
}

/* Whether `key` of one configuration is the fingerprint of the other's certificate. */
static void compare_key(const struct cv_pinned *party, const char *key, const char *said, const struct cv_pinned *other,
                        struct cv_findings *findings) {
  if (said == NULL) {
    cv_findings_add(findings, CV_FINDING_WRONG, ASK, "%s: no %s; expected the fingerprint of %s", party->file, key,
                    other->file);
  } else if (!says(said, &other->identity.key)) {
    cv_findings_add(findings, CV_FINDING_WRONG, ASK, "%s: %s is %.64s, but the key of %s is %s", party->file, key, said,
                    other->file, cv_fingerprint_of(&other->identity.key).text);
  }
}

static bool lists(const char *pairs, const struct cv_pinned *broker, const struct cv_pinned *cobroker) {
  for (const char *at = pairs; at != NULL && *at != '\0';) {
    at += strspn(at, ", ");
    if (says(at, &broker->identity.key) && at[CV_FINGERPRINT_DIGITS] == '+' &&
        says(at + CV_FINGERPRINT_DIGITS + 1, &cobroker->identity.key)) {
      return true;
    }
    at += strcspn(at, ", ");
  }
  return false;
}

static void compare_worker(const struct cv_pinned *worker, const struct cv_pinned *broker,
                           const struct cv_pinned *cobroker, struct cv_findings *findings) {
  if (worker->pins->pairs == NULL || worker->pins->pairs[0] == '\0') {
    cv_findings_add(findings, CV_FINDING_NOTE, "set accept.pairs to the brokers that its owner trusts not to collude",
                    "%s: no accept.pairs, so it declines campaigns with two brokers", worker->file);
  } else if (!lists(worker->pins->pairs, broker, cobroker)) {
    cv_findings_add(findings, CV_FINDING_WRONG, ASK,
                    "%s: accept.pairs does not have the pair of %s and %s, so it declines their campaigns",
                    worker->file, broker->file, cobroker->file);
  }
}

void cv_pins_compare(const struct cv_pinned *party, size_t parties, struct cv_findings *findings) {
  const struct cv_pinned *broker = of_role(party, parties, CV_ROLE_BROKER);
  const struct cv_pinned *cobroker = of_role(party, parties, CV_ROLE_COBROKER);
  const size_t before = findings->count;
  if (broker == NULL || cobroker == NULL) {
    return;
  }
  (void)snprintf(findings->party, sizeof(findings->party), "broker and co-broker");
  if (cv_digest_is_same(&broker->identity.key, &cobroker->identity.key)) {
    cv_findings_add(findings, CV_FINDING_WRONG, "give the co-broker a certificate and a key of its own",
                    "%s and %s have the same key", broker->file, cobroker->file);
  }
  compare_key(broker, "cobroker_key", broker->pins->cobroker_key, cobroker, findings);
  compare_key(cobroker, "broker_key", cobroker->pins->broker_key, broker, findings);
  for (size_t i = 0; i < parties; i++) {
    const enum cv_role role = party[i].identity.role;
    if (role == CV_ROLE_GATEWAY || role == CV_ROLE_WORKER) {
      compare_worker(&party[i], broker, cobroker, findings);
    }
  }
  if (findings->count == before) {
    cv_findings_add(findings, CV_FINDING_OK, "", "know each other by their keys");
  }
}
