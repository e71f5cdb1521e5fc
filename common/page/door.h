/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may open the page. A link with a random token opens it once; a cookie then stands for the token. Other users of
 * this machine can connect to the port but know neither. A page from elsewhere, open in the same browser, sends another
 * Host (DNS rebinding) or another Origin, and SameSite keeps the cookie from it.
 */
#ifndef CV_PAGE_DOOR_H
#define CV_PAGE_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_DOOR_TOKEN_LEAST = 32, CV_DOOR_TOKEN_MOST = 128 };

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
};

/* Whether text can be a token: long enough, and only the characters above. */
bool cv_door_is_token(const char *text);
/* Compares in constant time. */
bool cv_door_has_token(const struct cv_door *door, const char *token);
/* Whether Host and Origin are those of the page itself. CV_ERR_DENIED with a line that says what was expected. */
CV_MUST_USE enum cv_err cv_door_check_origin(const struct cv_door *door, const struct cv_door_visit *visit,
                                             struct cv_why *why);
/* Whether the cookie stands for the token. */
bool cv_door_has_cookie(const struct cv_door *door, const char *cookie);
/* "crowdveil-PORT=TOKEN; HttpOnly; SameSite=Strict; Path=/"; Lax if is_linked, and Secure if has_tls. */
struct cv_door_cookie {
  char text[CV_DOOR_TOKEN_MOST + 80];
};
struct cv_door_cookie cv_door_cookie(const struct cv_door *door);

/* A number of a query: one to nineteen digits. False if it is absent or anything else. */
bool cv_door_number(const char *text, uint64_t *ret);

#endif
