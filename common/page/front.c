/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/front.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/page/reply.h"
#include "common/page/serve.h"

struct cv_page_front {
  struct cv_page *page;
  struct cv_door door;
  struct cv_httpd *httpd;
};

static const char *header(struct MHD_Connection *connection, const char *name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_n, void **request) {
  static const char how[] = "no access; expected the link that the program printed at its start";
  const struct cv_page_front *front = data;
  const struct cv_door_visit visit = {.host = header(connection, MHD_HTTP_HEADER_HOST),
                                      .origin = header(connection, "Origin"),
                                      .cookie = header(connection, MHD_HTTP_HEADER_COOKIE)};
  const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
  struct cv_why why;
  enum MHD_Result result;
  if (cv_door_check_origin(&front->door, &visit, &why) != CV_OK) {
    return cv_page_reply_line(connection, MHD_HTTP_FORBIDDEN, why.text);
  }
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
    return cv_page_reply_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed; expected GET or HEAD");
  }
  if (strcmp(url, "/") == 0 && token != NULL) {
    return cv_door_has_token(&front->door, token) ? cv_page_let_in(&front->door, connection)
                                                  : cv_page_reply_line(connection, MHD_HTTP_FORBIDDEN, how);
  }
  if (!cv_door_has_cookie(&front->door, visit.cookie)) {
    return cv_page_reply_line(connection, MHD_HTTP_FORBIDDEN, how);
  }
  if (strcmp(url, "/api/boundary") == 0 && !cv_page_has_boundary(front->page)) {
    return cv_page_reply_line(connection, MHD_HTTP_NOT_FOUND,
                              "this party does not see the others; the view of the boundary is in crowdveil up --page");
  }
  return cv_page_serve(front->page, connection, url, request, &result)
             ? result
             : cv_page_serve_file(cv_page_files(front->page), connection, strcmp(url, "/") == 0 ? "/index.html" : url);
}

static void on_ended(void *data, struct MHD_Connection *connection, void **request,
                     enum MHD_RequestTerminationCode code) {
  const struct cv_page_front *front = data;
  cv_page_ended(front->page, request);
}

enum cv_err cv_page_front_start(uv_loop_t *loop, struct cv_page *page, int socket, const struct cv_door *door,
                                struct cv_page_front **ret, struct cv_why *why) {
  struct cv_page_front *front = calloc(1, sizeof(*front));
  if (front == NULL) {
    (void)close(socket);
    return cv_fail(why, CV_ERR_NOMEM, "no memory for the page");
  }
  *front = (struct cv_page_front){.page = page, .door = *door};
  const struct cv_httpd_config config = {.handler = on_request, .completed = on_ended, .data = front};
  enum cv_err err = cv_httpd_start(loop, socket, &config, &front->httpd, why);
  if (err != CV_OK) {
    free(front);
    return err;
  }
  *ret = front;
  return CV_OK;
}

void cv_page_front_stop(struct cv_page_front *front) {
  if (front != NULL) {
    cv_httpd_stop(front->httpd);
    free(front);
  }
}
