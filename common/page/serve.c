/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/serve.h"

#include <string.h>

#include "common/page/reply.h"

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
  bool packed = takes_gzip(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING));
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
