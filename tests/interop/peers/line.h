/* A peer's connection to the register (see ../register.py), for C and C++. The peer ends when the register does. */

#ifndef LINE_H
#define LINE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static FILE *line_in, *line_out;
static const char *line_name;

static void line_failed(const char *what) {
    perror(what);
    exit(1);
}

static void line_open(const char *address, const char *name) {
    const char *colon = strrchr(address, ':');
    struct sockaddr_in at;
    int yes = 1, socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_port = htons((uint16_t)atoi(colon + 1));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    line_name = name;
    if (socket_ < 0 || connect(socket_, (struct sockaddr *)&at, sizeof at) != 0) line_failed(address);
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    line_in = fdopen(socket_, "r");
    line_out = fdopen(dup(socket_), "w");
    if (!line_in || !line_out) line_failed("fdopen");
}

static void line_tell(const char *word, const char *rest) {
    fprintf(line_out, "%s %s%s%s\n", word, line_name, *rest ? " " : "", rest);
    if (fflush(line_out) != 0) line_failed(word);
}

/* Sends a line. Returns whether to go on. */
static int line_ask(const char *word, const char *rest) {
    char answer[16];
    line_tell(word, rest);
    if (!fgets(answer, sizeof answer, line_in)) {
        fprintf(stderr, "the register has ended\n");
        exit(1);
    }
    return strcmp(answer, "go\n") == 0;
}

static int line_enter(const char *mode, const char *node, uint64_t token) {
    char rest[400];
    const char *slash = strrchr(node, '/');
    snprintf(rest, sizeof rest, "%s %s %llu", mode, slash ? slash + 1 : node, (unsigned long long)token);
    return line_ask("enter", rest);
}

#endif
