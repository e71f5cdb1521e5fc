/* SPDX-License-Identifier: Apache-2.0 */
/* Reads names in hexadecimal digits, one a line, and prints what they become likewise, or "invalid" or "format". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/names.h"
#include "common/base/normal.h"

enum { LINE = 1 << 14 };

int main(void) {
  static char line[LINE], typed[LINE];
  while (fgets(line, sizeof(line), stdin) != NULL) {
    char name[CV_ITEM_BYTES];
    size_t n = strspn(line, "0123456789abcdef") / 2;
    for (size_t i = 0; i < n; i++) {
      char digits[3] = {line[2 * i], line[2 * i + 1], '\0'};
      typed[i] = (char)strtol(digits, NULL, 16);
    }
    typed[n] = '\0';
    enum cv_err err = cv_name_normalize(typed, name, sizeof(name), NULL);
    for (const char *at = name; err == CV_OK && *at != '\0'; at++) {
      (void)printf("%02x", (unsigned)(unsigned char)*at);
    }
    (void)printf("%s\n", err == CV_OK ? "" : err == CV_ERR_INVALID ? "invalid" : "format");
  }
  return 0;
}
