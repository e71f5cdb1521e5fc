/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small process that starts the operator's programs for a worker. It is forked before a key is read and before the
 * sandbox is entered, which forbids the worker to start a process. It changes the user, gives up all privileges, and
 * then knows only two orders: start the program in a slot, and kill what runs there. The programs' pipes go to the
 * worker; the spawner reads nothing of them.
 *
 * A program gets three pipes, no other descriptor, and an environment of PATH and LANG. It has a session of its own.
 * What is left of its process group is killed when it ends, and everything that it started when the worker ends,
 * however that happens. If the system permits it, the spawner is the first process of a PID namespace (namespaces.h),
 * so that no program can prevent this; else a program of the spawner's user can, by killing it.
 */
#ifndef CV_WORKER_SPAWNER_H
#define CV_WORKER_SPAWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/sandbox/sandbox.h"

enum { CV_SPAWNER_SLOTS_MAX = 64, CV_SPAWNER_WORDS_MAX = 64, CV_SPAWNER_TEXT_BYTES = 512 };

struct cv_spawner_config {
  const char *command; /* the program and its arguments, separated by blanks; quotes keep blanks */
  unsigned slots;
  struct cv_sandbox_settings sandbox; /* the user that the programs run as */
};

struct cv_spawner {
  int socket;           /* non-blocking; readable when a report has come; -1: not started */
  bool is_apart;        /* the programs have no power over it or over the worker, and end with them (namespaces.h) */
  struct cv_why denied; /* why not */
};

enum cv_spawner_what {
  CV_SPAWNER_STARTED, /* with the pipes */
  CV_SPAWNER_FAILED,  /* the program could not be started: text */
  CV_SPAWNER_ENDED,   /* text says how: "status 1", "signal 9" */
  CV_SPAWNER_GONE,    /* the spawner itself has ended */
};

struct cv_spawner_report {
  enum cv_spawner_what what;
  unsigned slot;
  int in, out, err; /* the program's standard input (to write), output and error (to read); the caller closes them */
  char text[CV_SPAWNER_TEXT_BYTES];
};

/* Splits a command into words, which point into `text`, a copy of the command that is changed. Returns their number; 0
 * if there is none, a quote is open, or there are more than `most`. */
size_t cv_spawner_words(char *text, char **words, size_t most);

/* Forks the spawner. CV_ERR_INVALID for a command that is none; errors of cv_sandbox_become(). */
CV_MUST_USE enum cv_err cv_spawner_start(const struct cv_spawner_config *config, struct cv_spawner *ret,
                                         struct cv_why *why);
/* Orders; the reports come later. A slot is started again only after its CV_SPAWNER_ENDED or CV_SPAWNER_FAILED. */
void cv_spawner_run(const struct cv_spawner *spawner, unsigned slot);
void cv_spawner_kill(const struct cv_spawner *spawner, unsigned slot);
/* The next report; false if there is none now. */
bool cv_spawner_next(const struct cv_spawner *spawner, struct cv_spawner_report *ret);
/* Ends the spawner and all programs. Safe on {.socket = -1}. */
void cv_spawner_stop(struct cv_spawner *spawner);

#endif
