/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/config/rules.h"
#include "common/config/standard.h"

static void print_help(FILE *to, const char *program, const char *about, const struct cv_command *commands,
                       size_t count) {
  (void)fprintf(to, "Usage: %s COMMAND [OPTION]...\n%s\n\n", program, about);
  for (size_t i = 0; i < count; i++) {
    if (commands[i].about != NULL) {
      (void)fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].about);
    }
  }
  (void)fprintf(to, "\nRun %s COMMAND --help for the options of a command.\n", program);
}

/* Suggests the command with the most similar name, if there is one; hidden commands are not suggested. */
static void print_unknown(const char *program, const char *name, const struct cv_command *commands, size_t count) {
  enum { COMMANDS_MAX = 32 };
  const char *names[COMMANDS_MAX];
  size_t n = 0;
  for (size_t i = 0; i < count && n < COMMANDS_MAX; i++) {
    if (commands[i].about != NULL) {
      names[n++] = commands[i].name;
    }
  }
  const char *nearest = cv_nearest(name, names, n);
  if (nearest != NULL) {
    (void)fprintf(stderr, "%s: unknown command %s; did you mean \"%s\"?\n", program, cv_text_quote(name).text, nearest);
  } else {
    (void)fprintf(stderr, "%s: unknown command %s; %s --help lists the commands\n", program, cv_text_quote(name).text,
                  program);
  }
}

static bool is_any(const char *word, const char *name, const char *letter) {
  return strcmp(word, name) == 0 || strcmp(word, letter) == 0;
}

static int run(const char *program, const char *about, const struct cv_command *commands, size_t count, int argc,
               char **argv) {
  /* On standard error, because a script that forgets the command must not take the help for its output. */
  if (argc < 2) {
    print_help(stderr, program, about, commands, count);
    return 2;
  }
  if (is_any(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
    print_help(stdout, program, about, commands, count);
    return 0;
  }
  if (is_any(argv[1], "--version", "-V")) {
    cv_config_print_version(program);
    return 0;
  }
  for (size_t i = 0; i < count; i++) {
    if (strcmp(argv[1], commands[i].name) == 0) {
      return commands[i].run(argc - 1, argv + 1);
    }
  }
  print_unknown(program, argv[1], commands, count);
  return 2;
}

int cv_command_main(const char *program, const char *about, const struct cv_command *commands, size_t count, int argc,
                    char **argv) {
  cv_standard_open();
  return cv_standard_close(program, run(program, about, commands, count, argc, argv));
}

/* Returns true if `text` is a prefix of the option's name; *ret_whole is true if it is the whole name. */
static bool begins(const char *text, const char *key, bool *ret_whole) {
  size_t i = 0;
  for (; text[i] != '\0'; i++) {
    if (text[i] != (key[i] == '.' || key[i] == '_' ? '-' : key[i])) {
      return false;
    }
  }
  *ret_whole = key[i] == '\0';
  return true;
}

/*
 * Returns true for an option whose value is the next argument. As in getopt, an unambiguous prefix stands for the whole
 * name. Unknown options are not reported here; cv_config_start() reports them.
 */
static bool takes_next(const struct cv_config_table *table, const char *argument) {
  static const char *const fixed[] = {"config", "check-config", "help", "version"};
  const char *name = argument + 2;
  size_t begun = 0;
  bool takes = false;
  for (size_t i = 0; i < CV_COUNT(fixed) + table->count; i++) {
    const struct cv_config_rule *rule = i < CV_COUNT(fixed) ? NULL : &table->rules[i - CV_COUNT(fixed)];
    bool whole = false;
    if (begins(name, rule == NULL ? fixed[i] : rule->key, &whole)) {
      takes = rule == NULL ? i == 0 : rule->type != CV_CONFIG_BOOL;
      begun++;
    }
    if (whole) {
      return takes;
    }
  }
  return begun == 1 && takes;
}

/* Reports that the argument with this index is missing: takes its name from the table, "FILE..." without the dots. */
static int fail_missing(const struct cv_config_table *table, size_t index) {
  const char *name = table->arguments == NULL ? "an argument" : table->arguments;
  for (size_t i = 0; i < index && strchr(name, ' ') != NULL; i++) {
    name = strchr(name, ' ') + 1;
  }
  const char *dots = strstr(name, "...");
  size_t n = strcspn(name, " ");
  n = dots != NULL && (size_t)(dots - name) < n ? (size_t)(dots - name) : n;
  return cv_command_fail(table, 2, "missing %.*s; usage: %s %s", (int)n, name, table->program,
                         table->arguments == NULL ? "" : table->arguments);
}

/* Returns -1 if the number of arguments is right, otherwise reports it. */
static int check_words(const struct cv_config_table *table, size_t found, size_t least, const char *unexpected) {
  if (found < least) {
    return fail_missing(table, found);
  }
  return unexpected == NULL
             ? -1
             : cv_command_fail(table, 2, "unexpected argument %s; usage: %s %s", cv_text_quote(unexpected).text,
                               table->program, table->arguments == NULL ? "[OPTION]..." : table->arguments);
}

int cv_command_options(const struct cv_config_table *table, int argc, char **argv, size_t least, size_t most,
                       const char **words, void *into) {
  /* One more, for the NULL that ends it, as in argv. */
  char **options = calloc((size_t)argc + 1, sizeof(*options));
  CV_REQUIRE(options != NULL);
  int n = 0;
  size_t found = 0;
  const char *unexpected = NULL;
  options[n++] = argv[0];
  /* getopt stops at the first argument that is not an option, so options and arguments are separated first. */
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-' || argv[i][1] == '\0') {
      if (found < most) {
        words[found] = argv[i];
      } else if (found == most) {
        unexpected = argv[i];
      }
      found++;
      continue;
    }
    options[n++] = argv[i];
    if (strncmp(argv[i], "--", 2) == 0 && i + 1 < argc && takes_next(table, argv[i])) {
      options[n++] = argv[++i];
    }
  }
  /* A command line without options gets the error about its arguments before one about a missing option. */
  int status = n == 1 ? check_words(table, found, least, unexpected) : -1;
  status = status < 0 ? cv_config_start_with(table, n, options, found > 0 && most > 0 ? words[0] : NULL, into) : status;
  free(options);
  return status < 0 ? check_words(table, found, least, unexpected) : status;
}

int cv_command_fail(const struct cv_config_table *table, int status, const char *fmt, ...) {
  char line[1024];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(line, sizeof(line), fmt, args);
  va_end(args);
  cv_text_clean(line, strlen(line));
  (void)fprintf(stderr, "%s: %s\n", table->program, line);
  return status;
}
