/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/identity.h"

#include <ctype.h>
#include <string.h>

#include "common/base/party.h"

static const char SCHEME[] = "crowdveil:";

static const char *const ROLE_TEXT[] = {
    [CV_ROLE_NONE] = "none",         [CV_ROLE_REQUESTER] = "requester", [CV_ROLE_WORKER] = "worker",
    [CV_ROLE_GATEWAY] = "gateway",   [CV_ROLE_BROKER] = "broker",       [CV_ROLE_THIRDPARTY] = "thirdparty",
    [CV_ROLE_COBROKER] = "cobroker",
};

const char *cv_role_text(enum cv_role role) {
  return (size_t)role < CV_COUNT(ROLE_TEXT) ? ROLE_TEXT[role] : "unknown";
}

static enum cv_role find_role(const char *text, size_t n) {
  for (size_t i = CV_ROLE_REQUESTER; i < CV_COUNT(ROLE_TEXT); i++) {
    if (strlen(ROLE_TEXT[i]) == n && memcmp(ROLE_TEXT[i], text, n) == 0) {
      return (enum cv_role)i;
    }
  }
  return CV_ROLE_NONE;
}

/* Reads a worker id; returns the position after it, or NULL if there is none. */
static const char *read_id(const char *at, uint64_t *ret) {
  /* No leading zero: each range has one spelling, because names are compared byte for byte. */
  if (*at < '1' || *at > '9') {
    return NULL;
  }
  uint64_t id = 0;
  for (; *at >= '0' && *at <= '9'; at++) {
    if (__builtin_mul_overflow(id, 10u, &id) || __builtin_add_overflow(id, (uint64_t)(*at - '0'), &id)) {
      return NULL;
    }
  }
  *ret = id;
  return at;
}

static bool read_ids(struct cv_identity *identity) {
  const char *at = read_id(identity->name, &identity->first);
  identity->last = identity->first;
  if (at != NULL && identity->role == CV_ROLE_GATEWAY) {
    at = *at == '-' ? read_id(at + 1, &identity->last) : NULL;
  }
  return at != NULL && *at == '\0' && identity->first <= identity->last;
}

static const char *expected_name(enum cv_role role) {
  switch (role) {
    case CV_ROLE_WORKER:
      return "worker/ID with ID from 1";
    case CV_ROLE_GATEWAY:
      return "gateway/FIRST-LAST with ids from 1";
    default:
      return "a name of letters, digits, dot, hyphen and underscore, and not " CV_PARTY_ANY;
  }
}

/* Copies the text for a message, with unprintable characters replaced. */
static void printable(const char *text, char *out, size_t size) {
  size_t i = 0;
  for (; text[i] != '\0' && i + 1 < size; i++) {
    out[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
  }
  out[i] = '\0';
}

enum cv_err cv_identity_parse(const char *uri, struct cv_identity *ret, struct cv_why *why) {
  char shown[128];
  printable(uri, shown, sizeof(shown));
  const char *role = uri + strlen(SCHEME);
  const char *slash = strncmp(uri, SCHEME, strlen(SCHEME)) == 0 ? strchr(role, '/') : NULL;
  if (slash == NULL) {
    return cv_fail(why, CV_ERR_FORMAT, "identity '%s' is not crowdveil:ROLE/NAME", shown);
  }
  struct cv_identity identity = {.role = find_role(role, (size_t)(slash - role))};
  if (identity.role == CV_ROLE_NONE) {
    return cv_fail(why, CV_ERR_FORMAT,
                   "identity '%s': unknown role, expected requester, worker, gateway, broker, cobroker or thirdparty",
                   shown);
  }
  const char *name = slash + 1;
  size_t n = strlen(name);
  /* Refused, not cut: two long names must not become the same party. */
  if (n >= sizeof(identity.name)) {
    return cv_fail(why, CV_ERR_FORMAT, "identity '%s': the name is longer than %zu characters", shown,
                   sizeof(identity.name) - 1);
  }
  memcpy(identity.name, name, n + 1);
  bool is_crowd = identity.role == CV_ROLE_WORKER || identity.role == CV_ROLE_GATEWAY;
  if (is_crowd ? !read_ids(&identity) : !cv_party_is_valid(name)) {
    return cv_fail(why, CV_ERR_FORMAT, "identity '%s': expected %s", shown, expected_name(identity.role));
  }
  *ret = identity;
  return CV_OK;
}

bool cv_identity_vouches_for(const struct cv_identity *identity, uint64_t worker) {
  /* 0 to 0 is the range of a party that is no worker. */
  return worker != 0 && worker >= identity->first && worker <= identity->last;
}

bool cv_identity_overlaps(const struct cv_identity *a, const struct cv_identity *b) {
  return a->first != 0 && b->first != 0 && a->first <= b->last && b->first <= a->last;
}
