/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/net/uverr.h"

enum { ANSWER_MAX = 64 << 20 };

struct cv_upstream {
  uv_pipe_t pipe;
  uv_connect_t connect;
  uv_write_t write;
  char request[300], room[16384];
  struct cv_upstream_ops ops;
  void *data;
  struct cv_buf in; /* of the body: what `line` has not taken */
  int status;       /* 0: the head is not complete */
  bool is_over;
};

static void on_closed(uv_handle_t *handle) {
  struct cv_upstream *upstream = handle->data;
  if (cv_buf_ok(&upstream->in)) {
    cv_buf_fini(&upstream->in);
  }
  free(upstream);
}

void cv_upstream_cancel(struct cv_upstream *upstream) {
  if (upstream != NULL && !upstream->is_over) {
    upstream->is_over = true;
    uv_close((uv_handle_t *)&upstream->pipe, on_closed);
  }
}

static void finish(struct cv_upstream *upstream) {
  if (!upstream->is_over) {
    cv_buf_put_u8(&upstream->in, '\0');
    bool whole = cv_buf_ok(&upstream->in);
    upstream->ops.done(upstream->data, whole ? upstream->status : 0, whole ? (const char *)upstream->in.data : "",
                       whole ? upstream->in.len - 1 : 0);
    cv_upstream_cancel(upstream);
  }
}

static void drop_front(struct cv_buf *in, size_t n) {
  memmove(in->data, in->data + n, in->len - n);
  in->len -= n;
}

/* Takes the head off once it is complete. */
static void take_head(struct cv_upstream *upstream) {
  static const char end[] = "\r\n\r\n";
  struct cv_buf *in = &upstream->in;
  const uint8_t *at = memmem(in->data, in->len, end, sizeof(end) - 1);
  if (at != NULL) {
    const uint8_t *blank = memchr(in->data, ' ', in->len);
    upstream->status = blank == NULL ? 0 : (int)strtol((const char *)blank, NULL, 10);
    drop_front(in, (size_t)(at - in->data) + sizeof(end) - 1);
  }
}

static void take_lines(struct cv_upstream *upstream) {
  struct cv_buf *in = &upstream->in;
  size_t used = 0;
  for (uint8_t *end; !upstream->is_over && (end = memchr(in->data + used, '\n', in->len - used)) != NULL;) {
    *end = '\0';
    const char *line = (const char *)in->data + used;
    used = (size_t)(end - in->data) + 1;
    upstream->ops.line(upstream->data, line);
  }
  if (!upstream->is_over) {
    drop_front(in, used);
  }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct cv_upstream *upstream = stream->data;
  if (n > 0) {
    cv_buf_put(&upstream->in, buf->base, (size_t)n);
  }
  if (n < 0 || !cv_buf_ok(&upstream->in) || upstream->in.len > ANSWER_MAX) {
    finish(upstream);
    return;
  }
  if (upstream->status == 0) {
    take_head(upstream);
  }
  if (upstream->status == 200 && upstream->ops.line != NULL && upstream->in.len > 0) {
    take_lines(upstream);
  }
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  struct cv_upstream *upstream = handle->data;
  *buf = uv_buf_init(upstream->room, sizeof(upstream->room));
}

static void on_written(uv_write_t *write, int status) {
  if (status != 0) {
    finish(write->data);
  }
}

static void on_connected(uv_connect_t *connect, int status) {
  struct cv_upstream *upstream = connect->data;
  const uv_buf_t buf = uv_buf_init(upstream->request, (unsigned)strlen(upstream->request));
  if (upstream->is_over) {
    return;
  }
  if (status != 0 || uv_read_start((uv_stream_t *)&upstream->pipe, on_room, on_read) != 0 ||
      uv_write(&upstream->write, (uv_stream_t *)&upstream->pipe, &buf, 1, on_written) != 0) {
    finish(upstream);
  }
}

enum cv_err cv_upstream_get(uv_loop_t *loop, const char *socket, const char *url, const struct cv_upstream_ops *ops,
                            void *data, struct cv_upstream **ret, struct cv_why *why) {
  struct cv_upstream *upstream = calloc(1, sizeof(*upstream));
  if (upstream == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: no memory for a request", socket);
  }
  upstream->ops = *ops;
  upstream->data = data;
  /* HTTP/1.0: the answer comes without chunks and ends with the connection. */
  (void)snprintf(upstream->request, sizeof(upstream->request), "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", url);
  (void)uv_pipe_init(loop, &upstream->pipe, 0);
  upstream->pipe.data = upstream->connect.data = upstream->write.data = upstream;
  uv_pipe_connect(&upstream->connect, &upstream->pipe, socket, on_connected);
  *ret = upstream;
  return CV_OK;
}
