/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's shell: connects the core, the scores and the store of given tokens to a daemon (common/daemon). It runs
 * one worker, or a gateway for a range of virtual workers; the range is that of its certificate. One or more campaign
 * files name the sources of scores. The shell connects to the broker, with accept.pairs to a co-broker as well, and
 * accepts no connections.
 */
#ifndef CV_WORKER_SHELL_H
#define CV_WORKER_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/daemon/program.h"
#include "worker/accept.h"
#include "worker/form.h"
#include "worker/spawner.h"
#include "worker/works.h"

struct cv_worker_settings {
  struct cv_daemon_settings daemon;
  char *broker; /* one or several (base/address.h) */
  char *broker_name, *campaign, *requesters, *state;
  char *cobroker, *accept_pairs; /* both, or neither */
  uint64_t seed, concurrency;    /* seed: CV_WORKS_SEED_NONE if unset */
  double arrival_rate, accept_epsilon, accept_delta;
  char *accept_privatizers, *accept_mechanisms;
  uint64_t accept_tokens;
  bool exit_when_done, unsafe_show;
  char *exec, *exec_user; /* a program that gives the scores; NULL: the campaign file's source does */
  uint64_t exec_processes, exec_ahead, exec_timeout_ms;
  struct cv_form_settings form;
  char *part;           /* "K of N"; NULL: the whole file */
  char *row_key;        /* path of a key file that gateways of one data file share; NULL: the state's own key */
  uint64_t form_invite; /* add so many people to the file and print their links, instead of running; 0: run */
};

/* With form_invite: adds the people, prints their links and returns the exit status; else returns -1. */
CV_MUST_USE int cv_worker_invite(const void *settings);
/* Reads accept.pairs, which the caller frees; CV_ERR_INVALID with the reason, also if only one of it and cobroker is
 * set. */
CV_MUST_USE enum cv_err cv_worker_read_pairs(const struct cv_worker_settings *settings, struct cv_duo **ret,
                                             size_t *ret_pairs, struct cv_why *why);
/* CV_ERR_INVALID if a limit of tokens has no state folder that remembers the given ones. */
CV_MUST_USE enum cv_err cv_worker_check_state(const struct cv_worker_settings *settings, struct cv_why *why);
/* Reads how works are to be read; CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_worker_ask_works(const struct cv_worker_settings *settings, struct cv_works_ask *ret,
                                            struct cv_why *why);
/* Runs the daemon until SIGTERM or SIGINT, or with exit_when_done until its campaigns are over. Returns the exit
 * status. */
CV_MUST_USE int cv_worker_run(const struct cv_worker_settings *settings);

#endif
