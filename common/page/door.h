/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may open the page. A link with a random token opens it once; a cookie then stands for the token. Other users of
 * this machine can connect to the port but know neither. A page from elsewhere, open in the same browser, sends another
 * Host (DNS rebinding), Origin or Sec-Fetch-Site, and SameSite keeps the cookie from it, unless it is a page of another
 * port of the same host.
 */
#ifndef CV_PAGE_DOOR_H
#define CV_PAGE_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_DOOR_TOKEN_LEAST = 32, CV_DOOR_TOKEN_MOST = 128, CV_DOOR_GUESSES_MAX = 8 };

struct cv_door {
  char token[CV_DOOR_TOKEN_MOST + 1]; /* letters, digits, - and _ */
  unsigned port;                      /* names the cookie, since cookies do not know ports */
  const char *hosts;                  /* further names of the Host, a list (text.h); NULL: none */
  bool is_linked;                     /* the link may stand on a page of another site, such as a mail */
  bool has_tls;                       /* browsers come over a reverse proxy with TLS */
};

/* Of a request's headers; NULL: the header is absent. */
struct cv_door_visit {
  const char *host, *origin, *cookie;
  const char *site, *mode; /* Sec-Fetch-Site, Sec-Fetch-Mode */
  bool changes;            /* the request may change something: a POST */
};

/* Whether text can be a token: long enough, and only the characters above. */
bool cv_door_is_token(const char *text);
/* What a request offers as the token: that of a link, or the values of a cookie header under the door's name, of which
 * the first CV_DOOR_GUESSES_MAX count. Borrowed. */
struct cv_door_guesses {
  size_t count;
  struct {
    const char *text;
    size_t n;
  } one[CV_DOOR_GUESSES_MAX];
};
struct cv_door_guesses cv_door_guess(const char *token);
/* `cookie` may be NULL. */
struct cv_door_guesses cv_door_guesses(const struct cv_door *door, const char *cookie);
/* Whether one of them is the token. The time depends on their lengths only. */
bool cv_door_opens(const struct cv_door *door, const struct cv_door_guesses *guesses);
/*
 * Whether Host and Origin are those of the page itself, as far as they are there. What may change something must name
 * its origin, by Origin or by Sec-Fetch-Site; what changes nothing may come from elsewhere only by a link that somebody
 * follows. CV_ERR_DENIED with a line that says what was expected.
 */
CV_MUST_USE enum cv_err cv_door_check_origin(const struct cv_door *door, const struct cv_door_visit *visit,
                                             struct cv_why *why);
/* "crowdveil-PORT=TOKEN; HttpOnly; SameSite=Strict; Path=/"; Lax if is_linked, and Secure if has_tls. */
struct cv_door_cookie {
  char text[CV_DOOR_TOKEN_MOST + 80];
};
struct cv_door_cookie cv_door_cookie(const struct cv_door *door);

/* A number of a query: one to nineteen digits. False if it is absent or anything else. */
bool cv_door_number(const char *text, uint64_t *ret);

#endif
