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
  int error = ferror(file) != 0 ? errno : cv_buf_ok(ret) ? 0 : ENOMEM;
  (void)fclose(file);
  if (error != 0) {
    return cv_fail(why, error == ENOMEM ? CV_ERR_NOMEM : CV_ERR_IO, "%s: cannot be read: %s", path, strerror(error));
  }
  return CV_OK;
}

void cv_lab_html_drawing(const char *name, const char *label, FILE *to) {
  (void)fputs("<a href=\"", to);
  cv_lab_html_text(name, to);
  (void)fputs(".svg\"><img loading=\"lazy\" src=\"", to);
  cv_lab_html_text(name, to);
  (void)fputs(".svg\" alt=\"", to);
  cv_lab_html_text(label, to);
  (void)fputs("\"></a>\n", to);
}

static void write_base64(const uint8_t *at, size_t n, FILE *to) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n; i += 3) {
    size_t left = n - i;
    uint32_t three = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);
    (void)fputc(digits[three >> 18], to);
    (void)fputc(digits[three >> 12 & 63], to);
    (void)fputc(left > 1 ? digits[three >> 6 & 63] : '=', to);
    (void)fputc(left > 2 ? digits[three & 63] : '=', to);
  }
}

enum cv_err cv_lab_html_thumbnail(const char *folder, const char *name, const char *label, FILE *to,
                                  struct cv_why *why) {
  static const char head[] = "\x89PNG\r\n\x1a\n";
  char path[PATH_BYTES];
  struct cv_buf bytes = {0};
  (void)snprintf(path, sizeof(path), "%s/%s.png", folder, name);
  enum cv_err err = read_file(path, &bytes, why);
  if (err == CV_OK && (bytes.len < sizeof(head) - 1 || memcmp(bytes.data, head, sizeof(head) - 1) != 0)) {
    err = cv_fail(why, CV_ERR_FORMAT, "%s: no picture", path);
  }
  if (err == CV_OK) {
    (void)fputs("<img alt=\"", to);
    cv_lab_html_text(label, to);
    (void)fputs("\" src=\"data:image/png;base64,", to);
    write_base64(bytes.data, bytes.len, to);
    (void)fputs("\">", to);
  }
  cv_buf_fini(&bytes);
  return err;
}
