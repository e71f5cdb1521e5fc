/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads configuration files (YAML) by a table of rules: key, type, range, default. An error is one line
 * `FILE:LINE:COLUMN: what is wrong; expected WHAT`. After an error the caller's struct is unchanged.
 */
#ifndef CV_CONFIG_H
#define CV_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum cv_config_type {
  CV_CONFIG_TEXT,  /* char *, owned */
  CV_CONFIG_PATH,  /* char *, owned; relative to the file's folder (an option's: to the working folder) */
  CV_CONFIG_WHOLE, /* uint64_t in [low, high] */
  CV_CONFIG_REAL,  /* double in [low, high] */
  CV_CONFIG_BOOL,  /* bool: true or false, yes or no */
  CV_CONFIG_TIME,  /* uint64_t milliseconds in [low, high]; written 250ms, 30s, 5m, 1h, 2d; if low is 0, none means 0 */
  CV_CONFIG_WORD,  /* int: index into `choices` */
  CV_CONFIG_WORDS, /* char *, owned: some of `choices`, separated by commas or blanks */
  CV_CONFIG_PARTY, /* char *, owned: the name of a party (party.h) */
  CV_CONFIG_PARTIES,   /* char *, owned: a list of such names, or any */
  CV_CONFIG_ADDRESSES, /* char *, owned: HOST:PORT, or a list of them (address.h); in a file also as a YAML list */
  CV_CONFIG_OTHER,     /* no field: the section's reader takes the value itself; `noun` says what it expects */
};

struct cv_config_rule {
  const char *key; /* dotted: "tls.ca" is key ca of mapping tls; the option is --tls-ca (_ becomes - as well) */
  enum cv_config_type type;
  size_t offset; /* of the field in the caller's struct */
  double low, high;
  const char *const *choices; /* NULL-terminated */
  const char *noun;           /* of a WORD: what the choices are, in messages: "reward model"; NULL: the key. Of an
                                 OTHER: the values that are expected */
  const char *fallback;       /* default, as written in a file; NULL: none */
  bool required;              /* without a default: missing is an error (otherwise the field is unchanged) */
  bool is_option;             /* for the command line only; not allowed in a file */
  bool repeats;               /* of a TEXT: the option may be repeated; the values are lines of the text */
  const char *help;           /* one line for --help, or for the reference of campaign files */
  const char *example;        /* a value as a file has it, for that reference; NULL: the default */
};

struct cv_config_table {
  const char *program;   /* "crowdveil-broker" */
  const char *arguments; /* other arguments in the usage line: "FILE"; NULL: none */
  const char *about;     /* one line for --help */
  const struct cv_config_rule *rules;
  size_t count;
  /*
   * What --check-config checks beyond the rules: files that the settings name. `word` is the first argument that is no
   * option (cv_command_options()), or NULL. May be NULL.
   */
  enum cv_err (*check)(const void *settings, const char *word, struct cv_why *why);
};

/*
 * The start of every program: reads --config FILE, --check-config, --help (-h), --version (-V), and every rule as an
 * option (--tls-ca FILE; for a BOOL --flag or --flag=false), which overrides the file. With a rule CV_PROFILE_KEY it
 * also reads the values of a profile (profile.h), which file and options override. `into` is the caller's zeroed
 * struct. Returns -1 to continue, otherwise the exit status: 0 after --help, --version and a valid --check-config; 2
 * after an error, which has been printed.
 */
CV_MUST_USE int cv_config_start(const struct cv_config_table *table, int argc, char **argv, void *into);

/* The same for a command with this first argument, for `check`; NULL: none. */
CV_MUST_USE int cv_config_start_with(const struct cv_config_table *table, int argc, char **argv, const char *word,
                                     void *into);

/* Reads a file without options; a missing required key is an error. */
CV_MUST_USE enum cv_err cv_config_load(const struct cv_config_table *table, const char *path, void *into,
                                       struct cv_why *why);
/* The version of the program, and what it was built from, as deploy/revision says it; "" if that is not known, as in a
 * program that has no revision.c. */
const char *cv_config_version(void);
extern const char cv_config_revision[];
/* Prints "PROGRAM VERSION"; of what is no release, with the commit that it was built from, if it is known. */
void cv_config_print_version(const char *program);
/* The exit status of a program that failed to start: 2 if its configuration is wrong, 1 otherwise. */
int cv_config_exit_status(enum cv_err err);
/* Frees the texts in the caller's struct. */
void cv_config_fini(const struct cv_config_table *table, void *into);

#endif
