/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/door.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/admin/host.h"
#include "common/base/text.h"

static const char TOKEN_CHARACTERS[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";

bool cv_door_is_token(const char *text) {
  size_t n = strlen(text);
  return n >= CV_DOOR_TOKEN_LEAST && n <= CV_DOOR_TOKEN_MOST && strspn(text, TOKEN_CHARACTERS) == n;
}

static bool is_token(const struct cv_door *door, const char *guess, size_t n) {
  volatile unsigned char differs = 0;
  if (n != strlen(door->token) || n == 0) { /* a length is no secret, and a guess may be as long as a head */
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    differs |= (unsigned char)((unsigned char)guess[i] ^ (unsigned char)door->token[i]);
  }
  return differs == 0;
}

bool cv_door_opens(const struct cv_door *door, const struct cv_door_guesses *guesses) {
  bool opens = false;
  for (size_t i = 0; i < guesses->count; i++) {
    opens = is_token(door, guesses->one[i].text, guesses->one[i].n) || opens;
  }
  return opens;
}

struct cv_door_guesses cv_door_guess(const char *token) {
  return (struct cv_door_guesses){.count = 1, .one = {{.text = token, .n = strlen(token)}}};
}

/* Whether `host` is `name`, alone or with a port. */
static bool is_host(const char *host, const char *name, size_t n) {
  size_t digits = strncasecmp(host, name, n) == 0 && host[n] == ':' ? strspn(host + n + 1, "0123456789") : 0;
  return strncasecmp(host, name, n) == 0 &&
         (host[n] == '\0' || (digits >= 1 && digits <= 5 && host[n + 1 + digits] == '\0'));
}

static bool is_listed(const char *hosts, const char *host) {
  const char *word;
  size_t n;
  while (hosts != NULL && (word = cv_text_word(&hosts, &n)) != NULL) {
    if (is_host(host, word, n)) {
      return true;
    }
  }
  return false;
}

static bool is(const char *value, const char *expected) {
  return value != NULL && strcmp(value, expected) == 0;
}

/* Whether a browser's word about where the request comes from, if there is one, permits it. */
static bool may_come(const struct cv_door_visit *visit) {
  bool own = is(visit->site, "same-origin");
  if (visit->changes) {
    return own || (visit->site == NULL && visit->origin != NULL);
  }
  return own || visit->site == NULL || is(visit->site, "none") || is(visit->mode, "navigate");
}

enum cv_err cv_door_check_origin(const struct cv_door *door, const struct cv_door_visit *visit, struct cv_why *why) {
  const char *scheme = door->has_tls ? "https://" : "http://";
  size_t scheme_n = strlen(scheme);
  if (visit->host == NULL || !(cv_host_is_local(visit->host) || is_listed(door->hosts, visit->host))) {
    return cv_fail(why, CV_ERR_DENIED, "wrong Host; expected this machine's: use the link that the program printed");
  }
  if (visit->origin != NULL &&
      (strncasecmp(visit->origin, scheme, scheme_n) != 0 || strcasecmp(visit->origin + scheme_n, visit->host) != 0)) {
    return cv_fail(why, CV_ERR_DENIED, "wrong Origin; expected a request of the page itself");
  }
  if (!may_come(visit)) {
    return cv_fail(why, CV_ERR_DENIED,
                   visit->site == NULL ? "neither Origin nor Sec-Fetch-Site; expected one of them, of the page itself"
                                       : "wrong Sec-Fetch-Site; expected a request of the page itself");
  }
  return CV_OK;
}

static int cookie_name(const struct cv_door *door, char *to, size_t size) {
  return snprintf(to, size, "crowdveil-%u=", door->port);
}

struct cv_door_guesses cv_door_guesses(const struct cv_door *door, const char *cookie) {
  struct cv_door_guesses found = {.count = 0};
  char name[32];
  size_t n = (size_t)cookie_name(door, name, sizeof(name));
  while (cookie != NULL && *cookie != '\0' && found.count < CV_DOOR_GUESSES_MAX) {
    cookie += strspn(cookie, "; ");
    size_t length = strcspn(cookie, ";");
    if (length >= n && strncmp(cookie, name, n) == 0) {
      found.one[found.count].text = cookie + n;
      found.one[found.count++].n = length - n;
    }
    cookie += length;
  }
  return found;
}

struct cv_door_cookie cv_door_cookie(const struct cv_door *door) {
  struct cv_door_cookie made;
  char name[32];
  (void)cookie_name(door, name, sizeof(name));
  (void)snprintf(made.text, sizeof(made.text), "%s%s; HttpOnly; SameSite=%s; Path=/%s", name, door->token,
                 door->is_linked ? "Lax" : "Strict", door->has_tls ? "; Secure" : "");
  return made;
}

bool cv_door_number(const char *text, uint64_t *ret) {
  size_t n = text == NULL ? 0 : strlen(text);
  if (n < 1 || n > 19 || strspn(text, "0123456789") != n) {
    return false;
  }
  *ret = strtoull(text, NULL, 10);
  return true;
}
