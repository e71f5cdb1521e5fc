/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/programs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/clock.h"
#include "common/base/grid.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/exchange.h"

enum {
  PAUSE_LEAST_MS = 100,
  PAUSE_MOST_MS = 30000,
  SAID_MOST = 100, /* lines of programs in the log at once; then one a second */
  SAID_EVERY_MS = 1000,
  READS = 64, /* of a pipe in one turn of the loop: a program that writes without end delays nothing else for long */
};
#define NO_SLOT UINT32_MAX

/* A question that is not answered yet. */
struct question {
  uint64_t number, worker;
  uint32_t item, slot; /* NO_SLOT: not asked yet */
  uint32_t opponent;   /* 1 + the item that it is compared with; 0: none */
  const struct cv_work *work;
  bool withdrawn; /* asked, and no answer is taken any more */
};

/* A pipe from a program, with the beginning of a line. */
struct stream {
  uv_poll_t poll; /* first: what the loop closes is the stream */
  struct slot *slot;
  int fd;
  size_t used;
  bool skips; /* the rest of a line that is too long */
  char line[CV_EXCHANGE_LINE_BYTES + 1];
};

enum phase { PAUSED, STARTING, RUNNING, ENDING };

struct slot {
  struct cv_programs *programs;
  unsigned number;
  enum phase phase;
  int in;
  struct stream *out, *err;
  uint32_t asked;     /* questions that it has */
  uint64_t silent_ms; /* since when it owes a line */
  uint64_t due_ms;    /* when it is started again */
  uint64_t pause_ms;
  char failing[CV_WHY_BYTES]; /* why it is to be killed; "": it is not */
};

struct cv_programs {
  struct cv_programs_config config;
  struct cv_asker asker;
  uv_poll_t poll; /* of the spawner's socket */
  struct slot slot[CV_SPAWNER_SLOTS_MAX];
  struct question *question; /* in the order in which they came */
  size_t questions, questions_cap;
  uint32_t said; /* lines of programs in the log, that the pace has not forgiven yet */
  uint64_t said_ms, unsaid;
  uint64_t late_told_ms;
  unsigned handles;
  bool gone, closing;
};

static void say(const struct slot *slot, enum cv_log_level level, const char *text) {
  char line[CV_LOG_TEXT_BYTES];
  cv_text_print(line, sizeof(line), "exec: program %u: %s", slot->number + 1, text);
  cv_log_note(&(struct cv_note){.level = level, .text = line});
}

static void fail(struct slot *slot, const char *reason) {
  if (slot->failing[0] == '\0') {
    cv_text_print(slot->failing, sizeof(slot->failing), "%s", reason);
  }
}

/* ---- questions ---- */

static void forget(struct cv_programs *programs, struct question *question) {
  size_t at = (size_t)(question - programs->question);
  if (question->slot != NO_SLOT) {
    programs->slot[question->slot].asked--;
  }
  programs->questions--;
  memmove(question, question + 1, (programs->questions - at) * sizeof(*question));
}

static void write_question(struct slot *slot, struct question *question) {
  struct cv_buf line = {0};
  const bool compares = question->opponent > 0;
  cv_exchange_ask(
      &(struct cv_exchange_question){.id = question->number,
                                     .worker = question->worker,
                                     .item = question->item,
                                     .name = question->work->name[question->item],
                                     .campaign = question->work->campaign,
                                     .versus = compares ? question->opponent - 1 : 0,
                                     .versus_name = compares ? question->work->name[question->opponent - 1] : NULL},
      &line);
  /* At most PIPE_BUF bytes are written wholly or not at all, and the pipe has room for all that may be open. */
  bool written = cv_buf_ok(&line) && write(slot->in, line.data, line.len) == (ssize_t)line.len;
  if (!written) {
    fail(slot, errno == EAGAIN ? "it does not read its standard input" : "it has closed its standard input");
  }
  cv_buf_fini(&line);
  question->slot = slot->number;
  if (slot->asked++ == 0) {
    slot->silent_ms = cv_clock_mono_ms();
  }
}

/* The program with the fewest questions that may have another; NULL if there is none. */
static struct slot *free_slot(struct cv_programs *programs) {
  struct slot *best = NULL;
  for (unsigned i = 0; i < programs->config.slots; i++) {
    struct slot *slot = &programs->slot[i];
    if (slot->phase == RUNNING && slot->failing[0] == '\0' && slot->asked < programs->config.ahead &&
        (best == NULL || slot->asked < best->asked)) {
      best = slot;
    }
  }
  return best;
}

static void hand_out(struct cv_programs *programs) {
  for (size_t i = 0; i < programs->questions; i++) {
    if (programs->question[i].slot == NO_SLOT) {
      struct slot *slot = free_slot(programs);
      if (slot == NULL) {
        return;
      }
      write_question(slot, &programs->question[i]);
    }
  }
}

static void ask(void *data, const struct cv_question *question) {
  struct cv_programs *programs = data;
  struct question *row = CV_ARRAY_PUSH(programs->question, programs->questions, programs->questions_cap);
  if (row == NULL) {
    return; /* its lease ends it */
  }
  *row = (struct question){.number = question->number,
                           .worker = question->worker,
                           .item = question->arm,
                           .opponent = question->opponent,
                           .slot = NO_SLOT,
                           .work = question->work};
  hand_out(programs);
}

/* Once a minute is enough: each of them is counted in the metrics. */
static void tell_late(struct cv_programs *programs, struct slot *slot) {
  enum { EVERY_MS = 60000 };
  uint64_t now_ms = cv_clock_mono_ms();
  if (programs->late_told_ms == 0 || now_ms >= programs->late_told_ms + EVERY_MS) {
    programs->late_told_ms = now_ms;
    say(slot, CV_LOG_WARN,
        "no score within the broker's lease: the assignment was declined; expected a faster program, more of them "
        "(exec_processes), or a longer lease at the broker");
  }
}

static void withdraw(void *data, uint64_t number, enum cv_withdrawn why) {
  struct cv_programs *programs = data;
  for (size_t i = 0; i < programs->questions; i++) {
    struct question *question = &programs->question[i];
    if (question->number == number) {
      if (question->slot == NO_SLOT) {
        forget(programs, question);
      } else {
        question->withdrawn = true;
        if (why == CV_WITHDRAWN_LATE) {
          tell_late(programs, &programs->slot[question->slot]);
        }
      }
      return;
    }
  }
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
}

static uint32_t room(void *data) {
  const struct cv_programs *programs = data;
  uint64_t places = (uint64_t)cv_programs_running(programs) * programs->config.ahead;
  return places > programs->questions ? (uint32_t)(places - programs->questions) : 0;
}

/* ---- answers ---- */

static struct question *find(struct cv_programs *programs, const struct slot *slot,
                             const struct cv_exchange_answer *answer) {
  for (size_t i = 0; i < programs->questions; i++) {
    struct question *question = &programs->question[i];
    if (question->slot == slot->number && (!answer->has_id || question->number == answer->id)) {
      return question;
    }
  }
  return NULL;
}

static void on_answer(struct slot *slot, const char *line, size_t n) {
  struct cv_programs *programs = slot->programs;
  struct cv_exchange_answer answer;
  struct cv_why why;
  if (cv_exchange_read(line, n, &answer, &why) != CV_OK) {
    char text[CV_WHY_BYTES];
    cv_text_print(text, sizeof(text), "it answered %s", why.text);
    fail(slot, text);
    return;
  }
  struct question *question = find(programs, slot, &answer);
  if (question == NULL) {
    fail(slot, answer.has_id ? "it answered a question that it has not been asked"
                             : "it wrote a line without a question; expected one line an answer");
    return;
  }
  if (question->opponent > 0 && !answer.declines && answer.score != 0 && answer.score != CV_GRID) {
    fail(slot, "it answered a comparison with another number; expected 1 if the item is better, else 0");
    return;
  }
  struct question asked = *question;
  forget(programs, question);
  slot->silent_ms = cv_clock_mono_ms();
  slot->pause_ms = PAUSE_LEAST_MS;
  hand_out(programs);
  if (!asked.withdrawn && answer.declines) {
    programs->config.pass(programs->config.data, asked.number, "the program declined");
  } else if (!asked.withdrawn) {
    programs->config.answer(programs->config.data, asked.number, answer.score);
  }
}

/* A line of a program's standard error: to the log, which cleans it; not more than the pace permits. */
static void on_said(struct slot *slot, const char *line, size_t n) {
  struct cv_programs *programs = slot->programs;
  if (programs->said >= SAID_MOST) {
    programs->unsaid++;
    return;
  }
  programs->said++;
  char text[CV_LOG_TEXT_BYTES];
  cv_text_print(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), line);
  say(slot, CV_LOG_INFO, text);
}

static void forgive(struct cv_programs *programs, uint64_t now_ms) {
  if (now_ms >= programs->said_ms + SAID_EVERY_MS) {
    programs->said_ms = now_ms;
    programs->said -= programs->said > 0;
    if (programs->unsaid > 0 && programs->said < SAID_MOST / 2) {
      cv_log(CV_LOG_WARN, "exec: %" PRIu64 " more lines of the programs' standard error were left out",
             programs->unsaid);
      programs->unsaid = 0;
    }
  }
}

/* ---- pipes ---- */

static void take_line(struct stream *stream, bool is_out) {
  size_t n = stream->used;
  stream->used = 0;
  if (!is_out) {
    on_said(stream->slot, stream->line, n);
  } else if (stream->slot->failing[0] == '\0') {
    on_answer(stream->slot, stream->line, n);
  }
}

static void take_bytes(struct stream *stream, const char *bytes, size_t n, bool is_out) {
  for (size_t i = 0; i < n; i++) {
    if (bytes[i] == '\n') {
      if (!stream->skips) {
        take_line(stream, is_out);
      }
      stream->skips = false;
    } else if (stream->used == CV_EXCHANGE_LINE_BYTES) {
      stream->skips = true;
      take_line(stream, is_out); /* its beginning: a message, or no answer */
    } else if (!stream->skips) {
      stream->line[stream->used++] = bytes[i];
    }
  }
}

static void on_readable(uv_poll_t *poll, int status, int events) {
  struct stream *stream = (struct stream *)poll;
  bool is_out = stream == stream->slot->out;
  char bytes[4096];
  for (int reads = 0; reads < READS; reads++) {
    ssize_t n = read(stream->fd, bytes, sizeof(bytes));
    if (n > 0) {
      take_bytes(stream, bytes, (size_t)n, is_out);
      continue;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      (void)uv_poll_stop(poll);
      if (is_out) {
        fail(stream->slot, "it has closed its standard output");
      } else if (stream->used > 0) {
        take_line(stream, false);
      }
    }
    return;
  }
}

static void finish(struct cv_programs *programs) {
  if (--programs->handles == 0) {
    free(programs->question);
    free(programs);
  }
}

static void on_stream_closed(uv_handle_t *handle) {
  struct stream *stream = (struct stream *)handle;
  struct cv_programs *programs = stream->slot->programs;
  (void)close(stream->fd);
  free(stream);
  finish(programs);
}

static struct stream *open_stream(struct slot *slot, int fd) {
  struct stream *stream = calloc(1, sizeof(*stream));
  if (stream == NULL || uv_poll_init(slot->programs->config.loop, &stream->poll, fd) != 0) {
    (void)close(fd);
    free(stream);
    return NULL;
  }
  stream->slot = slot;
  stream->fd = fd;
  slot->programs->handles++;
  (void)uv_poll_start(&stream->poll, UV_READABLE, on_readable);
  return stream;
}

static void close_stream(struct stream **stream) {
  if (*stream != NULL) {
    uv_close((uv_handle_t *)&(*stream)->poll, on_stream_closed);
    *stream = NULL;
  }
}

static void close_pipes(struct slot *slot) {
  close_stream(&slot->out);
  close_stream(&slot->err);
  if (slot->in >= 0) {
    (void)close(slot->in);
    slot->in = -1;
  }
}

/* ---- the life of a program ---- */

/* Its questions go to nobody: another program might answer a second time what this one has answered unread. */
static void drop_questions(struct slot *slot, const char *reason) {
  struct cv_programs *programs = slot->programs;
  for (size_t i = programs->questions; i-- > 0;) {
    struct question asked = programs->question[i];
    if (asked.slot == slot->number) {
      forget(programs, &programs->question[i]);
      if (!asked.withdrawn) {
        programs->config.pass(programs->config.data, asked.number, reason);
      }
    }
  }
}

static void pause_slot(struct slot *slot, const char *what) {
  uint64_t pause_ms = slot->pause_ms;
  char text[CV_LOG_TEXT_BYTES];
  slot->phase = PAUSED;
  slot->due_ms = cv_clock_mono_ms() + pause_ms;
  slot->pause_ms = pause_ms * 2 > PAUSE_MOST_MS ? PAUSE_MOST_MS : pause_ms * 2;
  cv_text_print(text, sizeof(text), "%s; it is started again in %s", what, cv_text_time(pause_ms).text);
  say(slot, CV_LOG_WARN, text);
}

static void on_started(struct slot *slot, const struct cv_spawner_report *report) {
  slot->in = report->in;
  slot->out = open_stream(slot, report->out);
  slot->err = open_stream(slot, report->err);
  slot->failing[0] = '\0';
  slot->phase = RUNNING;
  if (slot->out == NULL || slot->err == NULL) {
    fail(slot, "no memory for its pipes");
  }
}

/* Reads what it has written before its end; then the questions that are left have no answer. */
static void on_ended(struct slot *slot, const char *how) {
  if (slot->out != NULL && slot->phase == RUNNING) {
    on_readable(&slot->out->poll, 0, 0);
  }
  if (slot->err != NULL) {
    on_readable(&slot->err->poll, 0, 0);
  }
  char text[CV_WHY_BYTES + 200];
  bool was_killed = slot->phase == ENDING;
  close_pipes(slot);
  drop_questions(slot, "the program has ended");
  if (was_killed) {
    cv_text_print(text, sizeof(text), "%s", slot->failing);
  } else {
    cv_text_print(text, sizeof(text), "it ended with %s", how);
  }
  slot->failing[0] = '\0';
  pause_slot(slot, text);
}

static void on_report(uv_poll_t *poll, int status, int events) {
  struct cv_programs *programs = poll->data;
  struct cv_spawner_report report;
  while (!programs->gone && cv_spawner_next(programs->config.spawner, &report)) {
    if (report.what == CV_SPAWNER_GONE || report.slot >= programs->config.slots) {
      programs->gone = true;
      (void)uv_poll_stop(poll);
      return;
    }
    struct slot *slot = &programs->slot[report.slot];
    if (report.what == CV_SPAWNER_STARTED) {
      on_started(slot, &report);
      hand_out(programs);
    } else if (report.what == CV_SPAWNER_ENDED) {
      on_ended(slot, report.text);
    } else {
      pause_slot(slot, report.text);
    }
  }
}

static void tick_slot(struct slot *slot, uint64_t now_ms) {
  struct cv_programs *programs = slot->programs;
  if (slot->phase == PAUSED && now_ms >= slot->due_ms) {
    slot->phase = STARTING;
    cv_spawner_run(programs->config.spawner, slot->number);
  }
  if (slot->phase == RUNNING && slot->asked > 0 && now_ms > slot->silent_ms + programs->config.timeout_ms) {
    char text[CV_WHY_BYTES];
    (void)snprintf(text, sizeof(text), "no answer within %s (exec_timeout)",
                   cv_text_time(programs->config.timeout_ms).text);
    fail(slot, text);
  }
  if (slot->phase == RUNNING && slot->failing[0] != '\0') {
    slot->phase = ENDING;
    drop_questions(slot, "the program gave no score");
    cv_spawner_kill(programs->config.spawner, slot->number);
  }
}

bool cv_programs_tick(struct cv_programs *programs, uint64_t now_ms) {
  for (unsigned i = 0; i < programs->config.slots && !programs->gone; i++) {
    tick_slot(&programs->slot[i], now_ms);
  }
  forgive(programs, now_ms);
  return !programs->gone;
}

unsigned cv_programs_running(const struct cv_programs *programs) {
  unsigned running = 0;
  for (unsigned i = 0; i < programs->config.slots; i++) {
    running += programs->slot[i].phase == RUNNING && programs->slot[i].failing[0] == '\0';
  }
  return running;
}

const struct cv_asker *cv_programs_asker(struct cv_programs *programs) {
  return &programs->asker;
}

enum cv_err cv_programs_tell(const struct cv_spawner *spawner, bool requires, struct cv_why *why) {
  const char *denied = spawner->denied.text;
  const bool is_first = getpid() == 1; /* of a container: what it leaves ends with it */
  if (spawner->is_apart) {
    cv_log(CV_LOG_INFO, "exec: programs run in a PID namespace of their own, and end with the worker");
  } else if (is_first) {
    cv_log(CV_LOG_INFO,
           "exec: programs have no PID namespace of their own (%s): one can kill the process that starts them, and end "
           "the worker; as it is process 1, they end with it",
           denied);
  } else if (requires) {
    return cv_fail(why, CV_ERR_STATE,
                   "sandbox is require, but a PID namespace for the programs is not available: %s; expected permission "
                   "to make one, or sandbox: on",
                   denied);
  } else {
    cv_log(CV_LOG_WARN,
           "exec: programs have no PID namespace of their own (%s): one can kill the process that starts them, and end "
           "the worker, and then outlive it",
           denied);
  }
  return CV_OK;
}

enum cv_err cv_programs_start(const struct cv_programs_config *config, struct cv_programs **ret, struct cv_why *why) {
  struct cv_programs *programs = calloc(1, sizeof(*programs));
  CV_REQUIRE(config->slots >= 1 && config->slots <= CV_SPAWNER_SLOTS_MAX && config->ahead >= 1);
  if (programs == NULL || uv_poll_init(config->loop, &programs->poll, config->spawner->socket) != 0) {
    free(programs);
    return cv_fail(why, CV_ERR_NOMEM, "exec: no memory for the programs");
  }
  programs->config = *config;
  programs->asker = (struct cv_asker){.ask = ask, .withdraw = withdraw, .told = told, .room = room, .data = programs};
  programs->poll.data = programs;
  programs->handles = 1;
  for (unsigned i = 0; i < config->slots; i++) {
    programs->slot[i] = (struct slot){.programs = programs, .number = i, .in = -1, .pause_ms = PAUSE_LEAST_MS};
  }
  (void)uv_poll_start(&programs->poll, UV_READABLE, on_report);
  *ret = programs;
  return CV_OK;
}

static void on_closed(uv_handle_t *handle) {
  finish(handle->data);
}

void cv_programs_stop(struct cv_programs *programs) {
  if (programs != NULL && !programs->closing) {
    programs->closing = true;
    for (unsigned i = 0; i < programs->config.slots; i++) {
      close_pipes(&programs->slot[i]);
    }
    uv_close((uv_handle_t *)&programs->poll, on_closed);
  }
}
