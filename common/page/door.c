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

/* The time depends on the guess's length only. */
static bool is_token(const struct cv_door *door, const char *guess, size_t n) {
  size_t length = strlen(door->token);
  volatile unsigned char differs = n != length;
  for (size_t i = 0; i < n; i++) {
    differs |= (unsigned char)((unsigned char)guess[i] ^ (unsigned char)door->token[i < length ? i : length]);
  }
  return differs == 0 && length > 0;
}

bool cv_door_has_token(const struct cv_door *door, const char *token) {
  return is_token(door, token, strlen(token));
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
  return CV_OK;
}

static int cookie_name(const struct cv_door *door, char *to, size_t size) {
  return snprintf(to, size, "crowdveil-%u=", door->port);
}

bool cv_door_has_cookie(const struct cv_door *door, const char *cookie) {
  char name[32];
  size_t n = (size_t)cookie_name(door, name, sizeof(name));
  while (cookie != NULL && *cookie != '\0') {
    cookie += strspn(cookie, "; ");
    size_t length = strcspn(cookie, ";");
    if (length > n && strncmp(cookie, name, n) == 0 && is_token(door, cookie + n, length - n)) {
      return true;
    }
    cookie += length;
  }
  return false;
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
