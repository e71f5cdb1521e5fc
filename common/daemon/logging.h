/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where and how a daemon logs, by its settings: text or JSON on standard error, or the fields of systemd's journal by
 * its native protocol (systemd.journal-fields(7)), without libsystemd.
 */
#ifndef CV_DAEMON_LOGGING_H
#define CV_DAEMON_LOGGING_H

#include "common/base/log.h"
#include "common/config/config.h"

enum cv_logging_form { CV_LOGGING_AUTO, CV_LOGGING_TEXT, CV_LOGGING_JSON, CV_LOGGING_JOURNAL };
extern const char *const CV_LOGGING_FORMS[];

struct cv_logging_settings {
  int form;  /* enum cv_logging_form */
  int level; /* enum cv_log_level */
};

/* The rules for these settings; `at` is their offset in the party's struct. */
#define CV_LOGGING_RULES(at)                                                                                   \
  {.key = "log",                                                                                               \
   .type = CV_CONFIG_WORD,                                                                                     \
   .offset = (at) + offsetof(struct cv_logging_settings, form),                                                \
   .choices = CV_LOGGING_FORMS,                                                                                \
   .noun = "format",                                                                                           \
   .fallback = "auto",                                                                                         \
   .help = "format of the log; auto: the journal's fields if standard error is systemd's journal, else text"}, \
  {                                                                                                            \
    .key = "log_level", .type = CV_CONFIG_WORD, .offset = (at) + offsetof(struct cv_logging_settings, level),  \
    .choices = CV_LOG_LEVEL_WORDS, .noun = "level", .fallback = "info",                                        \
    .help = "the least important lines that are logged"                                                        \
  }

/*
 * Begins the log. Call before the sandbox and before another program could be started: it removes JOURNAL_STREAM from
 * the environment. Fails only if the form is `journal` and there is no journal.
 */
CV_MUST_USE enum cv_err cv_logging_begin(const struct cv_logging_settings *settings, const char *program,
                                         struct cv_why *why);
/* The lines of the log that neither the journal nor standard error took, since the start. */
uint64_t cv_logging_lost(void);
/* Logs how many lines the journal did not take since the last call, if any. */
void cv_logging_tell_lost(void);

#endif
