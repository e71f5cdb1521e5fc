/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database on a server, which several brokers share. One of them is active, for a term; the others stand by. The
 * broker's shell uses it through this table, so that a program without such a database does not link a client of it.
 *
 *   open -> step, step, ... -> the term is taken -> load -> commits and beats -> leave or close
 *
 * `step`, `beat`, and the store's own functions may wait for the server for some seconds: they run on the storage
 * thread, one at a time. Any error of a term ends it: nothing is looked up, and the process must end.
 */
#ifndef CV_BROKER_STORE_REMOTE_H
#define CV_BROKER_STORE_REMOTE_H

#include "broker/both/mark.h"
#include "common/crypto/ring.h"

struct cv_broker_store;
struct cv_remote;

enum { CV_REMOTE_HOSTS = 4, CV_REMOTE_FILES = 4 };

struct cv_remote_config {
  const char *store;  /* the URI */
  const char *anchor; /* path */
  const char *name;   /* of the broker, and where its clients find it: for `status` of other brokers */
  const char *address;
  const struct cv_ring *ring; /* master keys; copied */
  bool replicated;            /* serve only while a synchronous replica has every commit */
};

/* What operators are told. */
struct cv_remote_view {
  bool is_active, is_connected;
  bool has_anchor;
  uint64_t term;     /* the present one; 0: there was none */
  uint64_t since_ms; /* wall clock, when this broker became active or began to stand by */
  uint64_t commit;   /* the database's last that was read or made */
  uint64_t anchor_commit;
  char holder[256];   /* who holds the term: name and address; "": nobody */
  char replica[64];   /* "sync", "none", ... of the server, as far as the active broker has seen */
  char disputed[200]; /* "": nobody disputes the history */
};

/* What an operator does with the database while no broker is active. */
enum cv_remote_task {
  CV_REMOTE_LOOK,    /* reads; changes nothing */
  CV_REMOTE_SEAL,    /* wraps its keys anew */
  CV_REMOTE_RECOVER, /* takes the term whatever anchors and disputes say; the anchor stays as it is until a commit */
};

struct cv_remote_work {
  enum cv_remote_task task;
  bool lost;                 /* of a recovery: the database may be empty, or no anchor may say what was acknowledged */
  const char *const *anchor; /* files of further anchors */
  size_t anchors;
};

/* For the sandbox: where a store dials, and which files it reads for that. */
struct cv_remote_needs {
  size_t dials, reads;
  /* `dial`: HOST:PORT, or the path of a socket. */
  char dial[CV_REMOTE_HOSTS][300], read[CV_REMOTE_FILES][256];
};

struct cv_remote_ops {
  /* Checks the URI alone. CV_ERR_INVALID. */
  enum cv_err (*check)(const char *store, struct cv_remote_needs *ret, struct cv_why *why);
  /* Opens the anchor; does not connect. */
  enum cv_err (*open)(const struct cv_remote_config *config, struct cv_remote **ret, struct cv_why *why);
  /* One attempt to get the term. *ret_taken: this broker is active from now on. After an error it may be called again,
   * not before *ret_rest_ms. */
  enum cv_err (*step)(struct cv_remote *remote, bool *ret_taken, unsigned *ret_rest_ms, struct cv_why *why);
  /* In place of `step`: gets the lock for an operator, and says what the anchors mean. CV_ERR_STATE: a broker is
   * active. Then `store`; `leave` or `close` ends the work. */
  enum cv_err (*work)(struct cv_remote *remote, const struct cv_remote_work *work, struct cv_store_marks *ret,
                      struct cv_why *why);
  /* The store of the active broker, or of an operator's work; to be closed before the remote is. */
  enum cv_err (*store)(struct cv_remote *remote, struct cv_broker_store **ret, struct cv_why *why);
  /* A fenced commit without content: this broker is alive, and finds out whether it still has the term. */
  enum cv_err (*beat)(struct cv_remote *remote, struct cv_why *why);
  /* Gives the term back, so that another broker can have it at once. */
  void (*leave)(struct cv_remote *remote);
  /* Not while another function runs. */
  void (*view)(const struct cv_remote *remote, struct cv_remote_view *ret);
  /* Makes or changes the tables as `owner`, the URI of the database's owner, for the role in `store`. `ret_done` says
   * what was done; *ret_is_new: there were no tables. */
  enum cv_err (*migrate)(const char *owner, const char *store, bool *ret_is_new, struct cv_why *ret_done,
                         struct cv_why *why);
  void (*close)(struct cv_remote *remote);
};

#endif
