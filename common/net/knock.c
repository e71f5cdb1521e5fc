/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/knock.h"

#include <stdlib.h>

#include "common/net/timer.h"

/* Freed when the timer and the connection are closed and the resolver has answered. */
struct cv_knock {
  struct cv_timer timer;
  uv_tcp_t tcp;
  uv_getaddrinfo_t resolve;
  uv_connect_t connect;
  uv_shutdown_t shutdown;
  struct addrinfo *found; /* what the name stands for */
  struct addrinfo *host;  /* the one being tried, or to try next */
  bool ended, timer_open, tcp_open, resolving;
  char said[64]; /* by the other side; only whether it says anything matters */
  void (*over)(void *data, bool answered);
  void *data;
};

static void free_if_over(struct cv_knock *knock) {
  if (!knock->timer_open && !knock->tcp_open && !knock->resolving) {
    uv_freeaddrinfo(knock->found);
    free(knock);
  }
}

static void on_timer_closed(uv_handle_t *handle) {
  struct cv_knock *knock = handle->data;
  knock->timer_open = false;
  free_if_over(knock);
}

static void try_host(struct cv_knock *knock);

static void on_tcp_closed(uv_handle_t *handle) {
  struct cv_knock *knock = handle->data;
  knock->tcp_open = false;
  if (knock->ended) {
    free_if_over(knock);
  } else {
    try_host(knock);
  }
}

static void close_tcp(struct cv_knock *knock) {
  if (knock->tcp_open && !uv_is_closing((uv_handle_t *)&knock->tcp)) {
    uv_close((uv_handle_t *)&knock->tcp, on_tcp_closed);
  }
}

void cv_knock_stop(struct cv_knock *knock) {
  if (knock == NULL || knock->ended) {
    return;
  }
  knock->ended = true;
  if (knock->resolving) {
    /* on_resolved() follows in either case. */
    (void)uv_cancel((uv_req_t *)&knock->resolve);
  }
  close_tcp(knock);
  cv_timer_close(&knock->timer, on_timer_closed);
}

static void end(struct cv_knock *knock, bool answered) {
  cv_knock_stop(knock);
  knock->over(knock->data, answered);
}

static void on_limit(struct cv_timer *timer) {
  end(timer->uv.data, false);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  struct cv_knock *knock = handle->data;
  *buf = uv_buf_init(knock->said, sizeof(knock->said));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct cv_knock *knock = stream->data;
  if (n > 0 || n == UV_EOF) {
    end(knock, true);
  } else if (n < 0) {
    close_tcp(knock);
  }
}

static void on_connected(uv_connect_t *req, int status) {
  struct cv_knock *knock = req->data;
  uv_stream_t *stream = (uv_stream_t *)&knock->tcp;
  if (knock->ended) {
    return;
  }
  if (status < 0 || uv_read_start(stream, on_alloc, on_read) < 0 || uv_shutdown(&knock->shutdown, stream, NULL) < 0) {
    close_tcp(knock);
  }
}

/* One after the other; after the last one the knock is over. */
static void try_host(struct cv_knock *knock) {
  if (knock->host == NULL) {
    end(knock, false);
    return;
  }
  const struct sockaddr *to = knock->host->ai_addr;
  knock->host = knock->host->ai_next;
  (void)uv_tcp_init(knock->timer.uv.loop, &knock->tcp);
  knock->tcp.data = knock->connect.data = knock;
  knock->tcp_open = true;
  if (uv_tcp_connect(&knock->connect, &knock->tcp, to, on_connected) < 0) {
    close_tcp(knock);
  }
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found) {
  struct cv_knock *knock = req->data;
  knock->resolving = false;
  knock->found = knock->host = status == 0 ? found : NULL;
  if (knock->ended) {
    free_if_over(knock);
  } else {
    try_host(knock);
  }
}

enum cv_err cv_knock_start(uv_loop_t *loop, const struct cv_address *address, unsigned limit_ms,
                           void (*over)(void *data, bool answered), void *data, struct cv_knock **ret) {
  struct cv_knock *knock = calloc(1, sizeof(*knock));
  if (knock == NULL) {
    return CV_ERR_NOMEM;
  }
  knock->over = over;
  knock->data = data;
  cv_timer_init(loop, &knock->timer, knock);
  knock->timer_open = true;
  knock->resolve.data = knock;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  knock->resolving = uv_getaddrinfo(loop, &knock->resolve, on_resolved, address->host, address->port, &hints) == 0;
  /* Without a resolver it is over in the next turn. */
  cv_timer_start(&knock->timer, on_limit, knock->resolving ? limit_ms : 0);
  *ret = knock;
  return CV_OK;
}
