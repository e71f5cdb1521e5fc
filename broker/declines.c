/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/declines.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/rng.h"
#include "common/base/text.h"

void cv_declines_fini(struct cv_declines *declines) {
  free(declines->reason);
  free(declines->decliner);
  *declines = (struct cv_declines){0};
}

/* FNV-1a: two names with one hash would count as one connection, no more. */
static uint64_t hash_of(const char *who) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; *who != '\0'; who++) {
    hash = (hash ^ (uint8_t)*who) * UINT64_C(0x100000001b3);
  }
  return cv_mix64(hash);
}

static uint32_t find(const struct cv_declines *declines, uint64_t who) {
  uint32_t i = 0;
  while (i < declines->decliners && declines->decliner[i].who != who) {
    i++;
  }
  return i;
}

/* Ends in "..." if it is cut. */
static void cut(const char *why, char ret[CV_DECLINED_BYTES]) {
  bool fits = strlen(why) < CV_DECLINED_BYTES;
  size_t n = fits ? strlen(why) : CV_DECLINED_BYTES - 4;
  while (!fits && n > 0 && ((uint8_t)why[n] & 0xc0) == 0x80) { /* not within a character */
    n--;
  }
  cv_text_print(ret, CV_DECLINED_BYTES, "%.*s%s", (int)n, why, fits ? "" : "...");
}

/* The entry of the reason; the last one stands for all that have no room. */
static uint32_t entry_of(struct cv_declines *declines, const char *why) {
  char text[CV_DECLINED_BYTES];
  cut(why == NULL || why[0] == '\0' ? "no reason given" : why, text);
  uint32_t i = 0;
  while (i < declines->reasons && strcmp(declines->reason[i].why, text) != 0) {
    i++;
  }
  if (i == CV_DECLINE_REASONS) {
    cv_text_print(declines->reason[--i].why, CV_DECLINED_BYTES, "other reasons");
  } else if (i == declines->reasons) {
    memcpy(declines->reason[declines->reasons++].why, text, sizeof(text));
  }
  return i;
}

enum cv_err cv_declines_add(struct cv_declines *declines, const char *who, const char *why) {
  uint64_t hash = hash_of(who);
  if (find(declines, hash) < declines->decliners || declines->decliners == CV_DECLINERS) {
    return CV_OK;
  }
  if (declines->reason == NULL) {
    declines->reason = calloc(CV_DECLINE_REASONS, sizeof(*declines->reason));
  }
  if (declines->reason == NULL) {
    return CV_ERR_NOMEM;
  }
  CV_TRY(CV_ARRAY_ROOM(declines->decliner, (size_t)declines->decliners + 1, declines->cap));
  uint32_t reason = entry_of(declines, why);
  declines->decliner[declines->decliners++] = (struct cv_decliner){.who = hash, .reason = reason};
  declines->reason[reason].connections++;
  return CV_OK;
}

void cv_declines_forget(struct cv_declines *declines, const char *who) {
  uint32_t i = find(declines, hash_of(who));
  if (i < declines->decliners) {
    declines->reason[declines->decliner[i].reason].connections--;
    declines->decliner[i] = declines->decliner[--declines->decliners];
  }
}

void cv_declines_tell(const struct cv_declines *declines, struct cv_progress *ret) {
  bool told[CV_DECLINE_REASONS] = {false};
  ret->declined_all = declines->decliners;
  while (ret->declineds < CV_DECLINED_SHOWN) {
    uint32_t best = CV_DECLINE_REASONS;
    for (uint32_t i = 0; i < declines->reasons; i++) {
      bool is_more = best == CV_DECLINE_REASONS || declines->reason[i].connections > declines->reason[best].connections;
      best = !told[i] && declines->reason[i].connections > 0 && is_more ? i : best;
    }
    if (best == CV_DECLINE_REASONS) {
      return;
    }
    told[best] = true;
    ret->declined[ret->declineds++] = declines->reason[best];
  }
}
