/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/form.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/admin/httpd.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/page/files.h"
#include "common/page/reply.h"
#include "common/page/serve.h"
#include "worker/form_page.h"
#include "worker/form_post.h"

enum {
  ITEM_BYTES = 256,
  WAIT_MS = 3000 /* of a request for a question or a verdict */,
  WAITING_MAX = 4 /* of them, of a person */
};

/* What a question is about, as long as it is open. */
struct about {
  struct cv_terms terms;
  struct cv_local law;
  char item[ITEM_BYTES], versus[ITEM_BYTES];
  uint32_t arm, opponent;
  uint64_t due_ms;
};

enum state {
  AWAY,   /* nothing is asked of it */
  COMING, /* its worker waits for an assignment */
  ASKED,
  GIVEN, /* its answer is sent; the verdict is to come */
};

struct person {
  uint64_t worker;
  struct cv_door door;
  char secret[CV_FORM_SECRET_BYTES];
  enum state state;
  uint64_t question;
  struct about *about; /* while ASKED or GIVEN; owned */
  bool passes;         /* its question is passed with the next tick: the campaign asks for several items at once */
  enum cv_form_notice notice;
  char noticed[ITEM_BYTES];
};

/* A post whose body comes in pieces, or a request that waits. */
struct request {
  struct request *prev, *next;
  struct MHD_Connection *connection;
  struct person *person;
  char body[CV_FORM_POST_BYTES];
  size_t body_n;
  bool is_long, is_suspended;
  uint64_t until_ms;
};

struct cv_form {
  struct cv_form_config config;
  struct cv_asker asker;
  struct cv_httpd *httpd;
  struct person *person;
  size_t people;
  struct request *request;
  bool closing;
};

/* ---- people ---- */

static int by_worker(const void *key, const void *row) {
  uint64_t worker = *(const uint64_t *)key, of = ((const struct person *)row)->worker;
  return worker < of ? -1 : worker > of;
}

static struct person *person_of(const struct cv_form *form, uint64_t worker) {
  return bsearch(&worker, form->person, form->people, sizeof(*form->person), by_worker);
}

static struct person *person_asked(const struct cv_form *form, uint64_t question) {
  for (size_t i = 0; i < form->people; i++) {
    if (form->person[i].state >= ASKED && form->person[i].question == question) {
      return &form->person[i];
    }
  }
  return NULL;
}

/* The person of a link or a cookie. Every token is compared, so the time tells nothing. */
static struct person *person_with(const struct cv_form *form, const struct cv_door_guesses *guesses) {
  struct person *found = NULL;
  for (size_t i = 0; i < form->people; i++) {
    if (cv_door_opens(&form->person[i].door, guesses)) {
      found = &form->person[i];
    }
  }
  return found;
}

static void wake(struct cv_form *form, const struct person *person) {
  struct request *request;
  DL_FOREACH(form->request, request) {
    if (request->is_suspended && (person == NULL || request->person == person)) {
      request->is_suspended = false;
      cv_httpd_resume(request->connection);
    }
  }
}

static void end_question(struct cv_form *form, struct person *person, enum cv_form_notice notice) {
  person->notice = notice;
  memcpy(person->noticed, person->about->item, sizeof(person->noticed));
  free(person->about);
  person->about = NULL;
  person->state = AWAY;
  person->passes = false;
  wake(form, person);
}

/* ---- the asker ---- */

static bool knows(void *data, uint64_t worker) {
  return person_of(data, worker) != NULL;
}

static void ask(void *data, const struct cv_question *question) {
  struct cv_form *form = data;
  struct person *person = person_of(form, question->worker);
  if (person != NULL && person->state == ASKED) {
    person->passes = true;
    return;
  }
  struct about *about = person == NULL ? NULL : calloc(1, sizeof(*about));
  if (about == NULL) {
    return; /* its lease ends it */
  }
  *about = (struct about){.terms = *question->terms,
                          .law = *question->law,
                          .arm = question->arm,
                          .opponent = question->opponent,
                          .due_ms = question->due_ms};
  cv_text_print(about->item, sizeof(about->item), "%s", question->work->name[question->arm]);
  if (question->opponent > 0) {
    cv_text_print(about->versus, sizeof(about->versus), "%s", question->work->name[question->opponent - 1]);
  }
  person->about = about;
  person->question = question->number;
  person->state = ASKED;
  wake(form, person);
}

static void withdraw(void *data, uint64_t question, enum cv_withdrawn why) {
  static const enum cv_form_notice notices[] = {
      [CV_WITHDRAWN_LATE] = CV_FORM_LEFT, [CV_WITHDRAWN_OVER] = CV_FORM_OVER, [CV_WITHDRAWN_PASSED] = CV_FORM_SKIPPED};
  struct cv_form *form = data;
  struct person *person = person_asked(form, question);
  if (person != NULL) {
    end_question(form, person, person->passes ? CV_FORM_SEVERAL : notices[why]);
  }
}

static void told(void *data, uint64_t question, enum cv_verdict verdict) {
  static const enum cv_form_notice notices[] = {[CV_VERDICT_NONE] = CV_FORM_OVER,
                                                [CV_VERDICT_ACCEPTED] = CV_FORM_COUNTED,
                                                [CV_VERDICT_DUPLICATE] = CV_FORM_COUNTED,
                                                [CV_VERDICT_EXPIRED] = CV_FORM_TOO_LATE,
                                                [CV_VERDICT_REFUSED] = CV_FORM_REFUSED};
  struct cv_form *form = data;
  struct person *person = person_asked(form, question);
  if (person != NULL && person->state == GIVEN && (size_t)verdict < CV_COUNT(notices)) {
    end_question(form, person, notices[verdict]);
  }
}

/* ---- answers ---- */

static enum MHD_Result send_page(struct MHD_Connection *connection, unsigned status, struct cv_buf *page) {
  struct MHD_Response *response =
      cv_buf_ok(page) ? MHD_create_response_from_buffer(page->len, page->data, MHD_RESPMEM_MUST_COPY) : NULL;
  cv_buf_fini(page);
  return cv_page_reply_form(connection, status, "text/html; charset=utf-8", response);
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *reason) {
  struct cv_buf page = {0};
  cv_form_put_refusal(reason, &page);
  return send_page(connection, status, &page);
}

/* To somebody without access; who has guessed waits. */
static enum MHD_Result turn_away(struct MHD_Connection *connection, bool has_guessed) {
  enum MHD_Result result;
  return has_guessed && !cv_httpd_may_refuse(connection, &result)
             ? result
             : refuse(connection, MHD_HTTP_FORBIDDEN, "no access; expected the link that you were given");
}

static enum MHD_Result back_to_form(struct MHD_Connection *connection) {
  static char nothing[] = "";
  struct MHD_Response *response = MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
  if (response == NULL || MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, "/") != MHD_YES) {
    MHD_destroy_response(response);
    return MHD_NO;
  }
  return cv_page_reply_form(connection, MHD_HTTP_SEE_OTHER, "text/plain; charset=utf-8", response);
}

static struct request *begin_request(struct cv_form *form, struct MHD_Connection *connection, struct person *person) {
  struct request *request = calloc(1, sizeof(*request));
  if (request != NULL) {
    request->connection = connection;
    request->person = person;
    request->until_ms = cv_clock_mono_ms() + WAIT_MS;
    DL_APPEND(form->request, request);
  }
  return request;
}

/* The largest score that the person may choose: 1 where scores are split as bits. */
static uint64_t steps_of(const struct cv_form *form, const struct person *person) {
  bool bits = person->state >= ASKED && person->about->terms.split.score_bits == CV_SPLIT_BIT &&
              person->about->law.epsilon_micro == CV_EPSILON_NONE;
  return bits ? 1 : form->config.settings->steps;
}

/* Shows the page of the person's state, with what became of the last answer, once. */
static enum MHD_Result show(struct cv_form *form, struct MHD_Connection *connection, struct person *person,
                            bool is_over) {
  struct cv_form_view view = {
      .notice = person->notice, .noticed = person->noticed, .secret = person->secret, .steps = steps_of(form, person)};
  struct cv_buf page = {0};
  person->notice = CV_FORM_NO_NOTICE;
  if (person->state == ASKED) {
    const struct about *about = person->about;
    uint64_t now_ms = cv_clock_mono_ms();
    view.campaign = about->terms.name;
    view.item = about->item;
    view.versus = about->opponent > 0 ? about->versus : NULL;
    view.question = person->question;
    view.arm = about->arm;
    view.terms = &about->terms;
    view.law = &about->law;
    view.left_s = about->due_ms > now_ms ? (about->due_ms - now_ms) / 1000 : 0;
    cv_form_put_question(&view, &page);
  } else if (is_over) {
    view.limit = form->config.used_limit(form->config.data, person->worker);
    cv_form_put_end(&view, &page);
  } else {
    if (person->state == GIVEN) {
      view.notice = CV_FORM_UNCONFIRMED;
      view.noticed = person->about->item;
    }
    cv_form_put_wait(&view, &page);
  }
  return send_page(connection, MHD_HTTP_OK, &page);
}

/* A person's newest requests wait; older ones are answered as if their time was over. */
static void wait_for_person(struct cv_form *form, struct request *newest) {
  struct request *request, *oldest = NULL;
  unsigned waiting = 0;
  DL_FOREACH(form->request, request) {
    if (request->is_suspended && request->person == newest->person && waiting++ == 0) {
      oldest = request;
    }
  }
  if (waiting == WAITING_MAX) {
    oldest->until_ms = 0;
    oldest->is_suspended = false;
    cv_httpd_resume(oldest->connection);
  }
  newest->is_suspended = true;
  cv_httpd_suspend(newest->connection);
}

static enum MHD_Result answer_main(struct cv_form *form, struct MHD_Connection *connection, struct person *person,
                                   void **context) {
  struct request *request = *context;
  bool comes = true;
  if (person->state == AWAY || person->state == COMING) {
    comes = form->config.come(form->config.data, person->worker);
    person->state = comes ? COMING : AWAY;
  }
  if (comes && person->state != ASKED) {
    request = request == NULL ? begin_request(form, connection, person) : request;
    *context = request;
    if (request != NULL && cv_clock_mono_ms() < request->until_ms) {
      wait_for_person(form, request);
      return MHD_YES;
    }
  }
  return show(form, connection, person, !comes);
}

static bool is_own_secret(const struct person *person, const char *secret) {
  volatile unsigned char differs = 0;
  for (size_t i = 0; i < CV_FORM_SECRET_BYTES; i++) {
    differs |= (unsigned char)((unsigned char)person->secret[i] ^ (unsigned char)secret[i]);
  }
  return differs == 0;
}

/* Hands the answer on. CV_ERR_FORMAT if it is none to this question. */
static enum cv_err take(struct cv_form *form, struct person *person, const struct cv_form_post *post,
                        struct cv_why *why) {
  bool is_local = person->about->law.epsilon_micro != CV_EPSILON_NONE;
  const struct cv_score_answer answer = {.is_token = post->kind == CV_FORM_TOKEN, .value = post->value};
  if (post->kind == CV_FORM_SKIP) {
    form->config.pass(form->config.data, person->question, "the person skipped the item"); /* withdraws it */
    return CV_OK;
  }
  if (answer.is_token != is_local) {
    return cv_fail(why, CV_ERR_FORMAT,
                   is_local ? "this campaign takes no score but a random answer in its place, which a browser with "
                              "JavaScript makes; nothing was used"
                            : "this campaign takes a score; nothing was used");
  }
  person->state = GIVEN;
  enum cv_err err = form->config.answer(form->config.data, person->question, &answer, why);
  if (err == CV_ERR_NOT_FOUND && person->state == GIVEN) {
    end_question(form, person, CV_FORM_TOO_LATE);
    return CV_OK;
  }
  if (err == CV_ERR_INVALID) {
    person->state = ASKED;
  }
  return err == CV_ERR_NOT_FOUND ? CV_OK : err;
}

static const char too_long[] = "too long; expected what the form sends";

/* Before it is read. */
static bool says_too_long(struct MHD_Connection *connection) {
  const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return length != NULL && strtoull(length, NULL, 10) > CV_FORM_POST_BYTES;
}

static enum MHD_Result answer_post(struct cv_form *form, struct MHD_Connection *connection,
                                   const struct request *request) {
  struct person *person = request->person;
  struct cv_form_post post;
  struct cv_why why;
  if (request->is_long) {
    return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, too_long);
  }
  if (cv_form_read(request->body, request->body_n, steps_of(form, person), &post, &why) != CV_OK) {
    return refuse(connection, MHD_HTTP_BAD_REQUEST, why.text);
  }
  if (!is_own_secret(person, post.secret)) {
    return refuse(connection, MHD_HTTP_FORBIDDEN, "an old form, or one of another person; nothing was used");
  }
  bool is_open = person->state >= ASKED && person->question == post.question;
  if (!is_open && person->notice == CV_FORM_NO_NOTICE) {
    return refuse(connection, MHD_HTTP_CONFLICT,
                  "this question is no longer open: you have answered it, or another person is asked; nothing more was "
                  "used");
  }
  if (is_open && person->state == ASKED && take(form, person, &post, &why) != CV_OK) {
    return refuse(connection, MHD_HTTP_BAD_REQUEST, why.text);
  }
  return back_to_form(connection);
}

/* ---- requests ---- */

/* All doors have one port, and so one name of the cookie. */
static struct cv_door_guesses cookies_of(const struct cv_form *form, struct MHD_Connection *connection) {
  return cv_door_guesses(&form->person[0].door,
                         MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_COOKIE));
}

/* Whoever asks: the link, a file that needs no cookie, or a person. */
static enum MHD_Result on_get(struct cv_form *form, struct MHD_Connection *connection, const char *url,
                              void **context) {
  const char *token = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token");
  if (strcmp(url, "/") != 0) {
    return cv_page_serve_file(&CV_FORM_FILES, connection, url);
  }
  const struct cv_door_guesses guesses = token != NULL ? cv_door_guess(token) : cookies_of(form, connection);
  struct person *person = person_with(form, &guesses);
  if (person == NULL) {
    return turn_away(connection, guesses.count > 0);
  }
  return token != NULL ? cv_page_let_in(&person->door, connection) : answer_main(form, connection, person, context);
}

static enum MHD_Result on_post(struct cv_form *form, struct MHD_Connection *connection, const char *url,
                               const char *upload, size_t *upload_n, void **context) {
  struct request *request = *context;
  if (request == NULL) {
    const struct cv_door_guesses guesses = cookies_of(form, connection);
    struct person *person = person_with(form, &guesses);
    if (person == NULL || strcmp(url, "/answer") != 0) {
      return turn_away(connection, person == NULL && guesses.count > 0);
    }
    if (says_too_long(connection)) {
      return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, too_long);
    }
    *context = begin_request(form, connection, person);
    return *context == NULL ? MHD_NO : MHD_YES;
  }
  if (*upload_n > 0) {
    size_t room = sizeof(request->body) - request->body_n;
    request->is_long = request->is_long || *upload_n > room;
    if (!request->is_long) {
      memcpy(request->body + request->body_n, upload, *upload_n);
      request->body_n += *upload_n;
    }
    *upload_n = 0;
    return MHD_YES;
  }
  return answer_post(form, connection, request);
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_n, void **context) {
  struct cv_form *form = data;
  const struct cv_door_visit visit = cv_page_visit(connection, method);
  struct cv_why why;
  if (form->closing) {
    return MHD_NO;
  }
  if (cv_door_check_origin(&form->person[0].door, &visit, &why) != CV_OK) {
    return cv_page_reply_line(connection, MHD_HTTP_FORBIDDEN, why.text);
  }
  if (strcmp(method, MHD_HTTP_METHOD_POST) == 0) {
    return on_post(form, connection, url, upload, upload_n, context);
  }
  if (strcmp(method, MHD_HTTP_METHOD_GET) != 0) {
    return cv_page_reply_line(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed; expected GET or POST");
  }
  return on_get(form, connection, url, context);
}

static void on_ended(void *data, struct MHD_Connection *connection, void **context,
                     enum MHD_RequestTerminationCode code) {
  struct cv_form *form = data;
  struct request *request = *context;
  if (request != NULL) {
    DL_DELETE(form->request, request);
    explicit_bzero(request, sizeof(*request)); /* a body may have a score */
    free(request);
    *context = NULL;
  }
}

/* ---- life ---- */

const struct cv_asker *cv_form_asker(struct cv_form *form) {
  return &form->asker;
}

void cv_form_tick(struct cv_form *form, uint64_t now_ms) {
  struct request *request;
  for (size_t i = 0; i < form->people; i++) {
    if (form->person[i].passes) {
      form->config.pass(form->config.data, form->person[i].question, "a form shows one item at a time");
    }
  }
  DL_FOREACH(form->request, request) {
    if (request->is_suspended && now_ms >= request->until_ms) {
      request->is_suspended = false;
      cv_httpd_resume(request->connection);
    }
  }
}

static enum cv_err add_people(struct cv_form *form, struct cv_why *why) {
  const struct cv_form_config *config = &form->config;
  form->person = calloc(config->invited->people, sizeof(*form->person));
  if (form->person == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "form: no memory for its people");
  }
  for (size_t i = 0; i < config->invited->people; i++) {
    const struct cv_invitation *from = &config->invited->person[i];
    struct person *person = &form->person[form->people++];
    if (from->number > config->last - config->first + 1) {
      return cv_fail(why, CV_ERR_INVALID,
                     "form_people: person %" PRIu64 "; expected 1 to %" PRIu64
                     ", as the certificate has as many workers",
                     from->number, config->last - config->first + 1);
    }
    person->worker = config->first + from->number - 1;
    person->door = (struct cv_door){.port = config->port,
                                    .hosts = config->settings->hosts,
                                    .is_linked = true,
                                    .has_tls = config->settings->has_tls};
    memcpy(person->door.token, from->token, sizeof(from->token));
    (void)snprintf(person->secret, sizeof(person->secret), "%016" PRIx64 "%016" PRIx64, cv_rng_u64(config->rng),
                   cv_rng_u64(config->rng));
  }
  return CV_OK;
}

static void free_form(struct cv_form *form) {
  for (size_t i = 0; i < form->people; i++) {
    free(form->person[i].about);
  }
  free(form->person);
  free(form);
}

enum cv_err cv_form_start(const struct cv_form_config *config, struct cv_form **ret, struct cv_why *why) {
  struct cv_form *form = calloc(1, sizeof(*form));
  if (form == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "form: out of memory");
  }
  form->config = *config;
  form->asker =
      (struct cv_asker){.ask = ask, .withdraw = withdraw, .told = told, .knows = knows, .waits = true, .data = form};
  const struct cv_httpd_config httpd = {
      .proxies = config->proxies, .handler = on_request, .completed = on_ended, .data = form};
  enum cv_err err = add_people(form, why);
  if (err == CV_OK) {
    err = cv_httpd_start(config->loop, config->socket, &httpd, &form->httpd, why);
  }
  if (err != CV_OK) {
    free_form(form);
    return err;
  }
  *ret = form;
  return CV_OK;
}

void cv_form_stop(struct cv_form *form) {
  if (form != NULL) {
    form->closing = true;
    wake(form, NULL);
    cv_httpd_stop(form->httpd);
    free_form(form);
  }
}
