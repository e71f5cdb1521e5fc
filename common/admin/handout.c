/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/handout.h"

#include <stdio.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { BLOCK_BYTES = 256 * 1024, SLOWEST_BYTES_PER_MS = 1024, SLACK_MS = 60000 };

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text) {
  char line[sizeof(struct cv_why) + 1];
  int n = snprintf(line, sizeof(line), "%s\n", text);
  return cv_httpd_reply(connection, status, "text/plain; charset=utf-8", line, (size_t)n);
}

static ssize_t read_block(void *data, uint64_t at, char *to, size_t n) {
  const struct cv_handout *handout = data;
  cv_httpd_goes_on(handout->connection);
  ssize_t got = cv_clock_mono_ms() < handout->until_ms ? pread(handout->fd, to, n, (off_t)at) : -1;
  return got > 0 ? got : MHD_CONTENT_READER_END_WITH_ERROR;
}

static enum MHD_Result stream(struct cv_handout *handout, struct MHD_Connection *connection) {
  struct MHD_Response *response =
      MHD_create_response_from_callback(handout->bytes, BLOCK_BYTES, read_block, handout, NULL);
  handout->until_ms = cv_clock_mono_ms() + SLACK_MS + handout->bytes / SLOWEST_BYTES_PER_MS;
  enum MHD_Result result = MHD_NO;
  if (response != NULL &&
      MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/vnd.sqlite3") == MHD_YES &&
      MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES) {
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
  }
  if (response != NULL) {
    MHD_destroy_response(response);
  }
  return result;
}

static enum MHD_Result begin(struct cv_handout *handout, struct MHD_Connection *connection, void **request,
                             cv_handout_begin_fn *begin_copy, void *data) {
  struct cv_why why;
  if (handout->is_busy) {
    return refuse(connection, MHD_HTTP_CONFLICT, "a backup is running already; try again when it has ended");
  }
  if (begin_copy(data, &why) != CV_OK) {
    return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, why.text);
  }
  *handout = (struct cv_handout){.connection = connection, .waits = true, .is_busy = true, .fd = -1};
  *request = handout;
  cv_httpd_suspend(connection);
  return MHD_YES;
}

enum MHD_Result cv_handout_request(struct cv_handout *handout, struct MHD_Connection *connection, size_t *upload_n,
                                   void **request, cv_handout_begin_fn *begin_copy, void *data) {
  static char seen;       /* marks a request that MHD has announced, and that has not begun a copy */
  if (*request == NULL) { /* MHD calls again when it has read the whole request */
    *request = &seen;
    return MHD_YES;
  }
  if (*upload_n > 0) { /* /backup takes no content; MHD wants it read */
    *upload_n = 0;
    return MHD_YES;
  }
  if (*request != handout) {
    return begin(handout, connection, request, begin_copy, data);
  }
  return handout->fd >= 0 ? stream(handout, connection)
                          : refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, handout->why.text);
}

void cv_handout_made(struct cv_handout *handout, int fd, uint64_t bytes, const struct cv_why *why) {
  CV_REQUIRE(handout->waits);
  handout->fd = fd;
  handout->bytes = bytes;
  handout->why = fd >= 0 ? (struct cv_why){{0}} : *why;
  handout->waits = false;
  cv_httpd_resume(handout->connection);
}

void cv_handout_ended(struct cv_handout *handout) {
  if (handout->fd >= 0) {
    (void)close(handout->fd);
  }
  *handout = (struct cv_handout){.fd = -1};
}

void cv_handout_stop(struct cv_handout *handout) {
  static const struct cv_why why = {.text = "the daemon is stopping"};
  if (handout->waits) {
    cv_handout_made(handout, -1, 0, &why);
  }
}
