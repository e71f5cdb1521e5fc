/* SPDX-License-Identifier: Apache-2.0 */
/* Who did what: an event for the audit log. Pure code makes events, shells write them (common/daemon/trail.h). An event
 * never has a token, a score, a sum, noise, a ticket or a key. */
#ifndef CV_BASE_EVENT_H
#define CV_BASE_EVENT_H

#include <stddef.h>
#include <stdint.h>

/* A further field of an event. */
struct cv_event_fact {
  const char *name;
  const char *text; /* NULL: the number */
  uint64_t number;
};

/* All texts are borrowed for the call. Those that a peer has chosen may contain anything. */
struct cv_event {
  const char *what;    /* "submit" */
  const char *actor;   /* the identity in its certificate ("requester/alice"), or "operator"; NULL: the daemon itself */
  const char *serial;  /* of that certificate; NULL or "": none */
  uint64_t campaign;   /* 0: none */
  const char *name;    /* the campaign's; NULL: none */
  const char *refused; /* why it was not done; NULL: it was done */
  const struct cv_event_fact *fact;
  size_t facts;
};

#endif
