/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/site.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/private.h"
#include "common/base/text.h"
#include "common/page/bind.h"

/* The first line of the file, and whatever more has room. */
static enum cv_err read_text(const char *path, char *text, size_t size, struct cv_why *why) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  enum cv_err err = fd < 0 ? CV_OK : cv_private_check(fd, path, why);
  ssize_t n = fd < 0 || err != CV_OK ? -1 : read(fd, text, size - 1);
  if (err == CV_OK && n < 0) {
    err = cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  if (fd >= 0) {
    (void)close(fd);
  }
  text[n < 0 ? 0 : n] = '\0';
  return err;
}

static enum cv_err read_token(const char *path, char token[CV_DOOR_TOKEN_MOST + 1], struct cv_why *why) {
  char text[CV_DOOR_TOKEN_MOST + 2];
  enum cv_err err = read_text(path, text, sizeof(text), why);
  if (err != CV_OK) {
    cv_why_prefix(why, "page_token");
    return err;
  }
  text[strcspn(text, "\r\n")] = '\0';
  if (!cv_door_is_token(text)) {
    return cv_fail(why, CV_ERR_INVALID, "page_token: %s: expected one line of %d to %d letters, digits, - or _", path,
                   CV_DOOR_TOKEN_LEAST, CV_DOOR_TOKEN_MOST);
  }
  memcpy(token, text, strlen(text) + 1);
  return CV_OK;
}

enum cv_err cv_page_site_bind(struct cv_page_site *page, const struct cv_page_settings *settings, struct cv_why *why) {
  if (settings == NULL || settings->listen == NULL) {
    return CV_OK;
  }
  if (settings->token != NULL) {
    CV_TRY(read_token(settings->token, page->door.token, why));
  }
  CV_TRY(cv_page_bind("page", settings->listen, settings->hosts != NULL, &page->socket, &page->door.port, why));
  page->door.hosts = settings->hosts;
  page->settings = settings;
  return CV_OK;
}

static void draw_token(struct cv_rng *rng, char token[CV_DOOR_TOKEN_MOST + 1]) {
  for (int i = 0; i < 4; i++) {
    (void)snprintf(token + (ptrdiff_t)16 * i, 17, "%016" PRIx64, cv_rng_u64(rng));
  }
}

enum cv_err cv_page_site_open(struct cv_page_site *page, uv_loop_t *loop, const struct cv_page_ops *ops, void *data,
                              struct cv_rng *rng, struct cv_why *why) {
  if (ops == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_page_new(loop, ops, data, &page->page, why));
  if (page->settings == NULL) {
    return CV_OK;
  }
  if (page->door.token[0] == '\0') {
    draw_token(rng, page->door.token);
  }
  int socket = page->socket;
  page->socket = -1;
  return cv_page_front_start(loop, page->page, socket, &page->door, &page->front, why);
}

void cv_page_site_say(const struct cv_page_site *page, FILE *to) {
  if (page->settings != NULL) {
    const char *hosts = page->settings->hosts, *listen = page->settings->listen;
    size_t n = 0;
    const char *host = hosts == NULL ? NULL : cv_text_word(&hosts, &n);
    if (host == NULL) {
      host = listen;
      n = (size_t)(strrchr(listen, ':') - listen);
    }
    (void)fprintf(to, "page on http://%.*s:%u/?token=%s\n", (int)n, host, page->door.port, page->door.token);
  }
}

bool cv_page_site_serve(struct cv_page_site *page, struct MHD_Connection *connection, const char *url, void **request,
                        enum MHD_Result *ret) {
  return page->page != NULL && cv_page_serve(page->page, connection, url, request, ret);
}

void cv_page_site_ended(struct cv_page_site *page, void **request) {
  if (page->page != NULL) {
    cv_page_ended(page->page, request);
  }
}

void cv_page_site_wake(struct cv_page_site *page) {
  if (page->page != NULL) {
    cv_page_wake(page->page);
  }
}

void cv_page_site_close(struct cv_page_site *page) {
  cv_page_close(page->page);
  cv_page_front_stop(page->front);
  page->front = NULL;
  if (page->socket >= 0) {
    (void)close(page->socket);
    page->socket = -1;
  }
}

void cv_page_site_free(struct cv_page_site *page) {
  cv_page_free(page->page);
  page->page = NULL;
}
