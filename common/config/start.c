/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/config/profile.h"
#include "common/config/rules.h"
#include "common/config/wrap.h"

/* Return values of getopt_long; the option of rule i is FIRST_RULE + i. */
enum { HELP = 'h', VERSION = 'V', CHECK = 256, CONFIG, FIRST_RULE };
enum { FIXED = 4, OPTIONS_MAX = 64, NAME_BYTES = 64 };
enum { HELP_INDENT = 31 /* of what an option does */, USAGE_INDENT = 4 };

struct options {
  char name[OPTIONS_MAX][NAME_BYTES];
  struct option option[FIXED + OPTIONS_MAX + 1];
};

enum { LINES_BYTES = 16384 };

struct request {
  const char *file;
  bool check;
  const char *value[OPTIONS_MAX]; /* unparsed, per rule */
  char lines[LINES_BYTES];        /* of options that were repeated */
  size_t used;
};

static void options_init(struct options *options, const struct cv_config_table *table) {
  CV_REQUIRE(table->count <= OPTIONS_MAX);
  const struct option fixed[FIXED] = {{"help", no_argument, NULL, HELP},
                                      {"version", no_argument, NULL, VERSION},
                                      {"check-config", no_argument, NULL, CHECK},
                                      {"config", required_argument, NULL, CONFIG}};
  memset(options, 0, sizeof(*options));
  memcpy(options->option, fixed, sizeof(fixed));
  for (size_t i = 0; i < table->count; i++) {
    char *name = options->name[i];
    (void)snprintf(name, NAME_BYTES, "%s", table->rules[i].key);
    for (char *c = name; *c != '\0'; c++) {
      /* The key limits.worker_epsilon and the option --limits-worker-epsilon are the same setting. */
      *c = *c == '.' || *c == '_' ? '-' : *c;
    }
    /* --flag alone means true; --flag=false is possible, to override a file. */
    int argument = table->rules[i].type == CV_CONFIG_BOOL ? optional_argument : required_argument;
    options->option[FIXED + i] = (struct option){name, argument, NULL, FIRST_RULE + (int)i};
  }
}

static const char *placeholder(const struct cv_config_rule *rule) {
  switch (rule->type) {
    case CV_CONFIG_TEXT:
      return " TEXT";
    case CV_CONFIG_PATH:
      return " PATH";
    case CV_CONFIG_WHOLE:
    case CV_CONFIG_REAL:
      return " NUMBER";
    case CV_CONFIG_BOOL:
      return "[=false]";
    case CV_CONFIG_TIME:
      return " TIME";
    case CV_CONFIG_WORD:
      return " WORD";
    case CV_CONFIG_WORDS:
      return " WORDS";
    case CV_CONFIG_PARTY:
      return " NAME";
    case CV_CONFIG_PARTIES:
      return " NAMES";
    case CV_CONFIG_ADDRESSES:
      return " ADDRESSES";
    case CV_CONFIG_OTHER: /* in sections of files only */
      break;
  }
  return "";
}

static void print_option(const char *left, const char *text) {
  int written = printf("  %-28s ", left);
  cv_wrap_print(stdout, (size_t)written, HELP_INDENT, text);
}

static void print_rule(const struct options *options, const struct cv_config_rule *rule, size_t index) {
  char left[NAME_BYTES + 16], expected[240], text[800];
  (void)snprintf(left, sizeof(left), "--%s%s", options->name[index], placeholder(rule));
  cv_value_describe(rule, expected, sizeof(expected));
  const bool says_values = rule->type != CV_CONFIG_TEXT && rule->type != CV_CONFIG_PATH && rule->type != CV_CONFIG_BOOL;
  int n = snprintf(text, sizeof(text), "%s%s%s", rule->help, says_values ? "; " : "", says_values ? expected : "");
  if (rule->fallback != NULL || rule->required) {
    (void)snprintf(text + n, sizeof(text) - (size_t)n, rule->fallback != NULL ? " (default %s)" : " (required)",
                   rule->fallback);
  }
  print_option(left, text);
}

static void print_help(const struct cv_config_table *table, const struct options *options) {
  char usage[400];
  (void)snprintf(usage, sizeof(usage), "Usage: %s%s%s [--config FILE] [OPTION]...", table->program,
                 table->arguments == NULL ? "" : " ", table->arguments == NULL ? "" : table->arguments);
  cv_wrap_print(stdout, 0, USAGE_INDENT, usage);
  cv_wrap_print(stdout, 0, 0, table->about);
  (void)printf("\n");
  print_option("--config FILE", "read this file first; options override it");
  print_option("--check-config", "check the file and the options, and exit");
  print_option("-h, --help", "print this, and exit");
  print_option("-V, --version", "print the version, and exit");
  (void)printf("\n");
  for (size_t i = 0; i < table->count; i++) {
    print_rule(options, &table->rules[i], i);
  }
}

static enum cv_err fail_option(const struct options *options, const char *given, struct cv_why *why) {
  const char *names[FIXED + OPTIONS_MAX];
  size_t n = 0;
  for (; options->option[n].name != NULL; n++) {
    names[n] = options->option[n].name;
  }
  char word[NAME_BYTES];
  size_t dashes = strspn(given, "-");
  (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(given + dashes, "="), given + dashes);
  /* Compare without dashes and value: "--tls-kee=x" is near "tls-key". */
  const char *nearest = cv_nearest(word, names, n);
  if (nearest != NULL) {
    return cv_fail(why, CV_ERR_INVALID, "unknown option %s; did you mean \"--%s\"?", cv_text_quote(given).text,
                   nearest);
  }
  return cv_fail(why, CV_ERR_INVALID, "unknown option %s; see --help", cv_text_quote(given).text);
}

/* The offending argument after '?': getopt sets optopt for an unknown short option, and otherwise leaves the argument
 * behind. */
static const char *offender(char **argv) {
  static char letter[3];
  if (optopt <= 0 || optopt >= CHECK || optopt == HELP || optopt == VERSION) {
    return argv[optind - 1];
  }
  (void)snprintf(letter, sizeof(letter), "-%c", optopt);
  return letter;
}

/* The last value of an option counts, or all of them. False: they are too long. */
static bool take_value(struct request *request, const struct cv_config_rule *rule, const char **value,
                       const char *given) {
  if (!rule->repeats || *value == NULL) {
    *value = given == NULL ? "true" : given;
    return true;
  }
  /* The text so far is in the same room, or in that of the arguments. */
  char *to = request->lines + request->used;
  size_t room = sizeof(request->lines) - request->used;
  int n = snprintf(to, room, "%s\n%s", *value, given);
  *value = to;
  request->used += (size_t)n + 1;
  return (size_t)n < room;
}

/* Returns -1 to continue, otherwise the exit status; with 2, `why` has the message. */
static int read_options(const struct cv_config_table *table, const struct options *options, int argc, char **argv,
                        struct request *ret, struct cv_why *why) {
  optind = 0; /* restart getopt, which may have been used before */
  opterr = 0;
  int found;
  /* "+": no reordering, so that the first argument that is not an option is found; ":": we write the messages;
   * h and V: what everybody types. */
  while ((found = getopt_long(argc, argv, "+:hV", options->option, NULL)) != -1) {
    switch (found) {
      case HELP:
        print_help(table, options);
        return 0;
      case VERSION:
        cv_config_print_version(table->program);
        return 0;
      case CHECK:
        ret->check = true;
        break;
      case CONFIG:
        ret->file = optarg;
        break;
      case ':':
        (void)cv_fail(why, CV_ERR_INVALID, "option %s has no value", cv_text_quote(argv[optind - 1]).text);
        return 2;
      case '?':
        (void)fail_option(options, offender(argv), why);
        return 2;
      default:
        if (!take_value(ret, &table->rules[found - FIRST_RULE], &ret->value[found - FIRST_RULE], optarg)) {
          (void)cv_fail(why, CV_ERR_INVALID, "option %s is too long", cv_text_quote(argv[optind - 1]).text);
          return 2;
        }
        break;
    }
  }
  if (optind < argc) {
    (void)cv_fail(why, CV_ERR_INVALID, "unexpected argument %s; expected options only",
                  cv_text_quote(argv[optind]).text);
    return 2;
  }
  return -1;
}

static enum cv_err fail_value(const struct cv_config_rule *rule, const char *option, const char *text,
                              struct cv_why *why) {
  char name[NAME_BYTES + 2], expected[240];
  struct cv_why stray;
  size_t at;
  (void)snprintf(name, sizeof(name), "--%s", option);
  if (cv_value_stray(rule, name, text, &stray, &at)) {
    return cv_fail(why, CV_ERR_INVALID, "%s", stray.text);
  }
  cv_value_describe(rule, expected, sizeof(expected));
  return cv_fail(why, CV_ERR_INVALID, "%s is %s; expected %s", name, cv_text_quote(text).text, expected);
}

static enum cv_err take_options(struct cv_settings *settings, const struct options *options,
                                const struct request *request, struct cv_why *why) {
  for (size_t i = 0; i < settings->count; i++) {
    const char *text = request->value[i];
    if (text == NULL) {
      continue;
    }
    union cv_value value;
    enum cv_err err = cv_value_parse(&settings->rules[i], text, NULL, &value);
    if (err == CV_ERR_INVALID) {
      return fail_value(&settings->rules[i], options->name[i], text, why);
    }
    if (err != CV_OK) {
      return cv_fail(why, err, "%s", cv_err_text(err));
    }
    cv_settings_put(settings, i, value);
  }
  return CV_OK;
}

/* The mapping that a key belongs in: for "tls.ca" that of tls; the whole file if there is none. */
static const yaml_node_t *place_of(struct cv_yaml *yaml, const char *key) {
  char section[NAME_BYTES];
  (void)snprintf(section, sizeof(section), "%.*s", (int)strcspn(key, "."), key);
  const yaml_node_t *found = cv_yaml_find(yaml, yaml->root, section).value;
  return found != NULL && found->type == YAML_MAPPING_NODE ? found : yaml->root;
}

/* `yaml` is the file, or NULL if only options were given. */
static enum cv_err take_defaults(struct cv_settings *settings, const struct options *options, struct cv_yaml *yaml,
                                 struct cv_why *why) {
  const struct cv_config_rule *missing;
  enum cv_err err = cv_settings_default(settings, yaml == NULL ? NULL : yaml->folder, &missing);
  if (err == CV_OK || missing == NULL) {
    return err == CV_OK ? err : cv_fail(why, err, "%s", cv_err_text(err));
  }
  char expected[240];
  cv_value_describe(missing, expected, sizeof(expected));
  const char *option = options->name[missing - settings->rules];
  if (yaml == NULL) {
    return cv_fail(why, err, "missing %s; expected %s, in a file (--config FILE) or as --%s", missing->key, expected,
                   option);
  }
  return cv_yaml_fail(yaml, place_of(yaml, missing->key), why, "missing %s; expected %s, here or as --%s", missing->key,
                      expected, option);
}

/* The profile that an option, the environment or the file of profiles names; NULL: none. */
static const char *profile_of(const struct cv_profiles *profiles, const char *said) {
  const char *named = getenv(CV_PROFILE_ENV);
  return said != NULL ? said : named != NULL && named[0] != '\0' ? named : profiles->usual;
}

/* Takes the values of a profile, in a program that can name one. */
static enum cv_err take_profile(struct cv_settings *settings, const struct request *request, struct cv_why *why) {
  size_t at = 0;
  while (at < settings->count && strcmp(settings->rules[at].key, CV_PROFILE_KEY) != 0) {
    at++;
  }
  if (at == settings->count) {
    return CV_OK;
  }
  struct cv_profiles profiles;
  const yaml_node_t *profile = NULL;
  CV_TRY(cv_profiles_open(&profiles, why));
  const char *name = profile_of(&profiles, request->value[at]);
  enum cv_err err = name == NULL ? CV_OK : cv_profiles_find(&profiles, name, &profile, why);
  if (err == CV_OK && profile != NULL) {
    err = cv_settings_map(settings, &profiles.yaml, profile, "profiles", "", why);
  }
  cv_profiles_close(&profiles);
  return err;
}

/* Takes the profile, then the file, then the options, each of which overrides what is before it, then the defaults. */
static enum cv_err gather(struct cv_settings *settings, const struct options *options, const struct request *request,
                          struct cv_why *why) {
  CV_TRY(take_profile(settings, request, why));
  /* A configuration may also be given by options alone. */
  if (request->file == NULL) {
    CV_TRY(take_options(settings, options, request, why));
    return take_defaults(settings, options, NULL, why);
  }
  struct cv_yaml yaml;
  CV_TRY(cv_yaml_open(request->file, &yaml, why));
  enum cv_err err = cv_settings_map(settings, &yaml, yaml.root, "", "", why);
  if (err == CV_OK) {
    err = take_options(settings, options, request, why);
  }
  if (err == CV_OK) {
    err = take_defaults(settings, options, &yaml, why);
  }
  cv_yaml_close(&yaml);
  return err;
}

static int fail_start(const struct cv_config_table *table, const struct cv_why *why) {
  (void)fprintf(stderr, "%s: %s\n", table->program, why->text);
  return 2;
}

int cv_config_start(const struct cv_config_table *table, int argc, char **argv, void *into) {
  return cv_config_start_with(table, argc, argv, NULL, into);
}

int cv_config_start_with(const struct cv_config_table *table, int argc, char **argv, const char *word, void *into) {
  struct options options;
  struct request request = {0};
  struct cv_why why = {0};
  options_init(&options, table);
  int status = read_options(table, &options, argc, argv, &request, &why);
  if (status >= 0) {
    return status == 0 ? 0 : fail_start(table, &why);
  }
  struct cv_settings settings;
  if (cv_settings_init(&settings, table->rules, table->count) != CV_OK) {
    (void)cv_fail(&why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
    return fail_start(table, &why);
  }
  enum cv_err err = gather(&settings, &options, &request, &why);
  if (err == CV_OK && (!request.check || table->check != NULL)) {
    cv_settings_give(&settings, into);
  }
  /* After cv_settings_give() there is nothing left to free. */
  cv_settings_fini(&settings);
  if (err == CV_OK && request.check && table->check != NULL) {
    err = table->check(into, word, &why);
  }
  if (err == CV_OK && request.check) {
    (void)printf("%s: the configuration is valid\n", table->program);
  }
  if (err != CV_OK) {
    return fail_start(table, &why);
  }
  return request.check ? 0 : -1;
}

const char *cv_config_version(void) {
  return CV_VERSION;
}

__attribute__((weak)) const char cv_config_revision[] = "";

void cv_config_print_version(const char *program) {
  bool has_commit = cv_config_revision[0] != '\0' && strchr(CV_VERSION, '-') != NULL;
  (void)printf("%s %s%s%s%s\n", program, CV_VERSION, has_commit ? " (commit " : "",
               has_commit ? cv_config_revision : "", has_commit ? ")" : "");
}

int cv_config_exit_status(enum cv_err err) {
  switch (err) {
    case CV_ERR_INVALID:
    case CV_ERR_FORMAT:
    case CV_ERR_NOT_FOUND:
    /* 2: the same start would fail again, and a person has to change something. 1: it may succeed later. */
    case CV_ERR_DENIED:
      return 2;
    default:
      return 1;
  }
}
