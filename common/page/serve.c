/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/serve.h"

#include <string.h>

#include "common/page/reply.h"

static const char *header(struct MHD_Connection *connection, const char *name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

struct cv_door_visit cv_page_visit(struct MHD_Connection *connection, const char *method) {
  return (struct cv_door_visit){.host = header(connection, MHD_HTTP_HEADER_HOST),
                                .origin = header(connection, "Origin"),
                                .cookie = header(connection, MHD_HTTP_HEADER_COOKIE),
                                .site = header(connection, "Sec-Fetch-Site"),
                                .mode = header(connection, "Sec-Fetch-Mode"),
                                .changes = strcmp(method, MHD_HTTP_METHOD_POST) == 0};
}

enum MHD_Result cv_page_let_in(const struct cv_door *door, struct MHD_Connection *connection) {
  static char nothing[] = "";
  struct MHD_Response *response = MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
  if (response == NULL) {
    return MHD_NO;
  }
  if (MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cv_door_cookie(door).text) != MHD_YES ||
      MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, "/") != MHD_YES) {
    MHD_destroy_response(response);
    return MHD_NO;
  }
  return cv_page_reply(connection, MHD_HTTP_SEE_OTHER, "text/plain; charset=utf-8", response);
}

/* Whether an Accept-Encoding has gzip, and not with q=0. */
static bool takes_gzip(const char *accepted) {
  const char *at = accepted == NULL ? NULL : strstr(accepted, "gzip");
  if (at == NULL) {
    return false;
  }
  at += strlen("gzip");
  at += strspn(at, "; ");
  return strncmp(at, "q=0", 3) != 0 || strspn(at + 3, ".0") != strcspn(at + 3, ", ");
}

static enum MHD_Result reply_file(struct MHD_Connection *connection, const struct cv_page_file *file) {
  bool packed = takes_gzip(header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING));
  union {
    const void *in;
    void *out;
  } body = {.in = packed ? file->gzip : file->plain};
  struct MHD_Response *response =
      MHD_create_response_from_buffer(packed ? file->gzip_n : file->plain_n, body.out, MHD_RESPMEM_PERSISTENT);
  if (response != NULL && packed) {
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
  }
  return cv_page_reply(connection, MHD_HTTP_OK, file->type, response);
}

enum MHD_Result cv_page_serve_file(const struct cv_page_files *files, struct MHD_Connection *connection,
                                   const char *path) {
  for (size_t i = 0; i < files->count; i++) {
    if (strcmp(files->file[i].path, path) == 0) {
      return reply_file(connection, &files->file[i]);
    }
  }
  return cv_page_reply_line(connection, MHD_HTTP_NOT_FOUND, "unknown path");
}
