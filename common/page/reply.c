/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/reply.h"

#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"

#define POLICY(connect, form)                                                                           \
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src " connect \
  "; "                                                                                                  \
  "base-uri 'none'; form-action " form "; frame-ancestors 'none'"

static const char *const headers[][2] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status, const char *type, bool has_form,
                             struct MHD_Response *response) {
  if (response == NULL) {
    return MHD_NO;
  }
  /* Without a referrer a browser does not name the origin of what a form sends, either. */
  bool dressed =
      MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
      MHD_add_response_header(response, "Content-Security-Policy",
                              has_form ? POLICY("'none'", "'self'") : POLICY("'self'", "'none'")) == MHD_YES &&
      MHD_add_response_header(response, "Referrer-Policy", has_form ? "same-origin" : "no-referrer") == MHD_YES;
  for (size_t i = 0; i < CV_COUNT(headers); i++) {
    dressed = dressed && MHD_add_response_header(response, headers[i][0], headers[i][1]) == MHD_YES;
  }
  /* Without one of its headers an answer must not leave. */
  enum MHD_Result result = dressed ? MHD_queue_response(connection, status, response) : MHD_NO;
  MHD_destroy_response(response);
  return result;
}

enum MHD_Result cv_page_reply(struct MHD_Connection *connection, unsigned status, const char *type,
                              struct MHD_Response *response) {
  return reply(connection, status, type, false, response);
}

enum MHD_Result cv_page_reply_form(struct MHD_Connection *connection, unsigned status, const char *type,
                                   struct MHD_Response *response) {
  return reply(connection, status, type, true, response);
}

enum MHD_Result cv_page_reply_bytes(struct MHD_Connection *connection, unsigned status, const char *type,
                                    const void *bytes, size_t n) {
  /* MHD_RESPMEM_MUST_COPY copies the bytes and does not write them, although the parameter is not const. */
  union {
    const void *in;
    void *out;
  } body = {.in = bytes};
  return cv_page_reply(connection, status, type, MHD_create_response_from_buffer(n, body.out, MHD_RESPMEM_MUST_COPY));
}

enum MHD_Result cv_page_reply_line(struct MHD_Connection *connection, unsigned status, const char *line) {
  char text[512];
  int n = snprintf(text, sizeof(text), "%s\n", line);
  return cv_page_reply_bytes(connection, status, "text/plain; charset=utf-8", text, (size_t)n);
}
