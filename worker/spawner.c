/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/text.h"
#include "worker/namespaces.h"

enum { PIPES = 3, FIRST_OTHER = 3 /* descriptor after the standard ones */, RECKONINGS = 100, STOP_MS = 2000 };

#define PATH "/usr/local/bin:/usr/bin:/bin"

/* Both ways; the pipes come beside a message that has them. */
struct message {
  uint32_t what, slot;
  char text[CV_SPAWNER_TEXT_BYTES];
};
enum order { ORDER_RUN, ORDER_KILL };

struct owner {
  uid_t user;
  gid_t group;
};

struct host {
  int socket, signals;
  char **words;
  unsigned slots;
  bool is_apart; /* in a PID namespace of its own */
  /* It cannot hear or report any more: the worker is gone, or a program of its user limits its open files, or has used
   * up what the user may send. */
  bool is_lost;
  pid_t pid[CV_SPAWNER_SLOTS_MAX]; /* 0: nothing runs */
};

size_t cv_spawner_words(char *text, char **words, size_t most) {
  char *to = text;
  size_t n = 0;
  for (const char *at = text; *at != '\0';) {
    at += strspn(at, " \t");
    if (*at == '\0') {
      break;
    }
    if (n == most) {
      return 0;
    }
    words[n++] = to;
    char quote = '\0';
    for (; *at != '\0' && (quote != '\0' || (*at != ' ' && *at != '\t')); at++) {
      if (quote == '\0' && (*at == '"' || *at == '\'')) {
        quote = *at;
      } else if (*at == quote) {
        quote = '\0';
      } else {
        *to++ = *at;
      }
    }
    if (quote != '\0') {
      return 0;
    }
    at += *at != '\0';
    *to++ = '\0';
  }
  return n;
}

/* ---- the spawner's own process ---- */

/* False, and errno, if pipes cannot be passed, of which a user can have only so many under way. */
static bool report(struct host *host, const struct message *message, const int *pipes) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PIPES * sizeof(int))];
  } control = {0};
  struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = sizeof(*message)};
  struct msghdr all = {.msg_iov = &part, .msg_iovlen = 1};
  if (pipes != NULL) {
    all.msg_control = control.bytes;
    all.msg_controllen = sizeof(control.bytes);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&all);
    *rights =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(PIPES * sizeof(int))};
    memcpy(CMSG_DATA(rights), pipes, PIPES * sizeof(int));
  }
  ssize_t sent;
  while ((sent = sendmsg(host->socket, &all, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  host->is_lost = host->is_lost || (sent < 0 && pipes == NULL);
  return sent >= 0;
}

static void report_error(struct host *host, unsigned slot, const char *what, int error) {
  struct message message = {.what = CV_SPAWNER_FAILED, .slot = slot};
  (void)snprintf(message.text, sizeof(message.text), "%s: %s", what, strerror(error));
  (void)report(host, &message, NULL);
}

/* In the child: becomes the program; what goes wrong is written to `told`. */
static void become_program(const struct host *host, const int *ends, int told) {
  static char path[] = "PATH=" PATH, lang[] = "LANG=C.UTF-8";
  char *environment[] = {path, lang, NULL};
  sigset_t none;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)setsid();
  for (int signal_number = 1; signal_number < NSIG; signal_number++) {
    (void)signal(signal_number, SIG_DFL);
  }
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
  bool good = true;
  for (int i = 0; i < PIPES; i++) {
    good = good && dup2(ends[i], i) == i;
  }
  /* All other descriptors close at execve(), among them this one's own. */
  if (good) {
    (void)execvpe(host->words[0], host->words, environment);
  }
  int error = errno;
  _exit(write(told, &error, sizeof(error)) == (ssize_t)sizeof(error) ? 127 : 126);
}

static void close_all(const int *fds, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (fds[i] >= 0) {
      (void)close(fds[i]);
    }
  }
}

/* ends[0..2] are the program's, ours[0..2] the worker's. */
static bool make_pipes(int *ends, int *ours) {
  for (int i = 0; i < PIPES; i++) {
    int made[2];
    if (pipe2(made, O_CLOEXEC) != 0) {
      return false;
    }
    ends[i] = made[i == 0 ? 0 : 1];
    ours[i] = made[i == 0 ? 1 : 0];
    (void)fcntl(ours[i], F_SETFL, O_NONBLOCK);
  }
  return true;
}

static void kill_slot(const struct host *host, unsigned slot) {
  if (host->pid[slot] > 0) {
    (void)kill(-host->pid[slot], SIGKILL);
    (void)kill(host->pid[slot], SIGKILL); /* before its setsid() it has no group */
  }
}

static void run_slot(struct host *host, unsigned slot) {
  int ends[PIPES] = {-1, -1, -1}, ours[PIPES] = {-1, -1, -1}, told[2] = {-1, -1};
  int error = 0;
  pid_t pid = -1;
  if (!make_pipes(ends, ours) || pipe2(told, O_CLOEXEC) != 0 || (pid = _Fork()) < 0) {
    error = errno;
  } else if (pid == 0) {
    become_program(host, ends, told[1]);
  }
  close_all(ends, PIPES);
  if (told[1] >= 0) {
    (void)close(told[1]);
  }
  if (error == 0) { /* end of file: the program has started */
    int cause;
    ssize_t n;
    while ((n = read(told[0], &cause, sizeof(cause))) < 0 && errno == EINTR) {
    }
    error = n == (ssize_t)sizeof(cause) ? cause : 0;
  }
  host->pid[slot] = error == 0 ? pid : 0;
  if (error == 0 && !report(host, &(struct message){.what = CV_SPAWNER_STARTED, .slot = slot}, ours)) {
    error = errno;
    kill_slot(host, slot);
    host->pid[slot] = 0;
  }
  if (error != 0) {
    report_error(host, slot, host->words[0], error);
  }
  close_all(ours, PIPES);
  close_all(told, 1);
}

/* Returns whether a child is left. */
static bool reap(struct host *host) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (WIFSTOPPED(status)) { /* it has made this process its tracer */
      (void)kill(pid, SIGKILL);
      continue;
    }
    for (unsigned slot = 0; slot < host->slots; slot++) {
      if (host->pid[slot] == pid) {
        struct message message = {.what = CV_SPAWNER_ENDED, .slot = slot};
        bool killed = WIFSIGNALED(status);
        (void)snprintf(message.text, sizeof(message.text), "%s %d", killed ? "signal" : "status",
                       killed ? WTERMSIG(status) : WEXITSTATUS(status));
        (void)kill(-pid, SIGKILL); /* what it has left behind */
        host->pid[slot] = 0;
        (void)report(host, &message, NULL);
      }
    }
  }
  return pid == 0;
}

/* Kills the children that came to this process because their parents are gone; more than fit are killed in the next
 * round. Of a namespace all at once, so that none can start another meanwhile. */
static void kill_children(const struct host *host) {
  if (host->is_apart) {
    (void)kill(-1, SIGKILL);
    return;
  }
  char text[4096];
  int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? 0 : read(file, text, sizeof(text) - 1);
  if (file >= 0) {
    (void)close(file);
  }
  text[n > 0 ? n : 0] = '\0';
  /* Each number is followed by a blank; one that is cut is not. */
  char *end = NULL;
  for (const char *at = text; *at != '\0'; at = end + 1) {
    long pid = strtol(at, &end, 10);
    if (end == at || *end != ' ') {
      break;
    }
    if (pid > 1) {
      (void)kill((pid_t)pid, SIGKILL);
    }
  }
}

static void end(struct host *host) {
  const struct timespec pause = {.tv_nsec = 10000000};
  for (unsigned slot = 0; slot < host->slots; slot++) {
    kill_slot(host, slot);
  }
  /* A killed parent's children become ours, so it takes several rounds. */
  for (int round = 0; round < RECKONINGS; round++) {
    kill_children(host);
    if (!reap(host)) {
      break;
    }
    (void)nanosleep(&pause, NULL);
  }
  _exit(0);
}

static void obey(struct host *host) {
  struct message order;
  ssize_t n = recv(host->socket, &order, sizeof(order), MSG_DONTWAIT);
  host->is_lost = host->is_lost || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  if (n == (ssize_t)sizeof(order) && order.slot < host->slots) {
    if (order.what == ORDER_RUN && host->pid[order.slot] == 0) {
      run_slot(host, order.slot);
    } else if (order.what == ORDER_KILL) {
      kill_slot(host, order.slot);
    }
  }
}

/* Descriptors that the worker opened before: the loop's, the journal's. */
static void close_others(int keep) {
  if (keep > FIRST_OTHER) {
    (void)close_range(FIRST_OTHER, (unsigned)keep - 1, 0);
  }
  (void)close_range((unsigned)keep + 1, ~0U, 0);
}

static void serve(struct host *host) {
  while (!host->is_lost) {
    struct pollfd wait[] = {{.fd = host->socket, .events = POLLIN}, {.fd = host->signals, .events = POLLIN}};
    host->is_lost = poll(wait, 2, -1) < 0 && errno != EINTR;
    if (wait[1].revents != 0) {
      struct signalfd_siginfo info;
      while (read(host->signals, &info, sizeof(info)) > 0) {
      }
      (void)reap(host);
    }
    if (wait[0].revents != 0) {
      obey(host);
    }
  }
  end(host);
}

/* Whether the user may run the program: a wrong name is told at the start, not by a program that never comes. */
static enum cv_err check_program(const char *word, struct cv_why *why) {
  char path[4096];
  int error = ENOENT;
  const char *folders = strchr(word, '/') != NULL ? "" : PATH;
  do {
    size_t n = strcspn(folders, ":");
    (void)snprintf(path, sizeof(path), "%.*s%s%s", (int)n, folders, n == 0 ? "" : "/", word);
    if (access(path, X_OK) == 0) {
      return CV_OK;
    }
    error = errno == ENOENT ? error : errno;
    folders += n + (folders[n] == ':');
  } while (*folders != '\0');
  return cv_fail(why, CV_ERR_INVALID, "%s: %s; expected a program that may be run", word, strerror(error));
}

static void take_signals(struct host *host) {
  sigset_t mask;
  /* A Ctrl-C reaches the whole group; the worker decides when it ends, and its end is the end of the socket. */
  (void)signal(SIGINT, SIG_IGN);
  (void)signal(SIGTERM, SIG_IGN);
  (void)signal(SIGHUP, SIG_IGN);
  (void)sigemptyset(&mask);
  (void)sigaddset(&mask, SIGCHLD);
  (void)sigprocmask(SIG_BLOCK, &mask, NULL);
  (void)prctl(PR_SET_NAME, "crowdveil-exec");
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  host->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static enum cv_err prepare(struct host *host, const struct cv_spawner_config *config, struct cv_why *why) {
  take_signals(host);
  if (host->signals < 0) {
    return cv_fail(why, CV_ERR_IO, "signalfd: %s", strerror(errno));
  }
  CV_TRY(cv_sandbox_become(&config->sandbox, why));
  CV_TRY(check_program(host->words[0], why));
  if (config->sandbox.mode != CV_SANDBOX_OFF) {
    cv_sandbox_shed();
  }
  (void)prctl(PR_SET_DUMPABLE, 0); /* nobody traces it; a change of the user may have undone this */
  return CV_OK;
}

/* `owner` is the user and group of the worker. */
static void be_spawner(const struct cv_spawner_config *config, enum cv_namespaces kind, const struct owner *owner,
                       struct host *host) {
  struct cv_why why;
  close_others(host->socket);
  bool is_settled = cv_namespaces_settle(kind, owner->user, owner->group, &why) == CV_OK;
  enum cv_err err = is_settled ? prepare(host, config, &why) : CV_ERR_DENIED;
  struct message ready = {.what = (uint32_t)err, .slot = !is_settled};
  cv_text_print(ready.text, sizeof(ready.text), "%s", err == CV_OK ? "" : why.text);
  (void)report(host, &ready, NULL);
  if (err == CV_OK) {
    serve(host);
  }
  _exit(1);
}

/* ---- the worker's side ---- */

/* What the spawner said of its start; false with errno 0 if it has ended. */
static bool hear(int socket, struct message *ready) {
  ssize_t n;
  while ((n = recv(socket, ready, sizeof(*ready), 0)) < 0 && errno == EINTR) {
  }
  return n == (ssize_t)sizeof(*ready);
}

/* Starts it in namespaces of this kind. *ret_denied: they are not permitted here, and `why` says it. */
static enum cv_err start_in(enum cv_namespaces kind, const struct cv_spawner_config *config, char **words,
                            struct cv_spawner *ret, bool *ret_denied, struct cv_why *why) {
  const struct owner owner = {.user = geteuid(), .group = getegid()};
  int ends[2];
  *ret_denied = false;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return cv_fail(why, CV_ERR_IO, "exec: socketpair: %s", strerror(errno));
  }
  pid_t pid = cv_namespaces_fork(kind);
  if (pid == 0) {
    struct host host = {
        .socket = ends[1], .words = words, .slots = config->slots, .is_apart = kind != CV_NAMESPACES_NONE};
    be_spawner(config, kind, &owner, &host);
  }
  int error = errno;
  (void)close(ends[1]);
  struct message ready = {0};
  bool has_said = pid > 0 && hear(ends[0], &ready);
  if (has_said && ready.what == CV_OK) {
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ret->socket = ends[0];
    ret->is_apart = kind != CV_NAMESPACES_NONE;
    return CV_OK;
  }
  (void)close(ends[0]);
  if (pid > 0) {
    (void)waitpid(pid, NULL, 0);
  }
  *ret_denied = kind != CV_NAMESPACES_NONE && (pid < 0 || (has_said && ready.slot != 0));
  return has_said ? cv_fail(why, (enum cv_err)ready.what, "exec: %s", ready.text)
                  : cv_fail(why, CV_ERR_IO, "exec: cannot start the process that runs programs: %s",
                            pid < 0 ? strerror(error) : "it ended");
}

enum cv_err cv_spawner_start(const struct cv_spawner_config *config, struct cv_spawner *ret, struct cv_why *why) {
  char *copy = strdup(config->command), *words[CV_SPAWNER_WORDS_MAX + 1] = {0};
  if (copy == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  if (cv_spawner_words(copy, words, CV_SPAWNER_WORDS_MAX) == 0) {
    free(copy);
    return cv_fail(why, CV_ERR_INVALID, "exec: expected a program and up to %d arguments, with closed quotes",
                   CV_SPAWNER_WORDS_MAX - 1);
  }
  struct cv_spawner spawner = {.socket = -1};
  struct cv_why reason = {0};
  enum cv_err err = CV_ERR_STATE;
  bool denied = true;
  for (enum cv_namespaces kind = CV_NAMESPACES_PLAIN; denied && kind < CV_NAMESPACES_KINDS; kind++) {
    /* A user namespace knows one user only. */
    if (kind != CV_NAMESPACES_USER || geteuid() != 0 || config->sandbox.user == NULL) {
      spawner.denied = reason;
      err = start_in(kind, config, words, &spawner, &denied, &reason);
    }
  }
  free(copy);
  if (err != CV_OK) {
    return cv_fail(why, err, "%s", reason.text);
  }
  *ret = spawner;
  return CV_OK;
}

static void order(const struct cv_spawner *spawner, enum order what, unsigned slot) {
  struct message message = {.what = what, .slot = slot};
  /* Never full: a slot has one order under way at most, and its report comes before the next. */
  (void)send(spawner->socket, &message, sizeof(message), MSG_NOSIGNAL);
}

void cv_spawner_run(const struct cv_spawner *spawner, unsigned slot) {
  order(spawner, ORDER_RUN, slot);
}

void cv_spawner_kill(const struct cv_spawner *spawner, unsigned slot) {
  order(spawner, ORDER_KILL, slot);
}

bool cv_spawner_next(const struct cv_spawner *spawner, struct cv_spawner_report *ret) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(PIPES * sizeof(int))];
  } control = {0};
  struct message message = {0};
  struct iovec part = {.iov_base = &message, .iov_len = sizeof(message)};
  struct msghdr all = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
  ssize_t n = recvmsg(spawner->socket, &all, MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    return false;
  }
  /* Its end is an error if it has not read all orders. */
  *ret = (struct cv_spawner_report){
      .what = n <= 0 ? CV_SPAWNER_GONE : (enum cv_spawner_what)message.what, .slot = message.slot, -1, -1, -1};
  const struct cmsghdr *rights = CMSG_FIRSTHDR(&all);
  if (rights != NULL && rights->cmsg_type == SCM_RIGHTS && rights->cmsg_len == CMSG_LEN(PIPES * sizeof(int))) {
    int pipes[PIPES];
    memcpy(pipes, CMSG_DATA(rights), sizeof(pipes));
    ret->in = pipes[0];
    ret->out = pipes[1];
    ret->err = pipes[2];
  }
  memcpy(ret->text, message.text, sizeof(ret->text));
  ret->text[sizeof(ret->text) - 1] = '\0';
  return true;
}

void cv_spawner_stop(struct cv_spawner *spawner) {
  struct pollfd wait = {.fd = spawner->socket, .events = POLLIN};
  char rest[sizeof(struct message)];
  if (spawner->socket >= 0) {
    /* The spawner sees the end, kills its programs and ends; the sandbox has no call that waits for a process. */
    (void)shutdown(spawner->socket, SHUT_WR);
    while (poll(&wait, 1, STOP_MS) > 0 && recv(spawner->socket, rest, sizeof(rest), MSG_DONTWAIT) > 0) {
    }
    (void)close(spawner->socket);
    spawner->socket = -1;
  }
}
