/* What the sender and the receiver share: the clock, the wait, and the agreed ids. */
#ifndef COMMON_H
#define COMMON_H

#define _GNU_SOURCE /* ppoll */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

enum {
    SENDER_SSRC = 1,
    RECEIVER_SSRC = 3,
    /* The ids of the header extensions: transport-wide sequence number and absolute send time. */
    NUMBER_ID = 1,
    TIME_ID = 2,
    DATAGRAM = 1500,
};

#define SECOND_NS 1000000000LL

static inline int64_t clock_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * SECOND_NS + time.tv_nsec;
}

/* Ends the program if a call of the library failed. */
static inline void check(weir_status status, const char *call) {
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", call, weir_status_text(status));
        exit(1);
    }
}

/* Reads ADDRESS:PORT. */
static inline struct sockaddr_in address_of(char *text) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    char *colon = strchr(text, ':');
    if (colon != NULL) *colon = '\0';
    if (colon == NULL || inet_pton(AF_INET, text, &address.sin_addr) != 1) {
        fprintf(stderr, "write ADDRESS:PORT, such as 10.45.0.2:5004, not '%s'\n", text);
        exit(2);
    }
    address.sin_port = htons((uint16_t)atoi(colon + 1));
    return address;
}

/* Waits until a datagram arrives, at most until a time. Packets leave every millisecond or more
 * often, so the wait has to end on time. ppoll does to well below a millisecond. A socket's
 * SO_RCVTIMEO does not: it ends at a tick of the kernel, up to 10 ms later. */
static inline void wait_until(int socket, int64_t due_ns) {
    int64_t wait_ns = due_ns - clock_ns();
    if (wait_ns < 0) wait_ns = 0;
    if (wait_ns > SECOND_NS) wait_ns = SECOND_NS;
    struct timespec wait = {.tv_sec = wait_ns / SECOND_NS, .tv_nsec = wait_ns % SECOND_NS};
    struct pollfd poll = {.fd = socket, .events = POLLIN};
    ppoll(&poll, 1, &wait, NULL);
}

#endif
