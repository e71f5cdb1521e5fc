/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/revoke.h"

#include <string.h>
#include <time.h>

#include "deploy/launcher/pki/ca.h"
#include "deploy/launcher/pki/crl.h"
#include "deploy/launcher/pki/party.h"

struct target {
  const char *text;
  bool is_identity;
  struct cv_identity identity;
  struct cv_serial serial;
};

static enum cv_err parse(const char *text, struct target *ret, struct cv_why *why) {
  *ret = (struct target){.text = text, .is_identity = strchr(text, '/') != NULL};
  if (ret->is_identity) {
    return cv_pki_identity(text, &ret->identity, why);
  }
  return cv_serial_parse(text, &ret->serial)
             ? CV_OK
             : cv_fail(why, CV_ERR_FORMAT, "\"%.60s\": expected ROLE/NAME or a serial number in hex", text);
}

static bool is_meant(const struct target *target, const struct cv_pki_entry *entry, int64_t now) {
  if (!target->is_identity) {
    return strcmp(entry->serial.hex, target->serial.hex) == 0;
  }
  return entry->not_after > now && entry->identity.role == target->identity.role &&
         strcmp(entry->identity.name, target->identity.name) == 0;
}

/* An earlier revocation keeps its time. */
static enum cv_err mark(struct cv_pki_ca *ca, const struct target *target, int64_t now, struct cv_why *why) {
  bool is_found = false, is_changed = false;
  for (size_t i = 0; i < ca->index.count; i++) {
    struct cv_pki_entry *entry = &ca->index.entry[i];
    if (is_meant(target, entry, now)) {
      is_found = true;
      is_changed = is_changed || entry->revoked == 0;
      entry->revoked = entry->revoked == 0 ? now : entry->revoked;
    }
  }
  if (!is_found) {
    return cv_fail(why, CV_ERR_NOT_FOUND,
                   "%s: no %scertificate of \"%.80s\"; expected one that crowdveil pki list shows", ca->index_path,
                   target->is_identity ? "unexpired " : "", target->text);
  }
  return is_changed ? cv_pki_index_save(&ca->index, ca->index_path, why) : CV_OK;
}

enum cv_err cv_pki_revoke(const char *ca_folder, const char *what,
                          void (*told)(void *data, const struct cv_pki_entry *entry), void *data, struct cv_why *why) {
  struct target target;
  struct cv_pki_ca ca;
  int64_t now = (int64_t)time(NULL);
  CV_TRY(parse(what, &target, why));
  CV_TRY(cv_pki_ca_open(ca_folder, &ca, why));
  /* The index first: the next command that opens the CA signs a list that agrees with it. */
  enum cv_err err = mark(&ca, &target, now, why);
  if (err == CV_OK) {
    err = cv_pki_crl_refresh(&ca, now, why);
  }
  for (size_t i = 0; err == CV_OK && i < ca.index.count; i++) {
    const struct cv_pki_entry *entry = &ca.index.entry[i];
    if (is_meant(&target, entry, now)) {
      told(data, entry);
    }
  }
  cv_pki_ca_close(&ca);
  return err;
}
