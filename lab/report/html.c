/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/html.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/text.h"

enum { PATH_BYTES = 4096 };

static const char *entity(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return NULL;
  }
}

void cv_lab_html_text(const char *text, FILE *to) {
  for (size_t n = strlen(text); n > 0;) {
    size_t bytes = cv_text_char(text, n);
    const char *instead = entity(*text);
    if (bytes == 0) { /* control characters and invalid UTF-8 */
      (void)fputc(*text == '\n' || *text == '\t' ? *text : '?', to);
      bytes = 1;
    } else if (instead != NULL) {
      (void)fputs(instead, to);
    } else {
      (void)fwrite(text, 1, bytes, to);
    }
    text += bytes;
    n -= bytes;
  }
}

static enum cv_err read_file(const char *path, struct cv_buf *ret, struct cv_why *why) {
  uint8_t chunk[16384];
  size_t n;
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0) {
    cv_buf_put(ret, chunk, n);
  }
  bool failed = ferror(file) != 0;
  (void)fclose(file);
  cv_buf_put(ret, "", 1);
  if (failed || !cv_buf_ok(ret)) {
    return cv_fail(why, failed ? CV_ERR_IO : CV_ERR_NOMEM, "%s: cannot be read", path);
  }
  return CV_OK;
}

/* If an identifier of the drawing follows, the length up to it, else 0: id='gpPt1', href='#gpPt1', url(#clip). */
static size_t before_name(const char *at) {
  static const char *const starts[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
  for (size_t i = 0; i < CV_COUNT(starts); i++) {
    if (strncmp(at, starts[i], strlen(starts[i])) == 0) {
      return strlen(starts[i]);
    }
  }
  return 0;
}

/* Skips a <title> or <desc>, which browsers show as a tooltip. */
static const char *skip_caption(const char *at) {
  static const char *const ends[][2] = {{"<title>", "</title>"}, {"<desc>", "</desc>"}};
  for (size_t i = 0; i < CV_COUNT(ends); i++) {
    const char *end = strncmp(at, ends[i][0], strlen(ends[i][0])) == 0 ? strstr(at, ends[i][1]) : NULL;
    if (end != NULL) {
      return end + strlen(ends[i][1]);
    }
  }
  return at;
}

static void copy_drawing(const char *at, const char *prefix, FILE *to) {
  while (*at != '\0') {
    const char *after = skip_caption(at);
    size_t n = before_name(at);
    if (after > at) {
      at = after;
    } else if (n > 0) { /* gnuplot gives the same identifiers in every drawing */
      (void)fprintf(to, "%.*s%s", (int)n, at, prefix);
      at += n;
    } else {
      (void)fputc(*at++, to);
    }
  }
}

enum cv_err cv_lab_html_svg(const char *folder, const char *name, const char *prefix, const char *label, FILE *to,
                            struct cv_why *why) {
  char path[PATH_BYTES];
  struct cv_buf text = {0};
  (void)snprintf(path, sizeof(path), "%s/%s.svg", folder, name);
  enum cv_err err = read_file(path, &text, why);
  const char *start = err == CV_OK ? strstr((const char *)text.data, "<svg") : NULL;
  if (err == CV_OK && start == NULL) {
    err = cv_fail(why, CV_ERR_FORMAT, "%s: no drawing", path);
  }
  if (err == CV_OK) {
    (void)fputs("<svg role=\"img\" aria-label=\"", to);
    cv_lab_html_text(label, to);
    (void)fputc('"', to);
    copy_drawing(start + strlen("<svg"), prefix, to);
  }
  cv_buf_fini(&text);
  return err;
}
