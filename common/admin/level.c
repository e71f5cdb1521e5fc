/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/level.h"

#include <stdio.h>
#include <string.h>

#include "common/admin/httpd.h"
#include "common/base/log.h"

/* What a request has said so far: *request points to one of these, so that nothing is left to free if it breaks off. */
static const char levels[CV_LOG_LEVELS], begun, wrong;

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *text) {
  char line[96];
  int n = snprintf(line, sizeof(line), "%s\n", text);
  return cv_httpd_reply(connection, status, "text/plain; charset=utf-8", line, (size_t)n);
}

/* A level in one piece, with or without a line break. */
static const char *read_body(const char *body, size_t n) {
  char word[8];
  n -= n > 0 && body[n - 1] == '\n';
  if (n >= sizeof(word) || memchr(body, '\0', n) != NULL) {
    return &wrong;
  }
  memcpy(word, body, n);
  word[n] = '\0';
  enum cv_log_level level = cv_log_level_of(word);
  return level == CV_LOG_LEVELS ? &wrong : &levels[level];
}

static enum MHD_Result set(struct MHD_Connection *connection, const char *said) {
  if (said == &wrong || said == &begun) {
    return reply(connection, MHD_HTTP_BAD_REQUEST, "wrong body; expected error, warn, info or debug");
  }
  cv_log_set_level((enum cv_log_level)(said - levels), "admin socket");
  return reply(connection, MHD_HTTP_OK, CV_LOG_LEVEL_WORDS[cv_log_level()]);
}

enum MHD_Result cv_admin_level(struct MHD_Connection *connection, const char *method, const char *upload,
                               size_t *upload_n, void **request) {
  union {
    const char *in;
    void *out;
  } said = {.out = *request};
  if (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0) {
    return reply(connection, MHD_HTTP_OK, CV_LOG_LEVEL_WORDS[cv_log_level()]);
  }
  if (strcmp(method, MHD_HTTP_METHOD_PUT) != 0 && strcmp(method, MHD_HTTP_METHOD_POST) != 0) {
    return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed; expected GET, HEAD, PUT or POST");
  }
  /* Called once with the headers, then with the pieces of the body, then with none. */
  if (said.in != NULL && *upload_n == 0) {
    return set(connection, said.in);
  }
  said.in = said.in == NULL ? &begun : said.in == &begun ? read_body(upload, *upload_n) : &wrong;
  *request = said.out;
  *upload_n = 0;
  return MHD_YES;
}
