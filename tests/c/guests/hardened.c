/*
 * Promise 8: a hardened unit forbids everything that its service does not need. systemd's RestrictAddressFamilies=AF_INET
 * AF_INET6 is a filter for system calls that refuses sockets of other families.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static void allow_only_internet_sockets(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {COUNT(steps), steps};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
    CHECK(socket(AF_UNIX, SOCK_DGRAM, 0) < 0 && errno == EAFNOSUPPORT);
}

TEST_ALONE(a_unit_that_may_have_internet_sockets_only_locks) {
    zklock_reason reason;
    allow_only_internet_sockets();
    OK(zklock_set_log(ZKLOCK_LOG_TRACE, count_line, NULL));
    zklock_hold *hold = new_hold(words[0], words[1]);
    OK(zklock_hold_confirm(hold, NULL));
    IS(zklock_hold_wait_lost(hold, 1, &reason), ZKLOCK_TIMEOUT);
    give_back(hold);
}

TEST_OR_CHILD_MAIN("standalone max-session=4000")
