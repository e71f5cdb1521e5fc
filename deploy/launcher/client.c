/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/client.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/net/loop.h"
#include "deploy/launcher/command.h"

/* Reports one failure at most, and none after cv_client_stop(). */
static void give_up(struct cv_client *client, const char *text) {
  struct cv_why why;
  (void)cv_fail(&why, CV_ERR_CLOSED, "%s", text);
  if (!client->failed && !client->stopped) {
    client->failed = true;
    client->ops.failed(client->data, &why);
  }
}

/* An attempt that has begun may take the time of a handshake. */
static void on_patience(uv_timer_t *timer) {
  struct cv_client *client = timer->data;
  client->is_late = true;
  if (client->why.text[0] != '\0') {
    give_up(client, client->why.text);
  }
}

static void on_no_answer(uv_timer_t *timer) {
  struct cv_client *client = timer->data;
  char line[64];
  (void)snprintf(line, sizeof(line), "no whole answer within %s", cv_text_time(client->answer_ms).text);
  if (!client->follows || !client->was_answered) {
    give_up(client, line);
  } else if (client->peer != NULL) {
    cv_peer_close(client->peer, line); /* a campaign goes on while its broker does not */
  }
}

/* The answer's time begins with the request, not with its repetition after a lost connection. */
static void await_answer(struct cv_client *client, bool is_new) {
  if (client->answer_ms > 0 && !client->stopped && (is_new || !uv_is_active((const uv_handle_t *)&client->answer))) {
    (void)uv_timer_start(&client->answer, on_no_answer, client->answer_ms, 0);
  }
}

/* Starts the patience timer, unless it runs; `why` is the failure to report when it expires. */
static void wait_for_broker(struct cv_client *client, const struct cv_why *why) {
  client->why = *why;
  if (client->stopped) {
    return;
  }
  if (client->is_late) {
    give_up(client, why->text);
    return;
  }
  if (!uv_is_active((const uv_handle_t *)&client->patience)) {
    (void)uv_timer_start(&client->patience, on_patience, client->was_open ? client->reconnect_ms : client->patience_ms,
                         0);
  }
}

static enum cv_err send_hello(struct cv_client *client) {
  const struct cv_order_frame frame = {.hello = {.present = true, .version = CV_WIRE_VERSION, .program = "crowdveil"}};
  cv_buf_clear(&client->bytes);
  CV_TRY(cv_order_encode(&frame, &client->encoding, &client->bytes));
  return cv_peer_send(client->peer, client->bytes.data, client->bytes.len);
}

static void send_request(struct cv_client *client, bool is_new) {
  if (client->request.len > 0) {
    await_answer(client, is_new);
  }
  if (client->request.len > 0 && cv_peer_send(client->peer, client->request.data, client->request.len) != CV_OK) {
    cv_peer_close(client->peer, "cannot send the request");
  }
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  struct cv_client *client = cv_peer_data(peer);
  if (client->stopped) {
    return;
  }
  client->peer = peer;
  client->was_open = true;
  cv_peer_widen(peer, CV_LARGE_FRAME_BYTES, CV_LARGE_FRAME_BYTES);
  (void)uv_timer_stop(&client->patience);
  client->is_late = false;
  /* The hello must be the first message; then the request, which may be the one from before a disconnection. */
  if (send_hello(client) != CV_OK) {
    cv_peer_close(peer, "cannot send the hello");
    return;
  }
  send_request(client, false);
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct cv_client *client = cv_peer_data(peer);
  struct cv_order_frame frame;
  struct cv_why why;
  if (client->stopped) {
    return;
  }
  enum cv_err err = cv_order_decode(bytes, n, &client->decoding, &frame);
  if (err != CV_OK) {
    char line[96];
    (void)snprintf(line, sizeof(line), "the broker sent an invalid message of %zu bytes: %s", n, cv_err_text(err));
    give_up(client, line);
  } else if (frame.hello.present && cv_hello_check(&frame.hello, "broker", "requester", &why) != CV_OK) {
    give_up(client, why.text);
  } else if (frame.goodbye != NULL && cv_goodbye_is_moved(frame.goodbye)) {
    cv_peer_close(peer, "the broker moves to another address");
    /* Any other goodbye with a reason is final: a new connection would end the same way. */
  } else if (frame.goodbye != NULL && frame.goodbye[0] != '\0') {
    char line[CV_WHY_BYTES + 40];
    (void)snprintf(line, sizeof(line), "the broker ended the connection: %s", frame.goodbye);
    give_up(client, line);
  } else if (frame.kind != CV_ORDER_NONE) {
    client->was_answered = true;
    if (client->follows) {
      (void)uv_timer_stop(&client->answer);
    }
    client->ops.answer(client->data, &frame);
  }
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  struct cv_client *client = cv_peer_data(peer);
  bool was_open = client->peer != NULL;
  client->peer = NULL;
  wait_for_broker(client, why);
  if (was_open && client->ops.lost != NULL && !client->stopped && !client->failed) {
    client->ops.lost(client->data, why);
  }
}

static void on_no_connection(void *data, const struct cv_why *why) {
  wait_for_broker(data, why);
}

static const struct cv_peer_ops peer_ops = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

enum cv_err cv_client_start(struct cv_client *client, uv_loop_t *loop, const struct cv_client_settings *settings,
                            uint64_t patience_ms, const struct cv_client_ops *ops, void *data, struct cv_why *why) {
  const struct cv_tls_files files = {
      .ca = settings->ca, .cert = settings->cert, .key = settings->key, .crl = settings->crl};
  *client = (struct cv_client){
      .ops = *ops,
      .data = data,
      .patience_ms = patience_ms,
      .reconnect_ms = settings->reconnect_ms > 0 ? settings->reconnect_ms : patience_ms,
  };
  if (cv_arena_init(&client->decoding, CV_LARGE_ARENA_BYTES) != CV_OK ||
      cv_arena_init(&client->encoding, CV_LARGE_ARENA_BYTES) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  /* Only a broker with the configured name is accepted, whatever the address leads to. */
  const struct cv_tls_peers broker = {.roles = 1u << CV_ROLE_BROKER, .names = settings->broker_name};
  CV_TRY(cv_tls_new(&files, CV_ROLE_REQUESTER, broker, false, &client->tls, why));
  CV_TRY(cv_dialer_start(loop, settings->broker, client->tls, &peer_ops, client, on_no_connection, &CV_NET_DEFAULTS,
                         cv_clock_wall_ms(), &client->dialer, why));
  (void)uv_timer_init(loop, &client->patience);
  (void)uv_timer_init(loop, &client->answer);
  client->patience.data = client->answer.data = client;
  (void)uv_timer_start(&client->patience, on_patience, patience_ms, 0);
  client->started = true;
  return CV_OK;
}

void cv_client_ask(struct cv_client *client, const struct cv_order_frame *frame) {
  /* The encoded request is kept: on_opened() sends it again after a reconnection. */
  cv_buf_clear(&client->request);
  if (cv_order_encode(frame, &client->encoding, &client->request) != CV_OK) {
    cv_buf_clear(&client->request);
    give_up(client, "the request is too large for one message");
  } else if (client->peer != NULL) {
    send_request(client, true);
  }
}

void cv_client_stop(struct cv_client *client) {
  if (client->started && !client->stopped) {
    client->stopped = true;
    cv_dialer_stop(client->dialer);
    uv_close((uv_handle_t *)&client->patience, NULL);
    uv_close((uv_handle_t *)&client->answer, NULL);
  }
}

void cv_client_fini(struct cv_client *client) {
  if (client->tls != NULL) {
    cv_tls_unref(client->tls);
  }
  cv_arena_fini(&client->decoding);
  cv_arena_fini(&client->encoding);
  cv_buf_fini(&client->request);
  cv_buf_fini(&client->bytes);
  *client = (struct cv_client){0};
}

/* ---- for commands that wait for answers ---- */

struct run {
  struct cv_client client;
  const struct cv_config_table *table;
  cv_answer_fn *answer;
  cv_lost_fn *lost; /* NULL: a command that does not follow a campaign */
  void *data;
  bool is_lost; /* and the person was told */
  int status;
};

static void tell_found(struct run *run) {
  if (run->is_lost) {
    run->is_lost = false;
    run->lost(run->data);
    (void)cv_command_fail(run->table, 0, "connected to the broker again");
  }
}

static void on_lost(void *data, const struct cv_why *why) {
  struct run *run = data;
  if (run->lost != NULL && !run->is_lost) {
    run->is_lost = true;
    run->lost(run->data);
    (void)cv_command_fail(run->table, 0, "connection to the broker lost (%s); trying again for up to %s", why->text,
                          cv_text_time(run->client.reconnect_ms).text);
  }
}

static void on_answer(void *data, const struct cv_order_frame *frame) {
  struct run *run = data;
  enum cv_answer verdict = CV_ANSWER_FAILED;
  tell_found(run);
  if (frame->kind == CV_ORDER_ERROR) {
    (void)cv_command_fail(run->table, 1, "the broker refuses: %s", frame->as.error);
  } else {
    verdict = run->answer(run->data, &run->client, frame);
  }
  if (verdict != CV_ANSWER_MORE) {
    run->status = verdict == CV_ANSWER_DONE ? 0 : 1;
    cv_client_stop(&run->client);
  }
}

static void on_failed(void *data, const struct cv_why *why) {
  struct run *run = data;
  run->status = cv_command_fail(run->table, 1, "%s", why->text);
  cv_client_stop(&run->client);
}

int cv_client_run(const struct cv_config_table *table, const struct cv_client_settings *settings,
                  const struct cv_order_frame *request, cv_answer_fn *answer, void *data) {
  return cv_client_follow(table, settings, request, answer, NULL, data);
}

int cv_client_follow(const struct cv_config_table *table, const struct cv_client_settings *settings,
                     const struct cv_order_frame *request, cv_answer_fn *answer, cv_lost_fn *lost, void *data) {
  static const struct cv_client_ops ops = {.answer = on_answer, .failed = on_failed, .lost = on_lost};
  const struct cv_channel_settings files = {.ca = settings->ca,
                                            .cert = settings->cert,
                                            .key = settings->key,
                                            .crl = settings->crl,
                                            .wait_ms = settings->wait_ms};
  struct run run = {.table = table, .answer = answer, .lost = lost, .data = data, .status = 1};
  struct cv_why why;
  uv_loop_t loop;
  /* Before anything opens a TLS file, since containers may start before their certificates exist. */
  int ended = cv_channel_wait(table->program, &files);
  if (ended >= 0) {
    return ended == CV_CHANNEL_STOPPED ? 1 : ended;
  }
  if (cv_loop_open(&loop, &why) != CV_OK) {
    return cv_command_fail(table, 1, "%s", why.text);
  }
  if (cv_loop_start_threads(&loop, &why) != CV_OK) {
    run.status = cv_command_fail(table, 1, "%s", why.text);
  } else if (cv_client_start(&run.client, &loop, settings, settings->patience_ms, &ops, &run, &why) != CV_OK) {
    run.status = cv_command_fail(table, 2, "%s", why.text);
  } else {
    run.client.follows = lost != NULL;
    run.client.answer_ms =
        settings->patience_ms > CV_CLIENT_ANSWER_MS ? settings->patience_ms : (uint64_t)CV_CLIENT_ANSWER_MS;
    cv_client_ask(&run.client, request);
  }
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  cv_client_fini(&run.client);
  (void)uv_loop_close(&loop);
  return run.status;
}
