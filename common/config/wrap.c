/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/wrap.h"

#include <string.h>

enum { COLUMNS = 100 };

void cv_wrap_print(FILE *to, size_t column, size_t indent, const char *text) {
  const char *gap = "";
  while (*text != '\0') {
    size_t n = strcspn(text, " ");
    if (column + strlen(gap) + n > COLUMNS && column > indent) {
      (void)fprintf(to, "\n%*s", (int)indent, "");
      column = indent;
      gap = "";
    }
    (void)fprintf(to, "%s%.*s", gap, (int)n, text);
    column += strlen(gap) + n;
    gap = " ";
    text += n + (text[n] == ' ');
  }
  (void)fprintf(to, "\n");
}
