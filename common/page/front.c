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

/* Whoever guesses waits; whoever has no token at all, such as a browser that asks for an icon, does not. */
static enum MHD_Result refuse(struct MHD_Connection *connection, bool has_guessed) {
  enum MHD_Result result;
  return has_guessed && !cv_httpd_may_refuse(connection, &result)
             ? result
             : cv_page_reply_line(connection, MHD_HTTP_FORBIDDEN,
                                  "no access; expected the link that the program printed at its start");
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_n, void **request) {
  const struct cv_page_front *front = data;
  const struct cv_door_visit visit = cv_page_visit(connection, method);
  const struct cv_door_guesses cookies = cv_door_guesses(&front->door, visit.cookie);
  const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
  struct cv_why why;
  enum MHD_Result result;
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
    return cv_page_reply_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed; expected GET or HEAD");
  }
  if (cv_door_check_origin(&front->door, &visit, &why) != CV_OK) {
    return cv_page_reply_line(connection, MHD_HTTP_FORBIDDEN, why.text);
  }
  if (strcmp(url, "/") == 0 && token != NULL) {
    const struct cv_door_guesses link = cv_door_guess(token);
    return cv_door_opens(&front->door, &link) ? cv_page_let_in(&front->door, connection) : refuse(connection, true);
  }
  if (!cv_door_opens(&front->door, &cookies)) {
    return refuse(connection, cookies.count > 0);
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
