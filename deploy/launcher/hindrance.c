/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/hindrance.h"

#include <string.h>

#include "common/base/text.h"
#include "deploy/launcher/json.h"
#include "deploy/launcher/pace.h"

static bool begins(const char *why, const char *key) {
  return strncmp(why, key, strlen(key)) == 0;
}

/* No decline, but what nobody can give more than. */
static bool is_limit(const char *why) {
  return begins(why, "tokens_per_worker: ") || begins(why, "worker_epsilon: ");
}

/* Whether rows may be left that a limit keeps back. */
static bool has_limit(const struct cv_progress *progress) {
  bool has = false;
  for (uint32_t i = 0; i < progress->declineds; i++) {
    has = has || is_limit(progress->declined[i].why) || begins(progress->declined[i].why, "accept.tokens: ");
  }
  return has;
}

static void print_used_up(const struct cv_progress *progress, const char *const *name, const char *indent, FILE *to) {
  (void)fprintf(to, "%s%s:", indent, has_limit(progress) ? "no more scores" : "data used up");
  for (uint32_t i = 0; i < progress->used_ups; i++) {
    const struct cv_used_up *each = &progress->used_up[i];
    (void)fprintf(to, "%s ", i == 0 ? "" : ";");
    if (name != NULL) {
      (void)fprintf(to, "%s", cv_text_shown(name[each->arm]).text);
    } else {
      (void)fprintf(to, "arm %u", each->arm + 1);
    }
    (void)fprintf(to, ", %s of %s", cv_count_text(each->tokens).text, cv_count_text(each->wanted).text);
  }
  if (progress->used_up_arms > progress->used_ups) {
    (void)fprintf(to, "; and %u more", progress->used_up_arms - progress->used_ups);
  }
  (void)fprintf(to, "\n");
}

void cv_hindrance_print(const struct cv_progress *progress, const char *const *name, const char *indent, FILE *to) {
  uint32_t told = 0;
  if (progress->why[0] != '\0') {
    (void)fprintf(to, "%swhy: %s\n", indent, progress->why);
  }
  if (progress->used_ups > 0) {
    print_used_up(progress, name, indent, to);
  }
  for (uint32_t i = 0; i < progress->declineds; i++) {
    const struct cv_declined *each = &progress->declined[i];
    (void)fprintf(to, "%s%s %u connection%s: %s\n", indent,
                  is_limit(each->why) ? "nothing more to give by" : "declined by", each->connections,
                  each->connections == 1 ? "" : "s", each->why);
    told += each->connections;
  }
  if (progress->declined_all > told) {
    (void)fprintf(to, "%sdeclined by %u more for other reasons\n", indent, progress->declined_all - told);
  }
}

json_t *cv_hindrance_json(json_t *object, const struct cv_progress *progress, const char *const *name) {
  json_t *used_up = json_array(), *declined = json_array();
  for (uint32_t i = 0; i < progress->used_ups; i++) {
    const struct cv_used_up *each = &progress->used_up[i];
    used_up = cv_json_append(used_up, json_pack("{s:s?, s:I, s:I, s:I}", "item", name == NULL ? NULL : name[each->arm],
                                                "arm", (json_int_t)each->arm, "tokens", (json_int_t)each->tokens,
                                                "wanted", (json_int_t)each->wanted));
  }
  for (uint32_t i = 0; i < progress->declineds; i++) {
    const struct cv_declined *each = &progress->declined[i];
    declined = cv_json_append(declined,
                              json_pack("{s:s, s:I}", "why", each->why, "connections", (json_int_t)each->connections));
  }
  object = cv_json_set(object, "why", progress->why[0] == '\0' ? json_null() : json_string(progress->why));
  object = cv_json_set(object, "used_up", used_up);
  return cv_json_set(object, "declined", declined);
}

const char *cv_hindrance_wait(const struct cv_progress *progress) {
  bool is_away = progress->waits_for_cobroker && !progress->cobroker_connected;
  return is_away ? "waits for the co-broker, which is not connected to the broker" : NULL;
}

bool cv_hindrance_differs(const struct cv_progress *a, const struct cv_progress *b) {
  return a->used_up_arms != b->used_up_arms || a->declined_all != b->declined_all || a->declineds != b->declineds;
}
