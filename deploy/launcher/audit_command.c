/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil audit: checks that no line of an audit log was changed or removed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/command.h"
#include "common/crypto/crypto.h"
#include "common/daemon/trail_line.h"
#include "deploy/launcher/command.h"

struct options {
  char *has;
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "has",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct options, has),
     .is_option = true,
     .help = "SHA-256 of a line that this command printed before: the log must still have that line"},
    CV_JSON_RULE(offsetof(struct options, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil audit",
    .arguments = "FILE...",
    .about = "checks the chain of an audit log; several files of it, the oldest first",
    .rules = rules,
    .count = CV_COUNT(rules),
};

/* The chain so far, through all files. */
struct check {
  const char *file, *has;
  uint64_t line;           /* of the file */
  uint64_t lines;          /* in all files */
  uint64_t first, number;  /* of the first and the last line; first 0: none could be read yet */
  char last[CV_TRAIL_HEX]; /* digest of the line before */
  bool json;
  uint64_t incomplete; /* lines that a program did not finish */
  bool found;          /* the line that --has names */
};

static enum cv_err wrong(const struct check *check, struct cv_why *why, const char *what) {
  return cv_fail(why, CV_ERR_DAMAGED, "%s:%" PRIu64 ": %s", check->file, check->line, what);
}

static enum cv_err check_number(const struct check *check, uint64_t number, struct cv_why *why) {
  if (number == check->number + 1) {
    return CV_OK;
  }
  const char *what = number > check->number ? "lines between them were removed" : "the files are not in order";
  return cv_fail(why, CV_ERR_DAMAGED, "%s:%" PRIu64 ": number %" PRIu64 " after %" PRIu64 "; %s", check->file,
                 check->line, number, check->number, what);
}

/* Whether the line follows the one before it. */
static enum cv_err check_place(struct check *check, const struct cv_trail_line *line, struct cv_why *why) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  if (check->lines == 0) {
    /* The first line here may follow one in an older file. */
    bool begins = strcmp(line->previous, zeros) == 0;
    check->first = line->number;
    return begins == (line->number == 1) ? CV_OK : wrong(check, why, "the log begins here, but not with number 1");
  }
  if (check->first == 0) { /* so far there was only a line that is not complete, and has no number */
    check->first = line->number - check->lines;
  } else {
    CV_TRY(check_number(check, line->number, why));
  }
  return strcmp(line->previous, check->last) == 0 ? CV_OK : wrong(check, why, "the line before this one was changed");
}

static enum cv_err check_line(struct check *check, const char *text, size_t n, struct cv_why *why) {
  struct cv_trail_line line;
  struct cv_digest digest;
  check->line++;
  if (cv_trail_line_read(text, n, &line)) {
    CV_TRY(check_place(check, &line, why));
    check->number = line.number;
  } else if (cv_trail_line_begins(text, n)) {
    check->number++;
    check->incomplete++;
    (void)(check->json ? 0
                       : printf("%s:%" PRIu64 ": not complete: the program ended while it wrote this line\n",
                                cv_text_line(check->file).text, check->line));
  } else {
    return wrong(check, why, "not a line of an audit log");
  }
  check->lines++;
  cv_sha256(text, n, NULL, 0, &digest);
  cv_trail_line_hex(&digest, check->last);
  check->found = check->found || (check->has != NULL && strcmp(check->has, check->last) == 0);
  return CV_OK;
}

static enum cv_err check_file(struct check *check, const char *path, struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
  }
  char *text = NULL;
  size_t room = 0;
  enum cv_err err = CV_OK;
  check->file = path;
  check->line = 0;
  errno = 0;
  for (ssize_t n; err == CV_OK && (n = getline(&text, &room, file)) >= 0;) {
    err = check_line(check, text, text[n - 1] == '\n' ? (size_t)n - 1 : (size_t)n, why);
  }
  if (err == CV_OK && (ferror(file) || errno == ENOMEM)) {
    err = cv_fail(why, CV_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
  }
  free(text);
  (void)fclose(file);
  return err;
}

static int tell(const struct check *check) {
  if (check->lines == 0) {
    return cv_command_fail(&table, 1, "%s: no lines", check->file);
  }
  if (check->has != NULL && !check->found) {
    return cv_command_fail(&table, 1, "no line has the SHA-256 %.64s: the log was cut or replaced", check->has);
  }
  if (check->json) {
    return cv_launcher_print_json(&table,
                                  json_pack("{s:I, s:I, s:I, s:I, s:s}", "lines", (json_int_t)check->lines, "first",
                                            (json_int_t)check->first, "last", (json_int_t)check->number, "incomplete",
                                            (json_int_t)check->incomplete, "sha256", check->last),
                                  0);
  }
  (void)printf("%" PRIu64 " lines, number %" PRIu64 " to %" PRIu64 ", in one chain; the last has the SHA-256 %s\n",
               check->lines, check->first, check->number, check->last);
  return 0;
}

static bool is_digest(const char *text) {
  return strlen(text) == CV_TRAIL_HEX - 1 && strspn(text, "0123456789abcdef") == CV_TRAIL_HEX - 1;
}

int cv_launcher_audit(int argc, char **argv) {
  const char *words[CV_WORDS_MAX] = {0};
  struct options options = {0};
  struct check check = {0};
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 1, CV_WORDS_MAX, words, &options);
  if (status >= 0) {
    return status;
  }
  check.has = options.has;
  check.json = options.json;
  enum cv_err err = CV_OK;
  if (options.has != NULL && !is_digest(options.has)) {
    status = cv_command_fail(&table, 2, "--has \"%.70s\"; expected 64 hexadecimal digits", options.has);
  }
  for (size_t i = 0; status < 0 && err == CV_OK && i < CV_WORDS_MAX && words[i] != NULL; i++) {
    err = check_file(&check, words[i], &why);
  }
  if (status < 0) {
    status = err == CV_OK ? tell(&check) : cv_command_fail(&table, err == CV_ERR_NOT_FOUND ? 2 : 1, "%s", why.text);
  }
  cv_config_fini(&table, &options);
  return status;
}
