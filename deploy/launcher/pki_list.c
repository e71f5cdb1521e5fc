/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki_list.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "common/net/certificate.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/pki/files.h"
#include "deploy/launcher/pki/index.h"

/* Null for never. */
static json_t *time_of(int64_t at_s) {
  time_t seconds = (time_t)at_s;
  struct tm tm;
  char text[32];
  if (at_s == 0 || gmtime_r(&seconds, &tm) == NULL || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0) {
    return json_null();
  }
  return json_string(text);
}

static void print_json(const struct cv_pki_entry *entry, const char *identity, int64_t now) {
  json_t *object = json_object();
  object = cv_json_set(object, "identity", json_string(identity));
  object = cv_json_set(object, "serial", json_string(entry->serial.hex));
  object = cv_json_set(object, "state", json_string(cv_pki_entry_state(entry, now)));
  object = cv_json_set(object, "made", time_of(entry->made));
  object = cv_json_set(object, "expires", time_of(entry->not_after));
  object = cv_json_set(object, "superseded", time_of(entry->superseded));
  object = cv_json_set(object, "revoked", time_of(entry->revoked));
  cv_json_print(object, JSON_COMPACT);
}

static void print_line(const struct cv_pki_entry *entry, const char *identity, int64_t now) {
  (void)printf("%-24s %-40s %-20s %-20s %s\n", identity, entry->serial.hex, cv_certificate_date(entry->made).text,
               cv_certificate_date(entry->not_after).text, cv_pki_entry_state(entry, now));
}

enum cv_err cv_pki_list_print(const char *ca_folder, bool json, struct cv_why *why) {
  char path[CV_PKI_PATH], identity[CV_NAME_BYTES + 16];
  struct cv_pki_index index;
  int64_t now = (int64_t)time(NULL);
  CV_TRY(cv_pki_join(path, ca_folder, "index", ".tsv", why));
  CV_TRY(cv_pki_index_read(path, &index, why));
  if (!json) {
    (void)printf("%-24s %-40s %-20s %-20s %s\n", "identity", "serial", "made", "expires", "state");
  }
  for (size_t i = 0; i < index.count; i++) {
    const struct cv_pki_entry *entry = &index.entry[i];
    (void)snprintf(identity, sizeof(identity), "%s/%s", cv_role_text(entry->identity.role), entry->identity.name);
    if (json) {
      print_json(entry, identity, now);
    } else {
      print_line(entry, identity, now);
    }
  }
  cv_pki_index_close(&index);
  return CV_OK;
}
