/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with a PID namespace of its own, whose first process it is: what it starts cannot name, signal or stop any
 * process outside, cannot end or stop the first process itself, and ends with it, by the kernel's hand.
 */
#ifndef CV_WORKER_NAMESPACES_H
#define CV_WORKER_NAMESPACES_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/err.h"

/* PLAIN needs CAP_SYS_ADMIN. USER makes a user namespace around it, in which only the process's own user and group are
 * known; it needs a kernel and a system that permit this to everybody. NONE is a process like any other. */
enum cv_namespaces { CV_NAMESPACES_PLAIN, CV_NAMESPACES_USER, CV_NAMESPACES_NONE, CV_NAMESPACES_KINDS };

/* As fork(), but without its handlers; -1 and errno if the namespaces are not permitted. */
pid_t cv_namespaces_fork(enum cv_namespaces kind);
/*
 * In the new process, before anything else: makes the namespaces fit to use. `user` and `group` are those of the
 * process that forked. Where it is permitted, /proc shows the new namespace only; where not, it shows the processes
 * outside, by numbers that mean nothing inside. CV_ERR_DENIED.
 */
CV_MUST_USE enum cv_err cv_namespaces_settle(enum cv_namespaces kind, uid_t user, gid_t group, struct cv_why *why);

#endif
