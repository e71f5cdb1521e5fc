/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/page.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/page/reply.h"

enum { BEAT_MS = 5000, WAKE_MS = 50, BEATS_COMMENT = 3, PIECE_BYTES = 16384 };

/* A request that was told to ask again later. */
struct waiting {
  struct waiting *prev, *next;
  struct cv_page *page;
  struct MHD_Connection *connection;
  bool is_suspended;
};

typedef enum cv_page_next produce_fn(void *data, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out);

/* An answer that is made piece by piece. */
struct stream {
  struct stream *prev, *next;
  struct cv_page *page;
  struct MHD_Connection *connection;
  produce_fn *produce;
  uint64_t id;
  struct cv_page_cursor at;
  struct cv_buf piece;
  size_t sent;                          /* bytes of the piece */
  bool is_events, is_suspended, is_due; /* is_due: a comment is to be sent */
  unsigned beats;
};

struct cv_page {
  struct cv_page_ops ops;
  void *data;
  uv_timer_t beat, wake;
  unsigned handles; /* not closed yet */
  struct waiting *waiting;
  struct stream *streams;
  unsigned events;
  bool closing;
};

/* ---- waiting ---- */

static void resume_stream(struct stream *stream) {
  if (stream->is_suspended) {
    stream->is_suspended = false;
    cv_httpd_resume(stream->connection);
  }
}

static void resume_all(struct cv_page *page) {
  struct waiting *waiting;
  struct stream *stream;
  DL_FOREACH(page->waiting, waiting) {
    if (waiting->is_suspended) {
      waiting->is_suspended = false;
      cv_httpd_resume(waiting->connection);
    }
  }
  DL_FOREACH(page->streams, stream) {
    resume_stream(stream);
  }
}

static void on_wake(uv_timer_t *timer) {
  resume_all(timer->data);
}

/* Not at once: with hundreds of steps a second a stream sends what has come meanwhile in one piece. */
void cv_page_wake(struct cv_page *page) {
  if (cv_page_is_watched(page) && !uv_is_active((const uv_handle_t *)&page->wake)) {
    (void)uv_timer_start(&page->wake, on_wake, WAKE_MS, 0);
  }
}

const struct cv_page_files *cv_page_files(const struct cv_page *page) {
  static const struct cv_page_files none = {.count = 0};
  return page->ops.files != NULL ? page->ops.files : &none;
}

bool cv_page_has_boundary(const struct cv_page *page) {
  return page->ops.boundary != NULL && page->ops.has_whole_boundary;
}

bool cv_page_is_watched(const struct cv_page *page) {
  return page->streams != NULL || page->waiting != NULL;
}

/* Suspends the request; the handler is called again with the same *request. */
static enum MHD_Result wait(struct cv_page *page, struct MHD_Connection *connection, void **request) {
  struct waiting *waiting = *request;
  if (waiting == NULL) {
    waiting = calloc(1, sizeof(*waiting));
    if (waiting == NULL) {
      return MHD_NO;
    }
    *waiting = (struct waiting){.page = page, .connection = connection};
    DL_APPEND(page->waiting, waiting);
    *request = waiting;
  }
  waiting->is_suspended = true;
  cv_httpd_suspend(connection);
  return MHD_YES;
}

void cv_page_ended(struct cv_page *page, void **request) {
  struct waiting *waiting;
  DL_FOREACH(page->waiting, waiting) {
    if (waiting == *request) {
      DL_DELETE(page->waiting, waiting);
      free(waiting);
      *request = NULL;
      return;
    }
  }
}

/* ---- streams ---- */

/* A suspended connection does not notice that its other end is gone. */
static bool is_gone(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  struct pollfd ask = {.fd = info == NULL ? -1 : info->connect_fd, .events = POLLRDHUP};
  return poll(&ask, 1, 0) > 0 && (ask.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void on_beat(uv_timer_t *timer) {
  struct cv_page *page = timer->data;
  struct stream *stream;
  DL_FOREACH(page->streams, stream) {
    if (stream->is_suspended) {
      stream->is_due = ++stream->beats % BEATS_COMMENT == 0;
      if (stream->is_due || is_gone(stream->connection)) {
        resume_stream(stream);
      }
    }
  }
}

static void on_stream_over(void *data) {
  struct stream *stream = data;
  struct cv_page *page = stream->page;
  DL_DELETE(page->streams, stream);
  page->events -= stream->is_events;
  if (page->streams == NULL) {
    (void)uv_timer_stop(&page->beat);
  }
  cv_buf_fini(&stream->piece);
  free(stream);
}

/* Copies what is left of the piece; 0 if nothing is. */
static size_t give(struct stream *stream, char *to, size_t room) {
  size_t left = stream->piece.len - stream->sent, n = left < room ? left : room;
  if (n > 0) {
    memcpy(to, stream->piece.data + stream->sent, n);
    stream->sent += n;
  }
  return n;
}

/* Makes the next piece. */
static enum cv_page_next produce(struct stream *stream) {
  struct cv_page *page = stream->page;
  cv_buf_clear(&stream->piece);
  stream->sent = 0;
  enum cv_page_next next = stream->produce(page->data, stream->id, &stream->at, &stream->piece);
  if (next == CV_PAGE_WAIT && stream->is_due) {
    static const char comment[] = ":\n\n";
    cv_buf_put(&stream->piece, comment, sizeof(comment) - 1);
    next = CV_PAGE_MORE;
  }
  stream->is_due = false;
  return next;
}

static ssize_t on_read(void *data, uint64_t position, char *to, size_t room) {
  struct stream *stream = data;
  cv_httpd_goes_on(stream->connection);
  size_t n = give(stream, to, room);
  if (n > 0) {
    return (ssize_t)n;
  }
  if (stream->page->closing || (stream->is_events && is_gone(stream->connection))) {
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  enum cv_page_next next = produce(stream);
  if (!cv_buf_ok(&stream->piece)) {
    return MHD_CONTENT_READER_END_WITH_ERROR;
  }
  n = give(stream, to, room);
  if (n == 0 && next == CV_PAGE_WAIT) {
    cv_buf_fini(&stream->piece); /* a piece with many items is large; an idle stream keeps none */
    stream->is_suspended = true;
    cv_httpd_suspend(stream->connection);
    return 0;
  }
  return n > 0 || next != CV_PAGE_END ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result start_stream(struct cv_page *page, struct MHD_Connection *connection, const struct stream *like,
                                    const char *type) {
  struct stream *stream = calloc(1, sizeof(*stream));
  if (stream == NULL) {
    return MHD_NO;
  }
  *stream = *like;
  stream->page = page;
  stream->connection = connection;
  struct MHD_Response *response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_BYTES, on_read, stream, on_stream_over);
  if (response == NULL) {
    free(stream);
    return MHD_NO;
  }
  if (page->streams == NULL) {
    (void)uv_timer_start(&page->beat, on_beat, BEAT_MS, BEAT_MS);
  }
  DL_APPEND(page->streams, stream);
  page->events += stream->is_events;
  return cv_page_reply(connection, MHD_HTTP_OK, type, response);
}

/* ---- requests ---- */

static const char *argument(struct MHD_Connection *connection, const char *key) {
  return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, key);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, enum cv_page_found found) {
  return found == CV_PAGE_ABSENT ? cv_page_reply_line(connection, MHD_HTTP_NOT_FOUND, "there is no such campaign")
                                 : cv_page_reply_line(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
                                                      "the history cannot be read; the program's log says why");
}

static enum MHD_Result answer_whole(struct cv_page *page, struct MHD_Connection *connection, enum cv_page_found found,
                                    struct cv_buf *out, const char *type, void **request) {
  enum MHD_Result result;
  if (found == CV_PAGE_LATER) {
    result = wait(page, connection, request);
  } else if (found != CV_PAGE_HERE || !cv_buf_ok(out)) {
    result = refuse(connection, found == CV_PAGE_ABSENT ? found : CV_PAGE_FAILED);
  } else {
    result = cv_page_reply_bytes(connection, MHD_HTTP_OK, type, out->data, out->len);
  }
  if (cv_buf_ok(out)) {
    cv_buf_fini(out);
  }
  return result;
}

/* Where the client's last event was: its browser says so when it connects again. False if it is no number. */
static bool read_after(struct MHD_Connection *connection, struct cv_page_cursor *at) {
  const char *last = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
  last = last == NULL || *last == '\0' ? argument(connection, "after") : last;
  at->has_after = last != NULL;
  return last == NULL || cv_door_number(last, &at->after);
}

static enum MHD_Result answer_stream(struct cv_page *page, struct MHD_Connection *connection, bool is_events,
                                     uint64_t id, void **request) {
  struct stream like = {.id = id, .is_events = is_events, .produce = is_events ? page->ops.events : page->ops.history};
  if (is_events && !read_after(connection, &like.at)) {
    return cv_page_reply_line(connection, MHD_HTTP_BAD_REQUEST, "wrong after; expected the number of a step");
  }
  enum cv_page_found found = page->ops.find(page->data, id);
  if (found != CV_PAGE_HERE) {
    return found == CV_PAGE_LATER ? wait(page, connection, request) : refuse(connection, found);
  }
  if (is_events && page->events >= CV_PAGE_STREAMS_MAX) {
    return cv_page_reply_line(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many open pages; expected at most 64");
  }
  return start_stream(page, connection, &like, is_events ? "text/event-stream" : CV_PAGE_JSON);
}

static enum MHD_Result answer_boundary(struct cv_page *page, struct MHD_Connection *connection, uint64_t id,
                                       void **request) {
  struct cv_buf out = {0};
  uint64_t arm;
  if (!cv_door_number(argument(connection, "arm"), &arm)) {
    return cv_page_reply_line(connection, MHD_HTTP_BAD_REQUEST, "wrong arm; expected the number of an item");
  }
  enum cv_page_found found = page->ops.boundary(page->data, id, arm, &out);
  return answer_whole(page, connection, found, &out, CV_PAGE_JSON, request);
}

bool cv_page_serve(struct cv_page *page, struct MHD_Connection *connection, const char *url, void **request,
                   enum MHD_Result *ret) {
  enum { CAMPAIGNS, CAMPAIGN, EVENTS, BOUNDARY, TABLE, PATHS };
  static const char *const paths[PATHS] = {"/api/campaigns", "/api/campaign", "/api/events", "/api/boundary", "/table"};
  struct cv_buf out = {0};
  uint64_t id = 0;
  int path = 0;
  while (path < PATHS && strcmp(url, paths[path]) != 0) {
    path++;
  }
  if (path == PATHS || (path == BOUNDARY ? page->ops.boundary == NULL : page->ops.campaigns == NULL)) {
    return false;
  }
  if (page->closing) {
    *ret = MHD_NO;
  } else if (path == CAMPAIGNS) {
    enum cv_page_found found = page->ops.campaigns(page->data, &out);
    *ret = answer_whole(page, connection, found, &out, CV_PAGE_JSON, request);
  } else if (!(path == TABLE && argument(connection, "id") == NULL) &&
             !cv_door_number(argument(connection, "id"), &id)) {
    *ret = cv_page_reply_line(connection, MHD_HTTP_BAD_REQUEST, "wrong id; expected the number of a campaign");
  } else if (path == BOUNDARY) {
    *ret = answer_boundary(page, connection, id, request);
  } else if (path == TABLE) {
    enum cv_page_found found = page->ops.table(page->data, id, &out);
    *ret = answer_whole(page, connection, found, &out, "text/html; charset=utf-8", request);
  } else {
    *ret = answer_stream(page, connection, path == EVENTS, id, request);
  }
  return true;
}

/* ---- life ---- */

enum cv_err cv_page_new(uv_loop_t *loop, const struct cv_page_ops *ops, void *data, struct cv_page **ret,
                        struct cv_why *why) {
  struct cv_page *page = calloc(1, sizeof(*page));
  if (page == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "no memory for the page");
  }
  page->ops = *ops;
  page->data = data;
  (void)uv_timer_init(loop, &page->beat);
  (void)uv_timer_init(loop, &page->wake);
  page->beat.data = page->wake.data = page;
  page->handles = 2;
  *ret = page;
  return CV_OK;
}

void cv_page_close(struct cv_page *page) {
  if (page != NULL && !page->closing) {
    page->closing = true;
    resume_all(page);
  }
}

static void on_closed(uv_handle_t *handle) {
  struct cv_page *page = handle->data;
  if (--page->handles == 0) {
    free(page);
  }
}

void cv_page_free(struct cv_page *page) {
  if (page != NULL) {
    uv_close((uv_handle_t *)&page->beat, on_closed);
    uv_close((uv_handle_t *)&page->wake, on_closed);
  }
}
